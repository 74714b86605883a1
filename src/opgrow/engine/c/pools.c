/* Pooled nodal operators and activations: the innermost loops of everything. See pools.h. */
#include "pool_steps.h"

#define OG_BODY "pools_body.h"
#define OG_LANES_ARE_ROWS 1
#include "for_forms.h"
#undef OG_LANES_ARE_ROWS
#define OG_LANES_ARE_ROWS 0
#define OG_NEAR 0
#define OG_WAY _neurons
#include "for_nodals.h"

typedef void (*pool_function)(const float *restrict, const float *restrict, int64_t, float *restrict);
typedef void (*maximum_function)(
    const float *restrict, const float *restrict, int64_t, float *restrict, int32_t *restrict);

#define OG_SUMS(nodal, way) {sum_##nodal##way, correlation1_##nodal##way, correlation2_##nodal##way},
#define OG_FAR_ROWS(nodal) OG_SUMS(nodal, _far)
#define OG_NEAR_ROWS(nodal) OG_SUMS(nodal, _near)
#define OG_NEURONS(nodal) OG_SUMS(nodal, _neurons)
#define OG_MAXIMUM_FAR(nodal) maximum_##nodal##_far,
#define OG_MAXIMUM_NEAR(nodal) maximum_##nodal##_near,
#define OG_MAXIMUM_NEURONS(nodal) maximum_##nodal##_neurons,
/* [near][nodal] */
static const pool_function over_rows[2][OG_N_NODALS][3] = {
    {OG_FOR_NODALS(OG_FAR_ROWS)}, {OG_FOR_NODALS(OG_NEAR_ROWS)}};
static const maximum_function maximum_rows[2][OG_N_NODALS] = {
    {OG_FOR_NODALS(OG_MAXIMUM_FAR)}, {OG_FOR_NODALS(OG_MAXIMUM_NEAR)}};
static const pool_function over_neurons[OG_N_NODALS][3] = {OG_FOR_NODALS(OG_NEURONS)};
static const maximum_function maximum_neurons[OG_N_NODALS] = {OG_FOR_NODALS(OG_MAXIMUM_NEURONS)};

/* Bounds for the near forms, with room for rounding: exponents that are not clamped, and half turns below 2^22. */
#define OG_NEAR_EXPONENT 9.999f
#define OG_NEAR_ANGLE 1e7f

void OG_NAME(og_reach)(int64_t nodal, const float *y, int64_t n_inputs, float *reach)
{
    int exponential = nodal == OG_EXPONENTIAL, squared = nodal == OG_GAUSSIAN || nodal == OG_DOG;
    if (!exponential && !squared && nodal != OG_HARMONIC) {
        for (int64_t k = 0; k < n_inputs; k++)
            reach[k] = -1.0f;
        return;
    }
    for (int64_t k = 0; k < n_inputs; k++) {
        /* Without their sign, numbers are in the order of their bits, and NaN comes after all of them. */
        uint32_t most = og_bits(1e-30f);
        OG_EACH_LANE(l) {
            uint32_t size = og_bits(y[k * OG_LANES + l]) & 0x7fffffffu;
            most = size > most ? size : most;
        }
        reach[k] = og_from_bits(most);
    }
    float bound = nodal == OG_HARMONIC ? OG_NEAR_ANGLE : OG_NEAR_EXPONENT;
    for (int64_t k = 0; k < n_inputs; k++)
        reach[k] = bound / (squared ? reach[k] * reach[k] : reach[k]);
}

int OG_NAME(og_is_near)(const float *weight, const float *reach, int64_t n_inputs)
{
    int outside = !reach;
    for (int64_t k = 0; reach && k < n_inputs; k++)
        outside |= !(og_abs(weight[k]) <= reach[k]);
    return !outside;
}

/* Sums of products for four neurons at once, so that inputs are loaded once for all of them, and no addition waits for
 * the one before. The order of the additions is that of `sum`. If fewer neurons are left, the last is taken again, and
 * not stored. `squared` is a constant where this is inlined. */
OG_INLINE void four_sums(
    const float *restrict y, const float *restrict w, int64_t n, int64_t n_neurons, int squared, float *restrict out)
{
    const float *w1 = n_neurons > 1 ? w + n : w, *w2 = n_neurons > 2 ? w1 + n : w1, *w3 = n_neurons > 3 ? w2 + n : w2;
    float a[OG_LANES] = {0}, b[OG_LANES] = {0}, c[OG_LANES] = {0}, d[OG_LANES] = {0};
    for (int64_t first = 0; first < n; first += OG_TERMS) {
        float pa[OG_LANES] = {0}, pb[OG_LANES] = {0}, pc[OG_LANES] = {0}, pd[OG_LANES] = {0};
        int64_t last = og_min(first + OG_TERMS, n);
        for (int64_t k = first; k < last; k++) {
            float wa = w[k], wb = w1[k], wc = w2[k], wd = w3[k];
            OG_EACH_LANE(l) {
                float value = y[k * OG_LANES + l];
                value = squared ? value * value : value;
                pa[l] = OG_FMA(wa, value, pa[l]);
                pb[l] = OG_FMA(wb, value, pb[l]);
                pc[l] = OG_FMA(wc, value, pc[l]);
                pd[l] = OG_FMA(wd, value, pd[l]);
            }
        }
        OG_EACH_LANE(l) a[l] += pa[l];
        OG_EACH_LANE(l) b[l] += pb[l];
        OG_EACH_LANE(l) c[l] += pc[l];
        OG_EACH_LANE(l) d[l] += pd[l];
    }
    memcpy(out, a, sizeof a);
    if (n_neurons > 1)
        memcpy(out + OG_LANES, b, sizeof b);
    if (n_neurons > 2)
        memcpy(out + 2 * OG_LANES, c, sizeof c);
    if (n_neurons > 3)
        memcpy(out + 3 * OG_LANES, d, sizeof d);
}

