/* The element-wise half of recurrent cells, forward and back; the matrix products are PyTorch's.
 *
 * GRU (Cho et al. 2014) with the reset gate after the product, as PyTorch has it:
 *     r = sigma(x_r + s_r), z = sigma(x_z + s_z), n = tanh(x_n + r s_n), h' = (1 - z) n + z h
 * where x = W input + b and s = U h + c, each [rows, 3 width] in the order r, z, n.
 * LSTM: i, f, g, o; c' = f c + i g, h' = o tanh(c').
 */
#include "exponential.h"

#define AT(p, k) load_part(p + (k) * width + j, n, 0)
#define PUT(p, k, value) store_part(p + (k) * width + j, value, n)

/* gates [rows, 4 width] keeps r, z, n and s_n for the way back. */
void regard_gru(const float *x, const float *s, const float *h, float *out, float *gates, int64_t from, int64_t to,
                int64_t width) {
    for (int64_t row = from; row < to; row++) {
        const float *xs = x + row * 3 * width, *ss = s + row * 3 * width, *hs = h + row * width;
        float *g = gates + row * 4 * width, *o = out + row * width;
        for (int64_t j = 0; j < width; j += LANES) {
            int64_t n = width - j;
            vec reset = sigmoid(AT(xs, 0) + AT(ss, 0)), keep = sigmoid(AT(xs, 1) + AT(ss, 1)), late = AT(ss, 2);
            vec fresh = hyperbolic(AT(xs, 2) + reset * late);
            PUT(g, 0, reset);
            PUT(g, 1, keep);
            PUT(g, 2, fresh);
            PUT(g, 3, late);
            PUT(o, 0, fresh + keep * (AT(hs, 0) - fresh));
        }
    }
}

/* d [rows, width] of h' -> dx, ds [rows, 3 width], and dh: what passes straight to h. */
void regard_gru_backward(const float *d, const float *h, const float *gates, float *dx, float *ds, float *dh,
                         int64_t from, int64_t to, int64_t width) {
    for (int64_t row = from; row < to; row++) {
        const float *g = gates + row * 4 * width, *hs = h + row * width, *up = d + row * width;
        float *xs = dx + row * 3 * width, *ss = ds + row * 3 * width, *hd = dh + row * width;
        for (int64_t j = 0; j < width; j += LANES) {
            int64_t n = width - j;
            vec reset = AT(g, 0), keep = AT(g, 1), fresh = AT(g, 2), late = AT(g, 3), u = AT(up, 0);
            vec dn = u * (1.0f - keep) * (1.0f - fresh * fresh);
            vec dz = u * (AT(hs, 0) - fresh) * keep * (1.0f - keep), dr = dn * late * reset * (1.0f - reset);
            PUT(xs, 0, dr);
            PUT(ss, 0, dr);
            PUT(xs, 1, dz);
            PUT(ss, 1, dz);
            PUT(xs, 2, dn);
            PUT(ss, 2, dn * reset);
            PUT(hd, 0, u * keep);
        }
    }
}

/* x and s [rows, 4 width] are added; gates [rows, 5 width] keeps i, f, g, o and tanh(c'). */
void regard_lstm(const float *x, const float *s, const float *c, float *out, float *cell, float *gates, int64_t from,
                 int64_t to, int64_t width) {
    for (int64_t row = from; row < to; row++) {
        const float *xs = x + row * 4 * width, *ss = s + row * 4 * width, *cs = c + row * width;
        float *g = gates + row * 5 * width, *os = out + row * width, *cells = cell + row * width;
        for (int64_t j = 0; j < width; j += LANES) {
            int64_t n = width - j;
            vec in = sigmoid(AT(xs, 0) + AT(ss, 0)), forget = sigmoid(AT(xs, 1) + AT(ss, 1));
            vec fresh = hyperbolic(AT(xs, 2) + AT(ss, 2)), show = sigmoid(AT(xs, 3) + AT(ss, 3));
            vec now = forget * AT(cs, 0) + in * fresh, shown = hyperbolic(now);
            PUT(g, 0, in);
            PUT(g, 1, forget);
            PUT(g, 2, fresh);
            PUT(g, 3, show);
            PUT(g, 4, shown);
            PUT(cells, 0, now);
            PUT(os, 0, show * shown);
        }
    }
}

/* dh, dcell [rows, width] of h' and c' -> dx [rows, 4 width] (ds is the same), and dc to the cell before. */
void regard_lstm_backward(const float *dh, const float *dcell, const float *c, const float *gates, float *dx,
                          float *dc, int64_t from, int64_t to, int64_t width) {
    for (int64_t row = from; row < to; row++) {
        const float *g = gates + row * 5 * width, *cs = c + row * width;
        const float *up = dh + row * width, *upc = dcell + row * width;
        float *xs = dx + row * 4 * width, *dcs = dc + row * width;
        for (int64_t j = 0; j < width; j += LANES) {
            int64_t n = width - j;
            vec in = AT(g, 0), forget = AT(g, 1), fresh = AT(g, 2), show = AT(g, 3), shown = AT(g, 4), u = AT(up, 0);
            vec now = AT(upc, 0) + u * show * (1.0f - shown * shown);
            PUT(xs, 0, now * fresh * in * (1.0f - in));
            PUT(xs, 1, now * AT(cs, 0) * forget * (1.0f - forget));
            PUT(xs, 2, now * in * (1.0f - fresh * fresh));
            PUT(xs, 3, u * shown * show * (1.0f - show));
            PUT(dcs, 0, now * forget);
        }
    }
}
