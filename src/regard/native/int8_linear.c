/* A linear layer in int8, for models that run in PyTorch. Where the processor has no int8 products, in float32. */
#include "int8_quantization.h"
#include "regard.h"

struct regard_int8_linear {
    Linear linear;
};

/* Copies weight [outputs, inputs] and bias [outputs] in float32, and in int8 if supported. NULL if there is no memory.
 * To be freed by regard_int8_linear_free. */
regard_int8_linear *regard_int8_linear_new(const float *weight, const float *bias, int64_t outputs, int64_t inputs) {
    regard_int8_linear *layer = calloc(1, sizeof(regard_int8_linear));
    if (!layer) return NULL;
    Linear *m = &layer->linear;
    if (linear_init(m, outputs, inputs) || (INT8_SUPPORTED && linear_quantize(m, weight))) {
        regard_int8_linear_free(layer);
        return NULL;
    }
    for (int64_t o = 0; o < outputs; o++) linear_pack_row(m, o, weight + o * inputs);
    if (bias) memcpy(m->bias, bias, outputs * 4);
    return layer;
}

/* Frees a layer and its weights; NULL is accepted. */
void regard_int8_linear_free(regard_int8_linear *layer) {
    if (!layer) return;
    linear_free(&layer->linear);
    free(layer);
}

/* x [rows, inputs] -> out [rows, outputs], for the rows from start to stop. The quantized rows are freed at the end. */
void regard_int8_linear_forward(const float *x, float *out, int64_t start, int64_t stop,
                                const regard_int8_linear *layer) {
    const Linear *m = &layer->linear;
    int64_t n = stop - start;
    x += start * m->inputs;
    out += start * m->outputs;
    QuantizedRows q;
    if (!quantized_rows_init(&q, n, m->inputs))
        linear_forward(m, x, m->inputs, n, out, &q);
    else
        linear_forward_float32(m, x, m->inputs, 0, panel_count(m->outputs), n, out, m->outputs);
    quantized_rows_free(&q);
}
