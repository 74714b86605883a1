/* Prediction of a whole network; see network.h.
 *
 * Rows are taken BATCH tiles at a time, so that weights are read once for all of them, and a few rows one by one, with
 * neurons as lanes. The arithmetic of a row is the same in both.
 */
#include "network.h"
#include "pools.h"

#define BATCH 8
/* Bytes of weights that stay in the cache while the tiles of a batch go over them. */
#define CACHED 65536
/* Beyond so many bounds a squashed input is the bound, in single precision; farther, squares overflow. */
#define FARTHEST 1e4

static int64_t rounded(int64_t n)
{
    return og_tiles(n) * OG_LANES;
}

static int64_t total_width(const og_network *network)
{
    int64_t width = 0;
    const int64_t *block = network->plan;
    for (int64_t layer = 0; layer < network->n_layers; layer++)
        for (int64_t b = 0; b < network->layers[layer]; b++, block += OG_PLAN)
            width += rounded(block[OG_NEURONS]);
    return width;
}

static int64_t widest(const og_network *network)
{
    int64_t most = network->n_inputs, blocks = 1;
    for (int64_t layer = 0; layer < network->n_layers; layer++)
        blocks += network->layers[layer];
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t *block = network->plan + b * OG_PLAN;
        most = block[OG_NEURONS] > most ? block[OG_NEURONS] : most;
        most = block[OG_INPUTS] > most ? block[OG_INPUTS] : most;
    }
    return rounded(most);
}

int64_t OG_NAME(og_predict_room)(const og_network *network)
{
    int64_t most = widest(network);
    /* inputs and features of a batch; places of maxima; reach, or a row as it comes; outputs in double precision */
    return OG_LANES * BATCH * (network->n_inputs + total_width(network)) + OG_LANES * most + most
        + OG_LANES * 2 * (rounded(network->n_outputs) + 2);
}

/* (x - mean) / scale, squashed unless there is no bound; in double precision until it is done. */
OG_INLINE float standardized(double x, double mean, double scale, double bound, int squashed)
{
    double z = (x - mean) / scale;
    if (squashed) {
        z = -FARTHEST * bound > z ? -FARTHEST * bound : z;
        z = FARTHEST * bound < z ? FARTHEST * bound : z;
        z = z / __builtin_sqrt(1.0 + (z / bound) * (z / bound));
    }
    return (float)z;
}

/* Inputs of `width` rows from `row` on, of which the first n_rows exist, as out [input][width]. Others are taken to be
 * like the last. All but x and out are constants where this is inlined. */
OG_INLINE void standardize_rows(
    const og_network *network, const void *x, int is_double, int64_t row, int64_t stride, int64_t n_rows, const int width,
    int squashed, float *restrict out)
{
    const double *mean = network->input_mean, *scale = network->input_scale;
    double bound = network->input_bound;
    int64_t from[OG_LANES];
    for (int l = 0; l < width; l++)
        from[l] = (row + og_min(l, n_rows - 1)) * stride;
    for (int64_t k = 0; k < network->n_inputs; k++) {
        double values[OG_LANES];
        for (int l = 0; l < width; l++)
            values[l] = is_double ? ((const double *)x)[from[l] + k] : (double)((const float *)x)[from[l] + k];
        for (int l = 0; l < width; l++)
            out[k * width + l] = standardized(values[l], mean[k], scale[k], bound, squashed);
    }
}

static void standardize_tile(
    const og_network *network, const void *x, int64_t is_double, int64_t row, int64_t stride, int64_t n_rows, float *out)
{
    int squashed = network->input_bound > 0.0;
    if (is_double && squashed)
        standardize_rows(network, x, 1, row, stride, n_rows, OG_LANES, 1, out);
    else if (is_double)
        standardize_rows(network, x, 1, row, stride, n_rows, OG_LANES, 0, out);
    else if (squashed)
        standardize_rows(network, x, 0, row, stride, n_rows, OG_LANES, 1, out);
    else
        standardize_rows(network, x, 0, row, stride, n_rows, OG_LANES, 0, out);
}

static void standardize_row(
    const og_network *network, const void *x, int64_t is_double, int64_t row, int64_t stride, float *out)
{
    int squashed = network->input_bound > 0.0;
    if (is_double)
        standardize_rows(network, x, 1, row, stride, 1, 1, squashed, out);
    else
        standardize_rows(network, x, 0, row, stride, 1, 1, squashed, out);
}

/* Divide values [neuron] at a distance of `step` by their Euclidean norm; zeros stay. Dividing by the largest first keeps
 * squares from overflowing or vanishing. */
static void unit_norm(float *values, int64_t n, int64_t step)
{
    float largest = 0.0f;
    double squares = 0.0;
    for (int64_t i = 0; i < n; i++)
        largest = og_abs(values[i * step]) > largest ? og_abs(values[i * step]) : largest;
    if (largest > 0.0f)
        for (int64_t i = 0; i < n; i++)
            values[i * step] /= largest;
    for (int64_t i = 0; i < n; i++)
        squares = OG_FMA_DOUBLE(values[i * step], values[i * step], squares);
    float norm = (float)__builtin_sqrt(squares);
    if (squares == 0.0)
        return;
    for (int64_t i = 0; i < n; i++)
        values[i * step] /= norm;
}

