/* Products with a matrix that is used again and again: packed once into panels of a few columns.
 *
 * Every sum runs over k in order, whatever the number of rows: a row's result does not depend on its company.
 */
#pragma once
#include "exponential.h"
#include <stdlib.h>
#if LANES == 16
#include <immintrin.h>
#endif
#if defined(__AVX512VNNI__) && LANES == 16
#define WHOLE_NUMBERS 1 /* products of int8, four times as many at once */
#else
#define WHOLE_NUMBERS 0
#endif

#define ALWAYS static inline __attribute__((always_inline))
#define COLUMNS (2 * LANES)
#if LANES == 16
#define ROWS 8
#else
#define ROWS 6
#endif

typedef struct {
    int64_t outputs, inputs;
    float *panels; /* [outputs / COLUMNS, inputs, COLUMNS], filled up with zeros */
    float *bias;   /* [outputs, filled up] */
    int8_t *low;   /* [outputs / COLUMNS, inputs / 4, COLUMNS, 4]: the same in int8, or NULL */
    float *scales; /* [outputs]: what its int8 must be multiplied by */
    int32_t *sums; /* [outputs]: 128 times the sum of its int8 */
} Linear;

static inline int64_t panels_of(int64_t outputs) { return (outputs + COLUMNS - 1) / COLUMNS; }

static inline void *aligned(int64_t size) {
    void *p = NULL;
    return posix_memalign(&p, 64, size > 0 ? (size_t)size : 64) ? NULL : p;
}

/* One row of a weight [outputs, inputs] into its place in the panels. */
static inline void put_output(Linear *m, int64_t output, const float *row) {
    float *panel = m->panels + output / COLUMNS * m->inputs * COLUMNS + output % COLUMNS;
    for (int64_t k = 0; k < m->inputs; k++) panel[k * COLUMNS] = row[k];
}

/* Room for a matrix of so many outputs, all zero. */
static inline int make_linear(Linear *m, int64_t outputs, int64_t inputs) {
    int64_t filled = panels_of(outputs) * COLUMNS;
    *m = (Linear){.outputs = outputs, .inputs = inputs};
    m->panels = aligned(filled * inputs * 4);
    m->bias = aligned(filled * 4);
    if (!m->panels || !m->bias) return -1;
    memset(m->panels, 0, filled * inputs * 4);
    memset(m->bias, 0, filled * 4);
    return 0;
}

static inline void free_linear(Linear *m) {
    free(m->panels);
    free(m->bias);
    free(m->low);
    free(m->scales);
    free(m->sums);
    *m = (Linear){0};
}

/* Whether any of them is above this. */
static inline int any_above(vec v, float least) {
#if defined(__AVX512F__) && LANES == 16
    return _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(least), _CMP_GT_OQ) != 0;
#else
    return top(v) > least;
#endif
}

/* rows x COLUMNS of the product; `rows` is a constant where this is inlined. */
ALWAYS void tile(const int rows, const float *x, int64_t stride, const float *panel, int64_t inputs, const float *bias,
                 float *out, int64_t out_stride, int64_t left) {
    vec sums[ROWS][2];
    for (int r = 0; r < rows; r++) sums[r][0] = load(bias), sums[r][1] = load(bias + LANES);
    for (int64_t k = 0; k < inputs; k++) {
        vec a = load(panel + k * COLUMNS), b = load(panel + k * COLUMNS + LANES);
        for (int r = 0; r < rows; r++) {
            vec s = splat(x[r * stride + k]);
            sums[r][0] += s * a;
            sums[r][1] += s * b;
        }
    }
    for (int r = 0; r < rows; r++) {
        store_part(out + r * out_stride, sums[r][0], left);
        if (left > LANES) store_part(out + r * out_stride + LANES, sums[r][1], left - LANES);
    }
}

/* out [n, some outputs] = x [n, inputs] W' + b, for the outputs of panels `first` to `end` */
static inline void linear(const Linear *m, const float *x, int64_t stride, int64_t first, int64_t end, int64_t n,
                          float *out, int64_t out_stride) {
    for (int64_t p = first; p < end; p++) {
        const float *panel = m->panels + p * m->inputs * COLUMNS, *bias = m->bias + p * COLUMNS;
        int64_t left = m->outputs - p * COLUMNS;
        float *to = out + (p - first) * COLUMNS;
        int64_t at = 0;
        for (; at + ROWS <= n; at += ROWS)
            tile(ROWS, x + at * stride, stride, panel, m->inputs, bias, to + at * out_stride, out_stride, left);
        const float *rest = x + at * stride;
        float *last = to + at * out_stride;
        switch (n - at) {
#define TAIL(r) \
    case r: tile(r, rest, stride, panel, m->inputs, bias, last, out_stride, left); break;
            TAIL(1)
            TAIL(2)
            TAIL(3)
            TAIL(4)
            TAIL(5)
#if ROWS > 6
            TAIL(6)
            TAIL(7)
#endif
#undef TAIL
        }
    }
}

/* ---- the same in int8 ---- */

static inline int64_t fours(int64_t n) { return (n + 3) / 4; }

