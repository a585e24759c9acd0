/* Construction and destruction of models of any architecture. */
#include "weights.h"
#include <stdio.h>

/* Lets the architecture read the description, then checks that nothing is left unread. After an error the model is
 * freed and *model is NULL; else the caller frees it by regard_model_free. error [error_size] may be NULL. */
int32_t regard_model_new(const regard_model_description *description, regard_model **model, char *error,
                         int64_t error_size) {
    WeightReader r;
    *model = NULL;
    if (description->struct_size != sizeof(regard_model_description)) {
        if (error && error_size > 0) snprintf(error, error_size, "the description has another struct_size");
        return REGARD_INVALID_ARGUMENT;
    }
    if (!weights_open(&r, description, error, error_size)) {
        if (description->architecture == REGARD_ARCHITECTURE_TRANSFORMER)
            *model = transformer_model_new(&r);
        else if (description->architecture == REGARD_ARCHITECTURE_RECURRENT)
            *model = recurrent_model_new(&r);
        else
            weights_fail(&r, REGARD_INVALID_ARGUMENT, "there is no such architecture");
        weights_check_all_read(&r);
    }
    if (r.status) {
        regard_model_free(*model);
        *model = NULL;
    }
    weights_close(&r);
    return r.status;
}

/* Frees a model by its architecture's own function; NULL is accepted. */
void regard_model_free(regard_model *model) {
    if (model) model->free(model);
}

/* ---- the output layer ---- */

/* Copies the rows of tokens [count] into the panels of `part`, in int8 if the model is quantized, else in float32; -1
 * if there is no memory. To be freed by linear_free, also then. */
int output_layer_select(Linear *part, const regard_model *m, const int32_t *tokens, int64_t count) {
    int64_t D = m->width, quads = quad_count(D);
    if (!m->output.int8_panels) {
        if (linear_init(part, count, D)) return -1;
        for (int64_t i = 0; i < count; i++) linear_pack_row(part, i, m->output_rows + tokens[i] * D);
    } else {
        *part = (Linear){.outputs = count, .inputs = D};
        if (linear_alloc_int8(part) || !(part->bias = alloc_aligned(panel_count(count) * PANEL_COLUMNS * 4))) return -1;
        for (int64_t i = 0; i < count; i++) {
            int8_t *to = linear_int8_row(part, i);
            const int8_t *from = m->output_int8_rows + tokens[i] * quads * 4;
            for (int64_t k = 0; k < quads; k++) memcpy(to + k * PANEL_COLUMNS * 4, from + k * 4, 4);
            part->scales[i] = m->output.scales[tokens[i]];
            part->offsets[i] = m->output.offsets[tokens[i]];
        }
    }
    for (int64_t i = 0; i < count; i++) part->bias[i] = m->output_bias[tokens[i]];
    return 0;
}

/* Frees the output layer and its copies row by row, but not `m` itself. */
void output_layer_free(regard_model *m) {
    linear_free(&m->output);
    free(m->output_rows);
    free(m->output_bias);
    free(m->output_int8_rows);
}
