/* Sparsemax and entmax-1.5: the threshold of each row by Newton's method from the left. The function is convex and
 * falling, so but for rounding no step overshoots, and the iteration ends at the fixed point.
 */
#include "vectors.h"

/* ---- sparsemax (alpha = 2) and entmax (alpha = 1.5) ----------------------------------------------------------
 * Weights are max(z - tau, 0)^power with z = x (power 1) or x / 2 (power 2), and tau such that they sum to one. */
#define MOST_STEPS 64

/* The largest of a row, or NaN if the row has one: then all its weights become NaN, as they should. */
static inline float largest(const float *x, int64_t size) {
    float top = -INFINITY;
    int nan = 0;
    for (int64_t j = 0; j < size; j++) {
        top = x[j] > top ? x[j] : top;
        nan |= x[j] != x[j];
    }
    return nan ? NAN : top;
}

/* Move tau to next and say whether it stays. The largest weight is at least the mean, so tau is at most -1 / size or
 * -1 / sqrt(size): a first step from far away may round past the root, never past that. From right of the root the
 * next step leads back to its left, with numbers of the right size, and so with the right digits. */
static inline int settled(float *tau, float next, float most) {
    next = next > most ? most : next;
    int stays = !(fabsf(next - *tau) > 1e-7f * fabsf(next));
    *tau = next;
    return stays;
}

void regard_sparsemax(const float *x, float *p, int64_t from, int64_t to, int64_t size) {
    for (int64_t row = from; row < to; row++) {
        const float *xs = x + row * size;
        float *ps = p + row * size;
        float top = largest(xs, size), tau = -1.0f;
        for (int64_t j = 0; j < size; j++) ps[j] = xs[j] - top;
        for (int step = 0; step < MOST_STEPS; step++) {
            float mass = 0, count = 0;
            for (int64_t j = 0; j < size; j++) {
                float gap = ps[j] - tau;
                mass += gap > 0 ? gap : 0;
                count += gap > 0 ? 1.0f : 0;
            }
            float next = tau + (mass - 1.0f) / count;
            if (settled(&tau, next, -1.0f / size)) break;
        }
        for (int64_t j = 0; j < size; j++) ps[j] = ps[j] <= tau ? 0 : ps[j] - tau;
    }
}

void regard_entmax15(const float *x, float *p, int64_t from, int64_t to, int64_t size) {
    for (int64_t row = from; row < to; row++) {
        const float *xs = x + row * size;
        float *ps = p + row * size;
        float top = largest(xs, size), tau = -1.0f;
        for (int64_t j = 0; j < size; j++) ps[j] = (xs[j] - top) * 0.5f;
        for (int step = 0; step < MOST_STEPS; step++) {
            float mass = 0, slope = 0;
            for (int64_t j = 0; j < size; j++) {
                float gap = ps[j] - tau;
                gap = gap > 0 ? gap : 0;
                mass += gap * gap;
                slope += gap;
            }
            float next = tau + (mass - 1.0f) / (2 * slope);
            if (settled(&tau, next, -1.0f / sqrtf(size))) break;
        }
        for (int64_t j = 0; j < size; j++) {
            float gap = ps[j] <= tau ? 0 : ps[j] - tau;
            ps[j] = gap * gap;
        }
    }
}

/* dx = s (g - <s, g> / <s, 1>), where s is 1 on the support (sparsemax) or sqrt(p) (entmax-1.5). */
void regard_sparsemax_backward(const float *p, const float *g, float *dx, int64_t from, int64_t to, int64_t size) {
    for (int64_t row = from; row < to; row++) {
        const float *ps = p + row * size, *gs = g + row * size;
        float total = 0, count = 0;
        for (int64_t j = 0; j < size; j++) {
            total += ps[j] > 0 ? gs[j] : 0;
            count += ps[j] > 0 ? 1.0f : 0;
        }
        float mean = total / count;
        for (int64_t j = 0; j < size; j++) dx[row * size + j] = ps[j] > 0 ? gs[j] - mean : 0;
    }
}

void regard_entmax15_backward(const float *p, const float *g, float *dx, int64_t from, int64_t to, int64_t size) {
    for (int64_t row = from; row < to; row++) {
        const float *ps = p + row * size, *gs = g + row * size;
        float total = 0, weight = 0;
        for (int64_t j = 0; j < size; j++) {
            float s = sqrtf(ps[j]);
            total += s * gs[j];
            weight += s;
        }
        float mean = total / weight;
        for (int64_t j = 0; j < size; j++) dx[row * size + j] = sqrtf(ps[j]) * (gs[j] - mean);
    }
}
