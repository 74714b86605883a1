/* Features of a block for many rows, and their gradients. */
#ifndef OPGROW_BLOCKS_H
#define OPGROW_BLOCKS_H

#include "engine.h"

int64_t OG_NAME(og_features_room)(int64_t n_inputs, int64_t n_neurons);

/* out [row][n_neurons] = f(rho(psi(x, weight)) + bias) */
void OG_NAME(og_features)(
    const og_block *block, const float *x, int64_t x_stride, int64_t n_rows, float *out, float *room);

int64_t OG_NAME(og_search_features_room)(int64_t n_inputs, int64_t n_neurons);

/* Features of all candidates that share weights: out [set][n_neurons][out_stride] for pools[set], activations[set].
 * The block's own pool, activation and bias play no part. */
void OG_NAME(og_search_features)(
    const og_block *block, const float *x, int64_t x_stride, int64_t n_rows, int64_t n_sets, const int64_t *pools,
    const int64_t *activations, float *out, int64_t out_stride, float *room);

int64_t OG_NAME(og_gradients_room)(int64_t n_rows, int64_t n_inputs, int64_t n_neurons);

/* Gradients of og_features for one batch, given that by its output, grad [row][n_neurons]: by_weight [n_inputs]
 * [n_neurons], by_bias [n_neurons] and, unless it is NULL, by_input [row][n_inputs]. */
void OG_NAME(og_gradients)(
    const og_block *block, const float *x, int64_t x_stride, int64_t n_rows, const float *grad, float *by_weight,
    float *by_bias, float *by_input, float *room);

/* out = function(x) for n values, a multiple of the lanes: for tests of the elementary functions. */
void OG_NAME(og_elementary)(int64_t function, const float *x, float *out, int64_t n);

#endif
