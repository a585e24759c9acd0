#include "weights.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define MAX_NAME 256

/* Keeps pointers to the description and to error [error_size], which must outlive the reader. -1 if there is no memory.
 * To be freed by weights_close, also then. */
int weights_open(WeightReader *r, const regard_model_description *description, char *error, int64_t error_size) {
    *r = (WeightReader){.description = description, .error = error, .error_size = error_size};
    if (error && error_size > 0) *error = 0;
    r->setting_read = calloc(description->setting_count + 1, 1);
    r->tensor_read = calloc(description->tensor_count + 1, 1);
    if (r->setting_read && r->tensor_read) return 0;
    r->status = REGARD_OUT_OF_MEMORY;
    return -1;
}

/* Frees what weights_open has allocated, but not `r` itself. */
void weights_close(WeightReader *r) {
    free(r->setting_read);
    free(r->tensor_read);
}

/* Keeps the first status only, and writes its message to the caller's error [error_size], cut off if too long. */
void weights_fail(WeightReader *r, int32_t status, const char *format, ...) {
    if (r->status) return;
    r->status = status;
    if (!r->error || r->error_size < 1) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->error, r->error_size, format, arguments);
    va_end(arguments);
}

/* Reports a name that no function has read, or that is there twice: only the first of its name is ever read. */
void weights_check_all_read(WeightReader *r) {
    for (int64_t i = 0; i < r->description->setting_count; i++)
        if (!r->setting_read[i])
            weights_fail(r, REGARD_INVALID_ARGUMENT, "setting %s is not one of this model, or is there twice",
                         r->description->settings[i].name);
    for (int64_t i = 0; i < r->description->tensor_count; i++)
        if (!r->tensor_read[i])
            weights_fail(r, REGARD_INVALID_ARGUMENT, "tensor %s is not one of this model, or is there twice",
                         r->description->tensors[i].name);
}

/* ---- settings ---- */

/* The value of SIDE.NAME, or of NAME if side is NULL; 0 if it is missing. Writes the whole name to full [MAX_NAME]. */
static double find_setting(WeightReader *r, const char *side, const char *name, char *full) {
    snprintf(full, MAX_NAME, "%s%s%s", side ? side : "", side ? "." : "", name);
    for (int64_t i = 0; i < r->description->setting_count; i++) {
        if (strcmp(r->description->settings[i].name, full)) continue;
        r->setting_read[i] = 1;
        return r->description->settings[i].value;
    }
    weights_fail(r, REGARD_INVALID_ARGUMENT, "setting %s is missing", full);
    return 0;
}

/* The setting as an integer; 0 after an error, which may be that it is not an integer from minimum to maximum. */
int64_t weights_integer(WeightReader *r, const char *side, const char *name, int64_t minimum, int64_t maximum) {
    char full[MAX_NAME];
    double value = find_setting(r, side, name, full);
    if (!r->status && !(value >= (double)minimum && value <= (double)maximum && value == floor(value)))
        weights_fail(r, REGARD_INVALID_ARGUMENT, "setting %s is %g, not an integer from %" PRId64 " to %" PRId64, full,
                     value, minimum, maximum);
    return r->status ? 0 : (int64_t)value;
}

/* The setting, rounded to float; 0 if it is missing. */
float weights_number(WeightReader *r, const char *side, const char *name) {
    char full[MAX_NAME];
    return (float)find_setting(r, side, name, full);
}

/* ---- tensors ---- */

/* The tensor [rows, columns], or [rows] if columns is 0, of this name, in the description, which keeps it; NULL after
 * an error. */
