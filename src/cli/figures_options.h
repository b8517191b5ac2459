#pragma once
/*
 * figures_options: the options that `stats` and `compare` share.
 */

#include "cli/options.h"
#include "report/figures.h"

/* Rows of a command's table, for fields of these names in its values. */
#define FIGURES_OPTIONS(type)                                                                      \
    {.kind = OPTION_NUMBER,                                                                        \
     .long_name = "confidence",                                                                    \
     .value = "PERCENT",                                                                           \
     .offset = offsetof(type, confidence),                                                         \
     .min = 50,                                                                                    \
     .max = 99,                                                                                    \
     .help = "of intervals, 95 unless given"},                                                     \
        {.kind = OPTION_NUMBER,                                                                    \
         .long_name = "draws",                                                                     \
         .value = "N",                                                                             \
         .offset = offsetof(type, draws),                                                          \
         .min = 100,                                                                               \
         .max = 1000000,                                                                           \
         .help = "how often to resample, 10000 unless given"},                                     \
    {                                                                                              \
        .kind = OPTION_NUMBER, .long_name = "seed", .value = "N", .offset = offsetof(type, seed),  \
        .max = UINT32_MAX, .help = "of resampling, 1 unless given: the same gives the same"        \
    }
#define FIGURES_DEFAULTS .confidence = 95, .draws = 10000, .seed = 1

static inline struct figures_options figures_options_of(uint64_t confidence, uint64_t draws,
                                                        uint64_t seed)
{
    return (struct figures_options){
        .confidence = (double)confidence / 100, .draws = (size_t)draws, .seed = seed};
}
