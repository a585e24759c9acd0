/* Linear layers quantized to int8, and their products: weights with one scale per output, inputs with one per row.
 *
 * linear_forward computes in int8 where a layer is quantized and the processor has the instructions, else in float32.
 */
#pragma once
#include "gemm.h"
#if LANES == 16
#include <immintrin.h>
#endif
#if defined(__AVX512VNNI__) && LANES == 16
#define INT8_SUPPORTED 1 /* products of int8, four times as many at once */
#else
#define INT8_SUPPORTED 0
#endif

/* Inputs are multiplied four at a time: how many groups of four there are. */
static inline int64_t quad_count(int64_t n) { return (n + 3) / 4; }

/* Memory for the int8 weight; -1 if there is none. To be freed by linear_free, also then. The results of the columns
 * that pad the last panel are never stored. */
static inline int linear_alloc_int8(Linear *m) {
    int64_t padded = panel_count(m->outputs) * PANEL_COLUMNS;
    m->int8_panels = alloc_aligned(padded * quad_count(m->inputs) * 4);
    m->scales = alloc_aligned(padded * 4);
    m->offsets = alloc_aligned(padded * 4);
    return m->int8_panels && m->scales && m->offsets ? 0 : -1;
}

/* The first quad of an output's int8 weight, inside the layer's panels; the next is PANEL_COLUMNS quads further. */
static inline int8_t *linear_int8_row(const Linear *m, int64_t output) {
    return m->int8_panels +
           (output / PANEL_COLUMNS * quad_count(m->inputs) * PANEL_COLUMNS + output % PANEL_COLUMNS) * 4;
}

/* Quantizes a weight [outputs, inputs], each output with its own scale; -1 if there is no memory. To be freed by
 * linear_free, also then. */
static inline int linear_quantize(Linear *m, const float *weight) {
    int64_t padded = panel_count(m->outputs) * PANEL_COLUMNS, quads = quad_count(m->inputs);
    if (linear_alloc_int8(m)) return -1;
    memset(m->int8_panels, 0, padded * quads * 4);
    for (int64_t o = 0; o < m->outputs; o++) {
        const float *row = weight + o * m->inputs;
        float maximum = 0;
        for (int64_t k = 0; k < m->inputs; k++) maximum = fabsf(row[k]) > maximum ? fabsf(row[k]) : maximum;
        float scale = maximum > 0 ? maximum / 127 : 1;
        int8_t *panel = linear_int8_row(m, o);
        int64_t sum = 0;
        for (int64_t k = 0; k < m->inputs; k++) {
            int8_t q = (int8_t)lrintf(row[k] / scale);
            panel[k / 4 * PANEL_COLUMNS * 4 + k % 4] = q;
            sum += q;
        }
        m->scales[o] = scale;
        m->offsets[o] = (int32_t)(128 * sum);
    }
    return 0;
}

#if INT8_SUPPORTED
/* Quantizes rows: x = scale (byte - 128), with one scale per row. x [n, inputs], whose rows are `stride` apart -> out
 * [n, 4 quad_count(inputs)], scales [n]. */
static inline void quantize_rows(const float *x, int64_t stride, int64_t n, int64_t inputs, uint8_t *out,
                                 float *scales) {
    int64_t row_bytes = quad_count(inputs) * 4;
    for (int64_t row = 0; row < n; row++, x += stride, out += row_bytes) {
        vec maxima = vec_splat(0);
        for (int64_t j = 0; j < inputs; j += LANES) {
            vec v = -vec_negative_abs(vec_load_partial(x + j, inputs - j, 0));
            maxima = vec_max(v, maxima);
        }
        float maximum = vec_reduce_max(maxima), scale = maximum > 0 ? maximum / 127 : 1;
        scales[row] = scale;
        memset(out + inputs, 128, row_bytes - inputs);
        for (int64_t j = 0; j < inputs; j += LANES) {
            __m512i q = _mm512_cvtps_epi32((__m512)(vec_load_partial(x + j, inputs - j, 0) * (1 / scale)));
            q = _mm512_add_epi32(q, _mm512_set1_epi32(128));
            int64_t left = inputs - j;
            _mm512_mask_cvtusepi32_storeu_epi8(out + j, left >= 16 ? 0xffff : (__mmask16)((1 << left) - 1), q);
        }
    }
}

