/* What one input adds to the pools of a neuron; the same for all pools at once and for each alone. */
#ifndef OPGROW_POOL_STEPS_H
#define OPGROW_POOL_STEPS_H

#include "pools.h"

/* t + psi(y, w). Products are fused into the sum; other values are rounded before they are added. */
#define OG_ADD(nodal) \
    OG_INLINE float add_##nodal(float t, float y, float w, float scaled, int near) \
    { \
        int code = code_##nodal; \
        return code == OG_MULTIPLICATION ? OG_FMA(w, y, t) \
            : code == OG_QUADRATIC       ? OG_FMA(w, y * y, t) \
                                         : t + og_##nodal(y, w, scaled, near); \
    }
OG_FOR_NODALS(OG_ADD)

/* The largest psi belongs to the largest rank, and `unrank` makes it of that. Where psi grows with the product of weight
 * and input, that product will do, and psi is computed once. */
#define OG_RANK_BY_VALUE(nodal) \
    OG_INLINE float rank_##nodal(float y, float w, float scaled, int near) \
    { \
        return og_##nodal(y, w, scaled, near); \
    } \
    OG_INLINE float unrank_##nodal(float u) \
    { \
        return u; \
    }
OG_RANK_BY_VALUE(multiplication)
OG_RANK_BY_VALUE(harmonic)
OG_RANK_BY_VALUE(quadratic)
OG_RANK_BY_VALUE(gaussian)
OG_RANK_BY_VALUE(dog)
OG_RANK_BY_VALUE(pygop_quadratic)
OG_RANK_BY_VALUE(pygop_dog)

OG_INLINE float rank_exponential(float y, float w, float scaled, int near)
{
    (void)w, (void)near;
    return scaled * y;
}

OG_INLINE float unrank_exponential(float u)
{
    return og_exp2m1_clamped(u, 0);
}

#endif
