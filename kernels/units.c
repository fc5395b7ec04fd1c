/* Rows of length 1. */
#include <float.h>
#include <math.h>

#include "kernels.h"

/* In doubles: squares of the largest floats stay finite. */
void unit_rows(const float* x, int64_t rows, int64_t width, int64_t stride, float* y, int64_t y_stride) {
  enum { SUMS = 16 };
  for (int64_t row = 0; row < rows; row++, x += stride, y += y_stride) {
    double sums[SUMS] = {0}, sum = 0;
    int64_t whole = width - width % SUMS;
    for (int64_t at = 0; at < whole; at += SUMS)
      for (int i = 0; i < SUMS; i++) sums[i] += (double)x[at + i] * x[at + i];
    for (int i = 0; i < SUMS; i++) sum += sums[i];
    for (int64_t d = whole; d < width; d++) sum += (double)x[d] * x[d];
    double length = sqrt(sum);
    length = length > DBL_MIN ? length : DBL_MIN; /* a row of zeros stays */
    for (int64_t d = 0; d < width; d++) y[d] = (float)(x[d] / length);
  }
}
