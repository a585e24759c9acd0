/* Dropout from a counter: whether element i is kept is a hash of i and the call's key, so nothing random is stored,
 * the backward pass asks the same question again, and any number of threads gives the same answer. The same hash in
 * tensor algebra is in models/dropout.py, and the two agree bit for bit.
 */
#include "vectors.h"

typedef uint32_t ints __attribute__((vector_size(LANES * 4)));
typedef uint32_t ints_at __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* Two rounds of a mixer with low bias (two multiplications each), a key before each. */
static inline ints mixed(ints x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

static inline uint32_t mixed_one(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

static inline int kept_one(int64_t i, uint32_t first, uint32_t second, uint32_t threshold) {
    return mixed_one(mixed_one((uint32_t)i ^ first) + second + (uint32_t)(i >> 32)) >= threshold;
}

/* All ones where element start + lane is kept, else zero. */
static inline ints kept(int64_t start, uint32_t first, uint32_t second, uint32_t threshold) {
    ints at;
    for (int lane = 0; lane < LANES; lane++) at[lane] = (uint32_t)start + lane;
    /* The high half is the same for all lanes: callers start at multiples of LANES. */
    return (ints)(mixed(mixed(at ^ first) + (second + (uint32_t)(start >> 32))) >= threshold);
}

static inline vec choose(ints mask, vec x) { return (vec)(mask & (ints)x); }

#define FOR_EACH(VECTOR, SCALAR)                                              \
    from *= BLOCK;                                                            \
    to = to * BLOCK < size ? to * BLOCK : size;                               \
    int64_t i = from;                                                         \
    for (; i + LANES <= to; i += LANES) { VECTOR; }                           \
    for (; i < to; i++) { SCALAR; }

/* from and to count blocks of this many elements. */
#define BLOCK 1024

/* out = x kept and scaled, or 0 */
void regard_dropout(const float *x, float *out, int64_t from, int64_t to, int64_t size, int64_t first, int64_t second,
                    int64_t threshold, float scale) {
    FOR_EACH(store(out + i, choose(kept(i, first, second, threshold), load(x + i) * scale)),
             out[i] = kept_one(i, first, second, threshold) ? x[i] * scale : 0)
}

/* out = residual + dropout(x) */
void regard_dropout_add(const float *x, const float *residual, float *out, int64_t from, int64_t to, int64_t size,
                        int64_t first, int64_t second, int64_t threshold, float scale) {
    FOR_EACH(store(out + i, load(residual + i) + choose(kept(i, first, second, threshold), load(x + i) * scale)),
             out[i] = residual[i] + (kept_one(i, first, second, threshold) ? x[i] * scale : 0))
}

/* out = dropout(max(x, 0)) */
void regard_dropout_relu(const float *x, float *out, int64_t from, int64_t to, int64_t size, int64_t first,
                         int64_t second, int64_t threshold, float scale) {
    FOR_EACH(vec y = load(x + i) * scale;
             store(out + i, choose(kept(i, first, second, threshold) & (ints)(y > 0), y)),
             out[i] = kept_one(i, first, second, threshold) && x[i] > 0 ? x[i] * scale : 0)
}

/* What flows back through it: where something came out. */
void regard_dropout_relu_backward(const float *out, const float *g, float *dx, int64_t from, int64_t to, int64_t size,
                                  float scale) {
    FOR_EACH(store(dx + i, choose((ints)(load(out + i) > 0), load(g + i) * scale)),
             dx[i] = out[i] > 0 ? g[i] * scale : 0)
}
