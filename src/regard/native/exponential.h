/* e^x and what is made of it, for vectors. Include this first: sums here must not be reordered. */
#pragma once
#if defined(__clang__)
#pragma clang fp reassociate(off)
#elif defined(__GNUC__)
#pragma GCC optimize("no-associative-math")
#endif
#include "vectors.h"
#include <string.h>

typedef int32_t whole __attribute__((vector_size(LANES * 4)));

/* The first n lanes of what is at p, the others filled; and the way back. */
static inline vec load_part(const float *p, int64_t n, float fill) {
    if (n >= LANES) return load(p);
    vec x = splat(fill);
    memcpy(&x, p, n * sizeof(float));
    return x;
}

static inline void store_part(float *p, vec x, int64_t n) {
    if (n >= LANES)
        store(p, x);
    else
        memcpy(p, &x, n * sizeof(float));
}

static inline vec either(whole mask, vec yes, vec no) { return (vec)((mask & (whole)yes) | (~mask & (whole)no)); }

static inline vec higher(vec a, vec b) { return either((whole)(a > b), a, b); }

/* e^x for x <= 0 to about two roundings: 2^n by the exponent's bits, the rest by a polynomial (Cephes' coefficients).
 * Below -87 it is 0. */
static inline vec exponential(vec x) {
    whole n = __builtin_convertvector(x * 1.44269504f - 0.5f, whole); /* rounds towards zero, so to the nearest */
    vec turns = __builtin_convertvector(n, vec);
    vec r = x - turns * 0.693359375f;
    r = r + turns * 2.12194440e-4f;
    vec p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    vec result = p * (vec)((n + 127) << 23);
    return either((whole)(x < -87.0f), splat(0), result); /* NaN compares false and stays NaN */
}

static inline vec negative_magnitude(vec x) { return (vec)((whole)x | INT32_MIN); }

/* Both to about one rounding of 1, which is what a gate needs. */
static inline vec sigmoid(vec x) {
    vec e = exponential(negative_magnitude(x));
    vec small = e / (1.0f + e);
    return either((whole)(x < 0.0f), small, 1.0f - small);
}

static inline vec hyperbolic(vec x) {
    vec e = exponential(2.0f * negative_magnitude(x));
    vec t = (1.0f - e) / (1.0f + e);
    return either((whole)(x < 0.0f), -t, t);
}
