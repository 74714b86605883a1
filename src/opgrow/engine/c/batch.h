/* One batch of training: where everything lies, and the steps that do not depend on how its statistics are taken.
 *
 * Matrices of a batch are tiles: [tile][feature][lane]. Lanes behind the last row hold zeros wherever sums over rows are
 * taken.
 */
#ifndef OPGROW_BATCH_H
#define OPGROW_BATCH_H

#include "batch_norm.h"
#include "gradients.h"
#include "random.h"
#include "sums.h"
#include "training.h"

/* Which random numbers are whose. */
enum { INPUTS, FROZEN, HIDDEN };

/* Where everything of one batch lies, and how large it is. */
typedef struct {
    const og_training *given;
    int64_t n_rows, tiles, width, n_features, head_at;
    float *inputs, *pre, *normal, *out, *grad, *keep, *features, *by_features, *targets, *outputs, *head_pre;
    float *mean, *variance, *by_theta, *weight, *reach, *scratch, *weights_of_rows;
    int32_t *where, *head_where;
    uint32_t *numbers;
} batch;

static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Lay out the room; with room NULL, only count. Returns the number of floats. */
static inline int64_t lay_out(batch *b, const og_training *given, float *room)
{
    int64_t tiles = og_tiles(given->largest_batch), size = tiles * OG_LANES, n_features = given->n_frozen;
    int64_t inputs = given->n_inputs, neurons = given->n_outputs, weights = 0, backward = 0;
    b->given = given;
    b->width = 0;
    for (int64_t layer = 0; layer < given->n_layers; layer++)
        b->width += given->widths[layer];
    n_features += given->n_layers ? given->widths[given->n_layers - 1] : 0;
    b->n_features = n_features;
    b->head_at = given->n_parameters - n_features * given->n_outputs - given->n_outputs;
    for (int64_t i = 0; i <= given->n_blocks; i++) {
        const int64_t *block = given->plan + i * OG_T_PLAN;
        int64_t n = i < given->n_blocks ? block[OG_T_INPUTS] : n_features;
        int64_t d = i < given->n_blocks ? block[OG_T_NEURONS] : given->n_outputs;
        inputs = most(inputs, n);
        neurons = most(neurons, d);
        weights = most(weights, n * d);
        backward = most(backward, og_pool_backward_room(tiles, n, d));
    }
    int64_t at = 0;
#define OG_PLACE(name, count) \
    do { \
        b->name = room ? (void *)(room + at) : NULL; \
        at += og_tiles(count) * OG_LANES; \
    } while (0)
    OG_PLACE(inputs, size * given->n_inputs);
    OG_PLACE(pre, size * b->width);
    OG_PLACE(normal, size * b->width);
    OG_PLACE(out, size * b->width);
    OG_PLACE(grad, size * b->width);
    OG_PLACE(keep, given->dropout > 0.0f ? size * b->width : 0);
    OG_PLACE(where, size * b->width);
    OG_PLACE(features, size * n_features);
    OG_PLACE(by_features, size * n_features);
    OG_PLACE(targets, size * given->n_outputs);
    OG_PLACE(outputs, size * given->n_outputs);
    OG_PLACE(head_pre, size * given->n_outputs);
    OG_PLACE(head_where, size * given->n_outputs);
    OG_PLACE(mean, b->width);
    OG_PLACE(variance, b->width);
    OG_PLACE(by_theta, given->n_parameters);
    OG_PLACE(weight, weights);
    OG_PLACE(reach, tiles * inputs);
    OG_PLACE(scratch, most(backward, size * neurons));
    OG_PLACE(weights_of_rows, size);
    OG_PLACE(numbers, size);
#undef OG_PLACE
    return at;
}

/* Set the lanes behind the last row to zero, for features [tile][.] with the given distance of tiles. */
static inline void blank(const batch *b, float *values, int64_t n_features, int64_t stride)
{
    int64_t rows = b->n_rows - (b->tiles - 1) * OG_LANES;
    if (rows == OG_LANES)
        return;
    float *last = values + (b->tiles - 1) * stride;
    for (int64_t i = 0; i < n_features; i++)
        for (int64_t l = rows; l < OG_LANES; l++)
            last[i * OG_LANES + l] = 0.0f;
}

