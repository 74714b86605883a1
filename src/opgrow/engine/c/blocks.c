/* Features of a block for many rows, and their gradients; see blocks.h. */
#include "blocks.h"
#include "gradients.h"

int64_t OG_NAME(og_features_room)(int64_t n_inputs, int64_t n_neurons)
{
    int64_t lanes = og_tiles(n_neurons) * OG_LANES;
    return n_inputs * (1 + OG_LANES + lanes) + 2 * lanes * OG_LANES;
}

static void few_rows(const og_block *block, const float *x, int64_t x_stride, int64_t n_rows, float *out, float *room)
{
    int64_t lanes = og_tiles(block->n_neurons) * OG_LANES;
    float *weight = room, *values = room + block->n_inputs * lanes;
    OG_NAME(og_weights_in_lanes)(block->weight, block->n_inputs, block->n_neurons, weight);
    for (int64_t r = 0; r < n_rows; r++) {
        OG_NAME(og_pool_row)(
            block->nodal, block->pool, x + r * x_stride, weight, block->n_inputs, block->n_neurons, values);
        if (block->bias)
            for (int64_t i = 0; i < block->n_neurons; i++)
                values[i] += block->bias[i];
        for (int64_t i = block->n_neurons; i < lanes; i++)
            values[i] = 0.0f;
        OG_NAME(og_activate)(block->activation, values, values, lanes);
        memcpy(out + r * block->n_neurons, values, sizeof(float) * (size_t)block->n_neurons);
    }
}

void OG_NAME(og_features)(
    const og_block *block, const float *x, int64_t x_stride, int64_t n_rows, float *out, float *room)
{
    int64_t d = block->n_neurons;
    if (n_rows * og_tiles(d) < og_tiles(n_rows) * d) {
        few_rows(block, x, x_stride, n_rows, out, room);
        return;
    }
    float *tile = room, *weight = tile + block->n_inputs * OG_LANES, *values = weight + block->n_inputs * d;
    int32_t *where = (int32_t *)(values + d * OG_LANES);
    float *reach = values + 2 * d * OG_LANES;
    OG_NAME(og_transpose)(block->weight, block->n_inputs, d, weight);
    for (int64_t start = 0; start < n_rows; start += OG_LANES) {
        int64_t rows = og_min(OG_LANES, n_rows - start);
        OG_NAME(og_load_tile)(x + start * x_stride, x_stride, rows, block->n_inputs, tile);
        OG_NAME(og_reach)(block->nodal, tile, block->n_inputs, reach);
        OG_NAME(og_pool_tile)(block->nodal, block->pool, tile, reach, weight, block->n_inputs, d, values, where);
        if (block->bias)
            for (int64_t i = 0; i < d; i++)
                OG_EACH_LANE(l) values[i * OG_LANES + l] += block->bias[i];
        OG_NAME(og_activate)(block->activation, values, values, d * OG_LANES);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < d; i++)
                out[(start + r) * d + i] = values[i * OG_LANES + r];
    }
}

/* Rows whose pools are kept before they are activated: long enough pieces of the rows of `out` to write them quickly. */
#define SEARCH_ROWS (8 * OG_LANES)

int64_t OG_NAME(og_search_features_room)(int64_t n_inputs, int64_t n_neurons)
{
    return n_inputs * (1 + OG_LANES + n_neurons) + 5 * n_neurons * SEARCH_ROWS
        + OG_NAME(og_pool_tile_all_room)(n_neurons);
}

/* pooled [pool][neuron][SEARCH_ROWS] for rows of x, at most SEARCH_ROWS. */
static void pool_rows(
    const og_block *block, const float *weight, const float *x, int64_t x_stride, int64_t n_rows, float *pooled,
    float *tile, float *reach, float *sums)
{
    int64_t n = block->n_inputs, d = block->n_neurons;
    for (int64_t start = 0; start < n_rows; start += OG_LANES) {
        OG_NAME(og_load_tile)(x + start * x_stride, x_stride, og_min(OG_LANES, n_rows - start), n, tile);
        OG_NAME(og_reach)(block->nodal, tile, n, reach);
        OG_NAME(og_pool_tile_all)(block->nodal, tile, reach, weight, n, d, pooled + start, SEARCH_ROWS, sums);
    }
}

