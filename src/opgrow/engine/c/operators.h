/* The operators of a neuron: formulas and derivatives, in single precision.
 *
 * Everything is plain arithmetic on one value, without calls of a mathematical library, so that compilers
 * turn loops over these functions into vector code, and so that every compiler and processor gives the same
 * bits: fused multiply-adds are written out (OG_FMA), and contraction must be off (-ffp-contract=off).
 *
 * NaN in, NaN out: bounds are written as comparisons that are false for NaN. Errors are at most 2 units in the
 * last place for exp and log, and 2.5 for tanh, sigmoid and softplus; nodal operators add those of their argument.
 */
#ifndef OPGROW_OPERATORS_H
#define OPGROW_OPERATORS_H

#include <stdint.h>
#include <string.h>

#ifndef OG_FMA
#include <math.h>
#define OG_FMA(a, b, c) fmaf((a), (b), (c))
#endif

/* A call in a loop over lanes would keep it from being vectorised, whatever the compiler thinks of the size. */
#ifndef OG_INLINE
#if defined(__GNUC__)
#define OG_INLINE static inline __attribute__((always_inline))
#else
#define OG_INLINE static inline
#endif
#endif

/* Arguments of the exponential in nodal operators are kept within this bound. */
#define OG_CLAMP 10.0f

OG_INLINE float og_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

OG_INLINE uint32_t og_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

OG_INLINE float og_abs(float x)
{
    return og_from_bits(og_bits(x) & 0x7fffffffu);
}

/* x within [low, high]; NaN stays. */
OG_INLINE float og_clamp(float x, float low, float high)
{
    x = low > x ? low : x;
    return high < x ? high : x;
}

/* x within [-bound, bound]; NaN stays. Without a second comparison, which gcc would turn into three cases. */
OG_INLINE float og_within(float x, float bound)
{
    float size = og_abs(x);
    size = bound < size ? bound : size;
    return og_from_bits(og_bits(size) | (og_bits(x) & 0x80000000u));
}

/* --- Elementary functions -------------------------------------------------------------------------------- */

/* exp(r) - 1 for |r| <= log(2) / 2; relative error 1.4e-8 beside rounding. */
OG_INLINE float og_expm1_reduced(float r)
{
    float q = OG_FMA(1.38707308e-3f, r, 8.36627744e-3f);
    q = OG_FMA(q, r, 4.16674353e-2f);
    q = OG_FMA(q, r, 1.66665465e-1f);
    q = OG_FMA(q, r, 4.9999997e-1f);
    return OG_FMA(r * r, q, r);
}

/* x = n log(2) + r: 2^n is returned, r stored. Adding 1.5 * 2^23 rounds to an integer, and with the exponent's
 * bias added too, the low bits are those of the power. |n| must be below 127. */
OG_INLINE float og_split_power(float x, float *r)
{
    float shifted = OG_FMA(x, 1.44269504f, 12583039.0f);
    float n = shifted - 12583039.0f;
    *r = OG_FMA(n, 1.90465421e-9f, OG_FMA(n, -0.693147182f, x));
    return og_from_bits(og_bits(shifted) << 23);
}

/* exp(x) and exp(x) - 1 for |x| <= 87; the caller sees to the bounds. */
OG_INLINE float og_exp_bounded(float x)
{
    float r, power = og_split_power(x, &r);
    return OG_FMA(power, og_expm1_reduced(r), power);
}

OG_INLINE float og_expm1_bounded(float x)
{
    float r, power = og_split_power(x, &r);
    return OG_FMA(power, og_expm1_reduced(r), power - 1.0f);
}

