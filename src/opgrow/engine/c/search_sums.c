/* The sums that decide between candidates of the search; see search_sums.h.
 *
 * Accepted features, targets and a column of ones are packed once for all candidates, some blocks of rows at a time so
 * that they stay in the second cache. The last columns of them go into lanes that a candidate's last group leaves free,
 * if there are enough.
 */
#include "search_sums.h"
#include "products.h"

/* Blocks of rows for which the columns that all candidates share are packed at once. */
#define BLOCKS 4

typedef struct {
    int64_t m, shared; /* columns of a candidate, and those that all candidates share */
    int64_t own_groups, shared_groups;
    int64_t rest; /* shared columns in the candidate's last group, from lane m % OG_LANES on */
    int64_t width; /* columns of the sums of one candidate: its own, then the shared ones */
} Layout;

static Layout layout_of(const og_search_data *data)
{
    Layout at = {.m = data->n_neurons, .shared = data->n_accepted + data->n_targets + 1};
    int64_t spare = (OG_LANES - at.m % OG_LANES) % OG_LANES, last = at.shared % OG_LANES;
    at.rest = last <= spare ? last : 0;
    at.own_groups = og_tiles(at.m);
    at.shared_groups = og_tiles(at.shared - at.rest);
    at.width = at.m + at.shared;
    return at;
}

static int64_t floats_of(const Layout *at)
{
    return OG_GROUP * (BLOCKS * (at->shared_groups + 1) + 2 * at->own_groups);
}

int64_t OG_NAME(og_search_sums_room)(const og_search_data *data)
{
    Layout at = layout_of(data);
    return 2 * data->n_candidates * at.m * at.width + floats_of(&at);
}

static float shared_value(const og_search_data *data, int64_t row, int64_t column)
{
    if (column < data->n_accepted)
        return data->accepted[row * data->n_accepted + column];
    column -= data->n_accepted;
    return column < data->n_targets ? data->target[row * data->n_targets + column] : 1.0f;
}

/* Groups of the shared columns, then one with those that go to the candidates, in the lanes that they will have there,
 * for one block of rows. What is not written is zero. */
static void pack_shared(const og_search_data *data, const Layout *at, int64_t start, int64_t rows, float *out)
{
    int64_t first = 0;
    for (int64_t g = 0; g <= at->shared_groups; g++, out += OG_GROUP) {
        int64_t here = g < at->shared_groups ? og_min(OG_LANES, at->shared - at->rest - first) : at->rest;
        int64_t lane = g < at->shared_groups ? 0 : at->m % OG_LANES;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < here; c++)
                out[r * OG_LANES + lane + c] = shared_value(data, start + r, first + c);
        first += here;
    }
}

/* OG_LANES rows from `start` on of n_columns standardised features, and zeros: out [row][lane] */
static void pack_square(
    const og_search_data *data, int64_t column, int64_t n_columns, int64_t start, float *restrict out)
{
    float square[OG_LANES * OG_LANES] = {0};
    int64_t rows = og_min(OG_LANES, data->n_rows - start);
    for (int64_t c = 0; c < n_columns; c++) {
        const float *restrict h = data->h + (column + c) * data->n_rows + start;
        float shift = data->shift[column + c], scale = data->scale[column + c];
        if (rows == OG_LANES)
            OG_EACH_LANE(l) square[c * OG_LANES + l] = (h[l] - shift) * scale;
        else
            for (int64_t l = 0; l < rows; l++)
                square[c * OG_LANES + l] = (h[l] - shift) * scale;
    }
    og_transpose_lanes(square, OG_LANES, out, OG_LANES);
}

/* The standardised features of one candidate, its last group completed by shared columns. */
static void pack_own(
    const og_search_data *data, const Layout *at, int64_t candidate, int64_t start, int64_t rows, const float *rest,
    float *restrict out)
{
    for (int64_t g = 0; g < at->own_groups; g++)
        for (int64_t r = 0; r < rows; r += OG_LANES)
            pack_square(
                data, candidate * at->m + g * OG_LANES, og_min(OG_LANES, at->m - g * OG_LANES), start + r,
                out + g * OG_GROUP + r * OG_LANES);
    float *last = out + (at->own_groups - 1) * OG_GROUP;
    /* One of both is zero in all its bits. */
    for (int64_t j = 0; j < rows * OG_LANES; j++)
        last[j] = og_from_bits(og_bits(last[j]) | og_bits(rest[j]));
}

