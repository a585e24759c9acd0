/* Beam search over any model, for many sources together. Each source has its own beam: its result does not depend on
 * the other sources.
 */
#include "model.h"

#define SPARE 16         /* tokens that are rescored in float32, beside those that the beam needs */
#define NEGLIGIBLE 20    /* a logit that is this much below the highest adds nothing to the sum: e^-20 = 2e-9 */
#define MAX_VECTORS 4    /* vectors of maxima that are kept apart */
#define LOGIT_BLOCK 1024 /* tokens whose logits are ranked while they are in the cache */

typedef struct {
    float score; /* a logit, or the log-probability of a hypothesis with this token */
    int32_t row, token;
} Candidate;

/* The score of a hypothesis of `length` tokens: log_prob / length ^ penalty. */
static double length_normalized(float log_prob, int64_t length, double penalty) {
    return penalty == 0 ? log_prob : (double)log_prob / pow((double)length, penalty);
}

/* Inserts into a list [limit] of `count` candidates, sorted best first; equal ones stay in the order in which they
 * come. Returns the new length. */
ALWAYS_INLINE int64_t insert_candidate(Candidate *list, int64_t count, int64_t limit, Candidate new) {
    if (count == limit && !(new.score > list[limit - 1].score)) return count;
    int64_t at = count < limit ? count : limit - 1;
    while (at > 0 && new.score > list[at - 1].score) list[at] = list[at - 1], at--;
    list[at] = new;
    return count < limit ? count + 1 : limit;
}

/* Of one row's logits so far: the maximum, the sum of e^(logit - maximum), and the best tokens. */
typedef struct {
    float maximum, sum;
    int64_t count;
    Candidate *best;
} RowTopK;

/* The limit-th largest value in maxima [MAX_VECTORS]. Since each is the maximum of different tokens, at least `limit`
 * tokens reach it. */
static float lower_bound(const vec *maxima, int64_t limit) {
    float values[MAX_VECTORS * LANES], best[MAX_VECTORS * LANES];
    memcpy(values, maxima, sizeof values);
    for (int64_t i = 0, count = 0; i < MAX_VECTORS * LANES; i++) {
        if (count == limit && !(values[i] > best[limit - 1])) continue;
        int64_t at = count < limit ? count++ : limit - 1;
        for (; at > 0 && values[i] > best[at - 1]; at--) best[at] = best[at - 1];
        best[at] = values[i];
    }
    return best[limit - 1];
}

/* Updates the top k of a row, s->best [limit], by logits [count] of the tokens from `first` on. */
static void update_top_k(RowTopK *s, const float *logits, int64_t count, int64_t first, int64_t limit) {
    vec maxima[MAX_VECTORS];
    for (int g = 0; g < MAX_VECTORS; g++) maxima[g] = vec_splat(-INFINITY);
    int64_t j = 0;
    for (; j + MAX_VECTORS * LANES <= count; j += MAX_VECTORS * LANES)
        for (int g = 0; g < MAX_VECTORS; g++) maxima[g] = vec_max(vec_load(logits + j + g * LANES), maxima[g]);
    for (; j < count; j += LANES) maxima[0] = vec_max(vec_load_partial(logits + j, count - j, -INFINITY), maxima[0]);
    float maximum = vec_reduce_max(vec_max(vec_max(maxima[0], maxima[1]), vec_max(maxima[2], maxima[3])));
    if (maximum > s->maximum) {
        s->sum = s->sum > 0 ? s->sum * expf(s->maximum - maximum) : 0;
        s->maximum = maximum;
    }
    /* No token at or below `threshold` is among the best: enough others are above it. */
    float threshold = s->count == limit ? s->best[limit - 1].score : -INFINITY;
    if (s->count < limit && limit <= MAX_VECTORS * LANES) threshold = nextafterf(lower_bound(maxima, limit), -INFINITY);
    vec sums = vec_splat(0);
    for (j = 0; j < count; j += LANES) {
        vec v = vec_load_partial(logits + j, count - j, -INFINITY);
        if (vec_any_above(v, s->maximum - NEGLIGIBLE)) sums += vec_exp(v - s->maximum);
        if (!vec_any_above(v, threshold)) continue;
        for (int64_t i = j; i < j + LANES && i < count; i++)
            if (logits[i] > threshold) {
                s->count = insert_candidate(s->best, s->count, limit, (Candidate){logits[i], 0, (int32_t)(first + i)});
                if (s->count == limit && s->best[limit - 1].score > threshold) threshold = s->best[limit - 1].score;
            }
    }
    s->sum += vec_reduce_add(sums);
}

/* Computes the best tokens' logits, which come from int8 products, again in float32, and ranks them again, from the
 * row's feature [width]. `shortlist`: which tokens they are, or NULL. */
