/* A recurrent encoder and decoder, with attention before the cells, after them, or none: models/decoders/recurrent.py.
 *
 * Sources of any length are encoded together, without padding: they are ordered by length, and each step computes only
 * those that have a token left.
 */
#include "weights.h"

#define MAX_SIZE (INT64_C(1) << 31)

typedef struct {
    Linear input, state;
} Cell;

typedef struct {
    regard_model base;
    /* encoder */
    int64_t source_width, encoder_width, encoder_layers, encoder_lstm, bidirectional, reverse;
    float *source_embedding;
    Cell *forward, *backward;
    int64_t M; /* width of the encoder's states, in both directions */
    /* decoder */
    int64_t E, D, layers, lstm; /* E: width of its embeddings; D: of its states */
    int64_t attend, context_every_step, input_feeding;
    float *target_embedding;
    Linear initial_state, combine, readout;
    Cell *cells;
    /* attention */
    int64_t hard, extent, score, features; /* features: the width in which queries meet keys */
    float scale, radius;
    Linear query, key, position; /* position: predicts the center of local-p's window */
    float *v, *position_v;
} Recurrent;

/* ---- reading and freeing ---- */

/* The cells [layers] of width D, with `first` inputs in the first layer and `others` above it. After an error NULL, or
 * read in part. To be freed by free_cells, also then. */
static Cell *read_cells(WeightReader *r, int64_t layers, int64_t first, int64_t others, int64_t D, int64_t lstm,
                        const char *prefix) {
    if (r->status) return NULL;
    Cell *cells = calloc(layers, sizeof(Cell));
    if (!cells) weights_fail(r, REGARD_OUT_OF_MEMORY, "out of memory");
    for (int64_t l = 0; l < layers && !r->status; l++) {
        int64_t gates = (lstm ? 4 : 3) * D, inputs = l ? others : first;
        weights_linear(r, &cells[l].input, gates, inputs, 1, "%s.%lld.input", prefix, (long long)l);
        weights_linear(r, &cells[l].state, gates, D, 1, "%s.%lld.state", prefix, (long long)l);
    }
    return cells;
}

/* Frees cells [layers] and their weights; NULL is accepted. */
static void free_cells(Cell *cells, int64_t layers) {
    for (int64_t l = 0; cells && l < layers; l++) {
        linear_free(&cells[l].input);
        linear_free(&cells[l].state);
    }
    free(cells);
}

/* Frees a model and everything that it owns, even if it was read only in part. */
static void free_recurrent(regard_model *base) {
    Recurrent *m = (Recurrent *)base;
    free_cells(m->forward, m->encoder_layers);
    free_cells(m->backward, m->encoder_layers);
    free_cells(m->cells, m->layers);
    Linear *all[] = {&m->initial_state, &m->query, &m->key, &m->position, &m->combine, &m->readout};
    for (int i = 0; i < 6; i++) linear_free(all[i]);
    free(m->source_embedding);
    free(m->target_embedding);
    free(m->v);
    free(m->position_v);
    output_layer_free(base);
    free(m);
}

/* ---- cells: h and c [D] are updated in place; x and s are what input and state contribute to the gates ---- */

/* One step of a GRU for one row: x, s [3 D], in the order r, z, n; h [D] is updated in place. */
static void gru_cell(const float *x, const float *s, float *h, int64_t D) {
    for (int64_t j = 0; j < D; j += LANES) {
#define GATE(k) (vec_load_partial(x + k * D + j, D - j, 0) + vec_load_partial(s + k * D + j, D - j, 0))
        vec r = vec_sigmoid(GATE(0)), z = vec_sigmoid(GATE(1)), previous = vec_load_partial(h + j, D - j, 0);
        vec n = vec_tanh(vec_load_partial(x + 2 * D + j, D - j, 0) + r * vec_load_partial(s + 2 * D + j, D - j, 0));
        vec_store_partial(h + j, n + z * (previous - n), D - j);
    }
}

/* One step of an LSTM for one row: x, s [4 D], in the order i, f, g, o; h, c [D] are updated in place. */
static void lstm_cell(const float *x, const float *s, float *h, float *c, int64_t D) {
    for (int64_t j = 0; j < D; j += LANES) {
        vec i = vec_sigmoid(GATE(0)), f = vec_sigmoid(GATE(1)), g = vec_tanh(GATE(2)), o = vec_sigmoid(GATE(3));
        vec new_c = f * vec_load_partial(c + j, D - j, 0) + i * g;
        vec_store_partial(c + j, new_c, D - j);
        vec_store_partial(h + j, o * vec_tanh(new_c), D - j);
    }
#undef GATE
}

