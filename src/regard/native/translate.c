/* A Transformer and its beam search, for sources of any length together, without padding.
 *
 * Sources lie one after the other; what is per token is one product over all of them, what is per source is a loop.
 * Keys and values of what was said stay where they were written: a hypothesis knows which of its source's places at each
 * step are its own. Each source's search is its own: nothing depends on the company.
 */
#include "matrix.h"

enum { PAD, UNKNOWN, BEGIN, END };
enum { RELU, GELU, SWIGLU, GEGLU };
#define SPARE 16   /* words looked at again, beside those that can matter */
#define FAINT 20   /* below the highest logit by this much, a word adds nothing to the sum: 2e-9 */
#define BLOCK 1024 /* words whose logits are looked at while they are in the cache */

typedef struct {
    float *weight, *bias; /* bias NULL: RMSNorm */
    float epsilon;
} Norm;

typedef struct {
    Norm self_norm, memory_norm, inner_norm;
    Linear qkv, self_out, q, kv, memory_out, inner, outer;
} Layer;

typedef struct {
    int64_t layers, heads, inner, activation, pre, vocabulary, places;
    float scale;
    float *table, *where; /* [vocabulary, D], [places, D] or NULL */
    Layer *layer;
    Norm norm;
} Side;

typedef struct {
    int64_t width;
    Side encoder, decoder;
    int64_t low; /* whether layers are multiplied in int8 */
    Linear output;
    float *rows, *bias; /* the output layer again, row by row: for shortlists, and to look again at the best words */
} Model;

/* ---- making and freeing ---- */

typedef struct {
    const float *const *next;
    int failed, low;
} Reader;

static float *copied(Reader *from, int64_t size) {
    const float *given = *from->next++;
    if (!given) return NULL;
    float *own = aligned(size * 4);
    if (!own) {
        from->failed = 1;
        return NULL;
    }
    memcpy(own, given, size * 4);
    return own;
}

static void read_linear(Reader *from, Linear *m, int64_t outputs, int64_t inputs) {
    const float *weight = *from->next++, *bias = *from->next++;
    if (make_linear(m, outputs, inputs)) {
        from->failed = 1;
        return;
    }
    for (int64_t o = 0; o < outputs; o++) put_output(m, o, weight + o * inputs);
    if (bias) memcpy(m->bias, bias, outputs * 4);
    if (from->low && make_low(m, weight)) from->failed = 1;
}

static void read_norm(Reader *from, Norm *norm, int64_t width, float epsilon) {
    norm->weight = copied(from, width);
    norm->bias = copied(from, width);
    norm->epsilon = epsilon;
}

static void read_side(Reader *from, Side *s, int64_t D, const int64_t *numbers, float scale, float epsilon, int decoder) {
    *s = (Side){.layers = numbers[0], .heads = numbers[1], .inner = numbers[2], .activation = numbers[3],
                .pre = numbers[4], .vocabulary = numbers[5], .places = numbers[6], .scale = scale};
    s->table = copied(from, s->vocabulary * D);
    s->where = copied(from, s->places * D);
    s->layer = calloc(s->layers, sizeof(Layer));
    if (!s->layer) {
        from->failed = 1;
        return;
    }
    int64_t gated = s->activation >= SWIGLU ? 2 : 1;
    for (int64_t l = 0; l < s->layers && !from->failed; l++) {
        Layer *y = s->layer + l;
        read_norm(from, &y->self_norm, D, epsilon);
        read_linear(from, &y->qkv, 3 * D, D);
        read_linear(from, &y->self_out, D, D);
        if (decoder) {
            read_norm(from, &y->memory_norm, D, epsilon);
            read_linear(from, &y->q, D, D);
            read_linear(from, &y->kv, 2 * D, D);
            read_linear(from, &y->memory_out, D, D);
        }
        read_norm(from, &y->inner_norm, D, epsilon);
        read_linear(from, &y->inner, gated * s->inner, D);
        read_linear(from, &y->outer, D, s->inner);
    }
    if (!from->failed) read_norm(from, &s->norm, D, epsilon);
}

