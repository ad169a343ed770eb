#!/usr/bin/env python3
"""The rules of the house that no compiler checks.

usage: tests/house.py [--figures | --count | --ratchet] [PATH ...]

Prints every offence as file:line: what is wrong; exits 1 if there is one. With PATHs (files or
folders) it prints only what stands there, names that clash with files elsewhere included.
--ratchet allows as many of a kind as tests/house.txt says, and no more: numbers there only fall,
and a kind that is not there must be clean. --count prints how many offences of each kind there are
and exits 0; --figures prints the sizes of the tree. Needs ctags (universal-ctags) and nm (binutils).
"""
import ast
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_COLUMNS = 100
MAX_LINES = 60       # of a function
MAX_FILE_LINES = 1500 # of a file of src: one subject, read from top to bottom, never cut to please a count
MAX_LONG = 5         # functions over MAX_LINES in all of src
MAX_LINES_EVER = 80
MAX_BENCH_LINES = 1550  # all of tests/bench, whatever the language
# What ends or lists a module's things, which only tests have to do: the rest of src must call all it has.
ONLY_TESTS_CALL = {'adapt_dialect_at', 'item_stream_end', 'profile_about', 'schema_registry_add'}
# Scanners: one switch over a character, which reads best in one piece.
SCANNERS = {'jscan_value'}
LINUX_ROOMS = ('src/os/', 'src/shim/', 'src/http/')
BANNED = re.compile(r'(?<![\w.>])(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|gets)\s*\(')
CUTS_KEYS = re.compile(r'\b(json_equal|json_copy|json_deep_copy)\s*\(')
LINUX = re.compile(
    r'\b(prctl|epoll_\w+|signalfd|timerfd_\w+|eventfd|inotify_\w+|pidfd_\w+|memfd_create|accept4|pipe2'
    r'|dup3|splice|vmsplice|sendfile|fallocate|syscall|getrandom|prlimit|openat2|statx|renameat2'
    r'|unshare|clone3?|setns|mount|umount2|close_range|closefrom|copy_file_range|mremap|gettid'
    r'|sched_[sg]etaffinity|sysinfo|landlock_\w+|seccomp|posix_spawn_file_actions_addclosefrom_np'
    r')\s*\(|\b(O_PATH|O_TMPFILE|SO_PEERCRED|SCM_CREDENTIALS|F_OFD_\w+|F_ADD_SEALS)\b'
    r'|#\s*include\s*<(linux/|sys/(epoll|eventfd|inotify|prctl|sendfile|signalfd|syscall|sysinfo|timerfd)\.h)'
    r'|"/(proc|sys)/')
TOKEN = re.compile(
    r'(?P<comment>/\*.*?\*/|//(?:\\\n|[^\n])*)'
    r'|(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r'|(?P<directive>^[ \t]*#[ \t]*\w+)'
    r'|(?P<word>[A-Za-z_0-9.]+)'
    r'|(?P<newline>\n)|(?P<space>[ \t\r\f\\]+)'
    r'|(?P<mark>[-+*/%&|^<>=!]=|<<=|>>=|&&|\|\||->|.)', re.S | re.M)


class Source:
    """A C file: its lines, its comments as (line, text), its tokens as (line, text)."""

    def __init__(self, path):
        self.path = path
        self.text = open(os.path.join(ROOT, path), encoding='utf-8').read()
        self.lines = self.text.split('\n')
        if self.lines[-1] == '':
            self.lines.pop()
        self.comments, self.tokens, self.code_lines, comment_lines = [], [], set(), set()
        line, in_directive, last_slashes = 1, False, -1
        for m in TOKEN.finditer(self.text):
            kind, text = m.lastgroup, m.group()
            if kind == 'comment':
                comment_lines.update(range(line, line + text.count('\n') + 1))
                body = ' '.join(x.strip(' *\t') for x in text.strip('/').split('\n')).strip()
                if text.startswith('//') and last_slashes == line - 1:
                    self.comments[-1] = (self.comments[-1][0], self.comments[-1][1] + ' ' + body)
                else:
                    self.comments.append((line, body))
                if text.startswith('//'):
                    last_slashes = line
            elif kind == 'newline':
                if in_directive and self.text[m.start() - 1] != '\\':
                    self.tokens.append((line, ';'))
                    in_directive = False
            elif kind != 'space':
                self.code_lines.add(line)
                if kind == 'directive':
                    in_directive = True
                    self.tokens.append((line, ';'))
                else:
                    self.tokens.append((line, text))
            line += text.count('\n')
        self.comment_lines = comment_lines - self.code_lines

    def ternaries(self):
        """Yields (line, nested, over several lines) of each outermost conditional expression."""
        tokens, opens, match = self.tokens, [], {}
        for i, (_, t) in enumerate(tokens):
            if t in '([{':
                opens.append(i)
            elif t in ')]}' and opens:
                match[opens[-1]] = i
                match[i] = opens.pop()
        ends = {';', ',', '=', '+=', '-=', '|=', '&=', '^=', '*=', '/=', '%=', '<<=', '>>=', 'return'}
        done = -1
        for i, (line, t) in enumerate(tokens):
            if t != '?' or i <= done:
                continue
            begin = i
            while begin > 0:
                p = tokens[begin - 1][1]
                if p in ends or p in '([{' or p == '}':
                    break
                begin = match.get(begin - 1, begin - 1) if p in ')]' else begin - 1
            end = i
            while end + 1 < len(tokens):
                n = tokens[end + 1][1]
                if n in (';', ',') or n in ')]}':
                    break
                end = match.get(end + 1, end + 1) if n in '([{' else end + 1
            count = sum(1 for _, x in tokens[begin:end + 1] if x == '?')
            done = end
            yield line, count, tokens[begin][0] != tokens[end][0]


def listing():
    out = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', 'src', 'tests'], cwd=ROOT, check=True,
                         capture_output=True, text=True).stdout.split('\n')
    return sorted(p for p in out if p and os.path.exists(os.path.join(ROOT, p)))


