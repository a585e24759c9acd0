/* Matrix products with a weight that is used again and again: packed once into panels of a few columns. Here in
 * float32; int8_quantization.h has the same in int8.
 *
 * Every sum runs over k in order, whatever the number of rows, so that a row's result does not depend on the other rows
 * (batch invariance).
 */
#pragma once
#include "simd_math.h"
#include <stdlib.h>

#define PANEL_COLUMNS (2 * LANES)
#if LANES == 16
#define TILE_ROWS 8
#else
#define TILE_ROWS 6
#endif

/* A linear layer. One without `panels` and `int8_panels` is absent: its `outputs` is 0. */
typedef struct {
    int64_t outputs, inputs;
    float *panels;       /* [outputs / PANEL_COLUMNS, inputs, PANEL_COLUMNS], padded with zeros */
    float *bias;         /* [outputs, padded] */
    int8_t *int8_panels; /* [outputs / PANEL_COLUMNS, inputs / 4, PANEL_COLUMNS, 4]: the weight in int8, or NULL */
    float *scales;       /* [outputs]: weight = scale * int8 */
    int32_t *offsets;    /* [outputs]: 128 times the sum of an output's int8, since inputs are shifted by 128 */
} Linear;

/* The number of panels that hold this many outputs; the last one is padded. */
static inline int64_t panel_count(int64_t outputs) { return (outputs + PANEL_COLUMNS - 1) / PANEL_COLUMNS; }

/* Memory of `size` bytes, aligned to 64 bytes, to be freed by free; NULL if there is none. */
static inline void *alloc_aligned(int64_t size) {
    void *p = NULL;
    return posix_memalign(&p, 64, size > 0 ? (size_t)size : 64) ? NULL : p;
}

/* Copies row [inputs] of a weight [outputs, inputs] to its column in the panels. */
static inline void linear_pack_row(Linear *m, int64_t output, const float *row) {
    float *panel = m->panels + output / PANEL_COLUMNS * m->inputs * PANEL_COLUMNS + output % PANEL_COLUMNS;
    for (int64_t k = 0; k < m->inputs; k++) panel[k * PANEL_COLUMNS] = row[k];
}

/* A layer of zeros; -1 if there is no memory. To be freed by linear_free, also then. */
static inline int linear_init(Linear *m, int64_t outputs, int64_t inputs) {
    int64_t padded = panel_count(outputs) * PANEL_COLUMNS;
    *m = (Linear){.outputs = outputs, .inputs = inputs};
    m->panels = alloc_aligned(padded * inputs * 4);
    m->bias = alloc_aligned(padded * 4);
    if (!m->panels || !m->bias) return -1;
    memset(m->panels, 0, padded * inputs * 4);
    memset(m->bias, 0, padded * 4);
    return 0;
}

/* Frees everything that a layer owns, but not `m` itself, which becomes an absent layer. */
static inline void linear_free(Linear *m) {
    free(m->panels);
    free(m->bias);
    free(m->int8_panels);
    free(m->scales);
    free(m->offsets);
    *m = (Linear){0};
}

/* A tile of the product: x [rows, inputs], panel [inputs, PANEL_COLUMNS], bias [PANEL_COLUMNS] -> out, of whose rows at
 * most `columns` are stored. Rows are `stride` and out_stride apart. `rows` is a constant where this is inlined. */
ALWAYS_INLINE void float32_tile(const int rows, const float *x, int64_t stride, const float *panel, int64_t inputs,
                                const float *bias, float *out, int64_t out_stride, int64_t columns) {
    vec sums[TILE_ROWS][2];
    for (int r = 0; r < rows; r++) sums[r][0] = vec_load(bias), sums[r][1] = vec_load(bias + LANES);
    for (int64_t k = 0; k < inputs; k++) {
        vec a = vec_load(panel + k * PANEL_COLUMNS), b = vec_load(panel + k * PANEL_COLUMNS + LANES);
        for (int r = 0; r < rows; r++) {
            vec s = vec_splat(x[r * stride + k]);
            sums[r][0] += s * a;
            sums[r][1] += s * b;
        }
    }
    for (int r = 0; r < rows; r++) {
        vec_store_partial(out + r * out_stride, sums[r][0], columns);
        if (columns > LANES) vec_store_partial(out + r * out_stride + LANES, sums[r][1], columns - LANES);
    }
}

/* x [n, inputs], whose rows are `stride` apart -> out [n, the outputs of panels first to end], out_stride apart */
static inline void linear_forward_float32(const Linear *m, const float *x, int64_t stride, int64_t first, int64_t end,
                                          int64_t n, float *out, int64_t out_stride) {
    for (int64_t p = first; p < end; p++) {
        const float *panel = m->panels + p * m->inputs * PANEL_COLUMNS, *bias = m->bias + p * PANEL_COLUMNS;
        int64_t columns = m->outputs - p * PANEL_COLUMNS;
        float *to = out + (p - first) * PANEL_COLUMNS;
        int64_t row = 0;
        for (; row + TILE_ROWS <= n; row += TILE_ROWS)
            float32_tile(TILE_ROWS, x + row * stride, stride, panel, m->inputs, bias, to + row * out_stride, out_stride,
                         columns);
        const float *rest = x + row * stride;
        float *last = to + row * out_stride;
        switch (n - row) {
#define REMAINDER(r) \
    case r: float32_tile(r, rest, stride, panel, m->inputs, bias, last, out_stride, columns); break;
            REMAINDER(1)
            REMAINDER(2)
            REMAINDER(3)
            REMAINDER(4)
            REMAINDER(5)
#if TILE_ROWS > 6
            REMAINDER(6)
            REMAINDER(7)
#endif
#undef REMAINDER
        }
    }
}
