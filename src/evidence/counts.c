/* Finds the summaries of tests in what a check printed. */
#include "evidence/counts.h"

#include <assert.h>
#include <string.h>

static bool has_none(const struct test_counts *c) {
  return c->passed == 0 && c->failed == 0 && c->skipped == 0;
}

static void counts_add(struct test_counts *sum, const struct test_counts *more) {
  sum->passed += more->passed;
  sum->failed += more->failed;
  sum->skipped += more->skipped;
}

/* "ok" at the beginning of a line is an English word, too: TAP tells how many tests it has. */
static bool has_plan(struct str text) {
  while (text.n > 0) {
    struct str line = str_next_line(&text);
    if (str_starts(line, "1..") || (str_starts(line, "Files=") && str_has(line, ", Tests=")))
      return true;
  }
  return false;
}

/* --- what is only said --- */

/* Reads "4 of 4", "12/12" or "7" from the front; all: -1 if there is only one number. */
static bool said_numbers(struct str *text, long *some, long *all) {
  size_t n = 0;
  *all = -1;
  while (n < text->n && str_is_digit(text->p[n]))
    n++;
  if (n == 0 || n > 9 || !str_to_long((struct str){text->p, n}, some))
    return false;
  *text = (struct str){text->p + n, text->n - n};
  struct str rest = *text;
  if (!str_drop(&rest, " of ") && !str_drop(&rest, "/") && !str_drop(&rest, " / "))
    return true;
  for (n = 0; n < rest.n && str_is_digit(rest.p[n]);)
    n++;
  if (n == 0 || n > 9 || !str_to_long((struct str){rest.p, n}, all) || *all < *some)
    return false;
  *text = (struct str){rest.p + n, rest.n - n};
  return true;
}

/* Adds one number of a line: the word after it says what it counts. True: those that passed. */
static bool said_number(struct str after, long some, long all, struct test_counts *sum) {
  while (after.n > 0 && after.p[0] == ' ')
    after = (struct str){after.p + 1, after.n - 1};
  if (!str_drop(&after, "tests ") && !str_drop(&after, "test ") && !str_drop(&after, "checks "))
    (void)str_drop(&after, "cases ");
  bool passed = str_starts_fold(after, "pass");
  if (passed) {
    sum->passed += some;
    sum->failed += all > some ? all - some : 0;
  } else if (all < 0 && str_starts_fold(after, "fail")) {
    sum->failed += some;
  } else if (all < 0 && str_starts_fold(after, "skip")) {
    sum->skipped += some;
  }
  return passed;
}

/* A line counts if it says how many passed. */
static bool said_line(struct str line, struct test_counts *sum) {
  struct test_counts found = {0};
  bool passed = false, inside = false;
  while (line.n > 0) {
    long some, all;
    bool begins = !inside && str_is_digit(line.p[0]);
    inside = str_is_letter(line.p[0]) || str_is_digit(line.p[0]) || line.p[0] == '.';
    if (begins && said_numbers(&line, &some, &all))
      passed |= said_number(line, some, all, &found);
    else
      line = (struct str){line.p + 1, line.n - 1};
  }
  if (passed)
    counts_add(sum, &found);
  return passed;
}

void counts_find(struct str text, struct check_counts *out) {
  static const enum test_format formats[] = {TESTS_PYTEST, TESTS_UNITTEST, TESTS_CTEST, TESTS_CARGO,
                                             TESTS_GO,     TESTS_NODE,     TESTS_JEST,  TESTS_TAP};
  bool has_node = false;
  *out = (struct check_counts){0};
  for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
    struct test_counts found;
    if ((formats[i] == TESTS_TAP && (has_node || !has_plan(text))) ||
        !test_counts_read(formats[i], text, &found))
      continue;
    has_node |= formats[i] == TESTS_NODE;
    if (out->kind == COUNTS_NONE || (has_none(&out->tests) && !has_none(&found)))
      out->format = formats[i];
    out->kind = COUNTS_MEASURED;
    counts_add(&out->tests, &found);
  }
  if (out->kind == COUNTS_MEASURED && !has_none(&out->tests))
    return;
  struct test_counts said = {0};
  bool any = false;
  for (struct str rest = text; rest.n > 0;)
    any |= said_line(str_next_line(&rest), &said);
  if (any)
    *out = (struct check_counts){.kind = COUNTS_SAID, .tests = said};
}

enum counts_fall counts_compare(const struct check_counts *before, const struct check_counts *now) {
  const struct test_counts *b = &before->tests, *n = &now->tests;
  if (now->kind < before->kind)
    return COUNTS_GONE;
  if (before->kind == COUNTS_NONE)
    return COUNTS_HOLD;
  if (n->passed < b->passed ||
      n->passed + n->failed + n->skipped < b->passed + b->failed + b->skipped)
    return COUNTS_FEWER;
  return n->skipped > b->skipped ? COUNTS_SKIPPED : COUNTS_HOLD;
}

void counts_put(const struct check_counts *counts, struct buf *out) {
  const struct test_counts *t = &counts->tests;
  switch (counts->kind) {
  case COUNTS_NONE:
    buf_puts(out, "no counts");
    return;
  case COUNTS_SAID:
    buf_printf(out, "said: %ld of %ld passed", t->passed, t->passed + t->failed);
    break;
  case COUNTS_MEASURED:
    buf_printf(out, "%ld of %ld tests passed", t->passed, t->passed + t->failed);
    break;
  }
  if (t->skipped > 0)
    buf_printf(out, ", %ld skipped", t->skipped);
}
