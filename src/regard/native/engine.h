/* What a model in C is, for the search in search.c: it reads sources, and says features of the next word step by step.
 */
#pragma once
#include "matrix.h"

enum { PAD, UNKNOWN, BEGIN, END };

/* What is asked of a search. The same, field by field, as `_Asked` in inference/engines/native_engine.py. */
typedef struct {
    const int64_t *tokens, *starts; /* of all sources with their ends; source b's from starts[b] to starts[b + 1] */
    const int64_t *limits;          /* tokens that each output has at most */
    const int32_t *words;           /* each source's own words, or NULL for all */
    const int64_t *word_starts;     /* where they begin in `words` */
    int64_t sources, beam, nbest, patient, longest;
    double penalty;
    int32_t *out;     /* [sources, nbest, longest] */
    int64_t *lengths; /* [sources, nbest]; 0 where there is none */
    float *totals;    /* [sources, nbest] */
} Asked;

typedef struct {
    float total;
    int64_t length;
    int32_t *tokens;
} Found;

/* The search of one source. */
typedef struct {
    int64_t source, limit, rows, ended; /* rows: hypotheses that go on; ended: how many have */
    int32_t *tokens, *places;           /* [K, limit]: what each said, and in which row it was at each step */
    float *totals;                      /* [K] */
    Found *found;                       /* the best K that ended */
    const int32_t *words;               /* the shortlist, or NULL for all */
    int64_t count;
    Linear output; /* of its words */
} Beam;

typedef struct Model Model;
struct Model {
    int64_t width, vocabulary, low; /* width: of the features; low: whether layers are multiplied in int8 */
    Linear output;
    float *rows, *bias; /* the output layer again, row by row: for shortlists, and to look again at the best words */
    int8_t *low_rows;   /* and in int8, if it is multiplied in it */
    /* Reads all sources. What it gives is handed to `step` and `end`; NULL if there was no memory. */
    void *(*begin)(const Model *, const Asked *);
    /* The features of the next word, [rows of all these beams, width], after `step` words were said. */
    const float *(*step)(const Model *, void *, Beam *const *, int64_t count, int64_t step);
    void (*end)(void *);
    void (*free)(Model *);
};

/* The word before this step. */
static inline int64_t said_before(const Beam *b, int64_t row, int64_t step) {
    return step ? b->tokens[row * b->limit + step - 1] : BEGIN;
}

/* ---- reading weights, in the order in which they are given ---- */

typedef struct {
    const float *const *next;
    int failed, low;
} Reader;

static inline float *copied(Reader *from, int64_t size) {
    const float *given = *from->next++;
    if (!given || from->failed) return NULL;
    float *own = aligned(size * 4);
    if (!own) {
        from->failed = 1;
        return NULL;
    }
    memcpy(own, given, size * 4);
    return own;
}

/* A weight [outputs, inputs] and a bias, either of which may be NULL. */
static inline void read_linear(Reader *from, Linear *m, int64_t outputs, int64_t inputs) {
    const float *weight = *from->next++, *bias = *from->next++;
    if (from->failed || !weight) return;
    if (make_linear(m, outputs, inputs)) {
        from->failed = 1;
        return;
    }
    for (int64_t o = 0; o < outputs; o++) put_output(m, o, weight + o * inputs);
    if (bias) memcpy(m->bias, bias, outputs * 4);
    if (from->low && make_low(m, weight)) from->failed = 1;
}

/* The output layer: a weight [vocabulary, width] and a bias or NULL. */
static inline void read_output(Reader *from, Model *m) {
    int64_t V = m->vocabulary, D = m->width;
    const float *const *given = from->next;
    read_linear(from, &m->output, V, D);
    from->next = given;
    m->rows = copied(from, V * D);
    m->bias = copied(from, V);
    if (!m->bias && !from->failed) {
        m->bias = aligned(V * 4);
        if (m->bias)
            memset(m->bias, 0, V * 4);
        else
            from->failed = 1;
    }
    if (from->failed || !m->output.low) return;
    int64_t quads = fours(D);
    m->low_rows = aligned(V * quads * 4);
    if (!m->low_rows) {
        from->failed = 1;
        return;
    }
    for (int64_t o = 0; o < V; o++)
        for (int64_t k = 0; k < quads; k++)
            memcpy(m->low_rows + (o * quads + k) * 4, low_place(&m->output, o) + k * COLUMNS * 4, 4);
}

