/* One look of a recurrent decoder at its memory: additive scores of one query a sentence, softmax, weighted sum.
 *
 * Queries and keys come as e^2x (see additive.c), so that tanh(a + b) = 1 - 2 / (1 + E) with E their product. Widths
 * are multiples of LANES; `from` and `to` count sentences.
 */
#include "exponential.h"

#define KEYS 4

static inline __attribute__((always_inline)) void score(const float *q, const float *k, const float *v, float *scores,
                                                        int64_t width, int nk) {
    vec acc[KEYS];
    for (int y = 0; y < nk; y++) acc[y] = splat(0);
    for (int64_t d = 0; d < width; d += LANES) {
        vec query = load(q + d), weight = load(v + d);
        for (int y = 0; y < nk; y++) acc[y] += weight * (0.5f - 1.0f / (query * load(k + y * width + d) + 1.0f));
    }
    for (int y = 0; y < nk; y++) scores[y] = 2.0f * sum(acc[y]);
}

/* Scores [tk] -> weights in their place; where the mask is 0 the weight is 0, also if it is 0 everywhere. */
static void normalise(float *scores, const uint8_t *mask, int64_t tk) {
    vec highest = splat(-INFINITY), total = splat(0);
    for (int64_t j = 0; j < tk; j++)
        if (!mask[j]) scores[j] = -INFINITY;
    for (int64_t j = 0; j < tk; j += LANES) {
        vec x = load_part(scores + j, tk - j, -INFINITY);
        highest = LARGER(highest, x);
    }
    float most = top(highest);
    if (most == -INFINITY) {
        memset(scores, 0, tk * sizeof(float));
        return;
    }
    for (int64_t j = 0; j < tk; j += LANES) {
        vec x = load_part(scores + j, tk - j, -INFINITY);
        x = exponential(either((whole)(x == -INFINITY), splat(-1000.0f), x - most));
        total += x;
        store_part(scores + j, x, tk - j);
    }
    float share = 1.0f / sum(total);
    for (int64_t j = 0; j < tk; j += LANES) store_part(scores + j, load_part(scores + j, tk - j, 0) * share, tk - j);
}

/* q [n, width], keys [n, tk, width], v [width], values [n, tk, depth], mask [n, tk] -> weights [n, tk], context
 * [n, depth]. */
void regard_look(const float *q, const float *keys, const float *v, const float *values, const uint8_t *mask,
                 float *weights, float *context, int64_t from, int64_t to, int64_t tk, int64_t width, int64_t depth) {
    for (int64_t n = from; n < to; n++) {
        const float *q_n = q + n * width, *k_n = keys + n * tk * width, *values_n = values + n * tk * depth;
        float *w = weights + n * tk, *c = context + n * depth;
        int64_t last = tk, j = 0;
        while (last > 0 && !mask[n * tk + last - 1]) last--;
        for (; j + KEYS <= last; j += KEYS) score(q_n, k_n + j * width, v, w + j, width, KEYS);
        for (; j < last; j++) score(q_n, k_n + j * width, v, w + j, width, 1);
        normalise(w, mask + n * tk, tk);
        for (int64_t d = 0; d < depth; d += LANES) {
            vec sum = splat(0);
            for (j = 0; j < last; j++)
                if (w[j] != 0) sum += w[j] * load(values_n + j * depth + d);
            store(c + d, sum);
        }
    }
}

/* The way back, with the weights of the look, and the slopes of its context [n, depth] and of the weights themselves
 * [n, tk] (null where nobody asked for them):
 * dq [n, width]; added to dkeys [n, tk, width], which the caller multiplies by 4 v at the end; added to dv [n, width].
 * `slopes` [n, tk] is room for those of the scores. With r = 1 / (1 + E), tanh' = 4 r (1 - r). */
void regard_look_backward(const float *q, const float *keys, const float *v, const float *values, const float *weights,
                          const float *dcontext, const float *dweights, float *dq, float *dkeys, float *dv, float *slopes, int64_t from,
                          int64_t to, int64_t tk, int64_t width, int64_t depth) {
    for (int64_t n = from; n < to; n++) {
        const float *q_n = q + n * width, *k_n = keys + n * tk * width, *values_n = values + n * tk * depth;
        const float *w = weights + n * tk, *up = dcontext + n * depth;
        float *g = slopes + n * tk, *dk = dkeys + n * tk * width, mean = 0;
        for (int64_t j = 0; j < tk; j++) {
            vec acc = splat(0);
            g[j] = 0;
            if (w[j] == 0) continue;
            for (int64_t d = 0; d < depth; d += LANES) acc += load(up + d) * load(values_n + j * depth + d);
            g[j] = sum(acc) + (dweights ? dweights[n * tk + j] : 0);
            mean += w[j] * g[j];
        }
        for (int64_t j = 0; j < tk; j++) g[j] = w[j] * (g[j] - mean);
        for (int64_t d = 0; d < width; d += LANES) {
            vec query = load(q_n + d), acc = splat(0), acc_v = splat(0);
            for (int64_t j = 0; j < tk; j++) {
                if (g[j] == 0) continue;
                vec r = 1.0f / (query * load(k_n + j * width + d) + 1.0f);
                vec slope = g[j] * (r - r * r);
                acc += slope;
                acc_v += g[j] * (1.0f - 2.0f * r);
                store(dk + j * width + d, load(dk + j * width + d) + slope);
            }
            store(dq + n * width + d, 4.0f * load(v + d) * acc);
            store(dv + n * width + d, load(dv + n * width + d) + acc_v);
        }
    }
}
