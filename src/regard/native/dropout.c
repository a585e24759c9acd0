/* Counter-based dropout: whether element i is kept is a hash of i and the call's key, so no mask is stored, the
 * backward pass computes the same hash, and the result does not depend on the number of threads. The same hash in
 * tensor algebra is in models/dropout.py, and the two agree bit for bit.
 */
#include "simd_math.h"
#include "regard.h"

typedef uint32_t uvec __attribute__((vector_size(LANES * 4)));

/* One round of an integer hash with low bias (two multiplications). keep_mask applies two, each after a half of the
 * key.
 */
static inline uvec mix(uvec x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

/* All ones where element start + lane is kept, else zero. */
static inline uvec keep_mask(int64_t start, uint32_t key_low, uint32_t key_high, uint32_t threshold) {
    uvec index;
    for (int lane = 0; lane < LANES; lane++) index[lane] = (uint32_t)start + lane;
    /* The high half is the same for all lanes: callers start at multiples of LANES. */
    return (uvec)(mix(mix(index ^ key_low) + (key_high + (uint32_t)(start >> 32))) >= threshold);
}

/* x where the mask is all ones, 0 where it is zero. */
static inline vec mask_select(uvec mask, vec x) { return (vec)(mask & (uvec)x); }

/* start and stop count blocks of BLOCK elements. The last vector may be partial: all elements take the same path, so
 * that each is rounded in the same way wherever it is. */
#define BLOCK 1024
#define FOR_EACH(BODY)                                      \
    stop = stop * BLOCK < size ? stop * BLOCK : size;       \
    for (int64_t i = start * BLOCK; i < stop; i += LANES) { \
        int64_t n = stop - i;                               \
        BODY                                                \
    }
#define LOAD(p) vec_load_partial(p + i, n, 0)
#define KEEP keep_mask(i, key_low, key_high, threshold)

/* x [size] -> out [size]: x * scale where an element is kept, else 0. */
void regard_dropout_forward(const float *x, float *out, int64_t start, int64_t stop, int64_t size, int64_t key_low,
                            int64_t key_high, int64_t threshold, float scale) {
    FOR_EACH(vec_store_partial(out + i, mask_select(KEEP, LOAD(x) * scale), n);)
}

/* x, residual [size] -> out [size]: residual + dropout(x). */
void regard_dropout_add_forward(const float *x, const float *residual, float *out, int64_t start, int64_t stop,
                                int64_t size, int64_t key_low, int64_t key_high, int64_t threshold, float scale) {
    FOR_EACH(vec_store_partial(out + i, LOAD(residual) + mask_select(KEEP, LOAD(x) * scale), n);)
}

/* x [size] -> out [size]: dropout(max(x, 0)). NaN is not <= 0, so it stays NaN where it is kept. */
void regard_dropout_relu_forward(const float *x, float *out, int64_t start, int64_t stop, int64_t size, int64_t key_low,
                                 int64_t key_high, int64_t threshold, float scale) {
    FOR_EACH(vec v = LOAD(x); vec_store_partial(out + i, mask_select(KEEP & ~(uvec)(v <= 0.0f), v * scale), n);)
}

/* out, g [size] -> dx [size]: g * scale where out > 0, else 0. Dropped elements are 0 in out: no hash is needed. */
void regard_dropout_relu_backward(const float *out, const float *g, float *dx, int64_t start, int64_t stop,
                                  int64_t size, float scale) {
    FOR_EACH(vec_store_partial(dx + i, mask_select((uvec)(LOAD(out) > 0.0f), LOAD(g) * scale), n);)
}
