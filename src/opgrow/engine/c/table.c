/* See table.h. */
#include "table.h"
#include "blocks.h"

#define OG_ENTRY(name) {#name, (og_function)OG_NAME(og_##name)}

extern const og_entry OG_NAME(og_table)[];
const og_entry OG_NAME(og_table)[] = {
    OG_ENTRY(features_room),
    OG_ENTRY(features),
    OG_ENTRY(search_features_room),
    OG_ENTRY(search_features),
    OG_ENTRY(gradients_room),
    OG_ENTRY(gradients),
    OG_ENTRY(elementary),
    {0, 0},
};
