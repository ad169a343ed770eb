/* Drives agents by ACP (Agent Client Protocol, version 1): initialize, a conversation, its mode
 * and model, one prompt, and the end of stdin. */
#include "provider/agent/acp_internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "provider/agent/evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const methods[] = {"initialize",
                                      "authenticate",
                                      "session/new",
                                      "session/load",
                                      "session/resume",
                                      "session/set_mode",
                                      "session/set_config_option",
                                      "session/set_model",
                                      "session/prompt",
                                      NULL};
_Static_assert(sizeof methods / sizeof *methods == ACP_METHOD_COUNT + 1, "one name a method");

enum { ACP_AUTH_REQUIRED = -32000, ACP_NOT_FOUND = -32002, RPC_NO_METHOD = -32601 };

static struct acp *acp_of(struct driver *d) {
  return d->own;
}

static const char *acp_key(const struct acp *acp, const char *name) {
  return json_string_value(json_object_get(acp->d->profile->acp, name));
}

static void acp_over(struct acp *acp, enum profile_end end) {
  struct driver *d = acp->d;
  acp->prompting = false;
  stream_finish(d, end);
  if (d->host.close_stdin != NULL)
    d->host.close_stdin(d->host.ctx);
}

static void acp_fail(struct acp *acp, enum error_class class, const char *message) {
  stream_trouble(acp->d, 0, str_from(message));
  acp->d->trouble.class = class;
  acp_over(acp, STREAM_END_ERROR);
}

static void acp_request(struct acp *acp, enum acp_method method, json_t *params) {
  if (!rpc_request(&acp->rpc, (int)method, params))
    acp_fail(acp, CLASS_PROTOCOL, "the agent stopped reading its standard input");
}

/* --- steps --- */

/* Builds _meta of session/new: the profile's `meta`, and a schema under the name that `schema:
 * NAME` gives. */
static json_t *meta(const struct acp *acp) {
  const char *name = acp_key(acp, "schema");
  const json_t *own = json_object_get(acp->d->profile->acp, "meta");
  json_t *out = own ? json_clone(own) : json_object();
  enum call_purpose purpose = acp->call->request->purpose;
  if (purpose == PURPOSE_JUDGE || purpose == PURPOSE_REASK)
    json_object_update_recursive(out, json_object_get(acp->d->profile->acp, "judge_meta"));
  if (name != NULL && acp->call->schema != NULL) {
    json_t *with = json_pack("{s:{s:{s:{s:s, s:O}}}}", name, "options", "outputFormat", "type",
                             "json_schema", "schema", acp->call->schema);
    json_object_update_recursive(out, with);
    json_decref(with);
  }
  if (json_object_size(out) > 0)
    return out;
  json_decref(out);
  return NULL;
}

static void acp_open_session(struct acp *acp) {
  const json_t *can = json_object_get(acp->initialized, "agentCapabilities");
  bool loads = json_is_true(json_object_get(can, "loadSession"));
  bool resumes = json_object_get(json_object_get(can, "sessionCapabilities"), "resume") != NULL;
  json_t *params = json_pack("{s:s, s:[]}", "cwd", acp->call->cwd, "mcpServers");
  json_t *with = meta(acp);
  if (with != NULL)
    json_object_set_new(params, "_meta", with);
  if (acp->call->session[0] == '\0') {
    acp_request(acp, ACP_NEW, params);
  } else if (loads || resumes) {
    json_object_set_new(params, "sessionId", json_string(acp->call->session));
    acp->replayed = loads;
    acp_request(acp, loads ? ACP_LOAD : ACP_RESUME, params);
  } else {
    json_decref(params);
    acp_fail(acp, CLASS_NOT_FOUND, "this agent cannot continue a conversation");
  }
}

static bool offers(const json_t *list, const char *member, const char *id) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *has = json_string_value(json_object_get(json_array_get(list, i), member));
    if (has != NULL && strcmp(has, id) == 0)
      return true;
  }
  return false;
}

