/* Additive attention: every element needs tanh(a + b), a from the query and b from the key. With the exponentials
 * taken once per query and once per key,
 *
 *     tanh(a + b) = 1 - 2 / (1 + E),   E = e^2a * e^2b                                  ("exp" form)
 *
 * is a multiply, an add and a divide. Its absolute error is about one rounding of 1, which is large beside tanh(x)
 * for tiny x; when all |a|, |b| are small the caller asks for the second form, accurate relative to tanh itself:
 *
 *     tanh(a + b) = N / (N + 2),   N = e^2(a+b) - 1 = ua + ub + ua * ub,  u = e^2x - 1   ("expm1" form)
 *
 * Widths are multiples of LANES (the caller pads with zeros).
 */
#include "vectors.h"

int regard_lanes(void) { return LANES; }

/* ---- additive: scores -------------------------------------------------------------------------------------- */

#define BLOCK_Q 4
#define BLOCK_K 4

/* scores[x][y] = sum_d w_d tanh(a_xd + b_yd) for a block of nq x nk pairs. */
static inline __attribute__((always_inline)) void block(const float *q, const float *k, const float *w, float *scores,
                                                        int64_t row, int64_t width, int nq, int nk, int expm1_form) {
    vec acc[BLOCK_Q][BLOCK_K];
    for (int x = 0; x < nq; x++)
        for (int y = 0; y < nk; y++) acc[x][y] = splat(0);
    for (int64_t d = 0; d < width; d += LANES) {
        vec weight = load(w + d), keys[BLOCK_K];
        for (int y = 0; y < nk; y++) keys[y] = load(k + y * width + d);
        for (int x = 0; x < nq; x++) {
            vec query = load(q + x * width + d);
            for (int y = 0; y < nk; y++) {
                if (expm1_form) {
                    vec n = query + keys[y] + query * keys[y];
                    acc[x][y] += weight * n / (n + 2.0f);
                } else {
                    acc[x][y] += weight * (0.5f - 1.0f / (query * keys[y] + 1.0f));
                }
            }
        }
    }
    for (int x = 0; x < nq; x++)
        for (int y = 0; y < nk; y++) scores[x * row + y] = expm1_form ? sum(acc[x][y]) : 2.0f * sum(acc[x][y]);
}

static inline __attribute__((always_inline)) void rows(const float *q, const float *k, const float *w, float *scores,
                                                       int64_t tq, int64_t tk, int64_t width, int expm1_form) {
    int64_t whole_k = tk - tk % BLOCK_K, i = 0;
    for (; i + BLOCK_Q <= tq; i += BLOCK_Q) {
        for (int64_t j = 0; j < whole_k; j += BLOCK_K)
            block(q + i * width, k + j * width, w, scores + i * tk + j, tk, width, BLOCK_Q, BLOCK_K, expm1_form);
        for (int64_t j = whole_k; j < tk; j++)
            block(q + i * width, k + j * width, w, scores + i * tk + j, tk, width, BLOCK_Q, 1, expm1_form);
    }
    for (; i < tq; i++) {
        for (int64_t j = 0; j < whole_k; j += BLOCK_K)
            block(q + i * width, k + j * width, w, scores + i * tk + j, tk, width, 1, BLOCK_K, expm1_form);
        for (int64_t j = whole_k; j < tk; j++)
            block(q + i * width, k + j * width, w, scores + i * tk + j, tk, width, 1, 1, expm1_form);
    }
}

/* q [n, tq, width], k [n, tk, width], w [heads, width] (slice n belongs to head n % heads) -> scores [n, tq, tk].
 * `from` and `to` count query rows over all slices. */
void regard_additive(const float *q, const float *k, const float *w, float *scores, int64_t from, int64_t to,
                     int64_t heads, int64_t tq, int64_t tk, int64_t width, int64_t expm1_form) {
    while (from < to) {
        int64_t n = from / tq, i = from % tq, count = tq - i < to - from ? tq - i : to - from;
        const float *q_n = q + from * width, *k_n = k + n * tk * width, *w_n = w + (n % heads) * width;
        if (expm1_form)
            rows(q_n, k_n, w_n, scores + from * tk, count, tk, width, 1);
        else
            rows(q_n, k_n, w_n, scores + from * tk, count, tk, width, 0);
        from += count;
    }
}

