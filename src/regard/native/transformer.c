/* A Transformer that reads sources of any length together, without padding, and says words step by step.
 *
 * Sources lie one after the other; what is per token is one product over all of them, what is per source is a loop.
 * Keys and values of what was said stay where they were written: a hypothesis knows which of its source's rows at each
 * step are its own.
 */
#include "engine.h"

enum { RELU, GELU, GELU_TANH, SILU, SWIGLU, GEGLU };
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
    Model base;
    int64_t width;
    Side encoder, decoder;
} Transformer;

/* ---- making and freeing ---- */

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
    if (from->failed) return;
    s->layer = calloc(s->layers, sizeof(Layer));
    if (!s->layer) from->failed = 1;
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

static void free_transformer(Model *base) {
    Transformer *m = (Transformer *)base;
    free_side(&m->encoder);
    free_side(&m->decoder);
    free_output(base);
    free(m);
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

/* x [n, inner or twice that] -> [n, inner], rows close together */
static void activated(float *x, int64_t n, int64_t inner, int64_t kind) {
    if (kind == RELU) {
        for (int64_t j = 0; j < n * inner; j += LANES) {
            vec v = load_part(x + j, n * inner - j, 0);
            store_part(x + j, higher(v, splat(0)), n * inner - j);
        }
        return;
    }
    int64_t stride = kind >= SWIGLU ? 2 * inner : inner;
    for (int64_t row = 0; row < n; row++) {
        const float *from = x + row * stride;
        for (int64_t j = 0; j < inner; j++) {
            float v = from[j];
            float y;
            if (kind == SILU || kind == SWIGLU) y = v / (1 + expf(-v));
            else if (kind == GELU_TANH) y = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
            else y = 0.5f * v * (1 + erff(v * 0.70710678f));
            x[row * inner + j] = kind >= SWIGLU ? y * from[inner + j] : y;
        }
    }
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

/* The same over keys that lie dimension by dimension, [D, stride], so that many places are compared at once; the value of
 * place j is at values + j * apart. */
static void attend_still(const float *q, const float *keys, int64_t stride, const float *values, int64_t apart,
                         int64_t n, int64_t D, int64_t heads, float *w, float *out) {
    int64_t width = D / heads;
    float scale = 1 / sqrtf((float)width);
    for (int64_t h = 0; h < heads; h++) {
        const float *own = q + h * width, *first = keys + h * width * stride;
        for (int64_t j = 0; j < n; j += LANES) {
            vec s[4] = {splat(0), splat(0), splat(0), splat(0)}; /* four sums at a time: none waits for another */
            int64_t d = 0;
            for (; d + 4 <= width; d += 4)
                for (int i = 0; i < 4; i++) s[i] += own[d + i] * load(first + (d + i) * stride + j);
            for (; d < width; d++) s[0] += own[d] * load(first + d * stride + j);
            store(w + j, scale * ((s[0] + s[1]) + (s[2] + s[3])));
        }
        softmax(w, n);
        for (int64_t d = 0; d < width; d += LANES) {
            vec s = splat(0);
            for (int64_t j = 0; j < n; j++) s += w[j] * load_part(values + j * apart + h * width + d, width - d, 0);
            store_part(out + h * width + d, s, width - d);
        }
    }
}

static int64_t filled(int64_t places) { return (places + LANES - 1) / LANES * LANES; }

/* Keys [n, D] that lie `apart` -> [D, filled(n)] */
static void turned(const float *keys, int64_t apart, int64_t n, int64_t D, float *out) {
    int64_t stride = filled(n);
    for (int64_t d = 0; d < D; d++) {
        for (int64_t j = 0; j < n; j++) out[d * stride + j] = keys[j * apart + d];
        for (int64_t j = n; j < stride; j++) out[d * stride + j] = 0;
    }
}

/* ---- room for one call ---- */

typedef struct {
    int64_t sources, beam;
    const int64_t *starts, *limits;
    float *x, *y, *z, *inner, *weights;
    const float **keys, **values;
    float **cache;  /* of each source: [layers, limit, beam, 2 D] */
    float **memory; /* of each source, for each layer: keys [D, filled(Ts)], values [Ts, D] */
    float *turned;  /* keys of one source */
    Scratch scratch;
} Call;

static void free_call(void *given) {
    Call *r = given;
    for (int64_t b = 0; b < r->sources; b++) {
        if (r->cache) free(r->cache[b]);
        if (r->memory) free(r->memory[b]);
    }
    void *all[] = {r->x, r->y, r->z, r->inner, r->weights, r->keys, r->values, r->cache, r->memory, r->turned};
    for (int i = 0; i < 10; i++) free(all[i]);
    free_scratch(&r->scratch);
    free(r);
}

/* Of one layer's keys and values of a source. */
static int64_t memory_size(int64_t length, int64_t D) { return (filled(length) + length) * D; }

static Call *make_call(const Transformer *m, const Asked *asked) {
    const int64_t *starts = asked->starts;
    int64_t D = m->width, L = m->decoder.layers, sources = asked->sources, K = asked->beam;
    int64_t rows = starts[sources] > sources * K ? starts[sources] : sources * K, places = asked->longest, wide = D;
    for (int64_t b = 0; b < sources; b++)
        places = starts[b + 1] - starts[b] > places ? starts[b + 1] - starts[b] : places;
    for (int i = 0; i < 2; i++) {
        const Side *s = i ? &m->decoder : &m->encoder;
        int64_t own = s->inner * (s->activation >= SWIGLU ? 2 : 1);
        wide = own > wide ? own : wide;
    }
    Call *r = calloc(1, sizeof(Call));
    if (!r) return NULL;
    *r = (Call){.sources = sources, .beam = K, .starts = starts, .limits = asked->limits};
    r->x = aligned(rows * D * 4);
    r->y = aligned(rows * D * 4);
    r->z = aligned(rows * 3 * D * 4);
    r->inner = aligned(rows * wide * 4);
    r->weights = aligned((places + LANES) * 4);
    r->keys = aligned(places * sizeof(float *));
    r->values = aligned(places * sizeof(float *));
    r->cache = calloc(sources, sizeof(float *));
    r->memory = calloc(sources, sizeof(float *));
    r->turned = aligned(D * filled(places) * 4);
    int failed = make_scratch(&r->scratch, rows, wide) || !r->x || !r->y || !r->z || !r->inner || !r->weights ||
                 !r->keys || !r->values || !r->cache || !r->memory || !r->turned;
    for (int64_t b = 0; b < sources && !failed; b++) {
        r->cache[b] = aligned(L * asked->limits[b] * K * 2 * D * 4);
        r->memory[b] = aligned(L * memory_size(starts[b + 1] - starts[b], D) * 4);
        failed = !r->cache[b] || !r->memory[b];
    }
    if (!failed) return r;
    free_call(r);
    return NULL;
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

static void feed_forward(const Transformer *m, const Side *s, const Layer *y, Call *r, int64_t n) {
    int64_t D = m->width;
    product(&y->inner, INPUT(&y->inner_norm), D, n, r->inner, &r->scratch);
    activated(r->inner, n, s->inner, s->activation);
    product(&y->outer, r->inner, s->inner, n, r->y, &r->scratch);
    SUMMED(&y->inner_norm)
}

/* ---- encoding: tokens of all sources, one after the other -> states in r->x ---- */

static void encode(const Transformer *m, const int64_t *tokens, Call *r) {
    const Side *s = &m->encoder;
    const int64_t *starts = r->starts;
    int64_t D = m->width, sources = r->sources, n = starts[sources];
    for (int64_t b = 0; b < sources; b++)
        for (int64_t t = starts[b]; t < starts[b + 1]; t++) embed(s, tokens[t], t - starts[b], D, r->x + t * D);
    for (int64_t l = 0; l < s->layers; l++) {
        const Layer *y = s->layer + l;
        product(&y->qkv, INPUT(&y->self_norm), D, n, r->z, &r->scratch);
        float *attended = r->inner; /* as wide as the width at least */
        for (int64_t b = 0; b < sources; b++) {
            int64_t length = starts[b + 1] - starts[b];
            const float *first = r->z + starts[b] * 3 * D;
            turned(first + D, 3 * D, length, D, r->turned);
            for (int64_t t = starts[b]; t < starts[b + 1]; t++)
                attend_still(r->z + t * 3 * D, r->turned, filled(length), first + 2 * D, 3 * D, length, D, s->heads,
                             r->weights, attended + t * D);
        }
        product(&y->self_out, attended, D, n, r->y, &r->scratch);
        SUMMED(&y->self_norm)
        feed_forward(m, s, y, r, n);
    }
    if (s->pre) normed(&s->norm, r->x, n, D, r->x);
}

/* ---- what a search asks for ---- */

static void *begin(const Model *base, const Asked *asked) {
    const Transformer *m = (const Transformer *)base;
    int64_t D = m->width;
    Call *r = make_call(m, asked);
    if (!r) return NULL;
    encode(m, asked->tokens, r);
    for (int64_t l = 0; l < m->decoder.layers; l++)
        for (int64_t b = 0; b < r->sources; b++) {
            int64_t length = r->starts[b + 1] - r->starts[b];
            float *keys = r->memory[b] + l * memory_size(length, D), *values = keys + D * filled(length);
            product(&m->decoder.layer[l].kv, r->x + r->starts[b] * D, D, length, r->z, &r->scratch);
            turned(r->z, 2 * D, length, D, keys);
            for (int64_t j = 0; j < length; j++) memcpy(values + j * D, r->z + j * 2 * D + D, D * 4);
        }
    return r;
}

/* One layer's attention of each hypothesis to what it said before and now; keys and values of now are in r->z. */
static void attend_back(Call *r, Beam *const *beams, int64_t count, int64_t l, int64_t step, int64_t D, int64_t heads,
                        float *attended) {
    int64_t K = r->beam, at = 0;
    for (int64_t b = 0; b < count; b++) {
        const Beam *beam = beams[b];
        float *cache = r->cache[beam->source] + l * beam->limit * K * 2 * D;
        for (int64_t row = 0; row < beam->rows; row++)
            memcpy(cache + (step * K + row) * 2 * D, r->z + (at + row) * 3 * D + D, 2 * D * 4);
        for (int64_t row = 0; row < beam->rows; row++, at++) {
            const int32_t *own = beam->places + row * beam->limit;
            for (int64_t j = 0; j <= step; j++) {
                r->keys[j] = cache + (j * K + own[j]) * 2 * D;
                r->values[j] = r->keys[j] + D;
            }
            attend(r->z + at * 3 * D, r->keys, r->values, step + 1, D, heads, r->weights, attended + at * D);
        }
    }
}

/* The same to the source; queries are in r->z. */
static void attend_over(Call *r, Beam *const *beams, int64_t count, int64_t l, int64_t D, int64_t heads,
                        float *attended) {
    int64_t at = 0;
    for (int64_t b = 0; b < count; b++) {
        int64_t source = beams[b]->source, length = r->starts[source + 1] - r->starts[source];
        const float *keys = r->memory[source] + l * memory_size(length, D), *values = keys + D * filled(length);
        for (int64_t row = 0; row < beams[b]->rows; row++, at++)
            attend_still(r->z + at * D, keys, filled(length), values, D, length, D, heads, r->weights,
                         attended + at * D);
    }
}

static const float *step(const Model *base, void *call, Beam *const *beams, int64_t count, int64_t step) {
    const Transformer *m = (const Transformer *)base;
    const Side *s = &m->decoder;
    Call *r = call;
    int64_t D = m->width, n = 0;
    for (int64_t b = 0; b < count; b++)
        for (int64_t row = 0; row < beams[b]->rows; row++)
            embed(s, said_before(beams[b], row, step), step, D, r->x + n++ * D);
    float *attended = r->inner; /* as wide as the width at least */
    for (int64_t l = 0; l < s->layers; l++) {
        const Layer *y = s->layer + l;
        product(&y->qkv, INPUT(&y->self_norm), D, n, r->z, &r->scratch);
        attend_back(r, beams, count, l, step, D, s->heads, attended);
        product(&y->self_out, attended, D, n, r->y, &r->scratch);
        SUMMED(&y->self_norm)
        product(&y->q, INPUT(&y->memory_norm), D, n, r->z, &r->scratch);
        attend_over(r, beams, count, l, D, s->heads, attended);
        product(&y->memory_out, attended, D, n, r->y, &r->scratch);
        SUMMED(&y->memory_norm)
        feed_forward(m, s, y, r, n);
    }
    if (s->pre) normed(&s->norm, r->x, n, D, r->x);
    return r->x;
}

/* numbers: the width, then for each side layers, heads, inner width, activation, pre, vocabulary, places.
 * scales: of each side's embeddings, and the norms' epsilon. Arrays in the order in which they are read here. low:
 * multiply in int8, where the processor can. */
Model *regard_transformer_new(const int64_t *numbers, const float *scales, const float *const *arrays, int64_t low) {
    Transformer *m = calloc(1, sizeof(Transformer));
    if (!m) return NULL;
    low = low && WHOLE_NUMBERS;
    Reader from = {arrays, 0, (int)low};
    int64_t D = m->width = numbers[0];
    m->base = (Model){.width = D, .vocabulary = numbers[13], .low = low, .begin = begin, .step = step,
                      .end = free_call, .free = free_transformer};
    read_side(&from, &m->encoder, D, numbers + 1, scales[0], scales[2], 0);
    if (!from.failed) read_side(&from, &m->decoder, D, numbers + 8, scales[1], scales[2], 1);
    if (!from.failed) read_output(&from, &m->base);
    if (!from.failed) return &m->base;
    free_transformer(&m->base);
    return NULL;
}
