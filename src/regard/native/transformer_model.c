/* A Transformer (Vaswani et al. 2017) that encodes sources of any length together, without padding, and decodes step by
 * step.
 *
 * Sources lie one after the other: what is computed per token is one product over all of them, what is computed per
 * source is a loop. Keys and values of earlier tokens stay where they were written: a hypothesis knows in which row of
 * its source's beam it was at each step.
 */
#include "weights.h"
#include <stdio.h>

#define MAX_SIZE (INT64_C(1) << 31)

typedef struct {
    float *weight, *bias; /* bias NULL: RMSNorm */
    float epsilon;
} Norm;

typedef struct {
    Norm self_norm, cross_norm, feedforward_norm;
    Linear self_qkv, self_output, cross_query, cross_key_value, cross_output, inner, outer;
} Layer;

/* The encoder or the decoder. */
typedef struct {
    int64_t layer_count, heads, feedforward_width, activation, pre_norm, vocabulary_size, positions;
    float embedding_scale;
    float *embedding;          /* [vocabulary_size, D] */
    float *position_embedding; /* [positions, D] or NULL */
    Layer *layers;
    Norm norm;
} Stack;

typedef struct {
    regard_model base;
    int64_t width;
    Stack encoder, decoder;
} Transformer;

/* ---- reading and freeing ---- */

/* Whether the inner layer is twice as wide, and one half of it is the gate of the other. */
static int is_gated(int64_t activation) { return activation >= REGARD_ACTIVATION_SWIGLU; }

typedef struct {
    int64_t rms;
    float epsilon;
} NormSettings;

/* Reads PREFIX.NAME.weight [width] and, unless it is an RMSNorm, PREFIX.NAME.bias [width]. To be freed by free_norm. */
static void read_norm(WeightReader *r, Norm *norm, int64_t width, const NormSettings *norms, const char *prefix,
                      const char *name) {
    norm->weight = weights_copy(r, width, 0, "%s.%s.weight", prefix, name);
    norm->bias = norms->rms ? NULL : weights_copy(r, width, 0, "%s.%s.bias", prefix, name);
    norm->epsilon = norms->epsilon;
}

/* Reads the linear layer PREFIX.NAME with its bias; `m` must be zero. To be freed by linear_free. */
static void read_linear(WeightReader *r, Linear *m, int64_t outputs, int64_t inputs, const char *prefix,
                        const char *name) {
    weights_linear(r, m, outputs, inputs, 1, "%s.%s", prefix, name);
}

/* Reads the settings and weights of one side, "encoder" or "decoder", of width D. Errors are reported to `r`. To be
 * freed by free_stack, also then. */
static void read_stack(WeightReader *r, Stack *s, int64_t D, const NormSettings *norms, const char *side,
                       int is_decoder) {
    *s = (Stack){.layer_count = weights_integer(r, side, "layers", 0, MAX_SIZE),
                 .heads = weights_integer(r, side, "heads", 1, MAX_SIZE),
                 .feedforward_width = weights_integer(r, side, "feedforward_width", 1, MAX_SIZE),
                 .activation = weights_integer(r, side, "activation", 0, REGARD_ACTIVATION_GEGLU),
                 .pre_norm = weights_integer(r, side, "pre_norm", 0, 1),
                 .vocabulary_size = weights_integer(r, side, "vocabulary_size", REGARD_TOKEN_EOS + 1, MAX_SIZE),
                 .positions = weights_integer(r, side, "positions", 0, MAX_SIZE),
                 .embedding_scale = weights_number(r, side, "embedding_scale")};
    if (!r->status && D % s->heads)
        weights_fail(r, REGARD_INVALID_ARGUMENT, "setting %s.heads does not divide the width", side);
    s->embedding = weights_copy(r, s->vocabulary_size, D, "%s.embedding.weight", side);
    if (s->positions) s->position_embedding = weights_copy(r, s->positions, D, "%s.position_embedding.weight", side);
    if (r->status) return;
    s->layers = calloc(s->layer_count, sizeof(Layer));
    if (!s->layers && s->layer_count) weights_fail(r, REGARD_OUT_OF_MEMORY, "out of memory");
    int64_t F = s->feedforward_width;
    for (int64_t l = 0; l < s->layer_count && !r->status; l++) {
        Layer *y = s->layers + l;
        char prefix[64];
        snprintf(prefix, sizeof prefix, "%s.layers.%lld", side, (long long)l);
        read_norm(r, &y->self_norm, D, norms, prefix, "self_attention_norm");
        read_linear(r, &y->self_qkv, 3 * D, D, prefix, "self_attention.query_key_value");
        read_linear(r, &y->self_output, D, D, prefix, "self_attention.output");
        if (is_decoder) {
            read_norm(r, &y->cross_norm, D, norms, prefix, "cross_attention_norm");
            read_linear(r, &y->cross_query, D, D, prefix, "cross_attention.query");
            read_linear(r, &y->cross_key_value, 2 * D, D, prefix, "cross_attention.key_value");
            read_linear(r, &y->cross_output, D, D, prefix, "cross_attention.output");
        }
        read_norm(r, &y->feedforward_norm, D, norms, prefix, "feedforward_norm");
        read_linear(r, &y->inner, is_gated(s->activation) ? 2 * F : F, D, prefix, "feedforward.inner");
        read_linear(r, &y->outer, D, F, prefix, "feedforward.outer");
    }
    if (s->pre_norm) read_norm(r, &s->norm, D, norms, side, "norm");
}

