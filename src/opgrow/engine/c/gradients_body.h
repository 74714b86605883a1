/* Gradients of the pools of one nodal operator for one neuron and one tile; included by gradients.c for each.
 *
 * y [n][lane], w [n], g [lane] the gradient by the pooled value. Added to: sums [n][lane], over whose lanes the
 * gradient by the weights is summed later, and, in the functions `_back`, back [n][lane], that by the inputs.
 */
#define OG_GRADIENT(name) OG_JOIN(OG_JOIN(name, _), OG_JOIN(OG_NODAL, OG_WAY))
#define OG_SLOPES(y, w, ...) OG_JOIN(OG_JOIN(og_, OG_NODAL), _slopes)((y), (w), OG_NEAR, __VA_ARGS__)
/* Add what input k gets, given the gradient by its value. */
#define OG_ADD_SLOPES(k, l, by_value, by_weight, by_input) \
    do { \
        sums[(k)*OG_LANES + l] = OG_FMA(by_value, by_weight, sums[(k)*OG_LANES + l]); \
        if (has_back) \
            back[(k)*OG_LANES + l] = OG_FMA(by_value, by_input, back[(k)*OG_LANES + l]); \
    } while (0)
/* The functions `name` and `name_back` of `name_gradient`, in which it is a constant whether there is a back. */
#define OG_WITHOUT_AND_WITH_BACK(name) \
    static void OG_GRADIENT(name)( \
        const float *restrict y, const float *restrict w, const float *restrict g, int64_t n, float *restrict sums) \
    { \
        OG_GRADIENT(name##_gradient)(y, w, g, n, sums, NULL, 0); \
    } \
    static void OG_GRADIENT(name##_back)( \
        const float *restrict y, const float *restrict w, const float *restrict g, int64_t n, float *restrict sums, \
        float *restrict back) \
    { \
        OG_GRADIENT(name##_gradient)(y, w, g, n, sums, back, 1); \
    }

OG_INLINE void OG_GRADIENT(sum_gradient)(
    const float *restrict y, const float *restrict w, const float *restrict g, int64_t n, float *restrict sums,
    float *restrict back, int has_back)
{
    for (int64_t k = 0; k < n; k++)
        OG_EACH_LANE(l) {
            float z, by_weight, by_input;
            OG_SLOPES(y[k * OG_LANES + l], w[k], &z, &by_weight, &by_input);
            OG_ADD_SLOPES(k, l, g[l], by_weight, by_input);
        }
}

OG_WITHOUT_AND_WITH_BACK(sum)

/* Input k meets its neighbours: the next one is computed before the gradient of this one is added. */
OG_INLINE void OG_GRADIENT(correlation1_gradient)(
    const float *restrict y, const float *restrict w, const float *restrict g, int64_t n, float *restrict sums,
    float *restrict back, int has_back)
{
    float before[OG_LANES] = {0}, here[OG_LANES], by_weight[OG_LANES], by_input[OG_LANES];
    OG_EACH_LANE(l) OG_SLOPES(y[l], w[0], &here[l], &by_weight[l], &by_input[l]);
    int64_t k = 0;
    for (; k + 1 < n; k++)
        OG_EACH_LANE(l) {
            float after, next_weight, next_input;
            OG_SLOPES(y[(k + 1) * OG_LANES + l], w[k + 1], &after, &next_weight, &next_input);
            OG_ADD_SLOPES(k, l, g[l] * (before[l] + after), by_weight[l], by_input[l]);
            before[l] = here[l];
            here[l] = after;
            by_weight[l] = next_weight;
            by_input[l] = next_input;
        }
    OG_EACH_LANE(l) OG_ADD_SLOPES(k, l, g[l] * before[l], by_weight[l], by_input[l]);
}

OG_WITHOUT_AND_WITH_BACK(correlation1)

/* The gradient by the value of an input between two neighbours on each side. */
#define OG_BETWEEN(g, first, before, after, last) \
    ((g)*OG_FMA((after), (last), OG_FMA((before), (after), (first) * (before))))

/* As above, with two neighbours on each side; one input alone has no gradient. */
OG_INLINE void OG_GRADIENT(correlation2_gradient)(
    const float *restrict y, const float *restrict w, const float *restrict g, int64_t n, float *restrict sums,
    float *restrict back, int has_back)
{
    float first[OG_LANES] = {0}, before[OG_LANES] = {0}, here[OG_LANES], after[OG_LANES] = {0};
    float weight0[OG_LANES], input0[OG_LANES], weight1[OG_LANES] = {0}, input1[OG_LANES] = {0};
    OG_EACH_LANE(l) OG_SLOPES(y[l], w[0], &here[l], &weight0[l], &input0[l]);
    if (n > 1)
        OG_EACH_LANE(l) OG_SLOPES(y[OG_LANES + l], w[1], &after[l], &weight1[l], &input1[l]);
    int64_t k = 0;
    for (; k + 2 < n; k++)
        OG_EACH_LANE(l) {
            float last, next_weight, next_input;
            OG_SLOPES(y[(k + 2) * OG_LANES + l], w[k + 2], &last, &next_weight, &next_input);
            OG_ADD_SLOPES(k, l, OG_BETWEEN(g[l], first[l], before[l], after[l], last), weight0[l], input0[l]);
            first[l] = before[l];
            before[l] = here[l];
            here[l] = after[l];
            after[l] = last;
            weight0[l] = weight1[l];
            input0[l] = input1[l];
            weight1[l] = next_weight;
            input1[l] = next_input;
        }
    if (n > 1) {
        OG_EACH_LANE(l) {
            OG_ADD_SLOPES(k, l, OG_BETWEEN(g[l], first[l], before[l], after[l], 0.0f), weight0[l], input0[l]);
            first[l] = before[l];
            before[l] = here[l];
        }
        k++;
        OG_EACH_LANE(l) OG_ADD_SLOPES(k, l, OG_BETWEEN(g[l], first[l], before[l], 0.0f, 0.0f), weight1[l], input1[l]);
    }
}

OG_WITHOUT_AND_WITH_BACK(correlation2)

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
#undef OG_WITHOUT_AND_WITH_BACK
#undef OG_ADD_SLOPES
#undef OG_BETWEEN
