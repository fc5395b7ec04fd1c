/* The operators of the domain "heedful" for ONNX Runtime, as export/operators.py defines them.
 *
 * Each reads its inputs, checks their shapes and calls a kernel on the arrays. A graph that holds an operator holds its
 * definition too, so that it also runs without this library, more slowly.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"
#include "onnxruntime/onnxruntime_c_api.h"

enum { MAX_DIMENSIONS = 5, MAX_INPUTS = 5 };

typedef struct {
  const void* data;
  int64_t shape[MAX_DIMENSIONS];
  size_t rank;
  int64_t size; /* number of elements */
} Tensor;

static const OrtApi* ort;

#define TRY(call)                 \
  do {                            \
    OrtStatusPtr failed = (call); \
    if (failed) return failed;    \
  } while (0)

typedef struct Operator Operator;
typedef OrtStatusPtr Run(const Operator* op, OrtKernelContext* context, const Tensor* in);
struct Operator {
  OrtCustomOp interface; /* the first member: its address is the operator's */
  const char* name;
  Run* run;           /* checks the shapes of its inputs `in`, and makes and fills its outputs */
  const char* inputs; /* a letter each: f float32, h float16, b boolean, i int64, u uint8 */
  const char* outputs;
  Rescale* kernel; /* of the three that rescale */
};

