/* The element-wise half of recurrent cells, forward and backward; the matrix products are PyTorch's.
 *
 * GRU (Cho et al. 2014) with the reset gate after the product, as PyTorch has it:
 *     r = sigma(x_r + s_r), z = sigma(x_z + s_z), n = tanh(x_n + r s_n), h' = (1 - z) n + z h
 * where x = W input + b and s = U h + c, each [rows, 3 width] in the order r, z, n.
 * LSTM: i, f, g, o; c' = f c + i g, h' = o tanh(c').
 */
#include "simd_math.h"
#include "regard.h"

#define LOAD_GATE(p, k) vec_load_partial(p + (k) * width + j, n, 0)
#define STORE_GATE(p, k, value) vec_store_partial(p + (k) * width + j, value, n)

/* New states of the rows from start to stop: x, s [rows, 3 width], h [rows, width] -> out [rows, width], gates
 * [rows, 4 width]. */
void regard_gru_forward(const float *x, const float *s, const float *h, float *out, float *gates, int64_t start,
                        int64_t stop, int64_t width) {
    for (int64_t row = start; row < stop; row++) {
        const float *xs = x + row * 3 * width, *ss = s + row * 3 * width, *hs = h + row * width;
        float *g = gates + row * 4 * width, *o = out + row * width;
        for (int64_t j = 0; j < width; j += LANES) {
            int64_t n = width - j;
            vec reset = vec_sigmoid(LOAD_GATE(xs, 0) + LOAD_GATE(ss, 0)),
                update = vec_sigmoid(LOAD_GATE(xs, 1) + LOAD_GATE(ss, 1)), state_n = LOAD_GATE(ss, 2);
            vec candidate = vec_tanh(LOAD_GATE(xs, 2) + reset * state_n);
            STORE_GATE(g, 0, reset);
            STORE_GATE(g, 1, update);
            STORE_GATE(g, 2, candidate);
            STORE_GATE(g, 3, state_n);
            STORE_GATE(o, 0, candidate + update * (LOAD_GATE(hs, 0) - candidate));
        }
    }
}

/* Gradients of regard_gru_forward: dout, h [rows, width], gates [rows, 4 width] -> dx, ds [rows, 3 width], dh
 * [rows, width]. */
void regard_gru_backward(const float *dout, const float *h, const float *gates, float *dx, float *ds, float *dh,
                         int64_t start, int64_t stop, int64_t width) {
    for (int64_t row = start; row < stop; row++) {
        const float *g = gates + row * 4 * width, *hs = h + row * width, *grad = dout + row * width;
        float *xs = dx + row * 3 * width, *ss = ds + row * 3 * width, *hd = dh + row * width;
        for (int64_t j = 0; j < width; j += LANES) {
            int64_t n = width - j;
            vec reset = LOAD_GATE(g, 0), update = LOAD_GATE(g, 1), candidate = LOAD_GATE(g, 2),
                state_n = LOAD_GATE(g, 3), dout_j = LOAD_GATE(grad, 0);
            vec dn = dout_j * (1.0f - update) * (1.0f - candidate * candidate);
            vec dz = dout_j * (LOAD_GATE(hs, 0) - candidate) * update * (1.0f - update),
                dr = dn * state_n * reset * (1.0f - reset);
            STORE_GATE(xs, 0, dr);
            STORE_GATE(ss, 0, dr);
            STORE_GATE(xs, 1, dz);
            STORE_GATE(ss, 1, dz);
            STORE_GATE(xs, 2, dn);
            STORE_GATE(ss, 2, dn * reset);
            STORE_GATE(hd, 0, dout_j * update);
        }
    }
}

/* New states of the rows from start to stop: x, s [rows, 4 width], cell [rows, width] -> out, new_cell [rows, width],
 * gates [rows, 5 width]. */
void regard_lstm_forward(const float *x, const float *s, const float *cell, float *out, float *new_cell, float *gates,
                         int64_t start, int64_t stop, int64_t width) {
    for (int64_t row = start; row < stop; row++) {
        const float *xs = x + row * 4 * width, *ss = s + row * 4 * width, *cells = cell + row * width;
        float *g = gates + row * 5 * width, *outs = out + row * width, *new_cells = new_cell + row * width;
        for (int64_t j = 0; j < width; j += LANES) {
            int64_t n = width - j;
            vec input = vec_sigmoid(LOAD_GATE(xs, 0) + LOAD_GATE(ss, 0)),
                forget = vec_sigmoid(LOAD_GATE(xs, 1) + LOAD_GATE(ss, 1));
            vec candidate = vec_tanh(LOAD_GATE(xs, 2) + LOAD_GATE(ss, 2)),
                output = vec_sigmoid(LOAD_GATE(xs, 3) + LOAD_GATE(ss, 3));
            vec c = forget * LOAD_GATE(cells, 0) + input * candidate, tanh_cell = vec_tanh(c);
            STORE_GATE(g, 0, input);
            STORE_GATE(g, 1, forget);
            STORE_GATE(g, 2, candidate);
            STORE_GATE(g, 3, output);
            STORE_GATE(g, 4, tanh_cell);
            STORE_GATE(new_cells, 0, c);
            STORE_GATE(outs, 0, output * tanh_cell);
        }
    }
}

/* Gradients of regard_lstm_forward: dout, dnew_cell, cell [rows, width], gates [rows, 5 width] -> dx [rows, 4 width],
 * dcell [rows, width]. */
void regard_lstm_backward(const float *dout, const float *dnew_cell, const float *cell, const float *gates, float *dx,
                          float *dcell, int64_t start, int64_t stop, int64_t width) {
    for (int64_t row = start; row < stop; row++) {
        const float *g = gates + row * 5 * width, *cells = cell + row * width;
        const float *grad = dout + row * width, *grad_cell = dnew_cell + row * width;
        float *xs = dx + row * 4 * width, *dcells = dcell + row * width;
        for (int64_t j = 0; j < width; j += LANES) {
            int64_t n = width - j;
            vec input = LOAD_GATE(g, 0), forget = LOAD_GATE(g, 1), candidate = LOAD_GATE(g, 2),
                output = LOAD_GATE(g, 3), tanh_cell = LOAD_GATE(g, 4), dout_j = LOAD_GATE(grad, 0);
            vec dcell_j = LOAD_GATE(grad_cell, 0) + dout_j * output * (1.0f - tanh_cell * tanh_cell);
            STORE_GATE(xs, 0, dcell_j * candidate * input * (1.0f - input));
            STORE_GATE(xs, 1, dcell_j * LOAD_GATE(cells, 0) * forget * (1.0f - forget));
            STORE_GATE(xs, 2, dcell_j * input * (1.0f - candidate * candidate));
            STORE_GATE(xs, 3, dout_j * tanh_cell * output * (1.0f - output));
            STORE_GATE(dcells, 0, dcell_j * forget);
        }
    }
}
