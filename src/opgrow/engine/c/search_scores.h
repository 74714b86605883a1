/* Leave-one-out errors and accuracies of solved candidates of the search. */
#ifndef OPGROW_SEARCH_SCORES_H
#define OPGROW_SEARCH_SCORES_H

#include "lanes.h"

/* Some rows, candidates' raw features on them, and the candidates' solutions beside the accepted features' own. */
typedef struct {
    const float *h;                          /* [candidate][neuron][row] */
    const float *accepted, *target, *weight; /* [row][n_accepted], [row][n_targets], [row] */
    const float *centre, *factor;            /* [candidate][neuron]: (h - centre) * factor is standardised */
    const float *projection;                 /* [n_accepted][candidate][neuron]: what accepted features explain of new ones */
    const float *whiten;                     /* [candidate][neuron][neuron], lower triangular */
    const float *reduced;                    /* [candidate][neuron][n_targets] */
    const float *accepted_mean, *target_mean;
    const float *head;         /* [n_accepted][n_targets] */
    const double *base_whiten; /* [n_accepted][n_accepted], lower triangular; NULL: count right answers instead */
    int64_t n_candidates, n_neurons, n_rows, n_accepted, n_targets;
    double total_weight;
} og_search_solutions;

int64_t OG_NAME(og_search_scores_room)(const og_search_solutions *given);

/* out [candidate] = the negative sum over rows of weighted squared leave-one-out errors, or of the weights of those rows
 * whose largest output is that of the target. */
void OG_NAME(og_search_scores)(const og_search_solutions *given, double *out, float *room);

#endif
