/* Softmax attention over short sequences, forward and backward.
 *
 * For a sentence of a dozen tokens, general kernels spend their time on setup. Here one head of one example is a few
 * small products that stay in the first-level cache: keys are transposed once, so that a row of scores is a sum of
 * vectors and nothing is added across lanes.
 */
#include "simd_math.h"
#include "regard.h"

#define MAX_KEYS 128
#define MAX_WIDTH 128
#define BLOCK_ROWS 4

typedef struct {
    int64_t batch, head, time;
} Strides;

/* The positions of the keys that are present: mask [tk] or NULL (all) -> positions [tk]. Returns their number. */
static int64_t list_present_keys(const uint8_t *mask, int64_t tk, int64_t *positions) {
    int64_t n = 0;
    for (int64_t j = 0; j < tk; j++)
        if (!mask || mask[j]) positions[n++] = j;
    return n;
}

/* The rows of x [tk, width], `time` apart, at positions [n] -> columns [width, padded], transposed and padded with
 * zeros. */
static void transpose_rows(const float *x, int64_t time, const int64_t *positions, int64_t n, int64_t padded,
                           int64_t width, float *columns) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t d = 0; d < width; d++) columns[d * padded + j] = x[positions[j] * time + d];
    for (int64_t j = n; j < padded; j++)
        for (int64_t d = 0; d < width; d++) columns[d * padded + j] = 0;
}

/* out[x][0..padded) = sum_d rows[x][d] columns[d]: rows [count, width], `time` apart; columns [width, padded] -> out
 * [count, padded]. */
ALWAYS_INLINE void multiply_rows(const float *rows, int64_t time, const float *columns, int64_t padded, int64_t width,
                                 float *out, int count) {
    for (int64_t j = 0; j < padded; j += LANES) {
        vec acc[BLOCK_ROWS];
        for (int x = 0; x < count; x++) acc[x] = vec_splat(0);
        for (int64_t d = 0; d < width; d++) {
            vec column = vec_load(columns + d * padded + j);
            for (int x = 0; x < count; x++) acc[x] += rows[x * time + d] * column;
        }
        for (int x = 0; x < count; x++) vec_store(out + x * padded + j, acc[x]);
    }
}

typedef struct {
    const float *x; /* rows, `time` elements apart */
    int64_t time;
    const int64_t *positions; /* of the keys that are present */
} KeyRows;

/* out[x][0..width) = sum_j weights[x][j] rows[j] over the first visible[x] keys, which do not decrease with x. Keys
 * that a row does not attend to are not read, so that no NaN of theirs gets through. visible [count]; the rows of
 * weights are weights_stride apart, those of out [count, width] `time` apart. */
ALWAYS_INLINE void weighted_sum(const float *weights, int64_t weights_stride, KeyRows start, const int64_t *visible,
                                int64_t width, float *out, int64_t time, int count) {
    for (int64_t d = 0; d < width; d += LANES) {
        vec acc[BLOCK_ROWS];
        for (int x = 0; x < count; x++) acc[x] = vec_splat(0);
        for (int64_t j = 0; j < visible[0]; j++) {
            vec v = vec_load(start.x + start.positions[j] * start.time + d);
            for (int x = 0; x < count; x++) acc[x] += weights[x * weights_stride + j] * v;
        }
        for (int x = 1; x < count; x++)
            for (int64_t j = visible[0]; j < visible[x]; j++)
                acc[x] += weights[x * weights_stride + j] * vec_load(start.x + start.positions[j] * start.time + d);
        for (int x = 0; x < count; x++) vec_store(out + x * time + d, acc[x]);
    }
}

/* into[j][0..width) += sum_x weights[x][j] rows[x] for every key j, over the rows that attend to it. rows [count,
 * width], `time` apart; visible [count]; weights and into (at `positions`) are weights_stride and into_time apart. */
ALWAYS_INLINE void accumulate_outer(const float *weights, int64_t weights_stride, const float *rows, int64_t time,
                                    const int64_t *visible, int64_t width, const int64_t *positions, float *into,
                                    int64_t into_time, int count) {
    for (int64_t d = 0; d < width; d += LANES) {
        vec row_values[BLOCK_ROWS];
        for (int x = 0; x < count; x++) row_values[x] = vec_load(rows + x * time + d);
        for (int64_t j = 0; j < visible[0]; j++) {
            float *target = into + positions[j] * into_time + d;
            vec acc = vec_load(target);
            for (int x = 0; x < count; x++) acc += weights[x * weights_stride + j] * row_values[x];
            vec_store(target, acc);
        }
        for (int64_t j = visible[0]; j < visible[count - 1]; j++) {
            float *target = into + positions[j] * into_time + d;
            vec acc = vec_load(target);
            for (int x = 1; x < count; x++)
                if (j < visible[x]) acc += weights[x * weights_stride + j] * row_values[x];
            vec_store(target, acc);
        }
    }
}

