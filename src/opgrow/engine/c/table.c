/* See table.h. */
#include "table.h"
#include "algebra.h"
#include "blocks.h"
#include "calibration.h"
#include "eigen.h"
#include "evaluation.h"
#include "network.h"
#include "search_scores.h"
#include "search_sums.h"
#include "shards.h"
#include "solve.h"
#include "sums.h"
#include "training.h"

#define OG_ENTRY(name) {#name, (og_function)OG_NAME(og_##name)}

extern const og_entry OG_NAME(og_table)[];
const og_entry OG_NAME(og_table)[] = {
    OG_ENTRY(features_room),
    OG_ENTRY(features),
    OG_ENTRY(search_features_room),
    OG_ENTRY(search_features),
    OG_ENTRY(gradients_room),
    OG_ENTRY(gradients),
    OG_ENTRY(gram_room),
    OG_ENTRY(gram),
    OG_ENTRY(column_sums),
    OG_ENTRY(search_scores_room),
    OG_ENTRY(search_scores),
    OG_ENTRY(search_sums_room),
    OG_ENTRY(search_sums),
    OG_ENTRY(scores),
    OG_ENTRY(probabilities),
    OG_ENTRY(temperature_room),
    OG_ENTRY(temperature),
    OG_ENTRY(cholesky_room),
    OG_ENTRY(cholesky),
    OG_ENTRY(substitute),
    OG_ENTRY(multiply_room),
    OG_ENTRY(multiply),
    OG_ENTRY(whiten),
    OG_ENTRY(row_sums),
    OG_ENTRY(eigen),
    OG_ENTRY(orthonormal),
    OG_ENTRY(unit_rows),
    OG_ENTRY(predict_room),
    OG_ENTRY(predict),
    OG_ENTRY(train_room),
    OG_ENTRY(train_epoch),
    OG_ENTRY(train_update),
    OG_ENTRY(shard_begin),
    OG_ENTRY(shard_forward),
    OG_ENTRY(shard_normalise),
    OG_ENTRY(shard_head),
    OG_ENTRY(shard_slopes),
    OG_ENTRY(shard_backward),
    OG_ENTRY(keep),
    OG_ENTRY(evaluation_room),
    OG_ENTRY(feature_sums),
    OG_ENTRY(score_sums),
    OG_ENTRY(elementary),
    {0, 0},
};