def tags(files):
    """Every function, struct, union and enum of files: (name, kind, file, first line, last line, static)."""
    out = subprocess.run(['ctags', '-L', '-', '-o', '-', '--sort=no', '--languages=C', '--map-C=+.h', '--kinds-C=fsug',
                          '-x', '--_xformat=%N\t%K\t%F\t%n\t%e\t%f'], cwd=ROOT, check=True, capture_output=True,
                         text=True, input='\n'.join(files)).stdout
    for row in out.splitlines():
        name, kind, path, first, last, scope = row.split('\t')
        if not name.startswith('__anon') and last:
            yield name, kind, path, int(first), int(last), scope == 'file'


def libc_names():
    path = subprocess.run(['cc', '-print-file-name=libc.so.6'], check=True, capture_output=True, text=True).stdout.strip()
    out = subprocess.run(['nm', '-D', '--defined-only', path], check=True, capture_output=True, text=True).stdout
    return {m[1] for m in re.finditer(r' [TWi] (\w+)@@', out)} | {'time', 'index', 'read', 'write', 'link'}


def strip_body(source, first, last):
    text = '\n'.join(source.lines[first - 1:last])
    return re.sub(r'\s+', ' ', re.sub(r'/\*.*?\*/|//[^\n]*', '', text, flags=re.S)).strip()


def offences(sources, all_files):
    src = {p: s for p, s in sources.items() if p.startswith('src/')}
    functions, structs = collections.defaultdict(list), collections.defaultdict(list)
    long = []
    libc = libc_names()
    for name, kind, path, first, last, static in tags(sorted(src)):
        if kind == 'function':
            functions[name].append((path, first))
            if static and name in libc:
                yield 'libc', path, first, f'{name} hides a name of libc'
            if last - first + 1 > MAX_LINES:
                long.append((path, first, name, last - first + 1))
        else:
            structs[kind + ' ' + name].append((path, first, strip_body(src[path], first, last)))
    for name, places in sorted(functions.items()):
        # A header that declares a name in one #if branch may define it in the other.
        if name != 'main' and len({os.path.splitext(p)[0] for p, _ in places}) > 1:
            for path, line in places:
                others = ', '.join(sorted({p for p, _ in places if p != path})[:3])
                yield 'shared name', path, line, f'{name} is also defined in {others}'
    for name, places in sorted(structs.items()):
        if len({body for _, _, body in places}) > 1:
            for path, line, body in places:
                others = ', '.join(sorted({p for p, _, b in places if b != body})[:3])
                yield 'shared tag', path, line, f'{name} has another body in {others}'
    yield from uncalled(sources, src)
    excess = len([x for x in long if x[2] not in SCANNERS]) > MAX_LONG
    for path, line, name, lines in long:
        if name not in SCANNERS and (excess or lines > MAX_LINES_EVER):
            yield 'long function', path, line, f'{name} has {lines} lines'
    benches = line_count(all_files, 'tests/bench/')
    if benches > MAX_BENCH_LINES:
        yield 'bench lines', 'tests/bench', 1, f'{benches} lines, {MAX_BENCH_LINES} at most'
    for path in all_files:
        if path.startswith('tests/') and path.endswith(('_test.py', '_test.sh')) and not exits_with_its_result(path):
            yield 'mute test', path, 1, 'its status does not say whether it passed: let it end with sys.exit(main(...))'
    for path, s in sorted(sources.items()):
        yield from of_one_file(path, s)
        yield from word_lists(path, s.text)
        yield from model_names(path, s.text)


