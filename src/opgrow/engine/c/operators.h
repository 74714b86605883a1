/* The operators of a neuron: formulas and derivatives, in single precision.
 *
 * Everything is plain arithmetic on one value, without calls of a mathematical library, so that compilers
 * turn loops over these functions into vector code, and so that every compiler and processor gives the same
 * bits: fused multiply-adds are written out (OG_FMA), and contraction must be off (-ffp-contract=off).
 *
 * NaN in, NaN out: bounds are written as comparisons that are false for NaN. Errors are at most 2 units in the
 * last place for exp, expm1, log and (|x| <= 1000) sin, and 2.5 for tanh, sigmoid and softplus.
 */
#ifndef OPGROW_OPERATORS_H
#define OPGROW_OPERATORS_H

#include <stdint.h>
#include <string.h>

#ifndef OG_FMA
#include <math.h>
#define OG_FMA(a, b, c) fmaf((a), (b), (c))
#endif

/* Arguments of the exponential in nodal operators are kept within this bound. */
#define OG_CLAMP 10.0f

static inline float og_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t og_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float og_abs(float x)
{
    return og_from_bits(og_bits(x) & 0x7fffffffu);
}

/* x within [low, high]; NaN stays. */
static inline float og_clamp(float x, float low, float high)
{
    x = low > x ? low : x;
    return high < x ? high : x;
}

/* --- Elementary functions -------------------------------------------------------------------------------- */

/* exp(r) - 1 for |r| <= log(2) / 2; relative error 1.4e-8 beside rounding. */
static inline float og_expm1_reduced(float r)
{
    float q = OG_FMA(1.38707308e-3f, r, 8.36627744e-3f);
    q = OG_FMA(q, r, 4.16674353e-2f);
    q = OG_FMA(q, r, 1.66665465e-1f);
    q = OG_FMA(q, r, 4.9999997e-1f);
    return OG_FMA(r * r, q, r);
}

/* x = n log(2) + r: 2^n is returned, r stored. Adding 1.5 * 2^23 rounds to an integer, and with the exponent's
 * bias added too, the low bits are those of the power. |n| must be below 127. */
static inline float og_split_power(float x, float *r)
{
    float shifted = OG_FMA(x, 1.44269504f, 12583039.0f);
    float n = shifted - 12583039.0f;
    *r = OG_FMA(n, 1.90465421e-9f, OG_FMA(n, -0.693147182f, x));
    return og_from_bits(og_bits(shifted) << 23);
}

/* exp(x) and exp(x) - 1 for |x| <= 87; the caller sees to the bounds. */
static inline float og_exp_bounded(float x)
{
    float r, power = og_split_power(x, &r);
    return OG_FMA(power, og_expm1_reduced(r), power);
}

static inline float og_expm1_bounded(float x)
{
    float r, power = og_split_power(x, &r);
    return OG_FMA(power, og_expm1_reduced(r), power - 1.0f);
}

/* exp(x) for every x. The power is applied in two halves, each of which is a normal number. */
static inline float og_exp(float x)
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
static inline float og_log1p_unit(float t)
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
static inline float og_log(float x)
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

/* x = n pi + r with |r| <= pi / 2: r is returned, the sign of (-1)^n stored as a bit. Where neighbouring numbers
 * are too far apart for that (|x| > 1.3e7), r is a bound, and sines stay within [-1, 1]. */
static inline float og_reduce_turns(float x, uint32_t *sign)
{
    float shifted = OG_FMA(x, 0.318309886f, 12582912.0f);
    float n = shifted - 12582912.0f;
    float r = OG_FMA(n, 8.74227766e-8f, OG_FMA(n, -3.14159274f, x));
    *sign = og_bits(shifted) << 31;
    return og_clamp(r, -1.57079637f, 1.57079637f);
}

