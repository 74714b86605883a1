/* Leave-one-out errors and accuracies; see search_scores.h.
 *
 * Rows are lanes. A block of tiles of rows is prepared for all candidates, which then take it one after the other, so that
 * a candidate's matrices and the block stay in the caches. Matrices are packed in groups of HEIGHT rows, [group][u][HEIGHT].
 */
#include "search_scores.h"
#include "tiles.h"

#define HEIGHT 6
/* Tiles of a block. */
#define TILES 8
/* A row that alone decides its own prediction has a leverage of 1, but for rounding. */
#define LEAST_LEFT 1e-2f

typedef struct {
    int64_t neurons, targets; /* rounded up to groups */
    float *projection, *whiten, *reduced, *head; /* packed */
    float *accepted, *known, *target, *weight, *leverage; /* [tile][.][lane] */
    float *standard, *reach, *outputs; /* [.][lane] */
    double *base_whiten, *wide; /* packed by rows of tiles; accepted features of a tile [.][lane] */
} Layout;

static int64_t rounded(int64_t n)
{
    return (n + HEIGHT - 1) / HEIGHT * HEIGHT;
}

/* Lay out the room; with room NULL, only count. Returns the number of floats. */
static int64_t lay_out(const og_search_solutions *given, float *room, Layout *at)
{
    int64_t k = given->n_candidates, p = given->n_accepted, m = given->n_neurons, size = 0;
    int64_t neurons = rounded(m), targets = rounded(given->n_targets), rows = TILES * OG_LANES;
    at->neurons = neurons;
    at->targets = targets;
    struct {
        float **place;
        int64_t size;
    } parts[] = {
        {&at->accepted, rows * p},           {&at->known, rows * targets},       {&at->target, rows * targets},
        {&at->weight, rows},                 {&at->leverage, rows},              {&at->standard, OG_LANES * neurons},
        {&at->reach, OG_LANES * neurons},    {&at->outputs, OG_LANES * targets}, {&at->projection, k * p * neurons},
        {&at->whiten, k * m * neurons},      {&at->reduced, k * m * targets},    {&at->head, p * targets},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i].place = room ? room + size : NULL;
        size += og_tiles(parts[i].size) * OG_LANES;
    }
    int64_t groups = (p + OG_TILE_ROWS - 1) / OG_TILE_ROWS;
    at->base_whiten = room ? (double *)(room + size) : NULL;
    at->wide = room ? at->base_whiten + groups * OG_TILE_ROWS * p : NULL;
    return size + 2 * (groups * OG_TILE_ROWS + OG_LANES) * p;
}

int64_t OG_NAME(og_search_scores_room)(const og_search_solutions *given)
{
    Layout at;
    return lay_out(given, NULL, &at);
}

/* out [group][u][HEIGHT] = sign * rows of x, of which element (row, u) lies at row * stride + u * step. */
static void pack(
    const float *x, int64_t stride, int64_t step, int64_t n_rows, int64_t n_terms, float sign, float *restrict out)
{
    for (int64_t first = 0; first < n_rows; first += HEIGHT)
        for (int64_t u = 0; u < n_terms; u++)
            for (int64_t i = first; i < first + HEIGHT; i++)
                *out++ = i < n_rows ? sign * x[i * stride + u * step] : 0.0f;
}

/* out [HEIGHT][lane] += packed [u][HEIGHT] times x [u][lane] */
static void add_group(const float *restrict packed, const float *restrict x, int64_t n_terms, float *restrict out)
{
    float a[OG_LANES], b[OG_LANES], c[OG_LANES], d[OG_LANES], e[OG_LANES], f[OG_LANES];
    OG_EACH_LANE(l) {
        a[l] = out[l];
        b[l] = out[OG_LANES + l];
        c[l] = out[2 * OG_LANES + l];
        d[l] = out[3 * OG_LANES + l];
        e[l] = out[4 * OG_LANES + l];
        f[l] = out[5 * OG_LANES + l];
    }
    for (int64_t u = 0; u < n_terms; u++) {
        const float *w = packed + u * HEIGHT;
        OG_EACH_LANE(l) {
            float value = x[u * OG_LANES + l];
            a[l] = OG_FMA(w[0], value, a[l]);
            b[l] = OG_FMA(w[1], value, b[l]);
            c[l] = OG_FMA(w[2], value, c[l]);
            d[l] = OG_FMA(w[3], value, d[l]);
            e[l] = OG_FMA(w[4], value, e[l]);
            f[l] = OG_FMA(w[5], value, f[l]);
        }
    }
    OG_EACH_LANE(l) {
        out[l] = a[l];
        out[OG_LANES + l] = b[l];
        out[2 * OG_LANES + l] = c[l];
        out[3 * OG_LANES + l] = d[l];
        out[4 * OG_LANES + l] = e[l];
        out[5 * OG_LANES + l] = f[l];
    }
}

