/* Training by back-propagation; see training.h. */
#include "batch.h"

#define BETA1 0.9f
#define BETA2 0.999f
#define ADAM_EPSILON 1e-7f

static float lanes_product(const float *a, const float *c, int64_t stride, int64_t tiles)
{
    float sum[OG_LANES] = {0};
    for (int64_t t = 0; t < tiles; t++)
        OG_EACH_LANE(l) sum[l] = OG_FMA(a[t * stride + l], c[t * stride + l], sum[l]);
    return og_lane_sum(sum);
}

/* Normalise the raw features of a block with the batch's own statistics. */
static void norm_forward(const batch *b, const place *p, const float *theta)
{
    int64_t at = p->start * OG_LANES, stride = b->width * OG_LANES;
    float count = (float)b->n_rows, *out = b->out + at, *normal = b->normal + at;
    float *mean = b->mean + p->start, *variance = b->variance + p->start;
    blank(b, out, p->d, stride);
    for (int64_t i = 0; i < p->d; i++)
        mean[i] = lanes_total(out + i * OG_LANES, stride, b->tiles) / count;
    centre(b, out, normal, p->d, stride, mean);
    for (int64_t i = 0; i < p->d; i++)
        variance[i] = lanes_product(normal + i * OG_LANES, normal + i * OG_LANES, stride, b->tiles) / count;
    normalise(b, normal, out, p->d, stride, variance, theta + p->scale, theta + p->shift);
}

static void norm_backward(const batch *b, const place *p, const float *theta)
{
    int64_t at = p->start * OG_LANES, stride = b->width * OG_LANES;
    float *grad = b->grad + at, *normal = b->normal + at, *total = b->by_theta + p->shift, *along = b->by_theta + p->scale;
    blank(b, grad, p->d, stride);
    for (int64_t i = 0; i < p->d; i++) {
        total[i] = lanes_total(grad + i * OG_LANES, stride, b->tiles);
        along[i] = lanes_product(grad + i * OG_LANES, normal + i * OG_LANES, stride, b->tiles);
    }
    normal_backward(
        b, normal, grad, p->d, stride, theta + p->scale, b->variance + p->start, total, along, (float)b->n_rows);
}

static double power(double base, int64_t exponent)
{
    double result = 1.0;
    for (; exponent > 0; exponent /= 2, base *= base)
        if (exponent % 2)
            result *= base;
    return result;
}

/* One step of Adam, as torch.optim.Adam computes it. */
static void adam(const og_training *given, og_state *state, const float *restrict by_theta, double rate)
{
    float size = (float)(rate / (1.0 - power(0.9, state->step)));
    float root = (float)__builtin_sqrt(1.0 - power(0.999, state->step));
    float *restrict theta = state->theta, *restrict first = state->first, *restrict second = state->second;
    const float *restrict decay = given->decay;
    for (int64_t j = 0; j < given->n_parameters; j++) {
        float g = OG_FMA(decay[j], theta[j], by_theta[j]);
        first[j] = OG_FMA(1.0f - BETA1, g - first[j], first[j]);
        second[j] = OG_FMA((1.0f - BETA2) * g, g, second[j] * BETA2);
        theta[j] -= size * first[j] / (__builtin_sqrtf(second[j]) / root + ADAM_EPSILON);
    }
}

static void limit_norms(const og_training *given, float *theta, float *sums)
{
    for (int64_t i = 0; i < given->n_blocks; i++) {
        const int64_t *block = given->plan + i * OG_T_PLAN;
        int64_t n = block[OG_T_INPUTS], d = block[OG_T_NEURONS];
        float *weight = theta + block[OG_T_OFFSET];
        memset(sums, 0, sizeof(float) * (size_t)d);
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < d; j++)
                sums[j] = OG_FMA(weight[k * d + j], weight[k * d + j], sums[j]);
        for (int64_t j = 0; j < d; j++) {
            float norm = __builtin_sqrtf(sums[j]);
            sums[j] = norm > given->max_norm ? given->max_norm / norm : 1.0f;
        }
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < d; j++)
                weight[k * d + j] *= sums[j];
    }
}

static int all_finite(const float *values, int64_t n)
{
    int64_t bad = 0;
    for (int64_t j = 0; j < n; j++)
        bad += !(og_abs(values[j]) <= 3.4028235e38f);
    return !bad;
}

int64_t OG_NAME(og_train_room)(const og_training *training)
{
    batch b;
    return lay_out(&b, training, NULL);
}

int64_t OG_NAME(og_train_update)(
    const og_training *training, og_state *state, const float *by_theta, double rate, float *room)
{
    if (!all_finite(by_theta, training->n_parameters)) {
        state->skipped++;
        return 0;
    }
    state->step++;
    adam(training, state, by_theta, rate);
    if (training->max_norm > 0.0f)
        limit_norms(training, state->theta, room);
    return 1;
}

static void forward(const batch *b, const float *theta, uint64_t seed)
{
    for (int64_t i = 0; i < b->given->n_blocks; i++) {
        place p = place_of(b->given, i);
        block_forward(b, &p, theta);
        norm_forward(b, &p, theta);
        drop_block(b, &p, seed);
    }
    head_forward(b, theta);
}

static void backward(const batch *b, const float *theta)
{
    head_backward(b, theta);
    for (int64_t i = b->given->n_blocks - 1; i >= 0; i--) {
        place p = place_of(b->given, i);
        drop_backward(b, &p);
        norm_backward(b, &p, theta);
        block_backward(b, &p, theta);
    }
}

void OG_NAME(og_train_epoch)(
    const og_training *training, og_state *state, const int64_t *order, const int64_t *bounds, int64_t n_batches,
    double rate, uint64_t seed, float *room)
{
    batch b;
    lay_out(&b, training, room);
    int64_t width = b.width;
    double total = 0.0, right = 0.0;
    double count = (double)n_batches;
    float *moments = state->moments;
    for (int64_t j = 0; j < 2 * width; j++)
        moments[j] = 0.0f;
    memset(b.by_theta, 0, sizeof(float) * (size_t)training->n_parameters);
    for (int64_t number = 0; number < n_batches; number++) {
        b.n_rows = bounds[number + 1] - bounds[number];
        b.tiles = og_tiles(b.n_rows);
        gather_batch(&b, order + bounds[number], NULL, (float)b.n_rows, seed);
        forward(&b, state->theta, seed);
        right += training->counts_right ? rightly_classified(&b) : 0.0;
        total += loss_backward(&b);
        for (int64_t j = 0; j < width; j++) {
            /* Welford's update of the mean of means and of the sum of their squared distances. */
            float before = moments[j], change = b.mean[j] - before;
            moments[j] = before + change / (float)(number + 1);
            moments[width + j] += OG_FMA(change, b.mean[j] - moments[j], b.variance[j]);
        }
        backward(&b, state->theta);
        OG_NAME(og_train_update)(training, state, b.by_theta, rate, b.scratch);
    }
    /* Over all rows, a variance is the mean of the batches' variances plus the variance of their means. */
    for (int64_t j = 0; j < width; j++)
        moments[width + j] = (float)((double)moments[width + j] / count);
    state->loss = total / count;
    state->right = right / count;
}
