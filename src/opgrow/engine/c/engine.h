/* The types of the engine's interface. Arrays are contiguous unless a stride, in elements, is given. */
#ifndef OPGROW_ENGINE_H
#define OPGROW_ENGINE_H

#include "lanes.h"

/* Neurons that share one operator set: weight [n_inputs][n_neurons]; bias [n_neurons] or NULL. */
typedef struct {
    int64_t nodal, pool, activation, n_inputs, n_neurons;
    const float *weight, *bias;
} og_block;

#endif
