/* psi of one nodal operator, included by all_pools.c once for each operator, with OG_NEAR and OG_WAY as in
 * pools_body.h: z [input][lane] = psi(y [input][lane], w [input]). */
static void OG_JOIN(OG_JOIN(values_, OG_NODAL), OG_WAY)(
    const float *restrict y, const float *restrict w, int64_t n, float *restrict z)
{
    for (int64_t k = 0; k < n; k++)
        OG_EACH_LANE(l) z[k * OG_LANES + l] = OG_JOIN(og_, OG_NODAL)(y[k * OG_LANES + l], w[k], OG_NEAR);
}