void OG_NAME(og_unit_rows)(float *values, int64_t n_rows, int64_t n)
{
    for (int64_t r = 0; r < n_rows; r++)
        unit_norm(values + r * n, n, 1);
}

/* What comes after the pool, for values [neuron][width]: bias, activation and norm. width is OG_LANES, or 1 with the number
 * of neurons rounded up. */
static void finish_block(const og_network *network, const int64_t *block, int64_t width, float *values)
{
    int64_t d = block[OG_NEURONS], padded = rounded(d), n = width == 1 ? padded : d * width;
    const float *bias = network->values + block[OG_OFFSET] + d * block[OG_INPUTS];
    const float *mean = bias + padded, *factor = mean + padded, *shift = factor + padded;
    if (width == 1) {
        for (int64_t i = 0; i < padded; i++)
            values[i] += bias[i];
    } else {
        for (int64_t i = 0; i < d; i++)
            OG_EACH_LANE(l) values[i * OG_LANES + l] += bias[i];
    }
    if (block[OG_NORM] == OG_UNIT_NORM)
        for (int64_t l = 0; l < width; l++)
            unit_norm(values + l, d, width);
    OG_NAME(og_activate)(block[OG_ACTIVATION_CODE], values, values, n);
    if (block[OG_NORM] != OG_BATCH_NORM)
        return;
    if (width == 1) {
        for (int64_t i = 0; i < padded; i++)
            values[i] = OG_FMA(values[i] - mean[i], factor[i], shift[i]);
    } else {
        for (int64_t i = 0; i < d; i++)
            OG_EACH_LANE(l)
                values[i * OG_LANES + l] = OG_FMA(values[i * OG_LANES + l] - mean[i], factor[i], shift[i]);
    }
}

static double finish_output(const og_network *network, int64_t c, double value)
{
    if (network->output_scale)
        value = value * network->output_scale[c] + network->output_mean[c];
    if (network->output_low) {
        value = network->output_low[c] > value ? network->output_low[c] : value;
        value = network->output_high[c] < value ? network->output_high[c] : value;
    }
    return value;
}

/* A feature as a linear head reads it. NaN stays NaN. */
OG_INLINE float within(float value, float low, float high)
{
    value = low > value ? low : value;
    return high < value ? high : value;
}

/* Values [neuron][lane] of a block for all tiles of a batch; stride is the distance of tiles in `from` and `to`. */
static void block_tiles(
    const og_network *network, const int64_t *block, int64_t tiles, const float *from, int64_t from_stride, float *to,
    int64_t to_stride, float *reach, int32_t *where)
{
    int64_t n = block[OG_INPUTS], d = block[OG_NEURONS], nodal = block[OG_NODAL_CODE];
    int64_t group = CACHED / (n * (int64_t)sizeof(float)) / 4 * 4;
    group = group < 4 ? 4 : group;
    const float *weight = network->values + block[OG_OFFSET];
    for (int64_t i = 0; i < d; i += group)
        for (int64_t t = 0; t < tiles; t++) {
            if (i == 0 || tiles > 1)
                OG_NAME(og_reach)(nodal, from + t * from_stride, n, reach);
            OG_NAME(og_pool_tile)(
                nodal, block[OG_POOL_CODE], from + t * from_stride, reach, weight + i * n, n, og_min(group, d - i),
                to + t * to_stride + i * OG_LANES, where);
        }
    for (int64_t t = 0; t < tiles; t++)
        finish_block(network, block, OG_LANES, to + t * to_stride);
}

