/* Builds the immutable workflow from its resolved document. */
#include "core/workflow.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "structured/reask.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The document comes from our own loader or from a log that anybody may have edited: every value
 * is checked, and an error names its place as a path, like movements[2].rules[0].next. */

enum { PATH_BYTES = 64 };

struct build {
  struct workflow *wf;
  json_t *by_name; /* movement name -> index */
  struct err *err;
};

static bool workflow_fail(struct build *b, const char *path, const char *key, const char *what) {
  return err_set(b->err, ERR_INVALID, "%s%s%s: %s", path, *path && *key ? "." : "", key, what);
}

/* A text or, when the key is not there, the empty view. Borrowed from the document. */
static bool get_text(struct build *b, const json_t *object, const char *path, const char *key,
                     struct str *out) {
  const json_t *v = json_object_get(object, key);
  *out = STR("");
  if (v == NULL)
    return true;
  if (!json_is_string(v))
    return workflow_fail(b, path, key, "must be a text");
  *out = (struct str){json_string_value(v), json_string_length(v)};
  return true;
}

static bool is_name(struct str s) {
  for (size_t i = 0; i < s.n; i++)
    if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7F)
      return false;
  return s.n > 0 && s.n <= LIMIT_NAME_BYTES;
}

static bool get_name(struct build *b, const json_t *object, const char *path, const char *key,
                     struct str *out) {
  if (!get_text(b, object, path, key, out))
    return false;
  return is_name(*out) ||
         workflow_fail(b, path, key, "must be a name of 1 to 128 bytes without control characters");
}

static bool get_bool(struct build *b, const json_t *object, const char *path, const char *key,
                     bool otherwise, bool *out) {
  const json_t *v = json_object_get(object, key);
  *out = v ? json_is_true(v) : otherwise;
  return v == NULL || json_is_boolean(v) || workflow_fail(b, path, key, "must be true or false");
}

static bool get_options(struct build *b, const json_t *object, const char *path,
                        const json_t **out) {
  const json_t *v = json_at(object, "options");
  if (v == NULL)
    return true;
  if (!json_is_object(v))
    return workflow_fail(b, path, "options", "must be an object");
  *out = v;
  return true;
}

static bool get_fallback(struct build *b, const json_t *object, const char *path,
                         const json_t **out) {
  const json_t *list = json_at(object, "fallback"), *v;
  size_t i;
  if (list == NULL)
    return true;
  if (!json_is_array(list) || json_array_size(list) > LIMIT_FALLBACK_COUNT)
    return workflow_fail(b, path, "fallback", "must be a list of providers");
  json_array_foreach(list, i, v) {
    if (json_string_length(v) == 0)
      return workflow_fail(b, path, "fallback", "must be a list of providers");
  }
  *out = list;
  return true;
}

/* Reads what the agent may do: `edit` lets it change files, required_permission_mode is a floor. */
static bool get_permission(struct build *b, const json_t *object, const char *path,
                           struct movement *m) {
  struct str name;
  enum permission floor = PERMISSION_READONLY;
  if (!get_text(b, object, path, "required_permission_mode", &name))
    return false;
  if (name.n > 0 && !permission_from_name(name, &floor))
    return workflow_fail(b, path, "required_permission_mode", "must be readonly, edit or full");
  m->permission = m->edit ? PERMISSION_EDIT : PERMISSION_READONLY;
  if (floor > m->permission)
    m->permission = floor;
  return true;
}

static bool workflow_get_session(struct build *b, const json_t *object, const char *path,
                                 struct movement *m) {
  struct str word;
  if (!get_text(b, object, path, "session", &word) ||
      !get_text(b, object, path, "session_key", &m->session_key))
    return false;
  m->fresh_session = str_eq_c(word, "refresh");
  return word.n == 0 || m->fresh_session || str_eq_c(word, "continue") ||
         workflow_fail(b, path, "session", "must be continue or refresh");
}

static bool get_count(struct build *b, const json_t *object, const char *path, const char *key,
                      json_int_t min, json_int_t max, json_int_t *out) {
  const json_t *v = json_object_get(object, key);
  if (v == NULL)
    return true;
  *out = json_integer_value(v);
  return (json_is_integer(v) && *out >= min && *out <= max) ||
         workflow_fail(b, path, key, "must be a whole number within its limits");
}

