/* Calls: their records, from the request to what came back. */
#include "core/step.h"

#include "base/log.h"
#include "base/utf8.h"
#include "core/group.h"
#include "core/limits.h"
#include "core/record.h"
#include "core/sandbox.h"
#include "extract/silence.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The program of a command movement, or of an invariant that is a command. */
static const char *const *argv_of(const struct movement *m, enum call_purpose purpose,
                                  int invariant) {
  if (purpose == PURPOSE_EXECUTE)
    return m->argv;
  if (purpose != PURPOSE_CHECK)
    return NULL;
  return invariants_get(m->structured->invariants, (size_t)invariant - 1)->argv;
}

/* Finds what the conversation that the call goes on with has used so far. */
static const json_t *total_of(const struct core *core, const struct call *call) {
  if (!call->resumed || call->provider_session == NULL)
    return NULL;
  return json_object_get(core->totals, call->provider_session);
}

void core_request(const struct core *core, const struct turn *turn, const struct call *call,
                  struct call_request *out) {
  const struct movement *m = &core->workflow->movements[turn->movement];
  *out = (struct call_request){
      .session = core->session,
      .turn = turn->id,
      .call = call->id,
      .attempt = call->attempt,
      .purpose = call->purpose,
      .stage = call->stage,
      .movement = m->name,
      .provider = str_from(call->provider),
      .model = str_from(call->model),
      .options = call->options,
      .argv = argv_of(m, call->purpose, call->invariant),
      .prompt = buf_view(&call->prompt),
      .schema = call->schema,
      .schema_as = core->workflow->schema_as,
      .language = workflow_language(core->workflow),
      .token = call->token,
      .edit = call->purpose == PURPOSE_EXECUTE && (m->edit || m->argv != NULL),
      .permission = call->purpose == PURPOSE_EXECUTE ? m->permission : PERMISSION_READONLY,
      .run = call->purpose == PURPOSE_EXECUTE ? m->run : NULL,
      .provider_session = call->resumed ? str_from(call->provider_session) : STR(""),
      .forks = call->forks,
      .timeout_ms = call->timeout_ms,
      .stall_ms = call->purpose == PURPOSE_EXECUTE ? (uint64_t)m->stall_ms : 0,
      .tests = call->purpose == PURPOSE_EXECUTE ? m->tests : STR(""),
      .gates = call->purpose == PURPOSE_EXECUTE && m->gate,
      .cwd = call->cwd,
      .sandbox = call->sandbox,
      .conversation = total_of(core, call),
      .secrets = call->purpose == PURPOSE_EXECUTE ? m->secrets : NULL,
      .refused = core_refused(core, str_from(call->provider), str_from(call->model)),
  };
}

/* --- provider sessions --- */

void core_session_key(const struct movement *m, struct str provider, bool common, struct buf *out) {
  char persona[SHA256_HEX];
  if (m->shares_conversation && !common) {
    buf_puts(out, "movement:");
    buf_str(out, m->name);
  } else if (m->session_key.n > 0) {
    buf_puts(out, "key:");
    buf_str(out, m->session_key);
  } else if (m->persona.n > 0) {
    sha256_hex(m->persona.p, m->persona.n, NULL, 0, persona);
    buf_printf(out, "persona:%.16s", persona);
  } else {
    buf_puts(out, "movement:");
    buf_str(out, m->name);
  }
  buf_putc(out, '\n');
  buf_str(out, provider);
}

/* The conversation that an execute call could go on with; NULL when there is none. */
static const char *known_session(const struct step *s, const struct movement *m,
                                 enum call_purpose purpose, struct str provider, bool common) {
  const struct capability *c = capability_find(s->env->providers, provider);
  struct buf key = {0};
  if (purpose != PURPOSE_EXECUTE || c == NULL || !c->sessions ||
      json_object_size(s->core->sessions) == 0)
    return NULL;
  core_session_key(m, provider, common, &key);
  const json_t *id = json_object_get(s->core->sessions, buf_c(&key));
  buf_deinit(&key);
  return json_string_value(id);
}

/* Chooses the conversation that a movement's call begins with; `why_not`: there is one, but not for
 * this call, or a sibling may have it. Siblings and items go on with copies of what they share. */