/* The output layer of these words alone. */
static inline int make_part(Linear *part, const Model *m, const int32_t *words, int64_t count) {
    int64_t D = m->width, quads = fours(D);
    if (!m->output.low) {
        if (make_linear(part, count, D)) return -1;
        for (int64_t i = 0; i < count; i++) put_output(part, i, m->rows + words[i] * D);
    } else {
        *part = (Linear){.outputs = count, .inputs = D};
        if (make_low_room(part) || !(part->bias = aligned(panels_of(count) * COLUMNS * 4))) return -1;
        for (int64_t i = 0; i < count; i++) {
            int8_t *to = low_place(part, i);
            const int8_t *from = m->low_rows + words[i] * quads * 4;
            for (int64_t k = 0; k < quads; k++) memcpy(to + k * COLUMNS * 4, from + k * 4, 4);
            part->scales[i] = m->output.scales[words[i]];
            part->sums[i] = m->output.sums[words[i]];
        }
    }
    for (int64_t i = 0; i < count; i++) part->bias[i] = m->bias[words[i]];
    return 0;
}

static inline void free_output(Model *m) {
    free_linear(&m->output);
    free(m->rows);
    free(m->bias);
    free(m->low_rows);
}

/* ---- products, in int8 where the matrix has it ---- */

typedef struct {
    uint8_t *bytes;
    float *scales;
} Scratch;

static inline int make_scratch(Scratch *s, int64_t rows, int64_t widest) {
    s->bytes = aligned(rows * (fours(widest) * 4 + 64));
    s->scales = aligned(rows * 4);
    return s->bytes && s->scales ? 0 : -1;
}

static inline void free_scratch(Scratch *s) {
    free(s->bytes);
    free(s->scales);
}

/* out [n, outputs] of x, whose rows lie `stride` apart */
static inline void product(const Linear *m, const float *x, int64_t stride, int64_t n, float *out, const Scratch *s) {
#if WHOLE_NUMBERS
    if (m->low) {
        as_bytes(x, stride, n, m->inputs, s->bytes, s->scales);
        low_linear(m, s->bytes, s->scales, 0, panels_of(m->outputs), n, out, m->outputs);
        return;
    }
#endif
    (void)s;
    linear(m, x, stride, 0, panels_of(m->outputs), n, out, m->outputs);
}

/* ---- small parts that models share ---- */

static inline void add(float *x, const float *y, int64_t size) {
    for (int64_t j = 0; j < size; j += LANES)
        store_part(x + j, load_part(x + j, size - j, 0) + load_part(y + j, size - j, 0), size - j);
}

ALWAYS float dot(const float *a, const float *b, int64_t n) {
    vec s = splat(0);
    for (int64_t j = 0; j < n; j += LANES) s += load_part(a + j, n - j, 0) * load_part(b + j, n - j, 0);
    return sum(s);
}

/* Scores in place to weights. */
static inline void softmax(float *w, int64_t n) {
    float most = w[0];
    for (int64_t j = 1; j < n; j++) most = w[j] > most ? w[j] : most;
    vec whole_sum = splat(0);
    for (int64_t j = 0; j < n; j += LANES) {
        vec e = exponential(load_part(w + j, n - j, -INFINITY) - most);
        store_part(w + j, e, n - j);
        whole_sum += e;
    }
    float scale = 1 / sum(whole_sum);
    for (int64_t j = 0; j < n; j++) w[j] *= scale;
}