def exits_with_its_result(path):
    """A test that a script ends without its result can fail unseen."""
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        text = f.read()
    if path.endswith('.sh'):
        return bool(re.search(r'^set -\w*e', text, re.M) or re.search(r'^exit [$"]', text.rstrip().rpartition('\n')[2]))
    last = ast.parse(text).body[-1]
    while isinstance(last, (ast.If, ast.With, ast.Try)):
        last = last.body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) == 'sys.exit' and len(call.args) == 1 \
        and not isinstance(call.args[0], ast.Constant)


def uncalled(sources, src):
    """Functions of src that no code of src names, and exports that only their own file does."""
    words = {p: collections.Counter(t for _, t in s.tokens if t[0].isalpha() or t[0] == '_') for p, s in sources.items()}
    in_code, in_heads, in_tests, heads = (collections.Counter() for _ in range(4))
    for path, count in words.items():
        if not path.startswith('src/'):
            in_tests += count
        elif path.endswith('.c'):
            in_code += count
        else:
            in_heads += count
            heads.update(count.keys())
    # The texts of a build tool name what the code that it makes calls.
    made = set(re.findall(r'\w+', open(ROOT + '/cmake/workflow_keys.c', encoding='utf-8').read()))
    for name, kind, path, first, _, static in tags(sorted(p for p in src if p.endswith('.c'))):
        if kind != 'function' or static or name == 'main' or name in ONLY_TESTS_CALL | made:
            continue
        # A header names it once to declare it; more is a macro or a function there that calls it.
        more = in_heads[name] - heads[name]
        if in_code[name] + more < 2:
            yield 'uncalled', path, first, f'{name} is called by ' + ('tests only' if in_tests[name] else 'nobody')
        elif in_code[name] == words[path][name] and not more and not in_tests[name]:
            yield 'needless export', path, first, f'{name} is called in its own file only: static'


def line_count(files, under, *ends):
    return sum(open(os.path.join(ROOT, p), 'rb').read().count(b'\n') for p in files
               if p.startswith(under) and p.endswith(ends or ''))


def of_one_file(path, s):
    if path.startswith('src/') and len(s.lines) > MAX_FILE_LINES:
        yield 'long file', path, 1, f'{len(s.lines)} lines, {MAX_FILE_LINES} at most'
    for n, line in enumerate(s.lines, 1):
        if len(line) > MAX_COLUMNS:
            yield 'long line', path, n, f'{len(line)} columns'
        m = BANNED.search(line) if path.startswith('src/') and n in s.code_lines else None
        if m:
            yield 'banned call', path, n, f'{m[1]} has no bound, or no way to say that it failed'
        m = CUTS_KEYS.search(line) if path.startswith('src/') and n in s.code_lines else None
        if m:
            yield 'banned call', path, n, f'{m[1]} cuts keys off at NUL: use format/json_value.h'
        if path.startswith('src/') and not path.startswith(LINUX_ROOMS) and n in s.code_lines:
            m = LINUX.search(line)
            if m:
                yield 'Linux only', path, n, f'{m.group().strip("( ")} belongs to ' + ', '.join(LINUX_ROOMS)
    if not s.comments or s.comments[0][0] != 1 or len(s.comments[0][1].split()) < 3:
        yield 'no opening', path, 1, 'opens without a comment that says what the file is'
    for line, text in s.comments:
        m = re.match(r'(Of|One that|What) ', text)
        if m:
            yield 'odd comment', path, line, f'a comment begins with "{m.group().strip()}"'
    for line, count, several in s.ternaries():
        if count > 1:
            yield 'nested ?:', path, line, 'a conditional expression within another'
        elif several:
            yield 'long ?:', path, line, 'a conditional expression over several lines'


# Readers of verdicts know forms, not words: only names of formats, of repairs and of outcomes stand there in lists.
NO_WORDS_IN = ('src/extract/', 'src/judge/')
FORMAT_NAMES = {'names', 'doubtful', 'root_messages', 'repair_ways', 'literals', 'words', 'others', 'element_names',
                'functions', 'stages', 'outcomes', 'markers', 'tokens'}


