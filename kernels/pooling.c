/* Attention over the tokens for each feature, MS-SAN eq. (11) and DiSAN's source2token; and each feature's maximum. */
#include <float.h>

#include "kernels.h"
#include "vectors.h"

void token_softmax(const float* scores, const bool* hidden, int64_t L, int64_t D, float* weights) {
  for (int64_t at = 0; at < D; at += LANES) {
    int64_t d = block(at, D);
    Floats maximum = all(-FLT_MAX), total = {0};
    for (int64_t i = 0; i < L; i++)
      if (!hidden[i]) maximum = larger(maximum, load(scores + i * D + d, D));
    for (int64_t i = 0; i < L; i++) {
      Floats power = {0};
      if (!hidden[i]) power = exponential(load(scores + i * D + d, D) - maximum);
      total += power;
      store(weights + i * D + d, power, D);
    }
    Floats share = 1.0f / total;
    for (int64_t i = 0; i < L; i++) {
      float* weight = weights + i * D + d;
      store(weight, load(weight, D) * share, D);
    }
  }
}

void weighted_sum(const float* weights, const float* values, int64_t L, int64_t D, float* sum) {
  for (int64_t at = 0; at < D; at += LANES) {
    int64_t d = block(at, D);
    Floats total = {0};
    for (int64_t i = 0; i < L; i++) total += load(weights + i * D + d, D) * load(values + i * D + d, D);
    store(sum + d, total, D);
  }
}

void token_maximum(const float* values, const bool* hidden, int64_t L, int64_t D, float* largest) {
  for (int64_t at = 0; at < D; at += LANES) {
    int64_t d = block(at, D);
    Floats maximum = all(-FLT_MAX);
    for (int64_t i = 0; i < L; i++)
      if (!hidden[i]) maximum = larger(maximum, load(values + i * D + d, D));
    store(largest + d, maximum, D);
  }
}
