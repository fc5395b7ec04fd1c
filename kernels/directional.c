/* DiSAN's token2token attention, eq. (15) and (11): a weight for every pair of tokens and every feature. */
#include "kernels.h"
#include "vectors.h"

/* Keys and queries are clipped to this: e^80 is a float32, and tanh of their sum is exact unless both are clipped. A
 * trained encoder's are below 10.
 */
static const float BOUND = 40.0f;

INLINE Floats power_of(Floats x, float factor) {
  return exponential(factor * smaller(larger(x, all(-BOUND)), all(BOUND)));
}

int64_t directional_work(int64_t L) { return 2 * L * LANES; }

/* The weight of a pair is e^(c tanh(k + q)), and tanh(x) = 1 - 2 / (1 + e^2x). The factor e^c is in every weight and
 * cancels in the mean. The rest is e^(-2c K / (K + Q)) with K = e^-2k and Q = e^2q: the tanh of each pair becomes a
 * quotient, and K and Q are computed once for each token.
 */
void directional_attention(const float* queries, const float* allowed, const float* keys, const float* values,
                           int64_t B, int64_t L, int64_t D, float c, float* work, float* s) {
  float *K = work, *h = work + L * LANES;
  for (int64_t b = 0; b < B; b++, keys += L * D, values += L * D)
    for (int64_t at = 0; at < D; at += LANES) {
      int64_t d = block(at, D);
      for (int64_t i = 0; i < L; i++) {
        store(K + i * LANES, power_of(load(keys + i * D + d, D), -2.0f), LANES);
        store(h + i * LANES, load(values + i * D + d, D), LANES);
      }
      for (int64_t j = 0; j < L; j++) {
        const float* row = allowed + (j * B + b) * L;
        Floats q = power_of(load(queries + (j * B + b) * D + d, D), 2.0f), total = {0}, sum = {0};
        for (int64_t i = 0; i < L; i++) {
          if (row[i] == 0) continue;
          Floats k = load(K + i * LANES, LANES);
          Floats weight = exponential(-2.0f * c * k * reciprocal(k + q));
          total += weight;
          sum += weight * load(h + i * LANES, LANES);
        }
        store(s + (j * B + b) * D + d, total[0] > 0 ? sum / total : total, D);
      }
    }
}
