/* regard.h: everything that the C library of regard exports. This header is its manual.
 *
 * Two kinds of functions:
 *
 * - Kernels: inner loops of attention, recurrent cells, dropout and losses that PyTorch cannot fuse. A kernel computes
 *   a range [start, stop) of its outermost index, which its comment names, so that threads can share the work.
 * - Models: a trained sequence-to-sequence model and its beam search, without PyTorch.
 *
 * Rules that hold for every function, unless its comment says otherwise:
 *
 * - Shapes: arrays are dense, row-major float32; [a, b] is an array of a rows and b columns. Arrays may not overlap.
 * - Ownership: the caller owns every array. Nothing is kept after the call returns. What a `_new` function returns is
 *   freed by the `_free` function of the same name, which accepts NULL.
 * - Threads: there is no global state. A kernel may run in several threads at once, on disjoint ranges of the same
 *   arrays.
 * - Errors: a function that can fail returns a regard_status (or NULL where it returns a pointer). Nothing is printed
 *   and the process is never ended.
 *
 * Letters: B batch, H heads of queries, G heads of keys, Tq queries, Tk keys, D width, V vocabulary, N slices (B x H).
 *
 * The library is compiled on the machine that runs it, from the sources beside this header. native/abi.py mirrors the
 * structs and enums below; whoever changes one of them changes both, and increments REGARD_ABI_VERSION. The two are
 * compared, field by field, when the library is loaded.
 */
#ifndef REGARD_H
#define REGARD_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define REGARD_API __attribute__((visibility("default")))
#else
#define REGARD_API
#endif

#define REGARD_ABI_VERSION 1

/* ---- enums -------------------------------------------------------------------------------------------------- */

typedef enum regard_status {
    REGARD_OK = 0,
    REGARD_OUT_OF_MEMORY = 1,
    REGARD_INVALID_ARGUMENT = 2, /* a mistake of the caller's; where there is an error buffer, it says which */
} regard_status;

/* The first entries of every vocabulary. */
typedef enum regard_special_token {
    REGARD_TOKEN_PAD = 0,
    REGARD_TOKEN_UNK = 1,
    REGARD_TOKEN_BOS = 2,
    REGARD_TOKEN_EOS = 3,
} regard_special_token;

typedef enum regard_architecture {
    REGARD_ARCHITECTURE_TRANSFORMER = 0,
    REGARD_ARCHITECTURE_RECURRENT = 1,
} regard_architecture;

/* Of a Transformer's feed-forward layers. The last two are gated: the inner layer is twice as wide. */
typedef enum regard_activation {
    REGARD_ACTIVATION_RELU = 0,
    REGARD_ACTIVATION_GELU = 1,
    REGARD_ACTIVATION_GELU_TANH = 2,
    REGARD_ACTIVATION_SILU = 3,
    REGARD_ACTIVATION_SWIGLU = 4,
    REGARD_ACTIVATION_GEGLU = 5,
} regard_activation;

/* When a recurrent decoder attends: before its cells (Bahdanau et al. 2015), after them (Luong et al. 2015), never. */
typedef enum regard_attend {
    REGARD_ATTEND_NEVER = 0,
    REGARD_ATTEND_BEFORE = 1,
    REGARD_ATTEND_AFTER = 2,
} regard_attend;

/* How a recurrent decoder scores a query q and a key k: v tanh(W q + b + U k); (W q) k; or q k, k being projected where
 * its width differs. */
typedef enum regard_score {
    REGARD_SCORE_ADDITIVE = 0,
    REGARD_SCORE_BILINEAR = 1,
    REGARD_SCORE_DOT = 2,
} regard_score;

/* Which source positions a recurrent decoder attends to: all, or a window around the step or a predicted position. */
typedef enum regard_extent {
    REGARD_EXTENT_GLOBAL = 0,
    REGARD_EXTENT_LOCAL_M = 1,
    REGARD_EXTENT_LOCAL_P = 2,
} regard_extent;

/* ---- compiled constants -------------------------------------------------------------------------------------- */

/* A compile-time constant of this header: "sizeof(regard_tensor)", "offsetof(regard_tensor, name)", or the name of an
 * enum's value. */
typedef struct regard_abi_constant {
    const char *name;
    int64_t value;
} regard_abi_constant;

/* REGARD_ABI_VERSION of the compiled library. Thread-safe. */
REGARD_API int64_t regard_abi_version(void);

