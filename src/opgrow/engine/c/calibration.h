/* Outputs as probabilities, and how confident logits should be. */
#ifndef OPGROW_CALIBRATION_H
#define OPGROW_CALIBRATION_H

#include "lanes.h"

/* Probabilities [row][class] of outputs [row][class]: a softmax of logits; of other outputs their shares of the sum of
 * those above 0, or a softmax in a row without any. */
void OG_NAME(og_probabilities)(
    int64_t logits, const double *outputs, int64_t n_rows, int64_t n_classes, double *out);

int64_t OG_NAME(og_temperature_room)(int64_t n_rows, int64_t n_classes);

/* The factor between e^-1 and e^4 that turns outputs [row][class] into the logits with the least cross-entropy. */
double OG_NAME(og_temperature)(
    const float *outputs, const float *target, const float *weight, int64_t n_rows, int64_t n_classes, float *room);

#endif