static bool get_stages(struct build *b, const json_t *list, const char *path,
                       struct judge_config *out) {
  size_t i;
  const json_t *v;
  if (!json_is_array(list) || json_array_size(list) == 0)
    return workflow_fail(b, path, "stages", "must be a list with at least one stage");
  out->stage_count = 0;
  json_array_foreach(list, i, v) {
    enum judge_stage stage;
    if (!json_is_string(v) || !judge_stage_from_name(str_from(json_string_value(v)), &stage) ||
        !judge_stage_is_listable(stage))
      return workflow_fail(b, path, "stages",
                           "only structured_output, phase3_tag, phase1_tag, ai_judge");
    for (size_t k = 0; k < out->stage_count; k++)
      if (out->stages[k] == stage)
        return workflow_fail(b, path, "stages", "names a stage twice");
    out->stages[out->stage_count++] = stage;
  }
  return true;
}

static bool get_word(struct build *b, const json_t *object, const char *path, const char *key,
                     const char *yes, const char *no, bool *out) {
  const json_t *v = json_object_get(object, key);
  if (v == NULL)
    return true;
  *out = str_eq_c(json_view(v), yes);
  return *out || str_eq_c(json_view(v), no) || workflow_fail(b, path, key, "is none of its words");
}

/* The judges that vote. */
static bool get_panel(struct build *b, const json_t *judge, const char *path,
                      struct judge_config *out) {
  const json_t *panel = json_at(judge, "panel"), *v;
  size_t i;
  if (panel != NULL) {
    size_t n = json_array_size(panel);
    if (!json_is_array(panel) || n < 2 || n > LIMIT_PANEL_COUNT)
      return workflow_fail(b, path, "panel", "must be a list of 2 to 7 providers");
    json_array_foreach((json_t *)panel, i, v) {
      if (json_string_length(v) == 0)
        return workflow_fail(b, path, "panel", "must be a list of 2 to 7 providers");
    }
    out->panel = panel;
    out->agree = (int)n / 2 + 1;
    out->rotates = true;
  }
  json_int_t agree = out->agree;
  if (!get_word(b, judge, path, "order", "rotate", "fixed", &out->rotates) ||
      !get_word(b, judge, path, "else", "ask", "next", &out->split_asks))
    return false;
  for (const char *const *key = (const char *const[]){"agree", "order", "else", NULL}; *key; key++)
    if (out->panel == NULL && json_object_get(judge, *key) != NULL)
      return workflow_fail(b, path, *key, "needs a panel");
  json_int_t most = (json_int_t)json_array_size(out->panel);
  if (!get_count(b, judge, path, "agree", 1, most > 0 ? most : 1, &agree))
    return false;
  out->agree = (int)agree;
  return true;
}

static bool get_judge_effort(struct build *b, const json_t *judge, const char *path,
                             const json_t **out) {
  const json_t *effort = json_object_get(judge, "effort");
  if (effort == NULL)
    return true;
  *out = effort;
  return json_is_null(effort) || json_string_length(effort) > 0 ||
         workflow_fail(b, path, "effort", "must be a word, or null");
}

/* Puts the keys of one judge: on top of what `out` holds. */
static bool apply_judge(struct build *b, const json_t *holder, const char *holder_path,
                        struct judge_config *out) {
  const json_t *judge = json_at(holder, "judge"), *stages;
  char path[PATH_BYTES];
  struct str text;
  json_int_t timeout_ms = out->timeout_ms, max_reasks = out->max_reasks;
  if (judge == NULL)
    return true;
  (void)snprintf(path, sizeof path, "%s%sjudge", holder_path, *holder_path ? "." : "");
  if (!json_is_object(judge))
    return workflow_fail(b, path, "", "must be an object");
  if ((stages = json_at(judge, "stages")) != NULL && !get_stages(b, stages, path, out))
    return false;
  if (!get_text(b, judge, path, "provider", &text))
    return false;
  if (text.n > 0 && !str_eq(text, out->provider)) {
    out->provider = text;
    out->fallback = NULL;
    out->model = STR(""); /* a model belongs to the provider it was named with */
  }
  if (text.n > 0 && !get_fallback(b, judge, path, &out->fallback))
    return false;
  if (!get_text(b, judge, path, "model", &text))
    return false;
  if (text.n > 0)
    out->model = text;
  if (!get_options(b, judge, path, &out->options) ||
      !get_judge_effort(b, judge, path, &out->effort) ||
      !get_count(b, judge, path, "timeout_ms", 1, LIMIT_CALL_WALL_MS, &timeout_ms) ||
      !get_count(b, judge, path, "max_reasks", 0, LIMIT_REASK_COUNT, &max_reasks) ||
      !get_panel(b, judge, path, out))
    return false;
  out->timeout_ms = (long)timeout_ms;
  out->max_reasks = (int)max_reasks;
  return true;
}