/* The sizes and offsets of all structs here and the values of all enums, as they were compiled: `*count` of them. The
 * library owns the array, which lives as long as the library is loaded. Thread-safe. */
REGARD_API const regard_abi_constant *regard_abi_constants(int64_t *count);

/* Floats in a SIMD vector. Some kernels require widths that are multiples of it. Thread-safe. */
REGARD_API int64_t regard_simd_lanes(void);

/* 1 if this processor multiplies int8 faster than float32 (AVX-512 VNNI), else 0: then int8 layers compute in float32.
 * Thread-safe. */
REGARD_API int64_t regard_int8_supported(void);

/* ---- additive attention (Bahdanau et al. 2015) -------------------------------------------------------------- */

/* scores[n, i, j] = sum_d v[n % H, d] tanh(a[n, i, d] + b[n, j, d])
 *
 * q [N, Tq, width] = f(a) and k [N, Tk, width] = f(b), with f(x) = e^2x, or e^2x - 1 if expm1_form is not 0 (more
 * accurate where all |x| are small); v [H, width]; width is a multiple of regard_simd_lanes(), padded with zeros
 * -> scores [N, Tq, Tk].
 * Range: the N * Tq queries. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_additive_scores_forward(const float *q, const float *k, const float *v, float *scores,
                                               int64_t start, int64_t stop, int64_t heads, int64_t tq, int64_t tk,
                                               int64_t width, int64_t expm1_form);

/* Gradients of regard_additive_scores_forward with respect to a, b and v, from g [N, Tq, Tk], that of the scores:
 * da [N, Tq, width], db [N, Tk, width] (which the caller has set to zero), dv [N, width] (one row a slice; the caller
 * adds up the slices of a head).
 * Range: the N * width / regard_simd_lanes() vectors of columns. The caller owns all arrays. Threads may share the work
 * by disjoint ranges. */
REGARD_API void regard_additive_scores_backward(const float *q, const float *k, const float *v, const float *g,
                                                float *da, float *db, float *dv, int64_t start, int64_t stop,
                                                int64_t heads, int64_t tq, int64_t tk, int64_t width,
                                                int64_t expm1_form);

/* Additive attention of one query per example, as a recurrent decoder needs it at each step: scores, softmax, weighted
 * sum.
 *
 * q [B, width] and keys [B, Tk, width] are e^2x as above; v [width]; values [B, Tk, depth]; mask [B, Tk] is 0 where a
 * key is absent; width and depth are multiples of regard_simd_lanes()
 * -> weights [B, Tk], context [B, depth]; both are 0 for an example without keys.
 * Range: the B examples. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_attention_step_forward(const float *q, const float *keys, const float *v, const float *values,
                                              const uint8_t *mask, float *weights, float *context, int64_t start,
                                              int64_t stop, int64_t tk, int64_t width, int64_t depth);

/* Gradients of regard_attention_step_forward, from dcontext [B, depth] and dweights [B, Tk] (or NULL for zeros):
 * dq [B, width] is written; dkeys [B, Tk, width], still to be multiplied by 4 v, and dv [B, width] are added to, so
 * that they can collect the steps of a sentence; dscores [B, Tk] is written, the gradient of the scores. Range: the B
 * examples. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_attention_step_backward(const float *q, const float *keys, const float *v, const float *values,
                                               const float *weights, const float *dcontext, const float *dweights,
                                               float *dq, float *dkeys, float *dv, float *dscores, int64_t start,
                                               int64_t stop, int64_t tk, int64_t width, int64_t depth);

/* ---- softmax attention over short sequences ----------------------------------------------------------------- */

/* out = softmax(scale q k') v for Tk <= 128 and widths <= 128 that are multiples of regard_simd_lanes().
 *
 * q [B, H, Tq, width], k [B, G, Tk, width], v [B, G, Tk, value_width] and out [B, H, Tq, value_width] may have any
 * strides in B, heads and T, the last dimension being dense: strides [4, 3] are the strides of q, k, v and out, in
 * elements, of batch, head and time. H is a multiple of G. mask is [mask_rows, Tk] (uint8, 0 where a key is absent; 1
 * row for all examples, or B), or NULL for all keys; absent keys are never read. causal: query i attends to keys up to
 * position i + offset. weights [B, H, Tq, Tk rounded up to regard_simd_lanes()] hold, of each query, the weights of the
 * keys that are present, one after the other; the rest is undefined. A query without keys gets zeros.
 * Range: the B * G pairs of example and key head. The caller owns all arrays. Threads may share the work by disjoint
 * ranges. */
