/* Sums over rows: products of columns, moments, losses and scores. All add over calls in double precision, so rows may
 * be divided into fixed blocks whose sums are added in their order. */
#ifndef OPGROW_SUMS_H
#define OPGROW_SUMS_H

#include "lanes.h"

enum { OG_MEAN_SQUARED_ERROR, OG_CROSS_ENTROPY };
enum { OG_ACCURACY, OG_BRIER, OG_LOSS };

int64_t OG_NAME(og_gram_room)(int64_t n_left, int64_t n_right);

/* out [n_left][n_right] = sum over rows of weight left right. Element (row, column) of a matrix lies at row * row_stride
 * + column * column_stride. weight may be NULL. Products are added in single precision over 128 rows, those sums in
 * double. If left and right are the same matrix, half of the work is enough. */
void OG_NAME(og_gram)(
    const float *left, int64_t left_row, int64_t left_column, int64_t n_left, const float *right, int64_t right_row,
    int64_t right_column, int64_t n_right, const float *weight, int64_t n_rows, double *out, float *room);

/* out [column] = sum over rows of weight (x - centre)^power, power 1 or 2; weight and centre may be NULL. */
void OG_NAME(og_column_sums)(
    const float *x, int64_t x_stride, int64_t n_rows, int64_t n_columns, const float *weight, const double *centre,
    int64_t power, double *out);

/* Add to sums [4]: weighted criterion, weighted loss, weight, number of rows with outputs that are not finite. */
void OG_NAME(og_scores)(
    int64_t criterion, int64_t loss, const float *outputs, const float *target, const float *weight, int64_t n_rows,
    int64_t n_outputs, double *sums);

#endif
