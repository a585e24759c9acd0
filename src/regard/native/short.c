/* Softmax attention over short sequences, forward and back.
 *
 * For a sentence of a dozen words the general kernels spend their time on setting up. Here one head of one example is a
 * few small products that stay in the first-level cache: keys are laid down column-wise once, so that a row of scores is
 * a sum of vectors and nothing is added across lanes.
 *
 * q [B, H, Tq, D], k and v [B, G, Tk, D] and their gradients are given with strides (of batch, head and time; D is dense
 * and a multiple of LANES). `allowed` [B, Tk] (or one row for all, or null) says which keys there are: the others are
 * never read. Causal: query i sees keys up to place i + offset. weights [B, H, Tq, Tk rounded up to whole vectors] hold,
 * for each query, the weights of the keys that there are, one after the other; the rest means nothing. A query without
 * keys gets zeros.
 */
#include "exponential.h"

#define MOST_KEYS 128
#define MOST_WIDTH 128
#define ROWS 4

typedef struct {
    int64_t batch, head, time;
} Strides;

/* The places of the keys that there are, and how many. */
static int64_t present(const uint8_t *allowed, int64_t tk, int64_t *places) {
    int64_t n = 0;
    for (int64_t j = 0; j < tk; j++)
        if (!allowed || allowed[j]) places[n++] = j;
    return n;
}

/* rows of x at `places` -> columns[d][j], padded with zeros to whole vectors. */
static void lay_down(const float *x, int64_t time, const int64_t *places, int64_t n, int64_t padded, int64_t width,
                     float *columns) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t d = 0; d < width; d++) columns[d * padded + j] = x[places[j] * time + d];
    for (int64_t j = n; j < padded; j++)
        for (int64_t d = 0; d < width; d++) columns[d * padded + j] = 0;
}

/* out[x][0..padded) = sum_d rows[x][d] columns[d], for `count` rows. */
static inline __attribute__((always_inline)) void products(const float *rows, int64_t time, const float *columns,
                                                           int64_t padded, int64_t width, float *out, int count) {
    for (int64_t j = 0; j < padded; j += LANES) {
        vec acc[ROWS];
        for (int x = 0; x < count; x++) acc[x] = splat(0);
        for (int64_t d = 0; d < width; d++) {
            vec column = load(columns + d * padded + j);
            for (int x = 0; x < count; x++) acc[x] += rows[x * time + d] * column;
        }
        for (int x = 0; x < count; x++) store(out + x * padded + j, acc[x]);
    }
}

typedef struct {
    const float *x;        /* rows, `time` apart */
    int64_t time;
    const int64_t *places; /* of the keys */
} Rows;

/* out[x][0..width) = sum_j weights[x][j] rows[j] over the keys that row x sees, seen[x] of them, rising with x. What a row
 * does not see is not touched, so that no NaN gets through. */
static inline __attribute__((always_inline)) void gather(const float *weights, int64_t row, Rows from,
                                                         const int64_t *seen, int64_t width, float *out, int64_t time,
                                                         int count) {
    for (int64_t d = 0; d < width; d += LANES) {
        vec acc[ROWS];
        for (int x = 0; x < count; x++) acc[x] = splat(0);
        for (int64_t j = 0; j < seen[0]; j++) {
            vec v = load(from.x + from.places[j] * from.time + d);
            for (int x = 0; x < count; x++) acc[x] += weights[x * row + j] * v;
        }
        for (int x = 1; x < count; x++)
            for (int64_t j = seen[0]; j < seen[x]; j++)
                acc[x] += weights[x * row + j] * load(from.x + from.places[j] * from.time + d);
        for (int x = 0; x < count; x++) store(out + x * time + d, acc[x]);
    }
}