static void four_products(const float *y, const float *w, int64_t n, int64_t n_neurons, float *out)
{
    four_sums(y, w, n, n_neurons, 0, out);
}

static void four_squares(const float *y, const float *w, int64_t n, int64_t n_neurons, float *out)
{
    four_sums(y, w, n, n_neurons, 1, out);
}

void OG_NAME(og_pool_tile)(
    int64_t nodal, int64_t pool, const float *y, const float *reach, const float *weight, int64_t n_inputs,
    int64_t n_neurons, float *out, int32_t *where)
{
    int64_t i = 0;
    if (pool == OG_MAXIMUM) {
        for (; i < n_neurons; i++) {
            const float *w = weight + i * n_inputs;
            maximum_rows[OG_NAME(og_is_near)(w, reach, n_inputs)][nodal](
                y, w, n_inputs, out + i * OG_LANES, where + i * OG_LANES);
        }
        return;
    }
    if (pool == OG_SUM && (nodal == OG_MULTIPLICATION || nodal == OG_QUADRATIC))
        for (; i < n_neurons; i += 4)
            (nodal == OG_QUADRATIC ? four_squares : four_products)(
                y, weight + i * n_inputs, n_inputs, og_min(4, n_neurons - i), out + i * OG_LANES);
    for (; i < n_neurons; i++) {
        const float *w = weight + i * n_inputs;
        over_rows[OG_NAME(og_is_near)(w, reach, n_inputs)][nodal][pool](y, w, n_inputs, out + i * OG_LANES);
    }
}

void OG_NAME(og_pool_row)(
    int64_t nodal, int64_t pool, const float *y, const float *weight, int64_t n_inputs, int64_t n_neurons, float *out)
{
    int32_t where[OG_LANES];
    for (int64_t i = 0; i < n_neurons; i += OG_LANES) {
        if (pool == OG_MAXIMUM)
            maximum_neurons[nodal](weight + i * n_inputs, y, n_inputs, out + i, where);
        else
            over_neurons[nodal][pool](weight + i * n_inputs, y, n_inputs, out + i);
    }
}

#define OG_ACTIVATE(name) \
    static void activate_##name(const float *x, float *out, int64_t n) \
    { \
        for (int64_t j = 0; j < n; j += OG_LANES) { \
            float values[OG_LANES]; \
            OG_EACH_LANE(l) values[l] = og_##name(x[j + l]); \
            memcpy(out + j, values, sizeof values); \
        } \
    } \
    static void backward_##name(const float *restrict x, float *restrict grad, int64_t n) \
    { \
        for (int64_t j = 0; j < n; j += OG_LANES) \
            OG_EACH_LANE(l) grad[j + l] *= og_##name##_slope(x[j + l]); \
    }
OG_FOR_ACTIVATIONS(OG_ACTIVATE)

#define OG_ACTIVATE_NAME(name) activate_##name,
#define OG_BACKWARD_NAME(name) backward_##name,
static void (*const activations[OG_N_ACTIVATIONS])(const float *, float *, int64_t) = {
    OG_FOR_ACTIVATIONS(OG_ACTIVATE_NAME)};
static void (*const slopes[OG_N_ACTIVATIONS])(const float *restrict, float *restrict, int64_t) = {
    OG_FOR_ACTIVATIONS(OG_BACKWARD_NAME)};

void OG_NAME(og_activate)(int64_t activation, const float *x, float *out, int64_t n)
{
    activations[activation](x, out, n);
}

void OG_NAME(og_activation_backward)(int64_t activation, const float *x, float *grad, int64_t n)
{
    if (activation != OG_IDENTITY)
        slopes[activation](x, grad, n);
}

void OG_NAME(og_load_tile)(const float *x, int64_t stride, int64_t n_rows, int64_t n_inputs, float *y)
{
    if (n_rows < OG_LANES)
        memset(y, 0, sizeof(float) * OG_LANES * (size_t)n_inputs);
    og_transpose_matrix(x, stride, n_inputs, n_rows, y, OG_LANES);
}

void OG_NAME(og_transpose)(const float *weight, int64_t n_inputs, int64_t n_neurons, float *out)
{
    og_transpose_matrix(weight, n_neurons, n_neurons, n_inputs, out, n_inputs);
}

void OG_NAME(og_weights_in_lanes)(const float *weight, int64_t n_inputs, int64_t n_neurons, float *out)
{
    for (int64_t i = 0; i < n_neurons; i += OG_LANES)
        for (int64_t k = 0; k < n_inputs; k++)
            OG_EACH_LANE(l)
                out[i * n_inputs + k * OG_LANES + l] = i + l < n_neurons ? weight[k * n_neurons + i + l] : 0.0f;
}