/* Frees the weight and the bias, but not `n` itself. */
static void free_norm(Norm *n) {
    free(n->weight);
    free(n->bias);
}

/* Frees everything that a stack owns, but not `s` itself, even if it was read only in part. */
static void free_stack(Stack *s) {
    for (int64_t l = 0; s->layers && l < s->layer_count; l++) {
        Layer *y = s->layers + l;
        Linear *all[] = {&y->self_qkv,     &y->self_output, &y->cross_query, &y->cross_key_value,
                         &y->cross_output, &y->inner,       &y->outer};
        for (int i = 0; i < 7; i++) linear_free(all[i]);
        free_norm(&y->self_norm);
        free_norm(&y->cross_norm);
        free_norm(&y->feedforward_norm);
    }
    free(s->layers);
    free(s->embedding);
    free(s->position_embedding);
    free_norm(&s->norm);
}

/* Frees a model and everything that it owns, even if it was read only in part. */
static void free_transformer(regard_model *base) {
    Transformer *m = (Transformer *)base;
    free_stack(&m->encoder);
    free_stack(&m->decoder);
    output_layer_free(base);
    free(m);
}

/* ---- sublayers ---- */

/* LayerNorm or RMSNorm of x [n, D] -> out [n, D], which may be x */
static void normalize(const Norm *norm, const float *x, int64_t n, int64_t D, float *out) {
    for (int64_t row = 0; row < n; row++, x += D, out += D) {
        vec s = vec_splat(0);
        for (int64_t j = 0; j < D; j += LANES) s += vec_load_partial(x + j, D - j, 0);
        float mean = norm->bias ? vec_reduce_add(s) / D : 0;
        s = vec_splat(0);
        for (int64_t j = 0; j < D; j += LANES) {
            vec d = vec_load_partial(x + j, D - j, mean) - mean;
            s += d * d;
        }
        float scale = 1 / sqrtf(vec_reduce_add(s) / D + norm->epsilon);
        for (int64_t j = 0; j < D; j += LANES) {
            vec y =
                (vec_load_partial(x + j, D - j, mean) - mean) * scale * vec_load_partial(norm->weight + j, D - j, 0);
            if (norm->bias) y += vec_load_partial(norm->bias + j, D - j, 0);
            vec_store_partial(out + j, y, D - j);
        }
    }
}