static inline float og_sin_reduced(float r)
{
    float u = r * r;
    float q = OG_FMA(2.60610273e-6f, u, -1.98097783e-4f);
    q = OG_FMA(q, u, 8.33306927e-3f);
    q = OG_FMA(q, u, -1.66666597e-1f);
    return OG_FMA(r * u, q, r);
}

static inline float og_cos_reduced(float r)
{
    float u = r * r;
    float q = OG_FMA(-2.62090197e-7f, u, 2.47701792e-5f);
    q = OG_FMA(q, u, -1.38885854e-3f);
    q = OG_FMA(q, u, 4.16666567e-2f);
    return OG_FMA(u * u, q, OG_FMA(u, -0.5f, 1.0f));
}

static inline float og_sin(float x)
{
    uint32_t sign;
    float r = og_reduce_turns(x, &sign);
    return og_from_bits(og_bits(og_sin_reduced(r)) ^ sign);
}

static inline float og_cos(float x)
{
    uint32_t sign;
    float r = og_reduce_turns(x, &sign);
    return og_from_bits(og_bits(og_cos_reduced(r)) ^ sign);
}

/* --- Nodal operators: psi(y, w), and psi with its derivatives by the weight and by the input --------------- */

/* 1 where clamping leaves x alone and passes its gradient, else 0. */
static inline float og_inside(float x)
{
    return og_abs(x) <= OG_CLAMP ? 1.0f : 0.0f;
}

static inline float og_exp_clamped(float x)
{
    return og_exp_bounded(og_clamp(x, -OG_CLAMP, OG_CLAMP));
}

static inline float og_expm1_clamped(float x)
{
    return og_expm1_bounded(og_clamp(x, -OG_CLAMP, OG_CLAMP));
}

static inline float og_multiplication(float y, float w)
{
    return w * y;
}

static inline void og_multiplication_slopes(float y, float w, float *z, float *by_weight, float *by_input)
{
    *z = w * y;
    *by_weight = y;
    *by_input = w;
}

static inline float og_exponential(float y, float w)
{
    return og_expm1_clamped(w * y);
}

static inline void og_exponential_slopes(float y, float w, float *z, float *by_weight, float *by_input)
{
    float a = w * y;
    float value = og_expm1_clamped(a);
    float slope = (value + 1.0f) * og_inside(a);
    *z = value;
    *by_weight = y * slope;
    *by_input = w * slope;
}

static inline float og_harmonic(float y, float w)
{
    return og_sin(w * y);
}

static inline void og_harmonic_slopes(float y, float w, float *z, float *by_weight, float *by_input)
{
    uint32_t sign;
    float r = og_reduce_turns(w * y, &sign);
    float cosine = og_from_bits(og_bits(og_cos_reduced(r)) ^ sign);
    *z = og_from_bits(og_bits(og_sin_reduced(r)) ^ sign);
    *by_weight = y * cosine;
    *by_input = w * cosine;
}

static inline float og_quadratic(float y, float w)
{
    return w * (y * y);
}

static inline void og_quadratic_slopes(float y, float w, float *z, float *by_weight, float *by_input)
{
    *z = w * (y * y);
    *by_weight = y * y;
    *by_input = (w + w) * y;
}

static inline float og_gaussian(float y, float w)
{
    return w * og_exp_clamped(-(w * (y * y)));
}

static inline void og_gaussian_slopes(float y, float w, float *z, float *by_weight, float *by_input)
{
    float a = w * (y * y);
    float e = og_exp_clamped(-a);
    float inside = og_inside(a);
    *z = w * e;
    *by_weight = e * OG_FMA(-a, inside, 1.0f);
    *by_input = -2.0f * (w * y) * (w * e) * inside;
}

static inline float og_dog(float y, float w)
{
    return (w * y) * og_exp_clamped(-(w * (y * y)));
}

