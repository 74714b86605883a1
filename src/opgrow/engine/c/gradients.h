/* Gradients of pooled nodal operators for a batch of tiles. */
#ifndef OPGROW_GRADIENTS_H
#define OPGROW_GRADIENTS_H

#include "pools.h"

/* Floats of room that og_pool_backward needs. */
static inline int64_t og_pool_backward_room(int64_t n_tiles, int64_t n_inputs, int64_t n_neurons)
{
    int64_t lanes = og_tiles(n_neurons > n_inputs ? n_neurons : n_inputs) * OG_LANES;
    return n_inputs * OG_LANES + n_inputs + OG_LANES * n_tiles * lanes;
}

/* Set by_weight [n_inputs][n_neurons] and, unless back is NULL, add to back [tile][n_inputs][lane].
 *
 * y [tile][n_inputs][lane] with a distance of y_stride floats between tiles, and back_stride for back; weight
 * [n_inputs][n_neurons]; reach [tile][n_inputs] as og_reach has it; grad [tile][n_neurons][lane], 0 in lanes that are no rows; where as og_pool_tile left it. */
void OG_NAME(og_pool_backward)(
    int64_t nodal, int64_t pool, int64_t n_tiles, const float *y, int64_t y_stride, const float *reach,
    const float *weight, int64_t n_inputs, int64_t n_neurons, const int32_t *where, const float *grad, int64_t grad_stride,
    float *by_weight, float *back, int64_t back_stride, float *room);

#endif
