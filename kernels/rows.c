/* The steps before and after an integer product, each in one pass over a row. */
#include <math.h>

#include "kernels.h"
#include "vectors.h"

static const float SMALLEST = 1e-30f; /* the largest value of a row of zeros */
static const int ZERO = 128;          /* the byte of 0 */

void round_rows(const float* x, int64_t rows, int64_t width, uint8_t* bytes, float* scales) {
  for (int64_t row = 0; row < rows; row++, x += width, bytes += width) {
    float largest = SMALLEST;
    for (int64_t d = 0; d < width; d++) {
      float size = fabsf(x[d]);
      largest = size > largest ? size : largest;
    }
    float scale = largest * (1.0f / 127.0f), inverse = 1.0f / scale;
    for (int64_t at = 0; at < width; at += LANES) {
      int64_t d = block(at, width);
      Ints steps = __builtin_convertvector(rounded(quotient(load(x + d, width), scale, inverse)), Ints);
      Bytes result = __builtin_convertvector(steps + ZERO, Bytes);
      if (width >= LANES)
        memcpy(bytes + d, &result, LANES);
      else
        memcpy(bytes + d, &result, (size_t)width);
    }
    scales[row] = scale;
  }
}

void rescale(const float* x, const float* scales, const float* bias, int64_t rows, int64_t width, float* y) {
  for (int64_t row = 0; row < rows; row++, x += width, y += width)
    for (int64_t d = 0; d < width; d++) y[d] = x[d] * scales[row] + bias[d];
}

void rescale_relu(const float* x, const float* scales, const float* bias, int64_t rows, int64_t width, float* y) {
  for (int64_t row = 0; row < rows; row++, x += width, y += width)
    for (int64_t d = 0; d < width; d++) {
      float shifted = x[d] * scales[row] + bias[d];
      y[d] = shifted > 0 ? shifted : 0;
    }
}

void rescale_elu(const float* x, const float* scales, const float* bias, int64_t rows, int64_t width, float* y) {
  const Floats none = {0};
  for (int64_t row = 0; row < rows; row++, x += width, y += width)
    for (int64_t at = 0; at < width; at += LANES) {
      int64_t d = block(at, width);
      Floats shifted = load(x + d, width) * scales[row] + load(bias + d, width);
      store(y + d, larger(shifted, none) + (exponential(smaller(shifted, none)) - 1.0f), width);
    }
}

void blend(const float* share, const float* a, const float* b, int64_t rows, int64_t width, float* y) {
  for (int64_t row = 0; row < rows; row++, share += width, a += width, b += width, y += width)
    for (int64_t d = 0; d < width; d++) y[d] = share[d] * a[d] + (1.0f - share[d]) * b[d];
}
