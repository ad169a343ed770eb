/* Builds the immutable workflow from its resolved document. */
#include "core/workflow.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/keys.h"
#include "core/movement_limits.h"
#include "core/sandbox_settings.h"
#include "core/value_ref.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "format/template.h"
#include "structured/reask.h"
#include "structured/reply_check.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BUILD_PATH_BYTES = 64 };

struct build {
  struct workflow *wf;
  json_t *by_name; /* movement name -> index */
  struct err *err;
};

static inline bool build_bool(const json_t *object, const char *key, bool otherwise) {
  const json_t *v = json_object_get(object, key);
  return v ? json_is_true(v) : otherwise;
}

static inline json_int_t build_count(const json_t *object, const char *key, json_int_t otherwise) {
  const json_t *v = json_object_get(object, key);
  return v ? json_integer_value(v) : otherwise;
}

/* Returns false, with the place as a path, like movements[2].rules[0].next, and what is wrong
 * there. The document comes from our own loader or from a log that anybody may have edited. The
 * table of keys checks every value first (keys.h); then come the checks of what values mean
 * together. */
static bool build_fail(struct build *b, const char *path, const char *key, const char *what) {
  return err_set(b->err, ERR_INVALID, "%s%s%s: %s", path, *path && *key ? "." : "", key, what);
}

/* Reads the permission: `permission` says what the agent may do, `edit: true` is another way to say
 * edit, and required_permission_mode is a floor. A command is the user's own words: it may write
 * unless they say otherwise, which its sandbox holds. */
static bool get_permission(struct build *b, const json_t *object, const char *path,
                           struct movement *m) {
  enum permission floor = PERMISSION_READONLY;
  bool edit = build_bool(object, "edit", false);
  m->permission = edit ? PERMISSION_EDIT : PERMISSION_READONLY;
  if (json_at(object, "permission") != NULL)
    (void)permission_from_name(json_view_at(object, "permission"), &m->permission);
  if (json_at(object, "edit") != NULL && edit != (m->permission != PERMISSION_READONLY))
    return build_fail(b, path, "edit", "contradicts permission");
  (void)permission_from_name(json_view_at(object, "required_permission_mode"), &floor);
  if (floor > m->permission)
    m->permission = floor;
  m->edit = m->permission != PERMISSION_READONLY;
  bool told = json_at(object, "permission") != NULL || json_at(object, "edit") != NULL;
  m->writes = m->edit || (!told && json_at(object, "command") != NULL);
  m->run = json_at(object, "run");
  return m->run == NULL || m->edit || build_fail(b, path, "run", "needs permission: edit");
}

/* Returns the place of a word in a NULL-ended list, -1 if it is not there. */
static int word_place(const char *const *words, struct str name) {
  for (int i = 0; words[i]; i++)
    if (str_eq_c(name, words[i]))
      return i;
  return -1;
}

static void get_stages(const json_t *list, struct judge_config *out) {
  out->stage_count = 0;
  JSON_EACH(list, i, v) {
    enum judge_stage stage;
    if (!judge_stage_from_name(json_view(v), &stage))
      BUG("the table of keys has a stage that is none");
    out->stages[out->stage_count++] = stage;
  }
}

/* Reads the judges that vote. */
static bool get_panel(struct build *b, const json_t *judge, const char *path,
                      struct judge_config *out) {
  const json_t *panel = json_at(judge, "panel"), *order = json_at(judge, "order");
  if (json_is_array(panel)) {
    out->panel = panel;
    out->agree = (int)json_array_size(panel) / 2 + 1;
    out->rotates = true;
  } else if (panel != NULL) { /* the panel is switched off */
    out->panel = NULL;
    out->agree = 0;
    out->rotates = out->split_asks = false;
  }
  for (const char *const *key = (const char *const[]){"agree", "order", "else", NULL}; *key; key++)
    if (out->panel == NULL && json_object_get(judge, *key) != NULL)
      return build_fail(b, path, *key, "needs a panel");
  if (order != NULL)
    out->rotates = str_eq_c(json_view(order), "rotate");
  if (json_at(judge, "else") != NULL)
    out->split_asks = str_eq_c(json_view(json_at(judge, "else")), "ask");
  out->agree = (int)build_count(judge, "agree", out->agree);
  return (size_t)out->agree <= json_array_size(out->panel) ||
         build_fail(b, path, "agree", "must be at most the number of judges on the panel");
}

/* Puts the keys of one judge on top of what `out` holds. */
static bool apply_judge(struct build *b, const json_t *holder, const char *holder_path,
                        struct judge_config *out) {
  const json_t *judge = json_at(holder, "judge"), *v;
  char path[BUILD_PATH_BYTES];
  if (judge == NULL)
    return true;
  print_into(path, sizeof path, "%s%sjudge", holder_path, *holder_path ? "." : "");
  struct str provider = json_view_at(judge, "provider");
  if ((v = json_at(judge, "stages")) != NULL)
    get_stages(v, out);
  if (provider.n > 0 && !str_eq(provider, out->provider)) {
    out->provider = provider;
    out->fallback = NULL;
    out->model = STR(""); /* a model belongs to the provider it was named with */
  }
  if (provider.n > 0 && (v = json_at(judge, "fallback")) != NULL)
    out->fallback = v;
  if (json_at(judge, "model") != NULL)
    out->model = json_view_at(judge, "model");
  if ((v = json_at(judge, "options")) != NULL)
    out->options = v;
  if ((v = json_at(judge, "effort")) != NULL)
    out->effort = v;
  out->timeout_ms = (long)build_count(judge, "timeout_ms", out->timeout_ms);
  out->reasks_said |= json_at(judge, "max_reasks") != NULL;
  out->max_reasks = (int)build_count(judge, "max_reasks", out->max_reasks);
  out->own_tag = build_bool(judge, "own_tag", out->own_tag);
  return get_panel(b, judge, path, out);
}