static void choose_session(const struct step *s, const struct turn *turn, const struct step_call *n,
                           struct call_request *request, const char **why_not) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  const struct capability *c = capability_find(s->env->providers, n->provider);
  bool copies = turn->item > 0;
  if (n->purpose == PURPOSE_REPORT) { /* report.c knows it */
    request->provider_session = str_from(n->provider_session);
    return;
  }
  const char *known = known_session(s, m, n->purpose, n->provider, copies);
  if (known == NULL && m->shares_conversation && n->purpose == PURPOSE_EXECUTE) {
    known = known_session(s, m, n->purpose, n->provider, true);
    copies = true;
    *why_not = known ? NULL : "a sibling has the same conversation: this one begins its own";
  }
  if (known != NULL && m->fresh_session)
    *why_not = "the movement has session: refresh";
  else if (known != NULL && copies && !c->forks)
    *why_not = "others have it, and the backend cannot fork it: this one begins its own";
  else if (known != NULL) {
    request->provider_session = str_from(known);
    request->forks = copies;
  }
}

/* Tells in call_start whether a conversation is resumed, and why not. */
static void calls_put_session(struct record_draft *d, const struct call_request *r,
                              const char *reason) {
  json_t *forked = r->forks ? json_true() : NULL;
  if (r->provider_session.n > 0)
    record_put_tree(d, MEMBER_SESSION,
                    json_pack("{sb so so*}", "resumed", 1, "id", json_text(r->provider_session),
                              "forked", forked));
  else if (reason != NULL)
    record_put_tree(d, MEMBER_SESSION, json_pack("{sb ss}", "resumed", 0, "reason", reason));
}

/* --- who takes over --- */

static bool is_command(const struct core *core, const struct turn *turn, const struct call *call) {
  return argv_of(&core->workflow->movements[turn->movement], call->purpose, call->invariant) !=
         NULL;
}

static bool is_reask(const struct call *call) {
  return call->purpose == PURPOSE_REASK && call_generates(call);
}

void core_first_backend(const struct core *core, const struct turn *turn, const struct call *call,
                        struct str *provider, struct str *model) {
  const struct workflow *wf = core->workflow;
  if (is_command(core, turn, call)) {
    *provider = STR("command");
    *model = STR("");
  } else if (call->purpose == PURPOSE_REPORT && call->resumed) { /* who worked goes on */
    *provider = str_from(call->provider);
    *model = str_from(call->model);
  } else if (call->purpose == PURPOSE_EXECUTE || call->purpose == PURPOSE_REPORT) {
    core_backend(wf, core->config, turn->movement, provider, model);
  } else if (call->vote > 0) {
    core_panel_backend(wf, core->config, turn->movement, call->vote, provider, model);
  } else if (is_reask(call)) {
    core_reask_backend(wf, core->config, turn->movement, provider, model);
  } else {
    core_judge_backend(wf, core->config, turn->movement, provider, model);
  }
}

static bool has_tool(const struct capability *providers, struct str name) {
  const struct capability *c = capability_find(providers, name);
  return c != NULL && str_eq_c(str_from(c->structured), "tool");
}

static bool has_lists(const struct workflow *wf, const json_t *config, const struct movement *m) {
  return m->fallback != NULL || wf->fallback != NULL || m->judge.fallback != NULL ||
         json_at(config, "fallback") != NULL;
}

/* The file's list goes with the provider it was written for; else it is the user's own. */
const json_t *core_takers(const struct workflow *wf, const json_t *config, size_t movement,
                          bool judges, struct str first) {
  const struct movement *m = &wf->movements[movement];
  struct str provider, model;
  const json_t *list = NULL;
  if (!has_lists(wf, config, m))
    return NULL;
  core_backend(wf, config, movement, &provider, &model);
  if (m->fallback && str_eq(provider, m->provider))
    list = m->fallback;
  else if (m->provider.n == 0 && wf->fallback && str_eq(provider, wf->provider))
    list = wf->fallback;
  if (judges && m->judge.provider.n > 0 && str_eq(first, m->judge.provider))
    list = m->judge.fallback;
  else if (!str_eq(first, provider))
    list = NULL;
  return list ? list : json_object_getn(json_at(config, "fallback"), first.p, first.n);
}

