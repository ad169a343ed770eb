/* Reads maps of keys, and lists of such maps, into the resolved document. */
#include "workflow/parse/part.h"

#include "base/limits.h"
#include "judge/rule.h"
#include "workflow/dialect.h"

#include <assert.h>
#include <string.h>

json_t *parse_set_list(struct parse *p, const struct key *k, const struct yaml_node *node) {
  assert(k->set != NULL);
  assert(k->max > 0);
  if (node->kind != YAML_LIST || node->count == 0) {
    REPORT(p, node, "%s must be a list of at least one: write - and %s's keys below it", k->name,
           k->set->what);
    return NULL;
  }
  if (node->count > (size_t)k->max) {
    REPORT(p, node->items[(size_t)k->max], "%s has more than %.0f entries: split the workflow",
           k->name, k->max);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++)
    parse_append(list, parse_set(p, k->set, node->items[i]));
  return list;
}

/* Reads a report written as its file's name, or as LABEL: FILE. Returns NULL if it is a map of its
 * keys. */
static json_t *short_report(struct parse *p, const struct key *k, const struct yaml_node *item) {
  const struct key *name = key_find(k->set, STR("name")), *label = key_find(k->set, STR("label"));
  json_t *report = json_object();
  if (item->kind == YAML_TEXT) {
    parse_put(report, "name", parse_value(p, name, item));
    return report;
  }
  if (item->kind == YAML_MAP && item->count == 1 &&
      key_find(k->set, item->pairs[0].key->text) == NULL) {
    parse_put(report, "name", parse_value(p, name, item->pairs[0].value));
    parse_put(report, "label", parse_value(p, label, item->pairs[0].key));
    return report;
  }
  json_decref(report);
  return NULL;
}

json_t *parse_reports(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_LIST || node->count == 0 || node->count > (size_t)k->max) {
    REPORT(p, node, "%s must be a list of 1 to %.0f reports: write - name: plan.md below it",
           k->name, k->max);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++) {
    json_t *report = short_report(p, k, node->items[i]);
    parse_append(list, report ? report : parse_set(p, k->set, node->items[i]));
  }
  return list;
}

/* Lists the keys of a set, once for each file. */
static bool list_keys(struct parse *p, const struct key_set *set, struct buf *all) {
  for (size_t i = 0; i < p->listed_count; i++)
    if (p->listed[i] == set)
      return false;
  if (p->listed_count < ARRAY_LEN(p->listed))
    p->listed[p->listed_count++] = set;
  for (const struct key *k = set->keys; k->name; k++)
    if (k->type != KEY_NOTED)
      buf_printf(all, "%s%s", all->n ? ", " : ": use ", k->name);
  return true;
}

static void report_unknown(struct parse *p, const struct key_set *set,
                           const struct yaml_node *key) {
  const char *word = parse_shown(p, key->text), *near = key_nearest(set, key->text);
  const char *advice = dialect_advice(set, key->text);
  struct buf all = {0};
  if (advice)
    REPORT(p, key, "%s has no key %s: %s", set->what, word, advice);
  else if (near)
    REPORT(p, key, "%s has no key %s: did you mean %s?", set->what, word, near);
  else if (list_keys(p, set, &all))
    REPORT(p, key, "%s has no key %s%s", set->what, word, buf_c(&all));
  else
    REPORT(p, key, "%s has no key %s: remove it", set->what, word);
  buf_deinit(&all);
}

/* Returns the pair of a key or its alias; both together are an error. */
static const struct yaml_pair *pair_of(struct parse *p, const struct key *k,
                                       const struct yaml_node *node) {
  const struct yaml_pair *pair = NULL;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *key = node->pairs[i].key;
    if (!str_eq_c(key->text, k->name) && !(k->alias && str_eq_c(key->text, k->alias)))
      continue;
    if (pair == NULL)
      pair = &node->pairs[i];
    else if (p)
      REPORT(p, key, STR_FMT " is another name of " STR_FMT " (line %d): keep one",
             STR_ARG(key->text), STR_ARG(pair->key->text), pair->key->line);
  }
  return pair;
}