static inline void drop_out(
    const batch *b, float *values, int64_t n_features, int64_t stride, float drop, uint64_t seed, uint64_t first, float *kept)
{
    for (int64_t i = 0; i < n_features; i++) {
        uint64_t key = og_draw(seed, first + (uint64_t)i);
        for (int64_t t = 0; t < b->tiles; t++) {
            float keep[OG_LANES], *at = values + t * stride + i * OG_LANES;
            og_keep(key, b->numbers + t * OG_LANES, drop, keep);
            OG_EACH_LANE(l) at[l] *= keep[l];
            if (kept)
                memcpy(kept + t * stride + i * OG_LANES, keep, sizeof keep);
        }
    }
}

/* out [tile][n_features][lane], with a distance of `stride` between tiles, = the rows of source, padded with zeros. */
static inline void gather(const batch *b, const float *source, int64_t n_features, const int64_t *rows, float *out, int64_t stride)
{
    int64_t whole = n_features / OG_LANES * OG_LANES;
    for (int64_t t = 0; t < b->tiles; t++) {
        float *tile = out + t * stride;
        int64_t first = t * OG_LANES, count = og_min(OG_LANES, b->n_rows - first);
        for (int64_t k = 0; k < whole; k += OG_LANES) {
            float group[OG_LANES * OG_LANES] = {0};
            for (int64_t r = 0; r < count; r++)
                memcpy(group + r * OG_LANES, source + rows[first + r] * n_features + k, sizeof(float) * OG_LANES);
            og_transpose_lanes(group, OG_LANES, tile + k * OG_LANES, OG_LANES);
        }
        for (int64_t r = 0; r < count; r++)
            for (int64_t k = whole; k < n_features; k++)
                tile[k * OG_LANES + r] = source[rows[first + r] * n_features + k];
    }
    blank(b, out, n_features, stride);
}

/* Pooled values and bias of a layer of neurons, and the activation of these. */
static inline void neurons_forward(
    const batch *b, const int64_t *codes, const float *y, int64_t y_stride, int64_t n, int64_t d, const float *weight,
    const float *bias, float *pre, float *out, int64_t stride, int32_t *where)
{
    OG_NAME(og_transpose)(weight, n, d, b->weight);
    for (int64_t t = 0; t < b->tiles; t++) {
        const float *tile = y + t * y_stride;
        float *values = pre + t * stride;
        OG_NAME(og_reach)(codes[0], tile, n, b->reach);
        OG_NAME(og_pool_tile)(codes[0], codes[1], tile, b->reach, b->weight, n, d, values, where + t * d * OG_LANES);
        for (int64_t i = 0; i < d; i++)
            OG_EACH_LANE(l) values[i * OG_LANES + l] += bias[i];
        OG_NAME(og_activate)(codes[2], values, out + t * stride, d * OG_LANES);
    }
}

static inline float lanes_total(const float *values, int64_t stride, int64_t tiles)
{
    float sum[OG_LANES] = {0};
    for (int64_t t = 0; t < tiles; t++)
        OG_EACH_LANE(l) sum[l] += values[t * stride + l];
    return og_lane_sum(sum);
}

/* Turn grad, that by the outputs, into those by the parameters and, unless back is NULL, by the inputs. */
static inline void neurons_backward(
    const batch *b, const int64_t *codes, const float *y, int64_t y_stride, int64_t n, int64_t d, const float *weight,
    const float *pre, float *grad, int64_t stride, const int32_t *where, float *by_weight, float *by_bias, float *back,
    int64_t back_stride)
{
    for (int64_t t = 0; t < b->tiles; t++) {
        OG_NAME(og_activation_backward)(codes[2], pre + t * stride, grad + t * stride, d * OG_LANES);
        OG_NAME(og_reach)(codes[0], y + t * y_stride, n, b->reach + t * n);
    }
    blank(b, grad, d, stride);
    for (int64_t i = 0; i < d; i++)
        by_bias[i] = lanes_total(grad + i * OG_LANES, stride, b->tiles);
    OG_NAME(og_pool_backward)(
        codes[0], codes[1], b->tiles, y, y_stride, b->reach, weight, n, d, where, grad, stride, by_weight, back, back_stride,
        b->scratch);
}