bool core_judges_by_tool(const struct workflow *wf, const json_t *config, size_t movement, int vote,
                         const struct capability *providers) {
  struct str first, model;
  const json_t *name;
  size_t i;
  if (vote > 0) {
    core_panel_backend(wf, config, movement, vote, &first, &model);
    return has_tool(providers, first);
  }
  core_judge_backend(wf, config, movement, &first, &model);
  bool by_tool = has_tool(providers, first);
  const json_t *list = core_takers(wf, config, movement, true, first);
  json_array_foreach(list, i, name) {
    by_tool = by_tool && has_tool(providers, str_from(json_string_value(name)));
  }
  return by_tool;
}

/* Is this place of the list the first at which its provider is named? */
static bool is_new(const json_t *list, size_t place, struct str first) {
  const json_t *name = json_array_get(list, place);
  bool is_first = str_eq_c(first, json_string_value(name));
  for (size_t i = 0; i < place && !is_first; i++)
    is_first = json_equal(json_array_get(list, i), name);
  return !is_first;
}

struct str core_next_backend(const struct core *core, const struct turn *turn,
                             const struct call *call) {
  struct str first, model, current = str_from(call->provider);
  const json_t *name;
  size_t i;
  bool works = call->purpose == PURPOSE_EXECUTE || call->purpose == PURPOSE_REPORT;
  if (is_command(core, turn, call) || call->vote > 0 ||     /* nobody votes twice */
      (call->purpose == PURPOSE_REPORT && call->resumed) || /* nobody else knows the work */
      !has_lists(core->workflow, core->config, &core->workflow->movements[turn->movement]))
    return STR("");
  core_first_backend(core, turn, call, &first, &model);
  const json_t *list =
      core_takers(core->workflow, core->config, turn->movement, !works && !is_reask(call), first);
  bool found = str_eq(current, first);
  json_array_foreach(list, i, name) {
    struct str word = {json_string_value(name), json_string_length(name)};
    if (!is_new(list, i, first))
      continue;
    if (found)
      return word;
    found = str_eq(word, current);
  }
  return STR("");
}

/* The model that goes with a provider nobody named a model for. */
static struct str own_model(const struct core *core, struct str provider) {
  const json_t *model =
      json_object_getn(json_at(core->config, "provider_models"), provider.p, provider.n);
  return json_view(model);
}

/* Keeps those of the wanted options that it takes. */
static json_t *taken_options(const struct step *s, const json_t *wanted, struct str provider) {
  const struct capability *c = capability_find(s->env->providers, provider);
  json_t *kept = json_object();
  for (size_t i = 0; c && option_names[i]; i++) {
    json_t *value = json_object_get(wanted, option_names[i]);
    if (value && (c->options & (1u << i)))
      json_object_set_nocheck(kept, option_names[i], value);
  }
  if (json_object_size(kept) > 0)
    return kept;
  json_decref(kept);
  return NULL;
}

/* A provider that was taken over stays behind for a while: who took over begins. */
static void pass_over(const struct step *s, const struct turn *turn, struct step_call *n) {
  const struct core *core = s->core;
  struct str next = n->provider;
  while (next.n > 0 &&
         json_integer_value(json_object_getn(core->behind, next.p, next.n)) > s->ev->time_ms) {
    char *name = xstrndup(next.p, next.n);
    const struct call call = {
        .purpose = n->purpose, .stage = n->stage, .invariant = n->invariant, .provider = name};
    next = core_next_backend(core, turn, &call);
    free(name);
  }
  if (next.n == 0 || str_eq(next, n->provider))
    return; /* all are behind: the first is as good as any */
  json_t *options = taken_options(s, n->options, next);
  json_decref(n->options);
  n->options = options;
  n->provider = next;
  n->model = own_model(core, next);
}

static json_t *prepare_token(const struct step *s, const struct call_request *request) {
  const json_t *counts =
      json_object_getn(s->core->token_counts, request->provider.p, request->provider.n);
  return s->env->prepare(s->env->ctx, request, counts, s->ev->entropy);
}

/* The schema itself, or where it was logged first. */
static void calls_put_schema(struct record_draft *d, const struct core *core,
                             const json_t *schema) {
  json_t *schemas = core->schemas;
  for (void *at = json_object_iter(schemas); at; at = json_object_iter_next(schemas, at))
    if (json_equal(json_object_iter_value(at), schema)) {
      record_put_ref(d, MEMBER_SCHEMA, json_object_iter_key(at));
      return;
    }
  record_put_tree(d, MEMBER_SCHEMA, json_incref((json_t *)schema));
}

/* The call of its turn that the record is about: its place among others. */
struct call_place {
  int vote, invariant, report; /* each from 1; 0: it is none */
};