static void add_groups(const float *packed, const float *x, int64_t n_rows, int64_t n_terms, float *out)
{
    for (int64_t i = 0; i < n_rows; i += HEIGHT)
        add_group(packed + i * n_terms, x, n_terms, out + i * OG_LANES);
}

static void pack_matrices(const og_search_solutions *given, const Layout *at)
{
    int64_t k = given->n_candidates, p = given->n_accepted, m = given->n_neurons, c = given->n_targets;
    for (int64_t i = 0; i < k; i++) {
        pack(given->projection + i * m, 1, k * m, m, p, -1.0f, at->projection + i * p * at->neurons);
        pack(given->whiten + i * m * m, m, 1, m, m, 1.0f, at->whiten + i * m * at->neurons);
        pack(given->reduced + i * m * c, 1, c, c, m, 1.0f, at->reduced + i * m * at->targets);
    }
    pack(given->head, 1, c, c, p, 1.0f, at->head);
    if (given->base_whiten)
        og_pack_double(given->base_whiten, 1, p, p, p, OG_TILE_ROWS, at->base_whiten);
}

/* The leverage of each row of a tile: accepted features [u][lane], whitened. */
static void add_leverage(const double *whiten, const double *accepted, int64_t p, float *restrict out)
{
    double total[OG_LANES] = {0};
    for (int64_t i = 0; i < p; i += OG_TILE_ROWS) {
        double reach[OG_TILE_ROWS * OG_LANES] = {0};
        og_add_tile(whiten + i * p, accepted, og_min(i + OG_TILE_ROWS, p), reach);
        for (int64_t j = 0; j < OG_TILE_ROWS; j++)
            OG_EACH_LANE(l) total[l] += reach[j * OG_LANES + l] * reach[j * OG_LANES + l];
    }
    OG_EACH_LANE(l) out[l] += (float)total[l];
}

/* What all candidates need of one tile of rows; lanes behind the last row have a weight of 0. */
static void prepare(const og_search_solutions *given, const Layout *at, int64_t start, int64_t tile)
{
    int64_t p = given->n_accepted, c = given->n_targets, rows = og_min(OG_LANES, given->n_rows - start);
    float *accepted = at->accepted + tile * p * OG_LANES, *known = at->known + tile * at->targets * OG_LANES;
    float *target = at->target + tile * at->targets * OG_LANES;
    memset(target, 0, sizeof(float) * (size_t)(at->targets * OG_LANES));
    memset(known, 0, sizeof(float) * (size_t)(at->targets * OG_LANES));
    OG_EACH_LANE(l) {
        int64_t row = start + (l < rows ? l : 0);
        for (int64_t u = 0; u < p; u++)
            accepted[u * OG_LANES + l] = given->accepted[row * p + u] - given->accepted_mean[u];
        for (int64_t u = 0; u < c; u++) {
            target[u * OG_LANES + l] = given->target[row * c + u];
            known[u * OG_LANES + l] = given->target_mean[u];
        }
        at->weight[tile * OG_LANES + l] = l < rows ? given->weight[row] : 0.0f;
        at->leverage[tile * OG_LANES + l] = (float)(1.0 / given->total_weight);
    }
    add_groups(at->head, accepted, at->targets, p, known);
    if (given->base_whiten) {
        for (int64_t u = 0; u < p * OG_LANES; u++)
            at->wide[u] = (double)accepted[u];
        add_leverage(at->base_whiten, at->wide, p, at->leverage + tile * OG_LANES);
    }
}