/* x [n] becomes tanh(x). */
static void tanh_in_place(float *x, int64_t n) {
    for (int64_t j = 0; j < n; j += LANES) vec_store_partial(x + j, vec_tanh(vec_load_partial(x + j, n - j, 0)), n - j);
}

/* ---- the state of one search ---- */

typedef struct {
    const int64_t *offsets; /* of the sources in all tokens */
    int64_t sources, beam_size;
    int64_t state_size;         /* of a hypothesis: h, and c of an LSTM, of each layer; the vector that is fed back */
    int64_t concatenated_width; /* of a row of `concatenated` */
    float *states;              /* [N, M]: the encoder's, of all N source tokens */
    float *keys;                /* [N, features], or the states */
    float *summary;             /* [sources, M]: the encoder's last states */
    float *saved_states; /* [2, sources, beam_size, state_size]: after the previous step, and after the one before */
    float *state;        /* [n, state_size]: of the active hypotheses */
    float *concatenated; /* [n, concatenated_width]: embedding, context and state of the last layer */
    float *x, *s;        /* what input and state contribute to the gates; other products */
    float *features, *weights;
    QuantizedRows quantized;
} State;

/* Frees a State and everything that it owns, even if it was allocated only in part. `offsets` are the request's. */
static void free_state(void *state) {
    State *r = state;
    if (r->keys != r->states) free(r->keys);
    void *all[] = {r->states, r->summary, r->saved_states, r->state,  r->concatenated,
                   r->x,      r->s,       r->features,     r->weights};
    for (int i = 0; i < 9; i++) free(all[i]);
    quantized_rows_free(&r->quantized);
    free(r);
}

/* The larger of two integers. */
static int64_t max_int(int64_t a, int64_t b) { return a > b ? a : b; }

/* Allocates the state of a search, large enough for all tokens and beams of the request, whose source_offsets it points
 * to; NULL if there is no memory. To be freed by free_state. */
static State *make_state(const Recurrent *m, const regard_search_request *request) {
    State *r = calloc(1, sizeof(State));
    if (!r) return NULL;
    int64_t sources = request->source_count, N = request->source_offsets[sources], rows = sources * request->beam_size;
    int64_t max_rows = max_int(N, rows), max_positions = 0, gates = 4 * max_int(m->D, m->encoder_width);
    for (int64_t b = 0; b < sources; b++)
        max_positions = max_int(max_positions, request->source_offsets[b + 1] - request->source_offsets[b]);
    *r = (State){.offsets = request->source_offsets, .sources = sources, .beam_size = request->beam_size};
    r->state_size = m->layers * m->D * (m->lstm ? 2 : 1) + (m->input_feeding ? m->D : 0);
    r->concatenated_width = m->E + max_int(m->M, m->D) + m->D;
    gates = max_int(max_int(gates, m->features), 2 * m->E);
    r->states = alloc_aligned(N * m->M * 4);
    r->keys = m->key.outputs ? alloc_aligned(N * m->features * 4) : r->states;
    r->summary = alloc_aligned(sources * m->M * 4);
    r->saved_states = alloc_aligned(2 * rows * r->state_size * 4);
    r->state = alloc_aligned(rows * r->state_size * 4);
    r->concatenated = alloc_aligned(rows * r->concatenated_width * 4);
    r->x = alloc_aligned(max_int(max_rows * gates, m->layers * m->D) * 4);
    r->s = alloc_aligned(max_rows * gates * 4);
    r->features = alloc_aligned(rows * max_int(m->E, m->encoder_width) * 4);
    r->weights = alloc_aligned((max_positions + LANES) * 4);
    if (!quantized_rows_init(&r->quantized, max_rows, max_int(max_int(r->concatenated_width, m->M), m->source_width)) &&
        r->states && r->keys && r->summary && r->saved_states && r->state && r->concatenated && r->x && r->s &&
        r->features && r->weights)
        return r;
    free_state(r);
    return NULL;
}

/* ---- encoder ---- */

/* One direction of one layer: x [N, inputs], whose rows are `stride` apart -> out [N, M] from `column` on, and the last
 * state of each source into the summary. order [sources]: the sources, longest first. */