/* into[j][0..width) += sum_x weights[x][j] rows[x] for every key j, over the rows that see it. */
static inline __attribute__((always_inline)) void scatter(const float *weights, int64_t row, const float *rows,
                                                          int64_t time, const int64_t *seen, int64_t width,
                                                          const int64_t *places, float *into, int64_t into_time,
                                                          int count) {
    for (int64_t d = 0; d < width; d += LANES) {
        vec x0[ROWS];
        for (int x = 0; x < count; x++) x0[x] = load(rows + x * time + d);
        for (int64_t j = 0; j < seen[0]; j++) {
            float *place = into + places[j] * into_time + d;
            vec acc = load(place);
            for (int x = 0; x < count; x++) acc += weights[x * row + j] * x0[x];
            store(place, acc);
        }
        for (int64_t j = seen[0]; j < seen[count - 1]; j++) {
            float *place = into + places[j] * into_time + d;
            vec acc = load(place);
            for (int x = 1; x < count; x++)
                if (j < seen[x]) acc += weights[x * row + j] * x0[x];
            store(place, acc);
        }
    }
}

/* How many of the n keys query i sees. */
static inline int64_t sees(const int64_t *places, int64_t n, int64_t i, int64_t causal, int64_t offset) {
    if (!causal) return n;
    while (n && places[n - 1] > i + offset) n--;
    return n;
}

static inline whole first_lanes(int64_t n) {
    whole lane;
    for (int i = 0; i < LANES; i++) lane[i] = i;
    return (whole)(lane < (int32_t)(n < LANES ? n : LANES));
}

static inline void normalise(const float *scores, float scale, int64_t n, int64_t padded, float *weights) {
    vec tops = splat(-INFINITY), total = splat(0);
    for (int64_t j = 0; j < n; j += LANES) {
        vec s = either(first_lanes(n - j), load(scores + j), splat(-INFINITY));
        tops = either((whole)(s > tops), s, tops);
    }
    float highest = top(tops);
    for (int64_t j = 0; j < padded; j += LANES) {
        vec e = either(first_lanes(n - j), exponential((load(scores + j) - highest) * scale), splat(0));
        total += e;
        store(weights + j, e);
    }
    float share = n ? 1.0f / sum(total) : 0.0f;
    for (int64_t j = 0; j < n; j += LANES) store(weights + j, load(weights + j) * share);
}

static inline __attribute__((always_inline)) void forward_rows(const float *queries, Strides q, const float *columns,
                                                               Rows values, int64_t n, int64_t padded, int64_t width,
                                                               int64_t value_width, float *out, Strides o, float *w,
                                                               int64_t row, int64_t i, int64_t causal, int64_t offset,
                                                               float scale, int count) {
    float scores[ROWS * MOST_KEYS];
    int64_t seen[ROWS];
    products(queries + i * q.time, q.time, columns, padded, width, scores, count);
    for (int x = 0; x < count; x++) {
        seen[x] = sees(values.places, n, i + x, causal, offset);
        if (scale < 0) /* turns the order around, and the scores with it */
            for (int64_t j = 0; j < seen[x]; j++) scores[x * padded + j] = -scores[x * padded + j];
        normalise(scores + x * padded, scale < 0 ? -scale : scale, seen[x], padded, w + (i + x) * row);
    }
    gather(w + i * row, row, values, seen, value_width, out + i * o.time, o.time, count);
}

/* `from` and `to` count (example, key head) pairs; heads that share keys are done together. */
void regard_short(const float *q, const float *k, const float *v, const uint8_t *allowed, float *out, float *weights,
                  int64_t from, int64_t to, int64_t groups, int64_t heads, int64_t tq, int64_t tk, int64_t width,
                  int64_t value_width, const int64_t *strides, int64_t masks, int64_t causal, int64_t offset,
                  float scale) {
    const Strides *at = (const Strides *)strides; /* of q, k, v, out */
    int64_t places[MOST_KEYS], row = (tk + LANES - 1) / LANES * LANES, share = heads / groups;
    float columns[MOST_KEYS * MOST_WIDTH];
    for (int64_t unit = from; unit < to; unit++) {
        int64_t b = unit / groups, g = unit % groups;
        Rows values = {v + b * at[2].batch + g * at[2].head, at[2].time, places};
        int64_t n = present(allowed ? allowed + (masks > 1 ? b * tk : 0) : 0, tk, places);
        int64_t padded = (n + LANES - 1) / LANES * LANES;
        lay_down(k + b * at[1].batch + g * at[1].head, at[1].time, places, n, padded, width, columns);
        for (int64_t h = g * share; h < (g + 1) * share; h++) {
            const float *qs = q + b * at[0].batch + h * at[0].head;
            float *outs = out + b * at[3].batch + h * at[3].head, *ws = weights + (b * heads + h) * tq * row;
            int64_t i = 0;
            for (; i + ROWS <= tq; i += ROWS)
                forward_rows(qs, at[0], columns, values, n, padded, width, value_width, outs, at[3], ws, row, i, causal,
                             offset, scale, ROWS);
            for (; i < tq; i++)
                forward_rows(qs, at[0], columns, values, n, padded, width, value_width, outs, at[3], ws, row, i, causal,
                             offset, scale, 1);
        }
    }
}

