/* MS-SAN's multi-mask attention, eq. (6), and the distances in the dependency tree that guide it. */
#include <float.h>

#include "kernels.h"
#include "vectors.h"

INLINE int64_t padded(int64_t L) { return (L + LANES - 1) / LANES * LANES; }

int64_t guided_work(int64_t L, int64_t size) { return (size + 1) * padded(L); }

void guided_weights(const float* q, const float* k, const float* penalty, const bool* hidden, int64_t L, int64_t size,
                    int64_t stride, float divisor, float* work, float* weights) {
  int64_t width = padded(L);
  float *transposed = work, *scores = work + size * width; /* transposed k: (size, width) */
  for (int64_t t = 0; t < size; t++)
    for (int64_t j = 0; j < width; j++) transposed[t * width + j] = j < L ? k[j * stride + t] : 0;
  for (int64_t i = 0; i < L; i++, q += stride, penalty += L, hidden += L, weights += L) {
    Floats total = {0};
    float maximum = -FLT_MAX;
    for (int64_t at = 0; at < width; at += LANES) {
      Floats product = {0};
      for (int64_t t = 0; t < size; t++) product += q[t] * load(transposed + t * width + at, LANES);
      store(scores + at, product / divisor, LANES);
    }
    for (int64_t j = 0; j < width; j++) {
      scores[j] = j < L && !hidden[j] ? scores[j] - penalty[j] : -FLT_MAX;
      maximum = scores[j] > maximum ? scores[j] : maximum;
    }
    for (int64_t at = 0; at < width; at += LANES) {
      Floats score = load(scores + at, LANES);
      Floats power = choose(score == -FLT_MAX, all(0), exponential(score - maximum));
      total += power;
      store(scores + at, power, LANES);
    }
    float share = 1.0f / sum_of(total);
    for (int64_t j = 0; j < L; j++) weights[j] = scores[j] * share;
  }
}

void mix_values(const float* weights, const float* v, int64_t L, int64_t size, int64_t stride, float* mixed) {
  for (int64_t i = 0; i < L; i++, weights += L, mixed += stride)
    for (int64_t at = 0; at < size; at += LANES) {
      int64_t t = block(at, size);
      Floats sum = {0};
      for (int64_t j = 0; j < L; j++)
        if (weights[j] != 0) sum += weights[j] * load(v + j * stride + t, size);
      store(mixed + t, sum, size);
    }
}

int64_t tree_work(int64_t L) { return L * ((L + 63) / 64); }

/* From each token's set of ancestors, including itself: the path between two tokens has the nodes of only one set. */
bool tree_distance(const int64_t* heads, int64_t L, uint64_t* work, float* distance) {
  int64_t words = (L + 63) / 64;
  for (int64_t i = 0; i < L; i++) {
    uint64_t* ancestors = work + i * words;
    for (int64_t w = 0; w < words; w++) ancestors[w] = 0;
    for (int64_t at = i; !(ancestors[at / 64] >> (at % 64) & 1); at = heads[at]) {
      ancestors[at / 64] |= (uint64_t)1 << (at % 64);
      if (heads[at] < 0 || heads[at] >= L) return false;
    }
  }
  for (int64_t i = 0; i < L; i++)
    for (int64_t j = 0; j < L; j++) {
      int64_t nodes = 0;
      for (int64_t w = 0; w < words; w++) nodes += __builtin_popcountll(work[i * words + w] ^ work[j * words + w]);
      distance[i * L + j] = (float)nodes;
    }
  return true;
}
