/* Statistics and scores of a candidate; see evaluation.h. */
#include "evaluation.h"
#include "batch_norm.h"
#include "blocks.h"
#include "sums.h"

/* Rows that go through the layers together. */
#define CHUNK 128
/* Codes of linear neurons: multiplication, sum, identity. */
#define LINEAR_ACTIVATION 7

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t widest_layer(const og_training *given)
{
    int64_t width = 1;
    for (int64_t i = 0; i < given->n_layers; i++)
        width = larger(width, given->widths[i]);
    return width;
}

static int64_t n_features(const og_training *given)
{
    return given->n_frozen + (given->n_layers ? given->widths[given->n_layers - 1] : 0);
}

int64_t OG_NAME(og_evaluation_room)(const og_training *given)
{
    int64_t width = widest_layer(given), room = OG_NAME(og_features_room)(n_features(given), given->n_outputs);
    for (int64_t i = 0; i < given->n_blocks; i++) {
        const int64_t *block = given->plan + i * OG_T_PLAN;
        room = larger(room, OG_NAME(og_features_room)(block[OG_T_INPUTS], block[OG_T_NEURONS]));
    }
    /* a block's features, two layers, what the head sees, outputs; factors and offsets */
    return CHUNK * (3 * width + n_features(given) + given->n_outputs) + 2 * width + OG_LANES + room;
}

typedef struct {
    float *raw, *layers[2], *features, *outputs, *factor, *rest;
} buffers;

static buffers lay_out(const og_training *given, float *room)
{
    int64_t width = widest_layer(given), factors = (2 * width + OG_LANES - 1) / OG_LANES * OG_LANES;
    buffers b;
    b.factor = room;
    b.raw = b.factor + factors;
    b.layers[0] = b.raw + CHUNK * width;
    b.layers[1] = b.layers[0] + CHUNK * width;
    b.features = b.layers[1] + CHUNK * width;
    b.outputs = b.features + CHUNK * n_features(given);
    b.rest = b.outputs + CHUNK * given->n_outputs;
    return b;
}

static og_block block_of(const int64_t *block, const float *theta)
{
    const float *weight = theta + block[OG_T_OFFSET];
    og_block found = {
        block[OG_T_NODAL], block[OG_T_POOL], block[OG_T_ACTIVATION], block[OG_T_INPUTS], block[OG_T_NEURONS],
        weight,            weight + block[OG_T_INPUTS] * block[OG_T_NEURONS]};
    return found;
}

/* out [row][stride] = the layer's normalised features; `first` is the number of its first neuron among all. */
static void layer_outputs(
    const og_training *given, const float *theta, const float *moments, int64_t layer, int64_t first, const float *x,
    int64_t x_stride, int64_t n, const buffers *b, float *out, int64_t stride)
{
    int64_t all = 0;
    for (int64_t i = 0; i < given->n_layers; i++)
        all += given->widths[i];
    for (int64_t i = 0; i < given->n_blocks; i++) {
        const int64_t *row = given->plan + i * OG_T_PLAN;
        if (row[OG_T_LAYER] != layer)
            continue;
        og_block block = block_of(row, theta);
        int64_t d = block.n_neurons, at = row[OG_T_ROW];
        const float *scale = block.bias + d, *shift = scale + d;
        const float *mean = moments + first + at, *variance = mean + all;
        float *factor = b->factor, *offset = factor + d;
        for (int64_t j = 0; j < d; j++) {
            factor[j] = scale[j] / og_deviation(variance[j]);
            offset[j] = OG_FMA(-mean[j], factor[j], shift[j]);
        }
        OG_NAME(og_features)(&block, x, x_stride, n, b->raw, b->rest);
        for (int64_t r = 0; r < n; r++)
            for (int64_t j = 0; j < d; j++)
                out[r * stride + at + j] = OG_FMA(b->raw[r * d + j], factor[j], offset[j]);
    }
}

/* The inputs of a layer for rows from `start` on, and the distance of their rows. */
static const float *layer_inputs(
    const og_training *given, const float *theta, const float *moments, int64_t layer, int64_t start, int64_t n,
    const buffers *b, int64_t *stride)
{
    const float *x = given->x + start * given->n_inputs;
    *stride = given->n_inputs;
    for (int64_t below = 0, first = 0; below < layer; first += given->widths[below++]) {
        float *out = b->layers[below % 2];
        layer_outputs(given, theta, moments, below, first, x, *stride, n, b, out, given->widths[below]);
        x = out;
        *stride = given->widths[below];
    }
    return x;
}

void OG_NAME(og_feature_sums)(
    const og_training *given, const float *theta, const float *moments, int64_t layer, double *sums, float *room)
{
    buffers b = lay_out(given, room);
    int64_t width = given->widths[layer];
    memset(sums, 0, sizeof(double) * (size_t)(2 * width));
    for (int64_t start = 0; start < given->n_rows; start += CHUNK) {
        int64_t n = og_min(CHUNK, given->n_rows - start), stride;
        const float *x = layer_inputs(given, theta, moments, layer, start, n, &b, &stride);
        for (int64_t i = 0; i < given->n_blocks; i++) {
            const int64_t *row = given->plan + i * OG_T_PLAN;
            if (row[OG_T_LAYER] != layer)
                continue;
            og_block block = block_of(row, theta);
            int64_t d = block.n_neurons;
            double *total = sums + row[OG_T_ROW], *squares = total + width;
            OG_NAME(og_features)(&block, x, stride, n, b.raw, b.rest);
            for (int64_t r = 0; r < n; r++) {
                double weight = given->row_weight ? (double)given->row_weight[start + r] : 1.0;
                for (int64_t j = 0; j < d; j++) {
                    double value = (double)b.raw[r * d + j];
                    total[j] += weight * value;
                    squares[j] += weight * (value * value);
                }
            }
        }
    }
}

void OG_NAME(og_score_sums)(
    const og_training *given, const float *theta, const float *moments, int64_t criterion, double *sums, float *room)
{
    buffers b = lay_out(given, room);
    int64_t width = n_features(given), last = given->n_layers - 1, first = 0;
    const float *weight = theta + given->n_parameters - (width + 1) * given->n_outputs;
    og_block head = {given->head_nodal, given->head_pool, given->head_activation, width, given->n_outputs,
                     weight, weight + width * given->n_outputs};
    if (given->head_nodal < 0) {
        head.nodal = head.pool = 0;
        head.activation = LINEAR_ACTIVATION;
    }
    for (int64_t i = 0; i < last; i++)
        first += given->widths[i];
    memset(sums, 0, 4 * sizeof(double));
    for (int64_t start = 0; start < given->n_rows; start += CHUNK) {
        int64_t n = og_min(CHUNK, given->n_rows - start), stride;
        const float *x = layer_inputs(given, theta, moments, last, start, n, &b, &stride);
        for (int64_t r = 0; r < n; r++)
            for (int64_t k = 0; k < given->n_frozen; k++)
                b.features[r * width + k] = given->frozen[(start + r) * given->n_frozen + k];
        layer_outputs(given, theta, moments, last, first, x, stride, n, &b, b.features + given->n_frozen, width);
        OG_NAME(og_features)(&head, b.features, width, n, b.outputs, b.rest);
        OG_NAME(og_scores)(
            criterion, given->loss, b.outputs, given->target + start * given->n_outputs,
            given->row_weight ? given->row_weight + start : NULL, n, given->n_outputs, sums);
    }
}
