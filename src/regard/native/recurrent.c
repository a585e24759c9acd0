/* A recurrent encoder and decoder, with attention before the step, after it, or none: models/decoders/recurrent.py.
 *
 * Sources of any length together, without padding: the longest come first, and at each step only those go on that have
 * a word left.
 */
#include "engine.h"

enum { NEVER, BEFORE, AFTER };
enum { EVERYWHERE, LOCAL_M, LOCAL_P };

typedef struct {
    Linear inputs, states;
} Cell;

typedef struct {
    Model base;
    int64_t source_width, encoder_width, encoder_layers, encoder_lstm, directions, reverse; /* of the encoder */
    int64_t E, D, layers, lstm, attend, every, feeds;                                       /* of the decoder */
    int64_t hard, extent, features; /* of its attention; features: width in which queries meet keys */
    int64_t M;                      /* the memory's width */
    float scale, radius;
    float *source_table, *target_table;
    Cell *forth, *back, *cells;
    Linear first, query, key, where, combine, readout;
    float *v, *where_v;
} Recurrent;

/* ---- making and freeing ---- */

static Cell *read_cells(Reader *from, int64_t layers, int64_t first, int64_t others, int64_t D, int64_t lstm) {
    Cell *cells = calloc(layers, sizeof(Cell));
    if (!cells) from->failed = 1;
    for (int64_t l = 0; l < layers && !from->failed; l++) {
        read_linear(from, &cells[l].inputs, (lstm ? 4 : 3) * D, l ? others : first);
        read_linear(from, &cells[l].states, (lstm ? 4 : 3) * D, D);
    }
    return cells;
}

static void free_cells(Cell *cells, int64_t layers) {
    for (int64_t l = 0; cells && l < layers; l++) {
        free_linear(&cells[l].inputs);
        free_linear(&cells[l].states);
    }
    free(cells);
}

static void free_recurrent(Model *base) {
    Recurrent *m = (Recurrent *)base;
    free_cells(m->forth, m->encoder_layers);
    free_cells(m->back, m->encoder_layers);
    free_cells(m->cells, m->layers);
    Linear *all[] = {&m->first, &m->query, &m->key, &m->where, &m->combine, &m->readout};
    for (int i = 0; i < 6; i++) free_linear(all[i]);
    free(m->source_table);
    free(m->target_table);
    free(m->v);
    free(m->where_v);
    free_output(base);
    free(m);
}

/* ---- cells: h and c [D] are changed in place; x and s are the input's and the state's share in the gates ---- */

static void gru(const float *x, const float *s, float *h, int64_t D) {
    for (int64_t j = 0; j < D; j += LANES) {
#define GATE(k) (load_part(x + k * D + j, D - j, 0) + load_part(s + k * D + j, D - j, 0))
        vec r = sigmoid(GATE(0)), z = sigmoid(GATE(1)), before = load_part(h + j, D - j, 0);
        vec n = hyperbolic(load_part(x + 2 * D + j, D - j, 0) + r * load_part(s + 2 * D + j, D - j, 0));
        store_part(h + j, n + z * (before - n), D - j);
    }
}

static void lstm(const float *x, const float *s, float *h, float *c, int64_t D) {
    for (int64_t j = 0; j < D; j += LANES) {
        vec i = sigmoid(GATE(0)), f = sigmoid(GATE(1)), g = hyperbolic(GATE(2)), o = sigmoid(GATE(3));
        vec now = f * load_part(c + j, D - j, 0) + i * g;
        store_part(c + j, now, D - j);
        store_part(h + j, o * hyperbolic(now), D - j);
    }
#undef GATE
}

static void bend(float *x, int64_t n) {
    for (int64_t j = 0; j < n; j += LANES) store_part(x + j, hyperbolic(load_part(x + j, n - j, 0)), n - j);
}

/* ---- room for one call ---- */

