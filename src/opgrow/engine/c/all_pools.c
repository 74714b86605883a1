/* All four pools of a neuron in one pass: what the search does most of the time. See pools.h.
 *
 * Values of psi go to a buffer, OG_TERMS inputs at a time, and are summed from there. That leaves registers for
 * constants in one loop and for sums in the other, and the shorter form of psi is chosen for each piece. The order of
 * all additions is that of the pools alone.
 */
#include "pools.h"

#define OG_BODY "values_body.h"
#define OG_NEAR 0
#define OG_WAY _rows
#include "for_nodals.h"
#undef OG_NEAR
#undef OG_WAY
#define OG_NEAR 1
#define OG_WAY _near
#include "for_nodals.h"

#define OG_VALUES_ROWS(nodal) values_##nodal##_rows,
#define OG_VALUES_NEAR(nodal) values_##nodal##_near,
/* [near][nodal] */
static void (*const values[2][OG_N_NODALS])(const float *restrict, const float *restrict, int64_t, float *restrict) = {
    {OG_FOR_NODALS(OG_VALUES_ROWS)}, {OG_FOR_NODALS(OG_VALUES_NEAR)}};

/* Running sums of the pools; `part` those of the present OG_TERMS inputs. */
typedef struct {
    float sum[OG_LANES], pairs[OG_LANES], triples[OG_LANES], largest[OG_LANES];
    float before[OG_LANES], pair[OG_LANES];
} Sums;

/* Add n inputs. psi is in z, or is a product of y and w if there is no z: then products are fused into the sum, and
 * `squared` says that inputs are squared. If `by_product`, the largest product is sought instead of the largest
 * psi. All three are constants where this is inlined. */
OG_INLINE void add_inputs(
    Sums *at, const float *restrict y, const float *restrict w, const float *restrict z, int64_t n, int squared,
    int by_product)
{
    float part1[OG_LANES] = {0}, part2[OG_LANES] = {0}, part3[OG_LANES] = {0};
    float before[OG_LANES], pair[OG_LANES], largest[OG_LANES];
    OG_EACH_LANE(l) before[l] = at->before[l];
    OG_EACH_LANE(l) pair[l] = at->pair[l];
    OG_EACH_LANE(l) largest[l] = at->largest[l];
    for (int64_t k = 0; k < n; k++)
        OG_EACH_LANE(l) {
            float value, rank;
            if (z) {
                value = z[k * OG_LANES + l];
                rank = by_product ? (w[k] * OG_LOG2E) * y[k * OG_LANES + l] : value;
                part1[l] += value;
            } else {
                float input = squared ? y[k * OG_LANES + l] * y[k * OG_LANES + l] : y[k * OG_LANES + l];
                value = w[k] * input;
                rank = value;
                part1[l] = OG_FMA(w[k], input, part1[l]);
            }
            part3[l] = OG_FMA(pair[l], value, part3[l]);
            pair[l] = before[l] * value;
            part2[l] += pair[l];
            before[l] = value;
            largest[l] = rank > largest[l] ? rank : largest[l];
        }
    OG_EACH_LANE(l) at->before[l] = before[l];
    OG_EACH_LANE(l) at->pair[l] = pair[l];
    OG_EACH_LANE(l) at->largest[l] = largest[l];
    OG_EACH_LANE(l) at->sum[l] += part1[l];
    OG_EACH_LANE(l) at->pairs[l] += part2[l];
    OG_EACH_LANE(l) at->triples[l] += part3[l];
}

static void add_products(Sums *at, const float *y, const float *w, int64_t n)
{
    add_inputs(at, y, w, NULL, n, 0, 0);
}

static void add_squares(Sums *at, const float *y, const float *w, int64_t n)
{
    add_inputs(at, y, w, NULL, n, 1, 0);
}

static void add_values(Sums *at, const float *z, int64_t n)
{
    add_inputs(at, NULL, NULL, z, n, 0, 0);
}

static void add_exponentials(Sums *at, const float *y, const float *w, const float *z, int64_t n)
{
    add_inputs(at, y, w, z, n, 0, 1);
}

void OG_NAME(og_pool_tile_all)(
    int64_t nodal, const float *y, const float *reach, const float *weight, int64_t n_inputs, float *out)
{
    Sums at = {0};
    /* NaN would win no comparison and lose none: start from a number. */
    OG_EACH_LANE(l) at.largest[l] = -__builtin_inff();
    for (int64_t first = 0; first < n_inputs; first += OG_TERMS) {
        const float *here = y + first * OG_LANES, *w = weight + first;
        int64_t n = og_min(OG_TERMS, n_inputs - first);
        if (nodal == OG_MULTIPLICATION) {
            add_products(&at, here, w, n);
            continue;
        }
        if (nodal == OG_QUADRATIC) {
            add_squares(&at, here, w, n);
            continue;
        }
        float z[OG_TERMS * OG_LANES];
        values[OG_NAME(og_is_near)(w, reach + first, n)][nodal](here, w, n, z);
        if (nodal == OG_EXPONENTIAL)
            add_exponentials(&at, here, w, z, n);
        else
            add_values(&at, z, n);
    }
    memcpy(out, at.sum, sizeof at.sum);
    memcpy(out + OG_LANES, at.pairs, sizeof at.pairs);
    memcpy(out + 2 * OG_LANES, at.triples, sizeof at.triples);
    float *largest = out + 3 * OG_LANES;
    if (nodal == OG_EXPONENTIAL)
        OG_EACH_LANE(l) at.largest[l] = og_exp2m1_clamped(at.largest[l], 0);
    /* A comparison drops NaN, but the sum has it. */
    OG_EACH_LANE(l) largest[l] = at.sum[l] != at.sum[l] ? at.sum[l] : at.largest[l];
}