/* Sets the session's mode. Returns false if it cannot be set: the call is then over. */
static bool set_mode(struct acp *acp) {
  const json_t *modes = json_object_get(acp->opened, "modes");
  const char *current = json_string_value(json_object_get(modes, "currentModeId"));
  const char *word = permission_name(profile_told(acp->d->profile, acp->call));
  const char *mode =
      json_string_value(json_object_get(json_object_get(acp->d->profile->acp, "modes"), word));
  char text[300];
  if (mode == NULL || (current != NULL && strcmp(current, mode) == 0))
    return true;
  if (!offers(json_object_get(modes, "availableModes"), "id", mode)) {
    (void)snprintf(text, sizeof text, "the agent has no mode %.100s, which %s work needs", mode,
                   word);
    acp_fail(acp, CLASS_BAD_REQUEST, text);
    return false;
  }
  acp_request(acp, ACP_SET_MODE,
              json_pack("{s:s, s:s}", "sessionId", acp->session, "modeId", mode));
  return true;
}

/* Returns true if the command line or the environment already names the model. */
static bool says_model(const struct profile *profile) {
  const json_t *places[] = {profile->acp, json_object_get(profile->keys, "env")};
  for (size_t i = 0; i < ARRAY_LEN(places); i++) {
    char *dump = json_dump_text(places[i], JSON_COMPACT);
    bool found = dump != NULL && strstr(dump, "{model}") != NULL;
    free(dump);
    if (found)
      return true;
  }
  return false;
}

static const json_t *model_option(const struct acp *acp) {
  const json_t *options = json_object_get(acp->opened, "configOptions");
  for (size_t i = 0; i < json_array_size(options); i++) {
    const json_t *option = json_array_get(options, i);
    const char *category = json_string_value(json_object_get(option, "category"));
    if (category != NULL && strcmp(category, "model") == 0)
      return option;
  }
  return NULL;
}

static bool set_model(struct acp *acp) {
  const json_t *models = json_object_get(json_object_get(acp->opened, "models"), "availableModels");
  const json_t *option = model_option(acp);
  char model[LIMIT_NAME_BYTES * 2 + 1], text[400];
  struct str wanted = acp->call->request->model;
  if (wanted.n == 0 || says_model(acp->d->profile))
    return true;
  (void)snprintf(model, sizeof model, STR_FMT, STR_ARG(wanted));
  if (option != NULL && offers(json_object_get(option, "options"), "value", model)) {
    acp_request(acp, ACP_SET_OPTION,
                json_pack("{s:s, s:O, s:s}", "sessionId", acp->session, "configId",
                          json_object_get(option, "id"), "value", model));
  } else if (offers(models, "modelId", model)) {
    acp_request(acp, ACP_SET_MODEL,
                json_pack("{s:s, s:s}", "sessionId", acp->session, "modelId", model));
  } else {
    (void)snprintf(text, sizeof text, "the agent does not offer the model %.200s", model);
    acp_fail(acp, CLASS_NOT_FOUND, text);
    return false;
  }
  return true;
}

static void acp_prompt(struct acp *acp) {
  acp->prompting = true;
  acp_request(acp, ACP_PROMPT,
              json_pack("{s:s, s:[{s:s, s:o}]}", "sessionId", acp->session, "prompt", "type",
                        "text", "text", json_text(acp->call->prompt)));
}

/* Sends the prompt once everything before it has been requested and answered. */
static void acp_go_on(struct acp *acp) {
  if (acp->rpc.open_count == 0 && acp->session[0] != '\0' && acp->d->end == STREAM_END_NONE &&
      !acp->prompting)
    acp_prompt(acp);
}

/* --- answers --- */

static void on_initialized(struct acp *acp, const json_t *result) {
  const json_t *version = json_object_get(result, "protocolVersion");
  char text[160];
  json_decref(acp->initialized);
  acp->initialized = json_incref((json_t *)result);
  if (json_is_integer(version) && json_integer_value(version) == 1) {
    acp_open_session(acp);
    return;
  }
  (void)snprintf(text, sizeof text,
                 "the agent speaks version %lld of the Agent Client Protocol, not 1",
                 (long long)json_integer_value(version));
  acp_fail(acp, CLASS_PROTOCOL, text);
}