/* Room for the int8 form. The lanes that fill up the last panel are never looked at. */
static inline int make_low_room(Linear *m) {
    int64_t filled = panels_of(m->outputs) * COLUMNS;
    m->low = aligned(filled * fours(m->inputs) * 4);
    m->scales = aligned(filled * 4);
    m->sums = aligned(filled * 4);
    return m->low && m->scales && m->sums ? 0 : -1;
}

/* Where an output's first four begin; the next four lie COLUMNS fours further. */
static inline int8_t *low_place(const Linear *m, int64_t output) {
    return m->low + (output / COLUMNS * fours(m->inputs) * COLUMNS + output % COLUMNS) * 4;
}

/* The int8 form of a weight [outputs, inputs]: each output by its own scale. */
static inline int make_low(Linear *m, const float *weight) {
    int64_t filled = panels_of(m->outputs) * COLUMNS, quads = fours(m->inputs);
    if (make_low_room(m)) return -1;
    memset(m->low, 0, filled * quads * 4);
    for (int64_t o = 0; o < m->outputs; o++) {
        const float *row = weight + o * m->inputs;
        float most = 0;
        for (int64_t k = 0; k < m->inputs; k++) most = fabsf(row[k]) > most ? fabsf(row[k]) : most;
        float scale = most > 0 ? most / 127 : 1;
        int8_t *panel = low_place(m, o);
        int64_t whole_sum = 0;
        for (int64_t k = 0; k < m->inputs; k++) {
            int8_t q = (int8_t)lrintf(row[k] / scale);
            panel[k / 4 * COLUMNS * 4 + k % 4] = q;
            whole_sum += q;
        }
        m->scales[o] = scale;
        m->sums[o] = (int32_t)(128 * whole_sum);
    }
    return 0;
}

#if WHOLE_NUMBERS
/* Rows as bytes: x = scale (byte - 128). */
static inline void as_bytes(const float *x, int64_t stride, int64_t n, int64_t inputs, uint8_t *out, float *scales) {
    int64_t wide = fours(inputs) * 4;
    for (int64_t row = 0; row < n; row++, x += stride, out += wide) {
        vec most = splat(0);
        for (int64_t j = 0; j < inputs; j += LANES) {
            vec v = -negative_magnitude(load_part(x + j, inputs - j, 0));
            most = higher(v, most);
        }
        float highest = top(most), scale = highest > 0 ? highest / 127 : 1;
        scales[row] = scale;
        memset(out + inputs, 128, wide - inputs);
        for (int64_t j = 0; j < inputs; j += LANES) {
            __m512i q = _mm512_cvtps_epi32((__m512)(load_part(x + j, inputs - j, 0) * (1 / scale)));
            q = _mm512_add_epi32(q, _mm512_set1_epi32(128));
            int64_t left = inputs - j;
            _mm512_mask_cvtusepi32_storeu_epi8(out + j, left >= 16 ? 0xffff : (__mmask16)((1 << left) - 1), q);
        }
    }
}

ALWAYS void low_tile(const int rows, const uint8_t *x, int64_t wide, const float *x_scales, const int8_t *panel,
                     const Linear *m, int64_t at, float *out, int64_t out_stride) {
    __m512i sums[ROWS][2];
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm512_setzero_si512();
    for (int64_t k = 0; k < wide / 4; k++) {
        __m512i a = _mm512_load_si512(panel + k * COLUMNS * 4), b = _mm512_load_si512(panel + k * COLUMNS * 4 + 64);
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x + r * wide + k * 4, 4);
            __m512i s = _mm512_set1_epi32(four);
            sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], s, a);
            sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], s, b);
        }
    }
    int64_t left = m->outputs - at;
    for (int half_ = 0; half_ < 2 && left > half_ * LANES; half_++) {
        int64_t from = at + half_ * LANES;
        vec scale = load(m->scales + from), bias = load(m->bias + from);
        __m512i all = _mm512_load_si512(m->sums + from);
        for (int r = 0; r < rows; r++) {
            vec y = (vec)_mm512_cvtepi32_ps(_mm512_sub_epi32(sums[r][half_], all)) * (scale * x_scales[r]) + bias;
            store_part(out + r * out_stride + half_ * LANES, y, left - half_ * LANES);
        }
    }
}

/* linear(), from bytes as `as_bytes` makes them */
static inline void low_linear(const Linear *m, const uint8_t *x, const float *x_scales, int64_t first, int64_t end,
                              int64_t n, float *out, int64_t out_stride) {
    int64_t wide = fours(m->inputs) * 4;
    for (int64_t p = first; p < end; p++) {
        const int8_t *panel = m->low + p * wide * COLUMNS;
        float *to = out + (p - first) * COLUMNS;
        int64_t at = 0;
#define LOW(r) low_tile(r, x + at * wide, wide, x_scales + at, panel, m, p *COLUMNS, to + at * out_stride, out_stride)
        for (; at + ROWS <= n; at += ROWS) LOW(ROWS);
        switch (n - at) {
            case 1: LOW(1); break;
            case 2: LOW(2); break;
            case 3: LOW(3); break;
            case 4: LOW(4); break;
            case 5: LOW(5); break;
            case 6: LOW(6); break;
            case 7: LOW(7); break;
        }
#undef LOW
    }
}
#endif
