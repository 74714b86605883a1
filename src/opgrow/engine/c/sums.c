/* Sums over rows; see sums.h. */
#include "sums.h"
#include "double.h"
#include "products.h"

int64_t OG_NAME(og_gram_room)(int64_t n_left, int64_t n_right)
{
    return OG_GROUP * (og_tiles(n_left) + og_tiles(n_right));
}

static void pack(
    const float *x, int64_t row_stride, int64_t column_stride, int64_t n_columns, int64_t n_rows, float *out)
{
    for (int64_t c = 0; c < n_columns; c += OG_LANES)
        og_pack_group(
            x + c * column_stride, row_stride, column_stride, n_rows, og_min(OG_LANES, n_columns - c), out + c * OG_BLOCK);
}

void OG_NAME(og_gram)(
    const float *left, int64_t left_row, int64_t left_column, int64_t n_left, const float *right, int64_t right_row,
    int64_t right_column, int64_t n_right, const float *weight, int64_t n_rows, double *out, float *room)
{
    /* With weights, products of (i, j) and (j, i) are rounded differently: both are computed. */
    int symmetric = left == right && n_left == n_right && left_row == right_row && left_column == right_column && !weight;
    float *packed_right = room, *packed_left = symmetric ? room : room + OG_GROUP * og_tiles(n_right);
    memset(out, 0, sizeof(double) * (size_t)(n_left * n_right));
    for (int64_t start = 0; start < n_rows; start += OG_BLOCK) {
        int64_t rows = og_min(OG_BLOCK, n_rows - start);
        pack(right + start * right_row, right_row, right_column, n_right, rows, packed_right);
        if (!symmetric)
            pack(left + start * left_row, left_row, left_column, n_left, rows, packed_left);
        if (weight)
            for (int64_t t = 0; t < og_tiles(n_left); t++)
                og_weigh_group(packed_left + t * OG_GROUP, weight + start, rows, packed_left + t * OG_GROUP);
        for (int64_t j = 0; j < n_right; j += OG_LANES)
            og_add_products(
                packed_left, symmetric ? og_min(n_left, j + OG_LANES) : n_left, packed_right + j * OG_BLOCK,
                og_min(OG_LANES, n_right - j), rows, out + j, n_right);
    }
    if (symmetric)
        for (int64_t i = 0; i < n_left; i++)
            for (int64_t j = 0; j < i; j++)
                out[i * n_right + j] = out[j * n_right + i];
}

void OG_NAME(og_column_sums)(
    const float *x, int64_t x_stride, int64_t n_rows, int64_t n_columns, const float *weight, const double *centre,
    int64_t power, double *restrict out)
{
    memset(out, 0, sizeof(double) * (size_t)n_columns);
    for (int64_t r = 0; r < n_rows; r++) {
        const float *row = x + r * x_stride;
        double factor = weight ? (double)weight[r] : 1.0;
        for (int64_t c = 0; c < n_columns; c++) {
            double value = (double)row[c] - (centre ? centre[c] : 0.0);
            out[c] += factor * (power == 2 ? value * value : value);
        }
    }
}

static double row_loss(int64_t loss, const float *outputs, const float *target, int64_t n, double largest)
{
    double total = 0.0, norm = 0.0;
    if (loss == OG_CROSS_ENTROPY) {
        for (int64_t c = 0; c < n; c++)
            norm += og_exp_double((double)outputs[c] - largest);
        double log_norm = og_log_double(norm);
        for (int64_t c = 0; c < n; c++)
            total += (double)target[c] * (log_norm - ((double)outputs[c] - largest));
        return total;
    }
    for (int64_t c = 0; c < n; c++) {
        double error = (double)outputs[c] - (double)target[c];
        total += error * error;
    }
    return total / (double)n;
}

/* What speaks for a class: e^output of logits; of least-squares outputs the share of the largest. */
static double evidence(int logits, double output, double largest)
{
    if (logits)
        return og_exp_double(output - largest);
    return output > 0.0 ? output / largest : 0.0;
}

/* The squared distance of a row's probabilities from the target. Least-squares outputs of which none is positive are
 * taken for logits. */
static double row_distance(int64_t loss, const float *outputs, const float *target, int64_t n, double largest)
{
    int logits = loss == OG_CROSS_ENTROPY || largest <= 0.0;
    double total = 0.0, norm = 0.0;
    for (int64_t c = 0; c < n; c++)
        norm += evidence(logits, (double)outputs[c], largest);
    for (int64_t c = 0; c < n; c++) {
        double error = evidence(logits, (double)outputs[c], largest) / norm - (double)target[c];
        total += error * error;
    }
    return total;
}

void OG_NAME(og_scores)(
    int64_t criterion, int64_t loss, const float *outputs, const float *target, const float *weight, int64_t n_rows,
    int64_t n_outputs, double *sums)
{
    for (int64_t r = 0; r < n_rows; r++) {
        const float *out = outputs + r * n_outputs, *wanted = target + r * n_outputs;
        double factor = weight ? (double)weight[r] : 1.0;
        int64_t best = 0, right = 0;
        int finite = 1;
        for (int64_t c = 0; c < n_outputs; c++) {
            finite &= og_abs(out[c]) <= 3.4028235e38f;
            best = out[c] > out[best] ? c : best;
            right = wanted[c] > wanted[right] ? c : right;
        }
        double largest = (double)out[best];
        double lost = row_loss(loss, out, wanted, n_outputs, largest), value = best == right ? 1.0 : 0.0;
        if (criterion == OG_LOSS)
            value = lost;
        else if (criterion == OG_BRIER)
            value = row_distance(loss, out, wanted, n_outputs, largest);
        sums[0] += factor * value;
        sums[1] += factor * lost;
        sums[2] += factor;
        sums[3] += finite ? 0.0 : 1.0;
    }
}
