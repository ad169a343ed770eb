/* Which files are a check's: small trees, a command, and what must come out. */
#include "evidence/check_files.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files in a text: NAME or NAME+x, "|" and the content; ";" between files. */
static const char *texts_of[64];

static void tree_of(const char *files, struct file_listing *l, struct arena *a) {
  for (struct str rest = str_from(files); rest.p != NULL && rest.n > 0;) {
    struct str text = str_cut(&rest, ';'), name = str_cut(&text, '|');
    bool executable = str_ends(name, "+x");
    name.n -= executable ? 2 : 0;
    texts_of[l->count] = arena_strndup(a, text.p ? text.p : "", text.n);
    listing_add(l, name, executable ? "100755" : "100644", STR("1234"), (long)text.n);
  }
}

static void read_texts(void *ctx, const struct file_listing *l, const size_t *which, size_t n,
                       struct buf *texts) {
  (void)ctx, (void)l;
  for (size_t i = 0; i < n; i++)
    buf_puts(&texts[i], texts_of[which[i]]);
}

static const struct row {
  const char *command, *folder, *add, *leave, *files, *wanted;
} rows[] = {
    /* by name */
    {"true", "", NULL, NULL,
     "src/a.c;tests/a.c;src/test_b.py;src/b_test.go;src/c.spec.ts;conftest.py;.npmrc;README.md;"
     "attest.c;src/latest/x.c;src/format/test_counts.c",
     "tests/a.c src/test_b.py src/b_test.go src/c.spec.ts conftest.py .npmrc"},
    /* the command's own words, and what those scripts name beside themselves */
    {"sh ci/run.sh", "", NULL, NULL,
     "ci/run.sh|xargs <ci/steps;ci/steps|one sh bin/tool;bin/tool|#!/bin/sh;"
     "ci/other",
     "ci/run.sh ci/steps"},
    {"sh ci/test.sh", "", NULL, NULL, "ci/test.sh|python3 ci/verdict.py report.xml;ci/verdict.py",
     "ci/test.sh ci/verdict.py"},
    /* data elsewhere counts, code does not: not by its suffix, its mode or its first line */
    {"./check.sh", "", NULL, NULL,
     "check.sh+x|cat docs/limits.txt src/a.c bin/x bin/y lib.sh;docs/limits.txt;src/a.c;bin/x+x;"
     "bin/y|#!/bin/sh;lib.sh",
     "check.sh docs/limits.txt"},
    {"sh tests/limits.sh", "", NULL, NULL,
     "tests/limits.sh|sh bin/check-name docs/limits.txt;bin/check-name|#!/bin/sh;"
     "docs/limits.txt|see README;README",
     "tests/limits.sh docs/limits.txt"},
    {"python3 tools/lint.py src", "", NULL, NULL,
     "tools/lint.py|read_text(\".lint.json\");.lint.json;src/a.py", "tools/lint.py .lint.json"},
    /* a variable in front */
    {"sh ci/a.sh", "", NULL, NULL, "ci/a.sh|. \"$DIR/b.sh\" && cat ${X}/data/c;ci/b.sh;data/c",
     "ci/a.sh ci/b.sh data/c"},
    /* programs that read a file unnamed; a build file stands beside the code */
    {"make test", "", NULL, NULL,
     "Makefile|cc main.c src/a.c -include config.mk;main.c;src/a.c;config.mk;package.json",
     "Makefile config.mk"},
    {"make -C lib check", "", NULL, NULL, "lib/Makefile|cc x.c;lib/x.c;Makefile",
     "lib/Makefile Makefile"},
    {"npm test", "", NULL, NULL, "package.json;src/a.js;Makefile", "package.json"},
    {"python3 -m pytest -q", "", NULL, NULL, "pyproject.toml;setup.cfg;a.py",
     "pyproject.toml setup.cfg"},
    {"sh run.sh", "", NULL, NULL, "run.sh|exec pytest;pyproject.toml;a.py",
     "run.sh pyproject.toml"},
    /* modules */
    {"python3 -m checks.all", "", NULL, NULL, "checks/all.py;checks/one.py", "checks/all.py"},
    /* code that the command names is not the check, unless it says so */
    {"node src/cli.js; sh bin/test", "", NULL, NULL, "src/cli.js;bin/test;bin/slug", "bin/test"},
    /* a test that stands beside what it tests */
    {"node --test", "", NULL, NULL, "money/a.test.js|require(\"./a.js\");money/a.js",
     "money/a.test.js"},
    /* in a folder */
    {"make", "sub", NULL, NULL, "sub/Makefile|x;Makefile", "sub/Makefile"},
    {"sh ../ci/a.sh", "sub", NULL, NULL, "ci/a.sh;sub/b", "ci/a.sh"},
    {"sh ../../ci/a.sh", "sub", NULL, NULL, "ci/a.sh;sub/b", ""},
    /* a person's word */
    {"true", "", "golden/**", "tests/util/**", "golden/a;tests/util/b;tests/c", "golden/a tests/c"},
    {"make", "", NULL, "Makefile", "Makefile|config.mk;config.mk", ""},
};