/* ---- additive: gradients ------------------------------------------------------------------------------------
 * With r = 1 / (1 + E): tanh' = 1 - tanh^2 = 4 r (1 - r). Each lane is one d, so nothing is summed across lanes:
 *     dq_id = 4 w_d sum_j g_ij r (1 - r),   dk_jd likewise over i,   dw_d = sum_ij g_ij tanh
 * Sums run over blocks first and over the blocks' sums then: faster, and it keeps their rounding small. */
#define ROWS (LANES == 16 ? 8 : 4)
#define RUN 16

static inline __attribute__((always_inline)) void gradient_rows(const float *q, const float *k, const float *g,
                                                                float *dq, float *dk, vec *dw, vec weight, int nq,
                                                                int64_t tk, int64_t width, int expm1_form) {
    vec query[8], total[8], total_w = splat(0);
    for (int x = 0; x < nq; x++) {
        query[x] = load(q + x * width);
        total[x] = splat(0);
    }
    for (int64_t start = 0; start < tk; start += RUN) {
        int64_t stop = start + RUN < tk ? start + RUN : tk;
        vec acc[8], acc_w = splat(0);
        for (int x = 0; x < nq; x++) acc[x] = splat(0);
        for (int64_t j = start; j < stop; j++) {
            vec key = load(k + j * width), acc_k = splat(0);
            for (int x = 0; x < nq; x++) {
                vec grad = splat(g[x * tk + j]), r;
                if (expm1_form) {
                    vec n = query[x] + key + query[x] * key;
                    r = 1.0f / (n + 2.0f);
                    acc_w += grad * n * r;
                } else {
                    r = 1.0f / (query[x] * key + 1.0f);
                    acc_w += grad * (1.0f - 2.0f * r);
                }
                vec slope = grad * (r - r * r);
                acc[x] += slope;
                acc_k += slope;
            }
            store(dk + j * width, load(dk + j * width) + acc_k);
        }
        for (int x = 0; x < nq; x++) total[x] += acc[x];
        total_w += acc_w;
    }
    for (int x = 0; x < nq; x++) store(dq + x * width, weight * total[x]);
    *dw += total_w;
}

static inline __attribute__((always_inline)) void gradient_columns(const float *q, const float *k, const float *w,
                                                                   const float *g, float *dq, float *dk, float *dw,
                                                                   int64_t tq, int64_t tk, int64_t width,
                                                                   int expm1_form) {
    vec weight = 4.0f * load(w), acc_w = splat(0);
    int64_t i = 0;
    for (; i + ROWS <= tq; i += ROWS)
        gradient_rows(q + i * width, k, g + i * tk, dq + i * width, dk, &acc_w, weight, ROWS, tk, width, expm1_form);
    for (; i < tq; i++)
        gradient_rows(q + i * width, k, g + i * tk, dq + i * width, dk, &acc_w, weight, 1, tk, width, expm1_form);
    for (int64_t j = 0; j < tk; j++) store(dk + j * width, weight * load(dk + j * width));
    store(dw, acc_w);
}

/* g [n, tq, tk] -> dq [n, tq, width], dk [n, tk, width] (zeroed by the caller), dw [n, width].
 * `from` and `to` count (slice, LANES columns) pairs. */
void regard_additive_backward(const float *q, const float *k, const float *w, const float *g, float *dq, float *dk,
                              float *dw, int64_t from, int64_t to, int64_t heads, int64_t tq, int64_t tk,
                              int64_t width, int64_t expm1_form) {
    int64_t columns = width / LANES;
    for (int64_t at = from; at < to; at++) {
        int64_t n = at / columns, d = at % columns * LANES;
        const float *q_n = q + n * tq * width + d, *k_n = k + n * tk * width + d, *w_n = w + (n % heads) * width + d;
        const float *g_n = g + n * tq * tk;
        float *dq_n = dq + n * tq * width + d, *dk_n = dk + n * tk * width + d, *dw_n = dw + n * width + d;
        if (expm1_form)
            gradient_columns(q_n, k_n, w_n, g_n, dq_n, dk_n, dw_n, tq, tk, width, 1);
        else
            gradient_columns(q_n, k_n, w_n, g_n, dq_n, dk_n, dw_n, tq, tk, width, 0);
    }
}
