/* Scores of additive attention: every element needs tanh(a + b), a from the query and b from the key. With the
 * exponentials computed once per query and once per key,
 *
 *     tanh(a + b) = 1 - 2 / (1 + E),   E = e^2a * e^2b                                  ("exp" form)
 *
 * is a multiply, an add and a divide. Its absolute error is about one rounding of 1, which is large compared to tanh(x)
 * for tiny x. When all |a|, |b| are small, the caller uses the second form, which is accurate relative to tanh itself:
 *
 *     tanh(a + b) = N / (N + 2),   N = e^2(a+b) - 1 = ua + ub + ua * ub,  u = e^2x - 1   ("expm1" form)
 *
 * Sums may be reordered here, unlike in files that include simd_math.h.
 */
#include "simd.h"
#include "regard.h"

/* ---- scores ------------------------------------------------------------------------------------------------ */

#define BLOCK_Q 4
#define BLOCK_K 4

/* scores[x][y] = sum_d v_d tanh(a_xd + b_yd) for a block of nq x nk pairs: q [nq, width], k [nk, width], v [width] ->
 * scores [nq, nk], whose rows are `row` apart. */
ALWAYS_INLINE void score_block(const float *q, const float *k, const float *v, float *scores, int64_t row,
                               int64_t width, int nq, int nk, int expm1_form) {
    vec acc[BLOCK_Q][BLOCK_K];
    for (int x = 0; x < nq; x++)
        for (int y = 0; y < nk; y++) acc[x][y] = vec_splat(0);
    for (int64_t d = 0; d < width; d += LANES) {
        vec weight = vec_load(v + d), keys[BLOCK_K];
        for (int y = 0; y < nk; y++) keys[y] = vec_load(k + y * width + d);
        for (int x = 0; x < nq; x++) {
            vec query = vec_load(q + x * width + d);
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
        for (int y = 0; y < nk; y++)
            scores[x * row + y] = expm1_form ? vec_reduce_add(acc[x][y]) : 2.0f * vec_reduce_add(acc[x][y]);
}

/* Scores of queries of one slice, block by block: q [tq, width], k [tk, width], v [width] -> scores [tq, tk]. */
ALWAYS_INLINE void score_rows(const float *q, const float *k, const float *v, float *scores, int64_t tq, int64_t tk,
                              int64_t width, int expm1_form) {
    int64_t blocked_keys = tk - tk % BLOCK_K, i = 0;
    for (; i + BLOCK_Q <= tq; i += BLOCK_Q) {
        for (int64_t j = 0; j < blocked_keys; j += BLOCK_K)
            score_block(q + i * width, k + j * width, v, scores + i * tk + j, tk, width, BLOCK_Q, BLOCK_K, expm1_form);
        for (int64_t j = blocked_keys; j < tk; j++)
            score_block(q + i * width, k + j * width, v, scores + i * tk + j, tk, width, BLOCK_Q, 1, expm1_form);
    }
    for (; i < tq; i++) {
        for (int64_t j = 0; j < blocked_keys; j += BLOCK_K)
            score_block(q + i * width, k + j * width, v, scores + i * tk + j, tk, width, 1, BLOCK_K, expm1_form);
        for (int64_t j = blocked_keys; j < tk; j++)
            score_block(q + i * width, k + j * width, v, scores + i * tk + j, tk, width, 1, 1, expm1_form);
    }
}

/* Scores of queries start to stop, a slice at a time. score_rows is inlined once per form. Shapes: see regard.h. */
void regard_additive_scores_forward(const float *q, const float *k, const float *v, float *scores, int64_t start,
                                    int64_t stop, int64_t heads, int64_t tq, int64_t tk, int64_t width,
                                    int64_t expm1_form) {
    while (start < stop) {
        int64_t n = start / tq, i = start % tq, count = tq - i < stop - start ? tq - i : stop - start;
        const float *q_n = q + start * width, *k_n = k + n * tk * width, *v_n = v + (n % heads) * width;
        if (expm1_form)
            score_rows(q_n, k_n, v_n, scores + start * tk, count, tk, width, 1);
        else
            score_rows(q_n, k_n, v_n, scores + start * tk, count, tk, width, 0);
        start += count;
    }
}

/* ---- gradients ---------------------------------------------------------------------------------------------
 * With r = 1 / (1 + E): tanh' = 1 - tanh^2 = 4 r (1 - r). Each lane is one d, so nothing is summed across lanes:
 *     dq_id = 4 w_d sum_j g_ij r (1 - r),   dk_jd likewise over i,   dw_d = sum_ij g_ij tanh
 * Sums run over blocks first and then over the blocks' sums: this is faster, and keeps rounding errors small. */
#define GRADIENT_ROWS (LANES == 16 ? 8 : 4)
#define KEYS_PER_SUM 16

/* Gradients of nq <= 8 queries in LANES columns: q, da [nq, LANES] and k, db [tk, LANES], whose rows are `width` apart;
 * g [nq, tk]; weight is 4 v. Writes da, and adds to db, which is still to be multiplied by the weight, and to *dv. */
ALWAYS_INLINE void gradient_rows(const float *q, const float *k, const float *g, float *da, float *db, vec *dv,
                                 vec weight, int nq, int64_t tk, int64_t width, int expm1_form) {
    vec query[8], total[8], total_v = vec_splat(0);
    for (int x = 0; x < nq; x++) {
        query[x] = vec_load(q + x * width);
        total[x] = vec_splat(0);
    }
    for (int64_t start = 0; start < tk; start += KEYS_PER_SUM) {
        int64_t stop = start + KEYS_PER_SUM < tk ? start + KEYS_PER_SUM : tk;
        vec acc[8], acc_v = vec_splat(0);
        for (int x = 0; x < nq; x++) acc[x] = vec_splat(0);
        for (int64_t j = start; j < stop; j++) {
            vec key = vec_load(k + j * width), acc_k = vec_splat(0);
            for (int x = 0; x < nq; x++) {
                vec grad = vec_splat(g[x * tk + j]), r;
                if (expm1_form) {
                    vec n = query[x] + key + query[x] * key;
                    r = 1.0f / (n + 2.0f);
                    acc_v += grad * n * r;
                } else {
                    r = 1.0f / (query[x] * key + 1.0f);
                    acc_v += grad * (1.0f - 2.0f * r);
                }
                vec slope = grad * (r - r * r);
                acc[x] += slope;
                acc_k += slope;
            }
            vec_store(db + j * width, vec_load(db + j * width) + acc_k);
        }
        for (int x = 0; x < nq; x++) total[x] += acc[x];
        total_v += acc_v;
    }
    for (int x = 0; x < nq; x++) vec_store(da + x * width, weight * total[x]);
    *dv += total_v;
}

/* Gradients of one slice in LANES columns: q, da [tq, LANES] and k, db [tk, LANES], whose rows are `width` apart;
 * g [tq, tk]; v, dv [LANES]. Writes da and dv; db must be zero beforehand. */
ALWAYS_INLINE void gradient_columns(const float *q, const float *k, const float *v, const float *g, float *da,
                                    float *db, float *dv, int64_t tq, int64_t tk, int64_t width, int expm1_form) {
    vec weight = 4.0f * vec_load(v), acc_v = vec_splat(0);
    int64_t i = 0;
    for (; i + GRADIENT_ROWS <= tq; i += GRADIENT_ROWS)
        gradient_rows(q + i * width, k, g + i * tk, da + i * width, db, &acc_v, weight, GRADIENT_ROWS, tk, width,
                      expm1_form);
    for (; i < tq; i++)
        gradient_rows(q + i * width, k, g + i * tk, da + i * width, db, &acc_v, weight, 1, tk, width, expm1_form);
    for (int64_t j = 0; j < tk; j++) vec_store(db + j * width, weight * vec_load(db + j * width));
    vec_store(dv, acc_v);
}

/* Gradients in LANES columns of one slice at a time: threads never write to the same element. Shapes: see regard.h. */
void regard_additive_scores_backward(const float *q, const float *k, const float *v, const float *g, float *da,
                                     float *db, float *dv, int64_t start, int64_t stop, int64_t heads, int64_t tq,
                                     int64_t tk, int64_t width, int64_t expm1_form) {
    int64_t columns = width / LANES;
    for (int64_t column = start; column < stop; column++) {
        int64_t n = column / columns, d = column % columns * LANES;
        const float *q_n = q + n * tq * width + d, *k_n = k + n * tk * width + d, *v_n = v + (n % heads) * width + d;
        const float *g_n = g + n * tq * tk;
        float *da_n = da + n * tq * width + d, *db_n = db + n * tk * width + d, *dv_n = dv + n * width + d;
        if (expm1_form)
            gradient_columns(q_n, k_n, v_n, g_n, da_n, db_n, dv_n, tq, tk, width, 1);
        else
            gradient_columns(q_n, k_n, v_n, g_n, da_n, db_n, dv_n, tq, tk, width, 0);
    }
}
