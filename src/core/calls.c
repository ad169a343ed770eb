/* Calls: their records, from the request to what came back. */
#include "core/step.h"

#include "base/log.h"
#include "base/utf8.h"
#include "core/limits.h"
#include "core/record.h"
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
      .timeout_ms = call->timeout_ms,
      .stall_ms = call->purpose == PURPOSE_EXECUTE ? (uint64_t)m->stall_ms : 0,
      .tests = call->purpose == PURPOSE_EXECUTE ? m->tests : STR(""),
      .cwd = call->cwd,
      .conversation = total_of(core, call),
      .secrets = call->purpose == PURPOSE_EXECUTE ? m->secrets : NULL,
      .refused = core_refused(core, str_from(call->provider), str_from(call->model)),
  };
}

/* --- what providers would not take --- */

static void refused_key(struct str provider, struct str model, struct buf *out) {
  buf_str(out, provider);
  buf_putc(out, '\n');
  buf_str(out, model);
}

const json_t *core_refused(const struct core *core, struct str provider, struct str model) {
  struct buf key = {0};
  if (json_object_size(core->refused) == 0)
    return NULL;
  refused_key(provider, model, &key);
  const json_t *names = json_object_get(core->refused, buf_c(&key));
  buf_deinit(&key);
  return names;
}

void core_refuse(struct core *core, const struct call *call, const json_t *name) {
  struct buf key = {0};
  const json_t *known;
  size_t i;
  refused_key(str_from(call->provider), str_from(call->model), &key);
  if (core->refused == NULL)
    core->refused = json_object();
  json_t *names = json_object_get(core->refused, buf_c(&key));
  if (names == NULL) {
    names = json_array();
    json_object_set_new(core->refused, buf_c(&key), names);
  }
  buf_deinit(&key);
  json_array_foreach(names, i, known) {
    if (json_equal(known, name))
      return;
  }
  if (json_array_size(names) < LIMIT_REFUSED_COUNT)
    json_array_append(names, (json_t *)name);
}

/* --- provider sessions --- */