static void rescore_top_k(const regard_model *m, const float *feature, const int32_t *shortlist, RowTopK *s) {
    for (int64_t i = 0; i < s->count; i++) {
        Candidate c = s->best[i];
        float before = c.score;
        int64_t token = shortlist ? shortlist[c.token] : c.token;
        c.score = dot(feature, m->output_rows + token * m->width, m->width) + m->output_bias[token];
        s->sum += expf(c.score - s->maximum) - expf(before - s->maximum);
        int64_t at = i;
        for (; at > 0 && c.score > s->best[at - 1].score; at--) s->best[at] = s->best[at - 1];
        s->best[at] = c;
    }
}

/* Adds a row's best tokens to the candidates of its source, list [limit], with the log-probability of the whole
 * hypothesis. Where it must end (`last`), only the end. Returns the new number of candidates. */
static int64_t add_candidates(const RowTopK *s, float end_logit, float log_prob, int32_t row, int last, Candidate *list,
                              int64_t count, int64_t limit) {
    float base = log_prob - (s->maximum + logf(s->sum));
    if (last) return insert_candidate(list, count, limit, (Candidate){base + end_logit, row, REGARD_TOKEN_EOS});
    for (int64_t i = 0; i < s->count && i < limit; i++)
        count = insert_candidate(list, count, limit, (Candidate){base + s->best[i].score, row, s->best[i].token});
    return count;
}

/* Puts a copy of a finished hypothesis, tokens [length - 1] and the end, among the best K, which the beam owns; -1 if
 * there is no memory. */
static int finish_hypothesis(Beam *b, const int32_t *tokens, int64_t length, float log_prob, int64_t K,
                             double penalty) {
    double score = length_normalized(log_prob, length, penalty);
    int64_t count = b->finished < K ? b->finished : K;
    b->finished++;
    if (count == K && !(score > length_normalized(b->best[K - 1].log_prob, b->best[K - 1].length, penalty))) return 0;
    int32_t *copy = malloc(length * sizeof(int32_t));
    if (!copy) return -1;
    memcpy(copy, tokens, (length - 1) * sizeof(int32_t));
    copy[length - 1] = REGARD_TOKEN_EOS;
    if (count == K) free(b->best[K - 1].tokens);
    int64_t at = count < K ? count : K - 1;
    while (at > 0 && score > length_normalized(b->best[at - 1].log_prob, b->best[at - 1].length, penalty))
        b->best[at] = b->best[at - 1], at--;
    b->best[at] = (Hypothesis){log_prob, length, copy};
    return 0;
}

/* Ends a step with candidates list [count], best first: finished hypotheses are stored, the best K others stay active.
 * scratch [2, K, max_length]. 1 if the search continues, 0 if it ended, -1 if there is no memory. */
static int advance(Beam *b, const Candidate *list, int64_t count, int64_t step, const regard_search_request *request,
                   int32_t *scratch) {
    int64_t K = request->beam_size, nbest = request->nbest, L = b->max_length;
    double penalty = request->length_penalty;
    int32_t *tokens = scratch, *rows = scratch + K * L;
    float log_probs[K];
    int64_t active = 0;
    double best_active = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const Candidate *c = list + i;
        const int32_t *prefix = b->tokens + c->row * L;
        if (c->token == REGARD_TOKEN_EOS) {
            if (i < K && finish_hypothesis(b, prefix, step + 1, c->score, K, penalty)) return -1;
            continue;
        }
        double score = length_normalized(c->score, step + 1, penalty);
        best_active = score > best_active ? score : best_active;
        if (active == K) continue;
        memcpy(tokens + active * L, prefix, step * sizeof(int32_t));
        memcpy(rows + active * L, b->rows + c->row * L, (step + 1) * sizeof(int32_t));
        tokens[active * L + step] = b->shortlist ? b->shortlist[c->token] : c->token;
        log_probs[active++] = c->score;
    }
    b->active = active;
    if (!active) return 0;
    if (b->finished >= K) {
        const Hypothesis *h = b->best + (nbest < K ? nbest : K) - 1;
        if (!request->patient || !(best_active > length_normalized(h->log_prob, h->length, penalty))) return 0;
    }
    memcpy(b->log_probs, log_probs, active * sizeof(float));
    for (int64_t r = 0; r < active; r++) {
        memcpy(b->tokens + r * L, tokens + r * L, (step + 1) * sizeof(int32_t));
        memcpy(b->rows + r * L, rows + r * L, (step + 1) * sizeof(int32_t));
    }
    return 1;
}

/* ---- memory ---- */