REGARD_API void regard_short_attention_forward(const float *q, const float *k, const float *v, const uint8_t *mask,
                                               float *out, float *weights, int64_t start, int64_t stop,
                                               int64_t key_heads, int64_t heads, int64_t tq, int64_t tk, int64_t width,
                                               int64_t value_width, const int64_t *strides, int64_t mask_rows,
                                               int64_t causal, int64_t offset, float scale);

/* Gradients of regard_short_attention_forward, from its weights and g, the gradient of out: dq is written, dk and dv,
 * which the caller has set to zero, are added to. strides [7, 3] are those of q, k, v, g, dq, dk and dv.
 * Range: the B * G pairs of example and key head. The caller owns all arrays. Threads may share the work by disjoint
 * ranges. */
REGARD_API void regard_short_attention_backward(const float *q, const float *k, const float *v, const uint8_t *mask,
                                                const float *weights, const float *g, float *dq, float *dk, float *dv,
                                                int64_t start, int64_t stop, int64_t key_heads, int64_t heads,
                                                int64_t tq, int64_t tk, int64_t width, int64_t value_width,
                                                const int64_t *strides, int64_t mask_rows, int64_t causal,
                                                int64_t offset, float scale);

/* ---- sparse normalizers ------------------------------------------------------------------------------------- */

/* Sparsemax (Martins and Astudillo 2016) of rows: x [rows, size] -> p [rows, size]. A row with a NaN becomes NaN.
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_sparsemax_forward(const float *x, float *p, int64_t start, int64_t stop, int64_t size);

/* The gradient of regard_sparsemax_forward, from its result p and g: all [rows, size] -> dx [rows, size].
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_sparsemax_backward(const float *p, const float *g, float *dx, int64_t start, int64_t stop,
                                          int64_t size);

/* Entmax with alpha = 1.5 (Peters et al. 2019) of rows: x [rows, size] -> p [rows, size]. A row with a NaN becomes NaN.
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_entmax15_forward(const float *x, float *p, int64_t start, int64_t stop, int64_t size);

/* The gradient of regard_entmax15_forward, from its result p and g: all [rows, size] -> dx [rows, size].
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_entmax15_backward(const float *p, const float *g, float *dx, int64_t start, int64_t stop,
                                         int64_t size);

/* ---- recurrent cells ---------------------------------------------------------------------------------------- */

/* The element-wise half of a GRU cell (Cho et al. 2014), with the reset gate after the product, as in PyTorch:
 * x = W input + b and s = U h + c [rows, 3 width], in the order r, z, n; h [rows, width]
 * -> out [rows, width], the new state; gates [rows, 4 width] = r, z, n and s_n, for the backward pass.
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_gru_forward(const float *x, const float *s, const float *h, float *out, float *gates,
                                   int64_t start, int64_t stop, int64_t width);

/* Gradients of regard_gru_forward, from dout [rows, width] and its gates: dx and ds [rows, 3 width], dh [rows, width]
 * (only the part that does not go through s).
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_gru_backward(const float *dout, const float *h, const float *gates, float *dx, float *ds,
                                    float *dh, int64_t start, int64_t stop, int64_t width);

/* The element-wise half of an LSTM cell: x = W input + b and s = U h + c [rows, 4 width], in the order i, f, g, o;
 * cell [rows, width]
 * -> out [rows, width], the new state; new_cell [rows, width]; gates [rows, 5 width] = i, f, g, o and tanh(new_cell),
 * for the backward pass.
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_lstm_forward(const float *x, const float *s, const float *cell, float *out, float *new_cell,
                                    float *gates, int64_t start, int64_t stop, int64_t width);

/* Gradients of regard_lstm_forward, from dout and dnew_cell [rows, width] and its gates: dx [rows, 4 width], which is
 * also the gradient of s, and dcell [rows, width].
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_lstm_backward(const float *dout, const float *dnew_cell, const float *cell, const float *gates,
                                     float *dx, float *dcell, int64_t start, int64_t stop, int64_t width);

/* ---- dropout ------------------------------------------------------------------------------------------------ */

