#!/usr/bin/env python3
"""Holds records and examples against the JSON Schemas in schema/, and JUnit files against their form.

Usage: check_formats.py ROOT EMIT_SAMPLES    the examples of docs/formats and the samples that
                                             EMIT_SAMPLES writes
       check_formats.py ROOT --run RUN_DIR   a recorded run

Prints "ok", "not ok" and "skip" lines. Exit status 0, 1 when something is not as it should be, 77
when python3-jsonschema is missing and nothing could be checked.
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

try:
    import jsonschema
except ImportError:
    jsonschema = None

FAILURES = []


def tell(good, name, why=''):
    print(f'{"ok" if good else "not ok"} {name}{": " + why if why and not good else ""}')
    if not good:
        FAILURES.append(name)


class Schemas:
    """The schemas of schema/, each checked itself before it is used."""

    def __init__(self, folder):
        self.validators = {}
        for name in sorted(os.listdir(folder)):
            if not name.endswith('.schema.json'):
                continue
            with open(os.path.join(folder, name), encoding='utf-8') as file:
                schema = json.load(file)
            jsonschema.Draft7Validator.check_schema(schema)
            self.validators[name.removesuffix('.schema.json')] = jsonschema.Draft7Validator(schema)

    def complaint(self, kind, document):
        """The first thing that is wrong with a document, '' when nothing is."""
        for error in self.validators[kind].iter_errors(document):
            path = '/'.join(str(part) for part in error.absolute_path)
            return f'{path or "the whole"}: {error.message[:200]}'
        return ''

    def check(self, kind, name, document):
        why = self.complaint(kind, document)
        tell(not why, f'{name} is as schema/{kind}.schema.json says', why)


def load(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def load_lines(path):
    with open(path, encoding='utf-8', newline='\n') as file:
        return [json.loads(line) for line in file]


def check_lines(schemas, kind, name, path):
    for number, line in enumerate(load_lines(path), 1):
        why = schemas.complaint(kind, line)
        if why:
            tell(False, f'{name} is as schema/{kind}.schema.json says', f'line {number}: {why}')
            return
    tell(True, f'{name} is as schema/{kind}.schema.json says')


def check_run(schemas, directory, label):
    """Every record of a run directory."""
    schemas.check('run', f'{label}run.json', load(os.path.join(directory, 'run.json')))
    schemas.check('plan', f'{label}plan.json', load(os.path.join(directory, 'plan.json')))
    if os.path.exists(os.path.join(directory, 'host.json')):
        schemas.check('host', f'{label}host.json', load(os.path.join(directory, 'host.json')))
    check_lines(schemas, 'journal', f'{label}journal.jsonl', os.path.join(directory, 'journal.jsonl'))
    for folder, _, names in sorted(os.walk(os.path.join(directory, 'trials'))):
        if 'trial.json' not in names:
            continue
        where = label + os.path.relpath(folder, directory)
        schemas.check('trial', f'{where}/trial.json', load(os.path.join(folder, 'trial.json')))
        if 'events.jsonl' in names:
            check_lines(schemas, 'event', f'{where}/events.jsonl', os.path.join(folder, 'events.jsonl'))
        if 'trajectory.json' in names:
            schemas.check('trajectory', f'{where}/trajectory.json', load(os.path.join(folder, 'trajectory.json')))
        if 'view.jsonl' in names:
            check_lines(schemas, 'view', f'{where}/view.jsonl', os.path.join(folder, 'view.jsonl'))
        if 'changes.json' in names:
            schemas.check('changes', f'{where}/changes.json', load(os.path.join(folder, 'changes.json')))


def junit_complaint(path):
    """What is wrong with a JUnit file, '' when nothing is."""
    root = ElementTree.parse(path).getroot()
    if root.tag != 'testsuites' or [suite.get('name') for suite in root] != ['trials', 'integrity']:
        return 'not one suite of trials and one of integrity'
    for suite in root:
        cases = suite.findall('testcase')
        if len(cases) != len(suite) or any(not case.get('name') for case in cases):
            return f'suite {suite.get("name")} has something else than named cases'
        for attribute, tag in (('failures', 'failure'), ('errors', 'error'), ('skipped', 'skipped')):
            if int(suite.get(attribute)) != len(suite.findall(f'testcase/{tag}')):
                return f'suite {suite.get("name")} counts its {attribute} wrongly'
        if int(suite.get('tests')) != len(cases):
            return f'suite {suite.get("name")} counts its tests wrongly'
        if any(len(case) > 1 for case in cases):
            return 'a case with two outcomes'
    for attribute in ('tests', 'failures', 'errors', 'skipped'):
        if int(root.get(attribute)) != sum(int(suite.get(attribute)) for suite in root):
            return f'the {attribute} of the suites do not add up'
    text = ''.join(root.itertext()) + ''.join(value for node in root.iter() for value in node.attrib.values())
    for character in text:
        if ord(character) < 32 and character not in '\n\t' or character in '\u202e\x7f\x9b':
            return f'a raw U+{ord(character):04X}'
    return ''


# One thing wrong at a time: a schema that lets it pass checks nothing.
SPOILT = [
    ('trial', 'status', lambda trial: trial.update(status='PASS')),
    ('trial', 'passed beside ERROR', lambda trial: trial.update(status='ERROR', passed=True)),
    ('trial', 'score beside SKIPPED', lambda trial: trial.update(status='SKIPPED', passed=None, score=1)),
    ('trial', 'passed beside COMPROMISED',
     lambda trial: trial.update(passed=True, integrity={'verdict': 'COMPROMISED', 'reasons': []})),
    ('trial', 'schema', lambda trial: trial.update(schema='closedbook/trial/2')),
    ('trial', 'digests', lambda trial: trial.update(digests={'x': 'md5:1'})),
    ('trial', 'criteria', lambda trial: trial['criteria'][0].pop('passed')),
    ('trial', 'host path as digest key', lambda trial: trial.update(digests={'/etc/x': 'sha256:' + '0' * 64})),
    ('run', 'run_id', lambda run: run.pop('run_id')),
    ('plan', 'trials', lambda plan: plan['trials'][0].update(index=-1)),
    ('event', 'kind', lambda event: event.update(kind='song')),
    ('event', 'tool', lambda event: event.pop('tool')),
    ('event', 'source', lambda event: event.update(source='me')),
    ('changes', 'type', lambda changes: changes['added'][0].update(type='fifo')),
    ('changes', 'refused', lambda changes: changes.update(refused=['path'])),
    ('manifest', 'mode', lambda entry: entry.update(mode='777')),
]


def check_spoilt(schemas, samples):
    for kind, what, spoil in SPOILT:
        document = copy.deepcopy(samples[kind])
        spoil(document)
        tell(bool(schemas.complaint(kind, document)), f'schema/{kind}.schema.json refuses a wrong {what}')


def check_examples(schemas, folder):
    """The example files of docs/formats; returns one document of each kind."""
    samples = {}
    for kind in ('trial', 'run', 'plan', 'changes'):
        samples[kind] = load(os.path.join(folder, f'{kind}.json'))
        schemas.check(kind, f'docs/formats/examples/{kind}.json', samples[kind])
    for kind, name in (('event', 'events.jsonl'), ('manifest', 'manifest.jsonl'), ('journal', 'journal.jsonl'),
                       ('agent-event', 'agent-events.jsonl'), ('view', 'view.jsonl')):
        path = os.path.join(folder, name)
        check_lines(schemas, kind, f'docs/formats/examples/{name}', path)
        lines = load_lines(path)
        samples[kind] = next((line for line in lines if line.get('kind') == 'tool_call'), lines[0])
    return samples


def main():
    root, what = sys.argv[1], sys.argv[2]
    if jsonschema is None and what == '--run':
        print('skip records against schemas: python3-jsonschema is not installed')
        return 77
    if what == '--run':
        check_run(Schemas(os.path.join(root, 'schema')), sys.argv[3], '')
        return 1 if FAILURES else 0
    with tempfile.TemporaryDirectory() as directory:
        run = os.path.join(directory, 'run')
        subprocess.run([what, run], check=True)
        for name in ('report', 'hostile'):
            why = junit_complaint(os.path.join(run, f'{name}.xml'))
            tell(not why, f'{name}.xml is JUnit', why)
        if jsonschema is None:
            print('skip records against schemas: python3-jsonschema is not installed')
            return 1 if FAILURES else 77
        schemas = Schemas(os.path.join(root, 'schema'))
        check_run(schemas, run, '')
        for name in ('report', 'hostile'):
            schemas.check('report', f'{name}.json', load(os.path.join(run, f'{name}.json')))
        check_spoilt(schemas, check_examples(schemas, os.path.join(root, 'docs', 'formats', 'examples')))
    return 1 if FAILURES else 0


if __name__ == '__main__':
    sys.exit(main())