/* Frees everything that a beam of size K owns, but not `b` itself; also after beam_init has failed. */
static void beam_free(Beam *b, int64_t K) {
    for (int64_t i = 0; b->best && i < K; i++) free(b->best[i].tokens);
    free(b->tokens);
    free(b->rows);
    free(b->log_probs);
    free(b->best);
    linear_free(&b->output);
}

/* Allocates the arrays of a beam of size K whose source, max_length and shortlist are set, and copies the shortlist's
 * output layer; -1 if there is no memory. To be freed by beam_free, also then. */
static int beam_init(const regard_model *m, Beam *b, int64_t K) {
    b->tokens = calloc(K * b->max_length, sizeof(int32_t));
    b->rows = calloc(K * b->max_length, sizeof(int32_t));
    b->log_probs = calloc(K, sizeof(float));
    b->best = calloc(K, sizeof(Hypothesis));
    b->active = 1;
    if (!b->tokens || !b->rows || !b->log_probs || !b->best) return -1;
    return b->shortlist ? output_layer_select(&b->output, m, b->shortlist, b->vocabulary_size) : 0;
}

/* The memory of one search. */
typedef struct {
    Beam *beams, **active;   /* of all sources; of those still searched */
    Candidate *list, *best;  /* of one source, [2 K]; of all rows, [rows, 2 K + SPARE] */
    int32_t *scratch;        /* [2, K, max_length] */
    RowTopK *rows;           /* [rows] */
    float *end_logits;       /* [rows] */
    float *logits;           /* [rows, LOGIT_BLOCK] */
    QuantizedRows quantized; /* features */
} Search;

/* Allocates the memory of a search, with one beam per source; the shortlists stay the request's. `s` must be zero. -1
 * if there is no memory. To be freed by search_free, also then. */
static int search_init(const regard_model *m, const regard_search_request *request, Search *s) {
    int64_t K = request->beam_size, rows = request->source_count * K, V = m->vocabulary_size;
    s->beams = calloc(request->source_count, sizeof(Beam));
    s->active = calloc(request->source_count, sizeof(Beam *));
    s->list = calloc(2 * K, sizeof(Candidate));
    s->best = calloc(rows * (2 * K + SPARE), sizeof(Candidate));
    s->scratch = malloc(2 * K * request->max_length * sizeof(int32_t));
    s->rows = calloc(rows, sizeof(RowTopK));
    s->end_logits = calloc(rows, sizeof(float));
    s->logits = alloc_aligned(rows * LOGIT_BLOCK * 4);
    if (!s->beams || !s->active || !s->list || !s->best || !s->scratch || !s->rows || !s->end_logits || !s->logits)
        return -1;
    if (quantized_rows_init(&s->quantized, rows, m->width)) return -1;
    for (int64_t b = 0; b < request->source_count; b++) {
        s->beams[b] = (Beam){.source = b, .max_length = request->max_lengths[b], .vocabulary_size = V};
        if (request->shortlist_tokens) {
            s->beams[b].shortlist = request->shortlist_tokens + request->shortlist_offsets[b];
            s->beams[b].vocabulary_size = request->shortlist_offsets[b + 1] - request->shortlist_offsets[b];
        }
        s->active[b] = s->beams + b;
        if (beam_init(m, s->beams + b, K)) return -1;
    }
    return 0;
}

/* Frees everything that a search owns, including its beams, but not `s` itself; also after search_init has failed. */
static void search_free(const regard_search_request *request, Search *s) {
    for (int64_t b = 0; s->beams && b < request->source_count; b++) beam_free(s->beams + b, request->beam_size);
    void *all[] = {s->beams, s->active, s->list, s->best, s->scratch, s->rows, s->end_logits, s->logits};
    for (int i = 0; i < 8; i++) free(all[i]);
    quantized_rows_free(&s->quantized);
}

/* ---- one step ---- */

/* Logits of an output layer's panels `from` to `to`, of features x [n, width] or, in int8, of those that were quantized
 * before -> s->logits, whose rows are `stride` apart. */
static void compute_logits(const Linear *w, const float *x, int64_t from, int64_t to, int64_t n, int64_t stride,
                           Search *s) {
#if INT8_SUPPORTED
    if (w->int8_panels) {
        linear_forward_int8(w, s->quantized.bytes, s->quantized.scales, from, to, n, s->logits, stride);
        return;
    }
#endif
    linear_forward_float32(w, x, w->inputs, from, to, n, s->logits, stride);
}

/* The best tokens of n rows with features x [n, width] -> s->rows and s->end_logits from first_row on, by the output
 * layer of the vocabulary (shortlist NULL) or of one source's shortlist, a block of tokens at a time. */