void OG_NAME(og_search_features)(
    const og_block *block, const float *x, int64_t x_stride, int64_t n_rows, int64_t n_sets, const int64_t *pools,
    const int64_t *activations, float *out, int64_t out_stride, float *room)
{
    int64_t n = block->n_inputs, d = block->n_neurons, size = d * SEARCH_ROWS;
    float *pooled = room, *values = pooled + 4 * size, *sums = values + size;
    float *tile = sums + OG_NAME(og_pool_tile_all_room)(d), *weight = tile + n * OG_LANES, *reach = weight + n * d;
    OG_NAME(og_transpose)(block->weight, n, d, weight);
    /* Lanes that no row fills are activated, too: let them hold something. */
    memset(pooled, 0, sizeof(float) * (size_t)(4 * size));
    for (int64_t start = 0; start < n_rows; start += SEARCH_ROWS) {
        int64_t rows = og_min(SEARCH_ROWS, n_rows - start);
        pool_rows(block, weight, x + start * x_stride, x_stride, rows, pooled, tile, reach, sums);
        for (int64_t s = 0; s < n_sets; s++) {
            OG_NAME(og_activate)(activations[s], pooled + pools[s] * size, values, size);
            float *to = out + s * d * out_stride + start;
            for (int64_t i = 0; i < d; i++)
                memcpy(to + i * out_stride, values + i * SEARCH_ROWS, sizeof(float) * (size_t)rows);
        }
    }
}

int64_t OG_NAME(og_gradients_room)(int64_t n_rows, int64_t n_inputs, int64_t n_neurons)
{
    int64_t tiles = og_tiles(n_rows);
    return OG_LANES * tiles * (2 * n_inputs + 3 * n_neurons) + n_inputs * (n_neurons + tiles)
        + og_pool_backward_room(tiles, n_inputs, n_neurons);
}

void OG_NAME(og_gradients)(
    const og_block *block, const float *x, int64_t x_stride, int64_t n_rows, const float *grad, float *by_weight,
    float *by_bias, float *by_input, float *room)
{
    int64_t n = block->n_inputs, d = block->n_neurons, tiles = og_tiles(n_rows), size = d * OG_LANES;
    float *y = room, *back = y + tiles * n * OG_LANES, *pre = back + tiles * n * OG_LANES, *g = pre + tiles * size;
    int32_t *where = (int32_t *)(g + tiles * size);
    float *weight = g + 2 * tiles * size, *reach = weight + n * d, *rest = reach + tiles * n;
    OG_NAME(og_transpose)(block->weight, n, d, weight);
    memset(back, 0, sizeof(float) * (size_t)(tiles * n * OG_LANES));
    memset(g, 0, sizeof(float) * (size_t)(tiles * size));
    for (int64_t t = 0; t < tiles; t++) {
        int64_t start = t * OG_LANES, rows = og_min(OG_LANES, n_rows - start);
        float *tile = y + t * n * OG_LANES, *values = pre + t * size;
        OG_NAME(og_load_tile)(x + start * x_stride, x_stride, rows, n, tile);
        OG_NAME(og_reach)(block->nodal, tile, n, reach + t * n);
        OG_NAME(og_pool_tile)(block->nodal, block->pool, tile, reach + t * n, weight, n, d, values, where + t * size);
        for (int64_t i = 0; i < d; i++) {
            if (block->bias)
                OG_EACH_LANE(l) values[i * OG_LANES + l] += block->bias[i];
            for (int64_t r = 0; r < rows; r++)
                g[t * size + i * OG_LANES + r] = grad[(start + r) * d + i];
        }
        OG_NAME(og_activation_backward)(block->activation, values, g + t * size, size);
        for (int64_t i = 0; i < d; i++) /* the slope of a row that is none may be anything */
            for (int64_t r = rows; r < OG_LANES; r++)
                g[t * size + i * OG_LANES + r] = 0.0f;
    }
    for (int64_t i = 0; i < d; i++) {
        float sum[OG_LANES] = {0};
        for (int64_t t = 0; t < tiles; t++)
            OG_EACH_LANE(l) sum[l] += g[t * size + i * OG_LANES + l];
        by_bias[i] = og_lane_sum(sum);
    }
    OG_NAME(og_pool_backward)(
        block->nodal, block->pool, tiles, y, n * OG_LANES, reach, block->weight, n, d, where, g, size, by_weight,
        by_input ? back : NULL, n * OG_LANES, rest);
    if (by_input)
        for (int64_t r = 0; r < n_rows; r++)
            for (int64_t k = 0; k < n; k++)
                by_input[r * n + k] = back[(r / OG_LANES * n + k) * OG_LANES + r % OG_LANES];
}

#define OG_ELEMENTARY(code, name) \
    case code: \
        for (int64_t j = 0; j < n; j += OG_LANES) \
            OG_EACH_LANE(l) out[j + l] = og_##name(x[j + l]); \
        return;

void OG_NAME(og_elementary)(int64_t function, const float *restrict x, float *restrict out, int64_t n)
{
    switch (function) {
        OG_ELEMENTARY(0, exp)
        OG_ELEMENTARY(1, expm1_bounded)
        OG_ELEMENTARY(2, exp_bounded)
        OG_ELEMENTARY(3, log)
        OG_ELEMENTARY(4, sin_half_turns)
        OG_ELEMENTARY(5, cos_half_turns)
        OG_ELEMENTARY(10, exp2m1_reduced)
        OG_ELEMENTARY(6, tanh)
        OG_ELEMENTARY(7, sigmoid)
        OG_ELEMENTARY(8, softplus)
        OG_ELEMENTARY(9, log1p_unit)
    }
}
