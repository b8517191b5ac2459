#include "stats/random.h"

uint64_t stats_random_bits(struct stats_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

size_t stats_random_below(struct stats_random *random, size_t limit)
{
    ASSERT(limit > 0);
    return (size_t)(((unsigned __int128)stats_random_bits(random) * limit) >> 64);
}

double stats_random_unit(struct stats_random *random)
{
    return (double)(stats_random_bits(random) >> 11) * 0x1p-53;
}