static void free_norm(Norm *n) {
    free(n->weight);
    free(n->bias);
}

static void free_side(Side *s) {
    for (int64_t l = 0; s->layer && l < s->layers; l++) {
        Layer *y = s->layer + l;
        Linear *all[] = {&y->qkv, &y->self_out, &y->q, &y->kv, &y->memory_out, &y->inner, &y->outer};
        for (int i = 0; i < 7; i++) free_linear(all[i]);
        free_norm(&y->self_norm);
        free_norm(&y->memory_norm);
        free_norm(&y->inner_norm);
    }
    free(s->layer);
    free(s->table);
    free(s->where);
    free_norm(&s->norm);
}

void regard_model_free(Model *m) {
    if (!m) return;
    free_side(&m->encoder);
    free_side(&m->decoder);
    free_linear(&m->output);
    free(m->rows);
    free(m->bias);
    free(m);
}

/* Whether this processor multiplies whole numbers faster. */
int64_t regard_whole_numbers(void) { return WHOLE_NUMBERS; }

/* numbers: the width, then for each side layers, heads, inner width, activation, pre, vocabulary, places.
 * scales: of each side's embeddings, and the norms' epsilon. Arrays in the order in which they are read here. low:
 * multiply in int8, where the processor can. */
Model *regard_model_new(const int64_t *numbers, const float *scales, const float *const *arrays, int64_t low) {
    Model *m = calloc(1, sizeof(Model));
    if (!m) return NULL;
    m->low = low && WHOLE_NUMBERS;
    Reader from = {arrays, 0, (int)m->low};
    int64_t D = m->width = numbers[0];
    read_side(&from, &m->encoder, D, numbers + 1, scales[0], scales[2], 0);
    if (!from.failed) read_side(&from, &m->decoder, D, numbers + 8, scales[1], scales[2], 1);
    if (!from.failed) {
        int64_t V = m->decoder.vocabulary;
        const float *weight = from.next[0], *bias = from.next[1];
        read_linear(&from, &m->output, V, D);
        m->rows = aligned(V * D * 4);
        m->bias = aligned(V * 4);
        if (!m->rows || !m->bias) {
            from.failed = 1;
        } else {
            memcpy(m->rows, weight, V * D * 4);
            if (bias)
                memcpy(m->bias, bias, V * 4);
            else
                memset(m->bias, 0, V * 4);
        }
    }
    if (from.failed) {
        regard_model_free(m);
        return NULL;
    }
    return m;
}

/* ---- the parts of a layer ---- */

static void normed(const Norm *norm, const float *x, int64_t n, int64_t D, float *out) {
    for (int64_t row = 0; row < n; row++, x += D, out += D) {
        vec s = splat(0);
        for (int64_t j = 0; j < D; j += LANES) s += load_part(x + j, D - j, 0);
        float mean = norm->bias ? sum(s) / D : 0;
        s = splat(0);
        for (int64_t j = 0; j < D; j += LANES) {
            vec d = load_part(x + j, D - j, mean) - mean;
            s += d * d;
        }
        float scale = 1 / sqrtf(sum(s) / D + norm->epsilon);
        for (int64_t j = 0; j < D; j += LANES) {
            vec y = (load_part(x + j, D - j, mean) - mean) * scale * load_part(norm->weight + j, D - j, 0);
            if (norm->bias) y += load_part(norm->bias + j, D - j, 0);
            store_part(out + j, y, D - j);
        }
    }
}

static void add(float *x, const float *y, int64_t size) {
    for (int64_t j = 0; j < size; j += LANES)
        store_part(x + j, load_part(x + j, size - j, 0) + load_part(y + j, size - j, 0), size - j);
}

