/* Cholesky factors and triangular systems; see solve.h.
 *
 * Every element is computed from earlier ones in the order of their columns, blocks or not. Blocks only change when: the
 * part behind a panel of columns is updated at once, while the panel is in the cache.
 */
#include "solve.h"

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
    for (; j + OG_LANES <= width; j += OG_LANES) {
        double values[OG_LANES];
        memcpy(values, row + j, sizeof values);
        for (int64_t k = 0; k < n_terms; k++)
            OG_EACH_LANE(l) values[l] -= left[k] * right[k * stride + j + l];
        memcpy(row + j, values, sizeof values);
    }
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
        int64_t last = og_min(first + PANEL, n);
        for (int64_t j = first; j < last; j++) {
            double *pivot_row = matrix + j * n;
            double pivot = pivot_row[j];
            for (int64_t k = first; k < j; k++)
                pivot -= pivot_row[k] * pivot_row[k];
            if (!(pivot > 0.0 && pivot <= 1.79e308))
                return j + 1;
            pivot = __builtin_sqrt(pivot);
            pivot_row[j] = pivot;
            for (int64_t i = j + 1; i < n; i++) {
                double value = matrix[i * n + j];
                for (int64_t k = first; k < j; k++)
                    value -= matrix[i * n + k] * pivot_row[k];
                matrix[i * n + j] = value / pivot;
            }
        }
        /* room [k][i] = the panel below the block, turned: then the update runs along rows. */
        int64_t below = n - last, width = last - first;
        for (int64_t i = 0; i < below; i++)
            for (int64_t k = 0; k < width; k++)
                room[k * below + i] = matrix[(last + i) * n + first + k];
        for (int64_t i = 0; i < below; i++)
            subtract_products(
                matrix + (last + i) * n + last, matrix + (last + i) * n + first, room, below, width, i + 1);
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

void OG_NAME(og_product_double)(
    const double *restrict left, const double *restrict right, int64_t n, int64_t k, int64_t m, double *restrict out)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = 0;
        for (; j + OG_LANES <= m; j += OG_LANES) {
            double sums[OG_LANES] = {0};
            for (int64_t u = 0; u < k; u++)
                OG_EACH_LANE(l) sums[l] += left[i * k + u] * right[u * m + j + l];
            memcpy(out + i * m + j, sums, sizeof sums);
        }
        for (; j < m; j++) {
            double sum = 0.0;
            for (int64_t u = 0; u < k; u++)
                sum += left[i * k + u] * right[u * m + j];
            out[i * m + j] = sum;
        }
    }
}