/* x [n, width], or [n, 2 width] if gated -> [n, width] in place, densely */
static void activate(float *x, int64_t n, int64_t width, int64_t kind) {
    if (kind == REGARD_ACTIVATION_RELU) {
        for (int64_t j = 0; j < n * width; j += LANES) {
            vec v = vec_load_partial(x + j, n * width - j, 0);
            vec_store_partial(x + j, vec_max(v, vec_splat(0)), n * width - j);
        }
        return;
    }
    int64_t stride = is_gated(kind) ? 2 * width : width;
    for (int64_t row = 0; row < n; row++) {
        const float *from = x + row * stride;
        for (int64_t j = 0; j < width; j++) {
            float v = from[j];
            float y;
            if (kind == REGARD_ACTIVATION_SILU || kind == REGARD_ACTIVATION_SWIGLU)
                y = v / (1 + expf(-v));
            else if (kind == REGARD_ACTIVATION_GELU_TANH)
                y = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
            else
                y = 0.5f * v * (1 + erff(v * 0.70710678f));
            x[row * width + j] = is_gated(kind) ? y * from[width + j] : y;
        }
    }
}

/* Attention of one query q [D] over n positions, whose keys and values [D] are at the pointers keys [n] and values [n]
 * -> out [D]. w [n] is overwritten. */
static void attend(const float *q, const float *const *keys, const float *const *values, int64_t n, int64_t D,
                   int64_t heads, float *w, float *out) {
    int64_t width = D / heads;
    float scale = 1 / sqrtf((float)width);
    for (int64_t h = 0; h < heads; h++) {
        const float *head_query = q + h * width;
        for (int64_t j = 0; j < n; j++) w[j] = scale * dot(head_query, keys[j] + h * width, width);
        softmax(w, n);
        for (int64_t d = 0; d < width; d += LANES) {
            vec s = vec_splat(0);
            for (int64_t j = 0; j < n; j++) s += w[j] * vec_load_partial(values[j] + h * width + d, width - d, 0);
            vec_store_partial(out + h * width + d, s, width - d);
        }
    }
}

/* The same over transposed keys [D, stride], so that many positions are scored at once. The values [n, D] are
 * value_stride apart; w [round_up(n)] is overwritten. */
static void attend_transposed(const float *q, const float *keys, int64_t stride, const float *values,
                              int64_t value_stride, int64_t n, int64_t D, int64_t heads, float *w, float *out) {
    int64_t width = D / heads;
    float scale = 1 / sqrtf((float)width);
    for (int64_t h = 0; h < heads; h++) {
        const float *head_query = q + h * width, *first = keys + h * width * stride;
        for (int64_t j = 0; j < n; j += LANES) {
            /* four independent sums, so that none waits for another */
            vec s[4] = {vec_splat(0), vec_splat(0), vec_splat(0), vec_splat(0)};
            int64_t d = 0;
            for (; d + 4 <= width; d += 4)
                for (int i = 0; i < 4; i++) s[i] += head_query[d + i] * vec_load(first + (d + i) * stride + j);
            for (; d < width; d++) s[0] += head_query[d] * vec_load(first + d * stride + j);
            vec_store(w + j, scale * ((s[0] + s[1]) + (s[2] + s[3])));
        }
        softmax(w, n);
        for (int64_t d = 0; d < width; d += LANES) {
            vec s = vec_splat(0);
            for (int64_t j = 0; j < n; j++)
                s += w[j] * vec_load_partial(values + j * value_stride + h * width + d, width - d, 0);
            vec_store_partial(out + h * width + d, s, width - d);
        }
    }
}

