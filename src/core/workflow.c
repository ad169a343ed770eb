/* Builds the immutable workflow from its resolved document. */
#include "core/workflow.h"

#include "core/ask.h"
#include "core/build.h"
#include "core/limits.h"
#include "core/sandbox.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/budget.h"
#include "core/guard.h"
#include "core/keys.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "structured/reask.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets an error that names its place as a path, like movements[2].rules[0].next. The document comes
 * from our own loader or from a log that anybody may have edited. The table of keys checks every
 * value first (keys.h); then come the checks of what values mean together. */

bool build_fail(struct build *b, const char *path, const char *key, const char *what) {
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
    (void)permission_from_name(build_text(object, "permission"), &m->permission);
  if (json_at(object, "edit") != NULL && edit != (m->permission != PERMISSION_READONLY))
    return build_fail(b, path, "edit", "contradicts permission");
  (void)permission_from_name(build_text(object, "required_permission_mode"), &floor);
  if (floor > m->permission)
    m->permission = floor;
  m->edit = m->permission != PERMISSION_READONLY;
  bool told = json_at(object, "permission") != NULL || json_at(object, "edit") != NULL;
  m->writes = m->edit || (!told && json_at(object, "command") != NULL);
  m->run = json_at(object, "run");
  return m->run == NULL || m->edit || build_fail(b, path, "run", "needs permission: edit");
}