static inline void og_dog_slopes(float y, float w, float *z, float *by_weight, float *by_input)
{
    float a = w * (y * y);
    float e = og_exp_clamped(-a);
    float inner = a * og_inside(a);
    *z = (w * y) * e;
    *by_weight = (y * e) * (1.0f - inner);
    *by_input = (w * e) * OG_FMA(-2.0f, inner, 1.0f);
}

static inline float og_pygop_quadratic(float y, float w)
{
    float z = w * og_clamp(y, -OG_CLAMP, OG_CLAMP);
    return z * z;
}

static inline void og_pygop_quadratic_slopes(float y, float w, float *z, float *by_weight, float *by_input)
{
    float c = og_clamp(y, -OG_CLAMP, OG_CLAMP);
    float a = w * c;
    *z = a * a;
    *by_weight = 2.0f * a * c;
    *by_input = 2.0f * a * w * og_inside(y);
}

static inline float og_pygop_dog(float y, float w)
{
    float c = og_clamp(y, -OG_CLAMP, OG_CLAMP);
    return (w * y) * og_exp_clamped(-(w * (c * c)));
}

static inline void og_pygop_dog_slopes(float y, float w, float *z, float *by_weight, float *by_input)
{
    float c = og_clamp(y, -OG_CLAMP, OG_CLAMP);
    float a = w * (c * c);
    float e = og_exp_clamped(-a);
    float inner = a * og_inside(a);
    *z = (w * y) * e;
    *by_weight = (y * e) * (1.0f - inner);
    *by_input = (w * e) * OG_FMA(-2.0f * og_inside(y), inner, 1.0f);
}

/* --- Activations: f(x) and its slope, without 1 - f(x), which loses all digits where f saturates ------------ */

static inline float og_sigmoid(float x)
{
    float e = og_exp_bounded(og_clamp(-og_abs(x), -87.0f, 0.0f));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static inline float og_sigmoid_slope(float x)
{
    float e = og_exp_bounded(og_clamp(-og_abs(x), -87.0f, 0.0f));
    float s = 1.0f / (1.0f + e);
    return e * s * s;
}

static inline float og_tanh(float x)
{
    float e = og_expm1_bounded(2.0f * og_clamp(x, -10.0f, 10.0f));
    return e / (e + 2.0f);
}

static inline float og_tanh_slope(float x)
{
    return 4.0f * og_sigmoid_slope(x + x);
}

static inline float og_relu(float x)
{
    return x < 0.0f ? 0.0f : x;
}

static inline float og_relu_slope(float x)
{
    return x > 0.0f ? 1.0f : 0.0f;
}

/* log(1 + exp(-x)) = max(-x, 0) + log1p(exp(-|x|)) */
static inline float og_softplus(float x)
{
    float e = og_exp_bounded(og_clamp(-og_abs(x), -87.0f, 0.0f));
    return (x < 0.0f ? -x : 0.0f) + og_log1p_unit(e);
}

static inline float og_softplus_slope(float x)
{
    return -og_sigmoid(-x);
}

static inline float og_inverse_absolute(float x)
{
    return x / (1.0f + og_abs(x));
}

static inline float og_inverse_absolute_slope(float x)
{
    float s = 1.0f / (1.0f + og_abs(x));
    return s * s;
}

static inline float og_elu(float x)
{
    float below = og_expm1_bounded(og_clamp(x, -40.0f, 0.0f));
    return x > 0.0f ? x : below;
}

static inline float og_elu_slope(float x)
{
    float below = og_exp_bounded(og_clamp(x, -87.0f, 0.0f));
    return x >= 0.0f ? 1.0f : below;
}

static inline float og_pygop_softplus(float x)
{
    return og_softplus(og_clamp(x, -OG_CLAMP, OG_CLAMP));
}

static inline float og_pygop_softplus_slope(float x)
{
    return -og_sigmoid(-x) * og_inside(x);
}

static inline float og_identity(float x)
{
    return x;
}

static inline float og_identity_slope(float x)
{
    (void)x;
    return 1.0f;
}

#endif
