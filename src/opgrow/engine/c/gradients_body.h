/* Gradients of the pools of one nodal operator for one neuron and one tile; included by gradients.c for each.
 *
 * y [n][lane], w [n], g [lane] the gradient by the pooled value. Added to: sums [n][lane], over whose lanes the
 * gradient by the weights is summed later, and, unless it is NULL, back [n][lane], the gradient by the inputs.
 */
#define OG_GRADIENT(name) OG_JOIN(OG_JOIN(name, _), OG_JOIN(OG_NODAL, OG_WAY))
#define OG_SLOPES(y, w, ...) OG_JOIN(OG_JOIN(og_, OG_NODAL), _slopes)((y), (w), OG_NEAR, __VA_ARGS__)

static void OG_GRADIENT(sum)(
    const float *restrict y, const float *restrict w, const float *restrict g, int64_t n, float *restrict sums,
    float *restrict back)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k * OG_LANES;
        float z, by_weight[OG_LANES], by_input[OG_LANES];
        OG_EACH_LANE(l) OG_SLOPES(y[at + l], w[k], &z, &by_weight[l], &by_input[l]);
        OG_EACH_LANE(l) sums[at + l] = OG_FMA(g[l], by_weight[l], sums[at + l]);
        if (back)
            OG_EACH_LANE(l) back[at + l] = OG_FMA(g[l], by_input[l], back[at + l]);
    }
}

/* Input k meets its neighbours: the value of the next one is computed before the gradient of this one is added. */
static void OG_GRADIENT(correlation1)(
    const float *restrict y, const float *restrict w, const float *restrict g, int64_t n, float *restrict sums,
    float *restrict back)
{
    float before[OG_LANES] = {0}, here[OG_LANES], by_weight[OG_LANES], by_input[OG_LANES];
    OG_EACH_LANE(l) OG_SLOPES(y[l], w[0], &here[l], &by_weight[l], &by_input[l]);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k * OG_LANES;
        float after[OG_LANES] = {0}, next_weight[OG_LANES] = {0}, next_input[OG_LANES] = {0};
        if (k + 1 < n)
            OG_EACH_LANE(l)
                OG_SLOPES(y[at + OG_LANES + l], w[k + 1], &after[l], &next_weight[l], &next_input[l]);
        float by_value[OG_LANES];
        OG_EACH_LANE(l) by_value[l] = g[l] * (before[l] + after[l]);
        OG_EACH_LANE(l) sums[at + l] = OG_FMA(by_value[l], by_weight[l], sums[at + l]);
        if (back)
            OG_EACH_LANE(l) back[at + l] = OG_FMA(by_value[l], by_input[l], back[at + l]);
        memcpy(before, here, sizeof here);
        memcpy(here, after, sizeof here);
        memcpy(by_weight, next_weight, sizeof by_weight);
        memcpy(by_input, next_input, sizeof by_input);
    }
}

/* As above with two neighbours on each side: z[0 .. 4] are the values of inputs k - 2 .. k + 2, and slopes of
 * inputs k .. k + 2 wait in [0 .. 2]. */
static void OG_GRADIENT(correlation2)(
    const float *restrict y, const float *restrict w, const float *restrict g, int64_t n, float *restrict sums,
    float *restrict back)
{
    float z[5][OG_LANES] = {{0}}, by_weight[3][OG_LANES] = {{0}}, by_input[3][OG_LANES] = {{0}};
    for (int64_t k = -2; k < n; k++) {
        int64_t next = k + 2;
        memmove(z[0], z[1], sizeof z - sizeof z[0]);
        memmove(by_weight[0], by_weight[1], sizeof by_weight - sizeof by_weight[0]);
        memmove(by_input[0], by_input[1], sizeof by_input - sizeof by_input[0]);
        if (next < n) {
            OG_EACH_LANE(l)
                OG_SLOPES(y[next * OG_LANES + l], w[next], &z[4][l], &by_weight[2][l], &by_input[2][l]);
        } else {
            memset(z[4], 0, sizeof z[4]);
        }
        if (k < 0)
            continue;
        int64_t at = k * OG_LANES;
        float by_value[OG_LANES];
        OG_EACH_LANE(l) {
            float around = OG_FMA(z[1][l], z[3][l], z[0][l] * z[1][l]);
            by_value[l] = g[l] * OG_FMA(z[3][l], z[4][l], around);
        }
        OG_EACH_LANE(l) sums[at + l] = OG_FMA(by_value[l], by_weight[0][l], sums[at + l]);
        if (back)
            OG_EACH_LANE(l) back[at + l] = OG_FMA(by_value[l], by_input[0][l], back[at + l]);
    }
}

#if !OG_NEAR
/* For each lane the derivatives at one input of its own, by weight and by input. */
static void OG_GRADIENT(slopes)(
    const float *restrict y, const float *restrict w, float *restrict by_weight, float *restrict by_input)
{
    float z;
    OG_EACH_LANE(l) OG_SLOPES(y[l], w[l], &z, &by_weight[l], &by_input[l]);
}
#endif

#undef OG_GRADIENT
#undef OG_SLOPES