static void put_place(const struct step *s, struct record_draft *d, const struct turn *turn,
                      const struct call_place *place) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  if (place->vote > 0)
    record_put_number(d, MEMBER_VOTE, place->vote);
  if (place->invariant > 0)
    record_put_number(d, MEMBER_INVARIANT, place->invariant);
  if (place->report > 0)
    record_put_text(d, MEMBER_FILE, m->contracts[place->report - 1].name);
}

/* Says what its program will be held by. */
static void calls_put_sandbox(const struct step *s, struct record_draft *d, const struct turn *turn,
                              const struct call_request *r) {
  json_t *sandbox =
      sandbox_of_call(s->core->config, &s->core->workflow->movements[turn->movement],
                      capability_find(s->env->providers, r->provider), r->argv != NULL);
  if (sandbox != NULL)
    record_put_tree(d, MEMBER_SANDBOX, sandbox);
}

static void call_start_record(const struct step *s, struct record_draft *d, const struct turn *turn,
                              const struct call_request *r, const struct call_place *place) {
  step_turn_record(s, d, RECORD_CALL_START, turn);
  record_put_number(d, MEMBER_CALL, r->call);
  record_put_number(d, MEMBER_ATTEMPT, r->attempt);
  record_put_word(d, MEMBER_PURPOSE, call_purpose_name(r->purpose));
  if (r->stage != STAGE_COUNT)
    record_put_word(d, MEMBER_STAGE, judge_stage_name(r->stage));
  put_place(s, d, turn, place);
  record_put_bytes(d, MEMBER_PROVIDER, r->provider);
  record_put_bytes(d, MEMBER_MODEL, r->model);
  if (r->options)
    record_put_tree(d, MEMBER_OPTIONS, json_incref((json_t *)r->options));
  if (r->schema)
    calls_put_schema(d, s->core, r->schema);
  if (r->cwd != NULL)
    record_put_bytes(d, MEMBER_CWD, str_from(r->cwd));
  calls_put_sandbox(s, d, turn, r);
  record_put_number(d, MEMBER_TIMEOUT_MS, (int64_t)r->timeout_ms);
}

static void drop_step_call(struct step_call *n) {
  prompt_deinit(&n->prompt);
  json_decref(n->options);
  json_decref(n->schema);
}

static struct call_request first_request(const struct core *core, const struct turn *turn,
                                         const struct step_call *n) {
  const struct movement *m = &core->workflow->movements[turn->movement];
  return (struct call_request){
      .session = core->session,
      .turn = turn->id,
      .call = core->call_count + 1,
      .attempt = 1,
      .purpose = n->purpose,
      .stage = n->stage,
      .movement = m->name,
      .provider = n->provider,
      .model = n->model,
      .options = n->options,
      .argv = argv_of(m, n->purpose, n->invariant),
      .prompt = buf_view(&n->prompt.bytes),
      .schema = n->schema,
      .edit = n->purpose == PURPOSE_EXECUTE && (m->edit || m->argv != NULL),
      .permission = n->purpose == PURPOSE_EXECUTE ? m->permission : PERMISSION_READONLY,
      .run = n->purpose == PURPOSE_EXECUTE ? m->run : NULL,
      .timeout_ms = budget_time_left(core, turn, n->timeout_ms),
  };
}

void step_start_call(struct step *s, struct turn *turn, struct step_call *n) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  if (step_over_budget(s, turn, NULL)) {
    s->refused = true;
    drop_step_call(n);
    return;
  }
  n->options = step_without_nulls(n->options);
  if (s->core->behind != NULL)
    pass_over(s, turn, n);
  struct call_request request = first_request(s->core, turn, n);
  struct buf cwd = {0};
  limits_cwd(s->core->workflow, m, s->core->structured, &cwd);
  request.cwd = cwd.n > 0 ? buf_c(&cwd) : NULL;
  const char *why_not = NULL;
  choose_session(s, turn, n, &request, &why_not);
  struct record_draft d;
  struct prompt_log log;
  const struct call_place place = {n->vote, n->invariant, n->report};
  call_start_record(s, &d, turn, &request, &place);
  calls_put_session(&d, &request, why_not);
  json_t *token = prepare_token(s, &request);
  if (token)
    record_put_tree(&d, MEMBER_TOKEN, token);
  char sha256[SHA256_HEX];
  if (n->stage != STAGE_COUNT) {
    sha256_hex(request.prompt.p, request.prompt.n, NULL, 0, sha256);
    record_put_text(&d, MEMBER_PROMPT_SHA256, str_from(sha256));
  }
  prompt_log_init(&log, &n->prompt, &s->core->texts);
  record_put_parts(&d, MEMBER_PROMPT, log.parts, log.count);
  step_put_budget(&d, budget_count_notes(s->core, turn->movement, BUDGET_CALLS));
  step_emit(s, &d);
  prompt_log_deinit(&log);
  struct call *call = turn_call(turn, request.call);
  assert(call != NULL);
  buf_deinit(&call->prompt);
  call->prompt = n->prompt.bytes; /* not state: what the effect sends; recovery reads it back */
  n->prompt.bytes = (struct buf){0};
  buf_deinit(&cwd);
  drop_step_call(n);
  step_effect(s, EFFECT_START_CALL, call->id, 0);
}