static void get_stages(const json_t *list, struct judge_config *out) {
  size_t i;
  const json_t *v;
  out->stage_count = 0;
  json_array_foreach((json_t *)list, i, v) {
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
  (void)snprintf(path, sizeof path, "%s%sjudge", holder_path, *holder_path ? "." : "");
  struct str provider = build_text(judge, "provider");
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
    out->model = build_text(judge, "model");
  if ((v = json_at(judge, "options")) != NULL)
    out->options = v;
  if ((v = json_at(judge, "effort")) != NULL)
    out->effort = v;
  out->timeout_ms = (long)build_count(judge, "timeout_ms", out->timeout_ms);
  out->max_reasks = (int)build_count(judge, "max_reasks", out->max_reasks);
  return get_panel(b, judge, path, out);
}

/* --- structured_output --- */

static const char *const on_failures[ON_FAILURE_COUNT] = {"error", "escalate", "sentinel"};

static enum on_failure get_on_failure(const json_t *object) {
  struct str name = build_text(object, "on_failure");
  for (int i = 0; i < ON_FAILURE_COUNT; i++)
    if (str_eq_c(name, on_failures[i]))
      return (enum on_failure)i;
  BUG("the table of keys has an on_failure that is none");
}

/* Reports the first error of a schema or of invariants, with its place in them. */
static bool fail_within(struct build *b, const char *path, const char *key,
                        struct schema_errors *errors) {
  char what[400];
  (void)snprintf(what, sizeof what, "%.100s: %.280s", errors->count ? errors->items[0].path : "$",
                 errors->count ? errors->items[0].message : "cannot be used");
  schema_errors_deinit(errors);
  return build_fail(b, path, key, what);
}

static bool compile_schema(struct build *b, const char *path, struct structured_config *out) {
  struct schema_errors errors = {0};
  if (!schema_has_known_keyword(out->document))
    return build_fail(b, path, "schema", "must be a JSON Schema that says something about a value");
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
  const json_t *so = json_at(object, "structured_output"), *reask = json_at(so, "reask");
  char path[BUILD_PATH_BYTES + 32];
  if (so == NULL)
    return true;
  (void)snprintf(path, sizeof path, "%s.structured_output", movement_path);
  struct structured_config *out = arena_array(&b->wf->arena, 1, sizeof *out);
  m->structured = out; /* from here on workflow_unref frees what it holds */
  out->document = json_at(so, "schema");
  out->assert_format = build_bool(so, "assert_format", false);
  out->on_failure = get_on_failure(so);
  out->provider = build_text(reask, "provider");
  out->model = build_text(reask, "model");
  out->repair = build_bool(so, "repair", false);
  out->example = build_bool(so, "example", false);
  bool asks = m->argv == NULL || out->provider.n > 0;
  out->max_reasks = (int)build_count(so, "max_reasks", asks ? REASK_DEFAULT_COUNT : 0);
  out->token_budget = (long)build_count(so, "token_budget", 0);
  out->time_budget_ms = (long)build_count(so, "time_budget_ms", 0);
  if (!asks && out->max_reasks > 0)
    return build_fail(b, path, "max_reasks",
                      "a command cannot be asked to correct its output: name a reask.provider");
  return compile_schema(b, path, out) &&
         compile_invariants(b, json_at(so, "invariants"), path, out);
}

static void build_argv(struct build *b, const json_t *list, struct movement *m) {
  const json_t *v;
  size_t i;
  const char **argv = arena_array(&b->wf->arena, json_array_size(list) + 1, sizeof *argv);
  json_array_foreach((json_t *)list, i, v) {
    argv[i] = json_string_value(v);
  }
  m->argv = argv;
}

static const struct budget *build_budget(struct build *b, const json_t *holder) {
  const json_t *object = json_at(holder, "budget");
  if (object == NULL)
    return NULL;
  struct budget *budget = arena_array(&b->wf->arena, 1, sizeof *budget);
  budget_read(object, budget);
  return budget;
}

static void build_guards(const struct build *b, const json_t *object, struct movement *m) {
  for (int g = 0; g < GUARD_COUNT; g++)
    m->guards.on[g] = GUARD_STOP;
  guards_read(json_at(b->wf->doc, "guards"), &m->guards);
  guards_read(json_at(object, "guards"), &m->guards);
}

/* Builds what a person is asked. */
static bool build_people(struct build *b, const json_t *object, const char *path,
                         struct movement *m) {
  const json_t *on_reject = json_at(json_at(object, "approve"), "on_reject");
  const char *key = "";
  struct err why = {0};
  char place[BUILD_PATH_BYTES + 16];
  if (!ask_build(&b->wf->arena, object, m, &key, &why))
    return build_fail(b, path, key, why.text);
  if (m->child_count > 0 && m->approve != NULL)
    return build_fail(b, path, "approve", "stands at the children, each of which does the work");
  (void)snprintf(place, sizeof place, "%s.approve", path);
  if (on_reject == NULL)
    return true;
  if (m->group != NO_GROUP)
    return build_fail(b, place, "on_reject", "leads nowhere: a rejected child has failed");
  return build_next(b, json_view(on_reject), place, "on_reject", &m->approve->on_reject);
}

bool build_movement(struct build *b, const json_t *object, const json_t *workflow_options,
                    const struct judge_config *judge, const char *path, struct movement *m) {
  const json_t *options = json_at(object, "options");
  m->judge = *judge;
  if (json_at(object, "command") != NULL)
    build_argv(b, json_at(object, "command"), m);
  if (options == NULL && m->argv == NULL)
    options = workflow_options;
  m->options = options;
  m->description = build_text(object, "description");
  m->gate = build_bool(object, "gate", false);
  m->tests = build_text(object, "tests");
  m->timeout_ms = limits_duration_ms(build_text(object, "timeout"), LIMIT_CALL_WALL_MS);
  m->stall_ms = limits_duration_ms(build_text(object, "stall"), 0);
  m->cwd = build_text(object, "cwd");
  m->budget = build_budget(b, object);
  build_guards(b, object, m);
  m->provider = build_text(object, "provider");
  m->fallback = json_at(object, "fallback");
  m->model = build_text(object, "model");
  m->persona = build_text(object, "persona");
  m->policy = build_text(object, "policy");
  m->knowledge = build_text(object, "knowledge");
  m->instruction = build_text(object, "instruction");
  m->bare_prompt = build_bool(object, "bare_prompt", false);
  m->own_worktree = str_eq_c(build_text(object, "workspace"), "worktree");
  if (m->own_worktree && m->group == NO_GROUP)
    return build_fail(b, path, "workspace", "is for the workflow or for a child of parallel");
  m->secrets = json_at(object, "secrets");
  m->has_sandbox = sandbox_level_from_name(build_text(object, "sandbox"), &m->sandbox);
  m->has_network = sandbox_network_from_name(build_text(object, "network"), &m->network);
  m->image = build_text(object, "image");
  m->limits = json_at(object, "limits");
  m->fresh_session = str_eq_c(build_text(object, "session"), "refresh");
  m->session_key = build_text(object, "session_key");
  m->pass_previous_response = build_bool(object, "pass_previous_response", true);
  if (m->gate && m->argv == NULL)
    return build_fail(b, path, "gate", "is for a movement with command");
  if (json_at(object, "gates") != NULL)
    return build_fail(b, path, "gates",
                      "are for a movement with rules that lead on: not for a "
                      "child of parallel");
  return get_permission(b, object, path, m) && build_structured(b, object, path, m) &&
         build_reports(b, object, path, m) && apply_judge(b, object, path, &m->judge) &&
         build_people(b, object, path, m) && build_rules(b, json_at(object, "rules"), path, m);
}

/* Folds ASCII case as tags do: two names that differ only in case would share their tags. */
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
    char path[BUILD_PATH_BYTES], upper[LIMIT_NAME_BYTES];
    (void)snprintf(path, sizeof path, "movements[%zu]", i);
    m->name = m->own_name = build_text(v, "name");
    m->group = NO_GROUP;
    workflow_fold(m->name, upper);
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

static size_t count_children(const json_t *movements) {
  size_t n = 0, i;
  const json_t *v;
  json_array_foreach((json_t *)movements, i, v) {
    n += json_array_size(json_at(v, "parallel"));
  }
  return n;
}

static bool build_limits(struct build *b, const json_t *doc) {
  struct workflow *wf = b->wf;
  struct str initial = build_text(doc, "initial_movement");
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
      .timeout_ms = LIMIT_JUDGE_WALL_MS};
  const json_t *list = json_at(doc, "movements"), *v;
  size_t i;
  if (!key_set_check(&workflow_keys, doc, b->err))
    return false;
  wf->name = build_text(doc, "name");
  wf->description = build_text(doc, "description");
  wf->language = json_at(doc, "language") ? build_text(doc, "language") : STR("en");
  wf->provider = build_text(doc, "provider");
  wf->fallback = json_at(doc, "fallback");
  wf->model = build_text(doc, "model");
  wf->budget = build_budget(b, doc);
  wf->protect = json_at(doc, "protect");
  wf->inputs = json_at(doc, "inputs");
  wf->outputs = json_at(doc, "outputs");
  if (json_at(doc, "schema_as") != NULL &&
      !describe_form_find(build_text(doc, "schema_as").p, &wf->schema_as))
    BUG("the table of keys has a schema_as that is none");
  (void)workspace_mode_from_name(build_text(doc, "workspace"), &wf->workspace);
  (void)commit_when_from_name(build_text(doc, "commit"), &wf->commit);
  wf->branch = build_text(doc, "branch");
  wf->movement_count = wf->top_count = json_array_size(list);
  wf->movements = arena_array(&wf->arena,
                              wf->top_count + count_children(list) +
                                  json_array_size(json_at(doc, "loop_monitors")),
                              sizeof *wf->movements);
  if (!apply_judge(b, doc, "", &judge) || !build_names(b, list) || !build_limits(b, doc))
    return false;
  json_array_foreach((json_t *)list, i, v) {
    const json_t *options = json_at(doc, "options");
    char path[BUILD_PATH_BYTES];
    (void)snprintf(path, sizeof path, "movements[%zu]", i);
    if (!build_group(b, v, options, &judge, i) ||
        !build_movement(b, v, options, &judge, path, &wf->movements[i]))
      return false;
  }
  if (!build_monitors(b, json_at(doc, "loop_monitors"), json_at(doc, "options"), &judge))
    return false;
  build_answers(wf);
  return true;
}