/* out = dropout(x): x[i] * scale where element i is kept, else 0. x and out [size].
 *
 * Element i is kept if a hash of i and the key (two halves of 32 bits) is at least threshold, which is the probability
 * of dropping times 2^32: reproducible, and the backward pass is the same call on the gradient.
 * Range: the blocks of 1024 elements. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_dropout_forward(const float *x, float *out, int64_t start, int64_t stop, int64_t size,
                                       int64_t key_low, int64_t key_high, int64_t threshold, float scale);

/* out = residual + dropout(x), all [size]; the rest as in regard_dropout_forward.
 * Range: the blocks of 1024 elements. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_dropout_add_forward(const float *x, const float *residual, float *out, int64_t start,
                                           int64_t stop, int64_t size, int64_t key_low, int64_t key_high,
                                           int64_t threshold, float scale);

/* out = dropout(max(x, 0)), both [size]; NaN stays NaN; the rest as in regard_dropout_forward.
 * Range: the blocks of 1024 elements. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_dropout_relu_forward(const float *x, float *out, int64_t start, int64_t stop, int64_t size,
                                            int64_t key_low, int64_t key_high, int64_t threshold, float scale);

/* The gradient of regard_dropout_relu_forward, from its result out and g: dx = g * scale where out > 0, else 0. All
 * [size].
 * Range: the blocks of 1024 elements. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_dropout_relu_backward(const float *out, const float *g, float *dx, int64_t start, int64_t stop,
                                             int64_t size, float scale);

/* ---- losses ------------------------------------------------------------------------------------------------- */

/* Cross-entropy with label smoothing, and its gradient in place.
 *
 * logits [rows, size], float32, or bfloat16 if bfloat16 is not 0; bias [size], added to them, or NULL; targets [rows]
 * -> loss [rows] = -log p(target), smoothing_loss [rows] = mean of -log p. If gradient is not 0, the logits become the
 * gradient of (1 - smoothing) loss + smoothing smoothing_loss. A row that is not finite has a loss of NaN.
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_cross_entropy_compute(void *logits, const float *bias, const int64_t *targets, float *loss,
                                             float *smoothing_loss, int64_t start, int64_t stop, int64_t size,
                                             int64_t bfloat16, int64_t gradient, float smoothing);

/* R-Drop (Liang et al. 2021): cross-entropy of two passes over the same rows, and the mean of the KL divergences
 * between them, with their gradients in place.
 *
 * a and b [rows, size]: the logits of the passes, which become the gradients of both losses + weight * divergence; the
 * rest as in regard_cross_entropy_compute -> loss and smoothing_loss [rows], summed over the passes; divergence [rows].
 * Range: the rows. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API void regard_rdrop_compute(void *a, void *b, const float *bias, const int64_t *targets, float *loss,
                                     float *smoothing_loss, float *divergence, int64_t start, int64_t stop,
                                     int64_t size, int64_t bfloat16, float smoothing, float weight);

/* ---- maximum flow ------------------------------------------------------------------------------------------- */

/* The maximum flow between pairs of nodes of one graph, as attention flow (Abnar and Zuidema 2020) needs it.
 *
 * from, to [edges] (int32) are the ends of each edge and capacity [edges] (double) its capacity; sources, sinks [pairs]
 * (int32) -> out [pairs] (double).
 * Returns REGARD_OUT_OF_MEMORY, having written nothing, if there is no memory for the search.
 * Range: the pairs. The caller owns all arrays. Threads may share the work by disjoint ranges. */
REGARD_API int32_t regard_max_flow_compute(const int32_t *from, const int32_t *to, const double *capacity,
                                           const int32_t *sources, const int32_t *sinks, double *out, int64_t start,
                                           int64_t stop, int64_t nodes, int64_t edges);

/* ---- an int8 linear layer, for models that run in PyTorch --------------------------------------------------- */

/* A weight quantized to int8 with one scale per output. */
typedef struct regard_int8_linear regard_int8_linear;

/* weight [outputs, inputs], bias [outputs] or NULL. Both are copied. NULL if there is no memory. The caller frees the
 * layer by regard_int8_linear_free. Thread-safe. */
REGARD_API regard_int8_linear *regard_int8_linear_new(const float *weight, const float *bias, int64_t outputs,
                                                      int64_t inputs);