static OrtStatusPtr unfit(const Operator* op, const char* condition) {
  char message[256];
  snprintf(message, sizeof message, "heedful.%s: inputs do not fit: %s", op->name, condition);
  return ort->CreateStatus(ORT_INVALID_ARGUMENT, message);
}
#define EXPECT(condition)                           \
  do {                                              \
    if (!(condition)) return unfit(op, #condition); \
  } while (0)

static OrtStatusPtr read_tensor(OrtKernelContext* context, size_t index, Tensor* tensor) {
  const OrtValue* value;
  TRY(ort->KernelContext_GetInput(context, index, &value));
  OrtTensorTypeAndShapeInfo* info;
  TRY(ort->GetTensorTypeAndShape(value, &info));
  OrtStatusPtr status = ort->GetDimensionsCount(info, &tensor->rank);
  if (!status && tensor->rank > MAX_DIMENSIONS)
    status = ort->CreateStatus(ORT_INVALID_ARGUMENT, "heedful: an input has more than five dimensions");
  if (!status) status = ort->GetDimensions(info, tensor->shape, tensor->rank);
  ort->ReleaseTensorTypeAndShapeInfo(info);
  if (status) return status;
  tensor->size = 1;
  for (size_t i = 0; i < tensor->rank; i++) tensor->size *= tensor->shape[i];
  void* data;
  TRY(ort->GetTensorMutableData((OrtValue*)value, &data)); /* the interface has no other way to read */
  tensor->data = data;
  return NULL;
}

static OrtStatusPtr make(OrtKernelContext* context, size_t index, const int64_t* shape, size_t rank, void** data) {
  OrtValue* value;
  TRY(ort->KernelContext_GetOutput(context, index, shape, rank, &value));
  return ort->GetTensorMutableData(value, data);
}

static bool has_shape(const Tensor* tensor, size_t rank, const int64_t* shape) {
  for (size_t i = 0; i < rank && i < tensor->rank; i++)
    if (tensor->shape[i] != shape[i]) return false;
  return tensor->rank == rank;
}
static bool same_shape(const Tensor* a, const Tensor* b) { return has_shape(a, b->rank, b->shape); }
#define SHAPED(tensor, rank, ...) has_shape(tensor, rank, (const int64_t[]){__VA_ARGS__})

static OrtStatusPtr scratch(int64_t bytes, void** work) {
  *work = malloc(bytes > 0 ? (size_t)bytes : 1);
  return *work ? NULL : ort->CreateStatus(ORT_FAIL, "heedful: out of memory");
}

/* (.., D) -> bytes (.., D), scales (.., 1) */
static OrtStatusPtr run_round_rows(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  Tensor x = *in;
  void *bytes, *scales;
  EXPECT(x.rank > 0);
  int64_t width = x.shape[x.rank - 1];
  TRY(make(context, 0, x.shape, x.rank, &bytes));
  x.shape[x.rank - 1] = 1;
  TRY(make(context, 1, x.shape, x.rank, &scales));
  round_rows(x.data, width ? x.size / width : 0, width, bytes, scales);
  return NULL;
}

/* x (.., D), scales (.., 1), bias (D) -> (.., D) */
static OrtStatusPtr run_rescale(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void* y;
  const Tensor *x = &in[0], *scales = &in[1], *bias = &in[2];
  EXPECT(x->rank > 0 && bias->rank == 1 && bias->size == x->shape[x->rank - 1]);
  EXPECT(scales->size * bias->size == x->size);
  TRY(make(context, 0, x->shape, x->rank, &y));
  op->kernel(x->data, scales->data, bias->data, scales->size, bias->size, y);
  return NULL;
}

/* share, a, b (.., D) -> (.., D) */
static OrtStatusPtr run_blend(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void* y;
  EXPECT(in[0].rank > 0 && same_shape(&in[0], &in[1]) && same_shape(&in[0], &in[2]));
  TRY(make(context, 0, in[0].shape, in[0].rank, &y));
  int64_t width = in[0].shape[in[0].rank - 1];
  blend(in[0].data, in[1].data, in[2].data, width ? in[0].size / width : 0, width, y);
  return NULL;
}

/* scores (B, L, D), hidden (B, L, 1) -> weights (B, L, D) */
static OrtStatusPtr run_token_softmax(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void* weights;
  EXPECT(in[0].rank == 3 && SHAPED(&in[1], 3, in[0].shape[0], in[0].shape[1], 1));
  int64_t B = in[0].shape[0], L = in[0].shape[1], D = in[0].shape[2];
  TRY(make(context, 0, in[0].shape, 3, &weights));
  for (int64_t b = 0; b < B; b++)
    token_softmax((const float*)in[0].data + b * L * D, (const bool*)in[1].data + b * L, L, D,
                  (float*)weights + b * L * D);
  return NULL;
}

/* values (B, L, D), hidden (B, L, 1) -> (B, D) */
static OrtStatusPtr run_token_maximum(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void* largest;
  EXPECT(in[0].rank == 3 && SHAPED(&in[1], 3, in[0].shape[0], in[0].shape[1], 1));
  int64_t B = in[0].shape[0], L = in[0].shape[1], D = in[0].shape[2];
  TRY(make(context, 0, (const int64_t[]){B, D}, 2, &largest));
  for (int64_t b = 0; b < B; b++)
    token_maximum((const float*)in[0].data + b * L * D, (const bool*)in[1].data + b * L, L, D, (float*)largest + b * D);
  return NULL;
}

/* rows (V, D/2), steps and least (V, blocks), ids (..) -> (.., D) */
static OrtStatusPtr run_word_vectors(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void* vectors;
  const Tensor *rows = &in[0], *steps = &in[1], *ids = &in[3];
  EXPECT(rows->rank == 2 && steps->rank == 2 && rows->shape[0] == steps->shape[0]);
  EXPECT(same_shape(steps, &in[2]) && ids->rank < MAX_DIMENSIONS);
  int64_t D = 2 * rows->shape[1], blocks = steps->shape[1];
  EXPECT(blocks > 0 && D % blocks == 0);
  int64_t shape[MAX_DIMENSIONS];
  memcpy(shape, ids->shape, ids->rank * sizeof *shape);
  shape[ids->rank] = D;
  TRY(make(context, 0, shape, ids->rank + 1, &vectors));
  for (int64_t i = 0; i < ids->size; i++) {
    int64_t id = ((const int64_t*)ids->data)[i];
    EXPECT(id >= 0 && id < rows->shape[0]);
    decode_row((const uint8_t*)rows->data + id * D / 2, (const _Float16*)steps->data + id * blocks,
               (const _Float16*)in[2].data + id * blocks, blocks, D / blocks, (float*)vectors + i * D);
  }
  return NULL;
}

/* weights, values (B, L, D) -> (B, D) */
static OrtStatusPtr run_weighted_sum(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void* sum;
  EXPECT(in[0].rank == 3 && same_shape(&in[0], &in[1]));
  int64_t B = in[0].shape[0], L = in[0].shape[1], D = in[0].shape[2];
  TRY(make(context, 0, (const int64_t[]){B, D}, 2, &sum));
  for (int64_t b = 0; b < B; b++)
    weighted_sum((const float*)in[0].data + b * L * D, (const float*)in[1].data + b * L * D, L, D, (float*)sum + b * D);
  return NULL;
}

/* queries (L, B, 1, D), allowed (L, B, 1, L), keys and values (B, L, D), c () -> (L, B, 1, D) */
static OrtStatusPtr run_directional_attention(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void *s, *work;
  EXPECT(in[2].rank == 3 && same_shape(&in[2], &in[3]) && in[4].size == 1);
  int64_t B = in[2].shape[0], L = in[2].shape[1], D = in[2].shape[2];
  EXPECT(SHAPED(&in[0], 4, L, B, 1, D) && SHAPED(&in[1], 4, L, B, 1, L));
  TRY(make(context, 0, in[0].shape, 4, &s));
  TRY(scratch(directional_work(L) * (int64_t)sizeof(float), &work));
  directional_attention(in[0].data, in[1].data, in[2].data, in[3].data, B, L, D, *(const float*)in[4].data, work, s);
  free(work);
  return NULL;
}

/* queries, keys (B, L, D), penalty (B or 1, 1, H, L, L), hidden (B or 1, G, 1, L, L), divisor () -> (B, G, H, L, L) */
static OrtStatusPtr run_guided_weights(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void *weights, *work;
  EXPECT(in[0].rank == 3 && same_shape(&in[0], &in[1]) && in[4].size == 1);
  EXPECT(in[2].rank == 5 && in[3].rank == 5);
  int64_t B = in[0].shape[0], L = in[0].shape[1], D = in[0].shape[2], H = in[2].shape[2], G = in[3].shape[1];
  int64_t penalties = in[2].shape[0] == 1 ? 1 : B, masks = in[3].shape[0] == 1 ? 1 : B;
  EXPECT(SHAPED(&in[2], 5, penalties, 1, H, L, L) && SHAPED(&in[3], 5, masks, G, 1, L, L));
  EXPECT(G * H > 0 && D % (G * H) == 0);
  TRY(make(context, 0, (const int64_t[]){B, G, H, L, L}, 5, &weights));
  int64_t size = D / (G * H);
  TRY(scratch(guided_work(L, size) * (int64_t)sizeof(float), &work));
  for (int64_t b = 0; b < B; b++)
    for (int64_t head = 0; head < G * H; head++) {
      int64_t at = b * L * D + head * size;
      guided_weights((const float*)in[0].data + at, (const float*)in[1].data + at,
                     (const float*)in[2].data + (b % penalties * H + head % H) * L * L,
                     (const bool*)in[3].data + (b % masks * G + head / H) * L * L, L, size, D,
                     *(const float*)in[4].data, work, (float*)weights + (b * G * H + head) * L * L);
    }
  free(work);
  return NULL;
}

/* weights (B, G, H, L, L), values (B, L, D) -> (B, L, D) */
static OrtStatusPtr run_mix_values(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void* mixed;
  EXPECT(in[0].rank == 5 && in[1].rank == 3);
  int64_t B = in[1].shape[0], L = in[1].shape[1], D = in[1].shape[2], heads = in[0].shape[1] * in[0].shape[2];
  EXPECT(SHAPED(&in[0], 5, B, in[0].shape[1], in[0].shape[2], L, L) && heads > 0 && D % heads == 0);
  TRY(make(context, 0, in[1].shape, 3, &mixed));
  int64_t size = D / heads;
  for (int64_t b = 0; b < B; b++)
    for (int64_t head = 0; head < heads; head++) {
      int64_t at = b * L * D + head * size;
      mix_values((const float*)in[0].data + (b * heads + head) * L * L, (const float*)in[1].data + at, L, size, D,
                 (float*)mixed + at);
    }
  return NULL;
}

/* heads (B, L) -> (B, L, L) */
static OrtStatusPtr run_tree_distance(const Operator* op, OrtKernelContext* context, const Tensor* in) {
  void *distance, *work;
  EXPECT(in->rank == 2);
  int64_t B = in->shape[0], L = in->shape[1];
  TRY(make(context, 0, (const int64_t[]){B, L, L}, 3, &distance));
  TRY(scratch(tree_work(L) * (int64_t)sizeof(uint64_t), &work));
  bool known = true;
  for (int64_t b = 0; known && b < B; b++)
    known = tree_distance((const int64_t*)in->data + b * L, L, work, (float*)distance + b * L * L);
  free(work);
  EXPECT(known);
  return NULL;
}

static Operator operators[] = {
    {.name = "RoundRows", .run = run_round_rows, .inputs = "f", .outputs = "uf"},
    {.name = "Rescale", .run = run_rescale, .inputs = "fff", .outputs = "f", .kernel = rescale},
    {.name = "RescaleRelu", .run = run_rescale, .inputs = "fff", .outputs = "f", .kernel = rescale_relu},
    {.name = "RescaleElu", .run = run_rescale, .inputs = "fff", .outputs = "f", .kernel = rescale_elu},
    {.name = "Blend", .run = run_blend, .inputs = "fff", .outputs = "f"},
    {.name = "TokenSoftmax", .run = run_token_softmax, .inputs = "fb", .outputs = "f"},
    {.name = "TokenMaximum", .run = run_token_maximum, .inputs = "fb", .outputs = "f"},
    {.name = "WordVectors", .run = run_word_vectors, .inputs = "uhhi", .outputs = "f"},
    {.name = "WeightedSum", .run = run_weighted_sum, .inputs = "ff", .outputs = "f"},
    {.name = "DirectionalAttention", .run = run_directional_attention, .inputs = "fffff", .outputs = "f"},
    {.name = "GuidedWeights", .run = run_guided_weights, .inputs = "fffbf", .outputs = "f"},
    {.name = "MixValues", .run = run_mix_values, .inputs = "ff", .outputs = "f"},
    {.name = "TreeDistance", .run = run_tree_distance, .inputs = "i", .outputs = "f"},
};

static ONNXTensorElementDataType type_of(char letter) {
  switch (letter) {
    case 'b': return ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
    case 'h': return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
    case 'i': return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    case 'u': return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
    default: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
}

static const Operator* as_operator(const OrtCustomOp* op) { return (const Operator*)op; }
static const char* get_name(const OrtCustomOp* op) { return as_operator(op)->name; }
static const char* get_provider(const OrtCustomOp* op) {
  (void)op;
  return NULL; /* the CPU's */
}
static size_t get_input_count(const OrtCustomOp* op) { return strlen(as_operator(op)->inputs); }
static size_t get_output_count(const OrtCustomOp* op) { return strlen(as_operator(op)->outputs); }
static ONNXTensorElementDataType get_input_type(const OrtCustomOp* op, size_t i) {
  return type_of(as_operator(op)->inputs[i]);
}
static ONNXTensorElementDataType get_output_type(const OrtCustomOp* op, size_t i) {
  return type_of(as_operator(op)->outputs[i]);
}
static OrtCustomOpInputOutputCharacteristic get_characteristic(const OrtCustomOp* op, size_t i) {
  (void)op, (void)i;
  return INPUT_OUTPUT_REQUIRED;
}
static OrtMemType get_memory_type(const OrtCustomOp* op, size_t i) {
  (void)op, (void)i;
  return OrtMemTypeDefault;
}
static OrtStatusPtr create(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info, void** state) {
  (void)api, (void)info;
  *state = (void*)op; /* the kernel has no state but the operator */
  return NULL;
}
static OrtStatusPtr compute(void* state, OrtKernelContext* context) {
  const Operator* op = state;
  Tensor in[MAX_INPUTS];
  for (size_t i = 0; op->inputs[i]; i++) TRY(read_tensor(context, i, &in[i]));
  return op->run(op, context, in);
}
static void destroy(void* state) { (void)state; }

static OrtCustomOpDomain* domain; /* for the life of the process: sessions borrow it */

static void make_domain(void) {
  OrtCustomOpDomain* created;
  OrtStatusPtr status = ort->CreateCustomOpDomain("heedful", &created);
  for (size_t i = 0; !status && i < sizeof operators / sizeof *operators; i++) {
    OrtCustomOp* op = &operators[i].interface;
    op->version = ORT_API_VERSION;
    op->GetName = get_name;
    op->GetExecutionProviderType = get_provider;
    op->GetInputType = get_input_type;
    op->GetInputTypeCount = get_input_count;
    op->GetOutputType = get_output_type;
    op->GetOutputTypeCount = get_output_count;
    op->GetInputCharacteristic = get_characteristic;
    op->GetOutputCharacteristic = get_characteristic;
    op->GetInputMemoryType = get_memory_type;
    op->CreateKernelV2 = create;
    op->KernelComputeV2 = compute;
    op->KernelDestroy = destroy;
    status = ort->CustomOpDomain_Add(created, op);
  }
  if (status)
    ort->ReleaseStatus(status);
  else
    domain = created;
}

#define PUBLIC __attribute__((visibility("default")))

/* Whether this processor has all instructions that this build uses (setup.py, BUILDS). */
PUBLIC int runs_here(void) {
#if defined(__AVX512F__)
  return __builtin_cpu_supports("x86-64-v4") != 0;
#elif defined(__AVX2__)
  return __builtin_cpu_supports("x86-64-v3") != 0;
#else
  return 1;
#endif
}

/* ONNX Runtime calls this when a session registers the library. */
PUBLIC OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  ort = base->GetApi(ORT_API_VERSION);
  if (!ort) return base->GetApi(1)->CreateStatus(ORT_FAIL, "heedful's kernels need ONNX Runtime 1.23 or later");
  pthread_once(&once, make_domain);
  if (!domain) return ort->CreateStatus(ORT_FAIL, "heedful's kernels could not be described to ONNX Runtime");
  return ort->AddCustomOpDomain(options, domain);
}
