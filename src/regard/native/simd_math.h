/* Exponential, sigmoid and tanh of SIMD vectors.
 *
 * Include this before any other header: sums must not be reordered in the polynomials, nor in any file that includes
 * this, so that results are reproducible and batch-invariant.
 */
#pragma once
#if defined(__clang__)
#pragma clang fp reassociate(off)
#elif defined(__GNUC__)
#pragma GCC optimize("no-associative-math")
#endif
#include "simd.h"
#include <string.h>

typedef int32_t ivec __attribute__((vector_size(LANES * 4)));

/* Loads the first n lanes from p [n], and `fill` into the others. */
static inline vec vec_load_partial(const float *p, int64_t n, float fill) {
    if (n >= LANES) return vec_load(p);
    vec x = vec_splat(fill);
    memcpy(&x, p, n * sizeof(float));
    return x;
}

/* Stores the first n lanes to p [n]. */
static inline void vec_store_partial(float *p, vec x, int64_t n) {
    if (n >= LANES)
        vec_store(p, x);
    else
        memcpy(p, &x, n * sizeof(float));
}

/* The lanes of `yes` where the mask is all ones, of `no` where it is zero. */
static inline vec vec_blend(ivec mask, vec yes, vec no) { return (vec)((mask & (ivec)yes) | (~mask & (ivec)no)); }

/* The larger of a and b, lane by lane; b where either is NaN. */
static inline vec vec_max(vec a, vec b) { return vec_blend((ivec)(a > b), a, b); }

/* e^x for x <= 0, to about two roundings: 2^n by the exponent's bits, the rest by a polynomial (coefficients of
 * Cephes). Below -87 the result is 0. */
static inline vec vec_exp(vec x) {
    ivec n = __builtin_convertvector(x * 1.44269504f - 0.5f, ivec); /* truncates, so rounds to the nearest */
    vec n_float = __builtin_convertvector(n, vec);
    vec r = x - n_float * 0.693359375f;
    r = r + n_float * 2.12194440e-4f;
    vec p = vec_splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    vec result = p * (vec)((n + 127) << 23);
    return vec_blend((ivec)(x < -87.0f), vec_splat(0), result); /* NaN compares false and stays NaN */
}

/* -|x|, by setting the sign bit. */
static inline vec vec_negative_abs(vec x) { return (vec)((ivec)x | INT32_MIN); }

/* Sigmoid to an absolute error of about one rounding of 1, which is enough for gates. */
static inline vec vec_sigmoid(vec x) {
    vec e = vec_exp(vec_negative_abs(x));
    vec small = e / (1.0f + e);
    return vec_blend((ivec)(x < 0.0f), small, 1.0f - small);
}

/* Tanh to the same absolute error as vec_sigmoid. */
static inline vec vec_tanh(vec x) {
    vec e = vec_exp(2.0f * vec_negative_abs(x));
    vec t = (1.0f - e) / (1.0f + e);
    return vec_blend((ivec)(x < 0.0f), -t, t);
}
