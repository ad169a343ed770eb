#!/usr/bin/env python3
"""Prints what is in a release as SPDX 2.3: segue, the libraries linked into its static programs (read from
the build), files of other projects that it holds, and the files of the release with their sums.

usage: contrib/release/spdx.py VERSION STATIC-BUILD FOLDER
"""
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys

VENDORED = re.compile(r'^\| (\S+) \| (\S+) ([\d.]+),.*\| (\w+) \([^)]*\) \| [0-9a-f]{64} \|$', re.M)


def asked(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def defined(path):
    """The global functions of a program or an archive."""
    listed = subprocess.run(['nm', '--defined-only', path], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r' [TtVW] (\w+)$', listed, re.M))


def linked(build):
    """Debian packages of whose archives something is in the program, and libc, which the shim holds whole."""
    with open(build + '/build.ninja', encoding='utf-8') as file:
        archives = set(re.findall(r'(/usr/\S+?/lib[\w.+-]+\.a)\b', file.read()))
    inside = defined(build + '/segue')
    used = [path for path in archives if len(defined(path) & inside) > 2]  # two may be named alike
    return sorted({asked('dpkg', '-S', os.path.realpath(path)).split(':')[0] for path in used} | {'libc6-dev'})


def licence(package):
    with open(f'/usr/share/doc/{package}/copyright', encoding='utf-8') as file:
        found = re.search(r'^Files: \*$.*?^License: (\S+)', file.read(), re.M | re.S)
    known = {'Expat': 'MIT', 'expat': 'MIT', 'BSD-3-clause': 'BSD-3-Clause', 'BSD-3-clause-Cambridge': 'BSD-3-Clause', 'Apache-2.0': 'Apache-2.0'}
    return known.get(found[1] if found else '', 'LGPL-2.1-or-later' if package == 'libc6-dev' else 'NOASSERTION')


def package(key, name, version, declared, where='NOASSERTION'):
    return {'SPDXID': 'SPDXRef-' + re.sub('[^A-Za-z0-9.-]', '-', key), 'name': name, 'versionInfo': version,
            'downloadLocation': where, 'filesAnalyzed': False, 'licenseConcluded': declared,
            'licenseDeclared': declared, 'copyrightText': 'NOASSERTION'}


def main():
    version, build, folder = sys.argv[1:]
    packages = [package('segue', 'segue', version, 'MIT')]
    for name in linked(build):
        packages.append(package('linked-' + name, name, asked('dpkg-query', '-W', '-f=${Version}', name), licence(name)))
    with open('src/web/vendor/README.md', encoding='utf-8') as file:
        for path, name, its_version, declared in VENDORED.findall(file.read()):
            packages.append(package('vendored-' + name, name, its_version, declared, 'NOASSERTION'))
            packages[-1]['packageFileName'] = 'src/web/vendor/' + path
    files = []
    for n, name in enumerate(sorted(os.listdir(folder))):
        with open(f'{folder}/{name}', 'rb') as file:
            body = file.read()
        if name.endswith('.spdx.json'):
            continue
        files.append({'SPDXID': f'SPDXRef-file-{n}', 'fileName': './' + name, 'copyrightText': 'NOASSERTION',
                      'licenseConcluded': 'NOASSERTION', 'checksums': [
                          {'algorithm': kind.upper(), 'checksumValue': hashlib.new(kind, body).hexdigest()}
                          for kind in ('sha1', 'sha256')]})
    commit = asked('git', 'rev-parse', 'HEAD')
    made = datetime.datetime.fromtimestamp(int(os.environ['SOURCE_DATE_EPOCH']), datetime.timezone.utc)
    related = [('SPDXRef-DOCUMENT', 'DESCRIBES', 'SPDXRef-segue')]
    related += [('SPDXRef-segue', 'STATIC_LINK' if 'linked' in p['SPDXID'] else 'CONTAINS', p['SPDXID']) for p in packages[1:]]
    related += [(f['SPDXID'], 'GENERATED_FROM', 'SPDXRef-segue') for f in files]
    json.dump({'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT',
               'name': f'segue-{version}', 'documentNamespace': f'https://segue.example/spdx/{version}-{commit}',
               'creationInfo': {'created': made.strftime('%Y-%m-%dT%H:%M:%SZ'), 'creators': ['Tool: contrib/release/spdx.py']},
               'packages': packages, 'files': files,
               'relationships': [{'spdxElementId': a, 'relationshipType': kind, 'relatedSpdxElement': b}
                                 for a, kind, b in related]}, sys.stdout, indent=1)
    print()


main()
