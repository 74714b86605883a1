/* Cholesky factors and triangular systems in double precision; matrices are contiguous, row by row. */
#ifndef OPGROW_SOLVE_H
#define OPGROW_SOLVE_H

#include "lanes.h"

int64_t OG_NAME(og_cholesky_room)(int64_t n); /* in doubles */

/* Replace the lower triangle of a symmetric matrix [n][n] by its Cholesky factor, and the rest by zeros. Returns 0, or the
 * number of the first pivot that is not positive and finite (then the matrix is of no use). */
int64_t OG_NAME(og_cholesky)(double *matrix, int64_t n, double *room);

/* right [n][m] becomes factor^-1 right, or, if transposed, factor^-T right, for a lower triangular factor [n][n]. */
void OG_NAME(og_substitute)(const double *factor, int64_t n, double *right, int64_t m, int64_t transposed);

#endif
