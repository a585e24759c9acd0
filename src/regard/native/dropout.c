/* Dropout from a counter: whether element i is kept is a hash of i and the call's key, so nothing random is stored,
 * the backward pass asks the same question again, and any number of threads gives the same answer. The same hash in
 * tensor algebra is in models/dropout.py, and the two agree bit for bit.
 */
#include "exponential.h"

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

/* All ones where element start + lane is kept, else zero. */
static inline ints kept(int64_t start, uint32_t first, uint32_t second, uint32_t threshold) {
    ints at;
    for (int lane = 0; lane < LANES; lane++) at[lane] = (uint32_t)start + lane;
    /* The high half is the same for all lanes: callers start at multiples of LANES. */
    return (ints)(mixed(mixed(at ^ first) + (second + (uint32_t)(start >> 32))) >= threshold);
}

static inline vec choose(ints mask, vec x) { return (vec)(mask & (ints)x); }

/* from and to count blocks of this many elements. The last vector may be part of one: one path for all elements, so that
 * each is rounded in the same way wherever it lies. */
#define BLOCK 1024
#define FOR_EACH(BODY)                                                        \
    to = to * BLOCK < size ? to * BLOCK : size;                               \
    for (int64_t i = from * BLOCK; i < to; i += LANES) {                      \
        int64_t n = to - i;                                                   \
        BODY                                                                  \
    }
#define AT(p) load_part(p + i, n, 0)
#define KEPT kept(i, first, second, threshold)

/* out = x kept and scaled, or 0 */
void regard_dropout(const float *x, float *out, int64_t from, int64_t to, int64_t size, int64_t first, int64_t second,
                    int64_t threshold, float scale) {
    FOR_EACH(store_part(out + i, choose(KEPT, AT(x) * scale), n);)
}

/* out = residual + dropout(x) */
void regard_dropout_add(const float *x, const float *residual, float *out, int64_t from, int64_t to, int64_t size,
                        int64_t first, int64_t second, int64_t threshold, float scale) {
    FOR_EACH(store_part(out + i, AT(residual) + choose(KEPT, AT(x) * scale), n);)
}

/* out = dropout(max(x, 0)); NaN stays NaN */
void regard_dropout_relu(const float *x, float *out, int64_t from, int64_t to, int64_t size, int64_t first,
                         int64_t second, int64_t threshold, float scale) {
    FOR_EACH(vec v = AT(x); store_part(out + i, choose(KEPT & ~(ints)(v <= 0.0f), v * scale), n);)
}

/* What flows back through it: where something came out. */
void regard_dropout_relu_backward(const float *out, const float *g, float *dx, int64_t from, int64_t to, int64_t size,
                                  float scale) {
    FOR_EACH(store_part(dx + i, choose((ints)(AT(out) > 0.0f), AT(g) * scale), n);)
}
