/* Cross-entropy of rows of logits, and its gradient, in one visit: the logits of a few rows are still in the cache,
 * become their own gradient in place, and are never stored for a backward pass.
 *
 * Logits are float32 or bfloat16 (`low`: as the rounded product left them, and as the next wants its operand), a bias
 * is added as they are read. Sums and exponentials are float32.
 */
#include "exponential.h"

#define INLINE static inline __attribute__((always_inline))

typedef uint32_t bits __attribute__((vector_size(LANES * 4)));
typedef uint16_t shorts __attribute__((vector_size(LANES * 2)));
typedef uint16_t shorts_at __attribute__((vector_size(LANES * 2), aligned(2), may_alias));

typedef struct {
    void *at; /* the logits of one row */
    const float *bias;
    int64_t size;
    int low;
} Logits;

INLINE Logits row_of(void *logits, const float *bias, int64_t row, int64_t size, int low) {
    return (Logits){(char *)logits + row * size * (low ? 2 : 4), bias, size, low};
}

/* Element j and the LANES - 1 after it, bias added; `fill` beyond the row's end. */
INLINE vec read_at(Logits x, int64_t j, float fill) {
    int64_t n = x.size - j;
    vec v;
    if (x.low) {
        const uint16_t *p = (const uint16_t *)x.at + j;
        shorts s = {0};
        if (n >= LANES)
            s = *(const shorts_at *)p;
        else
            memcpy(&s, p, n * 2);
        v = (vec)(__builtin_convertvector(s, bits) << 16);
        if (n < LANES) {
            vec all = splat(fill);
            memcpy(&all, &v, n * sizeof(float));
            v = all;
        }
    } else {
        v = load_part((const float *)x.at + j, n, fill);
    }
    return x.bias ? v + load_part(x.bias + j, n, 0) : v;
}

INLINE void write_at(Logits x, int64_t j, vec v) {
    int64_t n = x.size - j;
    if (x.low) {
        bits u = (bits)v;
        shorts s = __builtin_convertvector((u + 0x7fff + ((u >> 16) & 1)) >> 16, shorts); /* to the nearest, ties to even */
        uint16_t *p = (uint16_t *)x.at + j;
        if (n >= LANES)
            *(shorts_at *)p = s;
        else
            memcpy(p, &s, n * 2);
    } else {
        store_part((float *)x.at + j, v, n);
    }
}

/* One element's logit. */
INLINE float one(Logits x, int64_t j) {
    float bias = x.bias ? x.bias[j] : 0;
    if (!x.low) return ((const float *)x.at)[j] + bias;
    uint32_t u = (uint32_t)((const uint16_t *)x.at)[j] << 16;
    float v;
    memcpy(&v, &u, 4);
    return v + bias;
}

