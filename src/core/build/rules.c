/* Builds the rules of a movement, with those of the workflow in front. */
#include "core/build.h"

#include "base/limits.h"
#include "format/json_object.h"

#include <stdio.h>

bool build_next(struct build *b, struct str name, const char *path, const char *key, int *out) {
  if (str_eq_c(name, "COMPLETE")) {
    *out = NEXT_COMPLETE;
    return true;
  }
  if (str_eq_c(name, "ABORT")) {
    *out = NEXT_ABORT;
    return true;
  }
  const json_t *index = json_object_getn(b->by_name, name.p, name.n);
  *out = (int)json_integer_value(index);
  return index || build_fail(b, path, key, "names no movement, COMPLETE or ABORT");
}

static bool build_rule(struct build *b, const json_t *object, const char *path,
                       const struct movement *m, struct rule *rule, int *next) {
  struct err why;
  if (!rule_parse(&b->wf->arena, build_text(object, "condition"), rule, NULL, &why))
    return build_fail(b, path, "condition", why.text);
  rule->next = build_text(object, "next");
  rule->appendix = build_text(object, "appendix");
  rule->interactive_only = build_bool(object, "interactive_only", false);
  rule->asks = build_bool(object, "requires_user_input", false);
  if (rule->aggregate != NULL && m->child_count == 0)
    return build_fail(b, path, "condition", "all() and any() are for movements with parallel");
  if (rule->asks && (m->ask != NULL || m->child_count > 0))
    return build_fail(b, path, "requires_user_input", "needs a movement that does the work");
  if (m->group == NO_GROUP && json_at(object, "next") == NULL && !rule->asks)
    return build_fail(b, path, "next", "is missing");
  if (m->group == NO_GROUP && rule->asks && rule->next.n > 0 &&
      !build_next(b, rule->next, path, "next", next))
    return false;
  if (m->group == NO_GROUP && rule->asks) /* it runs again with the answer */
    rule->next = m->name;
  if (m->group == NO_GROUP)
    return build_next(b, rule->next, path, "next", next);
  *next = NEXT_COMPLETE; /* the group judges what a child found */
  return rule->next.n == 0 || build_fail(b, path, "next", "a child's rule leads nowhere");
}

/* Reads rules into the places from `at` on. */
static bool build_rule_list(struct build *b, const json_t *list, const char *path,
                            struct movement *m, size_t at) {
  const json_t *v;
  size_t i;
  json_array_foreach((json_t *)list, i, v) {
    char rule_path[BUILD_PATH_BYTES + 32];
    (void)snprintf(rule_path, sizeof rule_path, "%s[%zu]", path, i);
    if (!build_rule(b, v, rule_path, m, &m->rules[at + i], &m->rule_next[at + i]))
      return false;
  }
  return true;
}

static bool has_labels(const struct rule *rules, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (rules[i].kind != RULE_WHEN)
      return true;
  return false;
}

/* Returns true if a rule of the workflow applies to this movement too. It does not if it leads to
 * the movement itself, if it is about children and there are none, or if it has a label and no
 * labels are judged. */
static bool takes_global(const struct build *b, const struct movement *m, const json_t *object,
                         bool judged) {
  struct rule rule = {0};
  struct err why;
  if (!rule_parse(&b->wf->arena, build_text(object, "condition"), &rule, NULL, &why))
    return true; /* build_rule reports the error */
  bool own_end = str_eq(build_text(object, "next"), m->name);
  return !own_end && (rule.aggregate == NULL || m->child_count > 0) &&
         (rule.kind == RULE_WHEN || judged);
}

bool build_rules(struct build *b, const json_t *list, const char *path, struct movement *m) {
  const json_t *globals = json_at(b->wf->doc, "global_rules"), *v;
  size_t n = json_array_size(list), first = 0, i;
  char rule_path[BUILD_PATH_BYTES + 32];
  json_auto_t *taken = json_array();
  m->rules = arena_array(&b->wf->arena, n + json_array_size(globals), sizeof *m->rules);
  m->rule_next = arena_array(&b->wf->arena, n + json_array_size(globals), sizeof *m->rule_next);
  (void)snprintf(rule_path, sizeof rule_path, "%s.rules", path);
  if (!build_rule_list(b, list, rule_path, m, 0))
    return false;
  bool judged = has_labels(m->rules, n) && m->ask == NULL; /* a person's choice needs no judge */
  json_array_foreach((json_t *)globals, i, v) {
    if (m->group == NO_GROUP && m->monitor == NULL && takes_global(b, m, v, judged))
      json_array_append(taken, (json_t *)v);
  }
  first = json_array_size(taken);
  if (n + first > LIMIT_RULE_COUNT)
    return build_fail(b, path, "rules", "are more than 100 with those of the workflow");
  if (first > 0 && (!build_rule_list(b, taken, "global_rules", m, 0) ||
                    !build_rule_list(b, list, rule_path, m, first)))
    return false;
  m->rule_count = n + first;
  for (i = 0; i < m->rule_count; i++) {
    m->rules[i].number = (int)i + 1;
    m->rules[i].is_global = i < first;
  }
  return true;
}
