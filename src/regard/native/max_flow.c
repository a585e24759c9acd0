/* Maximum flow between pairs of nodes by Dinic's algorithm: attention flow needs it of every output and input position.
 * Capacities are attention weights, so a residual capacity below EPSILON counts as zero.
 */
#include "regard.h"
#include <stdlib.h>
#include <string.h>

#define EPSILON 1e-12

/* Edge e ^ 1 is the reverse of edge e. `first` and `next` are linked lists of each node's edges. */
typedef struct {
    int64_t nodes, edges;
    int32_t *to, *next, *first, *level, *current_edge, *queue, *path;
    double *residual;
} Graph;

/* Numbers the nodes by their distance from the source, and returns whether the sink is reached. */
static int breadth_first_levels(Graph *g, int32_t source, int32_t sink) {
    for (int64_t n = 0; n < g->nodes; n++) g->level[n] = -1;
    int64_t queue_head = 0, queue_tail = 0;
    g->queue[queue_tail++] = source;
    g->level[source] = 0;
    while (queue_head < queue_tail) {
        int32_t node = g->queue[queue_head++];
        for (int32_t e = g->first[node]; e >= 0; e = g->next[e])
            if (g->residual[e] > EPSILON && g->level[g->to[e]] < 0) {
                g->level[g->to[e]] = g->level[node] + 1;
                g->queue[queue_tail++] = g->to[e];
            }
    }
    return g->level[sink] >= 0;
}

/* Augments one shortest path that has residual capacity. Returns by how much, 0 if there is none. */
static double augment_path(Graph *g, int32_t source, int32_t sink) {
    int64_t length = 0;
    int32_t node = source;
    while (node != sink) {
        int32_t e = g->current_edge[node];
        while (e >= 0 && !(g->residual[e] > EPSILON && g->level[g->to[e]] == g->level[node] + 1)) e = g->next[e];
        g->current_edge[node] = e;
        if (e >= 0) {
            g->path[length++] = e;
            node = g->to[e];
        } else if (!length) {
            return 0;
        } else { /* a dead end: go back, and skip this edge from now on */
            node = g->to[g->path[--length] ^ 1];
            g->current_edge[node] = g->next[g->current_edge[node]];
        }
    }
    double bottleneck = g->residual[g->path[0]];
    for (int64_t i = 1; i < length; i++)
        if (g->residual[g->path[i]] < bottleneck) bottleneck = g->residual[g->path[i]];
    for (int64_t i = 0; i < length; i++) {
        g->residual[g->path[i]] -= bottleneck;
        g->residual[g->path[i] ^ 1] += bottleneck;
    }
    return bottleneck;
}

/* The maximum flow of one pair at a time, in one graph whose residual capacities are restored for each pair. All memory
 * that it allocates is freed before it returns. Shapes: see regard.h. */
int32_t regard_max_flow_compute(const int32_t *from, const int32_t *to, const double *capacity, const int32_t *sources,
                                const int32_t *sinks, double *out, int64_t start, int64_t stop, int64_t nodes,
                                int64_t edges) {
    int64_t directed_edges = 2 * edges;
    Graph g = {.nodes = nodes, .edges = edges};
    int32_t *integers = malloc((size_t)(2 * directed_edges + 5 * nodes) * sizeof(int32_t));
    double *doubles = malloc((size_t)(2 * directed_edges) * sizeof(double));
    if (!integers || !doubles) {
        free(integers);
        free(doubles);
        return REGARD_OUT_OF_MEMORY;
    }
    g.to = integers, g.next = g.to + directed_edges, g.first = g.next + directed_edges, g.level = g.first + nodes,
    g.current_edge = g.level + nodes;
    g.queue = g.current_edge + nodes, g.path = g.queue + nodes;
    g.residual = doubles;
    double *capacities = doubles + directed_edges;
    for (int64_t n = 0; n < nodes; n++) g.first[n] = -1;
    for (int64_t e = 0; e < edges; e++)
        for (int64_t reverse = 0; reverse < 2; reverse++) {
            int64_t i = 2 * e + reverse;
            int32_t node = reverse ? to[e] : from[e];
            g.to[i] = reverse ? from[e] : to[e];
            capacities[i] = reverse ? 0 : capacity[e];
            g.next[i] = g.first[node];
            g.first[node] = (int32_t)i;
        }
    for (int64_t p = start; p < stop; p++) {
        memcpy(g.residual, capacities, (size_t)directed_edges * sizeof(double));
        double total = 0;
        while (breadth_first_levels(&g, sources[p], sinks[p])) {
            memcpy(g.current_edge, g.first, (size_t)nodes * sizeof(int32_t));
            double added;
            while ((added = augment_path(&g, sources[p], sinks[p])) > 0) total += added;
        }
        out[p] = total;
    }
    free(integers);
    free(doubles);
    return REGARD_OK;
}
