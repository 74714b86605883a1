/* The steps of back-propagation for the rows of a batch that one process holds; others may hold the rest of it.
 *
 * The rows are divided into cells, and each cell is computed by itself, so that its sums do not depend on which other
 * cells are here. Who calls these functions adds the sums of all cells, here and elsewhere, between the steps:
 *
 *     begin; for each layer forward, normalise; head; for each layer, the last one first, slopes, backward
 */
#ifndef OPGROW_SHARDS_H
#define OPGROW_SHARDS_H

#include "training.h"

typedef struct {
    const og_training *training; /* largest_batch: rows of the largest cell */
    const float *theta;
    const int64_t *rows, *bounds; /* cell c has the rows rows[bounds[c]] .. rows[bounds[c + 1] - 1] */
    const int64_t *numbers;       /* of all rows: what their random numbers follow from */
    int64_t n_cells;
    float count; /* rows of the batch, wherever they are */
    uint64_t seed;
    float *by_theta; /* [cell][parameter] */
    float *room;     /* og_train_room floats for each cell */
} og_shard;

/* Copy the rows, and set by_theta to 0. */
void OG_NAME(og_shard_begin)(const og_shard *shard);

/* Raw features of a layer; sums [cell][2][feature] are those of the features and of their squares. */
void OG_NAME(og_shard_forward)(const og_shard *shard, int64_t layer, double *sums);

/* Features of a layer, normalised with the statistics [2][feature] of the whole batch: mean and variance. */
void OG_NAME(og_shard_normalise)(const og_shard *shard, int64_t layer, const float *moments);

/* The losses of the cells, and gradients by the head and by the features of the last layer. */
void OG_NAME(og_shard_head)(const og_shard *shard, double *losses);

/* Sums [cell][2][feature] of the gradients by a layer's features, and of their products with the normalised features. */
void OG_NAME(og_shard_slopes)(const og_shard *shard, int64_t layer, double *sums);

/* Gradients by a layer's parameters and by the layer below, with the sums [2][feature] of the whole batch. */
void OG_NAME(og_shard_backward)(const og_shard *shard, int64_t layer, const float *sums);

/* out [row][feature] = 0 with the probability `drop`, else 1 / (1 - drop): dropout as the steps draw it for rows with
 * these numbers. side 0: inputs, 1: frozen features, 2: features of layers, of which `first` is the first. */
void OG_NAME(og_keep)(
    uint64_t seed, int64_t side, int64_t first, float drop, const int64_t *numbers, int64_t n_rows, int64_t n_features,
    float *out);

#endif