static void check_row(size_t i, const struct row *r) {
  AUTO(listing_deinit) struct file_listing l = {0};
  AUTO(arena_deinit) struct arena a = {0};
  buf_auto_t got = {0};
  json_auto_t *add = json_array(), *leave = json_array();
  if (r->add != NULL)
    json_array_append_new(add, json_string(r->add));
  if (r->leave != NULL)
    json_array_append_new(leave, json_string(r->leave));
  const struct check_files_spec spec = {
      .command = r->command, .folder = r->folder, .add = add, .leave = leave};
  tree_of(r->files, &l, &a);
  enum check_file why[64];
  check_files_find(&spec, &l, read_texts, NULL, why);
  for (size_t k = 0; k < l.count; k++)
    if (why[k] != CHECK_FILE_NOT)
      buf_printf(&got, "%s%s", got.n > 0 ? " " : "", l.files[k].path.p);
  if (strcmp(buf_c(&got), r->wanted) != 0)
    fail_msg("row %zu (%s): %s", i, r->command, buf_c(&got));
}

TEST(files_of_a_check_are_found) {
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    check_row(i, &rows[i]);
}

TEST(a_check_that_was_not_there_is_told_from_one_that_fails) {
  static const struct {
    const char *command, *files, *output;
    bool missed;
  } missed[] = {
      {"sh ci/run.sh", "a", "sh: 0: cannot open ci/run.sh: No such file\n", true},
      {"python3 tests/all.py", "a", "python3: can't open file '/x/tests/all.py'\n", true},
      {"python3 -m unittest discover -s tests", "a",
       "ImportError: Start directory is not importable: 'tests'\n", true},
      {"make test", "a.c", "make: *** No targets specified and no makefile found.  Stop.\n", true},
      {"make test", "Makefile", "make: *** No rule to make target 'test'.  Stop.\n", true},
      /* it was there, and what it says is no such thing */
      {"sh ci/run.sh", "ci/run.sh", "ci/run.sh: 3: cannot open data: No such file\n", false},
      {"python3 -m unittest discover -s tests", "tests/a.py", "tests: No such file\n", false},
      {"make test", "Makefile", "cc: error: a.c: No such file or directory\n", false},
      {"sh ci/run.sh", "a", "FAIL ci/run.sh\n", false},
      {"sh ci/run.sh", "ci/run.sh", "sh: 1: sed: not found\n", false},
      {"sh ci/run.sh", "ci/run.sh", "cat: tests/a.sh: No such file or directory\n", false},
      {"./tests/all.sh", "a", "sh: 1: ./tests/all.sh: not found\n", true},
  };
  for (size_t i = 0; i < ARRAY_LEN(missed); i++) {
    AUTO(listing_deinit) struct file_listing l = {0};
    AUTO(arena_deinit) struct arena a = {0};
    const struct check_files_spec spec = {.command = missed[i].command, .folder = ""};
    tree_of(missed[i].files, &l, &a);
    if (check_files_missed(&spec, &l, str_from(missed[i].output)) != missed[i].missed)
      fail_msg("row %zu", i);
  }
}