/* x [rows, inputs] -> out [rows, outputs] = x weight' + bias. Each row of x is quantized with its own scale, so that a
 * row's result does not depend on the other rows. Computes in float32 where regard_int8_supported() is 0, and if there
 * is no memory.
 * Range: the rows. The caller owns all arrays; the layer is only read. Threads may share the work by disjoint ranges,
 * and use the same layer. */
REGARD_API void regard_int8_linear_forward(const float *x, float *out, int64_t start, int64_t stop,
                                           const regard_int8_linear *layer);

/* Frees a layer; NULL is accepted. No other thread may be using it. */
REGARD_API void regard_int8_linear_free(regard_int8_linear *layer);

/* ---- sequence-to-sequence models ---------------------------------------------------------------------------- */

/* A model's weights and settings, immutable once it is made. */
typedef struct regard_model regard_model;

/* A weight, found by its name. */
typedef struct regard_tensor {
    const char *name;
    const float *data;
    int64_t dimensions; /* 1 or 2 */
    int64_t shape[2];   /* the second is 1 if there is one dimension */
} regard_tensor;

/* A number that describes the model, found by its name. Integers, flags (0 or 1) and enums are exact as double. */
typedef struct regard_setting {
    const char *name;
    double value;
} regard_setting;

/* What a model is made from. Order means nothing: tensors and settings are found by name. One that is missing, of
 * another shape or out of its range is an error, and so is one that the model does not read.
 *
 * Settings of a Transformer: `width`, `rms_norm` (flag: RMSNorm, else LayerNorm), `norm_epsilon`, `output_bias` (flag),
 * and for SIDE in encoder, decoder: `SIDE.layers`, `SIDE.heads`,
 * `SIDE.feedforward_width`, `SIDE.activation` (regard_activation), `SIDE.pre_norm` (flag), `SIDE.vocabulary_size`,
 * `SIDE.positions` (0 without position embeddings), `SIDE.embedding_scale`.
 *
 * Tensors of a Transformer (D = width, F = feedforward_width; a `linear` has NAME.weight [outputs, inputs] and
 * NAME.bias [outputs]; a `norm` has NAME.weight [D], and NAME.bias [D] unless rms_norm):
 *
 *     SIDE.embedding.weight [vocabulary_size, D]
 *     SIDE.position_embedding.weight [positions, D]           if positions > 0
 *     SIDE.layers.I.self_attention_norm                       norm
 *     SIDE.layers.I.self_attention.query_key_value            linear D -> 3 D
 *     SIDE.layers.I.self_attention.output                     linear D -> D
 *     decoder.layers.I.cross_attention_norm                   norm
 *     decoder.layers.I.cross_attention.query                  linear D -> D
 *     decoder.layers.I.cross_attention.key_value              linear D -> 2 D
 *     decoder.layers.I.cross_attention.output                 linear D -> D
 *     SIDE.layers.I.feedforward_norm                          norm
 *     SIDE.layers.I.feedforward.inner                         linear D -> F, or 2 F if the activation is gated
 *     SIDE.layers.I.feedforward.outer                         linear F -> D
 *     SIDE.norm                                               norm, if pre_norm
 *     output.weight [decoder.vocabulary_size, D]
 *     output.bias [decoder.vocabulary_size]                   if output_bias
 *
 * Settings of a recurrent model: for SIDE in encoder, decoder: `SIDE.embedding_width`, `SIDE.width`, `SIDE.layers`,
 * `SIDE.lstm` (flag: LSTM, else GRU), `SIDE.vocabulary_size`; `encoder.bidirectional` (flag), `encoder.reverse` (flag:
 * reads from the end), `decoder.attend` (regard_attend), `decoder.context_every_step` (flag: the encoder's summary is
 * an input of every step), `decoder.input_feeding` (flag), `output_bias` (flag), `attention.score` (regard_score),
 * `attention.features` (the width in which queries meet keys: M if the score is bilinear, D if it is dot),
 * `attention.hard` (flag: the best position only), `attention.extent` (regard_extent), `attention.scale` (of dot
 * products), `attention.radius` (of local extents).
 *
 * Tensors of a recurrent model (S, C: the encoder's embedding_width and width; M: C, or 2 C if bidirectional; E, D: the
 * decoder's embedding_width and width; A: attention.features; gates: 4 for LSTM, 3 for GRU; X: M if it attends before
 * its cells or has the context at every step, D with input feeding, else 0):
 *
 *     encoder.embedding.weight [encoder.vocabulary_size, S]
 *     encoder.forward.I.input                                 linear S (M for I > 0) -> gates C
 *     encoder.forward.I.state                                 linear C -> gates C
 *     encoder.backward.I.input, encoder.backward.I.state      the same, if bidirectional
 *     decoder.embedding.weight [decoder.vocabulary_size, E]
 *     decoder.initial_state                                   linear M -> layers D
 *     decoder.cells.I.input                                   linear E + X (D for I > 0) -> gates D
 *     decoder.cells.I.state                                   linear D -> gates D
 *     attention.query                                         linear D -> A, if the score is additive; without bias, if
 *                                                             it is bilinear
 *     attention.key                                           linear M -> A, without bias, if the score is additive;
 *                                                             with bias, if it is dot and M is not D
 *     attention.v [A]                                         if the score is additive
 *     attention.position.weight [D, D], attention.position.v [D]   if the extent is local-p
 *     decoder.combine                                         linear M + D -> D, if it attends after its cells
 *     decoder.readout                                         linear E + M + D -> 2 E (maxout), if it attends before
 *                                                             its cells or has the context at every step;
 *                                                             else D -> E, if they differ
 *     output.weight [decoder.vocabulary_size, E]
 *     output.bias [decoder.vocabulary_size]                   if output_bias
 *
 * The inputs of decoder.cells.0.input and decoder.readout are [embedding, context or fed-back state, state]. */
