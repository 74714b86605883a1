/* See calibration.h. */
#include "calibration.h"
#include "double.h"

void OG_NAME(og_probabilities)(
    int64_t logits, const double *outputs, int64_t n_rows, int64_t n_classes, double *restrict out)
{
    for (int64_t r = 0; r < n_rows; r++, outputs += n_classes, out += n_classes) {
        double largest = n_classes ? outputs[0] : 0.0, total = 0.0;
        for (int64_t c = 1; c < n_classes; c++)
            largest = outputs[c] > largest || outputs[c] != outputs[c] ? outputs[c] : largest;
        int soft = logits || largest <= 0.0;
        for (int64_t c = 0; c < n_classes; c++) {
            /* Divided by the largest first: the sum of outputs far from the data might overflow. */
            double share = outputs[c] < 0.0 ? 0.0 : outputs[c] / largest;
            out[c] = soft ? og_exp_double(outputs[c] - largest) : share;
            total += out[c];
        }
        for (int64_t c = 0; c < n_classes; c++)
            out[c] /= total;
    }
}

/* Rows as lanes: [tile][class][lane] of outputs and then of targets, and a weight for each row. */
int64_t OG_NAME(og_temperature_room)(int64_t n_rows, int64_t n_classes)
{
    return og_tiles(n_rows) * OG_LANES * (2 * n_classes + 1);
}

static void pack(const float *x, int64_t n_rows, int64_t n_classes, float *restrict out)
{
    for (int64_t r = 0; r < og_tiles(n_rows) * OG_LANES; r++)
        for (int64_t c = 0; c < n_classes; c++)
            out[(r / OG_LANES * n_classes + c) * OG_LANES + r % OG_LANES] = r < n_rows ? x[r * n_classes + c] : 0.0f;
}

/* The weighted cross-entropy of outputs times a factor. */
static double cost(
    double log_factor, const float *outputs, const float *target, const float *weight, int64_t tiles, int64_t n_classes)
{
    float factor = (float)og_exp_double(log_factor);
    double sums[OG_LANES] = {0}, total = 0.0;
    for (int64_t t = 0; t < tiles; t++, outputs += n_classes * OG_LANES, target += n_classes * OG_LANES) {
        float largest[OG_LANES], norm[OG_LANES] = {0}, speaks[OG_LANES] = {0}, all[OG_LANES] = {0};
        OG_EACH_LANE(l) largest[l] = factor * outputs[l];
        for (int64_t c = 1; c < n_classes; c++)
            OG_EACH_LANE(l) {
                float value = factor * outputs[c * OG_LANES + l];
                largest[l] = value > largest[l] ? value : largest[l];
            }
        for (int64_t c = 0; c < n_classes; c++)
            OG_EACH_LANE(l) {
                float shifted = factor * outputs[c * OG_LANES + l] - largest[l];
                norm[l] += og_exp(shifted);
                speaks[l] += target[c * OG_LANES + l] * shifted;
                all[l] += target[c * OG_LANES + l];
            }
        OG_EACH_LANE(l) {
            float lost = all[l] * og_log(norm[l]) - speaks[l];
            sums[l] += (double)weight[t * OG_LANES + l] * (double)lost;
        }
    }
    OG_EACH_LANE(l) total += sums[l];
    return total;
}

double OG_NAME(og_temperature)(
    const float *outputs, const float *target, const float *weight, int64_t n_rows, int64_t n_classes, float *room)
{
    int64_t tiles = og_tiles(n_rows), size = tiles * OG_LANES * n_classes;
    float *values = room, *wanted = room + size, *weights = room + 2 * size;
    pack(outputs, n_rows, n_classes, values);
    pack(target, n_rows, n_classes, wanted);
    pack(weight, n_rows, 1, weights);
    /* The cost is convex in the factor: golden-section search, with one new cost in each step. */
    const double ratio = 0.6180339887498949;
    double low = -4.0, high = 4.0, left = high - ratio * (high - low), right = low + ratio * (high - low);
    double at_left = cost(left, values, wanted, weights, tiles, n_classes);
    double at_right = cost(right, values, wanted, weights, tiles, n_classes);
    for (int step = 0; step < 22; step++) {
        if (at_left < at_right) {
            high = right;
            right = left;
            at_right = at_left;
            left = high - ratio * (high - low);
            at_left = cost(left, values, wanted, weights, tiles, n_classes);
        } else {
            low = left;
            left = right;
            at_left = at_right;
            right = low + ratio * (high - low);
            at_right = cost(right, values, wanted, weights, tiles, n_classes);
        }
    }
    return og_exp_double((low + high) / 2.0);
}
