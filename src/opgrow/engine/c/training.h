/* Training by back-propagation: whole epochs for one candidate, in place. */
#ifndef OPGROW_TRAINING_H
#define OPGROW_TRAINING_H

#include "lanes.h"

/* The columns of a plan, which has a row for each block. Layer 0 sees x; `row` is the block's first feature in its layer. */
enum { OG_T_NODAL, OG_T_POOL, OG_T_ACTIVATION, OG_T_INPUTS, OG_T_NEURONS, OG_T_OFFSET, OG_T_LAYER, OG_T_ROW, OG_T_PLAN };

/* Parameters are one vector: for each block weight [input][neuron], bias, scale and shift; then the head's weight
 * [feature][output] and bias. The head sees the frozen features and then those of the last layer. */
typedef struct {
    const float *x, *frozen, *target, *row_weight; /* [row][.]; row_weight may be NULL */
    int64_t n_rows, n_inputs, n_frozen, n_outputs;
    const int64_t *plan, *widths; /* widths: features of each layer */
    int64_t n_blocks, n_layers, n_parameters;
    int64_t head_nodal, head_pool, head_activation; /* -1: a linear head */
    int64_t loss, largest_batch;
    const float *decay; /* [parameter] */
    float dropout, input_dropout, max_norm; /* 0: none */
    int64_t counts_right;                   /* whether an epoch says what it classifies rightly */
} og_training;

/* What an epoch goes on from, and what it says. */
typedef struct {
    float *theta, *first, *second; /* parameters and Adam's moments */
    int64_t step;                  /* steps taken so far */
    int64_t skipped;               /* batches without a step, for gradients that were not finite; added to */
    double loss, right;            /* means over the epoch's batches; right: the weighted part that is classified rightly, if asked for */
    float *moments;                /* [2][neuron]: mean and variance of all features over the epoch's batches */
} og_state;

int64_t OG_NAME(og_train_room)(const og_training *training);

/* One epoch; batch b is the rows order[bounds[b]] .. order[bounds[b + 1] - 1]. */
void OG_NAME(og_train_epoch)(
    const og_training *training, og_state *state, const int64_t *order, const int64_t *bounds, int64_t n_batches,
    double rate, uint64_t seed, float *room);

/* One step of Adam with the gradient by_theta, and the limit of norms; nothing but state->skipped changes if a gradient is
 * not finite. Whether the step was taken. The room has a float for each neuron of the largest block. */
int64_t OG_NAME(og_train_update)(
    const og_training *training, og_state *state, const float *by_theta, double rate, float *room);

#endif
