/* Prints a digest of what the engine computes, without Python: to compare processors, for example under qemu. Compile it
 * with all sources of src/opgrow/engine/c but dispatch.c, and the same OG_ISA for all. */
#include "../../src/opgrow/engine/c/blocks.h"
#include "../../src/opgrow/engine/c/evaluation.h"
#include "../../src/opgrow/engine/c/solve.h"
#include "../../src/opgrow/engine/c/sums.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 70, D = 9, K = 18, C = 3 };

static uint64_t seed = 1, digest = 1469598103934665603u;

static float uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 40) / 8388608.0f - 1.0f;
}

static void fill(float *values, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = scale * uniform();
}

static void add(const void *values, size_t size)
{
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ ((const unsigned char *)values)[i]) * 1099511628211u;
}

int main(void)
{
    static float x[N * D], weight[D * K], bias[K], grad[N * K], target[N * C], ones[N], out[N * K], by_weight[D * K],
        by_bias[K], by_input[N * D];
    fill(x, N * D, 3.0f);
    fill(weight, D * K, 1.0f);
    fill(bias, K, 1.0f);
    fill(grad, N * K, 1.0f);
    for (int64_t r = 0; r < N; r++) {
        target[r * C + r % C] = 1.0f;
        ones[r] = 1.0f;
    }
    float *room = malloc(sizeof(float) << 20);
    for (int64_t set = 0; set < 8 * 4 * 8; set++) {
        int64_t nodal = set / 32, pool = set / 8 % 4, activation = set % 8;
        og_block block = {nodal, pool, activation, D, K, weight, bias};
        OG_NAME(og_features)(&block, x, D, N, out, room);
        add(out, sizeof out);
        OG_NAME(og_gradients)(&block, x, D, N, grad, by_weight, by_bias, by_input, room);
        add(by_weight, sizeof by_weight);
        add(by_bias, sizeof by_bias);
        add(by_input, sizeof by_input);
        enum { SIZE = K * (D + 3) + (K + 1) * C };
        static float theta[SIZE], first[SIZE], second[SIZE], decay[SIZE], moments[2 * K];
        int64_t plan[] = {nodal, pool, activation, D, K, 0, 0, 0}, widths[] = {K}, order[N], bounds[] = {0, 35, N};
        fill(theta, SIZE, 0.5f);
        memset(first, 0, sizeof first);
        memset(second, 0, sizeof second);
        og_training training = {
            .x = x, .target = target, .row_weight = ones, .n_rows = N, .n_inputs = D, .n_outputs = C, .plan = plan,
            .widths = widths, .n_blocks = 1, .n_layers = 1, .n_parameters = SIZE, .head_nodal = set % 2 ? -1 : nodal,
            .head_pool = pool, .head_activation = activation, .loss = set % 2, .largest_batch = 35, .decay = decay,
            .dropout = 0.2f, .max_norm = 1.5f};
        og_state state = {theta, first, second, 0, 0, 0.0, moments};
        for (int64_t i = 0; i < N; i++)
            order[i] = (i * 37 + set) % N; /* 37 and N have no common divisor */
        OG_NAME(og_train_epoch)(&training, &state, order, bounds, 2, 0.01, 5, room);
        add(theta, sizeof theta);
        add(&state.loss, sizeof state.loss);
        double feature_sums[2 * K], score_sums[4];
        OG_NAME(og_feature_sums)(&training, theta, moments, 0, feature_sums, room);
        OG_NAME(og_score_sums)(&training, theta, moments, OG_BRIER, score_sums, room);
        add(feature_sums, sizeof feature_sums);
        add(score_sums, sizeof score_sums);
    }
    double gram[K * K], right[K], sums[4] = {0};
    OG_NAME(og_gram)(grad, K, 1, K, grad, K, 1, K, NULL, N, gram, room);
    add(gram, sizeof gram);
    OG_NAME(og_cholesky)(gram, K, (double *)room);
    for (int64_t i = 0; i < K; i++)
        right[i] = (double)bias[i];
    OG_NAME(og_substitute)(gram, K, right, 1, 0);
    add(right, sizeof right);
    OG_NAME(og_scores)(OG_BRIER, OG_CROSS_ENTROPY, x, target, ones, N, C, sums);
    add(sums, sizeof sums);
    printf("%016llx\n", (unsigned long long)digest);
    free(room);
    return 0;
}