/* n, rounded up to a multiple of LANES. */
static int64_t round_up(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

/* keys [n, D], key_stride apart -> out [D, round_up(n)], padded with zeros */
static void transpose_keys(const float *keys, int64_t key_stride, int64_t n, int64_t D, float *out) {
    int64_t stride = round_up(n);
    for (int64_t d = 0; d < D; d++) {
        for (int64_t j = 0; j < n; j++) out[d * stride + j] = keys[j * key_stride + d];
        for (int64_t j = n; j < stride; j++) out[d * stride + j] = 0;
    }
}

/* ---- the state of one search ---- */

typedef struct {
    int64_t sources, beam_size;
    const int64_t *offsets;       /* of the sources in all tokens */
    float *x, *y, *z, *inner;     /* [rows, D], [rows, D], [rows, 3 D], [rows, the largest width]: per token */
    float *weights;               /* of one query */
    const float **keys, **values; /* of one hypothesis, at each step */
    float **cache;                /* of each source: [layers, max_length, beam_size, 2 D], keys and values */
    float **memory;               /* of each source, for each layer: keys [D, round_up(Ts)], values [Ts, D] */
    float *transposed;            /* keys of one source, [D, round_up(Ts)] */
    QuantizedRows quantized;
} State;

/* Frees a State and everything that it owns, even if it was allocated only in part. `offsets` are the request's. */
static void free_state(void *state) {
    State *r = state;
    for (int64_t b = 0; b < r->sources; b++) {
        if (r->cache) free(r->cache[b]);
        if (r->memory) free(r->memory[b]);
    }
    void *all[] = {r->x, r->y, r->z, r->inner, r->weights, r->keys, r->values, r->cache, r->memory, r->transposed};
    for (int i = 0; i < 10; i++) free(all[i]);
    quantized_rows_free(&r->quantized);
    free(r);
}

/* Floats of one layer's keys and values of a source. */
static int64_t memory_size(int64_t length, int64_t D) { return (round_up(length) + length) * D; }

/* Allocates the state of a search, large enough for all tokens and beams of the request, whose source_offsets it points
 * to; NULL if there is no memory. To be freed by free_state. */
static State *make_state(const Transformer *m, const regard_search_request *request) {
    const int64_t *offsets = request->source_offsets;
    int64_t D = m->width, L = m->decoder.layer_count, sources = request->source_count, K = request->beam_size;
    int64_t rows = offsets[sources] > sources * K ? offsets[sources] : sources * K, max_positions = request->max_length,
            max_width = D;
    for (int64_t b = 0; b < sources; b++)
        max_positions = offsets[b + 1] - offsets[b] > max_positions ? offsets[b + 1] - offsets[b] : max_positions;
    for (int i = 0; i < 2; i++) {
        const Stack *s = i ? &m->decoder : &m->encoder;
        int64_t inner = s->feedforward_width * (is_gated(s->activation) ? 2 : 1);
        max_width = inner > max_width ? inner : max_width;
    }
    State *r = calloc(1, sizeof(State));
    if (!r) return NULL;
    *r = (State){.sources = sources, .beam_size = K, .offsets = offsets};
    r->x = alloc_aligned(rows * D * 4);
    r->y = alloc_aligned(rows * D * 4);
    r->z = alloc_aligned(rows * 3 * D * 4);
    r->inner = alloc_aligned(rows * max_width * 4);
    r->weights = alloc_aligned((max_positions + LANES) * 4);
    r->keys = alloc_aligned(max_positions * sizeof(float *));
    r->values = alloc_aligned(max_positions * sizeof(float *));
    r->cache = calloc(sources, sizeof(float *));
    r->memory = calloc(sources, sizeof(float *));
    r->transposed = alloc_aligned(D * round_up(max_positions) * 4);
    int failed = quantized_rows_init(&r->quantized, rows, max_width) || !r->x || !r->y || !r->z || !r->inner ||
                 !r->weights || !r->keys || !r->values || !r->cache || !r->memory || !r->transposed;
    for (int64_t b = 0; b < sources && !failed; b++) {
        r->cache[b] = alloc_aligned(L * request->max_lengths[b] * K * 2 * D * 4);
        r->memory[b] = alloc_aligned(L * memory_size(offsets[b + 1] - offsets[b], D) * 4);
        failed = !r->cache[b] || !r->memory[b];
    }
    if (!failed) return r;
    free_state(r);
    return NULL;
}

/* out [D] = the token's embedding, scaled, plus the position's, if there are position embeddings. */
static void embed(const Stack *s, int64_t token, int64_t position, int64_t D, float *out) {
    const float *row = s->embedding + token * D;
    const float *position_row = s->position_embedding ? s->position_embedding + position * D : NULL;
    for (int64_t j = 0; j < D; j += LANES) {
        vec v = vec_load_partial(row + j, D - j, 0) * s->embedding_scale;
        if (position_row) v += vec_load_partial(position_row + j, D - j, 0);
        vec_store_partial(out + j, v, D - j);
    }
}

/* x += sublayer(x), normalized before (pre-norm) or after (post-norm). The sublayer's input is SUBLAYER_INPUT, its
 * output is in y when ADD_RESIDUAL follows. */
#define SUBLAYER_INPUT(norm) (s->pre_norm ? (normalize(norm, r->x, n, D, r->y), r->y) : r->x)
#define ADD_RESIDUAL(norm)          \
    add_in_place(r->x, r->y, n *D); \
    if (!s->pre_norm) normalize(norm, r->x, n, D, r->x);

/* The feed-forward sublayer of layer `y`: r->x [n, D] is updated in place; r->y and r->inner are overwritten. */
static void feed_forward(const Transformer *m, const Stack *s, const Layer *y, State *r, int64_t n) {
    int64_t D = m->width;
    linear_forward(&y->inner, SUBLAYER_INPUT(&y->feedforward_norm), D, n, r->inner, &r->quantized);
    activate(r->inner, n, s->feedforward_width, s->activation);
    linear_forward(&y->outer, r->inner, s->feedforward_width, n, r->y, &r->quantized);
    ADD_RESIDUAL(&y->feedforward_norm)
}

/* ---- encoder ---- */

/* The tokens [n] of all sources, one after the other -> states [n, D] in r->x */
static void run_encoder(const Transformer *m, const int64_t *tokens, State *r) {
    const Stack *s = &m->encoder;
    const int64_t *offsets = r->offsets;
    int64_t D = m->width, sources = r->sources, n = offsets[sources];
    for (int64_t b = 0; b < sources; b++)
        for (int64_t t = offsets[b]; t < offsets[b + 1]; t++) embed(s, tokens[t], t - offsets[b], D, r->x + t * D);
    for (int64_t l = 0; l < s->layer_count; l++) {
        const Layer *y = s->layers + l;
        linear_forward(&y->self_qkv, SUBLAYER_INPUT(&y->self_norm), D, n, r->z, &r->quantized);
        float *attended = r->inner; /* is at least as wide as D */
        for (int64_t b = 0; b < sources; b++) {
            int64_t length = offsets[b + 1] - offsets[b];
            const float *first = r->z + offsets[b] * 3 * D;
            transpose_keys(first + D, 3 * D, length, D, r->transposed);
            for (int64_t t = offsets[b]; t < offsets[b + 1]; t++)
                attend_transposed(r->z + t * 3 * D, r->transposed, round_up(length), first + 2 * D, 3 * D, length, D,
                                  s->heads, r->weights, attended + t * D);
        }
        linear_forward(&y->self_output, attended, D, n, r->y, &r->quantized);
        ADD_RESIDUAL(&y->self_norm)
        feed_forward(m, s, y, r, n);
    }
    if (s->pre_norm) normalize(&s->norm, r->x, n, D, r->x);
}

/* Encodes the request's sources, and computes the keys and values of the decoder's cross-attention. NULL if there is no
 * memory. The State is to be freed by free_state. */
static void *encode(const regard_model *base, const regard_search_request *request) {
    const Transformer *m = (const Transformer *)base;
    int64_t D = m->width;
    State *r = make_state(m, request);
    if (!r) return NULL;
    run_encoder(m, request->source_tokens, r);
    for (int64_t l = 0; l < m->decoder.layer_count; l++)
        for (int64_t b = 0; b < r->sources; b++) {
            int64_t length = r->offsets[b + 1] - r->offsets[b];
            float *keys = r->memory[b] + l * memory_size(length, D), *values = keys + D * round_up(length);
            linear_forward(&m->decoder.layers[l].cross_key_value, r->x + r->offsets[b] * D, D, length, r->z,
                           &r->quantized);
            transpose_keys(r->z, 2 * D, length, D, keys);
            for (int64_t j = 0; j < length; j++) memcpy(values + j * D, r->z + j * 2 * D + D, D * 4);
        }
    return r;
}

/* ---- decoder ---- */

/* One layer's attention of each of the n active hypotheses of beams [count] to its own tokens up to this step. The
 * step's queries, keys and values are in r->z [n, 3 D]; the latter two are cached -> attended [n, D]. */
static void self_attention_step(State *r, Beam *const *beams, int64_t count, int64_t l, int64_t step, int64_t D,
                                int64_t heads, float *attended) {
    int64_t K = r->beam_size, at = 0;
    for (int64_t b = 0; b < count; b++) {
        const Beam *beam = beams[b];
        float *cache = r->cache[beam->source] + l * beam->max_length * K * 2 * D;
        for (int64_t row = 0; row < beam->active; row++)
            memcpy(cache + (step * K + row) * 2 * D, r->z + (at + row) * 3 * D + D, 2 * D * 4);
        for (int64_t row = 0; row < beam->active; row++, at++) {
            const int32_t *rows = beam->rows + row * beam->max_length;
            for (int64_t j = 0; j <= step; j++) {
                r->keys[j] = cache + (j * K + rows[j]) * 2 * D;
                r->values[j] = r->keys[j] + D;
            }
            attend(r->z + at * 3 * D, r->keys, r->values, step + 1, D, heads, r->weights, attended + at * D);
        }
    }
}

/* One layer's attention of each of the n active hypotheses of beams [count] to its source. The queries are in r->z
 * [n, D] -> attended [n, D]. */
static void cross_attention_step(State *r, Beam *const *beams, int64_t count, int64_t l, int64_t D, int64_t heads,
                                 float *attended) {
    int64_t at = 0;
    for (int64_t b = 0; b < count; b++) {
        int64_t source = beams[b]->source, length = r->offsets[source + 1] - r->offsets[source];
        const float *keys = r->memory[source] + l * memory_size(length, D), *values = keys + D * round_up(length);
        for (int64_t row = 0; row < beams[b]->active; row++, at++)
            attend_transposed(r->z + at * D, keys, round_up(length), values, D, length, D, heads, r->weights,
                              attended + at * D);
    }
}

/* The features [n, D] of the n active hypotheses of beams [count], after `step` tokens. They are in r->x, which belongs
 * to the state, until the next step. */
static const float *decode_step(const regard_model *base, void *state, Beam *const *beams, int64_t count,
                                int64_t step) {
    const Transformer *m = (const Transformer *)base;
    const Stack *s = &m->decoder;
    State *r = state;
    int64_t D = m->width, n = 0;
    for (int64_t b = 0; b < count; b++)
        for (int64_t row = 0; row < beams[b]->active; row++)
            embed(s, previous_token(beams[b], row, step), step, D, r->x + n++ * D);
    float *attended = r->inner; /* is at least as wide as D */
    for (int64_t l = 0; l < s->layer_count; l++) {
        const Layer *y = s->layers + l;
        linear_forward(&y->self_qkv, SUBLAYER_INPUT(&y->self_norm), D, n, r->z, &r->quantized);
        self_attention_step(r, beams, count, l, step, D, s->heads, attended);
        linear_forward(&y->self_output, attended, D, n, r->y, &r->quantized);
        ADD_RESIDUAL(&y->self_norm)
        linear_forward(&y->cross_query, SUBLAYER_INPUT(&y->cross_norm), D, n, r->z, &r->quantized);
        cross_attention_step(r, beams, count, l, D, s->heads, attended);
        linear_forward(&y->cross_output, attended, D, n, r->y, &r->quantized);
        ADD_RESIDUAL(&y->cross_norm)
        feed_forward(m, s, y, r, n);
    }
    if (s->pre_norm) normalize(&s->norm, r->x, n, D, r->x);
    return r->x;
}

/* Reads a Transformer, to be freed by regard_model_free; NULL after an error, with nothing left to free. */
regard_model *transformer_model_new(WeightReader *r) {
    Transformer *m = calloc(1, sizeof(Transformer));
    if (!m) {
        weights_fail(r, REGARD_OUT_OF_MEMORY, "out of memory");
        return NULL;
    }
    int64_t D = m->width = weights_integer(r, NULL, "width", 1, MAX_SIZE);
    NormSettings norms = {weights_integer(r, NULL, "rms_norm", 0, 1), weights_number(r, NULL, "norm_epsilon")};
    m->base = (regard_model){
        .width = D, .encode = encode, .decode_step = decode_step, .free_state = free_state, .free = free_transformer};
    read_stack(r, &m->encoder, D, &norms, "encoder", 0);
    read_stack(r, &m->decoder, D, &norms, "decoder", 1);
    m->base.vocabulary_size = m->decoder.vocabulary_size;
    weights_output_layer(r, &m->base);
    if (!r->status) return &m->base;
    free_transformer(&m->base);
    return NULL;
}