static void check_command(struct parse *p, const struct yaml_node *node) {
  static const char *const agents[] = {"provider", "model",     "persona",
                                       "policy",   "knowledge", "output_contracts"};
  if (yaml_get(node, "command") == NULL)
    return;
  for (size_t i = 0; i < node->count; i++)
    for (size_t k = 0; k < ARRAY_LEN(agents); k++)
      if (str_eq_c(node->pairs[i].key->text, agents[k]))
        REPORT(p, node->pairs[i].key, "a command movement takes no %s: remove it", agents[k]);
}

/* Checks integrate: its program and what that reads are segue's. */
static void check_integrate(struct parse *p, const struct yaml_node *node) {
  static const char *const own[] = {
      "command", "provider", "model",       "options", "persona",    "policy", "knowledge",
      "ask",     "tests",    "instruction", "edit",    "permission", "cwd",    "structured_output",
      "gate",    "parallel"};
  const struct yaml_node *integrates = yaml_get(node, "integrate");
  if (integrates == NULL)
    return;
  if (p->in_group)
    REPORT(p, integrates, "a child of parallel cannot integrate: write it after its group");
  for (size_t i = 0; i < node->count; i++)
    for (size_t k = 0; k < ARRAY_LEN(own); k++)
      if (str_eq_c(node->pairs[i].key->text, own[k]))
        REPORT(p, node->pairs[i].key, "a movement with integrate merges branches: remove %s",
               own[k]);
}

/* Checks ask: a person does the work of such a movement. */
static void parse_map_check_ask(struct parse *p, const struct yaml_node *node) {
  static const char *const own[] = {
      "command", "tests",     "provider",    "model",   "options",           "persona",
      "policy",  "knowledge", "instruction", "edit",    "permission",        "run",
      "session", "secrets",   "session_key", "approve", "structured_output", NULL};
  if (yaml_get(node, "ask") == NULL)
    return;
  for (size_t i = 0; i < node->count; i++)
    for (size_t k = 0; own[k]; k++)
      if (str_eq_c(node->pairs[i].key->text, own[k]))
        REPORT(p, node->pairs[i].key, "a movement with ask does no work of its own: remove %s",
               own[k]);
}

static void parse_map_check_names(struct parse *p, const struct yaml_node *movements);

/* Checks parallel: a group does no work of its own, and its children have no children. */
static void check_group(struct parse *p, const struct yaml_node *node) {
  static const char *const own[] = {"command",
                                    "provider",
                                    "model",
                                    "options",
                                    "persona",
                                    "policy",
                                    "knowledge",
                                    "instruction",
                                    "instruction_template",
                                    "bare_prompt",
                                    "edit",
                                    "session",
                                    "session_key",
                                    "structured_output",
                                    "report",
                                    "output_contracts",
                                    "ask",
                                    NULL};
  static const char *const of_groups[] = {"for_each", "concurrency", "stop_on"};
  const struct yaml_node *children = yaml_get(node, "parallel");
  for (size_t i = 0; children == NULL && i < ARRAY_LEN(of_groups); i++)
    if (yaml_get(node, of_groups[i]) != NULL)
      REPORT(p, yaml_get(node, of_groups[i]), "%s is for a movement with parallel: %s",
             of_groups[i],
             i == 0 ? "write the movement that runs for each item into parallel" : "remove it");
  if (children == NULL)
    return;
  if (yaml_get(node, "for_each") != NULL && children->count != 1)
    REPORT(p, children, "for_each runs one child for each item: write one into parallel, not %zu",
           children->count);
  if (p->in_group)
    REPORT(p, children, "a child of parallel cannot have children: put them all into one list");
  for (size_t i = 0; i < node->count; i++)
    for (size_t k = 0; own[k]; k++)
      if (str_eq_c(node->pairs[i].key->text, own[k]))
        REPORT(p, node->pairs[i].key,
               "a movement with parallel does no work of its own: write %s into its children",
               own[k]);
  parse_map_check_names(p, children);
}