static bool word_number(const char *const *words, struct str name, int *out) {
  for (int i = 0; words[i]; i++)
    if (str_eq_c(name, words[i])) {
      *out = i + 1; /* after UNSET */
      return true;
    }
  return false;
}

bool workspace_mode_from_name(struct str name, enum workspace_mode *out) {
  int number = 0;
  bool found = word_number(workspace_words, name, &number);
  if (found)
    *out = (enum workspace_mode)number;
  return found;
}

bool commit_when_from_name(struct str name, enum commit_when *out) {
  int number = 0;
  bool found = word_number(commit_words, name, &number);
  if (found)
    *out = (enum commit_when)number;
  return found;
}

enum describe_language workflow_language(const struct workflow *wf) {
  return str_eq_c(wf->language, "ja") ? DESCRIBE_JAPANESE : DESCRIBE_ENGLISH;
}

void workflow_hash(struct workflow *wf, char out[SHA256_HEX]) {
  if (wf->sha256[0] != '\0') {
    memcpy(out, wf->sha256, SHA256_HEX);
    return;
  }
  char *text = json_dump_text(wf->doc, JSON_COMPACT | JSON_SORT_KEYS);
  if (text == NULL)
    BUG("a workflow cannot be written as JSON");
  sha256_hex(text, strlen(text), "", 0, out);
  memcpy(wf->sha256, out, SHA256_HEX);
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
  for (size_t i = 0; i < wf->movement_count; i++) {
    ask_deinit(&wf->movements[i]);
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
