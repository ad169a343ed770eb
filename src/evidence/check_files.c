/* Finds the files that are a check's own. */
#include "evidence/check_files.h"

#include "base/memory.h"
#include "core/checks.h"
#include "format/json_object.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the listing --- */

void listing_add(struct file_listing *l, struct str path, const char *mode, struct str hash,
                 long size) {
  uint32_t at = (uint32_t)l->count;
  if (map_add(&l->by_path, &l->arena, path, &at)) {
    l->files = xgrow(l->files, &l->room, l->count + 1, sizeof *l->files);
    l->count++;
  }
  l->files[at] = (struct listed_file){
      .path = arena_str(&l->arena, path), .hash = arena_str(&l->arena, hash).p, .size = size};
  print_into(l->files[at].mode, sizeof l->files[at].mode, "%s", mode);
}

const struct listed_file *listing_at(const struct file_listing *l, struct str path) {
  uint32_t at;
  return map_get(&l->by_path, path, &at) ? &l->files[at] : NULL;
}

void listing_deinit(struct file_listing *l) {
  map_deinit(&l->by_path);
  arena_deinit(&l->arena);
  free(l->files);
  *l = (struct file_listing){0};
}

const char *check_file_name(enum check_file why) {
  static const char *const names[] = {"not", "usual_name", "command", "beside", "data", "added"};
  assert((size_t)why < ARRAY_LEN(names));
  return names[why];
}

/* --- names --- */

/* Patterns of protect: one without a slash names a file or a folder anywhere. */
static const char *const usual[] = {
    "test",         "tests",          "spec",      "specs",       "__tests__",
    "testdata",     "__snapshots__",  "test_*",    "*_test.*",    "*_spec.*",
    "*.test.*",     "*.spec.*",       "*Test.*",   "*Tests.*",    "conftest.py",
    "pytest.ini",   ".pytest.ini",    "tox.ini",   "noxfile.py",  "sitecustomize.py",
    "jest.config*", "vitest.config*", ".mocharc*", "karma.conf*", "playwright.config*",
    ".npmrc",       "phpunit.xml*",   ".rspec"};

static const struct {
  const char *programs, *files;
} unnamed[] = {
    {"make gmake", "Makefile makefile GNUmakefile"},
    {"npm npx node yarn pnpm bun", "package.json"},
    {"pytest py.test tox nox", "pyproject.toml setup.cfg"},
    {"just", "justfile"},
    {"rake", "Rakefile"},
};

static const char sources[] =
    "|c|h|cc|cpp|cxx|hpp|hh|m|py|pyi|js|mjs|cjs|jsx|ts|tsx|mts|cts|go|rs|java|kt|kts|scala|rb|php|"
    "pl|pm|sh|bash|zsh|fish|awk|swift|cs|fs|vb|ml|mli|hs|lua|r|R|jl|ex|exs|erl|clj|dart|zig|nim|d|"
    "vue|svelte|html|htm|css|scss|less|sql|proto|graphql|jinja|j2|tmpl|erb|asm|s|S|f90|v|sv|tf|";

static struct str base_name(struct str path) {
  const char *slash = memrchr(path.p, '/', path.n);
  return slash ? (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)} : path;
}

static struct str folder_of(struct str path) {
  const char *slash = memrchr(path.p, '/', path.n);
  return (struct str){path.p, slash ? (size_t)(slash - path.p) : 0};
}

static bool is_source(struct str path) {
  struct str name = base_name(path);
  const char *dot = memrchr(name.p, '.', name.n);
  char word[16];
  size_t n = dot ? name.n - (size_t)(dot + 1 - name.p) : 0;
  if (n == 0 || n > 8)
    return false;
  print_into(word, sizeof word, "|%.*s|", (int)n, dot + 1);
  return strstr(sources, word) != NULL;
}

static bool matches_any(const json_t *patterns, struct str path) {
  for (size_t i = 0; i < json_array_size(patterns); i++)
    if (protect_matches(json_view(json_array_get(patterns, i)), path))
      return true;
  return false;
}

