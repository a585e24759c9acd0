/* The greatest flow between two nodes of a graph, by Dinic's algorithm, for many pairs of them: attention flow asks it of
 * every output and input. Capacities are shares, so what is left of an edge below EPSILON counts as nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EPSILON 1e-12

/* Edge e leads from one node to another; edge e ^ 1 is the same backwards. `first` and `next` list each node's edges. */
typedef struct {
    int64_t nodes, edges;
    int32_t *to, *next, *first, *level, *at, *queue, *path;
    double *left;
} graph;

/* Numbers the nodes by their distance from the source; whether the sink is reached. */
static int levels(graph *g, int32_t source, int32_t sink) {
    for (int64_t n = 0; n < g->nodes; n++) g->level[n] = -1;
    int64_t head = 0, tail = 0;
    g->queue[tail++] = source;
    g->level[source] = 0;
    while (head < tail) {
        int32_t here = g->queue[head++];
        for (int32_t e = g->first[here]; e >= 0; e = g->next[e])
            if (g->left[e] > EPSILON && g->level[g->to[e]] < 0) {
                g->level[g->to[e]] = g->level[here] + 1;
                g->queue[tail++] = g->to[e];
            }
    }
    return g->level[sink] >= 0;
}

/* Pushes along one shortest path that still has room; how much, 0 if there is none. */
static double push(graph *g, int32_t source, int32_t sink) {
    int64_t length = 0;
    int32_t here = source;
    while (here != sink) {
        int32_t e = g->at[here];
        while (e >= 0 && !(g->left[e] > EPSILON && g->level[g->to[e]] == g->level[here] + 1)) e = g->next[e];
        g->at[here] = e;
        if (e >= 0) {
            g->path[length++] = e;
            here = g->to[e];
        } else if (!length) {
            return 0;
        } else { /* nothing leads on from here: back, and never again this way */
            here = g->to[g->path[--length] ^ 1];
            g->at[here] = g->next[g->at[here]];
        }
    }
    double most = g->left[g->path[0]];
    for (int64_t i = 1; i < length; i++)
        if (g->left[g->path[i]] < most) most = g->left[g->path[i]];
    for (int64_t i = 0; i < length; i++) {
        g->left[g->path[i]] -= most;
        g->left[g->path[i] ^ 1] += most;
    }
    return most;
}

/* from, to [edges] int32, capacity [edges] double; sources, sinks [pairs] int32 -> out [pairs] double, -1 without memory.
 * start and stop are a range of the pairs. */
void regard_flow(const int32_t *from, const int32_t *to, const double *capacity, const int32_t *sources,
                 const int32_t *sinks, double *out, int64_t start, int64_t stop, int64_t nodes, int64_t edges) {
    int64_t both = 2 * edges;
    graph g = {.nodes = nodes, .edges = edges};
    int32_t *ints = malloc((size_t)(2 * both + 5 * nodes) * sizeof(int32_t));
    double *room = malloc((size_t)(2 * both) * sizeof(double));
    if (!ints || !room) {
        free(ints);
        free(room);
        for (int64_t p = start; p < stop; p++) out[p] = -1;
        return;
    }
    g.to = ints, g.next = g.to + both, g.first = g.next + both, g.level = g.first + nodes, g.at = g.level + nodes;
    g.queue = g.at + nodes, g.path = g.queue + nodes;
    g.left = room;
    double *whole = room + both;
    for (int64_t n = 0; n < nodes; n++) g.first[n] = -1;
    for (int64_t e = 0; e < edges; e++)
        for (int64_t turned = 0; turned < 2; turned++) {
            int64_t i = 2 * e + turned;
            int32_t here = turned ? to[e] : from[e];
            g.to[i] = turned ? from[e] : to[e];
            whole[i] = turned ? 0 : capacity[e];
            g.next[i] = g.first[here];
            g.first[here] = (int32_t)i;
        }
    for (int64_t p = start; p < stop; p++) {
        memcpy(g.left, whole, (size_t)both * sizeof(double));
        double total = 0;
        while (levels(&g, sources[p], sinks[p])) {
            memcpy(g.at, g.first, (size_t)nodes * sizeof(int32_t));
            double more;
            while ((more = push(&g, sources[p], sinks[p])) > 0) total += more;
        }
        out[p] = total;
    }
    free(ints);
    free(room);
}