typedef struct {
    const int64_t *starts;
    int64_t sources, beam, size, wide; /* size: of a hypothesis' state; wide: of a row of `mixed` */
    float *states, *keys, *summary;    /* [N, M], [N, features] or the states, [sources, M] */
    float *before;                     /* [2, sources, beam, size]: states after the last step, and after the one before */
    float *state;                      /* [n, size]: of the rows that go on */
    float *mixed;                      /* [n, wide]: the word, what was attended to, and the output, side by side */
    float *x, *s, *features, *weights;
    Scratch scratch;
} Call;

static void free_call(void *given) {
    Call *r = given;
    if (r->keys != r->states) free(r->keys);
    void *all[] = {r->states, r->summary, r->before, r->state, r->mixed, r->x, r->s, r->features, r->weights};
    for (int i = 0; i < 9; i++) free(all[i]);
    free_scratch(&r->scratch);
    free(r);
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static Call *make_call(const Recurrent *m, const Asked *asked) {
    Call *r = calloc(1, sizeof(Call));
    if (!r) return NULL;
    int64_t sources = asked->sources, N = asked->starts[sources], rows = sources * asked->beam;
    int64_t most = larger(N, rows), places = 0, gates = 4 * larger(m->D, m->encoder_width);
    for (int64_t b = 0; b < sources; b++) places = larger(places, asked->starts[b + 1] - asked->starts[b]);
    *r = (Call){.starts = asked->starts, .sources = sources, .beam = asked->beam};
    r->size = m->layers * m->D * (m->lstm ? 2 : 1) + (m->feeds ? m->D : 0);
    r->wide = m->E + larger(m->M, m->D) + m->D;
    gates = larger(larger(gates, m->features), 2 * m->E);
    r->states = aligned(N * m->M * 4);
    r->keys = m->key.outputs ? aligned(N * m->features * 4) : r->states;
    r->summary = aligned(sources * m->M * 4);
    r->before = aligned(2 * rows * r->size * 4);
    r->state = aligned(rows * r->size * 4);
    r->mixed = aligned(rows * r->wide * 4);
    r->x = aligned(larger(most * gates, m->layers * m->D) * 4);
    r->s = aligned(most * gates * 4);
    r->features = aligned(rows * larger(m->E, m->encoder_width) * 4);
    r->weights = aligned((places + LANES) * 4);
    if (!make_scratch(&r->scratch, most, larger(larger(r->wide, m->M), m->source_width)) && r->states && r->keys &&
        r->summary && r->before && r->state && r->mixed && r->x && r->s && r->features && r->weights)
        return r;
    free_call(r);
    return NULL;
}

/* ---- encoding ---- */

/* One direction of one layer. x [N, inputs]; outputs go to out [N, M] from column `column` on, each source's last one
 * also into the summary. */
static void read_through(const Recurrent *m, const Cell *cell, int backwards, const float *x, int64_t stride,
                         const int64_t *order, float *out, int64_t column, Call *r) {
    int64_t D = m->encoder_width, G = (m->encoder_lstm ? 4 : 3) * D, B = r->sources;
    const int64_t *starts = r->starts;
    product(&cell->inputs, x, stride, starts[B], r->x, &r->scratch);
    float *h = r->features, *c = r->mixed; /* nothing is decoded yet */
    memset(h, 0, B * D * 4);
    memset(c, 0, B * D * 4);
    for (int64_t t = 0, on = B; on; t++) {
        while (on && starts[order[on - 1] + 1] - starts[order[on - 1]] <= t) on--;
        product(&cell->states, h, D, on, r->s, &r->scratch);
        for (int64_t i = 0; i < on; i++) {
            int64_t b = order[i], length = starts[b + 1] - starts[b];
            int64_t token = backwards ? starts[b + 1] - 1 - t : starts[b] + t;
            if (m->encoder_lstm)
                lstm(r->x + token * G, r->s + i * G, h + i * D, c + i * D, D);
            else
                gru(r->x + token * G, r->s + i * G, h + i * D, D);
            memcpy(out + token * m->M + column, h + i * D, D * 4);
            if (t == length - 1) memcpy(r->summary + b * m->M + column, h + i * D, D * 4);
        }
    }
}

static int encode(const Recurrent *m, const int64_t *tokens, Call *r) {
    int64_t B = r->sources, N = r->starts[B], S = m->source_width, order[B];
    for (int64_t b = 0; b < B; b++) { /* the longest first */
        int64_t at = b, length = r->starts[b + 1] - r->starts[b];
        for (; at > 0 && length > r->starts[order[at - 1] + 1] - r->starts[order[at - 1]]; at--) order[at] = order[at - 1];
        order[at] = b;
    }
    float *input = aligned(N * larger(S, m->M) * 4);
    if (!input) return -1;
    for (int64_t n = 0; n < N; n++) memcpy(input + n * S, m->source_table + tokens[n] * S, S * 4);
    for (int64_t l = 0; l < m->encoder_layers; l++) {
        int64_t stride = l ? m->M : S;
        read_through(m, m->forth + l, (int)m->reverse, input, stride, order, r->states, 0, r);
        if (m->directions > 1)
            read_through(m, m->back + l, !m->reverse, input, stride, order, r->states, m->encoder_width, r);
        if (l + 1 < m->encoder_layers) memcpy(input, r->states, N * m->M * 4);
    }
    free(input);
    return 0;
}

/* ---- attending ---- */

/* One hypothesis' query features q and its state s -> context c [M] */
static void look(const Recurrent *m, const Call *r, int64_t source, int64_t step, const float *q, float centre,
                 float *c) {
    int64_t start = r->starts[source], T = r->starts[source + 1] - start, A = m->features, M = m->M, from = 0, to = T;
    if (m->extent != EVERYWHERE) {
        if (m->extent == LOCAL_M) centre = (float)step;
        while (from < T && centre - (float)from > m->radius) from++;
        while (to > from && (float)(to - 1) - centre > m->radius) to--;
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
        vec s = splat(0);
        for (int64_t a = 0; a < A; a += LANES)
            s += load_part(m->v + a, A - a, 0) * hyperbolic(load_part(q + a, A - a, 0) + load_part(key + a, A - a, 0));
        w[j - from] = sum(s);
    }
    if (m->hard) {
        int64_t best = 0;
        for (int64_t j = 1; j < to - from; j++) best = w[j] > w[best] ? j : best;
        for (int64_t j = 0; j < to - from; j++) w[j] = j == best;
    } else {
        softmax(w, to - from);
    }
    if (m->extent == LOCAL_P)
        for (int64_t j = from; j < to; j++) {
            float off = ((float)j - centre) / (m->radius / 2);
            w[j - from] *= expf(-off * off / 2);
        }
    for (int64_t d = 0; d < M; d += LANES) {
        vec s = splat(0);
        for (int64_t j = from; j < to; j++) s += w[j - from] * load_part(r->states + (start + j) * M + d, M - d, 0);
        store_part(c + d, s, M - d);
    }
}

/* All hypotheses', from queries [n, D] that lie `stride` apart, into `mixed`. */
static void look_all(const Recurrent *m, Call *r, Beam *const *beams, int64_t count, int64_t n, int64_t step,
                     const float *queries, int64_t stride) {
    const float *q = queries;
    int64_t q_stride = stride, at = 0;
    if (m->extent == LOCAL_P) {
        product(&m->where, queries, stride, n, r->s, &r->scratch);
        bend(r->s, n * m->where.outputs);
    }
    if (m->query.outputs) {
        product(&m->query, queries, stride, n, r->x, &r->scratch);
        q = r->x;
        q_stride = m->features;
    }
    for (int64_t b = 0; b < count; b++)
        for (int64_t row = 0; row < beams[b]->rows; row++, at++) {
            int64_t source = beams[b]->source, T = r->starts[source + 1] - r->starts[source];
            float centre = 0;
            if (m->extent == LOCAL_P)
                centre = (float)T / (1 + expf(-dot(r->s + at * m->where.outputs, m->where_v, m->where.outputs)));
            look(m, r, source, step, q + at * q_stride, centre, r->mixed + at * r->wide + m->E);
        }
}

/* ---- what a search asks for ---- */

static void *begin(const Model *base, const Asked *asked) {
    const Recurrent *m = (const Recurrent *)base;
    int64_t D = m->D, each = m->lstm ? 2 : 1;
    Call *r = make_call(m, asked);
    if (!r) return NULL;
    if (encode(m, asked->tokens, r)) {
        free_call(r);
        return NULL;
    }
    if (m->key.outputs) product(&m->key, r->states, m->M, r->starts[r->sources], r->keys, &r->scratch);
    float *start = r->x; /* s_0 = tanh(W C) in every layer */
    for (int64_t b = 0; b < r->sources; b++) {
        product(&m->first, r->summary + b * m->M, m->M, 1, start, &r->scratch);
        bend(start, m->layers * D);
        float *own = r->before + (r->sources + b) * r->beam * r->size;
        memset(own, 0, r->size * 4);
        for (int64_t l = 0; l < m->layers; l++) memcpy(own + l * each * D, start + l * D, D * 4);
    }
    return r;
}

/* What lies side by side in `mixed` -> features */
static void read_out(const Recurrent *m, Call *r, int64_t n) {
    int64_t D = m->D, E = m->E, W = r->wide, apart = W;
    const float *shown = r->mixed + E + m->M; /* the output */
    if (m->attend == BEFORE || m->every) {    /* maxout over two halves */
        product(&m->readout, r->mixed, W, n, r->x, &r->scratch);
        for (int64_t row = 0; row < n; row++)
            for (int64_t j = 0; j < E; j++) {
                const float *both = r->x + row * 2 * E + j;
                r->features[row * E + j] = both[0] > both[E] ? both[0] : both[E];
            }
        return;
    }
    if (m->attend == AFTER) {
        product(&m->combine, r->mixed + E, W, n, r->s, &r->scratch);
        bend(r->s, n * D);
        shown = r->s;
        apart = D;
        float *fed = r->state + r->size - D;
        for (int64_t row = 0; row < n && m->feeds; row++) memcpy(fed + row * r->size, r->s + row * D, D * 4);
    }
    if (m->readout.outputs)
        product(&m->readout, shown, apart, n, r->features, &r->scratch);
    else
        for (int64_t row = 0; row < n; row++) memcpy(r->features + row * E, shown + row * apart, E * 4);
}

static const float *step(const Model *base, void *call, Beam *const *beams, int64_t count, int64_t step) {
    const Recurrent *m = (const Recurrent *)base;
    Call *r = call;
    int64_t D = m->D, E = m->E, M = m->M, Z = r->size, W = r->wide, K = r->beam, each = m->lstm ? 2 : 1, n = 0;
    int64_t G = (m->lstm ? 4 : 3) * D, last = (m->layers - 1) * each * D;
    const float *before = r->before + (step + 1) % 2 * r->sources * K * Z;
    for (int64_t b = 0; b < count; b++)
        for (int64_t row = 0; row < beams[b]->rows; row++, n++) {
            const Beam *beam = beams[b];
            int64_t parent = step ? beam->places[row * beam->limit + step - 1] : 0;
            memcpy(r->state + n * Z, before + (beam->source * K + parent) * Z, Z * 4);
            memcpy(r->mixed + n * W, m->target_table + said_before(beam, row, step) * E, E * 4);
            if (m->every) memcpy(r->mixed + n * W + E, r->summary + beam->source * M, M * 4);
            if (m->feeds) memcpy(r->mixed + n * W + E, r->state + n * Z + Z - D, D * 4);
        }
    if (m->attend == BEFORE) look_all(m, r, beams, count, n, step, r->state + last, Z);
    for (int64_t l = 0; l < m->layers; l++) {
        const Cell *cell = m->cells + l;
        const float *input = l ? r->state + (l - 1) * each * D : r->mixed;
        float *h = r->state + l * each * D;
        product(&cell->inputs, input, l ? Z : W, n, r->x, &r->scratch);
        product(&cell->states, h, Z, n, r->s, &r->scratch);
        for (int64_t row = 0; row < n; row++)
            if (m->lstm)
                lstm(r->x + row * G, r->s + row * G, h + row * Z, h + row * Z + D, D);
            else
                gru(r->x + row * G, r->s + row * G, h + row * Z, D);
    }
    if (m->attend == AFTER) look_all(m, r, beams, count, n, step, r->state + last, Z);
    for (int64_t row = 0; row < n; row++) memcpy(r->mixed + row * W + E + M, r->state + row * Z + last, D * 4);
    read_out(m, r, n);
    float *after = r->before + step % 2 * r->sources * K * Z;
    n = 0;
    for (int64_t b = 0; b < count; b++) {
        memcpy(after + beams[b]->source * K * Z, r->state + n * Z, beams[b]->rows * Z * 4);
        n += beams[b]->rows;
    }
    return r->features;
}

/* numbers: of the encoder the width of its embeddings, its width, layers, whether an LSTM's, directions, whether read
 * backwards, its vocabulary; of the decoder the same first four, when it attends, whether the summary comes at every
 * step, whether what it attended to is fed back, whether attention is hard, its extent, the width of its features and of
 * its places' network, the memory's width, its vocabulary. scales: of dot products, and the local extents' radius. Arrays
 * in the order in which they are read here; those of parts that a model lacks are NULL. */
Model *regard_recurrent_new(const int64_t *numbers, const float *scales, const float *const *arrays, int64_t low) {
    Recurrent *m = calloc(1, sizeof(Recurrent));
    if (!m) return NULL;
    low = low && WHOLE_NUMBERS;
    Reader reader = {arrays, 0, (int)low}, *from = &reader;
    const int64_t *e = numbers, *d = numbers + 7;
    m->source_width = e[0], m->encoder_width = e[1], m->encoder_layers = e[2], m->encoder_lstm = e[3];
    m->directions = e[4], m->reverse = e[5];
    m->E = d[0], m->D = d[1], m->layers = d[2], m->lstm = d[3], m->attend = d[4], m->every = d[5], m->feeds = d[6];
    m->hard = d[7], m->extent = d[8], m->features = d[9], m->M = d[11];
    m->scale = scales[0], m->radius = scales[1];
    int64_t E = m->E, D = m->D, M = m->M;
    m->base = (Model){.width = E, .vocabulary = d[12], .low = low, .begin = begin, .step = step, .end = free_call,
                      .free = free_recurrent};
    m->source_table = copied(from, e[6] * m->source_width);
    m->forth = read_cells(from, m->encoder_layers, m->source_width, M, m->encoder_width, m->encoder_lstm);
    if (m->directions > 1)
        m->back = read_cells(from, m->encoder_layers, m->source_width, M, m->encoder_width, m->encoder_lstm);
    int64_t beside = m->attend == BEFORE || m->every ? M : m->feeds ? D : 0;
    if (!from->failed) {
        m->target_table = copied(from, m->base.vocabulary * E);
        read_linear(from, &m->first, m->layers * D, M);
        m->cells = read_cells(from, m->layers, E + beside, D, D, m->lstm);
    }
    if (!from->failed) {
        read_linear(from, &m->query, m->features, D);
        read_linear(from, &m->key, m->features, M);
        m->v = copied(from, m->features);
        read_linear(from, &m->where, d[10], D);
        m->where_v = copied(from, d[10]);
        read_linear(from, &m->combine, D, M + D);
        if (m->attend == BEFORE || m->every)
            read_linear(from, &m->readout, 2 * E, E + M + D);
        else
            read_linear(from, &m->readout, E, D);
        read_output(from, &m->base);
    }
    if (!from->failed) return &m->base;
    free_recurrent(&m->base);
    return NULL;
}