/* x [n, inner or twice that] -> [n, inner], rows close together */
static void activated(float *x, int64_t n, int64_t inner, int64_t kind) {
    if (kind == RELU) {
        for (int64_t j = 0; j < n * inner; j += LANES) {
            vec v = load_part(x + j, n * inner - j, 0);
            store_part(x + j, either((whole)(v > 0.0f), v, splat(0)), n * inner - j);
        }
        return;
    }
    int64_t stride = kind >= SWIGLU ? 2 * inner : inner;
    for (int64_t row = 0; row < n; row++) {
        const float *from = x + row * stride;
        for (int64_t j = 0; j < inner; j++) {
            float v = from[j];
            float y = kind == SWIGLU ? v / (1 + expf(-v)) : 0.5f * v * (1 + erff(v * 0.70710678f));
            x[row * inner + j] = kind >= SWIGLU ? y * from[inner + j] : y;
        }
    }
}

ALWAYS float dot(const float *a, const float *b, int64_t n) {
    vec s = splat(0);
    for (int64_t j = 0; j < n; j += LANES) s += load_part(a + j, n - j, 0) * load_part(b + j, n - j, 0);
    return sum(s);
}

/* Scores in place to weights. */
static void softmax(float *w, int64_t n) {
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

/* One query's heads over n places: keys and values of place j are at the pointers. out [D] */
static void attend(const float *q, const float *const *keys, const float *const *values, int64_t n, int64_t D,
                   int64_t heads, float *w, float *out) {
    int64_t width = D / heads;
    float scale = 1 / sqrtf((float)width);
    for (int64_t h = 0; h < heads; h++) {
        const float *own = q + h * width;
        for (int64_t j = 0; j < n; j++) w[j] = scale * dot(own, keys[j] + h * width, width);
        softmax(w, n);
        for (int64_t d = 0; d < width; d += LANES) {
            vec s = splat(0);
            for (int64_t j = 0; j < n; j++) s += w[j] * load_part(values[j] + h * width + d, width - d, 0);
            store_part(out + h * width + d, s, width - d);
        }
    }
}

/* ---- room for one call ---- */

typedef struct {
    float *x, *y, *z, *inner, *weights, *logits, *scales;
    uint8_t *bytes;
    const float **keys, **values;
} Room;

static int make_room(Room *r, int64_t rows, int64_t D, int64_t inner, int64_t places, int64_t words) {
    r->x = aligned(rows * D * 4);
    r->y = aligned(rows * D * 4);
    r->z = aligned(rows * 3 * D * 4);
    r->inner = aligned(rows * inner * 4);
    r->weights = aligned((places + LANES) * 4);
    r->logits = aligned(words * 4);
    r->keys = aligned(places * sizeof(float *));
    r->values = aligned(places * sizeof(float *));
    r->scales = aligned(rows * 4);
    r->bytes = aligned(rows * (fours(inner) * 4 + 64));
    return r->x && r->y && r->z && r->inner && r->weights && r->logits && r->keys && r->values && r->scales && r->bytes
               ? 0
               : -1;
}

static void free_room(Room *r) {
    void *all[] = {r->x, r->y, r->z, r->inner, r->weights, r->logits, r->keys, r->values, r->scales, r->bytes};
    for (int i = 0; i < 10; i++) free(all[i]);
}

/* linear(), in int8 where the matrix has it and it is wanted. */
static void product(const Linear *m, const float *x, int64_t n, float *out, int low, Room *r) {
#if WHOLE_NUMBERS
    if (low && m->low) {
        as_bytes(x, m->inputs, n, m->inputs, r->bytes, r->scales);
        low_linear(m, r->bytes, r->scales, 0, panels_of(m->outputs), n, out, m->outputs);
        return;
    }
#endif
    (void)low, (void)r;
    linear(m, x, 0, panels_of(m->outputs), n, out, m->outputs);
}

static void embed(const Side *s, int64_t token, int64_t place, int64_t D, float *out) {
    const float *row = s->table + token * D, *where = s->where ? s->where + place * D : NULL;
    for (int64_t j = 0; j < D; j += LANES) {
        vec v = load_part(row + j, D - j, 0) * s->scale;
        if (where) v += load_part(where + j, D - j, 0);
        store_part(out + j, v, D - j);
    }
}

/* x += part(x) with the norm where it belongs; `part` is in y after this was called with its input. */
#define INPUT(norm) (s->pre ? (normed(norm, r->x, n, D, r->y), r->y) : r->x)
#define SUMMED(norm)                                  \
    add(r->x, r->y, n * D);                           \
    if (!s->pre) normed(norm, r->x, n, D, r->x);

static void feed_forward(const Model *m, const Side *s, const Layer *y, Room *r, int64_t n) {
    int64_t D = m->width;
    product(&y->inner, INPUT(&y->inner_norm), n, r->inner, m->low, r);
    activated(r->inner, n, s->inner, s->activation);
    product(&y->outer, r->inner, n, r->y, m->low, r);
    SUMMED(&y->inner_norm)
}

/* ---- encoding: tokens of all sources, one after the other -> states in r->x ---- */

static void encode(const Model *m, const int64_t *tokens, const int64_t *starts, int64_t sources, Room *r) {
    const Side *s = &m->encoder;
    int64_t D = m->width, n = starts[sources];
    for (int64_t b = 0; b < sources; b++)
        for (int64_t t = starts[b]; t < starts[b + 1]; t++) embed(s, tokens[t], t - starts[b], D, r->x + t * D);
    for (int64_t l = 0; l < s->layers; l++) {
        const Layer *y = s->layer + l;
        product(&y->qkv, INPUT(&y->self_norm), n, r->z, m->low, r);
        float *attended = r->inner; /* as wide as the width at least */
        for (int64_t b = 0; b < sources; b++) {
            int64_t length = starts[b + 1] - starts[b];
            for (int64_t j = 0; j < length; j++) {
                r->keys[j] = r->z + (starts[b] + j) * 3 * D + D;
                r->values[j] = r->keys[j] + D;
            }
            for (int64_t t = starts[b]; t < starts[b + 1]; t++)
                attend(r->z + t * 3 * D, r->keys, r->values, length, D, s->heads, r->weights, attended + t * D);
        }
        product(&y->self_out, attended, n, r->y, m->low, r);
        SUMMED(&y->self_norm)
        feed_forward(m, s, y, r, n);
    }
    if (s->pre) normed(&s->norm, r->x, n, D, r->x);
}

/* ---- searching ---- */

typedef struct {
    float total;
    int64_t length;
    int32_t *tokens;
} Found;

typedef struct {
    int64_t source, limit, rows, ended; /* rows: hypotheses that go on; ended: how many have */
    int32_t *tokens, *places;           /* [K, limit]: what each said, and where its keys are at each step */
    float *totals;                      /* [K] */
    float *cache;                       /* [layers, limit, K, 2 D] */
    float *memory;                      /* [layers, Ts, 2 D] */
    int64_t length;                     /* Ts */
    Found *found;                       /* the best K that ended */
    const int32_t *words;               /* the shortlist, or NULL for all */
    int64_t count;
    Linear output; /* of its words */
} Beam;

typedef struct {
    float total;
    int32_t row, word;
} Candidate;

static double score_of(float total, int64_t length, float penalty) {
    return penalty == 0 ? total : (double)total / pow((double)length, penalty);
}

/* Into a list sorted best first, of at most `most`; equal ones in the order they come. */
ALWAYS int64_t put_in(Candidate *list, int64_t count, int64_t most, Candidate new) {
    if (count == most && !(new.total > list[most - 1].total)) return count;
    int64_t at = count < most ? count : most - 1;
    while (at > 0 && new.total > list[at - 1].total) list[at] = list[at - 1], at--;
    list[at] = new;
    return count < most ? count + 1 : most;
}

/* What a row's logits have shown so far: the highest, the sum of e^(logit - highest), and the best words. */
typedef struct {
    float highest, sum;
    int64_t have;
    Candidate *best;
} Seen;

/* More logits of a row, of the words from `first` on. */
static void see(Seen *s, const float *logits, int64_t count, int64_t first, int64_t most) {
    vec tops = splat(-INFINITY);
    for (int64_t j = 0; j < count; j += LANES) {
        vec v = load_part(logits + j, count - j, -INFINITY);
        tops = either((whole)(v > tops), v, tops);
    }
    float highest = top(tops);
    if (highest > s->highest) {
        s->sum = s->sum > 0 ? s->sum * expf(s->highest - highest) : 0;
        s->highest = highest;
    }
    vec sums = splat(0);
    for (int64_t j = 0; j < count; j += LANES) {
        vec v = load_part(logits + j, count - j, -INFINITY);
        if (any_above(v, s->highest - FAINT)) sums += exponential(v - s->highest);
        if (s->have == most && !any_above(v, s->best[most - 1].total)) continue;
        for (int64_t i = j; i < j + LANES && i < count; i++)
            if (logits[i] > -INFINITY)
                s->have = put_in(s->best, s->have, most, (Candidate){logits[i], 0, (int32_t)(first + i)});
    }
    s->sum += sum(sums);
}

/* The best words by logits that were multiplied in int8, as they are: computed again, and ranked again. */
static void look_again(const Model *m, const float *feature, Seen *s) {
    for (int64_t i = 0; i < s->have; i++) {
        Candidate c = s->best[i];
        float before = c.total;
        c.total = dot(feature, m->rows + c.word * m->width, m->width) + m->bias[c.word];
        s->sum += expf(c.total - s->highest) - expf(before - s->highest);
        int64_t at = i;
        for (; at > 0 && c.total > s->best[at - 1].total; at--) s->best[at] = s->best[at - 1];
        s->best[at] = c;
    }
}

/* What a row has seen into its source's list: log-probabilities, added to the row's total. */
static int64_t choose(const Seen *s, float end, float total, int32_t row, int last, Candidate *list, int64_t have,
                      int64_t most) {
    float base = total - (s->highest + logf(s->sum));
    if (last) return put_in(list, have, most, (Candidate){base + end, row, END});
    for (int64_t i = 0; i < s->have && i < most; i++)
        have = put_in(list, have, most, (Candidate){base + s->best[i].total, row, s->best[i].word});
    return have;
}

static int keep(Beam *b, const int32_t *said, int64_t length, float total, int64_t K, float penalty) {
    double score = score_of(total, length, penalty);
    int64_t have = b->ended < K ? b->ended : K;
    b->ended++;
    if (have == K && !(score > score_of(b->found[K - 1].total, b->found[K - 1].length, penalty))) return 0;
    int32_t *own = malloc(length * sizeof(int32_t));
    if (!own) return -1;
    memcpy(own, said, (length - 1) * sizeof(int32_t));
    own[length - 1] = END;
    if (have == K) free(b->found[K - 1].tokens);
    int64_t at = have < K ? have : K - 1;
    while (at > 0 && score > score_of(b->found[at - 1].total, b->found[at - 1].length, penalty))
        b->found[at] = b->found[at - 1], at--;
    b->found[at] = (Found){total, length, own};
    return 0;
}

/* After a step: what ended is put aside, the best K others go on. 1 if the search goes on, 0 if it has ended, -1 if
 * there was no memory. */
static int advance(Beam *b, const Candidate *list, int64_t have, int64_t step, int64_t K, int64_t nbest, float penalty,
                   int patient, int32_t *spare) {
    int32_t *tokens = spare, *places = spare + K * b->limit;
    float totals[K];
    int64_t on = 0;
    double ahead = -INFINITY;
    for (int64_t i = 0; i < have; i++) {
        const Candidate *c = list + i;
        const int32_t *said = b->tokens + c->row * b->limit;
        if (c->word == END) {
            if (i < K && keep(b, said, step + 1, c->total, K, penalty)) return -1;
            continue;
        }
        double score = score_of(c->total, step + 1, penalty);
        ahead = score > ahead ? score : ahead;
        if (on == K) continue;
        memcpy(tokens + on * b->limit, said, step * sizeof(int32_t));
        memcpy(places + on * b->limit, b->places + c->row * b->limit, (step + 1) * sizeof(int32_t));
        tokens[on * b->limit + step] = b->words ? b->words[c->word] : c->word;
        totals[on++] = c->total;
    }
    b->rows = on;
    if (!on) return 0;
    if (b->ended >= K) {
        const Found *f = b->found + (nbest < K ? nbest : K) - 1;
        if (!patient || !(ahead > score_of(f->total, f->length, penalty))) return 0;
    }
    memcpy(b->totals, totals, on * sizeof(float));
    for (int64_t r = 0; r < on; r++) {
        memcpy(b->tokens + r * b->limit, tokens + r * b->limit, (step + 1) * sizeof(int32_t));
        memcpy(b->places + r * b->limit, places + r * b->limit, (step + 1) * sizeof(int32_t));
    }
    return 1;
}

static void free_beam(Beam *b, int64_t K) {
    for (int64_t i = 0; b->found && i < K; i++) free(b->found[i].tokens);
    free(b->tokens);
    free(b->places);
    free(b->totals);
    free(b->cache);
    free(b->memory);
    free(b->found);
    free_linear(&b->output);
}

static int make_beam(const Model *m, Beam *b, int64_t K) {
    int64_t D = m->width, L = m->decoder.layers;
    b->tokens = calloc(K * b->limit, sizeof(int32_t));
    b->places = calloc(K * b->limit, sizeof(int32_t));
    b->totals = calloc(K, sizeof(float));
    b->found = calloc(K, sizeof(Found));
    b->cache = aligned(L * b->limit * K * 2 * D * 4);
    b->memory = aligned(L * b->length * 2 * D * 4);
    b->rows = 1;
    if (!b->tokens || !b->places || !b->totals || !b->found || !b->cache || !b->memory) return -1;
    if (b->words) {
        if (make_linear(&b->output, b->count, D)) return -1;
        for (int64_t i = 0; i < b->count; i++) {
            put_output(&b->output, i, m->rows + b->words[i] * D);
            b->output.bias[i] = m->bias[b->words[i]];
        }
    }
    return 0;
}

/* One step of all hypotheses of all beams: features of the next word in r->x. */
static void decode(const Model *m, Beam **beams, int64_t count, int64_t step, int64_t K, Room *r) {
    const Side *s = &m->decoder;
    int64_t D = m->width, n = 0;
    for (int64_t b = 0; b < count; b++)
        for (int64_t row = 0; row < beams[b]->rows; row++) {
            int64_t before = step ? beams[b]->tokens[row * beams[b]->limit + step - 1] : BEGIN;
            embed(s, before, step, D, r->x + n++ * D);
        }
    for (int64_t l = 0; l < s->layers; l++) {
        const Layer *y = s->layer + l;
        product(&y->qkv, INPUT(&y->self_norm), n, r->z, m->low, r);
        float *attended = r->inner;
        int64_t at = 0;
        for (int64_t b = 0; b < count; b++) {
            Beam *beam = beams[b];
            float *cache = beam->cache + l * beam->limit * K * 2 * D;
            for (int64_t row = 0; row < beam->rows; row++) {
                const float *new = r->z + (at + row) * 3 * D;
                memcpy(cache + (step * K + row) * 2 * D, new + D, 2 * D * 4);
                beam->places[row * beam->limit + step] = (int32_t)row;
            }
            for (int64_t row = 0; row < beam->rows; row++, at++) {
                const int32_t *own = beam->places + row * beam->limit;
                for (int64_t j = 0; j <= step; j++) {
                    r->keys[j] = cache + (j * K + own[j]) * 2 * D;
                    r->values[j] = r->keys[j] + D;
                }
                attend(r->z + at * 3 * D, r->keys, r->values, step + 1, D, s->heads, r->weights, attended + at * D);
            }
        }
        product(&y->self_out, attended, n, r->y, m->low, r);
        SUMMED(&y->self_norm)
        product(&y->q, INPUT(&y->memory_norm), n, r->z, m->low, r);
        at = 0;
        for (int64_t b = 0; b < count; b++) {
            const Beam *beam = beams[b];
            for (int64_t j = 0; j < beam->length; j++) {
                r->keys[j] = beam->memory + (l * beam->length + j) * 2 * D;
                r->values[j] = r->keys[j] + D;
            }
            for (int64_t row = 0; row < beam->rows; row++, at++)
                attend(r->z + at * D, r->keys, r->values, beam->length, D, s->heads, r->weights, attended + at * D);
        }
        product(&y->memory_out, attended, n, r->y, m->low, r);
        SUMMED(&y->memory_norm)
        feed_forward(m, s, y, r, n);
    }
    if (s->pre) normed(&s->norm, r->x, n, D, r->x);
}

/* All words' logits after the features in r->x [n, D], some at a time; `ends`: the end's. */
static void see_all(const Model *m, int64_t n, int64_t most, Seen *seen, float *ends, Room *r) {
    const Linear *w = &m->output;
    int64_t D = m->width, V = w->outputs, spare = w->low ? SPARE : 0;
#if WHOLE_NUMBERS
    if (w->low) as_bytes(r->x, D, n, D, r->bytes, r->scales);
#endif
    for (int64_t first = 0; first < V; first += BLOCK) {
        int64_t from = first / COLUMNS, to = (first + BLOCK) / COLUMNS, count = V - first < BLOCK ? V - first : BLOCK;
        to = to < panels_of(V) ? to : panels_of(V);
#if WHOLE_NUMBERS
        if (w->low) low_linear(w, r->bytes, r->scales, from, to, n, r->logits, BLOCK);
#endif
        if (!w->low) linear(w, r->x, from, to, n, r->logits, BLOCK);
        for (int64_t row = 0; row < n; row++) {
            float *logits = r->logits + row * BLOCK;
            if (!first) {
                logits[PAD] = logits[BEGIN] = -INFINITY;
                ends[row] = logits[END];
            }
            see(seen + row, logits, count, first, most + spare);
        }
    }
    for (int64_t row = 0; row < n && spare; row++) {
        look_again(m, r->x + row * D, seen + row);
        ends[row] = dot(r->x + row * D, m->rows + END * D, D) + m->bias[END];
    }
}

/* The same for one source's own words; its rows' features begin at row `at`. */
static void see_own(const Beam *beam, int64_t at, int64_t most, Seen *seen, float *ends, Room *r) {
    int64_t D = beam->output.inputs;
    linear(&beam->output, r->x + at * D, 0, panels_of(beam->count), beam->rows, r->logits, beam->count);
    for (int64_t row = 0; row < beam->rows; row++) {
        float *logits = r->logits + row * beam->count;
        logits[PAD] = logits[BEGIN] = -INFINITY;
        ends[row] = logits[END];
        see(seen + row, logits, beam->count, 0, most);
    }
}

/* tokens of all sources with their ends, one after the other; source b's from starts[b] to starts[b + 1], its output of
 * at most limits[b] tokens; its words, if `words` is given, from word_starts[b]. The best `nbest` of each source go into
 * out [sources, nbest, longest], lengths (0 if there is none) and totals [sources, nbest]. Not 0 if memory ran out. */
int64_t regard_translate(const Model *m, const int64_t *tokens, const int64_t *starts, int64_t sources,
                         const int64_t *limits, int64_t K, int64_t nbest, float penalty, int64_t patient,
                         const int32_t *words, const int64_t *word_starts, int64_t longest, int32_t *out,
                         int64_t *lengths, float *totals) {
    int64_t D = m->width, L = m->decoder.layers, failed = 0;
    int64_t rows = starts[sources] > sources * K ? starts[sources] : sources * K;
    int64_t places = longest, wide = D;
    for (int64_t b = 0; b < sources; b++)
        places = starts[b + 1] - starts[b] > places ? starts[b + 1] - starts[b] : places;
    for (int i = 0; i < 2; i++) {
        const Side *s = i ? &m->decoder : &m->encoder;
        int64_t own = s->inner * (s->activation >= SWIGLU ? 2 : 1);
        wide = own > wide ? own : wide;
    }
    Room r = {0};
    Beam *all = calloc(sources, sizeof(Beam));
    Beam **alive = calloc(sources, sizeof(Beam *));
    Candidate *list = calloc(2 * K, sizeof(Candidate));
    int32_t *spare = malloc(2 * K * longest * sizeof(int32_t));
    Seen *seen = calloc(sources * K, sizeof(Seen));
    float *ends = calloc(sources * K, sizeof(float));
    Candidate *best = calloc(sources * K * (2 * K + SPARE), sizeof(Candidate));
    int64_t V = m->decoder.vocabulary;
    if (!all || !alive || !list || !spare || !seen || !ends || !best) failed = 1;
    if (make_room(&r, rows, D, wide, places, words ? K * V : sources * K * BLOCK)) failed = 1;
    for (int64_t b = 0; b < sources && !failed; b++) {
        all[b] = (Beam){.source = b, .limit = limits[b], .length = starts[b + 1] - starts[b], .count = V};
        if (words) {
            all[b].words = words + word_starts[b];
            all[b].count = word_starts[b + 1] - word_starts[b];
        }
        failed = make_beam(m, all + b, K);
        alive[b] = all + b;
    }
    if (!failed) {
        encode(m, tokens, starts, sources, &r);
        for (int64_t l = 0; l < L; l++)
            for (int64_t b = 0; b < sources; b++)
                product(&m->decoder.layer[l].kv, r.x + starts[b] * D, all[b].length,
                        all[b].memory + l * all[b].length * 2 * D, m->low, &r);
    }
    int64_t count = sources;
    for (int64_t step = 0; count && !failed; step++) {
        decode(m, alive, count, step, K, &r);
        int64_t n = 0, on = 0;
        for (int64_t b = 0; b < count; b++) n += alive[b]->rows;
        for (int64_t row = 0; row < n; row++)
            seen[row] = (Seen){.highest = -INFINITY, .best = best + row * (2 * K + SPARE)};
        if (!words) see_all(m, n, 2 * K, seen, ends, &r);
        n = 0;
        for (int64_t b = 0; b < count && !failed; b++) {
            Beam *beam = alive[b];
            if (words) see_own(beam, n, 2 * K, seen + n, ends + n, &r);
            int64_t have = 0;
            int last = step + 1 == beam->limit;
            for (int64_t row = 0; row < beam->rows; row++, n++)
                have = choose(seen + n, ends[n], beam->totals[row], (int32_t)row, last, list, have, 2 * K);
            int goes = advance(beam, list, have, step, K, nbest, penalty, (int)patient, spare);
            if (goes < 0) failed = 1;
            if (goes > 0) alive[on++] = beam;
        }
        count = on;
    }
    for (int64_t b = 0; b < sources && !failed; b++)
        for (int64_t i = 0; i < nbest; i++) {
            int64_t have = all[b].ended < K ? all[b].ended : K;
            const Found *f = all[b].found + i;
            lengths[b * nbest + i] = i < have ? f->length : 0;
            if (i >= have) continue;
            memcpy(out + (b * nbest + i) * longest, f->tokens, f->length * sizeof(int32_t));
            totals[b * nbest + i] = f->total;
        }
    for (int64_t b = 0; all && b < sources; b++) free_beam(all + b, K);
    free(all);
    free(alive);
    free(list);
    free(spare);
    free(seen);
    free(ends);
    free(best);
    free_room(&r);
    return failed;
}
