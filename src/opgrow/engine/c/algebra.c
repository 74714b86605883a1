/* Products of matrices and inverses of Cholesky factors; see algebra.h. */
#include "algebra.h"
#include "solve.h"
#include "tiles.h"

/* Terms of a sum that are packed at once. */
#define DEPTH 256

static int64_t rounded(int64_t n)
{
    return (n + OG_TILE_ROWS - 1) / OG_TILE_ROWS * OG_TILE_ROWS;
}

int64_t OG_NAME(og_multiply_room)(int64_t n, int64_t k)
{
    return og_min(k, DEPTH) * (rounded(n) + OG_LANES);
}

/* As og_add_tile, for an out with rows of `stride`, of which only some rows and columns are there. */
static void add_products(
    const double *left, const double *right, int64_t depth, double *restrict out, int64_t stride, int64_t n_rows,
    int64_t n_columns)
{
    double tile[OG_TILE_ROWS * OG_LANES] = {0};
    for (int64_t i = 0; i < n_rows; i++)
        memcpy(tile + i * OG_LANES, out + i * stride, sizeof(double) * (size_t)n_columns);
    og_add_tile(left, right, depth, tile);
    for (int64_t i = 0; i < n_rows; i++)
        memcpy(out + i * stride, tile + i * OG_LANES, sizeof(double) * (size_t)n_columns);
}

void OG_NAME(og_multiply)(
    const og_matrices *left, const og_matrices *right, int64_t count, int64_t n, int64_t k, int64_t m, double *out,
    double *room)
{
    memset(out, 0, sizeof(double) * (size_t)(count * n * m));
    for (int64_t number = 0; number < count; number++, out += n * m)
        for (int64_t start = 0; start < k; start += DEPTH) {
            int64_t depth = og_min(DEPTH, k - start);
            double *rows = room, *columns = room + depth * rounded(n);
            og_pack_double(
                left->values + number * left->batch + start * left->column, left->column, left->row, depth, n,
                OG_TILE_ROWS, rows);
            for (int64_t j = 0; j < m; j += OG_LANES) {
                const double *from = right->values + number * right->batch + start * right->row + j * right->column;
                int64_t width = og_min(OG_LANES, m - j);
                og_pack_double(from, right->row, right->column, depth, width, OG_LANES, columns);
                for (int64_t i = 0; i < n; i += OG_TILE_ROWS)
                    add_products(rows + i * depth, columns, depth, out + i * m + j, m, og_min(OG_TILE_ROWS, n - i), width);
            }
        }
}

/* out = the inverse of a lower triangular factor [n][n]; rows of 16 columns at a time, from the diagonal down. */
static void invert(const double *restrict factor, int64_t n, double *restrict out)
{
    memset(out, 0, sizeof(double) * (size_t)(n * n));
    for (int64_t first = 0; first < n; first += OG_LANES) {
        int64_t width = og_min(OG_LANES, n - first);
        for (int64_t i = first; i < n; i++) {
            double values[OG_LANES] = {0};
            if (i < first + width)
                values[i - first] = 1.0;
            if (width == OG_LANES)
                og_subtract_rows(factor + i * n + first, out + first * n + first, n, i - first, values);
            else
                for (int64_t k = first; k < i; k++)
                    for (int64_t l = 0; l < width; l++)
                        values[l] -= factor[i * n + k] * out[k * n + first + l];
            for (int64_t l = 0; l < width; l++)
                out[i * n + first + l] = values[l] / factor[i * n + i];
        }
    }
}

void OG_NAME(og_whiten)(double *matrices, int64_t count, int64_t n, double ridge, uint8_t *exists, double *room)
{
    double *inverse = room + OG_NAME(og_cholesky_room)(n);
    for (int64_t number = 0; number < count; number++, matrices += n * n) {
        for (int64_t i = 0; i < n; i++)
            matrices[i * (n + 1)] += ridge;
        int good = !OG_NAME(og_cholesky)(matrices, n, room);
        if (good) {
            invert(matrices, n, inverse);
            for (int64_t i = 0; i < n * n; i++)
                good &= inverse[i] - inverse[i] == 0.0;
        }
        exists[number] = (uint8_t)good;
        if (good)
            memcpy(matrices, inverse, sizeof(double) * (size_t)(n * n));
        else
            for (int64_t i = 0; i < n * n; i++)
                matrices[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
    }
}

void OG_NAME(og_row_sums)(const double *values, int64_t count, int64_t size, int64_t power, double *restrict out)
{
    for (int64_t number = 0; number < count; number++, values += size) {
        double sums[OG_LANES] = {0}, total = 0.0;
        int64_t i = 0;
        for (; i + OG_LANES <= size; i += OG_LANES)
            if (power == 2)
                OG_EACH_LANE(l) sums[l] += values[i + l] * values[i + l];
            else
                OG_EACH_LANE(l) sums[l] += values[i + l];
        for (int64_t l = 0; i + l < size; l++)
            sums[l] += power == 2 ? values[i + l] * values[i + l] : values[i + l];
        OG_EACH_LANE(l) total += sums[l];
        out[number] = total;
    }
}