/* normal = raw - mean, in single precision. */
static inline void centre(const batch *b, const float *raw, float *normal, int64_t d, int64_t stride, const float *mean)
{
    for (int64_t t = 0; t < b->tiles; t++)
        for (int64_t i = 0; i < d; i++)
            OG_EACH_LANE(l) normal[t * stride + i * OG_LANES + l] = raw[t * stride + i * OG_LANES + l] - mean[i];
    blank(b, normal, d, stride);
}

/* Divide centred features by their deviations, and scale and shift them into out. */
static inline void normalise(
    const batch *b, float *normal, float *out, int64_t d, int64_t stride, const float *variance, const float *scale,
    const float *shift)
{
    for (int64_t i = 0; i < d; i++) {
        int64_t at = i * OG_LANES;
        float factor = 1.0f / og_deviation(variance[i]);
        for (int64_t t = 0; t < b->tiles; t++)
            OG_EACH_LANE(l) {
                normal[t * stride + at + l] *= factor;
                out[t * stride + at + l] = OG_FMA(scale[i], normal[t * stride + at + l], shift[i]);
            }
    }
    blank(b, out, d, stride);
}

/* Turn the gradient by normalised features into that by raw ones; `total` and `along` are the sums over all `count` rows
 * of the gradient, and of its products with the normalised features. */
static inline void normal_backward(
    const batch *b, const float *normal, float *grad, int64_t d, int64_t stride, const float *scale, const float *variance,
    const float *total, const float *along, float count)
{
    for (int64_t i = 0; i < d; i++) {
        int64_t at = i * OG_LANES;
        float factor = scale[i] / og_deviation(variance[i]);
        float mean_total = total[i] / count, mean_along = along[i] / count;
        for (int64_t t = 0; t < b->tiles; t++)
            OG_EACH_LANE(l) {
                float rest = grad[t * stride + at + l] - OG_FMA(normal[t * stride + at + l], mean_along, mean_total);
                grad[t * stride + at + l] = factor * rest;
            }
    }
}

/* The weighted part of a batch whose largest output, the first of several, is that of its class. */
static inline double rightly_classified(const batch *b)
{
    int64_t n = b->given->n_outputs, stride = n * OG_LANES;
    double total = 0.0;
    for (int64_t r = 0; r < b->n_rows; r++) {
        int64_t at = r / OG_LANES * stride + r % OG_LANES, best = 0, wanted = 0;
        for (int64_t c = 1; c < n; c++) {
            best = b->outputs[at + c * OG_LANES] > b->outputs[at + best * OG_LANES] ? c : best;
            wanted = b->targets[at + c * OG_LANES] > b->targets[at + wanted * OG_LANES] ? c : wanted;
        }
        total += best == wanted ? (double)b->weights_of_rows[r] : 0.0;
    }
    return total;
}

/* The loss of a batch; outputs become its gradient. */
static inline double loss_backward(const batch *b)
{
    int64_t n = b->given->n_outputs, stride = n * OG_LANES;
    double total = 0.0;
    for (int64_t t = 0; t < b->tiles; t++) {
        float *out = b->outputs + t * stride, losses[OG_LANES] = {0};
        const float *target = b->targets + t * stride, *weight = b->weights_of_rows + t * OG_LANES;
        if (b->given->loss == OG_MEAN_SQUARED_ERROR) {
            float share = 1.0f / (float)n;
            for (int64_t c = 0; c < n; c++)
                OG_EACH_LANE(l) {
                    float error = out[c * OG_LANES + l] - target[c * OG_LANES + l];
                    float part = weight[l] * error * share;
                    losses[l] = OG_FMA(part, error, losses[l]);
                    out[c * OG_LANES + l] = 2.0f * part;
                }
        } else {
            float largest[OG_LANES], norm[OG_LANES] = {0}, log_norm[OG_LANES];
            memcpy(largest, out, sizeof largest);
            for (int64_t c = 1; c < n; c++)
                OG_EACH_LANE(l)
                    largest[l] = out[c * OG_LANES + l] > largest[l] ? out[c * OG_LANES + l] : largest[l];
            for (int64_t c = 0; c < n; c++)
                OG_EACH_LANE(l) norm[l] += og_exp(out[c * OG_LANES + l] - largest[l]);
            OG_EACH_LANE(l) log_norm[l] = og_log(norm[l]);
            for (int64_t c = 0; c < n; c++)
                OG_EACH_LANE(l) {
                    float shifted = out[c * OG_LANES + l] - largest[l], wanted = target[c * OG_LANES + l];
                    losses[l] = OG_FMA(weight[l] * wanted, log_norm[l] - shifted, losses[l]);
                    out[c * OG_LANES + l] = weight[l] * (og_exp(shifted) / norm[l] - wanted);
                }
        }
        for (int64_t r = t * OG_LANES; r < og_min((t + 1) * OG_LANES, b->n_rows); r++)
            total += (double)losses[r % OG_LANES];
    }
    blank(b, b->outputs, n, stride);
    return total;
}