static void on_opened(struct acp *acp, const json_t *result) {
  const json_t *id = json_object_get(result, "sessionId");
  struct str session = str_from(acp->session[0] ? acp->session : acp->call->session);
  if (json_is_string(id))
    session = (struct str){json_string_value(id), json_string_length(id)};
  acp->replayed = false;
  if (session.n == 0 || session.n >= sizeof acp->session) {
    acp_fail(acp, CLASS_PROTOCOL, "the agent did not name a conversation");
    return;
  }
  (void)snprintf(acp->session, sizeof acp->session, STR_FMT, STR_ARG(session));
  json_decref(acp->opened);
  acp->opened = json_incref((json_t *)result);
  stream_session(acp->d, session);
  if (!rpc_replays(&acp->rpc) && set_mode(acp) && set_model(acp))
    acp_go_on(acp);
}

static json_int_t acp_input(const json_t *usage) {
  return json_integer_value(json_object_get(usage, "input"));
}

/* Goes on with another prompt after a refusal: some agents end their turn then, and the model
 * should know and do without. Returns false if that is not what happened. */
static bool goes_on(struct acp *acp, json_t *usage) {
  struct driver *d = acp->d;
  if (!acp->denied || acp->interrupted || rpc_replays(&acp->rpc) || d->structured != NULL ||
      acp->gone_on == LIMIT_ACP_GO_ONS)
    return false;
  struct buf text = {0};
  buf_printf(&text, "That was not allowed, and was not done: " STR_FMT ". Go on without it.",
             STR_ARG(buf_view(&d->denied)));
  json_t *note = json_pack("{s:o}", "text", json_text(buf_view(&text))), *used = acp->used;
  acp->used = usage ? json_incref(usage) : NULL;
  json_decref(used);
  stream_end_message(d, (struct str){0});
  stream_tell(d, NEWS_NOTE, (struct str){0}, note);
  acp->gone_on++;
  acp->denied = acp->failed = d->trouble.there = false;
  acp_request(acp, ACP_PROMPT,
              json_pack("{s:s, s:[{s:s, s:o}]}", "sessionId", acp->session, "prompt", "type",
                        "text", "text", json_text(buf_view(&text))));
  buf_deinit(&text);
  return true;
}

/* Returns the tokens of one prompt, NULL if none are reported. */
static json_t *prompt_usage(const struct acp *acp, const json_t *result) {
  const json_t *counts =
      json_object_get(json_object_get(json_object_get(result, "_meta"), "quota"), "token_count");
  json_t *usage = acp_usage(json_object_get(result, "usage"));
  if (usage == NULL)
    usage = acp_usage(counts);
  return usage ? usage : json_incref(acp->own_usage);
}

static void on_stopped(struct acp *acp, const json_t *result) {
  static const struct {
    const char *reason, *message;
    enum error_class class;
  } reasons[] = {{"max_tokens", "the answer was cut by a token limit", CLASS_LENGTH},
                 {"max_turn_requests", "the agent used all its turns", CLASS_LENGTH},
                 {"refusal", "the model refused", CLASS_REFUSED},
                 {"cancelled", "cancelled", CLASS_CANCELLED}};
  const char *reason = json_string_value(json_object_get(result, "stopReason"));
  json_t *usage = prompt_usage(acp, result);
  if (goes_on(acp, usage)) {
    json_decref(usage);
    return;
  }
  /* Agents that stop when refused go on counting from prompt to prompt; one that starts anew
   * reports fewer. */
  if (acp->used != NULL && usage != NULL && acp_input(usage) < acp_input(acp->used)) {
    json_t *sum = stream_usage_added(acp->used, usage, 1);
    json_decref(usage);
    usage = sum;
  }
  /* Some agents report the tokens of the last request only. */
  const char *told = json_string_value(json_object_get(acp->d->profile->acp, "usage"));
  if (usage != NULL && told != NULL)
    json_object_set_new(usage, "told", json_string(told));
  if (usage != NULL)
    stream_usage(acp->d, usage);
  stream_end_message(acp->d, (struct str){0});
  for (size_t i = 0; reason != NULL && i < ARRAY_LEN(reasons); i++)
    if (strcmp(reason, reasons[i].reason) == 0) {
      acp_fail(acp, reasons[i].class, reasons[i].message);
      return;
    }
  if (reason == NULL)
    acp_fail(acp, CLASS_PROTOCOL, "the agent does not say why it stopped");
  else if (acp->d->denied.n > 0 && acp->d->last.n == 0 && acp->d->structured == NULL)
    acp_fail(acp, CLASS_REFUSED, buf_c(&acp->d->denied)); /* it stopped there without a word */
  else
    acp_over(acp, acp->failed ? STREAM_END_ERROR : STREAM_END_OK);
}