static bool is_build_file(struct str path) {
  struct str name = base_name(path);
  for (size_t i = 0; i < ARRAY_LEN(unnamed); i++)
    if (str_among(name, unnamed[i].files))
      return true;
  return str_eq_c(name, "CMakeLists.txt") || str_ends(name, ".mk");
}

static bool is_in_code(struct str path) {
  struct str rest = path, top = str_cut(&rest, '/');
  return rest.p != NULL && str_among(top, "src lib bin app apps pkg cmd internal source");
}

/* Among code, test_counts.c is about tests; only Python has tests of such names there. */
static bool has_usual_name(struct str path) {
  bool code = is_in_code(path) && !str_ends(path, ".py"), found = false;
  for (size_t i = 0; i < ARRAY_LEN(usual) && !found; i++)
    found = protect_matches(str_from(usual[i]), path) && !(code && strcmp(usual[i], "test_*") == 0);
  return found;
}

/* --- the search --- */

struct check_search {
  const struct check_files_spec *spec;
  const struct file_listing *l;
  enum check_file *why;
  size_t *queue; /* files whose text is still to be read */
  size_t queued, done, room;
};

static void search_mark(struct check_search *s, const struct listed_file *file,
                        enum check_file why) {
  size_t at = (size_t)(file - s->l->files);
  if (s->why[at] != CHECK_FILE_NOT || matches_any(s->spec->leave, file->path))
    return;
  s->why[at] = why;
  bool script = why != CHECK_FILE_USUAL || is_source(file->path) || file->mode[3] == '7';
  if (!script || file->size > CHECK_FILE_BYTES || file->mode[1] == '2')
    return;
  s->queue = xgrow(s->queue, &s->room, s->queued + 1, sizeof *s->queue);
  s->queue[s->queued++] = at;
}

/* Finds `word` from a folder of the tree, with its "." and ".." worked out; NULL: it is no file. */
static const struct listed_file *file_from(const struct file_listing *l, struct str folder,
                                           struct str word) {
  char path[1024];
  size_t n = 0;
  if (folder.n + word.n + 2 > sizeof path || word.n == 0)
    return NULL;
  memcpy(path, folder.p, folder.n);
  n = folder.n;
  while (word.p != NULL && word.n > 0) {
    struct str part = str_cut(&word, '/');
    if (part.n == 0 || str_eq_c(part, "."))
      continue;
    if (str_eq_c(part, "..")) {
      if (n == 0)
        return NULL;
      n = folder_of((struct str){path, n}).n;
      continue;
    }
    if (n > 0)
      path[n++] = '/';
    memcpy(path + n, part.p, part.n);
    n += part.n;
  }
  return listing_at(l, (struct str){path, n});
}

/* Gives the next word that could be a path. */
static bool next_path(struct str *text, struct str *word) {
  static const char also[] = "._-/+@";
  while (text->n > 0 && str_span((struct str){text->p, 1}, also) == 0)
    *text = (struct str){text->p + 1, text->n - 1};
  size_t n = str_span(*text, also);
  *word = (struct str){text->p, n};
  *text = (struct str){text->p + n, text->n - n};
  while (word->n > 1 && word->p[word->n - 1] == '.')
    word->n--;
  return n > 0;
}

/* Marks what a program reads without being told its name, in the folder and in those named. */
static void mark_unnamed(struct check_search *s, struct str word, struct str folder,
                         struct str other) {
  struct str program = base_name(word);
  for (size_t i = 0; i < ARRAY_LEN(unnamed); i++) {
    if (!str_among(program, unnamed[i].programs))
      continue;
    for (struct str names = str_from(unnamed[i].files); names.p != NULL && names.n > 0;) {
      struct str name = str_cut(&names, ' ');
      const struct listed_file *file = file_from(s->l, folder, name);
      if (file != NULL)
        search_mark(s, file, CHECK_FILE_COMMAND);
      char path[600];
      print_into(path, sizeof path, "%.*s/%.*s", (int)(other.n < 400 ? other.n : 0), other.p,
                 STR_ARG(name));
      if (other.n > 0 && (file = file_from(s->l, folder, str_from(path))) != NULL)
        search_mark(s, file, CHECK_FILE_COMMAND);
    }
  }
}

