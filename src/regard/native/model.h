/* The interface of a model for beam_search.c: it encodes sources, and computes features of the next token step by
 * step.
 */
#pragma once
#include "int8_quantization.h"
#include "regard.h"

/* A finished hypothesis. */
typedef struct {
    float log_prob;
    int64_t length;
    int32_t *tokens;
} Hypothesis;

/* The beam search of one source. */
typedef struct {
    int64_t source, max_length;
    int64_t active;           /* active hypotheses */
    int64_t finished;         /* finished hypotheses */
    int32_t *tokens;          /* [beam_size, max_length]: of the active hypotheses */
    int32_t *rows;            /* [beam_size, max_length]: which row of the beam each of them was at each step */
    float *log_probs;         /* [beam_size] */
    Hypothesis *best;         /* the best beam_size finished ones, best first */
    const int32_t *shortlist; /* or NULL for the whole vocabulary */
    int64_t vocabulary_size;  /* of the shortlist, or the whole */
    Linear output;            /* the output layer of the shortlist */
} Beam;

struct regard_model {
    int64_t width, vocabulary_size; /* width: of the features */
    Linear output;
    float *output_rows, *output_bias; /* the output layer row by row: for shortlists, and to rescore the best tokens */
    int8_t *output_int8_rows;         /* the same in int8, if the model is quantized */
    /* Encodes all sources of a request. Returns the state of the search, which is passed to `decode_step` and
     * `free_state`; NULL if there is no memory. */
    void *(*encode)(const regard_model *, const regard_search_request *);
    /* The features of the next token, [active hypotheses of all these beams, width], after `step` tokens. They belong
     * to the state, until the next step. */
    const float *(*decode_step)(const regard_model *, void *state, Beam *const *, int64_t count, int64_t step);
    void (*free_state)(void *state);
    void (*free)(regard_model *);
};

/* The token before this step. */
static inline int64_t previous_token(const Beam *b, int64_t row, int64_t step) {
    return step ? b->tokens[row * b->max_length + step - 1] : REGARD_TOKEN_BOS;
}

/* ---- the output layer (model.c) ---- */

/* The output layer of a shortlist alone; -1 if there is no memory. To be freed by linear_free, also then. */
int output_layer_select(Linear *part, const regard_model *m, const int32_t *tokens, int64_t count);

/* Frees everything of the output layer that the model owns, but not `m` itself. */
void output_layer_free(regard_model *m);

/* ---- element-wise operations that models share ---- */

/* x [size] += y [size] */
static inline void add_in_place(float *x, const float *y, int64_t size) {
    for (int64_t j = 0; j < size; j += LANES)
        vec_store_partial(x + j, vec_load_partial(x + j, size - j, 0) + vec_load_partial(y + j, size - j, 0), size - j);
}

/* The dot product of a [n] and b [n]. */
ALWAYS_INLINE float dot(const float *a, const float *b, int64_t n) {
    vec s = vec_splat(0);
    for (int64_t j = 0; j < n; j += LANES) s += vec_load_partial(a + j, n - j, 0) * vec_load_partial(b + j, n - j, 0);
    return vec_reduce_add(s);
}

/* Scores [n] become weights in place. */
static inline void softmax(float *w, int64_t n) {
    float maximum = w[0];
    for (int64_t j = 1; j < n; j++) maximum = w[j] > maximum ? w[j] : maximum;
    vec sums = vec_splat(0);
    for (int64_t j = 0; j < n; j += LANES) {
        vec e = vec_exp(vec_load_partial(w + j, n - j, -INFINITY) - maximum);
        vec_store_partial(w + j, e, n - j);
        sums += e;
    }
    float scale = 1 / vec_reduce_add(sums);
    for (int64_t j = 0; j < n; j++) w[j] *= scale;
}

/* Whether any lane is above a threshold. */
static inline int vec_any_above(vec v, float threshold) {
#if defined(__AVX512F__) && LANES == 16
    return _mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(threshold), _CMP_GT_OQ) != 0;
#else
    return vec_reduce_max(v) > threshold;
#endif
}