static void acp_on_error(struct acp *acp, int method, const json_t *error) {
  const json_t *data = json_object_get(error, "data"), *text = json_object_get(error, "message");
  static const char *const details[] = {"message", "details", "detail", "reason"};
  static const char *const kinds[] = {"errorKind", "errorName", "errorCode", "code", "kind"};
  json_int_t code = json_integer_value(json_object_get(error, "code"));
  struct driver *d = acp->d;
  struct buf message = {.max = LIMIT_EVIDENCE_BYTES};
  buf_str(&message, (struct str){json_string_value(text), json_string_length(text)});
  if (json_is_string(data))
    buf_printf(&message, ": %s", json_string_value(data));
  for (size_t i = 0; i < ARRAY_LEN(details); i++) {
    const char *more = json_string_value(json_object_get(data, details[i]));
    if (more != NULL && strstr(buf_c(&message), more) == NULL)
      buf_printf(&message, ": %s", more);
  }
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
    const json_t *kind = json_object_get(data, kinds[i]);
    if (json_is_string(kind))
      stream_kind(d, (struct str){json_string_value(kind), json_string_length(kind)});
  }
  enum error_class said = evidence_of_words(buf_view(&message));
  bool is_status = code >= 400 && code < 600;
  if (code == 500 && said != CLASS_NONE) /* agents that know no better report this for everything */
    is_status = false;
  stream_trouble(d, is_status ? (int)code : 0, buf_view(&message));
  if (code == ACP_AUTH_REQUIRED && (said == CLASS_NONE || said == CLASS_AUTH))
    d->trouble.class = CLASS_AUTH;
  else if (code == ACP_NOT_FOUND ||
           ((method == ACP_LOAD || method == ACP_RESUME) && said == CLASS_NONE))
    d->trouble.class = CLASS_NOT_FOUND; /* the conversation asked for */
  buf_deinit(&message);
  acp_over(acp, STREAM_END_ERROR);
}

/* Logs in once, by the method that the profile names, if that is what the error asks for. */
static bool authenticate(struct acp *acp, const json_t *error) {
  const char *method = acp_key(acp, "auth");
  const json_t *known = json_object_get(acp->initialized, "authMethods");
  if (json_integer_value(json_object_get(error, "code")) != ACP_AUTH_REQUIRED ||
      acp->authenticated || method == NULL || !offers(known, "id", method) ||
      rpc_replays(&acp->rpc))
    return false;
  acp->authenticated = true;
  acp_request(acp, ACP_AUTHENTICATE, json_pack("{s:s}", "methodId", method));
  return true;
}

/* Returns which request an answer belongs to, by its shape, where the recording does not show the
 * request. */
static int guess(const json_t *result) {
  if (json_object_get(result, "stopReason") != NULL)
    return ACP_PROMPT;
  if (json_object_get(result, "protocolVersion") != NULL)
    return ACP_INITIALIZE;
  return json_object_get(result, "sessionId") != NULL ? ACP_NEW : ACP_METHOD_COUNT;
}

static void acp_on_answer(struct acp *acp, const struct rpc_message *m) {
  enum acp_method method =
      m->method >= 0 ? (enum acp_method)m->method : (enum acp_method)guess(m->result);
  if (acp->d->end != STREAM_END_NONE)
    return;
  if (m->error != NULL) {
    bool opening = method == ACP_NEW || method == ACP_LOAD || method == ACP_RESUME;
    acp->replayed = false;
    if (!opening || !authenticate(acp, m->error))
      acp_on_error(acp, (int)method, m->error);
    return;
  }
  switch (method) {
  case ACP_INITIALIZE:
    on_initialized(acp, m->result);
    break;
  case ACP_AUTHENTICATE:
    if (!rpc_replays(&acp->rpc))
      acp_open_session(acp);
    break;
  case ACP_NEW:
  case ACP_LOAD:
  case ACP_RESUME:
    on_opened(acp, m->result);
    break;
  case ACP_SET_MODE:
  case ACP_SET_OPTION:
  case ACP_SET_MODEL:
    acp_go_on(acp);
    break;
  case ACP_PROMPT:
    on_stopped(acp, m->result);
    break;
  case ACP_METHOD_COUNT:
    break;
  }
}

