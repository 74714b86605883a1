/* The whole training of one candidate of a population: epochs, scores and the best state. */
#ifndef OPGROW_CANDIDATE_H
#define OPGROW_CANDIDATE_H

#include "training.h"

/* What does not change. A candidate is one hidden block with a head. Scores are taken on held rows, with the statistics
 * that an epoch's batches had; where there are none, on the training rows, with their own statistics, every few epochs. */
typedef struct {
    og_training training;
    const float *held_x, *held_frozen, *held_target, *held_weight;
    int64_t n_held;
    const int64_t *bounds;
    int64_t n_batches;
    const double *rates;
    const int64_t *epochs;
    int64_t n_stages, patience, criterion; /* patience 0: all epochs of a stage */
} og_candidate;

/* What training goes on from. theta and moments are the best state so far, scores its criterion and loss. counts: stage of
 * the schedule (-1 before the first score), epochs there, those of them without a better score, epochs in all, the epoch of
 * the best state (0: the start), steps, batches skipped. */
typedef struct {
    float *theta, *moments, *current, *first, *second;
    int64_t *counts;
    double *scores;
    uint64_t *draws;
} og_candidate_state;

enum { OG_STAGE, OG_USED, OG_WAITED, OG_DONE, OG_BEST, OG_STEPS, OG_SKIPPED, OG_COUNTS };

int64_t OG_NAME(og_candidate_room)(const og_candidate *candidate);

/* Train for at most `most` epochs; returns whether the schedule is at its end. order: room for the numbers of all rows. */
int64_t OG_NAME(og_train_candidate)(
    const og_candidate *candidate, og_candidate_state *state, int64_t most, int64_t *order, float *room);

/* order becomes a permutation of 0 .. n - 1. */
void OG_NAME(og_shuffle)(int64_t *order, int64_t n, uint64_t seed);

#endif
