#!/usr/bin/env python3
"""Compares grade_probe with Python's re, jmespath and jsonschema on generated questions.

Usage: compare.py regex|jmespath|jsonschema PROBE [COUNT [SEED]]

Each question goes to both; answers must be the same, and an error on one side must be one on the
other. What the two are known to see differently is left out, with the reason beside it.
Exit status 0 same, 1 different, 77 (skipped) when the Python package is not installed.
"""

import json
import random
import re
import subprocess
import sys
import warnings


def ask(probe, questions):
    lines = ''.join(json.dumps(question) + '\n' for question in questions)
    done = subprocess.run([probe], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


# --- JMESPath ---------------------------------------------------------------------------------------

NAMES = ['a', 'b', 'c', 'missing', '"a"']
LITERALS = ['`1`', '`2`', "'x'", "'b'", '`[1,2]`', '`null`', '`{"a": 1}`', '`1.5`', "''"]
# Python compares true with 1 as equal and orders no mixed types; booleans stay out of the data.
UNARY = ['abs', 'avg', 'ceil', 'floor', 'keys', 'length', 'max', 'min', 'not_null', 'reverse',
         'sort', 'sum', 'to_array', 'to_number', 'to_string', 'type', 'values', 'merge']
BY = ['sort_by', 'max_by', 'min_by']


def value(rng, depth=0):
    kind = rng.randrange(9 if depth < 3 else 5)
    if kind == 0:
        return None
    if kind == 1:
        return rng.choice([0, 1, 2, -3, 10])
    if kind == 2:
        return rng.choice([1.5, -0.5, 2.25])
    if kind in (3, 4):
        return rng.choice(['x', 'b', '', 'ab', '12', '1.5'])
    if kind in (5, 6):
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {key: value(rng, depth + 1) for key in 'abc' if rng.random() < 0.7}


def call(rng, depth):
    kind = rng.randrange(4)
    if kind == 0:
        return '%s(%s, &%s)' % (rng.choice(BY), expression(rng, depth + 1),
                                expression(rng, depth + 1))
    if kind == 1:
        return 'map(&%s, %s)' % (expression(rng, depth + 1), expression(rng, depth + 1))
    if kind == 2:
        return rng.choice(['join(\',\', %s)', 'contains(%s, \'b\')', 'starts_with(%s, \'a\')',
                           'ends_with(%s, \'b\')']) % expression(rng, depth + 1)
    return '%s(%s)' % (rng.choice(UNARY), expression(rng, depth + 1))


def start(rng, depth):
    kind = rng.randrange(12 if depth < 4 else 4)
    if kind < 2:
        return rng.choice(NAMES)
    if kind == 2:
        return rng.choice(LITERALS)
    if kind == 3:
        return rng.choice(['@', '*', '[*]', '[]', '[0]', '[-1]', '[1:]', '[::-1]', '[:2]'])
    if kind == 4:
        return '[%s]' % ', '.join(expression(rng, depth + 1) for _ in range(rng.randrange(1, 3)))
    if kind == 5:
        return '{%s}' % ', '.join('%s: %s' % (key, expression(rng, depth + 1)) for key in 'pq')
    if kind == 6:
        return '(%s)' % expression(rng, depth + 1)
    if kind == 7:
        return '!' + start(rng, depth + 1)
    if kind == 8:
        return '[?%s]' % expression(rng, depth + 1)
    return call(rng, depth)


def rest(rng, depth):
    kind = rng.randrange(12)
    if kind < 3:
        return '.' + rng.choice(NAMES)
    if kind == 3:
        return rng.choice(['.*', '[*]', '[]', '[0]', '[-1]', '[1:]', '[::2]', '[::-1]'])
    if kind == 4:
        return '[?%s]' % expression(rng, depth + 1)
    if kind == 5:
        return ' | ' + expression(rng, depth + 1)
    if kind == 6:
        return ' || ' + expression(rng, depth + 1)
    if kind == 7:
        return ' && ' + expression(rng, depth + 1)
    if kind == 8:
        return ' %s %s' % (rng.choice(['==', '!=']), expression(rng, depth + 1))
    if kind == 9:
        return '.[%s]' % expression(rng, depth + 1)
    if kind == 10:
        return '.{k: %s}' % expression(rng, depth + 1)
    return ' < ' + rng.choice(['`1`', '`2`'])


def expression(rng, depth=0):
    text = start(rng, depth)
    for _ in range(rng.randrange(3 if depth < 4 else 1)):
        text += rest(rng, depth)
    # A slip now and then: both sides must refuse it.
    if depth == 0 and rng.random() < 0.05:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(['.', '[', ']', '(', '&', '=', ' a ', '|']) + text[at:]
    return text


def compare_jmespath(probe, rng, count):
    try:
        import jmespath
    except ImportError:
        print('compare.py: skipped JMESPath: no Python package jmespath')
        return None
    questions = [{'expression': expression(rng), 'data': value(rng)} for _ in range(count)]
    different = errors = 0
    for question, answer in zip(questions, ask(probe, questions)):
        try:
            wanted = {'result': jmespath.search(question['expression'], question['data'])}
            try:
                json.dumps(wanted)
            except TypeError:
                continue  # an expression as a value: Python lets "&a" out
        except TypeError:
            continue  # Python orders or searches mixed types by an exception of its own
        except ValueError as error:
            wanted = {'error': str(error)}
            errors += 1
        # Python forgets that a slice projects when it follows an index: "a[0][1:].b".
        if is_lenient(answer, wanted) or re.search(r'\[-?\d+\]\[[^]]*:', question['expression']):
            continue
        if ('error' in wanted) != ('error' in answer) or \
                wanted.get('result') != answer.get('result'):
            different += 1
            print('jmespath differs:', json.dumps(question), '\n  wanted', wanted,
                  '\n  got   ', answer)
    print('jmespath: %d questions, %d of them errors, %d different' % (count, errors, different))
    return different


def is_lenient(answer, wanted):
    """Python takes "f(a b)", & outside of arguments, and unknown functions that it never calls."""
    return 'error' not in wanted and answer.get('error') == 'compile' and any(
        part in answer['message']
        for part in ("found '&'", "expected ')'", 'is no expression', "'&' expected",
                     'unknown function'))


# --- JSON Schema ------------------------------------------------------------------------------------

def schema(rng, depth=0):
    if rng.random() < 0.05:
        return rng.random() < 0.7
    result = {}
    for _ in range(rng.randrange(1, 4)):
        result.update(keyword(rng, depth))
    return result


def keyword(rng, depth):
    def inner():
        return schema(rng, depth + 1) if depth < 3 else {}

    types = ['string', 'number', 'integer', 'array', 'object', 'null', 'boolean']
    return rng.choice([
        lambda: {'type': rng.choice(types)},
        lambda: {'type': rng.sample(types, 2)},
        lambda: {'enum': [value(rng, 2) for _ in range(3)]},
        lambda: {'const': value(rng, 2)},
        lambda: {'minimum': rng.choice([0, 1, 1.5])},
        lambda: {'maximum': rng.choice([0, 2, 2.25])},
        lambda: {'exclusiveMinimum': rng.choice([0, 1])},
        lambda: {'exclusiveMaximum': rng.choice([2, 10])},
        lambda: {'multipleOf': rng.choice([1, 2, 0.5])},
        lambda: {'minLength': rng.randrange(3)},
        lambda: {'maxLength': rng.randrange(3)},
        lambda: {'pattern': rng.choice(['^a', 'b$', '[0-9]', '^$', 'x|b'])},
        lambda: {'minItems': rng.randrange(3)},
        lambda: {'maxItems': rng.randrange(3)},
        lambda: {'uniqueItems': True},
        lambda: {'items': inner()},
        lambda: {'prefixItems': [inner(), inner()]},
        lambda: {'contains': inner()},
        lambda: {'contains': inner(), 'minContains': rng.randrange(3), 'maxContains': 2},
        lambda: {'minProperties': rng.randrange(3)},
        lambda: {'maxProperties': rng.randrange(3)},
        lambda: {'required': rng.sample(['a', 'b', 'c'], 2)},
        lambda: {'properties': {'a': inner(), 'b': inner()}},
        lambda: {'additionalProperties': inner()},
        lambda: {'properties': {'a': inner()}, 'additionalProperties': False},
        lambda: {'patternProperties': {'^[ab]': inner()}},
        lambda: {'propertyNames': {'pattern': rng.choice(['a', '^[abc]$'])}},
        lambda: {'dependentRequired': {'a': ['b']}},
        lambda: {'allOf': [inner(), inner()]},
        lambda: {'anyOf': [inner(), inner()]},
        lambda: {'oneOf': [inner(), inner()]},
        lambda: {'not': inner()},
        lambda: {'if': inner(), 'then': inner(), 'else': inner()},
        lambda: {'$ref': '#/$defs/d'},
        lambda: {'title': 'a title', 'format': 'date'},
    ])()


def whole_schema(rng):
    result = schema(rng)
    if isinstance(result, dict):
        result['$defs'] = {'d': {'type': rng.choice(['string', 'array', 'object'])}}
        return result
    return {'$defs': {'d': True}, 'allOf': [result]}


def compare_jsonschema(probe, rng, count):
    try:
        import jsonschema
    except ImportError:
        print('compare.py: skipped JSON Schema: no Python package jsonschema')
        return None
    questions = [{'schema': whole_schema(rng), 'data': value(rng)} for _ in range(count)]
    different = valid = 0
    for question, answer in zip(questions, ask(probe, questions)):
        validator = jsonschema.Draft202012Validator(question['schema'])
        wanted = validator.is_valid(question['data'])
        valid += wanted
        complains = bool(answer.get('message'))
        if answer.get('valid') != wanted or complains == wanted:
            different += 1
            print('jsonschema differs:', json.dumps(question), '\n  wanted', wanted,
                  '\n  got   ', answer)
    print('jsonschema: %d questions, %d of them valid, %d different' % (count, valid, different))
    return different


# --- regular expressions ----------------------------------------------------------------------------

PIECES = ['a', 'b', '.', r'\d', r'\w', r'\s', r'\b', r'\B', '^', '$', r'\Z', r'\A', '[ab]', '[^a]', '[]a]',
          '[^]a]', '[[a]', r'[\w-]', r'[a\]b]', r'\v', r'[\v]', '\u00e9', r'\u00e9', r'\x41', r'\.', r'\\',
          ' ', '#', '(a|b)', '(?:a|)', '(?P<n>a)', '(?P=n)', r'\1', '(?=a)', '(?!a)', '(?<=a)', '(?<!b)',
          '(?(n)b|a)', '(?(1)b|a)', '(?#note)', '(?i:A)', '(?-i:a)', '(?s:.)', '(?x: a b )', '(?m:^a)',
          'a{2}', 'b{,2}', 'a{1,}', 'b{,}', 'x{', '{,2}', 'a*', 'b+?', '.*', r'(\w)+', '\n', r'\n', r'\t', '-', 'A', r'\101']
FLAGS = [('i', 2), ('m', 8), ('s', 16), ('x', 64), ('a', 256)]


def pattern(rng):
    text = ''.join(rng.choice(PIECES) for _ in range(rng.randrange(1, 6)))
    if rng.random() < 0.2:
        text = '(?%s)' % ''.join(rng.sample('imsxa', rng.randrange(1, 3))) + text
    return text


def subject(rng):
    return ''.join(rng.choice('aabbAB1 #\n\v\u00e9-.x{\\]') for _ in range(rng.randrange(8)))


def compare_regex(probe, rng, count):
    warnings.simplefilter('ignore')
    questions = []
    for _ in range(count):
        chosen = [pair for pair in FLAGS if rng.random() < 0.15]
        letters = ''.join(letter for letter, _ in chosen)
        number = sum(value for _, value in chosen)
        questions.append({'pattern': pattern(rng), 'subject': subject(rng),
                          'flags': rng.choice([letters, number]), 'number': number})
    different = matches = 0
    for question, answer in zip(questions, ask(probe, questions)):
        try:
            compiled = re.compile(question['pattern'], question['number'])
        except (re.error, ValueError):
            continue  # PCRE2 knows more than Python; what Python refuses no author has
        if question['subject'] == '' and r'\B' in question['pattern']:
            continue  # Python before 3.14 finds no \B in an empty text, against its own rule
        wanted = compiled.search(question['subject']) is not None
        matches += wanted
        if answer.get('match') != wanted:
            different += 1
            print('regex differs:', json.dumps(question), '\n  wanted', wanted, '\n  got   ', answer)
    print('regex: %d questions, %d of them match, %d different' % (count, matches, different))
    return different


def main():
    compare = {'regex': compare_regex, 'jmespath': compare_jmespath,
               'jsonschema': compare_jsonschema}[sys.argv[1]]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 5000
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    different = compare(sys.argv[2], rng, count)
    if different is None:
        sys.exit(77)
    sys.exit(1 if different else 0)


if __name__ == '__main__':
    main()
