/* The library's interface: which instruction sets it has, which of them this processor knows, and their functions.
 *
 * This file alone is compiled for the lowest common instruction set, so it can be run before anything is known.
 */
#include "table.h"

#include <stdint.h>
#include <string.h>

#if defined(_WIN32)
#define OG_EXPORT __declspec(dllexport)
#else
#define OG_EXPORT __attribute__((visibility("default")))
#endif

#define OG_VERSION 4

typedef struct {
    const char *name;
    const og_entry *table;
    int level;
} instruction_set;

#if defined(__x86_64__)
#include <cpuid.h>

extern const og_entry og_table_v2[], og_table_v3[], og_table_v4[];

static uint64_t enabled_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}

/* Levels 2, 3 and 4 as the x86-64 psABI defines them. */
static int level(void)
{
    uint32_t a, b, c, d, extended_c, features_b;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 1;
    uint32_t basic = c;
    if (!__get_cpuid(0x80000001u, &a, &b, &extended_c, &d))
        return 1;
    const uint32_t v2 = 1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23;
    if ((basic & v2) != v2 || !(extended_c & 1u))
        return 1;
    const uint32_t v3 = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29;
    if ((basic & v3) != v3 || !(extended_c & 1u << 5) || (enabled_registers() & 6u) != 6u)
        return 2;
    if (!__get_cpuid_count(7, 0, &a, &features_b, &c, &d))
        return 2;
    const uint32_t v3_more = 1u << 3 | 1u << 5 | 1u << 8;
    if ((features_b & v3_more) != v3_more)
        return 2;
    const uint32_t v4 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
    if ((features_b & v4) != v4 || (enabled_registers() & 0xe6u) != 0xe6u)
        return 3;
    return 4;
}

static const instruction_set sets[] = {{"v4", og_table_v4, 4}, {"v3", og_table_v3, 3}, {"v2", og_table_v2, 2}};

#else

#if defined(__aarch64__)
extern const og_entry og_table_aarch64[];
static const instruction_set sets[] = {{"aarch64", og_table_aarch64, 1}};
#else
extern const og_entry og_table_generic[];
static const instruction_set sets[] = {{"generic", og_table_generic, 1}};
#endif

static int level(void)
{
    return 1;
}

#endif

enum { N_SETS = sizeof sets / sizeof sets[0] };

/* Raised when a function changes its arguments. */
OG_EXPORT int64_t opgrow_engine_version(void)
{
    return OG_VERSION;
}

/* The name of an instruction set, best first; NULL beyond the last. */
OG_EXPORT const char *opgrow_engine_isa(int64_t number)
{
    return number >= 0 && number < N_SETS ? sets[number].name : NULL;
}

/* Whether this processor knows it. */
OG_EXPORT int64_t opgrow_engine_supported(int64_t number)
{
    return number >= 0 && number < N_SETS && sets[number].level <= level();
}

/* A function by its name; NULL where there is none. */
OG_EXPORT og_function opgrow_engine_function(int64_t number, const char *name)
{
    if (number < 0 || number >= N_SETS)
        return NULL;
    for (const og_entry *entry = sets[number].table; entry->name; entry++)
        if (!strcmp(entry->name, name))
            return entry->function;
    return NULL;
}