static void run_direction(const Recurrent *m, const Cell *cell, int backward, const float *x, int64_t stride,
                          const int64_t *order, float *out, int64_t column, State *r) {
    int64_t D = m->encoder_width, G = (m->encoder_lstm ? 4 : 3) * D, B = r->sources;
    const int64_t *offsets = r->offsets;
    linear_forward(&cell->input, x, stride, offsets[B], r->x, &r->quantized);
    float *h = r->features, *c = r->concatenated; /* not in use before decoding */
    memset(h, 0, B * D * 4);
    memset(c, 0, B * D * 4);
    for (int64_t t = 0, active = B; active; t++) {
        while (active && offsets[order[active - 1] + 1] - offsets[order[active - 1]] <= t) active--;
        linear_forward(&cell->state, h, D, active, r->s, &r->quantized);
        for (int64_t i = 0; i < active; i++) {
            int64_t b = order[i], length = offsets[b + 1] - offsets[b];
            int64_t token = backward ? offsets[b + 1] - 1 - t : offsets[b] + t;
            if (m->encoder_lstm)
                lstm_cell(r->x + token * G, r->s + i * G, h + i * D, c + i * D, D);
            else
                gru_cell(r->x + token * G, r->s + i * G, h + i * D, D);
            memcpy(out + token * m->M + column, h + i * D, D * 4);
            if (t == length - 1) memcpy(r->summary + b * m->M + column, h + i * D, D * 4);
        }
    }
}

/* The tokens [N] of all sources, one after the other -> r->states [N, M] and r->summary [sources, M]; -1 if there is no
 * memory. */
static int run_encoder(const Recurrent *m, const int64_t *tokens, State *r) {
    int64_t B = r->sources, N = r->offsets[B], S = m->source_width, order[B];
    for (int64_t b = 0; b < B; b++) { /* the longest first */
        int64_t at = b, length = r->offsets[b + 1] - r->offsets[b];
        for (; at > 0 && length > r->offsets[order[at - 1] + 1] - r->offsets[order[at - 1]]; at--)
            order[at] = order[at - 1];
        order[at] = b;
    }
    float *input = alloc_aligned(N * max_int(S, m->M) * 4);
    if (!input) return -1;
    for (int64_t n = 0; n < N; n++) memcpy(input + n * S, m->source_embedding + tokens[n] * S, S * 4);
    for (int64_t l = 0; l < m->encoder_layers; l++) {
        int64_t stride = l ? m->M : S;
        run_direction(m, m->forward + l, (int)m->reverse, input, stride, order, r->states, 0, r);
        if (m->bidirectional)
            run_direction(m, m->backward + l, !m->reverse, input, stride, order, r->states, m->encoder_width, r);
        if (l + 1 < m->encoder_layers) memcpy(input, r->states, N * m->M * 4);
    }
    free(input);
    return 0;
}

/* ---- attention ---- */

/* The features q [features] of one hypothesis' query -> its context c [M]. center: of local-p's window. */
static void attend(const Recurrent *m, const State *r, int64_t source, int64_t step, const float *q, float center,
                   float *c) {
    int64_t start = r->offsets[source], T = r->offsets[source + 1] - start, A = m->features, M = m->M, from = 0, to = T;
    if (m->extent != REGARD_EXTENT_GLOBAL) {
        if (m->extent == REGARD_EXTENT_LOCAL_M) center = (float)step;
        while (from < T && center - (float)from > m->radius) from++;
        while (to > from && (float)(to - 1) - center > m->radius) to--;
    }
    memset(c, 0, M * 4);
    if (from == to) return;
    float *w = r->weights;
    for (int64_t j = from; j < to; j++) {
        const float *key = r->keys + (start + j) * A;
        if (!m->v) {
            w[j - from] = m->scale * dot(q, key, A);
            continue;
        }
        vec s = vec_splat(0);
        for (int64_t a = 0; a < A; a += LANES)
            s += vec_load_partial(m->v + a, A - a, 0) *
                 vec_tanh(vec_load_partial(q + a, A - a, 0) + vec_load_partial(key + a, A - a, 0));
        w[j - from] = vec_reduce_add(s);
    }
    if (m->hard) {
        int64_t best = 0;
        for (int64_t j = 1; j < to - from; j++) best = w[j] > w[best] ? j : best;
        for (int64_t j = 0; j < to - from; j++) w[j] = j == best;
    } else {
        softmax(w, to - from);
    }
    if (m->extent == REGARD_EXTENT_LOCAL_P)
        for (int64_t j = from; j < to; j++) {
            float distance = ((float)j - center) / (m->radius / 2);
            w[j - from] *= expf(-distance * distance / 2);
        }
    for (int64_t d = 0; d < M; d += LANES) {
        vec s = vec_splat(0);
        for (int64_t j = from; j < to; j++)
            s += w[j - from] * vec_load_partial(r->states + (start + j) * M + d, M - d, 0);
        vec_store_partial(c + d, s, M - d);
    }
}

