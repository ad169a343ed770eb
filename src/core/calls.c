/* Makes calls: the request, the conversation that it continues, the record of its start. */
#include "core/step.h"

#include "base/log.h"
#include "core/limits.h"
#include "core/record.h"
#include "core/sandbox.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds what the conversation that the call continues has used so far. */
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
      .argv = step_argv(m, call->purpose, call->invariant),
      .prompt = buf_view(&call->prompt),
      .schema = call->schema,
      .schema_as = core->workflow->schema_as,
      .language = workflow_language(core->workflow),
      .token = call->token,
      .edit = call->purpose == PURPOSE_EXECUTE && m->writes,
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

/* Returns the conversation that an execute call could continue, NULL if there is none. */
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

/* Chooses the conversation that a movement's call begins with. Sets `why_not` if there is one, but
 * not for this call, or if a sibling may have it. Siblings and items continue copies of what they
 * share. */
static void choose_session(const struct step *s, const struct turn *turn, const struct step_call *n,
                           struct call_request *request, const char **why_not) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  const struct capability *c = capability_find(s->env->providers, n->provider);
  bool copies = turn->item > 0;
  if (n->purpose == PURPOSE_REPORT) { /* report.c finds the conversation */
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

/* Returns the configured model of a provider, for calls that name no model. */
static struct str own_model(const struct core *core, struct str provider) {
  const json_t *model =
      json_object_getn(json_at(core->config, "provider_models"), provider.p, provider.n);
  return json_view(model);
}

/* Keeps those of the wanted options that the provider takes. */
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

/* Skips a provider that was replaced a short while ago and asks the one that took over. */
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
    return; /* all were replaced: the first is as good as any */
  json_t *options = taken_options(s, n->options, next);
  json_decref(n->options);
  n->options = options;
  n->provider = next;
  n->model = own_model(core, next);
}

/* Prepares the call's token. One event may begin several calls, so each gets random bytes of its
 * own, from which a provider may make the id of a new conversation. */
static json_t *prepare_token(const struct step *s, const struct call_request *request) {
  unsigned char entropy[16];
  const json_t *counts =
      json_object_getn(s->core->token_counts, request->provider.p, request->provider.n);
  memcpy(entropy, s->ev->entropy, sizeof entropy);
  for (size_t i = 0; i < sizeof request->call; i++)
    entropy[sizeof entropy - 1 - i] ^= (unsigned char)((unsigned long)request->call >> (8 * i));
  return s->env->prepare(s->env->ctx, request, counts, entropy);
}

/* Puts the schema itself, or a reference to where it was logged first. */
static void calls_put_schema(struct record_draft *d, const struct core *core,
                             const json_t *schema) {
  json_t *schemas = core->schemas;
  for (void *at = json_object_iter(schemas); at; at = json_object_iter_next(schemas, at))
    if (json_same(json_object_iter_value(at), schema)) {
      record_put_ref(d, MEMBER_SCHEMA, json_object_iter_key(at));
      return;
    }
  record_put_tree(d, MEMBER_SCHEMA, json_incref((json_t *)schema));
}

/* Says which of a turn's calls a record is about. */
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

/* Says what will confine the call's program. */
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
      .argv = step_argv(m, n->purpose, n->invariant),
      .prompt = buf_view(&n->prompt.bytes),
      .schema = n->schema,
      .edit = n->purpose == PURPOSE_EXECUTE && m->writes,
      .permission = n->purpose == PURPOSE_EXECUTE ? m->permission : PERMISSION_READONLY,
      .run = n->purpose == PURPOSE_EXECUTE ? m->run : NULL,
      .timeout_ms = budget_time_left(core, turn, n->timeout_ms),
  };
}

/* Makes the notes on budgets that are due when a call begins. Returns a new list, NULL if there are
 * none. */
static json_t *start_notes(const struct step *s, const struct turn *turn, struct str provider) {
  struct budget_hit hit;
  json_t *notes = budget_count_notes(s->core, turn->movement, BUDGET_CALLS);
  if (s->env->day_notes == NULL || !s->env->day_notes(s->env->ctx, provider, &hit))
    return notes;
  json_t *day = budget_day_notes(&hit);
  if (notes != NULL)
    json_array_extend(day, notes);
  json_decref(notes);
  return day;
}

void step_start_call(struct step *s, struct turn *turn, struct step_call *n) {
  const struct movement *m = &s->core->workflow->movements[turn->movement];
  if (step_over_budget(s, turn, NULL, n->provider)) {
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
  const struct spend begun = {.begun = 1};
  if (s->env->day_count != NULL)
    s->env->day_count(s->env->ctx, request.provider, &begun);
  step_put_budget(&d, start_notes(s, turn, request.provider));
  step_emit(s, &d);
  prompt_log_deinit(&log);
  struct call *call = turn_call(turn, request.call);
  assert(call != NULL);
  buf_deinit(&call->prompt);
  call->prompt = n->prompt.bytes; /* not state: the effect sends it; recovery reads it back */
  n->prompt.bytes = (struct buf){0};
  buf_deinit(&cwd);
  drop_step_call(n);
  step_effect(s, EFFECT_START_CALL, call->id, 0);
}

/* Returns the conversation that the next attempt continues, NULL if it begins a new one. */
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
  else if (can) /* so that finished work is not done again */
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