static void parse_check_next(struct parse *p, const struct yaml_node *rules) {
  for (size_t i = 0; rules && rules->kind == YAML_LIST && i < rules->count; i++) {
    const struct yaml_node *rule = rules->items[i], *next = yaml_get(rule, "next");
    const struct yaml_node *asks = yaml_get(rule, "requires_user_input");
    if (rule->kind != YAML_MAP)
      continue;
    if (next != NULL && p->in_group)
      REPORT(p, next, "a child's rule leads nowhere: the group's rules say where to go next");
    else if (next == NULL && !p->in_group && !(asks != NULL && asks->boolean))
      REPORT(p, rule, "a rule has no next: add next:");
  }
}

static bool have_appendix(const struct yaml_node *rules) {
  bool found = false;
  for (size_t i = 0; i < rules->count; i++)
    found = found || yaml_get(rules->items[i], "appendix") != NULL;
  return found;
}

/* Checks appendices: two rules that one tag or number of a judge cannot tell apart must have the
 * same. */
static void check_appendices(struct parse *p, const struct yaml_node *rules) {
  if (rules == NULL || rules->kind != YAML_LIST || rules->count > LIMIT_RULE_COUNT ||
      !have_appendix(rules))
    return;
  struct rule *parsed = arena_array(p->arena, rules->count, sizeof *parsed);
  for (size_t i = 0; i < rules->count; i++) {
    const struct yaml_node *condition = yaml_get(rules->items[i], "condition");
    const struct yaml_node *appendix = yaml_get(rules->items[i], "appendix");
    struct err err;
    if (condition == NULL || condition->kind != YAML_TEXT ||
        !rule_parse(p->arena, condition->text, &parsed[i], NULL, &err))
      parsed[i].label = STR("");
    parsed[i].appendix = appendix && appendix->kind == YAML_TEXT ? appendix->text : STR("");
    for (size_t k = 0; k < i && parsed[i].label.n > 0; k++)
      if (str_eq(parsed[k].label, parsed[i].label) &&
          !str_eq(parsed[k].appendix, parsed[i].appendix)) {
        REPORT(p, appendix ? appendix : condition,
               "rules %zu and %zu have the label %s but not the same appendix: a judge sees them "
               "as one, so write the same in both",
               k + 1, i + 1, parse_shown(p, parsed[i].label));
        break;
      }
  }
}

/* Enters a movement: its facets are recorded under its name. */
static void enter_movement(struct parse *p, const struct yaml_node *node) {
  const struct yaml_node *name = yaml_get(node, "name");
  p->facets.movement = name && name->kind == YAML_TEXT ? name->text : STR("");
}

static void take_tools(const struct yaml_node *node, json_t *object) {
  const struct yaml_node *tools = yaml_get(node, "allowed_tools");
  if (tools == NULL || tools->kind != YAML_LIST)
    return;
  json_auto_t *list = yaml_to_json(tools);
  dialect_take_tools(list, object);
}

