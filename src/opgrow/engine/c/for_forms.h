/* Includes OG_BODY once for each nodal operator in each of its forms: far, for all weights, and the shorter near one, for
 * weights that og_is_near says. OG_NEAR as in operators.h; OG_WAY ends the names. */
#define OG_NEAR 0
#define OG_WAY _far
#include "for_nodals.h"
#undef OG_NEAR
#undef OG_WAY
#define OG_NEAR 1
#define OG_WAY _near
#include "for_nodals.h"
#undef OG_NEAR
#undef OG_WAY
