/* A linear layer in int8, for models that run in PyTorch. Where the processor has no products of whole numbers, float32. */
#include "matrix.h"

Linear *regard_linear_new(const float *weight, const float *bias, int64_t outputs, int64_t inputs) {
    Linear *m = calloc(1, sizeof(Linear));
    if (!m) return NULL;
    if (make_linear(m, outputs, inputs) || (WHOLE_NUMBERS && make_low(m, weight))) {
        free_linear(m);
        free(m);
        return NULL;
    }
    for (int64_t o = 0; o < outputs; o++) put_output(m, o, weight + o * inputs);
    if (bias) memcpy(m->bias, bias, outputs * 4);
    return m;
}

void regard_linear_free(Linear *m) {
    if (!m) return;
    free_linear(m);
    free(m);
}

/* x [n, inputs] -> out [n, outputs], for the rows from `start` to `stop`. */
void regard_linear(const float *x, float *out, int64_t start, int64_t stop, int64_t handle) {
    const Linear *m = (const Linear *)(intptr_t)handle;
    int64_t n = stop - start;
    x += start * m->inputs;
    out += start * m->outputs;
#if WHOLE_NUMBERS
    float *scales = aligned(n * 4);
    uint8_t *bytes = aligned(n * fours(m->inputs) * 4 + 64);
    if (m->low && scales && bytes) {
        as_bytes(x, m->inputs, n, m->inputs, bytes, scales);
        low_linear(m, bytes, scales, 0, panels_of(m->outputs), n, out, m->outputs);
        free(scales);
        free(bytes);
        return;
    }
    free(scales);
    free(bytes);
#endif
    linear(m, x, m->inputs, 0, panels_of(m->outputs), n, out, m->outputs);
}