/* The first feature of a layer among those of all layers. */
static inline int64_t layer_start(const og_training *given, int64_t layer)
{
    int64_t start = 0;
    for (int64_t i = 0; i < layer; i++)
        start += given->widths[i];
    return start;
}

/* Copy a batch, with dropout of inputs and frozen features. Row r's random numbers follow from numbers[r], or from r if
 * numbers is NULL; losses are divided by `count`. */
static inline void gather_batch(batch *b, const int64_t *rows, const int64_t *numbers, float count, uint64_t seed)
{
    const og_training *given = b->given;
    for (int64_t r = 0; r < b->tiles * OG_LANES; r++) {
        int exists = r < b->n_rows;
        b->numbers[r] = exists ? (uint32_t)(numbers ? numbers[rows[r]] : rows[r]) : 0;
        b->weights_of_rows[r] = exists ? (given->row_weight ? given->row_weight[rows[r]] : 1.0f) / count : 0.0f;
    }
    gather(b, given->x, given->n_inputs, rows, b->inputs, given->n_inputs * OG_LANES);
    gather(b, given->frozen, given->n_frozen, rows, b->features, b->n_features * OG_LANES);
    gather(b, given->target, given->n_outputs, rows, b->targets, given->n_outputs * OG_LANES);
    if (given->input_dropout > 0.0f)
        drop_out(
            b, b->inputs, given->n_inputs, given->n_inputs * OG_LANES, given->input_dropout, seed + INPUTS, 0, NULL);
    if (given->dropout > 0.0f)
        drop_out(b, b->features, given->n_frozen, b->n_features * OG_LANES, given->dropout, seed + FROZEN, 0, NULL);
}

/* What a block sees: the inputs, or the layer before. */
static inline const float *source_of(const batch *b, int64_t layer, int64_t *stride)
{
    *stride = (layer ? b->width : b->given->n_inputs) * OG_LANES;
    return layer ? b->out + layer_start(b->given, layer - 1) * OG_LANES : b->inputs;
}

static inline void head_codes(const og_training *given, int64_t *codes)
{
    codes[0] = given->head_nodal < 0 ? OG_MULTIPLICATION : given->head_nodal;
    codes[1] = given->head_nodal < 0 ? OG_SUM : given->head_pool;
    codes[2] = given->head_nodal < 0 ? OG_IDENTITY : given->head_activation;
}

/* A block of the plan: its sizes, its first feature among those of all layers, and where its parameters lie. */
typedef struct {
    const int64_t *codes;
    int64_t n, d, layer, start, weight, bias, scale, shift;
} place;

static inline place place_of(const og_training *given, int64_t number)
{
    const int64_t *block = given->plan + number * OG_T_PLAN;
    int64_t n = block[OG_T_INPUTS], d = block[OG_T_NEURONS], layer = block[OG_T_LAYER];
    int64_t start = layer_start(given, layer) + block[OG_T_ROW], weight = block[OG_T_OFFSET], bias = weight + n * d;
    return (place){block, n, d, layer, start, weight, bias, bias + d, bias + 2 * d};
}

