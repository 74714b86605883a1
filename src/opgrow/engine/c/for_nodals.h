/* Includes OG_BODY once for each nodal operator, which OG_NODAL names. */
#define OG_NODAL multiplication
#include OG_BODY
#undef OG_NODAL
#define OG_NODAL exponential
#include OG_BODY
#undef OG_NODAL
#define OG_NODAL harmonic
#include OG_BODY
#undef OG_NODAL
#define OG_NODAL quadratic
#include OG_BODY
#undef OG_NODAL
#define OG_NODAL gaussian
#include OG_BODY
#undef OG_NODAL
#define OG_NODAL dog
#include OG_BODY
#undef OG_NODAL
#define OG_NODAL pygop_quadratic
#include OG_BODY
#undef OG_NODAL
#define OG_NODAL pygop_dog
#include OG_BODY
#undef OG_NODAL
