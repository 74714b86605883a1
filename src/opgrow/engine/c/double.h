/* exp and log in double precision, with the polynomials of fdlibm (Sun Microsystems, freely distributable); errors
 * below 1 unit in the last place. No fused operations: the same bits with and without such instructions. */
#ifndef OPGROW_DOUBLE_H
#define OPGROW_DOUBLE_H

#include "lanes.h"

#define OG_LN2_HIGH 6.93147180369123816490e-01
#define OG_LN2_LOW 1.90821492927058770002e-10

static inline double og_exp_double(double x)
{
    if (x != x)
        return x;
    if (x > 709.78)
        return (double)__builtin_inff();
    if (x < -708.0)
        return 0.0;
    double shifted = x * 1.44269504088896338700 + 6755399441055744.0; /* 1.5 * 2^52: rounds to an integer */
    double k = shifted - 6755399441055744.0;
    double high = x - k * OG_LN2_HIGH, low = k * OG_LN2_LOW;
    double r = high - low, t = r * r;
    double c = r
        - t * (1.66666666666666019037e-01
               + t * (-2.77777777770155933842e-03
                      + t * (6.61375632143793436117e-05
                             + t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
    double y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
    int64_t half = (int64_t)k / 2, rest = (int64_t)k - half;
    uint64_t first = (uint64_t)(half + 1023) << 52, second = (uint64_t)(rest + 1023) << 52;
    double a, b;
    memcpy(&a, &first, sizeof a);
    memcpy(&b, &second, sizeof b);
    return y * a * b;
}

/* For positive normal x; infinity and NaN stay. */
static inline double og_log_double(double x)
{
    if (!(x <= 1.79e308))
        return x;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint64_t shifted = bits - 0x3fe6a09e667f3bcdu; /* the root of 1/2 */
    int64_t exponent = (int64_t)shifted >> 52;
    uint64_t mantissa = (shifted & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu;
    double m;
    memcpy(&m, &mantissa, sizeof m);
    double f = m - 1.0, s = f / (2.0 + f), z = s * s, w = z * z, k = (double)exponent;
    double odd = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double even = z
        * (6.666666666666735130e-01
           + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    double half_square = 0.5 * f * f;
    return k * OG_LN2_HIGH - ((half_square - (s * (half_square + (odd + even)) + k * OG_LN2_LOW)) - f);
}

#endif
