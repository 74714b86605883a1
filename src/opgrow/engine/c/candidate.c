/* The whole training of one candidate; see candidate.h. */
#include "candidate.h"
#include "blocks.h"
#include "random.h"
#include "sums.h"

/* Rows that are scored at once. */
#define CHUNK 128
/* Epochs between two scores on training rows. */
#define EVERY 5
#define EPSILON 1e-8f

void OG_NAME(og_shuffle)(int64_t *order, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        uint64_t draw = og_draw(seed, (uint64_t)i);
        int64_t j = (int64_t)(draw % (uint64_t)(i + 1)); /* the bias is below 2^-32 for fewer rows than that */
        int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Rows of a candidate's data, and the two blocks that they go through. */
typedef struct {
    const float *x, *frozen, *target, *weight;
    int64_t n_rows;
} rows;

typedef struct {
    og_block hidden, head;
    int64_t n_frozen, n_features;
    const float *scale, *shift;
} parts;

static parts parts_of(const og_training *given, const float *theta)
{
    const int64_t *plan = given->plan;
    int64_t n = plan[OG_T_INPUTS], d = plan[OG_T_NEURONS], n_features = given->n_frozen + d;
    const float *bias = theta + n * d, *head = bias + 3 * d;
    parts found = {
        .hidden = {plan[OG_T_NODAL], plan[OG_T_POOL], plan[OG_T_ACTIVATION], n, d, theta, bias},
        .head = {given->head_nodal, given->head_pool, given->head_activation, n_features, given->n_outputs, head,
                 head + n_features * given->n_outputs},
        .n_frozen = given->n_frozen,
        .n_features = n_features,
        .scale = bias + d,
        .shift = bias + 2 * d,
    };
    if (given->head_nodal < 0) { /* linear neurons */
        found.head.nodal = 0;
        found.head.pool = 0;
        found.head.activation = 7;
    }
    return found;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t blocks_room(const og_training *given)
{
    const int64_t *plan = given->plan;
    return larger(
        OG_NAME(og_features_room)(plan[OG_T_INPUTS], plan[OG_T_NEURONS]),
        OG_NAME(og_features_room)(given->n_frozen + plan[OG_T_NEURONS], given->n_outputs));
}

int64_t OG_NAME(og_candidate_room)(const og_candidate *candidate)
{
    const og_training *given = &candidate->training;
    int64_t d = given->plan[OG_T_NEURONS];
    int64_t scoring = CHUNK * (2 * d + given->n_frozen + given->n_outputs) + 8 * d + 16 + blocks_room(given);
    return 2 * d + 16 + larger(OG_NAME(og_train_room)(given), scoring);
}

/* Weighted mean and variance of the raw features over all rows. */
static void feature_moments(const rows *data, const parts *net, float *moments, float *room)
{
    int64_t d = net->hidden.n_neurons;
    double *sums = (double *)room, *part = sums + 2 * d, total = 0.0;
    float *raw = (float *)(part + d), *rest = raw + CHUNK * d;
    for (int64_t i = 0; i < 2 * d; i++)
        sums[i] = 0.0;
    for (int64_t start = 0; start < data->n_rows; start += CHUNK) {
        int64_t n = og_min(CHUNK, data->n_rows - start);
        OG_NAME(og_features)(
            &net->hidden, data->x + start * net->hidden.n_inputs, net->hidden.n_inputs, n, raw, rest);
        for (int64_t r = 0; r < n; r++)
            total += (double)data->weight[start + r];
        for (int64_t power = 1; power <= 2; power++) {
            OG_NAME(og_column_sums)(raw, d, n, d, data->weight + start, NULL, power, part);
            for (int64_t i = 0; i < d; i++)
                sums[(power - 1) * d + i] += part[i];
        }
    }
    for (int64_t i = 0; i < d; i++) {
        double mean = sums[i] / total, variance = sums[d + i] / total - mean * mean;
        moments[i] = (float)mean;
        moments[d + i] = (float)(variance < 0.0 ? 0.0 : variance);
    }
}

/* The criterion (NaN if an output is not finite) and the mean loss, with given statistics of the features. */
static void score(
    const og_candidate *candidate, const rows *data, const parts *net, const float *moments, double *value, double *loss,
    float *room)
{
    int64_t d = net->hidden.n_neurons, n_features = net->n_features, n_outputs = net->head.n_neurons;
    double sums[4] = {0};
    float *raw = room, *features = raw + CHUNK * d, *outputs = features + CHUNK * n_features;
    float *factor = outputs + CHUNK * n_outputs, *offset = factor + d, *rest = offset + d;
    for (int64_t i = 0; i < d; i++) {
        factor[i] = net->scale[i] / __builtin_sqrtf(moments[d + i] + EPSILON);
        offset[i] = net->shift[i] - moments[i] * factor[i];
    }
    for (int64_t start = 0; start < data->n_rows; start += CHUNK) {
        int64_t n = og_min(CHUNK, data->n_rows - start);
        OG_NAME(og_features)(
            &net->hidden, data->x + start * net->hidden.n_inputs, net->hidden.n_inputs, n, raw, rest);
        for (int64_t r = 0; r < n; r++) {
            float *to = features + r * n_features;
            for (int64_t k = 0; k < net->n_frozen; k++)
                to[k] = data->frozen[(start + r) * net->n_frozen + k];
            for (int64_t i = 0; i < d; i++)
                to[net->n_frozen + i] = OG_FMA(raw[r * d + i], factor[i], offset[i]);
        }
        OG_NAME(og_features)(&net->head, features, n_features, n, outputs, rest);
        OG_NAME(og_scores)(
            candidate->criterion, candidate->training.loss, outputs, data->target + start * n_outputs,
            data->weight + start, n, n_outputs, sums);
    }
    *value = sums[3] > 0.0 ? (double)__builtin_nanf("") : sums[0] / sums[2];
    *loss = sums[1] / sums[2];
}

static int finite(double value)
{
    return value <= 1.79e308 && value >= -1.79e308;
}

static int better(int64_t criterion, double value, double loss, const double *best)
{
    if (!finite(value) || !finite(loss))
        return 0;
    if (!finite(best[0]) || !finite(best[1]))
        return 1;
    if (value > best[0] || value < best[0])
        return (value > best[0]) == (criterion == OG_ACCURACY);
    return loss < best[1];
}

int64_t OG_NAME(og_train_candidate)(
    const og_candidate *candidate, og_candidate_state *state, int64_t most, int64_t *order, float *room)
{
    const og_training *given = &candidate->training;
    int64_t d = given->plan[OG_T_NEURONS], *counts = state->counts, validates = candidate->n_held > 0;
    float *now = room, *rest = room + (2 * d + 15) / 16 * 16;
    rows train = {given->x, given->frozen, given->target, given->row_weight, given->n_rows};
    rows held = {
        candidate->held_x, candidate->held_frozen, candidate->held_target, candidate->held_weight, candidate->n_held};
    const rows *scored = validates ? &held : &train;
    while (counts[OG_STAGE] < candidate->n_stages) {
        int64_t stage = counts[OG_STAGE];
        int impatient = candidate->patience > 0 && counts[OG_WAITED] >= candidate->patience;
        if (stage >= 0 && (counts[OG_USED] >= candidate->epochs[stage] || impatient)) {
            counts[OG_STAGE]++;
            counts[OG_USED] = counts[OG_WAITED] = 0;
            continue;
        }
        if (most-- == 0)
            break;
        if (stage >= 0) {
            uint64_t seed = og_draw(*state->draws, 0);
            *state->draws = og_draw(*state->draws, 1);
            OG_NAME(og_shuffle)(order, given->n_rows, seed);
            og_state moving = {
                state->current, state->first, state->second, counts[OG_STEPS], counts[OG_SKIPPED], 0.0, now};
            OG_NAME(og_train_epoch)(
                given, &moving, order, candidate->bounds, candidate->n_batches, candidate->rates[stage],
                og_draw(seed, 2), rest);
            counts[OG_STEPS] = moving.step;
            counts[OG_SKIPPED] = moving.skipped;
            counts[OG_DONE]++;
            counts[OG_USED]++;
            counts[OG_WAITED]++;
            int last = counts[OG_USED] == candidate->epochs[stage] || counts[OG_WAITED] == candidate->patience;
            if (!validates && !last && counts[OG_DONE] % EVERY)
                continue;
        }
        parts net = parts_of(given, state->current);
        if (stage < 0 || !validates)
            feature_moments(&train, &net, now, rest);
        double value, loss;
        score(candidate, scored, &net, now, &value, &loss, rest);
        if (stage < 0 || better(candidate->criterion, value, loss, state->scores)) {
            state->scores[0] = value;
            state->scores[1] = loss;
            counts[OG_BEST] = counts[OG_DONE];
            counts[OG_WAITED] = 0;
            memcpy(state->theta, state->current, sizeof(float) * (size_t)given->n_parameters);
            memcpy(state->moments, now, sizeof(float) * (size_t)(2 * d));
        }
        if (stage < 0)
            counts[OG_STAGE]++;
    }
    return counts[OG_STAGE] >= candidate->n_stages;
}