/* --- structured_output --- */

static const char *const on_failures[ON_FAILURE_COUNT] = {"error", "escalate", "sentinel"};

static bool get_on_failure(struct build *b, const json_t *object, const char *path,
                           enum on_failure *out) {
  struct str name;
  if (!get_text(b, object, path, "on_failure", &name))
    return false;
  for (int i = 0; i < ON_FAILURE_COUNT; i++)
    if (str_eq_c(name, on_failures[i])) {
      *out = (enum on_failure)i;
      return true;
    }
  return workflow_fail(b, path, "on_failure", "must be error, escalate or sentinel");
}

/* The first error of a schema or of invariants, with its place in them. */
static bool fail_within(struct build *b, const char *path, const char *key,
                        struct schema_errors *errors) {
  char what[400];
  (void)snprintf(what, sizeof what, "%.100s: %.280s", errors->count ? errors->items[0].path : "$",
                 errors->count ? errors->items[0].message : "cannot be used");
  schema_errors_deinit(errors);
  return workflow_fail(b, path, key, what);
}

static bool compile_schema(struct build *b, const char *path, struct structured_config *out) {
  struct schema_errors errors = {0};
  if (!json_is_object(out->document) || !schema_has_known_keyword(out->document))
    return workflow_fail(b, path, "schema",
                         "must be a JSON Schema that says something about a value");
  const struct schema_opts opts = {.assert_formats = out->assert_format};
  out->schema = schema_compile(out->document, &opts, &errors, NULL);
  return out->schema != NULL || fail_within(b, path, "schema", &errors);
}

static bool compile_invariants(struct build *b, const json_t *list, const char *path,
                               struct structured_config *out) {
  struct schema_errors errors = {0};
  if (list == NULL)
    return true;
  out->invariants = invariants_compile(list, &errors, NULL);
  return out->invariants != NULL || fail_within(b, path, "invariants", &errors);
}

static bool build_structured(struct build *b, const json_t *object, const char *movement_path,
                             struct movement *m) {
  const json_t *so = json_at(object, "structured_output"), *reask;
  json_int_t reasks = m->argv ? 0 : REASK_DEFAULT_COUNT, tokens = 0, ms = 0;
  char path[PATH_BYTES + 32];
  if (so == NULL)
    return true;
  (void)snprintf(path, sizeof path, "%s.structured_output", movement_path);
  if (!json_is_object(so))
    return workflow_fail(b, path, "", "must be an object");
  struct structured_config *out = arena_array(&b->wf->arena, 1, sizeof *out);
  m->structured = out; /* from here on workflow_unref frees what it holds */
  out->document = json_at(so, "schema");
  out->provider = out->model = STR("");
  reask = json_at(so, "reask");
  if (reask != NULL && !json_is_object(reask))
    return workflow_fail(b, path, "reask", "must be an object");
  if (!get_bool(b, so, path, "assert_format", false, &out->assert_format) ||
      !compile_schema(b, path, out) ||
      !compile_invariants(b, json_at(so, "invariants"), path, out) ||
      !get_on_failure(b, so, path, &out->on_failure) ||
      !get_text(b, reask, path, "provider", &out->provider) ||
      !get_text(b, reask, path, "model", &out->model) ||
      !get_bool(b, so, path, "repair", false, &out->repair) ||
      !get_bool(b, so, path, "example", false, &out->example) ||
      !get_count(b, so, path, "max_reasks", 0, LIMIT_REASK_COUNT, &reasks) ||
      !get_count(b, so, path, "token_budget", 1, LIMIT_TOKEN_BUDGET, &tokens) ||
      !get_count(b, so, path, "time_budget_ms", 1, LIMIT_CALL_WALL_MS, &ms))
    return false;
  if (m->argv && out->provider.n > 0 && json_at(so, "max_reasks") == NULL)
    reasks = REASK_DEFAULT_COUNT;
  if (m->argv && out->provider.n == 0 && reasks > 0)
    return workflow_fail(b, path, "max_reasks",
                         "a command cannot be asked to correct its output: name a reask.provider");
  out->max_reasks = (int)reasks;
  out->token_budget = (long)tokens;
  out->time_budget_ms = (long)ms;
  return true;
}

