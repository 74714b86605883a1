/* What decides about a candidate: statistics of its features over rows, and its score. Both are sums over rows in double
 * precision, so that rows may be divided into fixed pieces whose sums are added in their order. */
#ifndef OPGROW_EVALUATION_H
#define OPGROW_EVALUATION_H

#include "training.h"

int64_t OG_NAME(og_evaluation_room)(const og_training *given);

/* sums [2][width of the layer]: weighted sums of a layer's features before its batch norm, and of their squares. Layers
 * below are normalised with moments [2][neuron], the means and variances of all layers' features. */
void OG_NAME(og_feature_sums)(
    const og_training *given, const float *theta, const float *moments, int64_t layer, double *sums, float *room);

/* sums [4], as og_scores has them, of the outputs for all rows; every layer is normalised with moments. */
void OG_NAME(og_score_sums)(
    const og_training *given, const float *theta, const float *moments, int64_t criterion, double *sums, float *room);

#endif
