/* The operators' computations on plain arrays. export/operators.py defines each operator in ONNX's operators.
 *
 * A sum runs over a sentence's values in a fixed order, so a value's bits depend neither on the other sentences of the
 * batch nor on the padding.
 */
#ifndef HEEDFUL_KERNELS_H
#define HEEDFUL_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* rows.c: x (rows, width), one row after the other */
void round_rows(const float* x, int64_t rows, int64_t width, uint8_t* bytes, float* scales);
typedef void Rescale(const float* x, const float* scales, const float* bias, int64_t rows, int64_t width, float* y);
Rescale rescale, rescale_relu, rescale_elu;
void blend(const float* share, const float* a, const float* b, int64_t rows, int64_t width, float* y);

/* words.c: a word's row of a table in 4 bits; steps and least are in float16 */
void decode_row(const uint8_t* row, const _Float16* steps, const _Float16* least, int64_t blocks, int64_t size,
                float* vector);

/* pooling.c: a sentence of L tokens, D features */
void token_softmax(const float* scores, const bool* hidden, int64_t L, int64_t D, float* weights);
void token_maximum(const float* values, const bool* hidden, int64_t L, int64_t D, float* largest);
void weighted_sum(const float* weights, const float* values, int64_t L, int64_t D, float* sum);

/* directional.c; `work` has directional_work(L) floats */
int64_t directional_work(int64_t L);
void directional_attention(const float* queries, const float* allowed, const float* keys, const float* values,
                           int64_t B, int64_t L, int64_t D, float c, float* work, float* s);

/* guided.c: a head of `size` features; the rows of q, k and v are `stride` floats apart, `work` has
 * guided_work(L, size) floats
 */
int64_t guided_work(int64_t L, int64_t size);
void guided_weights(const float* q, const float* k, const float* penalty, const bool* hidden, int64_t L, int64_t size,
                    int64_t stride, float divisor, float* work, float* weights);
void mix_values(const float* weights, const float* v, int64_t L, int64_t size, int64_t stride, float* mixed);

/* guided.c: false where a head is no token; `work` has tree_work(L) words of 64 bits */
int64_t tree_work(int64_t L);
bool tree_distance(const int64_t* heads, int64_t L, uint64_t* work, float* distance);

#endif
