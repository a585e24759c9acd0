/* SIMD vectors of as many floats as the processor holds, by the vector extensions of gcc and clang. */
#pragma once
#include <math.h>
#include <stdint.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float unaligned_vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* Loads p [LANES], which need not be aligned. */
static inline vec vec_load(const float *p) { return *(const unaligned_vec *)p; }

/* Stores all lanes to p [LANES], which need not be aligned. */
static inline void vec_store(float *p, vec x) { *(unaligned_vec *)p = x; }

/* x in every lane. */
static inline vec vec_splat(float x) { return x - (vec){0}; }

/* Reductions across lanes, by halves: a few shuffles instead of a chain of additions. */
#if LANES == 16
typedef float half __attribute__((vector_size(32)));
typedef float quarter __attribute__((vector_size(16)));
#define REDUCE_TO_HALF(x, join)                                            \
    half h0 = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);       \
    half h1 = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15); \
    half h = join(h0, h1);
#else
typedef float quarter __attribute__((vector_size(16)));
typedef vec half;
#define REDUCE_TO_HALF(x, join) half h = x;
#endif
#define REDUCE(x, join)                                                                                     \
    REDUCE_TO_HALF(x, join)                                                                                 \
    quarter q0 = __builtin_shufflevector(h, h, 0, 1, 2, 3), q1 = __builtin_shufflevector(h, h, 4, 5, 6, 7); \
    quarter q = join(q0, q1);                                                                               \
    quarter r = __builtin_shufflevector(q, q, 2, 3, 0, 1);                                                  \
    q = join(q, r);                                                                                         \
    r = __builtin_shufflevector(q, q, 1, 0, 3, 2);                                                          \
    q = join(q, r);                                                                                         \
    return q[0];
#define ADD(a, b) ((a) + (b))
#define MAX(a, b) \
    ((__typeof__(a))((((a) > (b)) & (__typeof__((a) > (b)))(a)) | (~((a) > (b)) & (__typeof__((a) > (b)))(b))))
/* The sum of all lanes. */
static inline float vec_reduce_add(vec x) { REDUCE(x, ADD) }

/* The largest of all lanes. */
static inline float vec_reduce_max(vec x) { REDUCE(x, MAX) }
