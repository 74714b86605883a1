/* Eigenvectors of symmetric matrices, and orthonormal vectors. */
#ifndef OPGROW_EIGEN_H
#define OPGROW_EIGEN_H

#include "lanes.h"

/* Eigenvalues [n] of a symmetric matrix [n][n], in ascending order, and its eigenvectors, which replace the matrix row by
 * row. Returns 0, or 1 if there are none because an element is not finite. The room has n * n + 3 * n doubles. */
int64_t OG_NAME(og_eigen)(double *matrix, int64_t n, double *values, double *room);

/* Make vectors [count][size], at most `size` of them, orthonormal one after the other. One that depends on those before it
 * is replaced by another. */
void OG_NAME(og_orthonormal)(double *vectors, int64_t count, int64_t size);

#endif
