#!/usr/bin/env python3
"""Figures of datasets, reckoned a second time from their definitions, as data for test_report.

Usage: make.py >figures.json

Nothing here follows suites.c: per-label counts come from plain loops over the rows, ratios are exact fractions, mean,
median and standard deviation those of the statistics module, micro F1 is made of summed true and false positives.
"""

import json
import random
import statistics
from fractions import Fraction


def quotient(part, whole):
    return Fraction(part, whole) if whole else Fraction(0)


def f1_of(true, false, missed):
    return quotient(2 * true, 2 * true + false + missed)


def figures(rows):
    scores = [Fraction(score) for _, _, score in rows]
    pairs = [(expected, observed) for expected, observed, _ in rows if expected is not None]
    result = {'count': len(rows)}
    if scores:
        result |= {'mean': statistics.mean(scores), 'median': statistics.median(scores), 'min': min(scores),
                   'max': max(scores), 'std': statistics.stdev(scores) if len(scores) > 1 else 0}
    if not pairs:
        return result
    labels = sorted({label for pair in pairs for label in pair})
    f1s, supports, all_true, all_false, all_missed = [], [], 0, 0, 0
    for label in labels:
        true = sum(expected == label and observed == label for expected, observed in pairs)
        false = sum(expected != label and observed == label for expected, observed in pairs)
        missed = sum(expected == label and observed != label for expected, observed in pairs)
        result['precision.' + label] = quotient(true, true + false)
        result['recall.' + label] = quotient(true, true + missed)
        result['f1.' + label] = f1_of(true, false, missed)
        f1s.append(result['f1.' + label])
        supports.append(true + missed)
        all_true, all_false, all_missed = all_true + true, all_false + false, all_missed + missed
    result['accuracy'] = quotient(sum(expected == observed for expected, observed in pairs), len(pairs))
    result['macro_f1'] = sum(f1s) / len(f1s)
    result['weighted_f1'] = sum(f1 * support for f1, support in zip(f1s, supports)) / sum(supports)
    result['micro_f1'] = f1_of(all_true, all_false, all_missed)
    return result


def confusion(rows):
    table = {}
    for expected, observed, _ in rows:
        if expected is not None:
            row = table.setdefault(expected, {})
            row[observed] = row.get(observed, 0) + 1
    return table or None


def make_rows(chance, count, labels, labelled):
    rows = []
    for _ in range(count):
        expected, observed = chance.choice(labels), chance.choice(labels)
        if chance.random() < 0.5:
            observed = expected
        score = 1 if expected == observed else 0
        if not labelled:
            expected = observed = None
            score = chance.choice([0, 0.25, 0.5, 0.75, 1])
        rows.append([expected, observed, score])
    return rows


def main():
    chance = random.Random(20261201)
    cases = [[['yes', 'yes', 1]], [['yes', 'no', 0]], [['a', 'b', 0], ['b', 'a', 0]],
             [['a', 'a', 1], ['a', '(none)', 0], ['b', '(other)', 0], ['b', 'b', 1]]]
    for count in (2, 3, 5, 8, 13, 40):
        for labels in (['yes', 'no'], ['a', 'b', 'c', 'd'], ['one', 'two', '(none)', '(other)', 'weißer Hai']):
            cases.append(make_rows(chance, count, labels, True))
        cases.append(make_rows(chance, count, [''], False))
    print('[')
    for i, rows in enumerate(cases):
        case = {'rows': rows, 'confusion': confusion(rows),
                'metrics': {name: float(value) for name, value in figures(rows).items()}}
        print(' ' + json.dumps(case) + (',' if i + 1 < len(cases) else ''))
    print(']')


if __name__ == '__main__':
    main()