/* How many of the keys at positions [n], which increase, query i attends to. */
static inline int64_t visible_keys(const int64_t *positions, int64_t n, int64_t i, int64_t causal, int64_t offset) {
    if (!causal) return n;
    while (n && positions[n - 1] > i + offset) n--;
    return n;
}

/* All ones in the first n lanes (in none if n <= 0), else zero. */
static inline ivec first_lanes(int64_t n) {
    ivec lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    return (ivec)(lane < (int32_t)(n < LANES ? n : LANES));
}

/* scores [padded] -> weights [padded]: softmax of scale * scores over the first n, and 0 in the others. scale >= 0. */
static inline void softmax_row(const float *scores, float scale, int64_t n, int64_t padded, float *weights) {
    vec maxima = vec_splat(-INFINITY), total = vec_splat(0);
    for (int64_t j = 0; j < n; j += LANES) {
        vec s = vec_blend(first_lanes(n - j), vec_load(scores + j), vec_splat(-INFINITY));
        maxima = vec_blend((ivec)(s > maxima), s, maxima);
    }
    float maximum = vec_reduce_max(maxima);
    for (int64_t j = 0; j < padded; j += LANES) {
        vec e = vec_blend(first_lanes(n - j), vec_exp((vec_load(scores + j) - maximum) * scale), vec_splat(0));
        total += e;
        vec_store(weights + j, e);
    }
    float inverse = n ? 1.0f / vec_reduce_add(total) : 0.0f;
    for (int64_t j = 0; j < n; j += LANES) vec_store(weights + j, vec_load(weights + j) * inverse);
}

/* Queries i to i + count of one head: queries [tq, width], columns [width, padded] (the n present keys, transposed) and
 * values -> out [tq, value_width], w [tq, weights_stride]. Rows of queries and out are q.time and o.time apart. */
ALWAYS_INLINE void forward_rows(const float *queries, Strides q, const float *columns, KeyRows values, int64_t n,
                                int64_t padded, int64_t width, int64_t value_width, float *out, Strides o, float *w,
                                int64_t weights_stride, int64_t i, int64_t causal, int64_t offset, float scale,
                                int count) {
    float scores[BLOCK_ROWS * MAX_KEYS];
    int64_t visible[BLOCK_ROWS];
    multiply_rows(queries + i * q.time, q.time, columns, padded, width, scores, count);
    for (int x = 0; x < count; x++) {
        visible[x] = visible_keys(values.positions, n, i + x, causal, offset);
        if (scale < 0) /* reverses the order: negate scores and scale */
            for (int64_t j = 0; j < visible[x]; j++) scores[x * padded + j] = -scores[x * padded + j];
        softmax_row(scores + x * padded, scale < 0 ? -scale : scale, visible[x], padded, w + (i + x) * weights_stride);
    }
    weighted_sum(w + i * weights_stride, weights_stride, values, visible, value_width, out + i * o.time, o.time, count);
}

/* Query heads that share a key head are computed together, while its transposed keys are in the cache. Shapes: see
 * regard.h. */
void regard_short_attention_forward(const float *q, const float *k, const float *v, const uint8_t *mask, float *out,
                                    float *weights, int64_t start, int64_t stop, int64_t key_heads, int64_t heads,
                                    int64_t tq, int64_t tk, int64_t width, int64_t value_width, const int64_t *strides,
                                    int64_t mask_rows, int64_t causal, int64_t offset, float scale) {
    const Strides *at = (const Strides *)strides; /* of q, k, v, out */
    int64_t positions[MAX_KEYS], weights_stride = (tk + LANES - 1) / LANES * LANES, shared = heads / key_heads;
    float columns[MAX_KEYS * MAX_WIDTH];
    for (int64_t unit = start; unit < stop; unit++) {
        int64_t b = unit / key_heads, g = unit % key_heads;
        KeyRows values = {v + b * at[2].batch + g * at[2].head, at[2].time, positions};
        int64_t n = list_present_keys(mask ? mask + (mask_rows > 1 ? b * tk : 0) : 0, tk, positions);
        int64_t padded = (n + LANES - 1) / LANES * LANES;
        transpose_rows(k + b * at[1].batch + g * at[1].head, at[1].time, positions, n, padded, width, columns);
        for (int64_t h = g * shared; h < (g + 1) * shared; h++) {
            const float *qs = q + b * at[0].batch + h * at[0].head;
            float *outs = out + b * at[3].batch + h * at[3].head, *ws = weights + (b * heads + h) * tq * weights_stride;
            int64_t i = 0;
            for (; i + BLOCK_ROWS <= tq; i += BLOCK_ROWS)
                forward_rows(qs, at[0], columns, values, n, padded, width, value_width, outs, at[3], ws, weights_stride,
                             i, causal, offset, scale, BLOCK_ROWS);
            for (; i < tq; i++)
                forward_rows(qs, at[0], columns, values, n, padded, width, value_width, outs, at[3], ws, weights_stride,
                             i, causal, offset, scale, 1);
        }
    }
}

