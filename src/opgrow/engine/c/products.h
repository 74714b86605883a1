/* Products of columns, summed over at most OG_BLOCK rows in single precision: what all sums of products are made of.
 *
 * Both factors are packed in groups of OG_LANES columns, as [group][row of OG_BLOCK][column]. One factor's columns are
 * taken a lane each, the other's OG_HEIGHT at a time; every product is added from row to row, so neither the height nor
 * the width of the registers changes a bit.
 */
#ifndef OPGROW_PRODUCTS_H
#define OPGROW_PRODUCTS_H

#include "lanes.h"

/* Rows whose products are added in single precision. */
#define OG_BLOCK 128
/* Floats of a packed group of columns. */
#define OG_GROUP (OG_BLOCK * OG_LANES)

/* to [row][column] = x for at most OG_LANES columns and OG_BLOCK rows; missing columns are zeros. */
static inline void og_pack_group(
    const float *restrict x, int64_t row_stride, int64_t column_stride, int64_t n_rows, int64_t n_columns,
    float *restrict to)
{
    if (n_columns < OG_LANES)
        memset(to, 0, sizeof(float) * (size_t)(n_rows * OG_LANES));
    if (column_stride == 1 && n_columns == OG_LANES) {
        for (int64_t r = 0; r < n_rows; r++)
            memcpy(to + r * OG_LANES, x + r * row_stride, sizeof(float) * OG_LANES);
        return;
    }
    int64_t r = 0;
    if (row_stride == 1)
        for (; r + OG_LANES <= n_rows; r += OG_LANES)
            for (int64_t c = 0; c < n_columns; c++)
                OG_EACH_LANE(l) to[(r + l) * OG_LANES + c] = x[c * column_stride + r + l];
    for (; r < n_rows; r++)
        for (int64_t c = 0; c < n_columns; c++)
            to[r * OG_LANES + c] = x[r * row_stride + c * column_stride];
}

/* out [row][column] = packed times the weight of the row; out may be packed itself. */
static inline void og_weigh_group(const float *packed, const float *weight, int64_t n_rows, float *out)
{
    for (int64_t r = 0; r < n_rows; r++)
        OG_EACH_LANE(l) out[r * OG_LANES + l] = packed[r * OG_LANES + l] * weight[r];
}

OG_INLINE void og_add_lanes(const float *sums, double *out, int64_t n)
{
    if (n == OG_LANES)
        OG_EACH_LANE(l) out[l] += (double)sums[l];
    else
        for (int64_t l = 0; l < n; l++)
            out[l] += (double)sums[l];
}

/* a to d [lane] += their factors times the value of the lane. Four arrays by name, and not one of four rows: arrays whose
 * address is taken are not held in registers. */
#define OG_ADD_FOUR(l, value, a, fa, b, fb, c, fc, d, fd) \
    do { \
        (a)[l] = OG_FMA(fa, value, (a)[l]); \
        (b)[l] = OG_FMA(fb, value, (b)[l]); \
        (c)[l] = OG_FMA(fc, value, (c)[l]); \
        (d)[l] = OG_FMA(fd, value, (d)[l]); \
    } while (0)
/* A copy of four such arrays in rows first ... first + 3 of sums, which may be indexed. */
#define OG_COPY_FOUR(sums, first, a, b, c, d) \
    OG_EACH_LANE(l) { \
        (sums)[(first) + 0][l] = (a)[l]; \
        (sums)[(first) + 1][l] = (b)[l]; \
        (sums)[(first) + 2][l] = (c)[l]; \
        (sums)[(first) + 3][l] = (d)[l]; \
    }

/* out [u][lane] += products of columns u < 4 of left and of all lanes of right; n_left and n_right of them count. */
static inline void og_products_4(
    const float *restrict left, const float *restrict right, int64_t n_rows, int64_t n_left, int64_t n_right,
    double *restrict out, int64_t stride)
{
    float a[OG_LANES] = {0}, b[OG_LANES] = {0}, c[OG_LANES] = {0}, d[OG_LANES] = {0};
    for (int64_t r = 0; r < n_rows; r++) {
        const float *factor = left + r * OG_LANES;
        float fa = factor[0], fb = factor[1], fc = factor[2], fd = factor[3];
        OG_EACH_LANE(l) {
            float value = right[r * OG_LANES + l];
            OG_ADD_FOUR(l, value, a, fa, b, fb, c, fc, d, fd);
        }
    }
    float sums[4][OG_LANES];
    OG_COPY_FOUR(sums, 0, a, b, c, d)
    for (int64_t u = 0; u < n_left; u++)
        og_add_lanes(sums[u], out + u * stride, n_right);
}

#if defined(__AVX512F__)
/* Eight columns at once, where there are registers for them: a core that starts two additions in a cycle and
 * finishes them after four needs eight sums in flight. */
static inline void og_products_8(
    const float *restrict left, const float *restrict right, int64_t n_rows, int64_t n_right, double *restrict out,
    int64_t stride)
{
    float a[OG_LANES] = {0}, b[OG_LANES] = {0}, c[OG_LANES] = {0}, d[OG_LANES] = {0};
    float e[OG_LANES] = {0}, f[OG_LANES] = {0}, g[OG_LANES] = {0}, h[OG_LANES] = {0};
    for (int64_t r = 0; r < n_rows; r++) {
        const float *factor = left + r * OG_LANES;
        float fa = factor[0], fb = factor[1], fc = factor[2], fd = factor[3];
        float fe = factor[4], ff = factor[5], fg = factor[6], fh = factor[7];
        OG_EACH_LANE(l) {
            float value = right[r * OG_LANES + l];
            OG_ADD_FOUR(l, value, a, fa, b, fb, c, fc, d, fd);
            OG_ADD_FOUR(l, value, e, fe, f, ff, g, fg, h, fh);
        }
    }
    float sums[8][OG_LANES];
    OG_COPY_FOUR(sums, 0, a, b, c, d)
    OG_COPY_FOUR(sums, 4, e, f, g, h)
    for (int u = 0; u < 8; u++)
        og_add_lanes(sums[u], out + u * stride, n_right);
}
#endif

/* out [i][lane] += products of columns i < n_left of left, in packed groups, and of n_right columns of one group. */
static inline void og_add_products(
    const float *left, int64_t n_left, const float *right, int64_t n_right, int64_t n_rows, double *out,
    int64_t stride)
{
    int64_t i = 0;
#define OG_COLUMN(i) (left + (i) / OG_LANES * OG_GROUP + (i) % OG_LANES)
#if defined(__AVX512F__)
    for (; i + 8 <= n_left; i += 8)
        og_products_8(OG_COLUMN(i), right, n_rows, n_right, out + i * stride, stride);
#endif
    for (; i < n_left; i += 4)
        og_products_4(OG_COLUMN(i), right, n_rows, og_min(4, n_left - i), n_right, out + i * stride, stride);
#undef OG_COLUMN
}

#endif