json_t *parse_set(struct parse *p, const struct key_set *set, const struct yaml_node *node) {
  if (node->kind != YAML_MAP) {
    REPORT(p, node, "%s must be a map of keys and values, not %s", set->what,
           yaml_kind_name(node->kind));
    return NULL;
  }
  json_t *object = json_object();
  const struct str outer = p->facets.movement;
  if (set == &movement_keys)
    enter_movement(p, node);
  for (size_t i = 0; i < node->count; i++)
    if (key_find(set, node->pairs[i].key->text) == NULL)
      report_unknown(p, set, node->pairs[i].key);
  for (const struct key *k = set->keys; k->name; k++) {
    const struct yaml_pair *pair = pair_of(p, k, node);
    if (pair == NULL) {
      if (k->required)
        REPORT(p, node, "%s has no %s: add %s:", set->what, k->name, k->name);
      continue;
    }
    if (k->type == KEY_NOTED)
      parse_note_once(p, k, pair->key, "%s is ignored: %s", k->name, k->description);
    bool was_in_group = p->in_group;
    p->in_group = was_in_group || (set == &movement_keys && k->set == set);
    json_t *value = parse_value(p, k, pair->value);
    p->in_group = was_in_group;
    if (k->type == KEY_PROVIDERS)
      parse_put_providers(object, k->name, value);
    else
      parse_put(object, k->name, value);
  }
  if (set == &workflow_keys)
    parse_check_next(p, yaml_get(node, "global_rules"));
  if (set == &loop_judge_keys) {
    parse_check_next(p, yaml_get(node, "rules"));
    check_appendices(p, yaml_get(node, "rules"));
  }
  if (set == &movement_keys) {
    p->facets.movement = outer;
    take_tools(node, object);
    check_command(p, node);
    check_integrate(p, node);
    parse_map_check_ask(p, node);
    check_group(p, node);
    parse_check_next(p, yaml_get(node, "rules"));
    check_appendices(p, yaml_get(node, "rules"));
  }
  return object;
}

/* Checks that names differ in more than ASCII case: tags fold it, so such names would share their
 * tags. */
static void parse_map_check_names(struct parse *p, const struct yaml_node *movements) {
  json_auto_t *seen = json_object();
  for (size_t i = 0; movements->kind == YAML_LIST && i < movements->count; i++) {
    const struct yaml_node *name = yaml_get(movements->items[i], "name");
    char upper[LIMIT_NAME_BYTES + 1];
    if (name == NULL || name->kind != YAML_TEXT || name->text.n == 0 ||
        name->text.n > LIMIT_NAME_BYTES || str_has_control(name->text))
      continue;
    for (size_t k = 0; k <= name->text.n; k++) {
      char c = name->text.p[k];
      upper[k] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    const json_t *first = json_object_get(seen, upper);
    if (strcmp(upper, "COMPLETE") == 0 || strcmp(upper, "ABORT") == 0)
      REPORT(p, name, "%s is an end, not a movement: write another name", upper);
    else if (first)
      REPORT(p, name, "the name %s is taken (line %d; capitals do not count): write another name",
             parse_shown(p, name->text), (int)json_integer_value(first));
    else
      parse_put(seen, upper, json_integer(name->line));
  }
}

json_t *parse_workflow(struct parse *p, const struct yaml_node *root) {
  if (root->kind == YAML_MAP)
    for (const struct key *k = workflow_keys.keys; k->name; k++) {
      const struct yaml_pair *pair = pair_of(NULL, k, root);
      if (pair && k->type == KEY_SECTION)
        parse_section(p, &p->facets, k, pair->value);
      else if (pair && k->type == KEY_SET_LIST)
        parse_map_check_names(p, pair->value);
    }
  return parse_set(p, &workflow_keys, root);
}

void parse_called(struct parse *p, const struct yaml_node *root) {
  for (size_t i = 0; i < root->count; i++)
    if (key_find(&workflow_keys, root->pairs[i].key->text) == NULL)
      report_unknown(p, &workflow_keys, root->pairs[i].key);
  for (const struct key *k = workflow_keys.keys; k->name; k++) {
    const struct yaml_pair *pair = pair_of(p, k, root);
    if (pair == NULL && k->required)
      REPORT(p, root, "%s has no %s: add %s:", workflow_keys.what, k->name, k->name);
    if (pair == NULL)
      continue;
    if (k->type != KEY_SET_LIST)
      json_decref(parse_value(p, k, pair->value));
    else if (pair->value->kind != YAML_LIST || pair->value->count == 0)
      REPORT(p, pair->value, "%s must be a list of at least one", k->name);
    else
      parse_map_check_names(p, pair->value);
  }
}
