/* Batches of small matrices in double precision: products, inverses of Cholesky factors, sums. */
#ifndef OPGROW_ALGEBRA_H
#define OPGROW_ALGEBRA_H

#include "lanes.h"

/* A batch of matrices: element (row, column) of matrix b lies at b * batch + row * row_stride + column * column_stride. */
typedef struct {
    const double *values;
    int64_t batch, row, column;
} og_matrices;

int64_t OG_NAME(og_multiply_room)(int64_t n, int64_t k); /* in doubles */

/* out [count][n][m] = left [count] (n, k) times right [count] (k, m), each element added in the order of k. */
void OG_NAME(og_multiply)(
    const og_matrices *left, const og_matrices *right, int64_t count, int64_t n, int64_t k, int64_t m, double *out,
    double *room);

/* Add ridge to the diagonals of symmetric matrices [count][n][n], and replace them by the inverses of their lower Cholesky
 * factors. Where exists [count] becomes 0, there is none, or it is not finite; then the matrix becomes the identity. The room is
 * that of og_cholesky, and n * n doubles behind it. */
void OG_NAME(og_whiten)(double *matrices, int64_t count, int64_t n, double ridge, uint8_t *exists, double *room);

/* out [count] = the sum of each row of values [count][size], or of their squares if power is 2. */
void OG_NAME(og_row_sums)(const double *values, int64_t count, int64_t size, int64_t power, double *out);

#endif