static void predict_tiles(
    const og_network *network, const void *x, int64_t is_double, int64_t x_stride, int64_t start, int64_t n_rows,
    double *out, float *room)
{
    int64_t n = network->n_inputs, n_outputs = network->n_outputs, width = total_width(network), most = widest(network);
    int64_t tiles = og_tiles(n_rows), input_stride = n * OG_LANES, stride = width * OG_LANES;
    float *inputs = room, *features = inputs + BATCH * input_stride, *places = features + BATCH * stride;
    float *reach = places + OG_LANES * most, *values = reach + most;
    int32_t *where = (int32_t *)places;
    for (int64_t t = 0; t < tiles; t++)
        standardize_tile(
            network, x, is_double, start + t * OG_LANES, x_stride, n_rows - t * OG_LANES, inputs + t * input_stride);
    const float *from = inputs;
    const int64_t *block = network->plan;
    int64_t from_stride = input_stride, at = 0;
    for (int64_t layer = 0; layer < network->n_layers; layer++) {
        int64_t first = at;
        for (int64_t b = 0; b < network->layers[layer]; b++, block += OG_PLAN) {
            block_tiles(
                network, block, tiles, from + block[OG_FIRST] * OG_LANES, from_stride, features + at * OG_LANES, stride,
                reach, where);
            at += block[OG_NEURONS];
        }
        from = features + first * OG_LANES;
        from_stride = stride;
    }
    const float *seen = network->n_layers ? features : inputs;
    const int64_t *spans = network->spans;
    double sums[OG_LANES];
    if (block[OG_NODAL_CODE] >= 0) {
        for (int64_t t = 0; t < tiles; t++) {
            block_tiles(
                network, block, 1, seen + t * from_stride + spans[0] * OG_LANES, 0, values, 0, reach, where);
            for (int64_t r = t * OG_LANES; r < og_min((t + 1) * OG_LANES, n_rows); r++)
                for (int64_t c = 0; c < n_outputs; c++)
                    out[(start + r) * n_outputs + c] =
                        finish_output(network, c, (double)values[c * OG_LANES + r % OG_LANES]);
        }
        return;
    }
    const float *low = network->head_low, *high = network->head_high;
    for (int64_t t = 0; t < tiles; t++)
        for (int64_t c = 0; c < n_outputs; c++) {
            const float *weight = network->head_weight + c * network->n_features;
            OG_EACH_LANE(l) sums[l] = 0.0;
            for (int64_t s = 0, at = 0; s < network->n_spans; at += spans[2 * s + 1], s++) {
                const float *tile = seen + t * from_stride + spans[2 * s] * OG_LANES;
                if (low)
                    for (int64_t f = 0; f < spans[2 * s + 1]; f++) {
                        float least = low[at + f], most = high[at + f];
                        OG_EACH_LANE(l)
                            sums[l] = OG_FMA_DOUBLE(
                                weight[at + f], within(tile[f * OG_LANES + l], least, most), sums[l]);
                    }
                else
                    for (int64_t f = 0; f < spans[2 * s + 1]; f++)
                        OG_EACH_LANE(l) sums[l] = OG_FMA_DOUBLE(weight[at + f], tile[f * OG_LANES + l], sums[l]);
            }
            for (int64_t r = t * OG_LANES; r < og_min((t + 1) * OG_LANES, n_rows); r++)
                out[(start + r) * n_outputs + c] =
                    finish_output(network, c, sums[r % OG_LANES] + (double)network->head_bias[c]);
        }
}

static void predict_row(
    const og_network *network, const void *x, int64_t is_double, int64_t x_stride, int64_t number, double *out, float *room)
{
    int64_t n_outputs = network->n_outputs, most = widest(network), at = 0;
    float *row = room, *features = row + most, *values = features + total_width(network);
    standardize_row(network, x, is_double, number, x_stride, row);
    const float *from = row;
    const int64_t *block = network->plan;
    for (int64_t layer = 0; layer < network->n_layers; layer++) {
        int64_t first = at;
        for (int64_t b = 0; b < network->layers[layer]; b++, block += OG_PLAN) {
            OG_NAME(og_pool_row)(
                block[OG_NODAL_CODE], block[OG_POOL_CODE], from + block[OG_FIRST],
                network->values + block[OG_LANES_OFFSET], block[OG_INPUTS], block[OG_NEURONS], values);
            finish_block(network, block, 1, values);
            memcpy(features + at, values, sizeof(float) * (size_t)block[OG_NEURONS]);
            at += block[OG_NEURONS];
        }
        from = features + first;
    }
    const float *seen = network->n_layers ? features : row;
    const int64_t *spans = network->spans;
    if (block[OG_NODAL_CODE] >= 0) {
        OG_NAME(og_pool_row)(
            block[OG_NODAL_CODE], block[OG_POOL_CODE], seen + spans[0], network->values + block[OG_LANES_OFFSET],
            block[OG_INPUTS], n_outputs, values);
        finish_block(network, block, 1, values);
        for (int64_t c = 0; c < n_outputs; c++)
            out[number * n_outputs + c] = finish_output(network, c, (double)values[c]);
        return;
    }
    const float *low = network->head_low, *high = network->head_high;
    for (int64_t c = 0; c < n_outputs; c++) {
        const float *weight = network->head_weight + c * network->n_features;
        double sum = 0.0;
        for (int64_t s = 0, at = 0; s < network->n_spans; at += spans[2 * s + 1], s++)
            for (int64_t f = 0; f < spans[2 * s + 1]; f++) {
                float value = seen[spans[2 * s] + f];
                value = low ? within(value, low[at + f], high[at + f]) : value;
                sum = OG_FMA_DOUBLE(weight[at + f], value, sum);
            }
        out[number * n_outputs + c] = finish_output(network, c, sum + (double)network->head_bias[c]);
    }
}

void OG_NAME(og_predict)(
    const og_network *network, const void *x, int64_t is_double, int64_t x_stride, int64_t n_rows, double *out,
    float *room)
{
    int64_t start = 0;
    for (; n_rows - start > 3; start += BATCH * OG_LANES)
        predict_tiles(
            network, x, is_double, x_stride, start, og_min(BATCH * OG_LANES, n_rows - start), out, room);
    for (; start < n_rows; start++)
        predict_row(network, x, is_double, x_stride, start, out, room);
}
