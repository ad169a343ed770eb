#!/usr/bin/env python3
"""How large the tree is, and that it does not grow unsaid.

usage: tests/sizes.py [--write]

Compares the figures of the tree with those in tests/sizes.txt, which are of the last time that somebody wrote
them. A rise needs a line `House: FIGURE +N, why` in a commit since then, for each figure that rose; several add
up. Prints what rose unsaid and exits 1, or what fell. --write writes the figures of now, for the commit that
lands.
"""
import collections
import os
import re
import subprocess
import sys

import house

PATH = house.ROOT + '/tests/sizes.txt'
SAID = re.compile(r'^House: ([a-z ]+) \+([0-9]+), \S', re.M)


def exports(sources):
    """Functions that are not static, by name, with the source that defines them."""
    paths = sorted(p for p in sources if p.startswith('src/') and p.endswith('.c'))
    return {name: path for name, kind, path, _, _, static in house.tags(paths)
            if kind == 'function' and not static and name != 'main'}


def users(sources, defined):
    """Which sources call each export, but for the one that defines it."""
    by = collections.defaultdict(set)
    for path, source in sources.items():
        if path.startswith('src/') and path.endswith('.c'):
            for word in {t for _, t in source.tokens} & defined.keys():
                if defined[word] != path:
                    by[word].add(path)
    return by


def circles(defined, by):
    """Sets of sources that call each other all around (Tarjan's strongly connected components)."""
    calls = collections.defaultdict(set)
    for name, paths in by.items():
        for path in paths:
            calls[path].add(defined[name])
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in sorted(calls[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            found.append(stack[at:])
            on.difference_update(stack[at:])
            del stack[at:]

    sys.setrecursionlimit(10000)
    for path in sorted(calls):
        if path not in index:
            visit(path)
    return [c for c in found if len(c) > 1]


def figures():
    files = house.listing()
    sources = {p: house.Source(p) for p in files if p.startswith('src/') and p.endswith(('.c', '.h'))}
    heads = {os.path.splitext(p)[0] for p in sources if p.endswith('.h')}
    defined = exports(sources)
    by = users(sources, defined)
    around = circles(defined, by)
    return {
        'lines of src': sum(len(s.lines) for s in sources.values()),
        'code of src': sum(len(s.code_lines) for s in sources.values()),
        'lines of tests': house.line_count(files, 'tests/', '.c', '.h', '.py', '.sh'),
        'sources': sum(p.endswith('.c') for p in sources),
        'sources without a header': sum(os.path.splitext(p)[0] not in heads for p in sources if p.endswith('.c')),
        'exports with one user': sum(len(by[name]) == 1 for name in defined),
        'ternaries': sum(t == '?' for s in sources.values() for _, t in s.tokens),
        'circles of sources': len(around),
        'sources in circles': sum(map(len, around)),
    }


def recorded():
    with open(PATH, encoding='utf-8') as f:
        rows = [line.split(None, 1) for line in f if line.strip() and not line.startswith('#')]
    return {name.strip(): int(count) for count, name in rows}


def said():
    """What commits since the last writing say that each figure rose by."""
    git = ['git', '-C', house.ROOT]
    last = subprocess.run([*git, 'log', '-1', '--format=%H', '--', 'tests/sizes.txt'], capture_output=True, text=True, check=True)
    since = subprocess.run([*git, 'log', '--format=%B', last.stdout.strip() + '..HEAD'], capture_output=True, text=True,
                           check=True).stdout if last.stdout.strip() else ''
    by = collections.Counter()
    for name, count in SAID.findall(since):
        by[name] += int(count)
    return by


def main():
    now = figures()
    if '--write' in sys.argv:
        with open(PATH, 'w', encoding='utf-8') as f:
            f.write('# Sizes of the tree when they were written last; see sizes.py.\n')
            f.writelines(f'{count:7} {name}\n' for name, count in now.items())
        return 0
    was, may = recorded(), said()
    for name in sorted(may.keys() - now.keys()):
        print(f'a commit says "House: {name}": the figures are {", ".join(now)}')
    rose = [name for name in now if now[name] > was.get(name, 0) + may[name]]
    for name in now:
        if name in rose:
            print(f'{name}: {now[name]}, and {was.get(name, 0)} in tests/sizes.txt: take something away, or write '
                  f'"House: {name} +{now[name] - was.get(name, 0)}, why" in a commit')
    return 1 if rose else 0


if __name__ == '__main__':
    sys.exit(main())
