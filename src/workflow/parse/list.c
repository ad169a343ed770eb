/* Reads lists of texts into the resolved document: programs, choices, names, stages. */
#include "workflow/parse/part.h"

#include "base/limits.h"
#include "core/run.h"
#include "format/json_value.h"

#include <assert.h>

json_t *parse_argv(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (!p->named_by_user)
    REPORT(p, node,
           "command runs a program, which only a file that you name may do: give this file's path");
  if (node->kind != YAML_LIST || node->count == 0 || node->count > LIMIT_ARGV_COUNT) {
    REPORT(p, node, "%s must be a list of 1 to %u texts: write [program, argument, ...]", k->name,
           LIMIT_ARGV_COUNT);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++) {
    if (!parse_want_text(p, k->name, node->items[i]))
      continue;
    if (i == 0 && node->items[i]->text.n == 0)
      REPORT(p, node->items[i], "%s begins with an empty text: write the program", k->name);
    parse_append(list, parse_text_json(node->items[i]->text));
  }
  return list;
}

json_t *parse_choices(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_LIST || node->count < 2 || node->count > (size_t)k->max) {
    REPORT(p, node, "%s must be a list of 2 to %.0f answers: write [yes, no], or leave it out",
           k->name, k->max);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (!parse_want_text(p, k->name, item))
      continue;
    json_t *text = parse_text_json(item->text);
    if (str_trim(item->text).n == 0 || str_has_control(item->text) ||
        item->text.n > LIMIT_CHOICE_BYTES)
      REPORT(p, item, "a choice must be one line of 1 to %u bytes", LIMIT_CHOICE_BYTES);
    for (size_t j = 0; j < json_array_size(list); j++)
      if (json_same(text, json_array_get(list, j)))
        REPORT(p, item, "%s names %s twice: keep one", k->name, parse_shown(p, item->text));
    parse_append(list, text);
  }
  return list;
}

json_t *parse_texts(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_LIST || node->count == 0 || (double)node->count > k->max) {
    REPORT(p, node, "%s must be a list of 1 to %.0f texts", k->name, k->max);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++)
    if (parse_want_text(p, k->name, node->items[i]))
      parse_append(list, parse_text_json(node->items[i]->text));
  return list;
}

json_t *parse_variables(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_LIST || node->count == 0 || node->count > LIMIT_SECRET_COUNT) {
    REPORT(p, node, "%s must be a list of 1 to %u names of variables, such as [DEPLOY_TOKEN]",
           k->name, LIMIT_SECRET_COUNT);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++) {
    if (!parse_want_text(p, k->name, node->items[i]))
      continue;
    if (!str_is_variable(node->items[i]->text))
      REPORT(p, node->items[i], "%s takes names only: the value comes from the environment",
             k->name);
    parse_append(list, parse_text_json(node->items[i]->text));
  }
  return list;
}

json_t *parse_names(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_LIST || (double)node->count < k->min || (double)node->count > k->max) {
    REPORT(p, node, "%s must be a list of %.0f to %.0f movements' names", k->name, k->min, k->max);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++)
    parse_append(list, parse_text(p, k, node->items[i]));
  return list;
}

json_t *parse_panel(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind == YAML_TEXT && str_eq_c(node->text, k->words[0]))
    return parse_text_json(node->text);
  if (node->kind != YAML_LIST || node->count < 2 || node->count > (size_t)k->max) {
    REPORT(p, node, "%s must be a list of 2 to %.0f providers, or %s: a panel of one is no panel",
           k->name, k->max, k->words[0]);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++)
    parse_append(list, parse_text(p, k, node->items[i]));
  return list;
}

json_t *parse_run(struct parse *p, const struct key *k, const struct yaml_node *node) {
  assert(k->max > 0);
  if (node->kind != YAML_LIST || node->count == 0 || node->count > (size_t)k->max) {
    REPORT(p, node, "%s must be a list of 1 to %d programs: write [make, npm test]", k->name,
           (int)k->max);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++) {
    if (!parse_want_text(p, k->name, node->items[i]))
      continue;
    const char *fault = run_fault(node->items[i]->text);
    if (fault != NULL)
      REPORT(p, node->items[i], "\"%.100s\" of %s %s", node->items[i]->text.p, k->name, fault);
    parse_append(list, parse_text_json(node->items[i]->text));
  }
  return list;
}

static json_t *parse_stage(struct parse *p, const struct key *k, const struct yaml_node *list,
                           size_t i) {
  const struct yaml_node *item = list->items[i];
  bool known = false;
  for (size_t w = 0; k->words[w]; w++)
    known = known || str_eq_c(item->text, k->words[w]);
  for (size_t j = 0; known && j < i; j++)
    if (str_eq(list->items[j]->text, item->text)) {
      REPORT(p, item, "the stage %s is listed twice: keep one", item->text.p);
      return NULL;
    }
  if (known)
    return parse_text_json(item->text);
  const char *near = str_nearest(item->text, k->words);
  REPORT(p, item, "there is no stage %s to list: %s%s%s", parse_shown(p, item->text),
         near ? "did you mean " : "use ", near ? near : parse_words_shown(p, k), near ? "?" : "");
  return NULL;
}

json_t *parse_stages(struct parse *p, const struct key *k, const struct yaml_node *node) {
  assert(k->words != NULL);
  if (node->kind != YAML_LIST || node->count == 0) {
    REPORT(p, node, "%s must be a list of at least one of %s", k->name, parse_words_shown(p, k));
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++)
    parse_append(list, parse_stage(p, k, node, i));
  return list;
}