/* Finds a file that a word of the command names; `a.b` is a module of Python's, too. */
static const struct listed_file *command_file(const struct check_files_spec *spec,
                                              const struct file_listing *l, struct str word) {
  const struct listed_file *file = file_from(l, str_from(spec->folder), word);
  char module[256];
  if (file == NULL && word.n > 0 && word.n < sizeof module - 4) {
    print_into(module, sizeof module, "%.*s.py", STR_ARG(word));
    for (size_t i = 0; i < word.n; i++)
      if (module[i] == '.')
        module[i] = '/';
    file = file_from(l, str_from(spec->folder), str_from(module));
  }
  if (file != NULL && is_in_code(file->path) && !has_usual_name(file->path) &&
      !str_has_any(base_name(file->path), "test|check|spec|lint|verify|ci"))
    return NULL;
  return file;
}

/* Follows a line for a shell. Returns true if the word is what a program only looks at, such as the
 * file of `test -f FILE`: that is the work's, and no file of the check. */
struct command_words {
  bool looks, begins;
};
static bool word_is_looked_at(struct command_words *at, struct str between, struct str word) {
  for (size_t i = 0; i < between.n; i++)
    at->begins |= strchr(";|&(){}\n", between.p[i]) != NULL;
  bool bracket = memchr(between.p, '[', between.n) != NULL;
  if (bracket)
    *at = (struct command_words){.looks = true};
  if (!at->begins)
    return at->looks;
  at->begins = str_among(word, "if then else elif while until do exec");
  at->looks = str_among(base_name(word), "test grep egrep fgrep ls stat wc");
  return false;
}

static void search_command(struct check_search *s) {
  struct str folder = str_from(s->spec->folder), text = str_from(s->spec->command), word, other;
  struct command_words at = {.begins = true};
  for (const char *from = text.p; next_path(&text, &word); from = text.p) {
    const struct listed_file *file = command_file(s->spec, s->l, word);
    bool looked_at = word_is_looked_at(&at, (struct str){from, (size_t)(word.p - from)}, word);
    if (file != NULL && !looked_at)
      search_mark(s, file, CHECK_FILE_COMMAND);
    mark_unnamed(s, word, folder, STR(""));
    for (struct str rest = str_from(s->spec->command); next_path(&rest, &other);)
      mark_unnamed(s, word, folder, other);
  }
}

/* May a file that `by` names be the check's? */
static enum check_file named_as(const struct listed_file *by, bool script,
                                const struct listed_file *file) {
  struct str folder = folder_of(file->path);
  if (script && folder.n > 0 && str_eq(folder, folder_of(by->path)) && !is_build_file(by->path) &&
      !is_in_code(file->path))
    return CHECK_FILE_BESIDE;
  return is_source(file->path) || file->mode[3] == '7' ? CHECK_FILE_NOT : CHECK_FILE_DATA;
}

/* Marks what a script names: from its own folder, from where the check runs, or from the top. Of
 * "$DIR/file" and the like the part behind the first slash counts. */