/* Raw features of a block, into b->out. */
static inline void block_forward(const batch *b, const place *p, const float *theta)
{
    int64_t at = p->start * OG_LANES, y_stride;
    const float *y = source_of(b, p->layer, &y_stride);
    neurons_forward(
        b, p->codes, y, y_stride, p->n, p->d, theta + p->weight, theta + p->bias, b->pre + at, b->out + at,
        b->width * OG_LANES, b->where + at * b->tiles);
}

/* Gradients by a block's weights and biases, and by the features below, from that by its raw features. */
static inline void block_backward(const batch *b, const place *p, const float *theta)
{
    int64_t at = p->start * OG_LANES, stride = b->width * OG_LANES, y_stride;
    const float *y = source_of(b, p->layer, &y_stride);
    float *back = p->layer ? b->grad + layer_start(b->given, p->layer - 1) * OG_LANES : NULL;
    neurons_backward(
        b, p->codes, y, y_stride, p->n, p->d, theta + p->weight, b->pre + at, b->grad + at, stride,
        b->where + at * b->tiles, b->by_theta + p->weight, b->by_theta + p->bias, back, stride);
}

static inline void drop_block(const batch *b, const place *p, uint64_t seed)
{
    int64_t at = p->start * OG_LANES, stride = b->width * OG_LANES;
    if (b->given->dropout > 0.0f)
        drop_out(b, b->out + at, p->d, stride, b->given->dropout, seed + HIDDEN, (uint64_t)p->start, b->keep + at);
}

static inline void drop_backward(const batch *b, const place *p)
{
    int64_t at = p->start * OG_LANES, stride = b->width * OG_LANES;
    if (b->given->dropout > 0.0f)
        for (int64_t t = 0; t < b->tiles; t++)
            for (int64_t j = at; j < at + p->d * OG_LANES; j++)
                b->grad[t * stride + j] *= b->keep[t * stride + j];
}

/* The outputs of the head, from the frozen features and those of the last layer. */
static inline void head_forward(const batch *b, const float *theta)
{
    const og_training *given = b->given;
    int64_t stride = b->width * OG_LANES, codes[3];
    int64_t last = given->n_layers ? layer_start(given, given->n_layers - 1) : 0, width = b->width - last;
    for (int64_t t = 0; t < b->tiles; t++)
        memcpy(
            b->features + (t * b->n_features + given->n_frozen) * OG_LANES, b->out + t * stride + last * OG_LANES,
            sizeof(float) * (size_t)(width * OG_LANES));
    head_codes(given, codes);
    const float *weight = theta + b->head_at, *bias = weight + b->n_features * given->n_outputs;
    neurons_forward(
        b, codes, b->features, b->n_features * OG_LANES, b->n_features, given->n_outputs, weight, bias, b->head_pre,
        b->outputs, given->n_outputs * OG_LANES, b->head_where);
}

/* Gradients by the head's parameters and by the features of the last layer; those of layers below become 0. */
static inline void head_backward(const batch *b, const float *theta)
{
    const og_training *given = b->given;
    int64_t stride = b->width * OG_LANES, n_outputs = given->n_outputs, size = b->n_features * OG_LANES, codes[3];
    int64_t last = given->n_layers ? layer_start(given, given->n_layers - 1) : 0;
    head_codes(given, codes);
    memset(b->by_features, 0, sizeof(float) * (size_t)(b->tiles * size));
    neurons_backward(
        b, codes, b->features, size, b->n_features, n_outputs, theta + b->head_at, b->head_pre, b->outputs,
        n_outputs * OG_LANES, b->head_where, b->by_theta + b->head_at, b->by_theta + given->n_parameters - n_outputs,
        b->by_features, size);
    for (int64_t t = 0; t < b->tiles; t++) {
        memset(b->grad + t * stride, 0, sizeof(float) * (size_t)(last * OG_LANES));
        memcpy(
            b->grad + t * stride + last * OG_LANES, b->by_features + t * size + given->n_frozen * OG_LANES,
            sizeof(float) * (size_t)((b->width - last) * OG_LANES));
    }
}

#endif
