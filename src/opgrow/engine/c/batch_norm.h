/* What batch norm divides by; the same as in engine/batch_norm.py. */
#ifndef OPGROW_BATCH_NORM_H
#define OPGROW_BATCH_NORM_H

/* The square root of a variance, none of which counts as zero. */
static inline float og_deviation(float variance)
{
    return __builtin_sqrtf(variance + 1e-8f);
}

#endif
