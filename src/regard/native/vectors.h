/* Vectors of as many floats as the processor holds, by the vector extensions of gcc and clang.
 *
 * All matrices are dense, row-major float32 unless a function says otherwise. Each exported function works on a range
 * of its outermost index, so that threads can share the work.
 */
#pragma once
#include <math.h>
#include <stdint.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float vec_at __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

static inline vec load(const float *p) { return *(const vec_at *)p; }
static inline void store(float *p, vec x) { *(vec_at *)p = x; }
static inline vec splat(float x) { return x - (vec){0}; }
static inline float sum(vec x) {
    float s = 0;
    for (int i = 0; i < LANES; i++) s += x[i];
    return s;
}