static bool build_argv(struct build *b, const json_t *object, const char *path,
                       struct movement *m) {
  const json_t *list = json_at(object, "command"), *v;
  size_t i, n = json_array_size(list);
  if (list == NULL)
    return true;
  if (!json_is_array(list) || n == 0 || n > LIMIT_ARGV_COUNT)
    return workflow_fail(b, path, "command",
                         "must be a list of 1 to 256 texts: the program, its arguments");
  const char **argv = arena_array(&b->wf->arena, n + 1, sizeof *argv);
  json_array_foreach(list, i, v) {
    argv[i] = json_string_value(v);
    if (argv[i] == NULL || strlen(argv[i]) != json_string_length(v) || (i == 0 && !*argv[i]))
      return workflow_fail(b, path, "command", "must be texts without NUL, the first not empty");
  }
  m->argv = argv;
  return true;
}

static bool find_next(struct build *b, struct str name, const char *path, int *out) {
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
  return index || workflow_fail(b, path, "next", "names no movement, COMPLETE or ABORT");
}

static bool build_rule(struct build *b, const json_t *object, const char *path, struct rule *rule,
                       int *next) {
  struct str condition;
  struct err why;
  if (!json_is_object(object))
    return workflow_fail(b, path, "", "must be an object");
  if (!get_text(b, object, path, "condition", &condition))
    return false;
  if (!rule_parse(&b->wf->arena, condition, rule, NULL, &why))
    return workflow_fail(b, path, "condition", why.text);
  return get_text(b, object, path, "next", &rule->next) &&
         get_text(b, object, path, "appendix", &rule->appendix) &&
         get_bool(b, object, path, "interactive_only", false, &rule->interactive_only) &&
         find_next(b, rule->next, path, next);
}

static bool build_rules(struct build *b, const json_t *object, const char *path,
                        struct movement *m) {
  const json_t *list = json_at(object, "rules"), *v;
  size_t i, n = json_array_size(list);
  if (!json_is_array(list) || n == 0 || n > LIMIT_RULE_COUNT)
    return workflow_fail(b, path, "rules", "must be a list of 1 to 100 rules");
  m->rules = arena_array(&b->wf->arena, n, sizeof *m->rules);
  m->rule_next = arena_array(&b->wf->arena, n, sizeof *m->rule_next);
  json_array_foreach(list, i, v) {
    char rule_path[PATH_BYTES + 32];
    (void)snprintf(rule_path, sizeof rule_path, "%s.rules[%zu]", path, i);
    if (!build_rule(b, v, rule_path, &m->rules[i], &m->rule_next[i]))
      return false;
    m->rules[i].number = (int)i + 1;
    m->rule_count++;
  }
  return true;
}

static bool build_movement(struct build *b, const json_t *object, const json_t *workflow_options,
                           const struct judge_config *judge, size_t index) {
  struct movement *m = &b->wf->movements[index];
  char path[PATH_BYTES];
  (void)snprintf(path, sizeof path, "movements[%zu]", index);
  m->judge = *judge;
  if (!build_argv(b, object, path, m))
    return false;
  m->options = m->argv ? NULL : workflow_options;
  return get_text(b, object, path, "description", &m->description) &&
         get_text(b, object, path, "provider", &m->provider) &&
         get_fallback(b, object, path, &m->fallback) &&
         get_text(b, object, path, "model", &m->model) &&
         get_options(b, object, path, &m->options) &&
         get_text(b, object, path, "persona", &m->persona) &&
         get_text(b, object, path, "policy", &m->policy) &&
         get_text(b, object, path, "knowledge", &m->knowledge) &&
         get_text(b, object, path, "instruction", &m->instruction) &&
         get_bool(b, object, path, "bare_prompt", false, &m->bare_prompt) &&
         get_bool(b, object, path, "edit", false, &m->edit) && get_permission(b, object, path, m) &&
         workflow_get_session(b, object, path, m) &&
         get_bool(b, object, path, "pass_previous_response", true, &m->pass_previous_response) &&
         build_structured(b, object, path, m) && apply_judge(b, object, path, &m->judge) &&
         build_rules(b, object, path, m);
}

/* Tags fold ASCII case, so two names that differ only by it would share their tags. */
static void workflow_fold(struct str name, char out[LIMIT_NAME_BYTES]) {
  for (size_t i = 0; i < name.n; i++)
    out[i] = (char)(name.p[i] >= 'a' && name.p[i] <= 'z' ? name.p[i] - 'a' + 'A' : name.p[i]);
}