/* Whether the next attempt goes on with the conversation of the one before. */
static const char *next_session(const struct step *s, const struct call *call,
                                const char **reason) {
  const struct capability *c = capability_find(s->env->providers, str_from(call->provider));
  bool works = call->purpose == PURPOSE_EXECUTE || call->resumed;
  bool can = works && c && c->sessions && call->provider_session;
  if (can && call->session_lost)
    *reason = "the backend has lost that conversation";
  else if (can && call->fallback && strcmp(call->fallback, call->provider) != 0)
    *reason = "it was another provider's";
  else if (can && call->forks && !c->forks)
    *reason = "the backend cannot fork it";
  else if (can) /* its work so far is not done twice */
    return call->provider_session;
  return NULL;
}

void step_restart_call(struct step *s, struct turn *turn, struct call *call, bool repeats) {
  struct call_request request;
  struct str first, model;
  const char *reason = NULL, *id = next_session(s, call, &reason);
  json_t *options = NULL;
  core_request(s->core, turn, call, &request);
  request.attempt = call->attempt + 1;
  request.provider_session = id ? str_from(id) : STR("");
  request.forks = call->forks;
  if (call_is_own(call) && call->purpose != PURPOSE_REPORT)
    request.timeout_ms = (uint64_t)step_time_left(s, turn, (int64_t)call->timeout_ms);
  request.timeout_ms = budget_time_left(s->core, turn, request.timeout_ms);
  if (call->fallback != NULL) {
    request.provider = str_from(call->fallback);
    core_first_backend(s->core, turn, call, &first, &model);
    request.model = str_eq(request.provider, first) ? model : own_model(s->core, request.provider);
    request.options = options = taken_options(s, call->wanted, request.provider);
  }
  struct record_draft d;
  const struct call_place place = {call->vote, call->invariant, call->report};
  call_start_record(s, &d, turn, &request, &place);
  calls_put_session(&d, &request, reason);
  json_t *token = repeats ? json_incref(call->token) : prepare_token(s, &request);
  if (token)
    record_put_tree(&d, MEMBER_TOKEN, token);
  if (repeats)
    record_put_number(&d, MEMBER_REPEATS, call->attempt);
  record_put_number(&d, MEMBER_PROMPT_OF, (int64_t)call->prompt_seq);
  step_emit(s, &d);
  json_decref(options);
  step_effect(s, EFFECT_START_CALL, call->id, 0);
}

/* To whoever takes over, unless nobody is wanted; in a drain that is for the resume to do. */
static void go_elsewhere(struct step *s, struct turn *turn, struct call *call) {
  if (!s->env->draining && !group_stops(s->core, turn) && !step_over_budget(s, turn, call))
    step_restart_call(s, turn, call, false);
}

