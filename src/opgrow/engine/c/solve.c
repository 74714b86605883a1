/* Cholesky factors and triangular systems; see solve.h.
 *
 * Every element is computed from earlier ones in the order of their columns, blocks or not. Blocks only change when: the
 * part behind a panel of columns is updated at once, while the panel is in the cache.
 */
#include "solve.h"
#include "tiles.h"

#define PANEL 32

int64_t OG_NAME(og_cholesky_room)(int64_t n)
{
    return PANEL * (n + OG_LANES);
}

/* row[0 .. width) -= the sum over k of left[k] right[k][.], in the order of k; rights have a distance of `stride`. */
static void subtract_products(
    double *restrict row, const double *restrict left, const double *restrict right, int64_t stride, int64_t n_terms,
    int64_t width)
{
    int64_t j = 0;
    for (; j + OG_LANES <= width; j += OG_LANES)
        og_subtract_rows(left, right + j, stride, n_terms, row + j);
    for (; j < width; j++) {
        double value = row[j];
        for (int64_t k = 0; k < n_terms; k++)
            value -= left[k] * right[k * stride + j];
        row[j] = value;
    }
}

int64_t OG_NAME(og_cholesky)(double *matrix, int64_t n, double *room)
{
    for (int64_t first = 0; first < n; first += PANEL) {
        int64_t width = og_min(PANEL, n - first), height = n - first;
        /* room [k][i] = column k of the panel, from the diagonal block down: then everything runs along rows. */
        for (int64_t i = 0; i < height; i++)
            for (int64_t k = 0; k < og_min(width, i + 1); k++)
                room[k * height + i] = matrix[(first + i) * n + first + k];
        for (int64_t j = 0; j < width; j++) {
            double *column = room + j * height, pivot = column[j];
            if (!(pivot > 0.0 && pivot <= 1.79e308))
                return first + j + 1;
            pivot = __builtin_sqrt(pivot);
            for (int64_t i = j + 1; i < height; i++)
                column[i] /= pivot;
            column[j] = pivot;
            for (int64_t k = j + 1; k < width; k++) {
                double *restrict to = room + k * height;
                for (int64_t i = k; i < height; i++)
                    to[i] -= column[k] * column[i];
            }
        }
        for (int64_t i = 0; i < height; i++)
            for (int64_t k = 0; k < og_min(width, i + 1); k++)
                matrix[(first + i) * n + first + k] = room[k * height + i];
        for (int64_t i = width; i < height; i++)
            subtract_products(
                matrix + (first + i) * n + first + width, matrix + (first + i) * n + first, room + width, height, width,
                i + 1 - width);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            matrix[i * n + j] = 0.0;
    return 0;
}

void OG_NAME(og_substitute)(const double *factor, int64_t n, double *right, int64_t m, int64_t transposed)
{
    for (int64_t first = 0; first < m; first += OG_LANES) {
        int64_t width = og_min(OG_LANES, m - first);
        for (int64_t step = 0; step < n; step++) {
            int64_t i = transposed ? n - 1 - step : step;
            double values[OG_LANES] = {0};
            memcpy(values, right + i * m + first, sizeof(double) * (size_t)width);
            for (int64_t before = 0; before < step; before++) {
                int64_t k = transposed ? n - 1 - before : before;
                double coefficient = transposed ? factor[k * n + i] : factor[i * n + k];
                const double *from = right + k * m + first;
                if (width == OG_LANES)
                    OG_EACH_LANE(l) values[l] -= coefficient * from[l];
                else
                    for (int64_t l = 0; l < width; l++)
                        values[l] -= coefficient * from[l];
            }
            double pivot = factor[i * n + i];
            for (int64_t l = 0; l < width; l++)
                right[i * m + first + l] = values[l] / pivot;
        }
    }
}
