/* Cross-entropy of rows of logits, and its gradient, in one visit: the logits of a few rows are still in the cache,
 * become their own gradient in place, and are never stored for a backward pass.
 */
#include "exponential.h"

typedef struct {
    float log_total, mean; /* log of the sum of exponentials; mean logit */
} Row;

/* log sum exp and mean of a row; NaN where the row is not finite. */
static Row summary(const float *x, int64_t size) {
    vec tops = splat(-INFINITY), plain = splat(0), mass = splat(0);
    for (int64_t j = 0; j < size; j += LANES) {
        vec v = load_part(x + j, size - j, -INFINITY);
        tops = either((whole)(v > tops), v, tops);
        plain += load_part(x + j, size - j, 0);
    }
    float highest = top(tops), total = sum(plain);
    for (int64_t j = 0; j < size; j += LANES) mass += exponential(load_part(x + j, size - j, -INFINITY) - highest);
    Row row = {highest + logf(sum(mass)), total / size};
    if (!(total - total == 0)) row.log_total = NAN;
    return row;
}

/* logits [rows, size] -> their gradient in place; loss [rows] = -log p(target), spread [rows] = mean of -log p.
 * The gradient is that of (1 - smoothing) loss + smoothing spread. */
void regard_cross_entropy(float *logits, const int64_t *targets, float *loss, float *spread, int64_t from, int64_t to,
                          int64_t size, int64_t gradient, float smoothing) {
    for (int64_t row = from; row < to; row++) {
        float *x = logits + row * size;
        Row about = summary(x, size);
        loss[row] = about.log_total - x[targets[row]];
        spread[row] = about.log_total - about.mean;
        if (!gradient) continue;
        float even = smoothing / size;
        for (int64_t j = 0; j < size; j += LANES) {
            vec p = exponential(load_part(x + j, size - j, 0) - about.log_total);
            store_part(x + j, p - even, size - j);
        }
        x[targets[row]] -= 1.0f - smoothing;
    }
}

/* R-Drop (Liang et al. 2021): two passes a and b over the same rows, each with its cross-entropy, and the mean of
 * KL(p|q) and KL(q|p) between them, weighed. With l = log p - log q, the divergence is (E_p l - E_q l) / 2 and
 *     d / da_j = (p_j (l_j - E_p l) + p_j - q_j) / 2.
 * a and b become gradients in place; loss and spread are the two passes' sums. */
void regard_rdrop(float *a, float *b, const int64_t *targets, float *loss, float *spread, float *divergence,
                  int64_t from, int64_t to, int64_t size, float smoothing, float weight) {
    for (int64_t row = from; row < to; row++) {
        float *x = a + row * size, *y = b + row * size;
        Row first = summary(x, size), second = summary(y, size);
        float shift = second.log_total - first.log_total;
        loss[row] = first.log_total - x[targets[row]] + second.log_total - y[targets[row]];
        spread[row] = first.log_total - first.mean + second.log_total - second.mean;
        vec forth = splat(0), back = splat(0);
        for (int64_t j = 0; j < size; j += LANES) {
            vec u = load_part(x + j, size - j, -INFINITY), v = load_part(y + j, size - j, -INFINITY);
            vec l = load_part(x + j, size - j, 0) - load_part(y + j, size - j, 0) + shift;
            forth += exponential(u - first.log_total) * l;
            back -= exponential(v - second.log_total) * l;
        }
        float kl_p = sum(forth), kl_q = sum(back), even = smoothing / size, half = 0.5f * weight;
        divergence[row] = 0.5f * (kl_p + kl_q);
        for (int64_t j = 0; j < size; j += LANES) {
            vec u = load_part(x + j, size - j, 0), v = load_part(y + j, size - j, 0), l = u - v + shift;
            vec p = exponential(u - first.log_total), q = exponential(v - second.log_total);
            store_part(x + j, p - even + half * (p * (l - kl_p) + (p - q)), size - j);
            store_part(y + j, q - even + half * (q - p - q * (l + kl_q)), size - j);
        }
        x[targets[row]] -= 1.0f - smoothing;
        y[targets[row]] -= 1.0f - smoothing;
    }
}
