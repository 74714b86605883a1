/* What all sources of the engine share: lanes, names, and arithmetic that gives the same bits everywhere.
 *
 * Rows are taken OG_LANES at a time, as tiles: value k of row r lies at [k * OG_LANES + r]. Loops over lanes have
 * a constant count and no dependence, and compilers vectorise them for whatever registers there are. Nothing is
 * ever added across lanes but by og_lane_sum, so the width of the registers changes no bit.
 */
#ifndef OPGROW_LANES_H
#define OPGROW_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OG_LANES 16
/* Terms that are added to each other before they are added to the total: rounding errors of long sums. */
#define OG_TERMS 64

#define OG_JOIN_(a, b) a##b
#define OG_JOIN(a, b) OG_JOIN_(a, b)
#ifndef OG_ISA
#define OG_ISA generic
#endif
/* The same function once for each instruction set. */
#define OG_NAME(name) OG_JOIN(OG_JOIN(name, _), OG_ISA)

#define OG_EACH_LANE(l) for (int l = 0; l < OG_LANES; l++)
/* The same where a loop around it goes over inputs. gcc would take inputs for lanes in some of those, and is told not to;
 * clang needs no such advice, and warns where there is nothing to vectorise. */
#if defined(__GNUC__) && !defined(__clang__)
#define OG_SIMD_LANES(l) _Pragma("omp simd") OG_EACH_LANE(l)
#else
#define OG_SIMD_LANES(l) OG_EACH_LANE(l)
#endif

#if !defined(__FMA__) && !defined(__aarch64__)
/* a * b + c rounded once, for processors without that instruction. The product is exact in double precision; the
 * sum is rounded to odd, after which rounding to single precision is right. A call, because nothing is vectorised
 * around it, and thousands of copies would be most of the library. */
static __attribute__((noinline, unused)) float og_fma(float a, float b, float c)
{
    double p = (double)a * (double)b, q = (double)c, s = p + q;
    double t = s - p;
    double error = (p - (s - t)) + (q - t);
    int64_t bits;
    memcpy(&bits, &s, sizeof bits);
    int64_t towards = ((error > 0.0) == (s > 0.0)) ? 1 : -1;
    int64_t inexact = (error > 0.0) | (error < 0.0);
    bits += (inexact & ~bits & 1) * towards;
    memcpy(&s, &bits, sizeof s);
    return (float)s;
}
/* The product of two single-precision values is exact in double precision: no fused instruction is needed. */
#define OG_FMA_DOUBLE(a, b, c) ((double)(a) * (double)(b) + (c))
#else
static inline __attribute__((always_inline)) float og_fma(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
#define OG_FMA_DOUBLE(a, b, c) __builtin_fma((double)(a), (double)(b), (c))
#endif
#define OG_FMA(a, b, c) og_fma((a), (b), (c))

#include "operators.h"

static inline int64_t og_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t og_tiles(int64_t n_rows)
{
    return (n_rows + OG_LANES - 1) / OG_LANES;
}

/* out [row][column] = in [column][row] for OG_LANES of each, of which the first index has the given stride. Of fixed size,
 * which compilers turn into shuffles. */
OG_INLINE void og_transpose_lanes(
    const float *restrict in, int64_t in_stride, float *restrict out, int64_t out_stride)
{
    for (int r = 0; r < OG_LANES; r++)
        OG_EACH_LANE(c) out[r * out_stride + c] = in[c * in_stride + r];
}

/* The same for matrices of any size. */
static inline void og_transpose_matrix(
    const float *restrict in, int64_t in_stride, int64_t n_rows, int64_t n_columns, float *restrict out,
    int64_t out_stride)
{
    for (int64_t c = 0; c < n_columns; c += OG_LANES)
        for (int64_t r = 0; r < n_rows; r += OG_LANES) {
            const float *from = in + c * in_stride + r;
            float *to = out + r * out_stride + c;
            int64_t rows = og_min(OG_LANES, n_rows - r), columns = og_min(OG_LANES, n_columns - c);
            if (rows == OG_LANES && columns == OG_LANES)
                og_transpose_lanes(from, in_stride, to, out_stride);
            else
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < columns; j++)
                        to[i * out_stride + j] = from[j * in_stride + i];
        }
}

/* The sum over lanes, as a tree. */
OG_INLINE float og_lane_sum(const float *v)
{
    float a[8], b[4];
    for (int l = 0; l < 8; l++)
        a[l] = v[l] + v[l + 8];
    for (int l = 0; l < 4; l++)
        b[l] = a[l] + a[l + 4];
    return (b[0] + b[2]) + (b[1] + b[3]);
}

#endif
