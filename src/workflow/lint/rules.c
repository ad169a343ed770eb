/* Checks one movement's rules: what their expressions name, and which can never win. */
#include "workflow/lint/part.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>

enum { REF_NAMES_MAX = 32 }; /* names in one reference; any beyond these are ignored */

struct refs {
  struct lint *l;
  size_t movement, rule;
};

/* Checks a reference to tests: tests.passed is the movement's own, checks.NAME.exit any movement's
 * that has a command. */
static void check_tests_ref(struct lint *l, size_t movement, const char *place,
                            const struct str *path, size_t n) {
  bool own = str_eq_c(path[0], "tests");
  bool counts = own || (n > 2 && (str_eq_c(path[2], "passed") || str_eq_c(path[2], "failed") ||
                                  str_eq_c(path[2], "skipped")));
  size_t i = own ? movement : 0;
  while (!own && i < l->count && !str_eq_c(path[1], l->names[i]))
    i++;
  bool runs = i < l->count && l->movements[i].is_command;
  if (!runs && own)
    lint_report(
        l, l->errors, place,
        "tests come from a command, and this movement runs none: give it command: and tests:");
  else if (!runs)
    lint_report(l, l->errors, place,
                "no movement %.*s runs a command, so checks knows nothing about it: name one that "
                "has command:",
                (int)(path[1].n < LIMIT_NAME_BYTES ? path[1].n : LIMIT_NAME_BYTES), path[1].p);
  else if (counts && json_object_get(l->movements[i].object, "tests") == NULL)
    lint_report(l, l->errors, place,
                "the tests of \"%s\" are not counted: give it tests:, such as tests: pytest",
                l->names[i]);
}

static void check_ref(void *ctx, const struct str *names, size_t n) {
  struct refs *r = ctx;
  struct str path[REF_NAMES_MAX] = {{"", 0}, {"", 0}};
  struct lint *l = r->l;
  char place[DOC_PATH_BYTES];
  for (size_t i = 0; i < n && i < ARRAY_LEN(path); i++)
    path[i] = (struct str){names[i].p, names[i].n};
  lint_rule_path(l, place, r->movement, r->rule, "condition");
  if (str_eq_c(path[0], "exit") && !l->movements[r->movement].is_command)
    lint_report(
        l, l->errors, place,
        "exit is a command's exit status, and this movement runs none: give it command:, or use "
        "a label");
  if (str_eq_c(path[0], "tests") || str_eq_c(path[0], "checks"))
    check_tests_ref(l, r->movement, place, path, n);
  if (l->movements[r->movement].rules[r->rule].rule.aggregate == NULL &&
      (str_eq_c(path[0], "votes") || str_eq_c(path[0], "parts")))
    lint_votes(l, place, r->movement, path[0], n > 1 ? path[1] : STR(""));
  if (!str_eq_c(path[0], "structured") || n < 2)
    return;
  for (size_t i = 0; i < l->count; i++)
    if (str_eq_c(path[1], l->names[i])) {
      lint_member(l, place, i, path + 2, (n < ARRAY_LEN(path) ? n : ARRAY_LEN(path)) - 2);
      return;
    }
  size_t n_shown = path[1].n > LIMIT_NAME_BYTES ? LIMIT_NAME_BYTES : path[1].n;
  const char *name = arena_strndup(&l->arena, path[1].p, utf8_floor(path[1].p, n_shown));
  l->names[l->count] = NULL;
  lint_report(l, l->errors, place, "there is no movement %s, so structured.%s has no value: %s",
              name, name, lint_suggestion(l, name, l->names, "write structured.MOVEMENT.FIELD"));
  l->names[l->count] = "COMPLETE";
}

static void check_shadowed(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  char path[DOC_PATH_BYTES];
  for (size_t i = 0; i < m->rule_count; i++) {
    size_t behind = m->rules[i].behind;
    if (behind > 0)
      lint_report(l, l->warnings, lint_rule_path(l, path, movement, i, "condition"),
                  "rule %zu can never win: rule %zu always holds and comes before it; put that one "
                  "last or remove one",
                  i + 1, behind);
    for (size_t k = 0; k < i && behind == 0; k++) {
      const struct rule *first = &m->rules[k].rule, *second = &m->rules[i].rule;
      if (!m->rules[k].parsed || !m->rules[i].parsed || first->kind != RULE_LABEL ||
          !str_eq(first->label, second->label) ||
          (first->interactive_only && !second->interactive_only))
        continue;
      lint_report(l, l->warnings, lint_rule_path(l, path, movement, i, "condition"),
                  "rule %zu can never win: rule %zu takes the same label without a when(); put the "
                  "guarded rule first or remove one",
                  i + 1, k + 1);
      break;
    }
  }
}

/* Reports a comparison without when(...), which is a label. A model would be asked about it; if it
 * stands alone, nobody would be asked and it would always hold. */
static void check_bare_comparison(struct lint *l, size_t movement, size_t rule) {
  struct str text = l->movements[movement].rules[rule].rule.label;
  struct expr_error why;
  char path[DOC_PATH_BYTES];
  bool compares = false;
  if (str_starts(text, "when "))
    text = str_trim((struct str){text.p + 5, text.n - 5});
  for (size_t i = 0; i < text.n && !compares; i++)
    compares = text.p[i] == '=' || text.p[i] == '<' || text.p[i] == '>';
  if (compares && expr_parse(&l->arena, text.p, text.n, EXPR_WHEN, &why) != NULL)
    lint_report(l, l->errors, lint_rule_path(l, path, movement, rule, "condition"),
                "without when(...) this is a label, for a model to judge: write when(" STR_FMT ")",
                STR_ARG(text));
}

static void check_value(struct lint *l, size_t movement, size_t rule) {
  const struct expr *when = l->movements[movement].rules[rule].rule.when;
  struct expr_error why;
  bool constant;
  char path[DOC_PATH_BYTES];
  if (lint_try_out(when, &constant, &why) == EXPR_ERROR)
    lint_report(l, l->errors, lint_rule_path(l, path, movement, rule, "condition"), "%s", why.text);
}

void lint_rules(struct lint *l, size_t movement) {
  assert(movement < l->count);
  const struct lint_movement *m = &l->movements[movement];
  char path[DOC_PATH_BYTES];
  size_t selectable = 0;
  for (size_t k = 0; k < m->rule_count; k++) {
    struct refs refs = {l, movement, k};
    selectable += !m->rules[k].rule.interactive_only;
    if (m->rules[k].parsed && m->rules[k].rule.label.n > 0)
      check_bare_comparison(l, movement, k);
    if (m->rules[k].parsed && m->rules[k].rule.when) {
      expr_each_ref(m->rules[k].rule.when, check_ref, &refs);
      check_value(l, movement, k);
    }
  }
  lint_group(l, movement);
  if (selectable == 0 && m->rule_count > 0)
    lint_report(l, l->errors, lint_path(l, path, movement, "rules"),
                "every rule is interactive_only, so none can be selected: add a rule without it");
  check_shadowed(l, movement);
}