static void rank_tokens(const regard_model *m, const Linear *w, const int32_t *shortlist, const float *x,
                        int64_t first_row, int64_t n, int64_t limit, Search *s) {
    int64_t D = m->width, V = w->outputs, spare = w->int8_panels ? SPARE : 0;
#if INT8_SUPPORTED
    if (w->int8_panels) quantize_rows(x, D, n, D, s->quantized.bytes, s->quantized.scales);
#endif
    for (int64_t first = 0; first < V; first += LOGIT_BLOCK) {
        int64_t from = first / PANEL_COLUMNS, to = (first + LOGIT_BLOCK) / PANEL_COLUMNS;
        int64_t count = V - first < LOGIT_BLOCK ? V - first : LOGIT_BLOCK;
        compute_logits(w, x, from, to < panel_count(V) ? to : panel_count(V), n, LOGIT_BLOCK, s);
        for (int64_t row = 0; row < n; row++) {
            float *logits = s->logits + row * LOGIT_BLOCK;
            if (!first) { /* every shortlist begins with the special tokens */
                logits[REGARD_TOKEN_PAD] = logits[REGARD_TOKEN_BOS] = -INFINITY;
                s->end_logits[first_row + row] = logits[REGARD_TOKEN_EOS];
            }
            update_top_k(s->rows + first_row + row, logits, count, first, limit + spare);
        }
    }
    for (int64_t row = 0; row < n && spare; row++) {
        const float *end_weight = m->output_rows + REGARD_TOKEN_EOS * D;
        rescore_top_k(m, x + row * D, shortlist, s->rows + first_row + row);
        s->end_logits[first_row + row] = dot(x + row * D, end_weight, D) + m->output_bias[REGARD_TOKEN_EOS];
    }
}

/* Extends all hypotheses of the first `count` active beams by one token. Returns how many beams stay active, or -1 if
 * there is no memory. */
static int64_t search_step(const regard_model *m, void *state, const regard_search_request *request, int64_t count,
                           int64_t step, Search *s) {
    int64_t K = request->beam_size, n = 0, remaining = 0;
    int shortlisted = request->shortlist_tokens != NULL;
    for (int64_t b = 0; b < count; b++) {
        Beam *beam = s->active[b];
        for (int64_t row = 0; row < beam->active; row++) beam->rows[row * beam->max_length + step] = (int32_t)row;
        n += beam->active;
    }
    const float *x = m->decode_step(m, state, s->active, count, step);
    for (int64_t row = 0; row < n; row++)
        s->rows[row] = (RowTopK){.maximum = -INFINITY, .best = s->best + row * (2 * K + SPARE)};
    if (!shortlisted) rank_tokens(m, &m->output, NULL, x, 0, n, 2 * K, s);
    n = 0;
    for (int64_t b = 0; b < count; b++) {
        Beam *beam = s->active[b];
        if (shortlisted) rank_tokens(m, &beam->output, beam->shortlist, x + n * m->width, n, beam->active, 2 * K, s);
        int64_t candidates = 0;
        int last = step + 1 == beam->max_length;
        for (int64_t row = 0; row < beam->active; row++, n++)
            candidates = add_candidates(s->rows + n, s->end_logits[n], beam->log_probs[row], (int32_t)row, last,
                                        s->list, candidates, 2 * K);
        int status = advance(beam, s->list, candidates, step, request, s->scratch);
        if (status < 0) return -1;
        if (status > 0) s->active[remaining++] = beam;
    }
    return remaining;
}

/* Takes steps until no beam is active, then copies the hypotheses to the request's outputs. All memory that it
 * allocates is freed before it returns. Shapes: see regard.h. */
int32_t regard_model_search(const regard_model *m, const regard_search_request *request) {
    if (request->struct_size != sizeof(regard_search_request)) return REGARD_INVALID_ARGUMENT;
    Search s = {0};
    void *state = NULL;
    int64_t count = search_init(m, request, &s) ? -1 : request->source_count, nbest = request->nbest;
    if (count > 0 && !(state = m->encode(m, request))) count = -1;
    for (int64_t step = 0; count > 0; step++) count = search_step(m, state, request, count, step, &s);
    for (int64_t b = 0; b < request->source_count && !count; b++)
        for (int64_t i = 0; i < nbest; i++) {
            int64_t finished = s.beams[b].finished;
            const Hypothesis *h = s.beams[b].best + i;
            int found = i < (finished < request->beam_size ? finished : request->beam_size);
            request->output_lengths[b * nbest + i] = found ? h->length : 0;
            if (!found) continue;
            memcpy(request->output_tokens + (b * nbest + i) * request->max_length, h->tokens,
                   h->length * sizeof(int32_t));
            request->output_log_probs[b * nbest + i] = h->log_prob;
        }
    if (state) m->free_state(state);
    search_free(request, &s);
    return count ? REGARD_OUT_OF_MEMORY : REGARD_OK;
}
