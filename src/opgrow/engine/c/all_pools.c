/* All four pools of a neuron in one pass: what the search does most of the time. See pools.h.
 *
 * OG_TERMS inputs are taken at a time, for all neurons: they stay in the first cache. Values of psi go to a buffer and are
 * summed from there. That leaves registers for constants in one loop and for sums in the other, and the shorter form of
 * psi is chosen for each piece. The order of all additions is that of the pools alone.
 */
#include "pool_steps.h"

#define OG_BODY "values_body.h"
#include "for_forms.h"

#define OG_VALUES_FAR(nodal) values_##nodal##_far,
#define OG_VALUES_NEAR(nodal) values_##nodal##_near,
typedef void (*values_function)(
    const float *restrict, const float *restrict, int64_t, float *restrict, float *restrict);
/* [near][nodal] */
static const values_function values[2][OG_N_NODALS] = {
    {OG_FOR_NODALS(OG_VALUES_FAR)}, {OG_FOR_NODALS(OG_VALUES_NEAR)}};

/* Running sums of a neuron's pools, and what its next input meets. */
typedef struct {
    float sum[OG_LANES], pairs[OG_LANES], triples[OG_LANES], largest[OG_LANES];
    float before[OG_LANES], pair[OG_LANES];
} Sums;

int64_t OG_NAME(og_pool_tile_all_room)(int64_t n_neurons)
{
    return n_neurons * (int64_t)(sizeof(Sums) / sizeof(float));
}

/* Add n inputs. psi is in z, or is a product of y and w if there is no z: then products are fused into the sum, and
 * `squared` says that inputs are squared. If `ranked`, the largest psi is sought. All three are constants where this is
 * inlined. */
OG_INLINE void add_inputs(
    Sums *restrict at, const float *restrict y, const float *restrict w, const float *restrict z, int64_t n, int squared,
    int ranked)
{
    float part1[OG_LANES] = {0}, part2[OG_LANES] = {0}, part3[OG_LANES] = {0};
    float before[OG_LANES], pair[OG_LANES], largest[OG_LANES];
    OG_EACH_LANE(l) before[l] = at->before[l];
    OG_EACH_LANE(l) pair[l] = at->pair[l];
    OG_EACH_LANE(l) largest[l] = at->largest[l];
    for (int64_t k = 0; k < n; k++)
        OG_EACH_LANE(l) {
            float value;
            if (z) {
                value = z[k * OG_LANES + l];
                part1[l] += value;
            } else {
                float input = squared ? y[k * OG_LANES + l] * y[k * OG_LANES + l] : y[k * OG_LANES + l];
                value = w[k] * input;
                part1[l] = OG_FMA(w[k], input, part1[l]);
            }
            part3[l] = OG_FMA(pair[l], value, part3[l]);
            pair[l] = before[l] * value;
            part2[l] += pair[l];
            before[l] = value;
            if (ranked)
                largest[l] = value > largest[l] ? value : largest[l];
        }
    OG_EACH_LANE(l) at->before[l] = before[l];
    OG_EACH_LANE(l) at->pair[l] = pair[l];
    OG_EACH_LANE(l) at->largest[l] = largest[l];
    OG_EACH_LANE(l) at->sum[l] += part1[l];
    OG_EACH_LANE(l) at->pairs[l] += part2[l];
    OG_EACH_LANE(l) at->triples[l] += part3[l];
}

/* Calls, because gcc takes arrays of sums apart into single values where it sees what becomes of them. */
#define OG_CALL static __attribute__((noinline))

OG_CALL void add_products(Sums *restrict at, const float *restrict y, const float *restrict w, int64_t n)
{
    add_inputs(at, y, w, NULL, n, 0, 1);
}

OG_CALL void add_squares(Sums *restrict at, const float *restrict y, const float *restrict w, int64_t n)
{
    add_inputs(at, y, w, NULL, n, 1, 1);
}

OG_CALL void add_values(Sums *restrict at, const float *restrict z, int64_t n)
{
    add_inputs(at, NULL, NULL, z, n, 0, 1);
}

OG_CALL void add_exponentials(Sums *restrict at, const float *restrict z, int64_t n)
{
    add_inputs(at, NULL, NULL, z, n, 0, 0);
}

/* Add n inputs of one neuron, at most OG_TERMS. */
static void add_piece(
    int64_t nodal, const float *y, const float *reach, const float *weight, int64_t n, Sums *restrict at)
{
    if (nodal == OG_MULTIPLICATION) {
        add_products(at, y, weight, n);
        return;
    }
    if (nodal == OG_QUADRATIC) {
        add_squares(at, y, weight, n);
        return;
    }
    float z[OG_TERMS * OG_LANES];
    values[OG_NAME(og_is_near)(weight, reach, n)][nodal](y, weight, n, z, at->largest);
    if (nodal == OG_EXPONENTIAL)
        add_exponentials(at, z, n);
    else
        add_values(at, z, n);
}

/* From the sums of one neuron to its pools, at a distance of `stride`. */
static void finish(int64_t nodal, const Sums *at, float *out, int64_t stride)
{
    float largest[OG_LANES];
    memcpy(out, at->sum, sizeof at->sum);
    memcpy(out + stride, at->pairs, sizeof at->pairs);
    memcpy(out + 2 * stride, at->triples, sizeof at->triples);
    if (nodal == OG_EXPONENTIAL)
        OG_EACH_LANE(l) largest[l] = unrank_exponential(at->largest[l]);
    else
        memcpy(largest, at->largest, sizeof largest);
    /* A comparison drops NaN, but the sum has it. */
    OG_EACH_LANE(l) out[3 * stride + l] = at->sum[l] != at->sum[l] ? at->sum[l] : largest[l];
}

void OG_NAME(og_pool_tile_all)(
    int64_t nodal, const float *y, const float *reach, const float *weight, int64_t n_inputs, int64_t n_neurons,
    float *out, int64_t stride, float *room)
{
    Sums *sums = (Sums *)room;
    for (int64_t i = 0; i < n_neurons; i++) {
        memset(sums + i, 0, sizeof sums[i]);
        /* NaN would win no comparison and lose none: start from a number. */
        OG_EACH_LANE(l) sums[i].largest[l] = -__builtin_inff();
    }
    for (int64_t first = 0; first < n_inputs; first += OG_TERMS)
        for (int64_t i = 0; i < n_neurons; i++)
            add_piece(
                nodal, y + first * OG_LANES, reach + first, weight + i * n_inputs + first,
                og_min(OG_TERMS, n_inputs - first), sums + i);
    for (int64_t i = 0; i < n_neurons; i++)
        finish(nodal, sums + i, out + i * stride, n_neurons * stride);
}