/* What a candidate's new features say beyond the accepted ones, uncorrelated: at->reach [neuron][lane]. */
static void whiten(const og_search_solutions *given, const Layout *at, int64_t i, int64_t start, int64_t tile)
{
    int64_t p = given->n_accepted, m = given->n_neurons, rows = og_min(OG_LANES, given->n_rows - start);
    memset(at->standard, 0, sizeof(float) * (size_t)(at->neurons * OG_LANES));
    memset(at->reach, 0, sizeof(float) * (size_t)(at->neurons * OG_LANES));
    for (int64_t j = 0; j < m; j++) {
        const float *h = given->h + (i * m + j) * given->n_rows + start;
        float centre = given->centre[i * m + j], factor = given->factor[i * m + j], *to = at->standard + j * OG_LANES;
        if (rows == OG_LANES)
            OG_EACH_LANE(l) to[l] = (h[l] - centre) * factor;
        else
            for (int64_t l = 0; l < rows; l++)
                to[l] = (h[l] - centre) * factor;
    }
    add_groups(at->projection + i * p * at->neurons, at->accepted + tile * p * OG_LANES, at->neurons, p, at->standard);
    for (int64_t j = 0; j < m; j += HEIGHT) /* below the diagonal */
        add_group(
            at->whiten + (i * at->neurons + j) * m, at->standard, og_min(j + HEIGHT, m), at->reach + j * OG_LANES);
}

static void add_errors(const og_search_solutions *given, const Layout *at, int64_t tile, double *restrict sums)
{
    const float *target = at->target + tile * at->targets * OG_LANES, *weight = at->weight + tile * OG_LANES;
    const float *leverage = at->leverage + tile * OG_LANES;
    float reach[OG_LANES] = {0}, error[OG_LANES] = {0};
    for (int64_t j = 0; j < given->n_neurons; j++)
        OG_EACH_LANE(l) reach[l] = OG_FMA(at->reach[j * OG_LANES + l], at->reach[j * OG_LANES + l], reach[l]);
    for (int64_t c = 0; c < given->n_targets; c++)
        OG_EACH_LANE(l) {
            float distance = target[c * OG_LANES + l] - at->outputs[c * OG_LANES + l];
            error[l] = OG_FMA(distance, distance, error[l]);
        }
    OG_EACH_LANE(l) {
        float left = 1.0f - weight[l] * (leverage[l] + reach[l]);
        left = LEAST_LEFT > left ? LEAST_LEFT : left;
        sums[l] -= (double)weight[l] * ((double)error[l] / ((double)left * (double)left));
    }
}

static void add_hits(const og_search_solutions *given, const Layout *at, int64_t tile, double *restrict sums)
{
    const float *target = at->target + tile * at->targets * OG_LANES, *weight = at->weight + tile * OG_LANES;
    OG_EACH_LANE(l) {
        int64_t best = 0, right = 0;
        int finite = 1;
        for (int64_t c = 0; c < given->n_targets; c++) {
            float output = at->outputs[c * OG_LANES + l];
            finite &= og_abs(output) <= 3.4028235e38f;
            best = output > at->outputs[best * OG_LANES + l] ? c : best;
            right = target[c * OG_LANES + l] > target[right * OG_LANES + l] ? c : right;
        }
        sums[l] += finite && best == right ? (double)weight[l] : 0.0;
    }
}

/* Add the scores of one candidate for the rows of a tile to sums [lane]. */
static void score_tile(
    const og_search_solutions *given, const Layout *at, int64_t i, int64_t start, int64_t tile, double *sums)
{
    whiten(given, at, i, start, tile);
    memcpy(at->outputs, at->known + tile * at->targets * OG_LANES, sizeof(float) * (size_t)(at->targets * OG_LANES));
    add_groups(
        at->reduced + i * given->n_neurons * at->targets, at->reach, at->targets, given->n_neurons, at->outputs);
    (given->base_whiten ? add_errors : add_hits)(given, at, tile, sums);
}

void OG_NAME(og_search_scores)(const og_search_solutions *given, double *out, float *room)
{
    Layout at;
    lay_out(given, room, &at);
    pack_matrices(given, &at);
    memset(out, 0, sizeof(double) * (size_t)given->n_candidates);
    for (int64_t first = 0; first < given->n_rows; first += TILES * OG_LANES) {
        int64_t tiles = og_min(TILES, og_tiles(given->n_rows - first));
        for (int64_t t = 0; t < tiles; t++)
            prepare(given, &at, first + t * OG_LANES, t);
        for (int64_t i = 0; i < given->n_candidates; i++) {
            double sums[OG_LANES] = {0};
            for (int64_t t = 0; t < tiles; t++)
                score_tile(given, &at, i, first + t * OG_LANES, t, sums);
            double total = 0.0;
            OG_EACH_LANE(l) total += sums[l];
            out[i] += total;
        }
    }
}
