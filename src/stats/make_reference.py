#!/usr/bin/env python3
"""usage: make_reference.py >reference.h

Values of scipy and statsmodels (python3-scipy, python3-statsmodels) that test_stats.c holds ours
against. Not part of a build: run again only when a table gets a new row.
"""

import itertools
import math
import random

import numpy
import scipy
import scipy.stats
import statsmodels
import statsmodels.api
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint


def table(name, rows, columns):
    print(f"\nstatic const double {name}[][{columns}] = {{")
    for row in rows:
        print("    {" + ", ".join(repr(float(value)) for value in row) + "},")
    print("};")


def clusters():
    """Tasks with one to five trials each, some always passing: values, and the task of each."""
    source = random.Random(7)
    values, tasks = [], []
    for task in range(25):
        rate = source.choice([0, 0.2, 0.5, 0.9, 1])
        for _ in range(source.randint(1, 5)):
            values.append(float(source.random() < rate))
            tasks.append(task)
    return values, tasks


def robust(values, tasks):
    fit = statsmodels.api.OLS(values, numpy.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": tasks, "use_correction": True}
    )
    count = len(values)
    # Theirs multiplies by (N - 1) / (N - K) as well, which is 1 for a mean.
    return fit.params[0], fit.bse[0], count


def sign_flip(differences):
    least = abs(sum(differences)) - 1e-12
    sums = [abs(sum(s * d for s, d in zip(signs, differences))) for signs in itertools.product((1, -1), repeat=len(differences))]
    return sum(value >= least for value in sums) / len(sums)


print("#pragma once")
print("/*")
print(f" * Made by make_reference.py with scipy {scipy.__version__} and statsmodels {statsmodels.__version__}.")
print(" */")
# clang-format is not asked: the rows are as wide as their digits.
print("\n/* clang-format off */")
table("reference_normal", [(p, scipy.stats.norm.ppf(p)) for p in (1e-9, 0.001, 0.025, 0.2, 0.5, 0.8, 0.95, 0.975, 0.995, 0.9999)], 2)
table("reference_beta", [(x, a, b, scipy.stats.beta.cdf(x, a, b)) for x in (0.001, 0.1, 0.5, 0.9) for a, b in ((0.5, 0.5), (1.5, 8.5), (40, 3), (200.5, 300.5), (5000, 5000))], 4)
table("reference_binomial", [(k, n, p, scipy.stats.binom.cdf(k, n, p)) for k, n, p in ((0, 1, 0.5), (3, 10, 0.5), (7, 10, 0.2), (0, 40, 0.01), (480, 1000, 0.5), (9, 9, 0.3))], 4)
table("reference_wilson", [(c, n, level, *proportion_confint(c, n, alpha=1 - level, method="wilson")) for c, n in ((0, 5), (5, 5), (1, 2), (44, 60), (9, 1000), (5000, 10000)) for level in (0.9, 0.95, 0.99)], 5)
table("reference_jeffreys", [(c, n, *proportion_confint(c, n, alpha=0.05, method="jeffreys")) for c, n in ((1, 5), (4, 5), (2, 3), (37, 60))], 4)
table("reference_choices", [(c, n, k, 1 - math.comb(n - c, k) / math.comb(n, k), math.comb(c, k) / math.comb(n, k)) for c, n, k in ((0, 5, 1), (1, 5, 2), (3, 5, 2), (5, 5, 5), (4, 10, 3), (90, 200, 100), (4, 5, 4))], 5)
table("reference_mcnemar", [(a, b, mcnemar([[10, a], [b, 10]], exact=True).pvalue) for a, b in ((0, 0), (0, 1), (1, 5), (6, 6), (3, 14), (40, 61))], 3)
levels = (0.01, 0.04, 0.03, 0.005, 0.5, 0.03)
table("reference_holm", zip(levels, multipletests(levels, method="holm")[1]), 2)
values, tasks = clusters()
table("reference_clusters", zip(tasks, values), 2)
table("reference_cluster_mean", [robust(values, tasks)], 3)
source = random.Random(11)
few = [round(source.gauss(0.2, 0.5), 3) for _ in range(12)] + [0, 0]
table("reference_differences", [(value,) for value in few], 1)
kept = [value for value in few if value != 0]
table("reference_difference", [(numpy.mean(few), numpy.std(few, ddof=1), sign_flip(kept))], 3)
print("/* clang-format on */")
