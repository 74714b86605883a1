/* Gradients of pooled nodal operators; see gradients.h.
 *
 * Sums over the rows of a batch run over tiles first and lanes last, for matrix products from row to row: the order
 * follows from the batch alone.
 */
#include "gradients.h"
#include "products.h"

#define OG_BODY "gradients_body.h"
#include "for_forms.h"

typedef void (*gradient_function)(
    const float *restrict, const float *restrict, const float *restrict, int64_t, float *restrict);
typedef void (*back_function)(
    const float *restrict, const float *restrict, const float *restrict, int64_t, float *restrict, float *restrict);
typedef void (*slopes_function)(
    const float *restrict, const float *restrict, float *restrict, float *restrict);

#define OG_THREE(nodal, way) {sum_##nodal##way, correlation1_##nodal##way, correlation2_##nodal##way},
#define OG_THREE_BACK(nodal, way) {sum_back_##nodal##way, correlation1_back_##nodal##way, correlation2_back_##nodal##way},
#define OG_FAR_FUNCTIONS(nodal) OG_THREE(nodal, _far)
#define OG_NEAR_FUNCTIONS(nodal) OG_THREE(nodal, _near)
#define OG_FAR_BACK(nodal) OG_THREE_BACK(nodal, _far)
#define OG_NEAR_BACK(nodal) OG_THREE_BACK(nodal, _near)
#define OG_SLOPES_NAME(nodal) slopes_##nodal##_far,
/* [near][nodal] */
static const gradient_function gradients[2][OG_N_NODALS][3] = {
    {OG_FOR_NODALS(OG_FAR_FUNCTIONS)}, {OG_FOR_NODALS(OG_NEAR_FUNCTIONS)}};
static const back_function gradients_back[2][OG_N_NODALS][3] = {
    {OG_FOR_NODALS(OG_FAR_BACK)}, {OG_FOR_NODALS(OG_NEAR_BACK)}};
static const slopes_function slopes[OG_N_NODALS] = {OG_FOR_NODALS(OG_SLOPES_NAME)};

/* rows [row][width] = tiles of values [tile][n][lane], or of their squares, padded with zeros. */
static void by_rows(
    int64_t n_tiles, const float *restrict values, int64_t stride, int64_t n, int squared, float *restrict rows,
    int64_t width)
{
    for (int64_t t = 0; t < n_tiles; t++)
        for (int64_t i = 0; i < n; i += OG_LANES) {
            const float *from = values + t * stride + i * OG_LANES;
            float group[OG_LANES * OG_LANES] = {0};
            int64_t count = og_min(OG_LANES, n - i) * OG_LANES;
            for (int64_t j = 0; j < count; j += OG_LANES)
                OG_EACH_LANE(l) group[j + l] = squared ? from[j + l] * from[j + l] : from[j + l];
            og_transpose_lanes(group, OG_LANES, rows + t * OG_LANES * width + i, width);
        }
}

/* Sums over rows of products of columns of two matrices: `left` as tiles [tile][column][lane], `right` by rows. They go to
 * out, at a distance of left_step for columns of left and of right_step for those of right. */
OG_INLINE void row_products(
    int64_t n_tiles, const float *restrict left, int64_t left_stride, int64_t n_left, int squared,
    const float *restrict right, int64_t width, int64_t n_right, float *restrict out, int64_t left_step,
    int64_t right_step)
{
    for (int64_t j = 0; j < n_right; j += OG_LANES)
        for (int64_t k = 0; k < n_left; k += 4) {
            float s0[OG_LANES] = {0}, s1[OG_LANES] = {0}, s2[OG_LANES] = {0}, s3[OG_LANES] = {0}, sums[4][OG_LANES];
            int64_t others = og_min(4, n_left - k), lanes = og_min(OG_LANES, n_right - j);
            /* Beyond the last column the last one is taken again, and not stored. */
            int64_t k1 = others > 1 ? k + 1 : k, k2 = others > 2 ? k + 2 : k, k3 = others > 3 ? k + 3 : k;
            for (int64_t t = 0; t < n_tiles; t++) {
                const float *tile = left + t * left_stride, *from = right + t * OG_LANES * width + j;
                for (int64_t r = 0; r < OG_LANES; r++) {
                    float a = tile[k * OG_LANES + r], b = tile[k1 * OG_LANES + r];
                    float c = tile[k2 * OG_LANES + r], d = tile[k3 * OG_LANES + r];
                    if (squared)
                        a *= a, b *= b, c *= c, d *= d;
                    OG_EACH_LANE(l) {
                        float value = from[r * width + l];
                        OG_ADD_FOUR(l, value, s0, a, s1, b, s2, c, s3, d);
                    }
                }
            }
            OG_COPY_FOUR(sums, 0, s0, s1, s2, s3)
            for (int64_t u = 0; u < others; u++)
                for (int64_t l = 0; l < lanes; l++)
                    out[(k + u) * left_step + (j + l) * right_step] = sums[u][l];
        }
}

/* Multiplication and quadratic under the sum: their gradients are matrix products. Inputs or neurons are the lanes,
 * whichever takes fewer operations: products commute, and are added from row to row in both. */