/* How long to wait for another attempt at the same provider; -1: there is none. */
static int64_t retry_delay(const struct step *s, const struct call *call,
                           const struct call_result *r, bool once_more, bool may_fall_back) {
  int attempts = once_more ? LIMIT_SILENT_ATTEMPT_COUNT : LIMIT_CALL_ATTEMPT_COUNT;
  if (r->class == CLASS_BUDGET && call->failures + 1 < LIMIT_CALL_ATTEMPT_COUNT)
    return 0;                                    /* it waits for a person, who adds to the budget */
  bool report = call->purpose == PURPOSE_REPORT; /* another call tells it all */
  if (r->class == CLASS_NOT_FOUND && call->resumed && !call->session_lost && !report)
    return 0; /* its conversation may be gone: once more without it */
  if ((!once_more && !error_class_is_transient(r->class)) || call->failures + 1 >= attempts)
    return -1;
  if (r->retry_after_ms > LIMIT_RETRY_AFTER_MS &&
      json_is_false(json_at(s->core->config, "wait_for_reset")))
    return -1;
  if (r->retry_after_ms > LIMIT_RETRY_AFTER_MS)
    return may_fall_back || r->retry_after_ms > LIMIT_RESET_WAIT_MS ? -1 : r->retry_after_ms;
  if (r->retry_after_ms > 0)
    return r->retry_after_ms;
  int64_t wait = LIMIT_RETRY_BASE_MS << call->failures;
  if (wait > LIMIT_RETRY_MAX_MS)
    wait = LIMIT_RETRY_MAX_MS;
  return wait / 2 + (int64_t)s->ev->entropy[15] * (wait / 2) / 255; /* half fixed, half jitter */
}

/* A backend that answers without saying anything has not answered. A command may be silent: its
 * exit status speaks. */
static bool is_silent(const struct core *core, const struct turn *turn, const struct call *call,
                      const struct call_result *r) {
  return r->class == CLASS_NONE && r->structured == NULL && !is_command(core, turn, call) &&
         extract_says_nothing(buf_view(&r->text.bytes));
}

/* A reply that nobody could read (a page of a proxy, say) to work that changes nothing: it may be
 * asked for again. */
static bool is_garbled(const struct core *core, const struct turn *turn, const struct call *call,
                       const struct call_result *r) {
  bool work = call->purpose == PURPOSE_EXECUTE || call->purpose == PURPOSE_REASK ||
              call->purpose == PURPOSE_REPORT;
  return r->class == CLASS_PROTOCOL && work && !core->workflow->movements[turn->movement].edit &&
         !is_command(core, turn, call);
}

static void put_error(struct record_draft *d, const struct call_result *r) {
  struct str message = str_from(r->message);
  json_t *error = json_pack("{ss}", "class", error_class_name(r->class));
  if (utf8_valid(message.p, message.n))
    json_put(error, "message", json_stringn_nocheck(message.p, message.n));
  else
    json_put(error, "message", text_render(message));
  if (r->retry_after_ms > 0)
    json_put(error, "retry_after_ms", json_integer(r->retry_after_ms));
  record_put_tree(d, MEMBER_ERROR, error);
}

/* Puts what a result holds beside its text. */
static void put_rest(const struct core *core, const struct turn *turn, const struct call *call,
                     struct record_draft *d, const struct call_result *r) {
  json_t *usage = step_call_usage(core, call, r);
  if (r->structured)
    record_put_tree(d, MEMBER_STRUCTURED, json_incref(r->structured));
  if (r->enforced)
    record_put_text(d, MEMBER_ENFORCED, str_from(r->enforced));
  if (r->has_exit)
    record_put_number(d, MEMBER_EXIT, r->exit);
  if (r->tests)
    record_put_tree(d, MEMBER_TESTS, json_incref(r->tests));
  if (r->signal > 0)
    record_put_number(d, MEMBER_SIGNAL, r->signal);
  if (r->error_text.bytes.n > 0)
    step_put_text(d, MEMBER_STDERR, &r->error_text);
  if (r->dropped_bytes > 0)
    record_put_number(d, MEMBER_DROPPED_BYTES, (int64_t)r->dropped_bytes);
  if (r->error_dropped_bytes > 0)
    record_put_number(d, MEMBER_STDERR_DROPPED_BYTES, (int64_t)r->error_dropped_bytes);
  if (r->files)
    record_put_tree(d, MEMBER_FILES, json_incref(r->files));
  if (r->files_more > 0)
    record_put_number(d, MEMBER_FILES_MORE, (int64_t)r->files_more);
  if (r->files_shared)
    record_put_bool(d, MEMBER_FILES_SHARED, true);
  if (r->requests)
    record_put_tree(d, MEMBER_REQUESTS, json_incref(r->requests));
  if (usage != NULL)
    record_put_tree(d, MEMBER_USAGE, usage);
  record_put_bytes(d, MEMBER_PROVIDER_SESSION, str_from(r->provider_session));
  record_put_bytes(d, MEMBER_NOTE, str_from(r->note));
  record_put_number(d, MEMBER_DURATION_MS, r->duration_ms);
  step_put_budget(d, budget_notes(core, turn, call, usage, r->duration_ms, r->class == CLASS_NONE));
}

