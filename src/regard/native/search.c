/* Beam search over any model in C, for many sources together. Each source's search is its own: nothing depends on the
 * company.
 */
#include "engine.h"

#define SPARE 16   /* words looked at again, beside those that can matter */
#define FAINT 20   /* below the highest logit by this much, a word adds nothing to the sum: 2e-9 */
#define GROUPS 4   /* vectors of maxima that are kept apart */
#define BLOCK 1024 /* words whose logits are looked at while they are in the cache */

typedef struct {
    float total;
    int32_t row, word;
} Candidate;

static double score_of(float total, int64_t length, double penalty) {
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

/* What the `most` best of these values reach at least; equal lanes of all groups are different words. */
static float reached(const vec *groups, int64_t most) {
    float values[GROUPS * LANES], best[GROUPS * LANES];
    memcpy(values, groups, sizeof values);
    for (int64_t i = 0, have = 0; i < GROUPS * LANES; i++) {
        if (have == most && !(values[i] > best[most - 1])) continue;
        int64_t at = have < most ? have++ : most - 1;
        for (; at > 0 && values[i] > best[at - 1]; at--) best[at] = best[at - 1];
        best[at] = values[i];
    }
    return best[most - 1];
}

/* More logits of a row, of the words from `first` on. */
static void see(Seen *s, const float *logits, int64_t count, int64_t first, int64_t most) {
    vec tops[GROUPS];
    for (int g = 0; g < GROUPS; g++) tops[g] = splat(-INFINITY);
    int64_t j = 0;
    for (; j + GROUPS * LANES <= count; j += GROUPS * LANES)
        for (int g = 0; g < GROUPS; g++) tops[g] = higher(load(logits + j + g * LANES), tops[g]);
    for (; j < count; j += LANES) tops[0] = higher(load_part(logits + j, count - j, -INFINITY), tops[0]);
    float highest = top(higher(higher(tops[0], tops[1]), higher(tops[2], tops[3])));
    if (highest > s->highest) {
        s->sum = s->sum > 0 ? s->sum * expf(s->highest - highest) : 0;
        s->highest = highest;
    }
    /* Below `least` no word is among the best: as many are above it already. */
    float least = s->have == most ? s->best[most - 1].total : -INFINITY;
    if (s->have < most && most <= GROUPS * LANES) least = nextafterf(reached(tops, most), -INFINITY);
    vec sums = splat(0);
    for (j = 0; j < count; j += LANES) {
        vec v = load_part(logits + j, count - j, -INFINITY);
        if (any_above(v, s->highest - FAINT)) sums += exponential(v - s->highest);
        if (!any_above(v, least)) continue;
        for (int64_t i = j; i < j + LANES && i < count; i++)
            if (logits[i] > least) {
                s->have = put_in(s->best, s->have, most, (Candidate){logits[i], 0, (int32_t)(first + i)});
                if (s->have == most && s->best[most - 1].total > least) least = s->best[most - 1].total;
            }
    }
    s->sum += sum(sums);
}

/* The best words by logits that were multiplied in int8, as they are: computed again, and ranked again. `words`: which
 * they are, if not all. */
static void look_again(const Model *m, const float *feature, const int32_t *words, Seen *s) {
    for (int64_t i = 0; i < s->have; i++) {
        Candidate c = s->best[i];
        float before = c.total;
        int64_t word = words ? words[c.word] : c.word;
        c.total = dot(feature, m->rows + word * m->width, m->width) + m->bias[word];
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

static int keep(Beam *b, const int32_t *said, int64_t length, float total, int64_t K, double penalty) {
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
static int advance(Beam *b, const Candidate *list, int64_t have, int64_t step, const Asked *asked, int32_t *spare) {
    int64_t K = asked->beam, nbest = asked->nbest;
    double penalty = asked->penalty;
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
        if (!asked->patient || !(ahead > score_of(f->total, f->length, penalty))) return 0;
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
    free(b->found);
    free_linear(&b->output);
}

static int make_beam(const Model *m, Beam *b, int64_t K) {
    b->tokens = calloc(K * b->limit, sizeof(int32_t));
    b->places = calloc(K * b->limit, sizeof(int32_t));
    b->totals = calloc(K, sizeof(float));
    b->found = calloc(K, sizeof(Found));
    b->rows = 1;
    if (!b->tokens || !b->places || !b->totals || !b->found) return -1;
    return b->words ? make_part(&b->output, m, b->words, b->count) : 0;
}

/* Room for one search. */
typedef struct {
    Beam *all, **alive;
    Candidate *list, *best;
    int32_t *spare;
    Seen *seen;
    float *ends, *logits;
    Scratch scratch;
} Room;

static int make_room(const Model *m, const Asked *asked, Room *r) {
    int64_t K = asked->beam, rows = asked->sources * K, V = m->vocabulary;
    r->all = calloc(asked->sources, sizeof(Beam));
    r->alive = calloc(asked->sources, sizeof(Beam *));
    r->list = calloc(2 * K, sizeof(Candidate));
    r->best = calloc(rows * (2 * K + SPARE), sizeof(Candidate));
    r->spare = malloc(2 * K * asked->longest * sizeof(int32_t));
    r->seen = calloc(rows, sizeof(Seen));
    r->ends = calloc(rows, sizeof(float));
    r->logits = aligned(rows * BLOCK * 4);
    if (!r->all || !r->alive || !r->list || !r->best || !r->spare || !r->seen || !r->ends || !r->logits) return -1;
    if (make_scratch(&r->scratch, rows, m->width)) return -1;
    for (int64_t b = 0; b < asked->sources; b++) {
        r->all[b] = (Beam){.source = b, .limit = asked->limits[b], .count = V};
        if (asked->words) {
            r->all[b].words = asked->words + asked->word_starts[b];
            r->all[b].count = asked->word_starts[b + 1] - asked->word_starts[b];
        }
        r->alive[b] = r->all + b;
        if (make_beam(m, r->all + b, K)) return -1;
    }
    return 0;
}

static void free_room(const Asked *asked, Room *r) {
    for (int64_t b = 0; r->all && b < asked->sources; b++) free_beam(r->all + b, asked->beam);
    void *all[] = {r->all, r->alive, r->list, r->best, r->spare, r->seen, r->ends, r->logits};
    for (int i = 0; i < 8; i++) free(all[i]);
    free_scratch(&r->scratch);
}

/* Logits of a matrix' outputs of panels `from` to `to`, after x [n, D]; or, in int8, after what it was made to. */
static void logits_of(const Linear *w, const float *x, int64_t from, int64_t to, int64_t n, int64_t stride, Room *r) {
#if WHOLE_NUMBERS
    if (w->low) {
        low_linear(w, r->scratch.bytes, r->scratch.scales, from, to, n, r->logits, stride);
        return;
    }
#endif
    linear(w, x, w->inputs, from, to, n, r->logits, stride);
}

/* What all words' or one source's own words' logits show of n rows with features x [n, D], the first of them row `at`.
 * Some words at a time, while their logits are in the cache. */
static void see_all(const Model *m, const Linear *w, const int32_t *words, const float *x, int64_t at, int64_t n,
                    int64_t most, Room *r) {
    int64_t D = m->width, V = w->outputs, spare = w->low ? SPARE : 0;
#if WHOLE_NUMBERS
    if (w->low) as_bytes(x, D, n, D, r->scratch.bytes, r->scratch.scales);
#endif
    for (int64_t first = 0; first < V; first += BLOCK) {
        int64_t from = first / COLUMNS, to = (first + BLOCK) / COLUMNS, count = V - first < BLOCK ? V - first : BLOCK;
        logits_of(w, x, from, to < panels_of(V) ? to : panels_of(V), n, BLOCK, r);
        for (int64_t row = 0; row < n; row++) {
            float *logits = r->logits + row * BLOCK;
            if (!first) {
                logits[PAD] = logits[BEGIN] = -INFINITY; /* special words come first in every list */
                r->ends[at + row] = logits[END];
            }
            see(r->seen + at + row, logits, count, first, most + spare);
        }
    }
    for (int64_t row = 0; row < n && spare; row++) {
        look_again(m, x + row * D, words, r->seen + at + row);
        r->ends[at + row] = dot(x + row * D, m->rows + END * D, D) + m->bias[END];
    }
}

/* One word more of all hypotheses of the first `count` beams that go on; how many of them still do, or -1. */
static int64_t one_step(const Model *m, void *call, const Asked *asked, int64_t count, int64_t step, Room *r) {
    int64_t K = asked->beam, n = 0, on = 0;
    for (int64_t b = 0; b < count; b++) {
        Beam *beam = r->alive[b];
        for (int64_t row = 0; row < beam->rows; row++) beam->places[row * beam->limit + step] = (int32_t)row;
        n += beam->rows;
    }
    const float *x = m->step(m, call, r->alive, count, step);
    for (int64_t row = 0; row < n; row++)
        r->seen[row] = (Seen){.highest = -INFINITY, .best = r->best + row * (2 * K + SPARE)};
    if (!asked->words) see_all(m, &m->output, NULL, x, 0, n, 2 * K, r);
    n = 0;
    for (int64_t b = 0; b < count; b++) {
        Beam *beam = r->alive[b];
        if (asked->words) see_all(m, &beam->output, beam->words, x + n * m->width, n, beam->rows, 2 * K, r);
        int64_t have = 0;
        int last = step + 1 == beam->limit;
        for (int64_t row = 0; row < beam->rows; row++, n++)
            have = choose(r->seen + n, r->ends[n], beam->totals[row], (int32_t)row, last, r->list, have, 2 * K);
        int goes = advance(beam, r->list, have, step, asked, r->spare);
        if (goes < 0) return -1;
        if (goes > 0) r->alive[on++] = beam;
    }
    return on;
}

/* Not 0 if memory ran out. */
int64_t regard_search(const Model *m, const Asked *asked) {
    Room r = {0};
    void *call = NULL;
    int64_t count = make_room(m, asked, &r) ? -1 : asked->sources, nbest = asked->nbest;
    if (count > 0 && !(call = m->begin(m, asked))) count = -1;
    for (int64_t step = 0; count > 0; step++) count = one_step(m, call, asked, count, step, &r);
    for (int64_t b = 0; b < asked->sources && !count; b++)
        for (int64_t i = 0; i < nbest; i++) {
            int64_t have = r.all[b].ended < asked->beam ? r.all[b].ended : asked->beam;
            const Found *f = r.all[b].found + i;
            asked->lengths[b * nbest + i] = i < have ? f->length : 0;
            if (i >= have) continue;
            memcpy(asked->out + (b * nbest + i) * asked->longest, f->tokens, f->length * sizeof(int32_t));
            asked->totals[b * nbest + i] = f->total;
        }
    if (call) m->end(call);
    free_room(asked, &r);
    return count;
}

void regard_model_free(Model *m) {
    if (m) m->free(m);
}

/* Whether this processor multiplies whole numbers faster. */
int64_t regard_whole_numbers(void) { return WHOLE_NUMBERS; }
