/* Pooled nodal operators and activations, for tiles of rows and for single rows. */
#ifndef OPGROW_POOLS_H
#define OPGROW_POOLS_H

#include "lanes.h"

enum { OG_MULTIPLICATION, OG_EXPONENTIAL, OG_HARMONIC, OG_QUADRATIC, OG_GAUSSIAN, OG_DOG, OG_PYGOP_QUADRATIC, OG_PYGOP_DOG, OG_N_NODALS };
enum { OG_SUM, OG_CORRELATION1, OG_CORRELATION2, OG_MAXIMUM, OG_N_POOLS };
enum { OG_SIGMOID, OG_TANH, OG_RELU, OG_SOFTPLUS, OG_INVERSE_ABSOLUTE, OG_ELU, OG_PYGOP_SOFTPLUS, OG_IDENTITY, OG_N_ACTIVATIONS };

/* One macro call for each nodal operator and activation, in the order of the codes. */
#define OG_FOR_NODALS(X) \
    X(multiplication) X(exponential) X(harmonic) X(quadratic) X(gaussian) X(dog) \
    X(pygop_quadratic) X(pygop_dog)
#define OG_CODE(nodal) code_##nodal,
enum { OG_FOR_NODALS(OG_CODE) };
#define OG_FOR_ACTIVATIONS(X) \
    X(sigmoid) X(tanh) X(relu) X(softplus) X(inverse_absolute) X(elu) X(pygop_softplus) X(identity)

/* reach [n_inputs]: the largest weight of each input of a tile for which the near forms of operators.h hold. */
void OG_NAME(og_reach)(int64_t nodal, const float *y, int64_t n_inputs, float *reach);

/* Whether all weights of a neuron are within reach; reach may be NULL, and then they are not. */
int OG_NAME(og_is_near)(const float *weight, const float *reach, int64_t n_inputs);

/* Pool one tile y [n_inputs][lane] with weight [n_neurons][n_inputs] into out [n_neurons][lane]. For maxima, where
 * [n_neurons][lane] becomes the first input that has it. */
void OG_NAME(og_pool_tile)(
    int64_t nodal, int64_t pool, const float *y, const float *reach, const float *weight, int64_t n_inputs,
    int64_t n_neurons, float *out, int32_t *where);

/* Pool one row y [n_inputs] with weight [n_neurons / lanes][n_inputs][lane] into out [n_neurons rounded up]. */
void OG_NAME(og_pool_row)(
    int64_t nodal, int64_t pool, const float *y, const float *weight, int64_t n_inputs, int64_t n_neurons, float *out);

/* All four pools of one tile: out [pool][neuron][stride], of which the lanes are written. */
int64_t OG_NAME(og_pool_tile_all_room)(int64_t n_neurons);
void OG_NAME(og_pool_tile_all)(
    int64_t nodal, const float *y, const float *reach, const float *weight, int64_t n_inputs, int64_t n_neurons,
    float *out, int64_t stride, float *room);

/* out = f(x) for n values; n is a multiple of the lanes. */
void OG_NAME(og_activate)(int64_t activation, const float *x, float *out, int64_t n);

/* Multiply grad by f'(x). */
void OG_NAME(og_activation_backward)(int64_t activation, const float *x, float *grad, int64_t n);

/* y [n_inputs][lane] = rows of x, padded with zeros. */
void OG_NAME(og_load_tile)(const float *x, int64_t stride, int64_t n_rows, int64_t n_inputs, float *y);

/* out [n_neurons][n_inputs] = weight [n_inputs][n_neurons] */
void OG_NAME(og_transpose)(const float *weight, int64_t n_inputs, int64_t n_neurons, float *out);

/* out [n_neurons / lanes][n_inputs][lane] = weight [n_inputs][n_neurons], padded with zeros. */
void OG_NAME(og_weights_in_lanes)(const float *weight, int64_t n_inputs, int64_t n_neurons, float *out);

#endif
