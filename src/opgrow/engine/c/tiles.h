/* Products of matrices in double precision, three rows of the left one and OG_LANES columns of the right one at a time.
 *
 * Compilers take the sum over terms for a reduction of vectors of terms, which leaves one addition after the other. Vectors
 * of columns are therefore written out; their width is that of the registers, and changes no bit.
 */
#ifndef OPGROW_TILES_H
#define OPGROW_TILES_H

#include "lanes.h"

#if defined(__AVX512F__)
#define OG_WIDTH 8
#elif defined(__AVX__)
#define OG_WIDTH 4
#else
#define OG_WIDTH 2
#endif
#define OG_WIDES (OG_LANES / OG_WIDTH)
#define OG_EACH_WIDE(i) for (int i = 0; i < OG_WIDES; i++)
/* Rows of the left matrix that share what is loaded of the right one. */
#define OG_TILE_ROWS 3

typedef double og_wide __attribute__((vector_size(OG_WIDTH * 8), aligned(8), may_alias));

OG_INLINE og_wide *og_wides(double *values)
{
    return (og_wide *)values;
}

OG_INLINE const og_wide *og_const_wides(const double *values)
{
    return (const og_wide *)values;
}

/* out [row][lane] += left [u][row] times right [u][lane], for three rows */
static inline void og_add_tile(
    const double *restrict left, const double *restrict right, int64_t n_terms, double *restrict out)
{
    og_wide a[OG_WIDES], b[OG_WIDES], c[OG_WIDES];
    OG_EACH_WIDE(i) {
        a[i] = og_wides(out)[i];
        b[i] = og_wides(out + OG_LANES)[i];
        c[i] = og_wides(out + 2 * OG_LANES)[i];
    }
    for (int64_t u = 0; u < n_terms; u++) {
        double x = left[u * OG_TILE_ROWS], y = left[u * OG_TILE_ROWS + 1], z = left[u * OG_TILE_ROWS + 2];
        OG_EACH_WIDE(i) {
            og_wide value = og_const_wides(right + u * OG_LANES)[i];
            a[i] += x * value;
            b[i] += y * value;
            c[i] += z * value;
        }
    }
    OG_EACH_WIDE(i) {
        og_wides(out)[i] = a[i];
        og_wides(out + OG_LANES)[i] = b[i];
        og_wides(out + 2 * OG_LANES)[i] = c[i];
    }
}

/* values [lane] -= coefficients [u] times rows [u][lane], where rows have a distance of `stride` */
static inline void og_subtract_rows(
    const double *restrict coefficients, const double *restrict rows, int64_t stride, int64_t n_terms,
    double *restrict values)
{
    og_wide sums[OG_WIDES];
    OG_EACH_WIDE(i) sums[i] = og_wides(values)[i];
    for (int64_t u = 0; u < n_terms; u++)
        OG_EACH_WIDE(i) sums[i] -= coefficients[u] * og_const_wides(rows + u * stride)[i];
    OG_EACH_WIDE(i) og_wides(values)[i] = sums[i];
}

/* out [group][u][width] = columns of x, of which element (u, column) lies at u * step + column * stride, in groups of
 * `width`, padded with zeros. */
OG_INLINE void og_pack_double(
    const double *x, int64_t step, int64_t stride, int64_t n_terms, int64_t n_columns, const int64_t width,
    double *restrict out)
{
    for (int64_t first = 0; first < n_columns; first += width, out += n_terms * width) {
        int64_t here = og_min(width, n_columns - first);
        for (int64_t u = 0; u < n_terms; u++) {
            const double *from = x + u * step + first * stride;
            double *to = out + u * width;
            if (here == width && stride == 1)
                memcpy(to, from, sizeof(double) * (size_t)width);
            else
                for (int64_t c = 0; c < width; c++)
                    to[c] = c < here ? from[c * stride] : 0.0;
        }
    }
}

#endif
