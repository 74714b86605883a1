/* Batches that are divided among processes; see shards.h. */
#include "shards.h"
#include "batch.h"

/* The next cell that has rows, from `cell` on; -1 if there is none. */
static int64_t next_cell(const og_shard *shard, int64_t cell, batch *b)
{
    while (cell < shard->n_cells && shard->bounds[cell] == shard->bounds[cell + 1])
        cell++;
    if (cell == shard->n_cells)
        return -1;
    int64_t size = lay_out(b, shard->training, NULL);
    lay_out(b, shard->training, shard->room + cell * size);
    b->n_rows = shard->bounds[cell + 1] - shard->bounds[cell];
    b->tiles = og_tiles(b->n_rows);
    b->by_theta = shard->by_theta + cell * shard->training->n_parameters;
    return cell;
}

/* Declares the number of a cell and its batch. */
#define EACH_CELL(shard, cell, b) \
    for (batch b, *once_ = &b; once_; once_ = NULL) \
        for (int64_t cell = next_cell(shard, 0, &b); cell >= 0; cell = next_cell(shard, cell + 1, &b))
#define EACH_BLOCK(training, layer_wanted, p) \
    for (int64_t i_ = 0; i_ < (training)->n_blocks; i_++) \
        for (place p = place_of(training, i_); p.codes && p.layer == (layer_wanted); p.codes = NULL)

/* In double precision: sums of the values [tile][.][lane] of n neurons, and of their products with others. */
static void double_sums(
    const batch *b, const float *values, const float *beside, int64_t n, double *total, double *products)
{
    int64_t stride = b->width * OG_LANES;
    for (int64_t i = 0; i < n; i++, values += OG_LANES, beside += OG_LANES) {
        double sum[OG_LANES] = {0}, product[OG_LANES] = {0};
        for (int64_t t = 0; t < b->tiles; t++)
            OG_EACH_LANE(l) {
                float value = values[t * stride + l];
                sum[l] += (double)value;
                product[l] = OG_FMA_DOUBLE(value, beside[t * stride + l], product[l]);
            }
        total[i] = products[i] = 0.0;
        OG_EACH_LANE(l) {
            total[i] += sum[l];
            products[i] += product[l];
        }
    }
}

void OG_NAME(og_shard_begin)(const og_shard *shard)
{
    memset(shard->by_theta, 0, sizeof(float) * (size_t)(shard->n_cells * shard->training->n_parameters));
    EACH_CELL(shard, cell, b)
        gather_batch(&b, shard->rows + shard->bounds[cell], shard->numbers, shard->count, shard->seed);
}

void OG_NAME(og_shard_forward)(const og_shard *shard, int64_t layer, double *sums)
{
    const og_training *given = shard->training;
    int64_t width = given->widths[layer], start = layer_start(given, layer);
    memset(sums, 0, sizeof(double) * (size_t)(shard->n_cells * 2 * width));
    EACH_CELL(shard, cell, b) {
        float *raw = b.out + start * OG_LANES;
        double *to = sums + cell * 2 * width;
        EACH_BLOCK(given, layer, p)
            block_forward(&b, &p, shard->theta);
        blank(&b, raw, width, b.width * OG_LANES);
        double_sums(&b, raw, raw, width, to, to + width);
    }
}

void OG_NAME(og_shard_normalise)(const og_shard *shard, int64_t layer, const float *moments)
{
    const og_training *given = shard->training;
    int64_t width = given->widths[layer], start = layer_start(given, layer);
    EACH_CELL(shard, cell, b) {
        int64_t stride = b.width * OG_LANES;
        memcpy(b.variance + start, moments + width, sizeof(float) * (size_t)width);
        EACH_BLOCK(given, layer, p) {
            float *normal = b.normal + p.start * OG_LANES, *out = b.out + p.start * OG_LANES;
            const float *scale = shard->theta + p.scale, *shift = shard->theta + p.shift;
            centre(&b, out, normal, p.d, stride, moments + p.start - start);
            normalise(&b, normal, out, p.d, stride, b.variance + p.start, scale, shift);
            drop_block(&b, &p, shard->seed);
        }
    }
}

void OG_NAME(og_shard_head)(const og_shard *shard, double *losses)
{
    memset(losses, 0, sizeof(double) * (size_t)shard->n_cells);
    EACH_CELL(shard, cell, b) {
        head_forward(&b, shard->theta);
        losses[cell] = loss_backward(&b);
        head_backward(&b, shard->theta);
    }
}

void OG_NAME(og_shard_slopes)(const og_shard *shard, int64_t layer, double *sums)
{
    const og_training *given = shard->training;
    int64_t width = given->widths[layer], start = layer_start(given, layer);
    memset(sums, 0, sizeof(double) * (size_t)(shard->n_cells * 2 * width));
    EACH_CELL(shard, cell, b)
        EACH_BLOCK(given, layer, p) {
            float *grad = b.grad + p.start * OG_LANES;
            double *to = sums + cell * 2 * width + p.start - start;
            drop_backward(&b, &p);
            blank(&b, grad, p.d, b.width * OG_LANES);
            double_sums(&b, grad, b.normal + p.start * OG_LANES, p.d, to, to + width);
            for (int64_t i = 0; i < p.d; i++) {
                b.by_theta[p.shift + i] = (float)to[i];
                b.by_theta[p.scale + i] = (float)to[width + i];
            }
        }
}

void OG_NAME(og_shard_backward)(const og_shard *shard, int64_t layer, const float *sums)
{
    const og_training *given = shard->training;
    int64_t width = given->widths[layer], start = layer_start(given, layer);
    EACH_CELL(shard, cell, b)
        EACH_BLOCK(given, layer, p) {
            const float *total = sums + p.start - start, *scale = shard->theta + p.scale;
            normal_backward(
                &b, b.normal + p.start * OG_LANES, b.grad + p.start * OG_LANES, p.d, b.width * OG_LANES, scale,
                b.variance + p.start, total, total + width, shard->count);
            block_backward(&b, &p, shard->theta);
        }
}

void OG_NAME(og_keep)(
    uint64_t seed, int64_t side, int64_t first, float drop, const int64_t *numbers, int64_t n_rows, int64_t n_features,
    float *out)
{
    for (int64_t start = 0; start < n_rows; start += OG_LANES) {
        int64_t rows = og_min(OG_LANES, n_rows - start);
        uint32_t of_lanes[OG_LANES] = {0};
        for (int64_t r = 0; r < rows; r++)
            of_lanes[r] = (uint32_t)numbers[start + r];
        for (int64_t i = 0; i < n_features; i++) {
            float keep[OG_LANES];
            og_keep(og_draw(seed + (uint64_t)side, (uint64_t)(first + i)), of_lanes, drop, keep);
            for (int64_t r = 0; r < rows; r++)
                out[(start + r) * n_features + i] = keep[r];
        }
    }
}
