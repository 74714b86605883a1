/* Random numbers that follow from a seed and a counter alone, so it does not matter who draws them, or when. */
#ifndef OPGROW_RANDOM_H
#define OPGROW_RANDOM_H

#include "lanes.h"

/* The output function of splitmix64: all bits of the result depend on all bits of the number. */
static inline uint64_t og_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t og_draw(uint64_t seed, uint64_t counter)
{
    return og_mix(og_mix(seed) + (counter + 1) * 0x9e3779b97f4a7c15u);
}

/* 32 random bits for a counter and a key of 64 bits: two rounds of a 32-bit mixing function, which has vector code. */
OG_INLINE uint32_t og_hash(uint32_t counter, uint32_t low, uint32_t high)
{
    uint32_t x = counter * 0x9e3779b1u + low;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x = (x ^ (x >> 16)) + high;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

/* keep [lane] = 0 with the probability `drop`, else 1 / (1 - drop), for one feature of the rows [lane]. */
OG_INLINE void og_keep(uint64_t key, const uint32_t *rows, float drop, float *keep)
{
    uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
    int32_t limit = (int32_t)(drop * 16777216.0f);
    float scale = 1.0f / (1.0f - drop);
    OG_EACH_LANE(l) keep[l] = (int32_t)(og_hash(rows[l], low, high) >> 8) < limit ? 0.0f : scale;
}

#endif