void step_call_end(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  if (call == NULL || call->state != CALL_RUNNING)
    return; /* cancelled, or of an attempt that is over */
  assert(s->ev->result != NULL);
  struct call_result r = *s->ev->result; /* borrowed: only its class and message may change */
  int64_t wait = -1;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_CALL_END, turn);
  record_put_number(&d, MEMBER_CALL, call->id);
  record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
  bool silent = is_silent(s->core, turn, call, &r);
  if (r.class == CLASS_BUDGET || r.class == CLASS_LOOPING)
    step_explain_end(s->core, turn, call, &r);
  if (silent)
    call_result_fail(&r, CLASS_PROTOCOL, "the answer is empty%s",
                     str_trim(buf_view(&r.text.bytes)).n > 0 ? ": it holds reasoning alone" : "");
  if (r.class != CLASS_NONE) {
    put_error(&d, &r);
    struct str next = core_next_backend(s->core, turn, call);
    bool once_more = silent || is_garbled(s->core, turn, call, &r);
    wait = retry_delay(s, call, &r, once_more, next.n > 0);
    if (wait >= 0)
      record_put_number(&d, MEMBER_RETRY_IN_MS, wait);
    else if (next.n > 0 && (r.elsewhere || error_class_falls_back(r.class)))
      record_put_bytes(&d, MEMBER_FALLBACK, next);
    if (r.text.bytes.n > 0)
      step_put_text(&d, MEMBER_TEXT, &r.text); /* what came before it failed */
  } else {
    step_put_text(&d, MEMBER_TEXT, &r.text);
  }
  put_rest(s->core, turn, call, &d, &r);
  step_emit(s, &d);
  if (wait >= 0)
    step_effect(s, EFFECT_TIMER, call->id, wait);
  else if (call->fallback != NULL)
    go_elsewhere(s, turn, call);
}

void step_admission(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  if (call == NULL || call->state != CALL_RUNNING)
    return;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_ADMISSION, turn);
  char until[RECORD_TIME_BYTES];
  record_put_number(&d, MEMBER_CALL, call->id);
  record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
  record_put_bytes(&d, MEMBER_PROVIDER, str_from(call->provider));
  record_put_word(&d, MEMBER_ANSWER, admission_name(s->ev->admission));
  record_put_bytes(&d, MEMBER_REASON, str_from(s->ev->reason));
  record_put_bytes(&d, MEMBER_MESSAGE, str_from(s->ev->message));
  if (s->ev->until_ms > 0) {
    record_time(s->ev->until_ms, until);
    record_put_text(&d, MEMBER_UNTIL, str_from(until));
  }
  if (s->ev->admission == ADMISSION_FALLBACK)
    record_put_bytes(&d, MEMBER_FALLBACK, core_next_backend(s->core, turn, call));
  step_emit(s, &d);
  if (call->fallback != NULL)
    go_elsewhere(s, turn, call);
  else if (s->ev->admission == ADMISSION_ADMITTED)
    step_effect(s, EFFECT_START_CALL, call->id, 0);
}

void step_call_news(struct step *s) {
  struct turn *turn = NULL;
  struct call *call = core_call(s->core, s->ev->call, &turn);
  const json_t *news = s->ev->news;
  if (call == NULL || call->state != CALL_RUNNING || call->event_count >= LIMIT_CALL_EVENT_COUNT ||
      (news && json_dumpb(news, NULL, 0, JSON_COMPACT) > LIMIT_CALL_EVENT_BYTES))
    return;
  struct record_draft d;
  step_turn_record(s, &d, RECORD_CALL_EVENT, turn);
  record_put_number(&d, MEMBER_CALL, call->id);
  record_put_number(&d, MEMBER_ATTEMPT, call->attempt);
  record_put_word(&d, MEMBER_EVENT, s->ev->news_kind);
  if (news)
    record_put_tree(&d, MEMBER_DATA, json_incref((json_t *)news));
  step_emit(s, &d);
  if (strcmp(s->ev->news_kind, "usage") == 0)
    step_end_over_budget(s);
  else if (strcmp(s->ev->news_kind, "tool") == 0 && json_at(news, "argument") != NULL)
    step_guard_call(s, turn, call);
}