INLINE void put_one(Logits x, int64_t j, float value) {
    if (!x.low) {
        ((float *)x.at)[j] = value;
        return;
    }
    uint32_t u;
    memcpy(&u, &value, 4);
    ((uint16_t *)x.at)[j] = (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

typedef struct {
    float log_total, mean; /* log of the sum of exponentials; mean logit */
} Row;

/* log sum exp and mean of a row; NaN where the row is not finite. */
INLINE Row summary(Logits x) {
    vec tops = splat(-INFINITY), plain = splat(0), mass = splat(0);
    for (int64_t j = 0; j < x.size; j += LANES) {
        vec v = read_at(x, j, -INFINITY);
        tops = higher(v, tops);
        plain += read_at(x, j, 0);
    }
    float highest = top(tops), total = sum(plain);
    for (int64_t j = 0; j < x.size; j += LANES) mass += exponential(read_at(x, j, -INFINITY) - highest);
    Row row = {highest + logf(sum(mass)), total / x.size};
    if (!(total - total == 0)) row.log_total = NAN;
    return row;
}

INLINE void cross_entropy(Logits x, int64_t target, float *loss, float *spread, int gradient, float smoothing) {
    Row about = summary(x);
    *loss = about.log_total - one(x, target);
    *spread = about.log_total - about.mean;
    if (!gradient) return;
    float even = smoothing / x.size;
    for (int64_t j = 0; j < x.size; j += LANES)
        write_at(x, j, exponential(read_at(x, j, 0) - about.log_total) - even);
    put_one(x, target, expf(-*loss) - even - (1.0f - smoothing));
}

/* logits [rows, size] -> their gradient in place; loss [rows] = -log p(target), spread [rows] = mean of -log p.
 * The gradient is that of (1 - smoothing) loss + smoothing spread. bias [size] may be null. */
void regard_cross_entropy(void *logits, const float *bias, const int64_t *targets, float *loss, float *spread,
                          int64_t from, int64_t to, int64_t size, int64_t low, int64_t gradient, float smoothing) {
    for (int64_t row = from; row < to; row++) {
        if (low)
            cross_entropy(row_of(logits, bias, row, size, 1), targets[row], loss + row, spread + row, gradient, smoothing);
        else
            cross_entropy(row_of(logits, bias, row, size, 0), targets[row], loss + row, spread + row, gradient, smoothing);
    }
}

/* R-Drop (Liang et al. 2021): two passes x and y over the same row, each with its cross-entropy, and the mean of
 * KL(p|q) and KL(q|p) between them, weighed. With l = log p - log q, the divergence is (E_p l - E_q l) / 2 and
 *     d / dx_j = (p_j (l_j - E_p l) + p_j - q_j) / 2. */
INLINE void agreeing(Logits x, Logits y, int64_t target, float *loss, float *spread, float *divergence,
                     float smoothing, float weight) {
    Row first = summary(x), second = summary(y);
    float shift = second.log_total - first.log_total;
    float p_t = expf(one(x, target) - first.log_total), q_t = expf(one(y, target) - second.log_total);
    float l_t = one(x, target) - one(y, target) + shift;
    *loss = first.log_total - one(x, target) + second.log_total - one(y, target);
    *spread = first.log_total - first.mean + second.log_total - second.mean;
    vec forth = splat(0), back = splat(0);
    for (int64_t j = 0; j < x.size; j += LANES) {
        vec l = read_at(x, j, 0) - read_at(y, j, 0) + shift;
        forth += exponential(read_at(x, j, -INFINITY) - first.log_total) * l;
        back -= exponential(read_at(y, j, -INFINITY) - second.log_total) * l;
    }
    float kl_p = sum(forth), kl_q = sum(back), even = smoothing / x.size, half = 0.5f * weight;
    *divergence = 0.5f * (kl_p + kl_q);
    for (int64_t j = 0; j < x.size; j += LANES) {
        vec u = read_at(x, j, 0), v = read_at(y, j, 0), l = u - v + shift;
        vec p = exponential(u - first.log_total), q = exponential(v - second.log_total);
        write_at(x, j, p - even + half * (p * (l - kl_p) + (p - q)));
        write_at(y, j, q - even + half * (q - p - q * (l + kl_q)));
    }
    put_one(x, target, p_t - even - (1.0f - smoothing) + half * (p_t * (l_t - kl_p) + (p_t - q_t)));
    put_one(y, target, q_t - even - (1.0f - smoothing) + half * (q_t - p_t - q_t * (l_t + kl_q)));
}

/* a and b become gradients in place; loss and spread are the two passes' sums. */
void regard_rdrop(void *a, void *b, const float *bias, const int64_t *targets, float *loss, float *spread,
                  float *divergence, int64_t from, int64_t to, int64_t size, int64_t low, float smoothing,
                  float weight) {
    for (int64_t row = from; row < to; row++) {
        if (low)
            agreeing(row_of(a, bias, row, size, 1), row_of(b, bias, row, size, 1), targets[row], loss + row,
                     spread + row, divergence + row, smoothing, weight);
        else
            agreeing(row_of(a, bias, row, size, 0), row_of(b, bias, row, size, 0), targets[row], loss + row,
                     spread + row, divergence + row, smoothing, weight);
    }
}