static const float *find_tensor(WeightReader *r, int64_t rows, int64_t columns, const char *name) {
    if (r->status) return NULL;
    for (int64_t i = 0; i < r->description->tensor_count; i++) {
        const regard_tensor *t = r->description->tensors + i;
        if (strcmp(t->name, name)) continue;
        r->tensor_read[i] = 1;
        int64_t dimensions = columns ? 2 : 1;
        if (t->data && t->dimensions == dimensions && t->shape[0] == rows && t->shape[1] == (columns ? columns : 1))
            return t->data;
        char found[64];
        if (t->dimensions == 1)
            snprintf(found, sizeof found, "[%" PRId64 "]", t->shape[0]);
        else
            snprintf(found, sizeof found, "[%" PRId64 ", %" PRId64 "]", t->shape[0], t->shape[1]);
        if (columns)
            weights_fail(r, REGARD_INVALID_ARGUMENT, "tensor %s is %s, not [%" PRId64 ", %" PRId64 "]", name, found,
                         rows, columns);
        else
            weights_fail(r, REGARD_INVALID_ARGUMENT, "tensor %s is %s, not [%" PRId64 "]", name, found, rows);
        return NULL;
    }
    weights_fail(r, REGARD_INVALID_ARGUMENT, "tensor %s is missing", name);
    return NULL;
}

/* A copy of data [size], to be freed by free; NULL if data is NULL or there is no memory. */
static float *copy(WeightReader *r, const float *data, int64_t size) {
    if (!data) return NULL;
    float *copied = alloc_aligned(size * 4);
    if (copied)
        memcpy(copied, data, size * 4);
    else
        weights_fail(r, REGARD_OUT_OF_MEMORY, "out of memory");
    return copied;
}

/* A copy of the tensor [rows, columns], or [rows] if columns is 0, to be freed by free; NULL after an error. */
float *weights_copy(WeightReader *r, int64_t rows, int64_t columns, const char *name, ...) {
    char full[MAX_NAME];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(full, sizeof full, name, arguments);
    va_end(arguments);
    return copy(r, find_tensor(r, rows, columns, full), rows * (columns ? columns : 1));
}

/* Packs NAME.weight [outputs, inputs] and NAME.bias [outputs] into `m`, also in int8 if the description asks for it and
 * the processor supports it. To be freed by linear_free, also after an error. */
void weights_linear(WeightReader *r, Linear *m, int64_t outputs, int64_t inputs, int has_bias, const char *name, ...) {
    char prefix[MAX_NAME - 8], full[MAX_NAME];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(prefix, sizeof prefix, name, arguments);
    va_end(arguments);
    snprintf(full, sizeof full, "%s.weight", prefix);
    const float *w = find_tensor(r, outputs, inputs, full);
    snprintf(full, sizeof full, "%s.bias", prefix);
    const float *b = has_bias ? find_tensor(r, outputs, 0, full) : NULL;
    if (r->status) return;
    if (linear_init(m, outputs, inputs) || (r->description->int8 && INT8_SUPPORTED && linear_quantize(m, w))) {
        weights_fail(r, REGARD_OUT_OF_MEMORY, "out of memory");
        return;
    }
    for (int64_t o = 0; o < outputs; o++) linear_pack_row(m, o, w + o * inputs);
    if (b) memcpy(m->bias, b, outputs * 4);
}

/* Reads the output layer in panels, for the whole vocabulary, and row by row, for shortlists and rescoring. To be freed
 * by output_layer_free, also after an error. */
void weights_output_layer(WeightReader *r, regard_model *m) {
    int64_t V = m->vocabulary_size, D = m->width;
    int has_bias = (int)weights_integer(r, NULL, "output_bias", 0, 1);
    weights_linear(r, &m->output, V, D, has_bias, "output");
    m->output_rows = weights_copy(r, V, D, "output.weight");
    if (r->status) return;
    m->output_bias = copy(r, m->output.bias, V); /* zeros if there is none */
    if (r->status || !m->output.int8_panels) return;
    int64_t quads = quad_count(D);
    m->output_int8_rows = alloc_aligned(V * quads * 4);
    if (!m->output_int8_rows) {
        weights_fail(r, REGARD_OUT_OF_MEMORY, "out of memory");
        return;
    }
    for (int64_t o = 0; o < V; o++)
        for (int64_t k = 0; k < quads; k++)
            memcpy(m->output_int8_rows + (o * quads + k) * 4, linear_int8_row(&m->output, o) + k * PANEL_COLUMNS * 4,
                   4);
}