typedef struct {
    const float *queries, *grads;
    float *dqueries, *dkeys, *dvalues;
    Strides q, g, dq, dk, dv;
} BackwardHead;

/* Gradients from queries i to i + count of one head: columns [value_width, padded] are the n present values,
 * transposed; w [tq, weights_stride]. Writes a.dqueries, and adds to a.dkeys and a.dvalues. */
ALWAYS_INLINE void backward_rows(BackwardHead a, const float *columns, KeyRows keys, int64_t n, int64_t padded,
                                 int64_t width, int64_t value_width, const float *w, int64_t weights_stride, int64_t i,
                                 int64_t causal, int64_t offset, float scale, int count) {
    float dscores[BLOCK_ROWS * MAX_KEYS];
    int64_t visible[BLOCK_ROWS];
    const float *grad = a.grads + i * a.g.time;
    multiply_rows(grad, a.g.time, columns, padded, value_width, dscores, count);
    for (int x = 0; x < count; x++) {
        float *ds = dscores + x * padded;
        const float *weight = w + (i + x) * weights_stride;
        visible[x] = visible_keys(keys.positions, n, i + x, causal, offset);
        vec total = vec_splat(0);
        for (int64_t j = 0; j < visible[x]; j += LANES)
            total += vec_blend(first_lanes(visible[x] - j), vec_load(ds + j) * vec_load(weight + j), vec_splat(0));
        float mean = vec_reduce_add(total);
        for (int64_t j = 0; j < visible[x]; j += LANES)
            vec_store(ds + j, vec_load(weight + j) * (vec_load(ds + j) - mean) * scale);
    }
    weighted_sum(dscores, padded, keys, visible, width, a.dqueries + i * a.dq.time, a.dq.time, count);
    accumulate_outer(dscores, padded, a.queries + i * a.q.time, a.q.time, visible, width, keys.positions, a.dkeys,
                     a.dk.time, count);
    accumulate_outer(w + i * weights_stride, weights_stride, grad, a.g.time, visible, value_width, keys.positions,
                     a.dvalues, a.dv.time, count);
}

/* Gradients of one example and key head at a time: the query heads that share it add to the same dk and dv. Shapes: see
 * regard.h. */
void regard_short_attention_backward(const float *q, const float *k, const float *v, const uint8_t *mask,
                                     const float *weights, const float *g, float *dq, float *dk, float *dv,
                                     int64_t start, int64_t stop, int64_t key_heads, int64_t heads, int64_t tq,
                                     int64_t tk, int64_t width, int64_t value_width, const int64_t *strides,
                                     int64_t mask_rows, int64_t causal, int64_t offset, float scale) {
    const Strides *at = (const Strides *)strides; /* of q, k, v, g, dq, dk, dv */
    int64_t positions[MAX_KEYS], weights_stride = (tk + LANES - 1) / LANES * LANES, shared = heads / key_heads;
    float columns[MAX_KEYS * MAX_WIDTH];
    for (int64_t unit = start; unit < stop; unit++) {
        int64_t b = unit / key_heads, group = unit % key_heads;
        KeyRows keys = {k + b * at[1].batch + group * at[1].head, at[1].time, positions};
        int64_t n = list_present_keys(mask ? mask + (mask_rows > 1 ? b * tk : 0) : 0, tk, positions);
        int64_t padded = (n + LANES - 1) / LANES * LANES;
        transpose_rows(v + b * at[2].batch + group * at[2].head, at[2].time, positions, n, padded, value_width,
                       columns);
        for (int64_t h = group * shared; h < (group + 1) * shared; h++) {
            BackwardHead a = {q + b * at[0].batch + h * at[0].head,
                              g + b * at[3].batch + h * at[3].head,
                              dq + b * at[4].batch + h * at[4].head,
                              dk + b * at[5].batch + group * at[5].head,
                              dv + b * at[6].batch + group * at[6].head,
                              at[0],
                              at[3],
                              at[4],
                              at[5],
                              at[6]};
            const float *ws = weights + (b * heads + h) * tq * weights_stride;
            int64_t i = 0;
            for (; i + BLOCK_ROWS <= tq; i += BLOCK_ROWS)
                backward_rows(a, columns, keys, n, padded, width, value_width, ws, weights_stride, i, causal, offset,
                              scale, BLOCK_ROWS);
            for (; i < tq; i++)
                backward_rows(a, columns, keys, n, padded, width, value_width, ws, weights_stride, i, causal, offset,
                              scale, 1);
        }
    }
}
