/* Word tables in 4 bits: export/weight_storage.py, Int4Table. */
#include <math.h>
#include <string.h>

#include "kernels.h"

/* float16 has 5 bits of exponent, biased by 15, and 10 of fraction. */
static float from_half(uint16_t half) {
  uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 0) return ldexpf(half >> 15 ? -(float)fraction : (float)fraction, -24);
  uint32_t bits = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The product of a code of 4 bits and a step of 11 bits is exact, so a fused multiply-add gives the same bits. */
void decode_row(const uint8_t* row, const uint16_t* steps, const uint16_t* least, int64_t blocks, int64_t size,
                float* vector) {
  for (int64_t d = 0; d < blocks * size / 2; d++) {
    vector[2 * d] = (float)(row[d] & 15);
    vector[2 * d + 1] = (float)(row[d] >> 4);
  }
  for (int64_t block = 0; block < blocks; block++, vector += size) {
    float step = from_half(steps[block]), minimum = from_half(least[block]);
    for (int64_t d = 0; d < size; d++) vector[d] = vector[d] * step + minimum;
  }
}