typedef struct {
    const float *queries, *ups;
    float *dqueries, *dkeys, *dvalues;
    Strides q, g, dq, dk, dv;
} Head;

static inline __attribute__((always_inline)) void backward_rows(Head a, const float *columns, Rows keys, int64_t n,
                                                                int64_t padded, int64_t width, int64_t value_width,
                                                                const float *w, int64_t row, int64_t i, int64_t causal,
                                                                int64_t offset, float scale, int count) {
    float slopes[ROWS * MOST_KEYS];
    int64_t seen[ROWS];
    const float *up = a.ups + i * a.g.time;
    products(up, a.g.time, columns, padded, value_width, slopes, count);
    for (int x = 0; x < count; x++) {
        float *slope = slopes + x * padded;
        const float *weight = w + (i + x) * row;
        seen[x] = sees(keys.places, n, i + x, causal, offset);
        vec total = splat(0);
        for (int64_t j = 0; j < seen[x]; j += LANES)
            total += either(first_lanes(seen[x] - j), load(slope + j) * load(weight + j), splat(0));
        float mean = sum(total);
        for (int64_t j = 0; j < seen[x]; j += LANES)
            store(slope + j, load(weight + j) * (load(slope + j) - mean) * scale);
    }
    gather(slopes, padded, keys, seen, width, a.dqueries + i * a.dq.time, a.dq.time, count);
    scatter(slopes, padded, a.queries + i * a.q.time, a.q.time, seen, width, keys.places, a.dkeys, a.dk.time, count);
    scatter(w + i * row, row, up, a.g.time, seen, value_width, keys.places, a.dvalues, a.dv.time, count);
}

/* g [B, H, Tq, Dv] of the output -> dq, dk, dv; dk and dv are zeroed by the caller. */
void regard_short_backward(const float *q, const float *k, const float *v, const uint8_t *allowed, const float *weights,
                           const float *g, float *dq, float *dk, float *dv, int64_t from, int64_t to, int64_t groups,
                           int64_t heads, int64_t tq, int64_t tk, int64_t width, int64_t value_width,
                           const int64_t *strides, int64_t masks, int64_t causal, int64_t offset, float scale) {
    const Strides *at = (const Strides *)strides; /* of q, k, v, g, dq, dk, dv */
    int64_t places[MOST_KEYS], row = (tk + LANES - 1) / LANES * LANES, share = heads / groups;
    float columns[MOST_KEYS * MOST_WIDTH];
    for (int64_t unit = from; unit < to; unit++) {
        int64_t b = unit / groups, group = unit % groups;
        Rows keys = {k + b * at[1].batch + group * at[1].head, at[1].time, places};
        int64_t n = present(allowed ? allowed + (masks > 1 ? b * tk : 0) : 0, tk, places);
        int64_t padded = (n + LANES - 1) / LANES * LANES;
        lay_down(v + b * at[2].batch + group * at[2].head, at[2].time, places, n, padded, value_width, columns);
        for (int64_t h = group * share; h < (group + 1) * share; h++) {
            Head a = {q + b * at[0].batch + h * at[0].head,      g + b * at[3].batch + h * at[3].head,
                      dq + b * at[4].batch + h * at[4].head,     dk + b * at[5].batch + group * at[5].head,
                      dv + b * at[6].batch + group * at[6].head, at[0], at[3], at[4], at[5], at[6]};
            const float *ws = weights + (b * heads + h) * tq * row;
            int64_t i = 0;
            for (; i + ROWS <= tq; i += ROWS)
                backward_rows(a, columns, keys, n, padded, width, value_width, ws, row, i, causal, offset, scale, ROWS);
            for (; i < tq; i++)
                backward_rows(a, columns, keys, n, padded, width, value_width, ws, row, i, causal, offset, scale, 1);
        }
    }
}
