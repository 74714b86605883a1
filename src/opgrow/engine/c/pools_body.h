/* The pools of one nodal operator, included by pools.c once for each operator and way of filling the lanes.
 *
 * If OG_LANES_ARE_ROWS, lanes are rows of a tile that share a neuron's weight; otherwise they are neurons that
 * share a row's input. v[k * OG_LANES + l] is what differs between lanes, s[k] what they share, for n inputs. For
 * one row and one neuron the arithmetic is the same in both. OG_NEAR as in operators.h; OG_WAY ends the names.
 */
#define OG_POOL(name) OG_JOIN(OG_JOIN(name, _), OG_JOIN(OG_NODAL, OG_WAY))
#define OG_SCALE(w) OG_JOIN(OG_JOIN(og_, OG_NODAL), _scale)(w)
#if OG_LANES_ARE_ROWS
/* Weights first ... last, scaled once for all lanes. */
#define OG_SCALE_PIECE(s, first, last) \
    float scaled[OG_TERMS]; \
    for (int64_t k = first; k < last; k++) \
        scaled[k - first] = OG_SCALE(s[k])
#define OG_PSI(v, s, k) OG_JOIN(og_, OG_NODAL)((v), (s), scaled[(k) - first], OG_NEAR)
#define OG_ADD_PSI(t, v, s, k) OG_JOIN(add_, OG_NODAL)((t), (v), (s), scaled[(k) - first], OG_NEAR)
#define OG_RANK(v, s) OG_JOIN(rank_, OG_NODAL)((v), (s), OG_SCALE(s), OG_NEAR)
#else
#define OG_SCALE_PIECE(s, first, last) (void)0
#define OG_PSI(v, s, k) OG_JOIN(og_, OG_NODAL)((s), (v), OG_SCALE(v), OG_NEAR)
#define OG_ADD_PSI(t, v, s, k) OG_JOIN(add_, OG_NODAL)((t), (s), (v), OG_SCALE(v), OG_NEAR)
#define OG_RANK(v, s) OG_JOIN(rank_, OG_NODAL)((s), (v), OG_SCALE(v), OG_NEAR)
#endif
#define OG_UNRANK(u) OG_JOIN(unrank_, OG_NODAL)(u)

static void OG_POOL(sum)(const float *restrict v, const float *restrict s, int64_t n, float *restrict out)
{
    float total[OG_LANES] = {0};
    for (int64_t first = 0; first < n; first += OG_TERMS) {
        float part[OG_LANES] = {0};
        int64_t last = og_min(first + OG_TERMS, n);
        OG_SCALE_PIECE(s, first, last);
        for (int64_t k = first; k < last; k++)
            OG_SIMD_LANES(l) part[l] = OG_ADD_PSI(part[l], v[k * OG_LANES + l], s[k], k);
        OG_EACH_LANE(l) total[l] += part[l];
    }
    memcpy(out, total, sizeof total);
}

/* The sum of products of `window` neighbours, 2 or 3; a constant, so that each caller has its own code. */
OG_INLINE void OG_POOL(correlation)(
    int window, const float *restrict v, const float *restrict s, int64_t n, float *restrict out)
{
    float total[OG_LANES] = {0}, before[OG_LANES] = {0}, pair[OG_LANES] = {0};
    for (int64_t first = 0; first < n; first += OG_TERMS) {
        float part[OG_LANES] = {0};
        int64_t last = og_min(first + OG_TERMS, n);
        OG_SCALE_PIECE(s, first, last);
        for (int64_t k = first; k < last; k++)
            OG_SIMD_LANES(l) {
                float z = OG_PSI(v[k * OG_LANES + l], s[k], k);
                float next = before[l] * z;
                part[l] = window == 2 ? part[l] + next : OG_FMA(pair[l], z, part[l]);
                pair[l] = next;
                before[l] = z;
            }
        OG_EACH_LANE(l) total[l] += part[l];
    }
    memcpy(out, total, sizeof total);
}

static void OG_POOL(correlation1)(const float *restrict v, const float *restrict s, int64_t n, float *restrict out)
{
    OG_POOL(correlation)(2, v, s, n, out);
}

static void OG_POOL(correlation2)(const float *restrict v, const float *restrict s, int64_t n, float *restrict out)
{
    OG_POOL(correlation)(3, v, s, n, out);
}

/* `where` becomes the first input that has the maximum. Its choice is written without a branch, for which gcc would
 * store under a mask. Comparisons drop NaN, but the sum has it. */
static void OG_POOL(maximum)(
    const float *restrict v, const float *restrict s, int64_t n, float *restrict out, int32_t *restrict where)
{
    float largest[OG_LANES], sum[OG_LANES] = {0};
    int32_t at[OG_LANES] = {0};
    OG_EACH_LANE(l) largest[l] = OG_RANK(v[l], s[0]);
    for (int64_t k = 0; k < n; k++)
        OG_EACH_LANE(l) {
            float u = OG_RANK(v[k * OG_LANES + l], s[k]);
            int32_t better = -(int32_t)(u > largest[l]);
            at[l] ^= (at[l] ^ (int32_t)k) & better;
            largest[l] = u > largest[l] ? u : largest[l];
            sum[l] += u;
        }
    OG_EACH_LANE(l) out[l] = sum[l] != sum[l] ? sum[l] : OG_UNRANK(largest[l]);
    memcpy(where, at, sizeof at);
}

#undef OG_POOL
#undef OG_SCALE
#undef OG_SCALE_PIECE
#undef OG_PSI
#undef OG_ADD_PSI
#undef OG_RANK
#undef OG_UNRANK