static bool build_names(struct build *b, const json_t *list) {
  json_auto_t *folded = json_object();
  size_t i;
  const json_t *v;
  json_array_foreach(list, i, v) {
    struct movement *m = &b->wf->movements[i];
    char path[PATH_BYTES], upper[LIMIT_NAME_BYTES];
    (void)snprintf(path, sizeof path, "movements[%zu]", i);
    if (!json_is_object(v))
      return workflow_fail(b, path, "", "must be an object");
    if (!get_name(b, v, path, "name", &m->name))
      return false;
    workflow_fold(m->name, upper);
    struct str key = {upper, m->name.n};
    if (str_eq_c(key, "COMPLETE") || str_eq_c(key, "ABORT"))
      return workflow_fail(b, path, "name", "COMPLETE and ABORT are ends, not movements");
    if (json_object_getn(folded, key.p, key.n) != NULL)
      return workflow_fail(b, path, "name", "two movements have this name");
    if (json_object_setn_new(folded, key.p, key.n, json_true()) != 0 ||
        json_object_setn_new(b->by_name, m->name.p, m->name.n, json_integer((json_int_t)i)) != 0)
      return workflow_fail(b, path, "name", "is not UTF-8");
  }
  return true;
}

static bool build_limits(struct build *b, const json_t *doc) {
  struct workflow *wf = b->wf;
  const json_t *max = json_at(doc, "max_movements");
  json_int_t n = LIMIT_DEFAULT_MOVEMENTS;
  struct str initial;
  if (json_is_string(max) && strcmp(json_string_value(max), "infinite") == 0)
    n = MOVEMENTS_INFINITE;
  else if (!get_count(b, doc, "", "max_movements", 1, LIMIT_MOVEMENTS, &n))
    return false;
  wf->max_movements = (long)n;
  if (!get_text(b, doc, "", "initial_movement", &initial))
    return false;
  if (initial.n > 0) {
    const json_t *index = json_object_getn(b->by_name, initial.p, initial.n);
    if (index == NULL)
      return workflow_fail(b, "", "initial_movement", "names no movement");
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
      .timeout_ms = LIMIT_JUDGE_WALL_MS};
  const json_t *options = NULL, *list = json_at(doc, "movements"), *v;
  size_t i, n = json_array_size(list);
  if (!json_is_object(doc))
    return workflow_fail(b, "", "", "the workflow must be an object");
  if (!get_name(b, doc, "", "name", &wf->name) ||
      !get_text(b, doc, "", "description", &wf->description) ||
      !get_text(b, doc, "", "language", &wf->language) ||
      !get_text(b, doc, "", "provider", &wf->provider) ||
      !get_fallback(b, doc, "", &wf->fallback) || !get_text(b, doc, "", "model", &wf->model) ||
      !get_options(b, doc, "", &options) || !apply_judge(b, doc, "", &judge))
    return false;
  if (wf->language.n == 0)
    wf->language = STR("en");
  if (!str_eq_c(wf->language, "en") && !str_eq_c(wf->language, "ja"))
    return workflow_fail(b, "", "language", "must be en or ja");
  if (json_at(doc, "schema_as") != NULL &&
      !describe_form_find(json_view(json_at(doc, "schema_as")).p, &wf->schema_as))
    return workflow_fail(b, "", "schema_as", "must be prompt, types or json");
  if (!json_is_array(list) || n == 0 || n > LIMIT_MOVEMENT_COUNT)
    return workflow_fail(b, "", "movements", "must be a list of 1 to 1000 movements");
  wf->movements = arena_array(&wf->arena, n, sizeof *wf->movements);
  wf->movement_count = n;
  if (!build_names(b, list) || !build_limits(b, doc))
    return false;
  json_array_foreach(list, i, v) {
    if (!build_movement(b, v, options, &judge, i))
      return false;
  }
  return true;
}

enum describe_language workflow_language(const struct workflow *wf) {
  return str_eq_c(wf->language, "ja") ? DESCRIBE_JAPANESE : DESCRIBE_ENGLISH;
}

void workflow_hash(const struct workflow *wf, char out[SHA256_HEX]) {
  char *text = json_dump_text(wf->doc, JSON_COMPACT | JSON_SORT_KEYS);
  if (text == NULL)
    BUG("a workflow cannot be written as JSON");
  sha256_hex(text, strlen(text), "", 0, out);
  free(text);
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
  for (size_t i = 0; i < wf->movement_count; i++)
    if (wf->movements[i].structured != NULL) {
      schema_free(wf->movements[i].structured->schema);
      invariants_free(wf->movements[i].structured->invariants);
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
