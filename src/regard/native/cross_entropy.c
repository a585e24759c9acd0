/* Cross-entropy of rows of logits and its gradient in one pass: the logits of a few rows are still in the cache, become
 * their own gradient in place, and are never stored for a backward pass.
 *
 * Logits are float32 or bfloat16 (the result of a bfloat16 product, and the operand of the next); a bias is added as
 * they are read. Sums and exponentials are float32.
 */
#include "simd_math.h"
#include "regard.h"

typedef uint32_t uvec __attribute__((vector_size(LANES * 4)));
typedef uint16_t svec __attribute__((vector_size(LANES * 2)));
typedef uint16_t unaligned_svec __attribute__((vector_size(LANES * 2), aligned(2), may_alias));

typedef struct {
    void *data; /* the logits of one row */
    const float *bias;
    int64_t size;
    int bfloat16;
} Logits;

/* One row of logits [rows, size], with bias [size] or NULL. It points into both: nothing is copied. */
ALWAYS_INLINE Logits logits_row(void *logits, const float *bias, int64_t row, int64_t size, int bfloat16) {
    return (Logits){(char *)logits + row * size * (bfloat16 ? 2 : 4), bias, size, bfloat16};
}

/* Elements j to j + LANES, with the bias added; `fill` beyond the row's end. */
ALWAYS_INLINE vec load_logits(Logits x, int64_t j, float fill) {
    int64_t n = x.size - j;
    vec v;
    if (x.bfloat16) {
        const uint16_t *p = (const uint16_t *)x.data + j;
        svec s = {0};
        if (n >= LANES)
            s = *(const unaligned_svec *)p;
        else
            memcpy(&s, p, n * 2);
        v = (vec)(__builtin_convertvector(s, uvec) << 16);
        if (n < LANES) {
            vec all = vec_splat(fill);
            memcpy(&all, &v, n * sizeof(float));
            v = all;
        }
    } else {
        v = vec_load_partial((const float *)x.data + j, n, fill);
    }
    return x.bias ? v + vec_load_partial(x.bias + j, n, 0) : v;
}

/* Stores elements j to j + LANES, bfloat16 rounded to the nearest; nothing is written beyond the row's end. */
ALWAYS_INLINE void store_logits(Logits x, int64_t j, vec v) {
    int64_t n = x.size - j;
    if (x.bfloat16) {
        uvec u = (uvec)v;
        svec s = __builtin_convertvector((u + 0x7fff + ((u >> 16) & 1)) >> 16, svec); /* to the nearest, ties to even */
        uint16_t *p = (uint16_t *)x.data + j;
        if (n >= LANES)
            *(unaligned_svec *)p = s;
        else
            memcpy(p, &s, n * 2);
    } else {
        vec_store_partial((float *)x.data + j, v, n);
    }
}

/* The logit of one element. */
ALWAYS_INLINE float logit_at(Logits x, int64_t j) {
    float bias = x.bias ? x.bias[j] : 0;
    if (!x.bfloat16) return ((const float *)x.data)[j] + bias;
    uint32_t u = (uint32_t)((const uint16_t *)x.data)[j] << 16;
    float v;
    memcpy(&v, &u, 4);
    return v + bias;
}