/* --- structured_output --- */

/* Reports the first error of a schema or of invariants, with its place in them. */
static bool fail_within(struct build *b, const char *path, const char *key,
                        struct schema_errors *errors) {
  char what[400];
  print_into(what, sizeof what, "%.100s: %.280s", errors->count ? errors->items[0].path : "$",
             errors->count ? errors->items[0].message : "cannot be used");
  schema_errors_deinit(errors);
  return build_fail(b, path, key, what);
}

static bool build_structured(struct build *b, const json_t *object, const char *movement_path,
                             struct movement *m) {
  const json_t *so = json_at(object, "structured_output"), *reask = json_at(so, "reask");
  char path[BUILD_PATH_BYTES + 32];
  if (so == NULL)
    return true;
  print_into(path, sizeof path, "%s.structured_output", movement_path);
  struct structured_config *out = arena_array(&b->wf->arena, 1, sizeof *out);
  m->structured = out; /* from here on workflow_unref frees what it holds */
  out->document = json_at(so, "schema");
  out->assert_format = build_bool(so, "assert_format", false);
  static const char *const words[] = {"error", "escalate", "sentinel", NULL};
  int on_failure = word_place(words, json_view_at(so, "on_failure"));
  assert(on_failure >= 0); /* the table of keys lets nothing else through */
  out->on_failure = (enum on_failure)on_failure;
  out->provider = json_view_at(reask, "provider");
  out->model = json_view_at(reask, "model");
  out->repair = build_bool(so, "repair", false);
  out->keep_valid = build_bool(so, "keep_valid", false);
  out->example = build_bool(so, "example", false);
  bool asks = m->argv == NULL || out->provider.n > 0;
  out->max_reasks = (int)build_count(so, "max_reasks", asks ? REASK_DEFAULT_COUNT : 0);
  out->token_budget = (long)build_count(so, "token_budget", 0);
  out->time_budget_ms = (long)build_count(so, "time_budget_ms", 0);
  if (!asks && out->max_reasks > 0)
    return build_fail(b, path, "max_reasks",
                      "a command cannot be asked to correct its output: name a reask.provider");
  if (!schema_has_known_keyword(out->document))
    return build_fail(b, path, "schema", "must be a JSON Schema that says something about a value");
  const struct schema_opts opts = {.assert_formats = out->assert_format};
  struct schema_errors errors = {0};
  out->schema = schema_compile(out->document, &opts, &errors, NULL);
  if (out->schema == NULL)
    return fail_within(b, path, "schema", &errors);
  if (json_at(so, "invariants") != NULL)
    out->invariants = invariants_compile(json_at(so, "invariants"), &errors, NULL);
  return json_at(so, "invariants") == NULL || out->invariants != NULL ||
         fail_within(b, path, "invariants", &errors);
}

/* --- rules --- */

/* Finds where `name` leads, in the form of m->rule_next. */
static bool build_next(struct build *b, struct str name, const char *path, const char *key,
                       int *out) {
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
  if (!rule_parse(&b->wf->arena, json_view_at(object, "condition"), rule, NULL, &why))
    return build_fail(b, path, "condition", why.text);
  rule->next = json_view_at(object, "next");
  rule->appendix = json_view_at(object, "appendix");
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
  JSON_EACH(list, i, v) {
    char rule_path[BUILD_PATH_BYTES + 32];
    print_into(rule_path, sizeof rule_path, "%s[%zu]", path, i);
    if (!build_rule(b, v, rule_path, m, &m->rules[at + i], &m->rule_next[at + i]))
      return false;
  }
  return true;
}

/* Returns true if a rule of the workflow applies to this movement too. It does not if it leads to
 * the movement itself, if it is about children and there are none, or if it has a label and no
 * labels are judged. */
static bool takes_global(const struct build *b, const struct movement *m, const json_t *object,
                         bool judged) {
  struct rule rule = {0};
  struct err why;
  if (!rule_parse(&b->wf->arena, json_view_at(object, "condition"), &rule, NULL, &why))
    return true; /* build_rule reports the error */
  bool own_end = str_eq(json_view_at(object, "next"), m->name);
  return !own_end && (rule.aggregate == NULL || m->child_count > 0) &&
         (rule.kind == RULE_WHEN || judged);
}