/* Contexts of the n active hypotheses of beams [count], from queries [n, D], `stride` apart, into `concatenated`. */
static void attend_all(const Recurrent *m, State *r, Beam *const *beams, int64_t count, int64_t n, int64_t step,
                       const float *queries, int64_t stride) {
    const float *q = queries;
    int64_t q_stride = stride, at = 0;
    if (m->extent == REGARD_EXTENT_LOCAL_P) {
        linear_forward(&m->position, queries, stride, n, r->s, &r->quantized);
        tanh_in_place(r->s, n * m->position.outputs);
    }
    if (m->query.outputs) {
        linear_forward(&m->query, queries, stride, n, r->x, &r->quantized);
        q = r->x;
        q_stride = m->features;
    }
    for (int64_t b = 0; b < count; b++)
        for (int64_t row = 0; row < beams[b]->active; row++, at++) {
            int64_t source = beams[b]->source, T = r->offsets[source + 1] - r->offsets[source];
            float center = 0;
            if (m->extent == REGARD_EXTENT_LOCAL_P)
                center =
                    (float)T / (1 + expf(-dot(r->s + at * m->position.outputs, m->position_v, m->position.outputs)));
            attend(m, r, source, step, q + at * q_stride, center, r->concatenated + at * r->concatenated_width + m->E);
        }
}

/* Encodes the request's sources, and saves the decoder's initial state as the first row of each beam. NULL if there is
 * no memory. The State is to be freed by free_state. */
static void *encode(const regard_model *base, const regard_search_request *request) {
    const Recurrent *m = (const Recurrent *)base;
    int64_t D = m->D, vectors = m->lstm ? 2 : 1;
    State *r = make_state(m, request);
    if (!r) return NULL;
    if (run_encoder(m, request->source_tokens, r)) {
        free_state(r);
        return NULL;
    }
    if (m->key.outputs) linear_forward(&m->key, r->states, m->M, r->offsets[r->sources], r->keys, &r->quantized);
    float *start = r->x; /* s_0 = tanh(W C) in every layer */
    for (int64_t b = 0; b < r->sources; b++) {
        linear_forward(&m->initial_state, r->summary + b * m->M, m->M, 1, start, &r->quantized);
        tanh_in_place(start, m->layers * D);
        float *first = r->saved_states + (r->sources + b) * r->beam_size * r->state_size;
        memset(first, 0, r->state_size * 4);
        for (int64_t l = 0; l < m->layers; l++) memcpy(first + l * vectors * D, start + l * D, D * 4);
    }
    return r;
}

/* ---- decoder ---- */

/* r->concatenated [n, concatenated_width] -> r->features [n, E] and, with input feeding, the fed-back vectors. */
static void compute_features(const Recurrent *m, State *r, int64_t n) {
    int64_t D = m->D, E = m->E, W = r->concatenated_width, stride = W;
    const float *output = r->concatenated + E + m->M;                 /* the last layer's state */
    if (m->attend == REGARD_ATTEND_BEFORE || m->context_every_step) { /* maxout over two halves */
        linear_forward(&m->readout, r->concatenated, W, n, r->x, &r->quantized);
        for (int64_t row = 0; row < n; row++)
            for (int64_t j = 0; j < E; j++) {
                const float *halves = r->x + row * 2 * E + j;
                r->features[row * E + j] = halves[0] > halves[E] ? halves[0] : halves[E];
            }
        return;
    }
    if (m->attend == REGARD_ATTEND_AFTER) {
        linear_forward(&m->combine, r->concatenated + E, W, n, r->s, &r->quantized);
        tanh_in_place(r->s, n * D);
        output = r->s;
        stride = D;
        float *fed_back = r->state + r->state_size - D;
        for (int64_t row = 0; row < n && m->input_feeding; row++)
            memcpy(fed_back + row * r->state_size, r->s + row * D, D * 4);
    }
    if (m->readout.outputs)
        linear_forward(&m->readout, output, stride, n, r->features, &r->quantized);
    else
        for (int64_t row = 0; row < n; row++) memcpy(r->features + row * E, output + row * stride, E * 4);
}

