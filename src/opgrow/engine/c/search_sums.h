/* The sums that decide between candidates of the search, for all candidates at once. */
#ifndef OPGROW_SEARCH_SUMS_H
#define OPGROW_SEARCH_SUMS_H

#include "lanes.h"

/* Features h [candidate][neuron][row], standardised by (h - shift) * scale with constants [candidate][neuron], and
 * what they are multiplied with. weight may be NULL. */
typedef struct {
    const float *h, *shift, *scale, *weight;
    const float *accepted; /* [row][n_accepted] */
    const float *target; /* [row][n_targets] */
    int64_t n_candidates, n_neurons, n_rows, n_accepted, n_targets;
} og_search_data;

int64_t OG_NAME(og_search_sums_room)(const og_search_data *data);

/* Weighted sums over rows: of features, total [candidate][neuron]; of their products with each other, gram [candidate]
 * [neuron][neuron], with accepted features, cross [accepted][candidate][neuron], and with targets, by_target
 * [candidate][neuron][target]. Products are added in single precision over 128 rows, those sums in double. */
void OG_NAME(og_search_sums)(
    const og_search_data *data, double *total, double *gram, double *cross, double *by_target, float *room);

#endif
