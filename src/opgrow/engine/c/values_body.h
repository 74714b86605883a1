/* psi of one nodal operator, included by all_pools.c once for each operator, with OG_NEAR and OG_WAY as in
 * pools_body.h: z [input][lane] = psi(y [input][lane], w [input]) for at most OG_TERMS inputs. If the largest psi is not
 * sought among those values, largest [lane] becomes the largest rank so far. */
static void OG_JOIN(OG_JOIN(values_, OG_NODAL), OG_WAY)(
    const float *restrict y, const float *restrict w, int64_t n, float *restrict z, float *restrict largest)
{
    float scaled[OG_TERMS], most[OG_LANES];
    for (int64_t k = 0; k < n; k++)
        scaled[k] = OG_JOIN(OG_JOIN(og_, OG_NODAL), _scale)(w[k]);
    OG_EACH_LANE(l) most[l] = largest[l];
    for (int64_t k = 0; k < n; k++)
        OG_SIMD_LANES(l) {
            float input = y[k * OG_LANES + l];
            z[k * OG_LANES + l] = OG_JOIN(og_, OG_NODAL)(input, w[k], scaled[k], OG_NEAR);
            if (OG_JOIN(code_, OG_NODAL) == (int)OG_EXPONENTIAL) {
                float rank = rank_exponential(input, w[k], scaled[k], OG_NEAR);
                most[l] = rank > most[l] ? rank : most[l];
            }
        }
    OG_EACH_LANE(l) largest[l] = most[l];
}