/* The features [n, E] of the n active hypotheses of beams [count], after `step` tokens. They belong to the state, which
 * also saves the hypotheses' new states for the next step. */
static const float *decode_step(const regard_model *base, void *state, Beam *const *beams, int64_t count,
                                int64_t step) {
    const Recurrent *m = (const Recurrent *)base;
    State *r = state;
    int64_t D = m->D, E = m->E, M = m->M, Z = r->state_size, W = r->concatenated_width, K = r->beam_size,
            vectors = m->lstm ? 2 : 1, n = 0;
    int64_t G = (m->lstm ? 4 : 3) * D, last = (m->layers - 1) * vectors * D;
    const float *previous = r->saved_states + (step + 1) % 2 * r->sources * K * Z;
    for (int64_t b = 0; b < count; b++)
        for (int64_t row = 0; row < beams[b]->active; row++, n++) {
            const Beam *beam = beams[b];
            int64_t parent = step ? beam->rows[row * beam->max_length + step - 1] : 0;
            memcpy(r->state + n * Z, previous + (beam->source * K + parent) * Z, Z * 4);
            memcpy(r->concatenated + n * W, m->target_embedding + previous_token(beam, row, step) * E, E * 4);
            if (m->context_every_step) memcpy(r->concatenated + n * W + E, r->summary + beam->source * M, M * 4);
            if (m->input_feeding) memcpy(r->concatenated + n * W + E, r->state + n * Z + Z - D, D * 4);
        }
    if (m->attend == REGARD_ATTEND_BEFORE) attend_all(m, r, beams, count, n, step, r->state + last, Z);
    for (int64_t l = 0; l < m->layers; l++) {
        const Cell *cell = m->cells + l;
        const float *input = l ? r->state + (l - 1) * vectors * D : r->concatenated;
        float *h = r->state + l * vectors * D;
        linear_forward(&cell->input, input, l ? Z : W, n, r->x, &r->quantized);
        linear_forward(&cell->state, h, Z, n, r->s, &r->quantized);
        for (int64_t row = 0; row < n; row++)
            if (m->lstm)
                lstm_cell(r->x + row * G, r->s + row * G, h + row * Z, h + row * Z + D, D);
            else
                gru_cell(r->x + row * G, r->s + row * G, h + row * Z, D);
    }
    if (m->attend == REGARD_ATTEND_AFTER) attend_all(m, r, beams, count, n, step, r->state + last, Z);
    for (int64_t row = 0; row < n; row++) memcpy(r->concatenated + row * W + E + M, r->state + row * Z + last, D * 4);
    compute_features(m, r, n);
    float *next = r->saved_states + step % 2 * r->sources * K * Z;
    n = 0;
    for (int64_t b = 0; b < count; b++) {
        memcpy(next + beams[b]->source * K * Z, r->state + n * Z, beams[b]->active * Z * 4);
        n += beams[b]->active;
    }
    return r->features;
}

/* Reads the attention's weights, which the model owns, and checks attention.features. Errors are reported to `r`. */
static void read_attention(WeightReader *r, Recurrent *m) {
    int64_t A = m->features, D = m->D, M = m->M;
    int64_t expected = m->score == REGARD_SCORE_BILINEAR ? M : m->score == REGARD_SCORE_DOT ? D : A;
    if (A != expected) weights_fail(r, REGARD_INVALID_ARGUMENT, "setting attention.features does not fit the score");
    if (m->score == REGARD_SCORE_ADDITIVE) {
        weights_linear(r, &m->query, A, D, 1, "attention.query");
        weights_linear(r, &m->key, A, M, 0, "attention.key");
        m->v = weights_copy(r, A, 0, "attention.v");
    } else if (m->score == REGARD_SCORE_BILINEAR) {
        weights_linear(r, &m->query, A, D, 0, "attention.query");
    } else if (M != D) {
        weights_linear(r, &m->key, A, M, 1, "attention.key");
    }
    if (m->extent != REGARD_EXTENT_LOCAL_P) return;
    weights_linear(r, &m->position, D, D, 0, "attention.position");
    m->position_v = weights_copy(r, D, 0, "attention.position.v");
}

