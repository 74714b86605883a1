/* Prediction of a whole network in one call. */
#ifndef OPGROW_NETWORK_H
#define OPGROW_NETWORK_H

#include "lanes.h"

enum { OG_NO_NORM, OG_BATCH_NORM, OG_UNIT_NORM };
/* The columns of a plan, which has a row for each block and one for the head. The nodal operator of a linear head is -1. */
enum { OG_NODAL_CODE, OG_POOL_CODE, OG_ACTIVATION_CODE, OG_INPUTS, OG_NEURONS, OG_NORM, OG_OFFSET, OG_LANES_OFFSET, OG_FIRST,
    OG_PLAN };

/* At its offset a block has in `values`: weight [neuron][input]; then bias, mean, factor and shift, each [neurons rounded
 * up to lanes]: batch norm is (f - mean) factor + shift. At its lanes offset: weight [neuron / lanes][input][lane]. It
 * reads its inputs from the `first` feature of the layer before on. */
typedef struct {
    int64_t n_inputs, n_outputs, n_layers, n_features, n_spans;
    const int64_t *layers; /* blocks of each layer */
    const int64_t *plan;
    const int64_t *spans; /* [n_spans][2]: the first feature and how many of them the head sees, of all layers' features;
                             of the inputs where there are no layers. A head of neurons has one span. */
    const float *values;
    const float *head_weight, *head_bias; /* [n_outputs][n_features] and [n_outputs] of a linear head */
    const float *head_low, *head_high;    /* [n_features] what a linear head reads features as at least and at most, or NULL */
    const double *input_mean, *input_scale;
    const double *output_scale, *output_mean, *output_low, *output_high; /* or NULL */
    double input_bound;                                                  /* or 0 */
} og_network;

int64_t OG_NAME(og_predict_room)(const og_network *network);

/* out [row][n_outputs]; x are floats, or doubles, with a distance of x_stride between rows. */
void OG_NAME(og_predict)(
    const og_network *network, const void *x, int64_t is_double, int64_t x_stride, int64_t n_rows, double *out,
    float *room);

/* Divide each row of values [row][n] by its norm; rows of zeros stay. */
void OG_NAME(og_unit_rows)(float *values, int64_t n_rows, int64_t n);

#endif