static void product_backward(
    int64_t nodal, int64_t n_tiles, const float *y, int64_t y_stride, const float *weight, int64_t n_inputs,
    int64_t n_neurons, const float *grad, int64_t grad_stride, float *by_weight, float *back, int64_t back_stride,
    float *room)
{
    int64_t input_lanes = og_tiles(n_inputs) * OG_LANES, neuron_lanes = og_tiles(n_neurons) * OG_LANES;
    float *by_input = room, *rows = room + n_inputs * OG_LANES;
    if (input_lanes * n_neurons < neuron_lanes * n_inputs) {
        by_rows(n_tiles, y, y_stride, n_inputs, nodal == OG_QUADRATIC, rows, input_lanes);
        row_products(
            n_tiles, grad, grad_stride, n_neurons, 0, rows, input_lanes, n_inputs, by_weight, 1, n_neurons);
    } else {
        by_rows(n_tiles, grad, grad_stride, n_neurons, 0, rows, neuron_lanes);
        if (nodal == OG_QUADRATIC)
            row_products(
                n_tiles, y, y_stride, n_inputs, 1, rows, neuron_lanes, n_neurons, by_weight, n_neurons, 1);
        else
            row_products(
                n_tiles, y, y_stride, n_inputs, 0, rows, neuron_lanes, n_neurons, by_weight, n_neurons, 1);
    }
    if (!back)
        return;
    for (int64_t t = 0; t < n_tiles; t++) {
        float *to = back + t * back_stride;
        const float *tile = y + t * y_stride;
        OG_NAME(og_pool_tile)(
            OG_MULTIPLICATION, OG_SUM, grad + t * grad_stride, NULL, weight, n_neurons, n_inputs, by_input, NULL);
        if (nodal == OG_QUADRATIC) {
            for (int64_t j = 0; j < n_inputs * OG_LANES; j++)
                to[j] = OG_FMA(2.0f * tile[j], by_input[j], to[j]);
        } else {
            for (int64_t j = 0; j < n_inputs * OG_LANES; j++)
                to[j] += by_input[j];
        }
    }
}

/* The gradient of a maximum goes to the one input that has it. */
static void maximum_backward(
    int64_t nodal, const float *y, const float *weight, int64_t n_inputs, int64_t n_neurons, const int32_t *where,
    const float *grad, float *by_weight, float *back)
{
    (void)n_inputs;
    for (int64_t i = 0; i < n_neurons; i++) {
        float inputs[OG_LANES], weights[OG_LANES], slope[OG_LANES], by_input[OG_LANES];
        const int32_t *at = where + i * OG_LANES;
        const float *g = grad + i * OG_LANES;
        OG_EACH_LANE(l) inputs[l] = y[(int64_t)at[l] * OG_LANES + l];
        OG_EACH_LANE(l) weights[l] = weight[at[l] * n_neurons + i];
        slopes[nodal](inputs, weights, slope, by_input);
        OG_EACH_LANE(l) {
            float *to = by_weight + at[l] * n_neurons + i;
            *to = OG_FMA(g[l], slope[l], *to);
        }
        if (back)
            OG_EACH_LANE(l) {
                float *to = back + (int64_t)at[l] * OG_LANES + l;
                *to = OG_FMA(g[l], by_input[l], *to);
            }
    }
}

void OG_NAME(og_pool_backward)(
    int64_t nodal, int64_t pool, int64_t n_tiles, const float *y, int64_t y_stride, const float *reach,
    const float *weight, int64_t n_inputs, int64_t n_neurons, const int32_t *where, const float *grad, int64_t grad_stride,
    float *by_weight, float *back, int64_t back_stride, float *room)
{
    if (pool == OG_SUM && (nodal == OG_MULTIPLICATION || nodal == OG_QUADRATIC)) {
        product_backward(
            nodal, n_tiles, y, y_stride, weight, n_inputs, n_neurons, grad, grad_stride, by_weight, back, back_stride,
            room);
        return;
    }
    if (pool == OG_MAXIMUM) {
        memset(by_weight, 0, sizeof(float) * (size_t)(n_inputs * n_neurons));
        for (int64_t t = 0; t < n_tiles; t++)
            maximum_backward(
                nodal, y + t * y_stride, weight, n_inputs, n_neurons, where + t * n_neurons * OG_LANES,
                grad + t * grad_stride, by_weight, back ? back + t * back_stride : NULL);
        return;
    }
    float *sums = room, *w = room + n_inputs * OG_LANES;
    for (int64_t i = 0; i < n_neurons; i++) {
        memset(sums, 0, sizeof(float) * (size_t)(n_inputs * OG_LANES));
        for (int64_t k = 0; k < n_inputs; k++)
            w[k] = weight[k * n_neurons + i];
        for (int64_t t = 0; t < n_tiles; t++) {
            const float *tile = y + t * y_stride, *g = grad + t * grad_stride + i * OG_LANES;
            int near = OG_NAME(og_is_near)(w, reach + t * n_inputs, n_inputs);
            if (back)
                gradients_back[near][nodal][pool](tile, w, g, n_inputs, sums, back + t * back_stride);
            else
                gradients[near][nodal][pool](tile, w, g, n_inputs, sums);
        }
        for (int64_t k = 0; k < n_inputs; k++)
            by_weight[k * n_neurons + i] = og_lane_sum(sums + k * OG_LANES);
    }
}