/* Reads the rules into m; the workflow's come first. */
static bool build_rules(struct build *b, const json_t *list, const char *path, struct movement *m) {
  const json_t *globals = json_at(b->wf->doc, "global_rules"), *v;
  size_t n = json_array_size(list), first = 0, i;
  char rule_path[BUILD_PATH_BYTES + 32];
  json_auto_t *taken = json_array();
  m->rules = arena_array(&b->wf->arena, n + json_array_size(globals), sizeof *m->rules);
  m->rule_next = arena_array(&b->wf->arena, n + json_array_size(globals), sizeof *m->rule_next);
  print_into(rule_path, sizeof rule_path, "%s.rules", path);
  if (!build_rule_list(b, list, rule_path, m, 0))
    return false;
  bool judged = false;
  for (i = 0; i < n && m->ask == NULL; i++) /* a person's choice needs no judge */
    judged |= m->rules[i].kind != RULE_WHEN;
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

/* --- reports --- */

/* Reads a movement's reports, in the order in which they are made. */
static bool build_reports(struct build *b, const json_t *object, const char *path,
                          struct movement *m) {
  const json_t *contracts = json_at(object, "output_contracts"), *item;
  const json_t *list = json_at(contracts, "report");
  struct str own = json_view_at(object, "report");
  size_t n = 0, i;
  m->contracts = arena_array(&b->wf->arena, json_array_size(list) + 1, sizeof *m->contracts);
  if (own.n > 0)
    m->contracts[n++] = (struct contract){.name = own, .is_answer = true};
  json_array_foreach((json_t *)list, i, item) {
    m->contracts[n++] = (struct contract){.name = json_view_at(item, "name"),
                                          .label = json_view_at(item, "label"),
                                          .format = json_view_at(item, "format"),
                                          .order = json_view_at(item, "order"),
                                          .judged = !json_is_false(json_at(item, "use_judge"))};
  }
  m->contract_count = n;
  for (i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (str_eq_fold(m->contracts[i].name, m->contracts[k].name.p)) {
        char what[LIMIT_NAME_BYTES + 32];
        print_into(what, sizeof what, "two reports are called " STR_FMT,
                   STR_ARG(m->contracts[i].name));
        return build_fail(b, path, "output_contracts", what);
      }
  if (contracts != NULL && m->argv != NULL)
    return build_fail(b, path, "output_contracts",
                      "a command writes no reports: report: FILE keeps its output");
  b->wf->has_reports |= n > 0;
  return true;
}

static bool has_report(const struct movement *m, struct str name) {
  for (size_t i = 0; i < m->contract_count; i++)
    if (str_eq(m->contracts[i].name, name))
      return true;
  return false;
}

/* Checks children that run at once: none may write another's file. */
static bool build_siblings(struct build *b, const char *path, const struct movement *group) {
  const struct movement *children = &b->wf->movements[group->first_child];
  if (group->for_each != NULL && children->contract_count > 0)
    return build_fail(b, path, "parallel", "the runs of for_each would write the same report");
  for (size_t i = 0; i < group->child_count; i++)
    for (size_t k = 0; k < children[i].contract_count; k++)
      for (size_t j = 0; j < i; j++)
        if (has_report(&children[j], children[i].contracts[k].name))
          return build_fail(b, path, "parallel", "two children write the same report");
  return true;
}

static void mark_answer(void *ctx, struct str name) {
  struct workflow *wf = ctx;
  size_t skip = strlen(PROMPT_RESPONSE);
  long index = workflow_find(wf, (struct str){name.p + skip, name.n - skip});
  if (index >= 0)
    wf->movements[index].answers_later = true;
}

/* Marks the movements whose answers a later prompt names. */
static void build_answers(struct workflow *wf) {
  JSON_MEMBERS(wf->outputs, name, output) {
    template_names(json_view(output), PROMPT_RESPONSE, mark_answer, wf);
  }
  for (size_t i = 0; i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    template_names(m->instruction, PROMPT_RESPONSE, mark_answer, wf);
    for (size_t k = 0; k < m->contract_count; k++) {
      template_names(m->contracts[k].order, PROMPT_RESPONSE, mark_answer, wf);
      template_names(m->contracts[k].format, PROMPT_RESPONSE, mark_answer, wf);
    }
  }
}

/* --- one movement --- */

static const struct budget *build_budget(struct build *b, const json_t *holder) {
  const json_t *object = json_at(holder, "budget");
  if (object == NULL)
    return NULL;
  struct budget *budget = arena_array(&b->wf->arena, 1, sizeof *budget);
  budget_read(object, budget);
  return budget;
}

/* --- what people are asked --- */

long ask_choice(const json_t *choices, struct str text) {
  JSON_EACH(choices, i, v) {
    if (str_eq(json_view(v), text))
      return (long)i + 1;
  }
  return 0;
}

int ask_rule(const struct movement *m, struct str text) {
  for (size_t i = 0; i < m->rule_count; i++)
    if (m->rules[i].kind == RULE_LABEL && str_eq(m->rules[i].label, text))
      return m->rules[i].number;
  return 0;
}

bool ask_needs_no_judge(const struct movement *m) {
  if (m->ask == NULL || m->ask->choices == NULL)
    return false;
  JSON_EACH(m->ask->choices, i, v) {
    if (ask_rule(m, json_view(v)) == 0)
      return false;
  }
  return true;
}

json_t *ask_read(const struct schema *schema, const json_t *document, struct str text,
                 struct err *err) {
  const struct answer_spec spec = {.schema = schema,
                                   .document = document,
                                   .max_bytes = LIMIT_STRUCTURED_BYTES,
                                   .max_depth = LIMIT_STRUCTURED_DEPTH};
  struct answer answer;
  json_t *word = json_text(text), *value = NULL;
  answer_read(&answer, &spec, NULL, text.p, text.n);
  bool found = answer.outcome == ANSWER_VALID;
  if (!found) { /* the schema is for texts: take the words themselves */
    struct answer plain;
    answer_read(&plain, &spec, word, "", 0);
    if (plain.outcome == ANSWER_VALID)
      value = json_incref(plain.value);
    answer_deinit(&plain);
  } else {
    value = json_incref(answer.value);
  }
  const json_t *first = json_array_get(answer.errors, 0);
  if (value == NULL)
    err_set(err, ERR_USAGE, "the answer does not fit the schema: %.80s: %.300s",
            json_string_value(json_at(first, "path")),
            json_string_value(json_at(first, "message")));
  answer_deinit(&answer);
  json_decref(word);
  return value;
}

/* Checks the answer that is taken when the deadline passes: it must be a valid one. */
static bool check_default(const struct ask_config *ask, struct err *why) {
  if (ask->otherwise.n == 0)
    return ask->deadline_ms == 0 ||
           err_set(why, ERR_INVALID, "is missing: it is the answer when the deadline passes");
  if (ask->deadline_ms == 0)
    return err_set(why, ERR_INVALID, "needs a deadline, after which it is taken");
  if (ask->otherwise.n > LIMIT_ANSWER_BYTES)
    return err_set(why, ERR_INVALID, "is over %u bytes", LIMIT_ANSWER_BYTES);
  if (ask->choices != NULL && ask_choice(ask->choices, ask->otherwise) == 0)
    return err_set(why, ERR_INVALID, "is none of the choices");
  if (ask->schema == NULL)
    return true;
  json_auto_t *value = ask_read(ask->schema, ask->document, ask->otherwise, why);
  return value != NULL;
}

static bool build_ask(struct build *b, const json_t *object, const char *movement_path,
                      struct movement *m) {
  struct schema_errors errors = {0};
  struct ask_config *ask = arena_array(&b->wf->arena, 1, sizeof *ask);
  struct err why;
  char path[BUILD_PATH_BYTES + 16];
  print_into(path, sizeof path, "%s.ask", movement_path);
  m->ask = ask; /* from here on workflow_unref frees what it holds */
  ask->question = json_view_at(object, "question");
  ask->choices = json_at(object, "choices");
  ask->document = json_at(object, "schema");
  ask->otherwise = json_view_at(object, "default");
  ask->deadline_ms = limits_deadline_ms(json_view_at(object, "deadline"));
  if (m->argv != NULL || m->approve != NULL || m->structured != NULL)
    return build_fail(b, path, "", "a movement with ask does no work of its own");
  if (str_trim(ask->question).n == 0)
    return build_fail(b, path, "question", "is empty: write what a person is asked");
  if (ask->document != NULL && ask->choices != NULL)
    return build_fail(b, path, "schema", "cannot be combined with choices: keep one of them");
  if (ask->document != NULL)
    ask->schema = schema_compile(ask->document, NULL, &errors, NULL);
  if (ask->document != NULL && ask->schema == NULL)
    return fail_within(b, path, "schema", &errors);
  return check_default(ask, &why) || build_fail(b, path, "default", why.text);
}

/* Builds what a person is asked. */
static bool build_people(struct build *b, const json_t *object, const char *path,
                         struct movement *m) {
  const json_t *asks = json_at(object, "ask"), *approve = json_at(object, "approve");
  const json_t *on_reject = json_at(approve, "on_reject");
  char place[BUILD_PATH_BYTES + 16];
  print_into(place, sizeof place, "%s.approve", path);
  if (approve != NULL) {
    m->approve = arena_array(&b->wf->arena, 1, sizeof *m->approve);
    m->approve->question = json_view_at(approve, "question");
    m->approve->deadline_ms = limits_deadline_ms(json_view_at(approve, "deadline"));
    m->approve->approves = str_eq_c(json_view_at(approve, "default"), "approve");
    m->approve->on_reject = NEXT_ABORT;
    if (json_at(approve, "default") != NULL && m->approve->deadline_ms == 0)
      return build_fail(b, place, "default", "needs a deadline, after which it is taken");
  }
  if (asks != NULL && !build_ask(b, asks, path, m))
    return false;
  if (m->child_count > 0 && m->approve != NULL)
    return build_fail(b, path, "approve", "stands at the children, each of which does the work");
  if (on_reject == NULL)
    return true;
  if (m->group != NO_GROUP)
    return build_fail(b, place, "on_reject", "leads nowhere: a rejected child has failed");
  return build_next(b, json_view(on_reject), place, "on_reject", &m->approve->on_reject);
}

/* Builds where errors lead. An end that an error leads to is never COMPLETE. */
static bool build_on_error(struct build *b, const json_t *object, const char *path,
                           struct movement *m) {
  const json_t *list = json_at(object, "on_error");
  if (list == NULL)
    return true;
  if (m->group != NO_GROUP || m->child_count > 0 || m->ask != NULL)
    return build_fail(b, path, "on_error", "is for a movement that works by itself");
  m->on_error = arena_array(&b->wf->arena, json_array_size(list), sizeof *m->on_error);
  m->on_error_count = json_array_size(list);
  JSON_EACH(list, i, v) {
    struct error_way *way = &m->on_error[i];
    way->to = json_view_at(v, "to");
    if (!error_class_from_name(json_view_at(v, "class"), &way->class))
      way->class = CLASS_NONE;
    if (!build_next(b, way->to, path, "on_error", &way->next))
      return false;
    if (way->next == NEXT_COMPLETE)
      return build_fail(b, path, "on_error", "leads to COMPLETE, but an error shows nothing");
  }
  return true;
}

const struct error_way *movement_on_error(const struct movement *m, enum error_class class) {
  for (size_t i = 0; i < m->on_error_count && !error_class_is_for_person(class); i++)
    if (m->on_error[i].class == CLASS_NONE || m->on_error[i].class == class)
      return &m->on_error[i];
  return NULL;
}

static const char *const guard_names[GUARD_COUNT] = {"same_tool", "same_failure", "same_movement"};

/* Applies the key `guards` of a checked document on top of the present ones. */
static void guards_read(const json_t *object, struct guards *out) {
  static const char *const words[] = {"ignore", "warn", "stop"};
  for (int g = 0; g < GUARD_COUNT; g++) {
    char key[32];
    print_into(key, sizeof key, "on_%s", guard_names[g]);
    struct str word = json_view(json_object_get(object, key));
    if (json_object_get(object, guard_names[g]) != NULL)
      out->times[g] = (long)json_integer_value(json_object_get(object, guard_names[g]));
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
      if (str_eq_c(word, words[i]))
        out->on[g] = (enum guard_action)i;
  }
}

static enum touches touches_of(struct str word) {
  if (str_eq_c(word, "check"))
    return TOUCHES_CHECK;
  return str_eq_c(word, "work") ? TOUCHES_WORK : TOUCHES_ANY;
}

static bool build_evidence(struct build *b, const json_t *object, const char *path,
                           struct movement *m) {
  m->evidence = build_bool(object, "evidence", false);
  m->together = build_bool(object, "together", false);
  m->check_files = json_at(object, "check_files");
  m->touches = touches_of(json_view_at(object, "touches"));
  return !m->evidence || (m->argv != NULL && m->group == NO_GROUP) ||
         build_fail(b, path, "evidence",
                    "is for a movement with command that is no child of parallel");
}

/* Builds all of a movement except its name and its children. */
static bool build_movement(struct build *b, const json_t *object, const json_t *workflow_options,
                           const struct judge_config *judge, const char *path, struct movement *m) {
  const json_t *options = json_at(object, "options");
  m->judge = *judge;
  const json_t *command = json_at(object, "command");
  if (command != NULL) {
    const char **argv = arena_array(&b->wf->arena, json_array_size(command) + 1, sizeof *argv);
    for (size_t i = 0; i < json_array_size(command); i++)
      argv[i] = json_string_value(json_array_get(command, i));
    m->argv = argv;
  }
  if (options == NULL && m->argv == NULL)
    options = workflow_options;
  m->options = options;
  m->description = json_view_at(object, "description");
  m->gate = build_bool(object, "gate", false);
  m->tests = json_view_at(object, "tests");
  m->timeout_ms = limits_duration_ms(json_view_at(object, "timeout"), LIMIT_CALL_WALL_MS);
  m->stall_ms = limits_duration_ms(json_view_at(object, "stall"), 0);
  m->stall_retries = (long)build_count(object, "stall_retries", LIMIT_STALL_RETRY_COUNT);
  m->cwd = json_view_at(object, "cwd");
  m->budget = build_budget(b, object);
  for (int g = 0; g < GUARD_COUNT; g++)
    m->guards.on[g] = GUARD_STOP;
  guards_read(json_at(b->wf->doc, "guards"), &m->guards);
  guards_read(json_at(object, "guards"), &m->guards);
  m->provider = json_view_at(object, "provider");
  m->fallback = json_at(object, "fallback");
  m->model = json_view_at(object, "model");
  m->persona = json_view_at(object, "persona");
  m->policy = json_view_at(object, "policy");
  m->knowledge = json_view_at(object, "knowledge");
  m->instruction = json_view_at(object, "instruction");
  m->bare_prompt = build_bool(object, "bare_prompt", false);
  m->own_worktree = str_eq_c(json_view_at(object, "workspace"), "worktree");
  if (m->own_worktree && m->group == NO_GROUP)
    return build_fail(b, path, "workspace", "is for the workflow or for a child of parallel");
  m->secrets = json_at(object, "secrets");
  m->has_sandbox = sandbox_level_from_name(json_view_at(object, "sandbox"), &m->sandbox);
  m->has_network = sandbox_network_from_name(json_view_at(object, "network"), &m->network);
  m->image = json_view_at(object, "image");
  m->limits = json_at(object, "limits");
  m->fresh_session = str_eq_c(json_view_at(object, "session"), "refresh");
  m->session_key = json_view_at(object, "session_key");
  m->pass_previous_response = build_bool(object, "pass_previous_response", true);
  if (m->gate && m->argv == NULL)
    return build_fail(b, path, "gate", "is for a movement with command");
  if (json_at(object, "gates") != NULL)
    return build_fail(b, path, "gates",
                      "are for a movement with rules that lead on: not for a "
                      "child of parallel");
  return build_evidence(b, object, path, m) && get_permission(b, object, path, m) &&
         build_structured(b, object, path, m) && build_reports(b, object, path, m) &&
         apply_judge(b, object, path, &m->judge) && build_people(b, object, path, m) &&
         build_on_error(b, object, path, m) && build_rules(b, json_at(object, "rules"), path, m);
}

/* --- movements with children --- */

/* Names a child GROUP.NAME, so that logs and messages need no other word for it. */
static bool name_child(struct build *b, const char *path, size_t group, struct str own,
                       struct movement *m) {
  const struct movement *parent = &b->wf->movements[group];
  m->own_name = own;
  m->name = str_from(
      arena_printf(&b->wf->arena, STR_FMT "." STR_FMT, STR_ARG(parent->name), STR_ARG(own)));
  m->group = (long)group;
  if (m->name.n > LIMIT_NAME_BYTES)
    return build_fail(b, path, "name", "is over 128 bytes together with its group's");
  return workflow_find(b->wf, m->name) < 0 ||
         build_fail(b, path, "name", "two movements have this name");
}

static bool same_conversation(const struct movement *a, const struct movement *b) {
  if (a->argv != NULL || b->argv != NULL)
    return false;
  if (a->session_key.n > 0 || b->session_key.n > 0)
    return str_eq(a->session_key, b->session_key);
  return a->persona.n > 0 && str_eq(a->persona, b->persona);
}

/* Checks for_each. The movement that makes the items may come after the group: only its name is
 * looked up. */
static bool check_each(struct build *b, const char *path, const struct movement *group,
                       size_t children) {
  struct prompt_ref ref;
  if (group->for_each == NULL)
    return true;
  if (children != 1)
    return build_fail(b, path, "for_each", "is for a movement with one child in parallel");
  return json_is_array(group->for_each) ||
         prompt_ref_parse(json_view(group->for_each), b->wf, &ref) ||
         build_fail(b, path, "for_each", "names no movement");
}

/* Builds the children of the movement at `index`, if it has any. */
static bool build_group(struct build *b, const json_t *object, const json_t *options,
                        const struct judge_config *judge, size_t index) {
  struct movement *group = &b->wf->movements[index];
  const json_t *list = json_at(object, "parallel"), *v;
  size_t i;
  char path[BUILD_PATH_BYTES];
  if (list == NULL)
    return true;
  print_into(path, sizeof path, "movements[%zu]", index);
  if (json_at(object, "command") != NULL || json_at(object, "structured_output") != NULL ||
      json_at(object, "ask") != NULL || json_at(object, "report") != NULL ||
      json_at(object, "output_contracts") != NULL)
    return build_fail(b, path, "parallel", "a movement with children does no work of its own");
  group->first_child = b->wf->movement_count;
  group->for_each = json_at(object, "for_each");
  group->stops_on_error = json_at(object, "stop_on") != NULL;
  json_int_t at_once = group->for_each ? LIMIT_ITEMS_AT_ONCE : (json_int_t)json_array_size(list);
  group->concurrency = (long)build_count(object, "concurrency", at_once);
  if (!check_each(b, path, group, json_array_size(list)))
    return false;
  json_array_foreach((json_t *)list, i, v) {
    struct movement *m = &b->wf->movements[group->first_child + i];
    print_into(path, sizeof path, "movements[%zu].parallel[%zu]", index, i);
    if (!name_child(b, path, index, json_view_at(v, "name"), m))
      return false;
    b->wf->movement_count++; /* from here on workflow_unref frees what it holds */
    if (json_at(v, "parallel") != NULL)
      return build_fail(b, path, "parallel", "a child has no children");
    if (!build_movement(b, v, options, judge, path, m))
      return false;
  }
  group->child_count = json_array_size(list);
  struct movement *children = &b->wf->movements[group->first_child];
  for (i = 0; i < group->child_count; i++) /* they never continue one conversation at once */
    for (size_t k = 0; k < i; k++)
      if (same_conversation(&children[i], &children[k]))
        children[i].shares_conversation = children[k].shares_conversation = true;
  return build_siblings(b, path, group);
}

/* --- judges of loops --- */

enum { MONITOR_THRESHOLD = 3, MONITOR_PATH_BYTES = BUILD_PATH_BYTES + 32 };

/* Reads the names of a cycle. Each movement may appear once, because its name tells the place in
 * the cycle. */
static bool read_names(struct build *b, const json_t *list, const char *path, size_t **out,
                       size_t *count) {
  size_t n = json_array_size(list);
  *out = arena_array(&b->wf->arena, n, sizeof **out);
  for (size_t i = 0; i < n; i++) {
    const json_t *name = json_array_get(list, i);
    const json_t *index = json_object_getn(b->by_name, json_view(name).p, json_view(name).n);
    if (index == NULL)
      return build_fail(b, path, "", "names no movement");
    (*out)[i] = (size_t)json_integer_value(index);
    for (size_t k = 0; k < i; k++)
      if ((*out)[k] == (*out)[i])
        return build_fail(b, path, "", "names a movement twice");
  }
  *count = n;
  return true;
}

/* Names the judge _loop_judge_FIRST_LAST, with a number if that name is taken. */
static bool name_judge(struct build *b, const char *path, const struct monitor *m,
                       struct movement *judge) {
  const struct movement *all = b->wf->movements;
  struct str first = all[m->cycle[0]].name, last = all[m->cycle[m->cycle_count - 1]].name;
  const char *name = arena_printf(&b->wf->arena, "_loop_judge_" STR_FMT "_" STR_FMT, STR_ARG(first),
                                  STR_ARG(last));
  judge->name = str_from(name);
  for (int number = 2; workflow_find(b->wf, judge->name) >= 0; number++)
    judge->name = str_from(arena_printf(&b->wf->arena, "%s_%d", name, number));
  judge->own_name = judge->name;
  judge->group = NO_GROUP;
  judge->monitor = m;
  return judge->name.n <= LIMIT_NAME_BYTES ||
         build_fail(b, path, "cycle", "begins and ends with names that are too long together");
}

static bool build_monitor(struct build *b, const json_t *object, const json_t *options,
                          const struct judge_config *judge, size_t number) {
  struct monitor *m = &b->wf->monitors[number];
  char path[MONITOR_PATH_BYTES], part[MONITOR_PATH_BYTES + 16];
  print_into(path, sizeof path, "loop_monitors[%zu]", number);
  print_into(part, sizeof part, "%s.cycle", path);
  const json_t *threshold = json_at(object, "threshold");
  m->threshold = threshold ? (long)json_integer_value(threshold) : MONITOR_THRESHOLD;
  if (!read_names(b, json_at(object, "cycle"), part, (size_t **)&m->cycle, &m->cycle_count))
    return false;
  print_into(part, sizeof part, "%s.ignore", path);
  if (!read_names(b, json_at(object, "ignore"), part, (size_t **)&m->ignore, &m->ignore_count))
    return false;
  m->movement = b->wf->movement_count;
  struct movement *own = &b->wf->movements[m->movement];
  if (!name_judge(b, path, m, own))
    return false;
  b->wf->movement_count++; /* from here on workflow_unref frees what it holds */
  print_into(part, sizeof part, "%s.judge", path);
  return build_movement(b, json_at(object, "judge"), options, judge, part, own);
}

static bool build_monitors(struct build *b, const json_t *list, const json_t *options,
                           const struct judge_config *judge) {
  struct workflow *wf = b->wf;
  wf->monitors = arena_array(&wf->arena, json_array_size(list), sizeof *wf->monitors);
  JSON_EACH((json_t *)list, i, object) {
    wf->monitor_count++;
    if (!build_monitor(b, object, options, judge, i))
      return false;
  }
  return true;
}

/* --- the whole --- */

static bool build_names(struct build *b, const json_t *list) {
  json_auto_t *folded = json_object();
  JSON_EACH(list, i, v) {
    struct movement *m = &b->wf->movements[i];
    char path[BUILD_PATH_BYTES], upper[LIMIT_NAME_BYTES];
    print_into(path, sizeof path, "movements[%zu]", i);
    m->name = m->own_name = json_view_at(v, "name");
    m->group = NO_GROUP;
    /* Tags fold ASCII case: two names that differ only in case would share their tags. */
    for (size_t k = 0; k < m->name.n; k++) {
      char c = m->name.p[k];
      upper[k] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    struct str key = {upper, m->name.n};
    if (str_eq_c(key, "COMPLETE") || str_eq_c(key, "ABORT"))
      return build_fail(b, path, "name", "COMPLETE and ABORT are ends, not movements");
    if (json_object_getn(folded, key.p, key.n) != NULL)
      return build_fail(b, path, "name", "two movements have this name");
    if (json_object_setn_new(folded, key.p, key.n, json_true()) != 0 ||
        json_object_setn_new(b->by_name, m->name.p, m->name.n, json_integer((json_int_t)i)) != 0)
      return build_fail(b, path, "name", "is not UTF-8");
  }
  return true;
}

static bool build_limits(struct build *b, const json_t *doc) {
  struct workflow *wf = b->wf;
  struct str initial = json_view_at(doc, "initial_movement");
  wf->max_movements = (long)build_count(doc, "max_movements", LIMIT_DEFAULT_MOVEMENTS);
  if (json_is_string(json_at(doc, "max_movements")))
    wf->max_movements = MOVEMENTS_INFINITE;
  if (initial.n > 0) {
    const json_t *index = json_object_getn(b->by_name, initial.p, initial.n);
    if (index == NULL)
      return build_fail(b, "", "initial_movement", "names no movement");
    wf->initial = (size_t)json_integer_value(index);
  }
  return true;
}

static bool build_all(struct build *b, const json_t *doc) {
  struct workflow *wf = b->wf;
  struct judge_config judge = {
      .stages = {STAGE_STRUCTURED_OUTPUT, STAGE_PHASE3_TAG, STAGE_PHASE1_TAG, STAGE_AI_JUDGE},
      .stage_count = 4,
      .provider = STR(""),
      .model = STR(""),
      .timeout_ms = LIMIT_JUDGE_WALL_MS,
      .max_reasks = 1};
  const json_t *list = json_at(doc, "movements"), *v;
  size_t i;
  if (!key_set_check(&workflow_keys, doc, b->err))
    return false;
  wf->name = json_view_at(doc, "name");
  wf->description = json_view_at(doc, "description");
  wf->language = json_at(doc, "language") ? json_view_at(doc, "language") : STR("en");
  wf->provider = json_view_at(doc, "provider");
  wf->fallback = json_at(doc, "fallback");
  wf->model = json_view_at(doc, "model");
  wf->budget = build_budget(b, doc);
  budget_read(json_at(doc, "ask_above"), &wf->ask_above);
  wf->protect = json_at(doc, "protect");
  wf->may_change = json_at(doc, "may_change");
  wf->inputs = json_at(doc, "inputs");
  wf->outputs = json_at(doc, "outputs");
  if (json_at(doc, "schema_as") != NULL &&
      !describe_form_find(json_view_at(doc, "schema_as").p, &wf->schema_as))
    BUG("the table of keys has a schema_as that is none");
  (void)workspace_mode_from_name(json_view_at(doc, "workspace"), &wf->workspace);
  (void)commit_when_from_name(json_view_at(doc, "commit"), &wf->commit);
  wf->branch = json_view_at(doc, "branch");
  wf->setup = json_at(doc, "setup");
  struct err why;
  if (wf->setup != NULL && !key_check_setup(wf->setup, &why))
    return build_fail(b, "", "setup", why.text);
  wf->movement_count = wf->top_count = json_array_size(list);
  size_t most = wf->top_count + json_array_size(json_at(doc, "loop_monitors"));
  json_array_foreach((json_t *)list, i, v) {
    most += json_array_size(json_at(v, "parallel"));
  }
  wf->movements = arena_array(&wf->arena, most, sizeof *wf->movements);
  if (!apply_judge(b, doc, "", &judge) || !build_names(b, list) || !build_limits(b, doc))
    return false;
  json_array_foreach((json_t *)list, i, v) {
    const json_t *options = json_at(doc, "options");
    char path[BUILD_PATH_BYTES];
    print_into(path, sizeof path, "movements[%zu]", i);
    if (!build_group(b, v, options, &judge, i) ||
        !build_movement(b, v, options, &judge, path, &wf->movements[i]))
      return false;
  }
  if (!build_monitors(b, json_at(doc, "loop_monitors"), json_at(doc, "options"), &judge))
    return false;
  build_answers(wf);
  return true;
}

static const char *const workspace_words[] = {"here", "worktree", NULL};
static const char *const commit_words[] = {"off", "movement", "end", NULL};

bool workspace_mode_from_name(struct str name, enum workspace_mode *out) {
  int place = word_place(workspace_words, name);
  if (place >= 0)
    *out = (enum workspace_mode)(place + 1); /* after UNSET */
  return place >= 0;
}

bool commit_when_from_name(struct str name, enum commit_when *out) {
  int place = word_place(commit_words, name);
  if (place >= 0)
    *out = (enum commit_when)(place + 1); /* after UNSET */
  return place >= 0;
}

enum describe_language workflow_language(const struct workflow *wf) {
  return str_eq_c(wf->language, "ja") ? DESCRIBE_JAPANESE : DESCRIBE_ENGLISH;
}

void workflow_hash(struct workflow *wf, char out[SHA256_HEX]) {
  if (wf->sha256[0] != '\0') {
    memcpy(out, wf->sha256, SHA256_HEX);
    return;
  }
  char_auto_t *text = json_dump_text(wf->doc, JSON_COMPACT | JSON_SORT_KEYS);
  if (text == NULL)
    BUG("a workflow cannot be written as JSON");
  sha256_hex(text, strlen(text), "", 0, out);
  memcpy(wf->sha256, out, SHA256_HEX);
}

struct workflow *workflow_build(json_t *doc, struct err *err) {
  struct build b = {
      .wf = xcalloc(1, sizeof(struct workflow)), .by_name = json_object(), .err = err};
  if (b.by_name == NULL)
    BUG("out of memory");
  b.wf->references = 1;
  b.wf->doc = json_incref(doc);
  bool ok = build_all(&b, doc);
  json_decref(b.by_name);
  if (ok)
    return b.wf;
  workflow_unref(b.wf);
  return NULL;
}

struct workflow *workflow_ref(struct workflow *wf) {
  assert(wf->references > 0);
  wf->references++;
  return wf;
}

void workflow_unref(struct workflow *wf) {
  if (wf == NULL)
    return;
  assert(wf->references > 0);
  if (--wf->references > 0)
    return;
  for (size_t i = 0; i < wf->movement_count; i++) {
    if (wf->movements[i].ask != NULL)
      schema_free(wf->movements[i].ask->schema);
    if (wf->movements[i].structured != NULL) {
      schema_free(wf->movements[i].structured->schema);
      invariants_free(wf->movements[i].structured->invariants);
    }
  }
  arena_deinit(&wf->arena);
  json_decref(wf->doc);
  free(wf);
}

long workflow_find(const struct workflow *wf, struct str name) {
  for (size_t i = 0; i < wf->movement_count; i++)
    if (str_eq(wf->movements[i].name, name))
      return (long)i;
  return -1;
}