typedef struct regard_model_description {
    int64_t struct_size;  /* sizeof(regard_model_description) */
    int64_t architecture; /* regard_architecture */
    int64_t int8;         /* not 0: quantize linear layers to int8, where regard_int8_supported() */
    const regard_tensor *tensors;
    int64_t tensor_count;
    const regard_setting *settings;
    int64_t setting_count;
} regard_model_description;

/* Makes a model. `*model` is the model, or NULL if the status is not REGARD_OK.
 *
 * REGARD_INVALID_ARGUMENT: `error` (room for error_size bytes) then says in words which tensor or setting is missing,
 * misshapen or unknown. All tensors are copied: nothing of the description is needed after the call. The caller frees
 * the model by regard_model_free. Thread-safe. */
REGARD_API int32_t regard_model_new(const regard_model_description *description, regard_model **model, char *error,
                                    int64_t error_size);

/* Frees a model; NULL is accepted. No other thread may be using it. */
REGARD_API void regard_model_free(regard_model *model);

/* The input of a search, and the buffers of its result. */
typedef struct regard_search_request {
    int64_t struct_size; /* sizeof(regard_search_request) */
    int64_t source_count;
    const int64_t *source_tokens;     /* all sources, one after the other, each with its REGARD_TOKEN_EOS */
    const int64_t *source_offsets;    /* [source_count + 1]: source b is from source_offsets[b] to [b + 1] */
    const int64_t *max_lengths;       /* [source_count]: of each output, with its end; at most max_length */
    const int32_t *shortlist_tokens;  /* the tokens that each source's output may have, one list after the other, each
                                         beginning with the special tokens; or NULL for the whole vocabulary */
    const int64_t *shortlist_offsets; /* [source_count + 1], or NULL */
    int64_t beam_size;
    int64_t nbest;           /* hypotheses per source; at most beam_size */
    int64_t patient;         /* 0: a search ends with beam_size finished hypotheses; else it continues until none of the
                              unfinished scores higher than the worst of the nbest */
    int64_t max_length;      /* the largest of max_lengths */
    double length_penalty;   /* a hypothesis' score is its log-probability / length ^ length_penalty */
    int32_t *output_tokens;  /* [source_count, nbest, max_length]: best first, with the end */
    int64_t *output_lengths; /* [source_count, nbest]; 0 where there is no hypothesis */
    float *output_log_probs; /* [source_count, nbest] */
} regard_search_request;

/* Beam search (greedy with a beam of 1) of all sources together. Each source's result is the same bit for bit as if it
 * were searched alone. Where the model's outputs are not finite, a source has no hypothesis.
 *
 * REGARD_OUT_OF_MEMORY: the outputs are undefined. REGARD_INVALID_ARGUMENT: the request has another struct_size. The
 * caller owns all arrays of the request. Thread-safe: the model is only read, so threads may search with it at once,
 * each with its own request. */
REGARD_API int32_t regard_model_search(const regard_model *model, const regard_search_request *request);

#ifdef __cplusplus
}
#endif
#endif