def word_lists(path, text):
    """Lists of words of a language, in a file of the readers: an array of three or more, or one text of eight."""
    if not path.startswith(NO_WORDS_IN):
        return
    for m in re.finditer(r'(\w+)\s*(?:\[[^\]]*\]\s*)+=\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}', text):
        words = [w for w in re.findall(r'"((?:[^"\\]|\\.)*)"', m[2])
                 if len(w) > 1 and all(c.isalpha() or c in " '_" for c in w)]
        if len(words) > 2 and m[1] not in FORMAT_NAMES:
            yield 'word list', path, text[:m.start()].count('\n') + 1, f'{m[1]} lists words: a reader knows forms alone'
    for m in re.finditer(r'(\w+)\[\]\s*=\s*((?:"(?:[^"\\]|\\.)*"\s*)+);', text):
        if len(re.findall(r'[^\W\d_]{2,}', m[2])) > 7:
            yield 'word list', path, text[:m.start()].count('\n') + 1, f'{m[1]} lists words: a reader knows forms alone'


MODEL = re.compile(r'"(?:[^"]*/)?(gpt-\d|chatgpt-|o[1-9]-|claude-(?:opus|sonnet|haiku|fable|mythos|\d)[\w-]*|gemini-\d|grok-\d|deepseek-[a-z0-9]|llama-?\d|qwen\d|mistral-\w)[^" ]*"')


def model_names(path, text):
    """Names of models age: what a model takes is learnt from its answers, and what is known of it is data."""
    if path.startswith('src/') and path.endswith('.c'):
        for m in MODEL.finditer(text):
            yield 'model name', path, text[:m.start()].count('\n') + 1, f'{m.group()} stands in C: it will be old soon'


def figures(sources, files):
    src = {p: s for p, s in sources.items() if p.startswith('src/')}
    code = sum(len(s.code_lines) for s in src.values())
    comments = sum(len(s.comment_lines) for s in src.values())
    all_lines = sum(len(s.lines) for s in src.values())
    marks = sum(1 for s in src.values() for _, t in s.tokens if t == '?')
    table = [t for t in tags(sorted(src)) if t[1] == 'function']
    by_name = collections.defaultdict(set)
    for name, _, path, *_ in table:
        by_name[name].add(path)
    sizes = [last - first + 1 for _, _, _, first, last, _ in table]
    print(f'lines of src (.c .h)               {all_lines}')
    print(f'lines of tests (.c .h)             {line_count(files, "tests/", ".c", ".h")}')
    print(f'lines of tests (.py .sh)           {line_count(files, "tests/", ".py", ".sh")}')
    print(f'lines of benches                   {line_count(files, "tests/bench/")}')
    print(f'files of src (.c .h)               {len(src)}')
    print(f'functions                          {len(table)}')
    print(f'functions that share a name        {sum(1 for t in table if len(by_name[t[0]]) > 1)}')
    print(f'functions over {MAX_LINES} lines            {sum(1 for x in sizes if x > MAX_LINES)}'
          f' (over {MAX_LINES_EVER}: {sum(1 for x in sizes if x > MAX_LINES_EVER)})')
    print(f'ternaries per 1,000 lines          {1000 * marks / all_lines:.1f}')
    print(f'comment lines per code line        {comments / code:.3f}')
    print('.c files per folder:')
    for folder, count in sorted(collections.Counter(os.path.dirname(p) for p in src if p.endswith('.c')).items()):
        print(f'  {folder:24}{count:4}')


def allowed():
    """How many offences of a kind are left from before the rule."""
    path = ROOT + '/tests/house.txt'
    if not os.path.exists(path):
        return {}
    with open(path, encoding='utf-8') as f:
        rows = [line.split(None, 1) for line in f if line.strip() and not line.startswith('#')]
    return {kind.strip(): int(count) for count, kind in rows}


def main():
    args = [a for a in sys.argv[1:] if not a.startswith('-')]
    paths = [os.path.relpath(os.path.abspath(a), ROOT) for a in args]
    files = listing()
    sources = {p: Source(p) for p in files if p.endswith(('.c', '.h'))}
    if '--figures' in sys.argv:
        return figures(sources, files)
    found = [o for o in offences(sources, files)
             if not paths or any(o[1] == p or o[1].startswith(p.rstrip('/') + '/') for p in paths)]
    if '--count' in sys.argv:
        for kind, count in sorted(collections.Counter(o[0] for o in found).items()):
            print(f'{count:6}  {kind}')
        print(f'{len(found):6}  in all; tests/house.py shows them')
        return 0
    if '--ratchet' in sys.argv:
        counts, most = collections.Counter(o[0] for o in found), allowed()
        over = {kind for kind in counts if counts[kind] > most.get(kind, 0)}
        for kind in sorted(set(most) | set(counts)):
            if counts[kind] != most.get(kind, 0):
                print(f'{kind}: {counts[kind]}, tests/house.txt allows {most.get(kind, 0)}')
        found = [o for o in found if o[0] in over]
    for kind, path, line, text in sorted(found, key=lambda o: (o[1], o[2])):
        print(f'{path}:{line}: {kind}: {text}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