static void search_text(struct check_search *s, size_t at, struct str text) {
  const struct listed_file *by = &s->l->files[at];
  const struct str from[] = {folder_of(by->path), str_from(s->spec->folder), STR("")};
  /* A test can stand beside what it tests. */
  bool script = s->why[at] != CHECK_FILE_USUAL;
  struct str word;
  if (s->why[at] == CHECK_FILE_DATA) {
    if (str_starts(text, "#!"))
      s->why[at] = CHECK_FILE_NOT; /* a program */
    return;
  }
  if (memchr(text.p, '\0', text.n) != NULL)
    return;
  while (next_path(&text, &word)) {
    const char *slash = memchr(word.p, '/', word.n);
    struct str rest = {slash ? slash + 1 : "", slash ? word.n - (size_t)(slash + 1 - word.p) : 0};
    for (size_t i = 0; i < 2 * ARRAY_LEN(from); i++) {
      const struct listed_file *file = file_from(s->l, from[i / 2], i % 2 ? rest : word);
      enum check_file why =
          file != NULL && file != by ? named_as(by, script, file) : CHECK_FILE_NOT;
      if (why != CHECK_FILE_NOT)
        search_mark(s, file, why);
    }
    if (script)
      mark_unnamed(s, word, from[1], STR(""));
  }
}

void check_files_find(const struct check_files_spec *spec, const struct file_listing *l,
                      check_files_read read, void *ctx, enum check_file *why) {
  struct check_search s = {.spec = spec, .l = l, .why = why};
  memset(why, 0, l->count * sizeof *why);
  for (size_t i = 0; i < l->count; i++) {
    if (matches_any(spec->add, l->files[i].path))
      search_mark(&s, &l->files[i], CHECK_FILE_ADDED);
    else if (has_usual_name(l->files[i].path))
      search_mark(&s, &l->files[i], CHECK_FILE_USUAL);
  }
  search_command(&s);
  while (s.done < s.queued) {
    size_t from = s.done,
           n = s.queued - from < CHECK_FILES_BATCH ? s.queued - from : CHECK_FILES_BATCH;
    long bytes = 0;
    for (size_t i = 0; i < n; i++)
      if ((bytes += l->files[s.queue[from + i]].size + 100) > CHECK_FILES_BATCH_BYTES)
        n = i > 0 ? i : 1;
    struct buf texts[CHECK_FILES_BATCH] = {0};
    size_t which[CHECK_FILES_BATCH];
    memcpy(which, s.queue + from, n * sizeof *which);
    read(ctx, l, which, n, texts);
    s.done += n;
    for (size_t i = 0; i < n; i++) {
      if (texts[i].n > 0)
        search_text(&s, which[i], buf_view(&texts[i]));
      buf_deinit(&texts[i]);
    }
  }
  free(s.queue);
}

static bool tree_has(const struct file_listing *l, struct str folder, struct str word) {
  char path[600];
  bool found = file_from(l, folder, word) != NULL;
  (void)str_drop(&word, "./");
  print_into(path, sizeof path, "%.*s%s%.*s/", (int)(folder.n < 290 ? folder.n : 290), folder.p,
             folder.n > 0 ? "/" : "", (int)(word.n < 290 ? word.n : 290), word.p);
  for (size_t i = 0; i < l->count && !found; i++)
    found = str_starts(l->files[i].path, path);
  return found;
}

/* Does a program say this of the word? Its own name stands at the beginning of the line. */
static bool is_about(struct str line, struct str word) {
  bool found = false;
  for (size_t i = 1; i + word.n <= line.n && !found; i++) {
    struct str left = {line.p + i - 1, 1}, right = {line.p + i + word.n, i + word.n < line.n};
    found = memcmp(line.p + i, word.p, word.n) == 0 && str_span(left, "._-+@") == 0 &&
            str_span(right, "._-/+@") == 0;
  }
  return found;
}

bool check_files_missed(const struct check_files_spec *spec, const struct file_listing *l,
                        struct str output) {
  static const char missing[] = "No such file|not found|cannot open|can't open|not importable|"
                                "No rule to make target|no makefile found|Missing script";
  while (output.n > 0) {
    struct str line = str_next_line(&output), text = str_from(spec->command), word;
    if (!str_has_any(line, missing))
      continue;
    if (str_has(line, "no makefile found"))
      return true;
    while (next_path(&text, &word))
      if (is_about(line, word) && !tree_has(l, str_from(spec->folder), word))
        return true;
  }
  return false;
}