void core_session_key(const struct movement *m, struct str provider, struct buf *out) {
  char persona[SHA256_HEX];
  if (m->shares_conversation) {
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
                                 enum call_purpose purpose, struct str provider) {
  const struct capability *c = capability_find(s->env->providers, provider);
  struct buf key = {0};
  if (purpose != PURPOSE_EXECUTE || c == NULL || !c->sessions ||
      json_object_size(s->core->sessions) == 0)
    return NULL;
  core_session_key(m, provider, &key);
  const json_t *id = json_object_get(s->core->sessions, buf_c(&key));
  buf_deinit(&key);
  return json_string_value(id);
}

/* Tells in call_start whether a conversation is resumed, and why not. */
static void calls_put_session(struct record_draft *d, const char *id, const char *reason) {
  if (id != NULL)
    record_put_tree(d, MEMBER_SESSION, json_pack("{sb ss}", "resumed", 1, "id", id));
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
  } else if (call->purpose == PURPOSE_EXECUTE) {
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
  if (is_command(core, turn, call) || call->vote > 0 || /* nobody votes twice */
      !has_lists(core->workflow, core->config, &core->workflow->movements[turn->movement]))
    return STR("");
  core_first_backend(core, turn, call, &first, &model);
  const json_t *list = core_takers(core->workflow, core->config, turn->movement,
                                   call->purpose != PURPOSE_EXECUTE && !is_reask(call), first);
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

static void call_start_record(const struct step *s, struct record_draft *d, const struct turn *turn,
                              const struct call_request *r, int vote, int invariant) {
  step_turn_record(s, d, RECORD_CALL_START, turn);
  record_put_number(d, MEMBER_CALL, r->call);
  record_put_number(d, MEMBER_ATTEMPT, r->attempt);
  record_put_word(d, MEMBER_PURPOSE, call_purpose_name(r->purpose));
  if (r->stage != STAGE_COUNT)
    record_put_word(d, MEMBER_STAGE, judge_stage_name(r->stage));
  if (vote > 0)
    record_put_number(d, MEMBER_VOTE, vote);
  if (invariant > 0)
    record_put_number(d, MEMBER_INVARIANT, invariant);
  record_put_bytes(d, MEMBER_PROVIDER, r->provider);
  record_put_bytes(d, MEMBER_MODEL, r->model);
  if (r->options)
    record_put_tree(d, MEMBER_OPTIONS, json_incref((json_t *)r->options));
  if (r->schema)
    calls_put_schema(d, s->core, r->schema);
  if (r->cwd != NULL)
    record_put_bytes(d, MEMBER_CWD, str_from(r->cwd));
  record_put_number(d, MEMBER_TIMEOUT_MS, (int64_t)r->timeout_ms);
}

void step_start_call(struct step *s, struct turn *turn, struct step_call *n) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  n->options = step_without_nulls(n->options);
  if (s->core->behind != NULL)
    pass_over(s, turn, n);
  struct call_request request = {
      .session = s->core->session,
      .turn = turn->id,
      .call = s->core->call_count + 1,
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
      .timeout_ms = n->timeout_ms,
  };
  struct buf cwd = {0};
  limits_cwd(s->core->workflow, m, s->core->structured, &cwd);
  request.cwd = cwd.n > 0 ? buf_c(&cwd) : NULL;
  const char *known = known_session(s, m, n->purpose, n->provider);
  const char *why_not = known && m->fresh_session ? "the movement has session: refresh" : NULL;
  if (known == NULL && m->shares_conversation && n->purpose == PURPOSE_EXECUTE)
    why_not = "a sibling has the same conversation: this one begins its own";
  if (why_not != NULL)
    known = NULL;
  else if (known != NULL)
    request.provider_session = str_from(known);
  struct record_draft d;
  struct prompt_log log;
  call_start_record(s, &d, turn, &request, n->vote, n->invariant);
  calls_put_session(&d, known, why_not);
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
  step_emit(s, &d);
  prompt_log_deinit(&log);
  struct call *call = turn_call(turn, request.call);
  assert(call != NULL);
  buf_deinit(&call->prompt);
  call->prompt = n->prompt.bytes; /* not state: what the effect sends; recovery reads it back */
  n->prompt.bytes = (struct buf){0};
  buf_deinit(&cwd);
  prompt_deinit(&n->prompt);
  json_decref(n->options);
  json_decref(n->schema);
  step_effect(s, EFFECT_START_CALL, call->id, 0);
}

/* Whether the next attempt goes on with the conversation of the one before. */
static const char *next_session(const struct step *s, const struct call *call,
                                const char **reason) {
  const struct capability *c = capability_find(s->env->providers, str_from(call->provider));
  bool can = call->purpose == PURPOSE_EXECUTE && c && c->sessions && call->provider_session;
  if (can && call->session_lost)
    *reason = "the backend has lost that conversation";
  else if (can && call->fallback && strcmp(call->fallback, call->provider) != 0)
    *reason = "it was another provider's";
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
  if (call_is_own(call))
    request.timeout_ms = (uint64_t)step_time_left(s, turn, (int64_t)call->timeout_ms);
  if (call->fallback != NULL) {
    request.provider = str_from(call->fallback);
    core_first_backend(s->core, turn, call, &first, &model);
    request.model = str_eq(request.provider, first) ? model : own_model(s->core, request.provider);
    request.options = options = taken_options(s, call->wanted, request.provider);
  }
  struct record_draft d;
  call_start_record(s, &d, turn, &request, call->vote, call->invariant);
  calls_put_session(&d, id, reason);
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

/* To whoever takes over; in a drain that is for the resume to do. */
static void go_elsewhere(struct step *s, struct turn *turn, struct call *call) {
  if (!s->env->draining)
    step_restart_call(s, turn, call, false);
}

/* How long to wait for another attempt at the same provider; -1: there is none. */
static int64_t retry_delay(const struct step *s, const struct call *call,
                           const struct call_result *r, bool once_more, bool may_fall_back) {
  int attempts = once_more ? LIMIT_SILENT_ATTEMPT_COUNT : LIMIT_CALL_ATTEMPT_COUNT;
  if (r->class == CLASS_NOT_FOUND && call->resumed && !call->session_lost)
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
  bool work = call->purpose == PURPOSE_EXECUTE || call->purpose == PURPOSE_REASK;
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
static void put_rest(const struct core *core, const struct call *call, struct record_draft *d,
                     const struct call_result *r) {
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
  if (r->requests)
    record_put_tree(d, MEMBER_REQUESTS, json_incref(r->requests));
  if (r->usage)
    record_put_tree(d, MEMBER_USAGE,
                    spend_priced(r->usage, json_at(core->config, "prices"), str_from(call->model)));
  record_put_bytes(d, MEMBER_PROVIDER_SESSION, str_from(r->provider_session));
  record_put_bytes(d, MEMBER_NOTE, str_from(r->note));
  record_put_number(d, MEMBER_DURATION_MS, r->duration_ms);
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
  put_rest(s->core, call, &d, &r);
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
}