/* Stores one element, rounded as by store_logits. */
ALWAYS_INLINE void set_logit(Logits x, int64_t j, float value) {
    if (!x.bfloat16) {
        ((float *)x.data)[j] = value;
        return;
    }
    uint32_t u;
    memcpy(&u, &value, 4);
    ((uint16_t *)x.data)[j] = (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

typedef struct {
    float log_sum_exp, mean; /* log of the sum of exponentials; mean logit */
} RowStatistics;

/* log sum exp and mean of a row; NaN where the row is not finite. */
ALWAYS_INLINE RowStatistics row_statistics(Logits x) {
    vec maxima = vec_splat(-INFINITY), totals = vec_splat(0), exp_sum = vec_splat(0);
    for (int64_t j = 0; j < x.size; j += LANES) {
        vec v = load_logits(x, j, -INFINITY);
        maxima = vec_max(v, maxima);
        totals += load_logits(x, j, 0);
    }
    float highest = vec_reduce_max(maxima), total = vec_reduce_add(totals);
    for (int64_t j = 0; j < x.size; j += LANES) exp_sum += vec_exp(load_logits(x, j, -INFINITY) - highest);
    RowStatistics row = {highest + logf(vec_reduce_add(exp_sum)), total / x.size};
    if (!(total - total == 0)) row.log_sum_exp = NAN;
    return row;
}

/* The losses of one row -> *loss and *smoothing_loss. If `gradient` is not 0, the logits become their gradient. */
ALWAYS_INLINE void cross_entropy(Logits x, int64_t target, float *loss, float *smoothing_loss, int gradient,
                                 float smoothing) {
    RowStatistics statistics = row_statistics(x);
    *loss = statistics.log_sum_exp - logit_at(x, target);
    *smoothing_loss = statistics.log_sum_exp - statistics.mean;
    if (!gradient) return;
    float uniform = smoothing / x.size;
    for (int64_t j = 0; j < x.size; j += LANES)
        store_logits(x, j, vec_exp(load_logits(x, j, 0) - statistics.log_sum_exp) - uniform);
    set_logit(x, target, expf(-*loss) - uniform - (1.0f - smoothing));
}

/* The losses of one row at a time. cross_entropy is inlined once for each type of logits. Shapes: see regard.h. */
void regard_cross_entropy_compute(void *logits, const float *bias, const int64_t *targets, float *loss,
                                  float *smoothing_loss, int64_t start, int64_t stop, int64_t size, int64_t bfloat16,
                                  int64_t gradient, float smoothing) {
    for (int64_t row = start; row < stop; row++) {
        if (bfloat16)
            cross_entropy(logits_row(logits, bias, row, size, 1), targets[row], loss + row, smoothing_loss + row,
                          gradient, smoothing);
        else
            cross_entropy(logits_row(logits, bias, row, size, 0), targets[row], loss + row, smoothing_loss + row,
                          gradient, smoothing);
    }
}

/* R-Drop (Liang et al. 2021): two passes x and y over the same row, each with its cross-entropy, and the mean of
 * KL(p|q) and KL(q|p) between them, weighed. With l = log p - log q, the divergence is (E_p l - E_q l) / 2 and
 *     d / dx_j = (p_j (l_j - E_p l) + p_j - q_j) / 2.
 * x and y become their gradients; *loss, *smoothing_loss and *divergence are written. */
ALWAYS_INLINE void rdrop_row(Logits x, Logits y, int64_t target, float *loss, float *smoothing_loss, float *divergence,
                             float smoothing, float weight) {
    RowStatistics first = row_statistics(x), second = row_statistics(y);
    float shift = second.log_sum_exp - first.log_sum_exp;
    float p_t = expf(logit_at(x, target) - first.log_sum_exp), q_t = expf(logit_at(y, target) - second.log_sum_exp);
    float l_t = logit_at(x, target) - logit_at(y, target) + shift;
    *loss = first.log_sum_exp - logit_at(x, target) + second.log_sum_exp - logit_at(y, target);
    *smoothing_loss = first.log_sum_exp - first.mean + second.log_sum_exp - second.mean;
    vec kl_pq = vec_splat(0), kl_qp = vec_splat(0);
    for (int64_t j = 0; j < x.size; j += LANES) {
        vec l = load_logits(x, j, 0) - load_logits(y, j, 0) + shift;
        kl_pq += vec_exp(load_logits(x, j, -INFINITY) - first.log_sum_exp) * l;
        kl_qp -= vec_exp(load_logits(y, j, -INFINITY) - second.log_sum_exp) * l;
    }
    float kl_p = vec_reduce_add(kl_pq), kl_q = vec_reduce_add(kl_qp), uniform = smoothing / x.size,
          half_weight = 0.5f * weight;
    *divergence = 0.5f * (kl_p + kl_q);
    for (int64_t j = 0; j < x.size; j += LANES) {
        vec u = load_logits(x, j, 0), v = load_logits(y, j, 0), l = u - v + shift;
        vec p = vec_exp(u - first.log_sum_exp), q = vec_exp(v - second.log_sum_exp);
        store_logits(x, j, p - uniform + half_weight * (p * (l - kl_p) + (p - q)));
        store_logits(y, j, q - uniform + half_weight * (q - p - q * (l + kl_q)));
    }
    set_logit(x, target, p_t - uniform - (1.0f - smoothing) + half_weight * (p_t * (l_t - kl_p) + (p_t - q_t)));
    set_logit(y, target, q_t - uniform - (1.0f - smoothing) + half_weight * (q_t - p_t - q_t * (l_t + kl_q)));
}

/* The losses of one pair of rows at a time. rdrop_row is inlined once for each type of logits. Shapes: see regard.h. */
void regard_rdrop_compute(void *a, void *b, const float *bias, const int64_t *targets, float *loss,
                          float *smoothing_loss, float *divergence, int64_t start, int64_t stop, int64_t size,
                          int64_t bfloat16, float smoothing, float weight) {
    for (int64_t row = start; row < stop; row++) {
        if (bfloat16)
            rdrop_row(logits_row(a, bias, row, size, 1), logits_row(b, bias, row, size, 1), targets[row], loss + row,
                      smoothing_loss + row, divergence + row, smoothing, weight);
        else
            rdrop_row(logits_row(a, bias, row, size, 0), logits_row(b, bias, row, size, 0), targets[row], loss + row,
                      smoothing_loss + row, divergence + row, smoothing, weight);
    }
}