/* A tile of the product, for the outputs from `output` on: x [rows, row_bytes], x_scales [rows], panel [row_bytes / 4,
 * PANEL_COLUMNS, 4] -> out [rows, PANEL_COLUMNS or the outputs left], whose rows are out_stride apart. */
ALWAYS_INLINE void int8_tile(const int rows, const uint8_t *x, int64_t row_bytes, const float *x_scales,
                             const int8_t *panel, const Linear *m, int64_t output, float *out, int64_t out_stride) {
    __m512i sums[TILE_ROWS][2];
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm512_setzero_si512();
    for (int64_t k = 0; k < row_bytes / 4; k++) {
        __m512i a = _mm512_load_si512(panel + k * PANEL_COLUMNS * 4);
        __m512i b = _mm512_load_si512(panel + k * PANEL_COLUMNS * 4 + 64);
        for (int r = 0; r < rows; r++) {
            int32_t quad;
            memcpy(&quad, x + r * row_bytes + k * 4, 4);
            __m512i s = _mm512_set1_epi32(quad);
            sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], s, a);
            sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], s, b);
        }
    }
    int64_t columns = m->outputs - output;
    for (int i = 0; i < 2 && columns > i * LANES; i++) {
        int64_t from = output + i * LANES;
        vec scale = vec_load(m->scales + from), bias = vec_load(m->bias + from);
        __m512i offsets = _mm512_load_si512(m->offsets + from);
        for (int r = 0; r < rows; r++) {
            vec y = (vec)_mm512_cvtepi32_ps(_mm512_sub_epi32(sums[r][i], offsets)) * (scale * x_scales[r]) + bias;
            vec_store_partial(out + r * out_stride + i * LANES, y, columns - i * LANES);
        }
    }
}

/* linear_forward_float32 from rows that quantize_rows has quantized: x [n, 4 quad_count(inputs)], x_scales [n] -> out
 * [n, the outputs of panels first to end], out_stride apart */
static inline void linear_forward_int8(const Linear *m, const uint8_t *x, const float *x_scales, int64_t first,
                                       int64_t end, int64_t n, float *out, int64_t out_stride) {
    int64_t row_bytes = quad_count(m->inputs) * 4;
    for (int64_t p = first; p < end; p++) {
        const int8_t *panel = m->int8_panels + p * row_bytes * PANEL_COLUMNS;
        float *to = out + (p - first) * PANEL_COLUMNS;
        int64_t row = 0;
#define TILE(r)                                                                                                      \
    int8_tile(r, x + row * row_bytes, row_bytes, x_scales + row, panel, m, p * PANEL_COLUMNS, to + row * out_stride, \
              out_stride)
        for (; row + TILE_ROWS <= n; row += TILE_ROWS) TILE(TILE_ROWS);
        switch (n - row) {
            case 1: TILE(1); break;
            case 2: TILE(2); break;
            case 3: TILE(3); break;
            case 4: TILE(4); break;
            case 5: TILE(5); break;
            case 6: TILE(6); break;
            case 7: TILE(7); break;
        }
#undef TILE
    }
}
#endif

/* ---- in int8 where the layer has it, else in float32 ---- */

/* Memory for quantized rows. */
typedef struct {
    uint8_t *bytes;
    float *scales;
} QuantizedRows;

/* Memory for this many rows of at most max_inputs inputs; -1 if there is none. To be freed by quantized_rows_free, also
 * then. */
static inline int quantized_rows_init(QuantizedRows *q, int64_t rows, int64_t max_inputs) {
    q->bytes = alloc_aligned(rows * (quad_count(max_inputs) * 4 + 64));
    q->scales = alloc_aligned(rows * 4);
    return q->bytes && q->scales ? 0 : -1;
}

/* Frees the memory, but not `q` itself. */
static inline void quantized_rows_free(QuantizedRows *q) {
    free(q->bytes);
    free(q->scales);
}

/* x [n, inputs], whose rows are `stride` apart -> out [n, outputs]. `q` must have room for n rows. */
static inline void linear_forward(const Linear *m, const float *x, int64_t stride, int64_t n, float *out,
                                  const QuantizedRows *q) {
#if INT8_SUPPORTED
    if (m->int8_panels) {
        quantize_rows(x, stride, n, m->inputs, q->bytes, q->scales);
        linear_forward_int8(m, q->bytes, q->scales, 0, panel_count(m->outputs), n, out, m->outputs);
        return;
    }
#endif
    (void)q;
    linear_forward_float32(m, x, stride, 0, panel_count(m->outputs), n, out, m->outputs);
}