static void acp_value(struct driver *d, const json_t *value) {
  struct acp *acp = acp_of(d);
  struct rpc_message m = rpc_read(&acp->rpc, value);
  switch (m.kind) {
  case RPC_ANSWER:
    acp_on_answer(acp, &m);
    break;
  case RPC_ASK:
    if (strcmp(m.name, "session/request_permission") == 0)
      acp_ask_permission(acp, m.id, m.params);
    else /* files, terminals: initialize said that we have none */
      (void)rpc_refuse(&acp->rpc, m.id, RPC_NO_METHOD, "not supported");
    break;
  case RPC_TELL:
    if (strcmp(m.name, "session/update") == 0)
      acp_update(acp, m.params);
    break;
  case RPC_NOISE:
    break;
  }
}

/* --- the driver --- */

static struct driver *acp_open(const struct profile *profile, const struct agent_call *call,
                               const struct driver_host *host) {
  struct driver *d = stream_open(profile, call, host);
  struct acp *acp = xcalloc(1, sizeof *acp);
  d->own = acp;
  d->value = acp_value;
  d->is_text = d->ends_by_exit = false;
  acp->d = d;
  acp->call = call;
  acp->questions.d = d;
  acp->rpc = (struct rpc){.host = &d->host, .methods = methods, .versioned = true};
  acp_request(acp, ACP_INITIALIZE,
              json_pack("{s:i, s:{s:{s:b, s:b}, s:b}, s:{s:s, s:s}}", "protocolVersion", 1,
                        "clientCapabilities", "fs", "readTextFile", 0, "writeTextFile", 0,
                        "terminal", 0, "clientInfo", "name", "segue", "version", SEGUE_VERSION));
  return d;
}

static void acp_sent(struct driver *d, struct str line) {
  struct acp *acp = acp_of(d);
  acp->questions.recorded = true;
  json_t *value = rpc_sent(&acp->rpc, line);
  const char *method = json_string_value(json_object_get(value, "method"));
  const json_t *params = json_object_get(value, "params");
  const char *session = json_string_value(json_object_get(params, "sessionId"));
  if (method == NULL)
    acp_recorded_answer(acp, json_object_get(value, "id"), json_object_get(value, "result"));
  else if (strcmp(method, methods[ACP_LOAD]) == 0)
    acp->replayed = true;
  else if (strcmp(method, methods[ACP_PROMPT]) == 0)
    acp->prompting = true, acp->replayed = false;
  if (session != NULL) { /* the recording may have cut the answer that named it */
    (void)snprintf(acp->session, sizeof acp->session, "%s", session);
    stream_session(d, str_from(acp->session));
  }
  json_t *asked = json_object_get(json_object_get(params, "_meta"), "claudeCode");
  if (json_object_get(json_object_get(asked, "options"), "outputFormat") != NULL)
    d->schema_asked = true;
  json_decref(value);
}

static bool acp_interrupt(struct driver *d) {
  struct acp *acp = acp_of(d);
  acp->interrupted = true;
  return acp->prompting &&
         rpc_notify(&acp->rpc, "session/cancel", json_pack("{s:s}", "sessionId", acp->session));
}

static void acp_end(struct driver *d, const struct process_result *p, struct call_result *r) {
  struct acp *acp = acp_of(d);
  stream_take_rest(d);
  question_end(&acp->questions);
  stream_end(d, p, r);
}

static void acp_close(struct driver *d) {
  struct acp *acp = acp_of(d);
  json_decref(acp->initialized);
  json_decref(acp->opened);
  json_decref(acp->own_usage);
  json_decref(acp->inputs);
  json_decref(acp->used);
  json_decref(acp->allowing);
  questions_deinit(&acp->questions);
  stream_close(d);
}

const struct driver_ops driver_acp = {.name = "acp",
                                      .transport = TRANSPORT_ACP,
                                      .keeps_stdin = true,
                                      .open = acp_open,
                                      .output = stream_output,
                                      .sent = acp_sent,
                                      .interrupt = acp_interrupt,
                                      .end = acp_end,
                                      .close = acp_close};
