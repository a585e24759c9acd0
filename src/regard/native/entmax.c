/* Sparsemax and entmax-1.5: the threshold of each row by Newton's method from the left. The function is convex and
 * decreasing, so that no step overshoots but for rounding, and the iteration ends at the fixed point.
 *
 * Weights are max(z - tau, 0)^power with z = x and power 1 (sparsemax, alpha = 2) or z = x / 2 and power 2 (entmax,
 * alpha = 1.5), and tau such that they sum to one.
 *
 * Sums may be reordered here, unlike in files that include simd_math.h.
 */
#include "simd.h"
#include "regard.h"

#define MAX_STEPS 64

/* The largest element of a row x [size], or NaN if the row has one: then all its weights become NaN, as they should. */
static inline float row_maximum(const float *x, int64_t size) {
    float maximum = -INFINITY;
    int nan = 0;
    for (int64_t j = 0; j < size; j++) {
        maximum = x[j] > maximum ? x[j] : maximum;
        nan |= x[j] != x[j];
    }
    return nan ? NAN : maximum;
}

/* Moves *tau to `next`, and returns whether it has converged. The largest weight is at least the mean, so tau is at
 * most `upper` (-1 / size or -1 / sqrt(size)): a first step from far away may round past the root, but not past that.
 * From the right of the root the next step leads back to its left, with numbers of the right magnitude and full
 * precision. */
static inline int update_threshold(float *tau, float next, float upper) {
    next = next > upper ? upper : next;
    int converged = !(fabsf(next - *tau) > 1e-7f * fabsf(next));
    *tau = next;
    return converged;
}

/* Sparsemax of the rows from start to stop: x [rows, size] -> p [rows, size], which first holds x - maximum. */
void regard_sparsemax_forward(const float *x, float *p, int64_t start, int64_t stop, int64_t size) {
    for (int64_t row = start; row < stop; row++) {
        const float *xs = x + row * size;
        float *ps = p + row * size;
        float maximum = row_maximum(xs, size), tau = -1.0f;
        for (int64_t j = 0; j < size; j++) ps[j] = xs[j] - maximum;
        for (int step = 0; step < MAX_STEPS; step++) {
            float mass = 0, count = 0;
            for (int64_t j = 0; j < size; j++) {
                float gap = ps[j] - tau;
                mass += gap > 0 ? gap : 0;
                count += gap > 0 ? 1.0f : 0;
            }
            float next = tau + (mass - 1.0f) / count;
            if (update_threshold(&tau, next, -1.0f / size)) break;
        }
        for (int64_t j = 0; j < size; j++) ps[j] = ps[j] <= tau ? 0 : ps[j] - tau;
    }
}

/* Entmax-1.5 of the rows from start to stop: x [rows, size] -> p [rows, size], which first holds (x - maximum) / 2. */
void regard_entmax15_forward(const float *x, float *p, int64_t start, int64_t stop, int64_t size) {
    for (int64_t row = start; row < stop; row++) {
        const float *xs = x + row * size;
        float *ps = p + row * size;
        float maximum = row_maximum(xs, size), tau = -1.0f;
        for (int64_t j = 0; j < size; j++) ps[j] = (xs[j] - maximum) * 0.5f;
        for (int step = 0; step < MAX_STEPS; step++) {
            float mass = 0, slope = 0;
            for (int64_t j = 0; j < size; j++) {
                float gap = ps[j] - tau;
                gap = gap > 0 ? gap : 0;
                mass += gap * gap;
                slope += gap;
            }
            float next = tau + (mass - 1.0f) / (2 * slope);
            if (update_threshold(&tau, next, -1.0f / sqrtf(size))) break;
        }
        for (int64_t j = 0; j < size; j++) {
            float gap = ps[j] <= tau ? 0 : ps[j] - tau;
            ps[j] = gap * gap;
        }
    }
}

/* p, g [rows, size] -> dx [rows, size] = s (g - <s, g> / <s, 1>), where s is 1 on the support (sparsemax) or sqrt(p)
 * (entmax-1.5). */
void regard_sparsemax_backward(const float *p, const float *g, float *dx, int64_t start, int64_t stop, int64_t size) {
    for (int64_t row = start; row < stop; row++) {
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

/* The same formula as in regard_sparsemax_backward, with s = sqrt(p): p, g [rows, size] -> dx [rows, size]. */
void regard_entmax15_backward(const float *p, const float *g, float *dx, int64_t start, int64_t stop, int64_t size) {
    for (int64_t row = start; row < stop; row++) {
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
