/* Word tables in 4 bits: export/weight_storage.py, Int4Table. */
#include "kernels.h"

/* The product of a code of 4 bits and a step of 11 bits is exact, so a fused multiply-add gives the same bits. */
void decode_row(const uint8_t* row, const _Float16* steps, const _Float16* least, int64_t blocks, int64_t size,
                float* vector) {
  for (int64_t d = 0; d < blocks * size / 2; d++) {
    vector[2 * d] = (float)(row[d] & 15);
    vector[2 * d + 1] = (float)(row[d] >> 4);
  }
  for (int64_t block = 0; block < blocks; block++, vector += size) {
    float step = (float)steps[block], minimum = (float)least[block];
    for (int64_t d = 0; d < size; d++) vector[d] = vector[d] * step + minimum;
  }
}