/* Reads a recurrent model, to be freed by regard_model_free; NULL after an error, with nothing left to free. */
regard_model *recurrent_model_new(WeightReader *r) {
    Recurrent *m = calloc(1, sizeof(Recurrent));
    if (!m) {
        weights_fail(r, REGARD_OUT_OF_MEMORY, "out of memory");
        return NULL;
    }
    m->source_width = weights_integer(r, "encoder", "embedding_width", 1, MAX_SIZE);
    m->encoder_width = weights_integer(r, "encoder", "width", 1, MAX_SIZE);
    m->encoder_layers = weights_integer(r, "encoder", "layers", 1, MAX_SIZE);
    m->encoder_lstm = weights_integer(r, "encoder", "lstm", 0, 1);
    m->bidirectional = weights_integer(r, "encoder", "bidirectional", 0, 1);
    m->reverse = weights_integer(r, "encoder", "reverse", 0, 1);
    int64_t source_vocabulary = weights_integer(r, "encoder", "vocabulary_size", REGARD_TOKEN_EOS + 1, MAX_SIZE);
    m->E = weights_integer(r, "decoder", "embedding_width", 1, MAX_SIZE);
    m->D = weights_integer(r, "decoder", "width", 1, MAX_SIZE);
    m->layers = weights_integer(r, "decoder", "layers", 1, MAX_SIZE);
    m->lstm = weights_integer(r, "decoder", "lstm", 0, 1);
    m->attend = weights_integer(r, "decoder", "attend", 0, REGARD_ATTEND_AFTER);
    m->context_every_step = weights_integer(r, "decoder", "context_every_step", 0, 1);
    m->input_feeding = weights_integer(r, "decoder", "input_feeding", 0, 1);
    int64_t target_vocabulary = weights_integer(r, "decoder", "vocabulary_size", REGARD_TOKEN_EOS + 1, MAX_SIZE);
    m->hard = weights_integer(r, "attention", "hard", 0, 1);
    m->extent = weights_integer(r, "attention", "extent", 0, REGARD_EXTENT_LOCAL_P);
    m->score = weights_integer(r, "attention", "score", 0, REGARD_SCORE_DOT);
    m->features = weights_integer(r, "attention", "features", 1, MAX_SIZE);
    m->scale = weights_number(r, "attention", "scale");
    m->radius = weights_number(r, "attention", "radius");
    int64_t S = m->source_width, C = m->encoder_width, E = m->E, D = m->D;
    int64_t M = m->M = C * (m->bidirectional ? 2 : 1);
    int64_t has_context = m->attend == REGARD_ATTEND_BEFORE || m->context_every_step;
    m->base = (regard_model){.width = E,
                             .vocabulary_size = target_vocabulary,
                             .encode = encode,
                             .decode_step = decode_step,
                             .free_state = free_state,
                             .free = free_recurrent};
    m->source_embedding = weights_copy(r, source_vocabulary, S, "encoder.embedding.weight");
    m->forward = read_cells(r, m->encoder_layers, S, M, C, m->encoder_lstm, "encoder.forward");
    if (m->bidirectional) m->backward = read_cells(r, m->encoder_layers, S, M, C, m->encoder_lstm, "encoder.backward");
    m->target_embedding = weights_copy(r, target_vocabulary, E, "decoder.embedding.weight");
    weights_linear(r, &m->initial_state, m->layers * D, M, 1, "decoder.initial_state");
    int64_t beside_embedding = has_context ? M : m->input_feeding ? D : 0;
    m->cells = read_cells(r, m->layers, E + beside_embedding, D, D, m->lstm, "decoder.cells");
    if (m->attend != REGARD_ATTEND_NEVER) read_attention(r, m);
    if (m->attend == REGARD_ATTEND_AFTER) weights_linear(r, &m->combine, D, M + D, 1, "decoder.combine");
    if (has_context)
        weights_linear(r, &m->readout, 2 * E, E + M + D, 1, "decoder.readout");
    else if (D != E)
        weights_linear(r, &m->readout, E, D, 1, "decoder.readout");
    weights_output_layer(r, &m->base);
    if (!r->status) return &m->base;
    free_recurrent(&m->base);
    return NULL;
}
