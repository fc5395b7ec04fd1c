/* Vectors of as many floats as a register of the target processor holds. */
#ifndef HEEDFUL_VECTORS_H
#define HEEDFUL_VECTORS_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float Floats __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t Ints __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef uint8_t Bytes __attribute__((vector_size(LANES)));

#define INLINE static inline __attribute__((always_inline))

/* Where the block of LANES begins that covers `at`: the last one overlaps the one before, and computes the same again.
 */
INLINE int64_t block(int64_t at, int64_t width) { return at + LANES <= width || width < LANES ? at : width - LANES; }

INLINE Floats load(const float* from, int64_t width) {
  Floats x = {0};
  if (width >= LANES)
    memcpy(&x, from, sizeof x);
  else
    memcpy(&x, from, (size_t)width * sizeof(float));
  return x;
}

INLINE void store(float* to, Floats x, int64_t width) {
  if (width >= LANES)
    memcpy(to, &x, sizeof x);
  else
    memcpy(to, &x, (size_t)width * sizeof(float));
}

INLINE Floats all(float x) { return x - (Floats){0}; }
/* a where `mask`, the result of a comparison, is all ones; b where it is 0. */
INLINE Floats choose(Ints mask, Floats a, Floats b) { return (Floats)(((Ints)a & mask) | ((Ints)b & ~mask)); }
INLINE Floats larger(Floats a, Floats b) { return choose(a > b, a, b); }
INLINE Floats smaller(Floats a, Floats b) { return choose(a < b, a, b); }

/* The sum of the lanes, always in the same order. */
INLINE float sum_of(Floats x) {
  for (int half = LANES / 2; half; half /= 2)
    for (int lane = 0; lane < half; lane++) x[lane] += x[lane + half];
  return x[0];
}

/* The nearest whole number, the even one of two, for x in [-2^22, 2^22]: adding 1.5 x 2^23 leaves no fraction. */
INLINE Floats rounded(Floats x) { return (x + 12582912.0f) - 12582912.0f; }

/* e^x for x up to 88; what is below -87 counts as -87. Within 2 units of the last place: x = n ln 2 + r, and a
 * polynomial in r (Cephes' expf).
 */
INLINE Floats exponential(Floats x) {
  x = larger(x, all(-87.0f));
  Floats n = rounded(x * 1.44269504f);
  Floats r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  Ints power = (__builtin_convertvector(n, Ints) + 127) << 23;
  return p * (Floats)power;
}

/* x / by, where `inverse` is 1 / by: with a fused multiply-add the rounded product and its rest make the same bits as a
 * division, in a fifth of the time (Markstein).
 */
INLINE Floats quotient(Floats x, float by, float inverse) {
#ifdef __FMA__
  Floats q = x * inverse;
  return q + (x - q * by) * inverse;
#else
  (void)inverse;
  return x / by;
#endif
}

/* 1/x for x in [1e-37, 1e37], within 2 units of the last place: a first guess from the exponent's bits, and three of
 * Newton's steps. Processors divide in three times the time.
 */
INLINE Floats reciprocal(Floats x) {
  Floats guess = (Floats)(0x7EF311C7 - (Ints)x);
  for (int step = 0; step < 3; step++) guess = guess * (2.0f - x * guess);
  return guess;
}

#endif
