/* One step of a recurrent decoder's additive attention: scores of one query per sentence, softmax, weighted sum.
 *
 * Queries and keys are e^2x (see additive_scores.c), so that tanh(a + b) = 1 - 2 / (1 + E), where E is their product.
 */
#include "simd_math.h"
#include "regard.h"

#define BLOCK_K 4

/* Scores of one query and nk <= BLOCK_K keys: q [width], k [nk, width], v [width] -> scores [nk]. */
ALWAYS_INLINE void score_keys(const float *q, const float *k, const float *v, float *scores, int64_t width, int nk) {
    vec acc[BLOCK_K];
    for (int y = 0; y < nk; y++) acc[y] = vec_splat(0);
    for (int64_t d = 0; d < width; d += LANES) {
        vec query = vec_load(q + d), weight = vec_load(v + d);
        for (int y = 0; y < nk; y++) acc[y] += weight * (0.5f - 1.0f / (query * vec_load(k + y * width + d) + 1.0f));
    }
    for (int y = 0; y < nk; y++) scores[y] = 2.0f * vec_reduce_add(acc[y]);
}

/* Scores [tk] become weights in place. Where the mask [tk] is 0 the weight is 0, even if it is 0 everywhere. */
static void masked_softmax(float *scores, const uint8_t *mask, int64_t tk) {
    vec highest = vec_splat(-INFINITY), total = vec_splat(0);
    for (int64_t j = 0; j < tk; j++)
        if (!mask[j]) scores[j] = -INFINITY;
    for (int64_t j = 0; j < tk; j += LANES) {
        vec x = vec_load_partial(scores + j, tk - j, -INFINITY);
        highest = MAX(highest, x);
    }
    float maximum = vec_reduce_max(highest);
    if (maximum == -INFINITY) {
        memset(scores, 0, tk * sizeof(float));
        return;
    }
    for (int64_t j = 0; j < tk; j += LANES) {
        vec x = vec_load_partial(scores + j, tk - j, -INFINITY);
        x = vec_exp(vec_blend((ivec)(x == -INFINITY), vec_splat(-1000.0f), x - maximum));
        total += x;
        vec_store_partial(scores + j, x, tk - j);
    }
    float inverse = 1.0f / vec_reduce_add(total);
    for (int64_t j = 0; j < tk; j += LANES)
        vec_store_partial(scores + j, vec_load_partial(scores + j, tk - j, 0) * inverse, tk - j);
}

/* Attends for one example at a time. Absent keys at the end are not scored, and no absent value is read. Shapes: see
 * regard.h. */
void regard_attention_step_forward(const float *q, const float *keys, const float *v, const float *values,
                                   const uint8_t *mask, float *weights, float *context, int64_t start, int64_t stop,
                                   int64_t tk, int64_t width, int64_t depth) {
    for (int64_t n = start; n < stop; n++) {
        const float *q_n = q + n * width, *k_n = keys + n * tk * width, *values_n = values + n * tk * depth;
        float *w = weights + n * tk, *c = context + n * depth;
        int64_t key_count = tk, j = 0;
        while (key_count > 0 && !mask[n * tk + key_count - 1]) key_count--;
        for (; j + BLOCK_K <= key_count; j += BLOCK_K) score_keys(q_n, k_n + j * width, v, w + j, width, BLOCK_K);
        for (; j < key_count; j++) score_keys(q_n, k_n + j * width, v, w + j, width, 1);
        masked_softmax(w, mask + n * tk, tk);
        for (int64_t d = 0; d < depth; d += LANES) {
            vec sum = vec_splat(0);
            for (j = 0; j < key_count; j++)
                if (w[j] != 0) sum += w[j] * vec_load(values_n + j * depth + d);
            vec_store(c + d, sum);
        }
    }
}

/* Gradients of one example at a time. With r = 1 / (1 + E), tanh' = 4 r (1 - r). Shapes: see regard.h. */
void regard_attention_step_backward(const float *q, const float *keys, const float *v, const float *values,
                                    const float *weights, const float *dcontext, const float *dweights, float *dq,
                                    float *dkeys, float *dv, float *dscores, int64_t start, int64_t stop, int64_t tk,
                                    int64_t width, int64_t depth) {
    for (int64_t n = start; n < stop; n++) {
        const float *q_n = q + n * width, *k_n = keys + n * tk * width, *values_n = values + n * tk * depth;
        const float *w = weights + n * tk, *grad = dcontext + n * depth;
        float *ds = dscores + n * tk, *dk = dkeys + n * tk * width, mean = 0;
        for (int64_t j = 0; j < tk; j++) {
            vec acc = vec_splat(0);
            ds[j] = 0;
            if (w[j] == 0) continue;
            for (int64_t d = 0; d < depth; d += LANES) acc += vec_load(grad + d) * vec_load(values_n + j * depth + d);
            ds[j] = vec_reduce_add(acc) + (dweights ? dweights[n * tk + j] : 0);
            mean += w[j] * ds[j];
        }
        for (int64_t j = 0; j < tk; j++) ds[j] = w[j] * (ds[j] - mean);
        for (int64_t d = 0; d < width; d += LANES) {
            vec query = vec_load(q_n + d), acc = vec_splat(0), acc_v = vec_splat(0);
            for (int64_t j = 0; j < tk; j++) {
                if (ds[j] == 0) continue;
                vec r = 1.0f / (query * vec_load(k_n + j * width + d) + 1.0f);
                vec term = ds[j] * (r - r * r);
                acc += term;
                acc_v += ds[j] * (1.0f - 2.0f * r);
                vec_store(dk + j * width + d, vec_load(dk + j * width + d) + term);
            }
            vec_store(dq + n * width + d, 4.0f * vec_load(v + d) * acc);
            vec_store(dv + n * width + d, vec_load(dv + n * width + d) + acc_v);
        }
    }
}