/* exp(x) for every x. The power is applied in two halves, each of which is a normal number. */
OG_INLINE float og_exp(float x)
{
    float bounded = og_clamp(x, -104.0f, 89.0f);
    float shifted = OG_FMA(bounded, 1.44269504f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = OG_FMA(n, 1.90465421e-9f, OG_FMA(n, -0.693147182f, bounded));
    int32_t whole = (int32_t)(og_bits(shifted) - 0x4b400000u);
    int32_t half = whole >> 1;
    float low = og_from_bits((uint32_t)(half + 127) << 23);
    float high = og_from_bits((uint32_t)(whole - half + 127) << 23);
    float p = og_expm1_reduced(r);
    return OG_FMA(low, p, low) * high;
}

/* log(1 + t) for 0 <= t <= 1, as 2 atanh(t / (2 + t)). */
OG_INLINE float og_log1p_unit(float t)
{
    float s = t / (2.0f + t);
    float u = s * s;
    float q = OG_FMA(1.40230581e-1f, u, 1.39978588e-1f);
    q = OG_FMA(q, u, 2.00109184e-1f);
    q = OG_FMA(q, u, 3.33332062e-1f);
    s = s + s;
    return OG_FMA(s * u, q, s);
}

/* log(x) for positive normal x; infinity and NaN stay. */
OG_INLINE float og_log(float x)
{
    uint32_t shifted = og_bits(x) - 0x3f3504f3u;
    int32_t exponent = (int32_t)shifted >> 23;
    float m = og_from_bits((shifted & 0x007fffffu) + 0x3f3504f3u);
    float s = (m - 1.0f) / (m + 1.0f);
    float u = s * s;
    float q = OG_FMA(1.49469763e-1f, u, 1.99883908e-1f);
    q = OG_FMA(q, u, 3.3333391e-1f);
    float n = (float)exponent;
    float small = OG_FMA(n, -1.90465421e-9f, OG_FMA((s + s) * u, q, 0.0f));
    float value = OG_FMA(n, 0.693147182f, (s + s) + small);
    return x < 3.4028235e38f ? value : x;
}

/* --- Nodal operators: psi(y, w), and psi with its derivatives by the weight and by the input ---------------
 *
 * `near` is a constant where these are inlined: 1 where the caller knows (og_reach) that arguments need neither
 * bounds nor clamping. It leaves out operations that would change nothing, so the bits are the same.
 *
 * Exponents are kept in units of log(2) and angles in half turns, with the factor applied to the weight: an integer
 * is then split off without error. That product is `scaled`, from og_..._scale(w): callers make it once for all rows.
 */
#define OG_LOG2E 1.44269504f
#define OG_CLAMP2 (OG_CLAMP * OG_LOG2E)
#define OG_INVERSE_PI 0.318309886f

/* 2^f - 1 for |f| <= 1/2; relative error 1.3e-8 beside rounding. */
OG_INLINE float og_exp2m1_reduced(float f)
{
    float q = OG_FMA(1.53845773e-4f, f, 1.33874209e-3f);
    q = OG_FMA(q, f, 9.6183056e-3f);
    q = OG_FMA(q, f, 5.55036739e-2f);
    q = OG_FMA(q, f, 2.40226492e-1f);
    q = OG_FMA(q, f, 6.93147182e-1f);
    return q * f;
}

/* 2^n with t = n + f; see og_split_power. */
OG_INLINE float og_split_power2(float t, float *f)
{
    float shifted = t + 12583039.0f;
    *f = t - (shifted - 12583039.0f);
    return og_from_bits(og_bits(shifted) << 23);
}

/* exp(x) and exp(x) - 1 for t = x log2(e), with x clamped to [-10, 10]. */
OG_INLINE float og_exp2_clamped(float t, int near)
{
    float f, power = og_split_power2(near ? t : og_within(t, OG_CLAMP2), &f);
    return OG_FMA(power, og_exp2m1_reduced(f), power);
}

OG_INLINE float og_exp2m1_clamped(float t, int near)
{
    float f, power = og_split_power2(near ? t : og_within(t, OG_CLAMP2), &f);
    return OG_FMA(power, og_exp2m1_reduced(f), power - 1.0f);
}

/* 1 where clamping leaves t alone and passes its gradient, else 0. */
OG_INLINE float og_inside2(float t, int near)
{
    return near || og_abs(t) <= OG_CLAMP2 ? 1.0f : 0.0f;
}

OG_INLINE float og_inside(float x)
{
    return og_abs(x) <= OG_CLAMP ? 1.0f : 0.0f;
}

/* t = n + f, |f| <= 1/2: f is returned, the sign of (-1)^n stored as a bit. Beyond 2^22 half turns, where numbers are
 * too far apart for that, f is a bound. */
OG_INLINE float og_reduce_turns(float t, int near, uint32_t *sign)
{
    float shifted = t + 12582912.0f, f = t - (shifted - 12582912.0f);
    *sign = og_bits(shifted) << 31;
    return near ? f : og_within(f, 0.5f);
}

/* sin(pi f), relative error 2.8e-8, and cos(pi f), absolute error 5.4e-8, for |f| <= 1/2. */
OG_INLINE float og_sin_half_turns(float f)
{
    float u = f * f;
    float q = OG_FMA(7.96293616e-2f, u, -5.99342644e-1f);
    q = OG_FMA(q, u, 2.55025697f);
    q = OG_FMA(q, u, -5.16772032f);
    q = OG_FMA(q, u, 3.14159274f);
    return q * f;
}

OG_INLINE float og_cos_half_turns(float f)
{
    float u = f * f;
    float q = OG_FMA(2.20006958e-1f, u, -1.33206236f);
    q = OG_FMA(q, u, 4.05844736f);
    q = OG_FMA(q, u, -4.93479538f);
    return OG_FMA(q, u, 1.0f);
}

/* sin(pi t) and cos(pi t) */
OG_INLINE float og_sin_turns(float t, int near)
{
    uint32_t sign;
    float f = og_reduce_turns(t, near, &sign);
    return og_from_bits(og_bits(og_sin_half_turns(f)) ^ sign);
}

OG_INLINE float og_cos_turns(float t, int near)
{
    uint32_t sign;
    float f = og_reduce_turns(t, near, &sign);
    return og_from_bits(og_bits(og_cos_half_turns(f)) ^ sign);
}

OG_INLINE float og_multiplication_scale(float w)
{
    return w;
}

OG_INLINE float og_multiplication(float y, float w, float scaled, int near)
{
    (void)scaled, (void)near;
    return w * y;
}

OG_INLINE void og_multiplication_slopes(float y, float w, int near, float *z, float *by_weight, float *by_input)
{
    (void)near;
    *z = w * y;
    *by_weight = y;
    *by_input = w;
}

OG_INLINE float og_exponential_scale(float w)
{
    return w * OG_LOG2E;
}

OG_INLINE float og_exponential(float y, float w, float scaled, int near)
{
    (void)w;
    return og_exp2m1_clamped(scaled * y, near);
}

OG_INLINE void og_exponential_slopes(float y, float w, int near, float *z, float *by_weight, float *by_input)
{
    float t = (w * OG_LOG2E) * y;
    float value = og_exp2m1_clamped(t, near);
    float slope = near ? value + 1.0f : (value + 1.0f) * og_inside2(t, near);
    *z = value;
    *by_weight = y * slope;
    *by_input = w * slope;
}

OG_INLINE float og_harmonic_scale(float w)
{
    return w * OG_INVERSE_PI;
}

OG_INLINE float og_harmonic(float y, float w, float scaled, int near)
{
    (void)w;
    return og_sin_turns(scaled * y, near);
}

OG_INLINE void og_harmonic_slopes(float y, float w, int near, float *z, float *by_weight, float *by_input)
{
    float t = (w * OG_INVERSE_PI) * y;
    float cosine = og_cos_turns(t, near);
    *z = og_sin_turns(t, near);
    *by_weight = y * cosine;
    *by_input = w * cosine;
}

OG_INLINE float og_quadratic_scale(float w)
{
    return w;
}

OG_INLINE float og_quadratic(float y, float w, float scaled, int near)
{
    (void)scaled, (void)near;
    return w * (y * y);
}

OG_INLINE void og_quadratic_slopes(float y, float w, int near, float *z, float *by_weight, float *by_input)
{
    (void)near;
    *z = w * (y * y);
    *by_weight = y * y;
    *by_input = (w + w) * y;
}

OG_INLINE float og_gaussian_scale(float w)
{
    return w * -OG_LOG2E;
}

OG_INLINE float og_gaussian(float y, float w, float scaled, int near)
{
    return w * og_exp2_clamped(scaled * (y * y), near);
}

OG_INLINE void og_gaussian_slopes(float y, float w, int near, float *z, float *by_weight, float *by_input)
{
    float t = (w * -OG_LOG2E) * (y * y);
    float e = og_exp2_clamped(t, near);
    float inside = og_inside2(t, near);
    *z = w * e;
    *by_weight = e * OG_FMA(-w * inside, y * y, 1.0f);
    *by_input = ((-2.0f * w) * inside) * (y * (w * e));
}

OG_INLINE float og_dog_scale(float w)
{
    return w * -OG_LOG2E;
}

OG_INLINE float og_dog(float y, float w, float scaled, int near)
{
    return (w * y) * og_exp2_clamped(scaled * (y * y), near);
}

OG_INLINE void og_dog_slopes(float y, float w, int near, float *z, float *by_weight, float *by_input)
{
    float t = (w * -OG_LOG2E) * (y * y);
    float e = og_exp2_clamped(t, near);
    float inner = (w * og_inside2(t, near)) * (y * y);
    *z = (w * y) * e;
    *by_weight = (y * e) * (1.0f - inner);
    *by_input = (w * e) * OG_FMA(-2.0f, inner, 1.0f);
}

OG_INLINE float og_pygop_quadratic_scale(float w)
{
    return w;
}

OG_INLINE float og_pygop_quadratic(float y, float w, float scaled, int near)
{
    (void)scaled, (void)near;
    float z = w * og_within(y, OG_CLAMP);
    return z * z;
}

OG_INLINE void og_pygop_quadratic_slopes(float y, float w, int near, float *z, float *by_weight, float *by_input)
{
    (void)near;
    float c = og_within(y, OG_CLAMP);
    float a = w * c;
    *z = a * a;
    *by_weight = 2.0f * a * c;
    *by_input = 2.0f * a * w * og_inside(y);
}

OG_INLINE float og_pygop_dog_scale(float w)
{
    return w * -OG_LOG2E;
}

OG_INLINE float og_pygop_dog(float y, float w, float scaled, int near)
{
    (void)near;
    float c = og_within(y, OG_CLAMP);
    return (w * y) * og_exp2_clamped(scaled * (c * c), 0);
}

OG_INLINE void og_pygop_dog_slopes(float y, float w, int near, float *z, float *by_weight, float *by_input)
{
    (void)near;
    float c = og_within(y, OG_CLAMP);
    float t = (w * -OG_LOG2E) * (c * c);
    float e = og_exp2_clamped(t, 0);
    float inner = (w * og_inside2(t, 0)) * (c * c);
    *z = (w * y) * e;
    *by_weight = (y * e) * (1.0f - inner);
    *by_input = (w * e) * OG_FMA(-2.0f * og_inside(y), inner, 1.0f);
}

/* --- Activations: f(x) and its slope, without 1 - f(x), which loses all digits where f saturates ------------ */

/* exp(-|x|), not below exp(-87) */
OG_INLINE float og_exp_of_minus(float x)
{
    float a = og_abs(x);
    return og_exp_bounded(-(87.0f < a ? 87.0f : a));
}

OG_INLINE float og_sigmoid(float x)
{
    float e = og_exp_of_minus(x);
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

OG_INLINE float og_sigmoid_slope(float x)
{
    float e = og_exp_of_minus(x);
    float s = 1.0f / (1.0f + e);
    return e * s * s;
}

OG_INLINE float og_tanh(float x)
{
    float a = og_abs(x);
    float e = og_expm1_bounded(-2.0f * (10.0f < a ? 10.0f : a));
    return og_from_bits(og_bits(-e / (e + 2.0f)) | (og_bits(x) & 0x80000000u));
}

OG_INLINE float og_tanh_slope(float x)
{
    return 4.0f * og_sigmoid_slope(x + x);
}

OG_INLINE float og_relu(float x)
{
    return x < 0.0f ? 0.0f : x;
}

OG_INLINE float og_relu_slope(float x)
{
    return x > 0.0f ? 1.0f : 0.0f;
}

/* log(1 + exp(-x)) = max(-x, 0) + log1p(exp(-|x|)) */
OG_INLINE float og_softplus(float x)
{
    float e = og_exp_of_minus(x);
    return (x < 0.0f ? -x : 0.0f) + og_log1p_unit(e);
}

OG_INLINE float og_softplus_slope(float x)
{
    return -og_sigmoid(-x);
}

OG_INLINE float og_inverse_absolute(float x)
{
    return x / (1.0f + og_abs(x));
}

OG_INLINE float og_inverse_absolute_slope(float x)
{
    float s = 1.0f / (1.0f + og_abs(x));
    return s * s;
}

OG_INLINE float og_elu(float x)
{
    float below = og_expm1_bounded(og_clamp(x, -40.0f, 0.0f));
    return x > 0.0f ? x : below;
}

OG_INLINE float og_elu_slope(float x)
{
    float below = og_exp_bounded(og_clamp(x, -87.0f, 0.0f));
    return x >= 0.0f ? 1.0f : below;
}

OG_INLINE float og_pygop_softplus(float x)
{
    return og_softplus(og_within(x, OG_CLAMP));
}

OG_INLINE float og_pygop_softplus_slope(float x)
{
    return -og_sigmoid(-x) * og_inside(x);
}

OG_INLINE float og_identity(float x)
{
    return x;
}

OG_INLINE float og_identity_slope(float x)
{
    (void)x;
    return 1.0f;
}

#endif