/* Add one block's sums of one candidate to out [neuron][width]. */
static void add_block(
    const Layout *at, const float *own, const float *weighted, const float *shared, int64_t rows, double *out)
{
    for (int64_t g = 0; g < at->own_groups; g++) {
        int64_t first = g * OG_LANES, here = og_min(OG_LANES, at->m - first);
        if (g == at->own_groups - 1)
            here += at->rest;
        /* Of a symmetric matrix the upper half is enough. */
        og_add_products(
            weighted, og_min(at->m, first + OG_LANES), own + g * OG_GROUP, here, rows, out + first, at->width);
    }
    int64_t first = at->m + at->rest;
    for (int64_t g = 0; g < at->shared_groups; g++, first += OG_LANES)
        og_add_products(
            weighted, at->m, shared + g * OG_GROUP, og_min(OG_LANES, at->width - first), rows, out + first, at->width);
}

/* From out [neuron][width] of one candidate, in which shared columns that lie in its own groups come first. */
static void distribute(
    const og_search_data *data, const Layout *at, const double *sums, int64_t candidate, double *total, double *gram,
    double *cross, double *by_target)
{
    for (int64_t i = 0; i < at->m; i++) {
        int64_t column = candidate * at->m + i;
        const double *row = sums + i * at->width;
        for (int64_t j = 0; j < at->m; j++)
            gram[column * at->m + j] = j < i ? sums[j * at->width + i] : row[j];
        for (int64_t s = 0; s < at->shared; s++) {
            int64_t before = at->shared - at->rest;
            double value = row[at->m + (s < before ? at->rest + s : s - before)];
            if (s < data->n_accepted)
                cross[s * data->n_candidates * at->m + column] = value;
            else if (s < data->n_accepted + data->n_targets)
                by_target[column * data->n_targets + s - data->n_accepted] = value;
            else
                total[column] = value;
        }
    }
}

void OG_NAME(og_search_sums)(
    const og_search_data *data, double *total, double *gram, double *cross, double *by_target, float *room)
{
    Layout at = layout_of(data);
    int64_t size = at.m * at.width, one = (at.shared_groups + 1) * OG_GROUP;
    double *sums = (double *)room;
    float *shared = (float *)(sums + data->n_candidates * size), *own = shared + BLOCKS * one;
    float *weighted = data->weight ? own + at.own_groups * OG_GROUP : own;
    memset(sums, 0, sizeof(double) * (size_t)(data->n_candidates * size));
    memset(shared, 0, sizeof(float) * (size_t)floats_of(&at));
    for (int64_t first = 0; first < data->n_rows; first += BLOCKS * OG_BLOCK) {
        int64_t end = og_min(first + BLOCKS * OG_BLOCK, data->n_rows);
        for (int64_t start = first; start < end; start += OG_BLOCK)
            pack_shared(
                data, &at, start, og_min(OG_BLOCK, end - start), shared + (start - first) / OG_BLOCK * one);
        for (int64_t candidate = 0; candidate < data->n_candidates; candidate++)
            for (int64_t start = first; start < end; start += OG_BLOCK) {
                int64_t rows = og_min(OG_BLOCK, end - start);
                const float *here = shared + (start - first) / OG_BLOCK * one;
                pack_own(data, &at, candidate, start, rows, here + at.shared_groups * OG_GROUP, own);
                if (data->weight)
                    for (int64_t g = 0; g < at.own_groups; g++)
                        og_weigh_group(own + g * OG_GROUP, data->weight + start, rows, weighted + g * OG_GROUP);
                add_block(&at, own, weighted, here, rows, sums + candidate * size);
            }
    }
    for (int64_t candidate = 0; candidate < data->n_candidates; candidate++)
        distribute(data, &at, sums + candidate * size, candidate, total, gram, cross, by_target);
}
