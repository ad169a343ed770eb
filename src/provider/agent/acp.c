/* Drives agents by ACP (Agent Client Protocol, version 1): initialize, a conversation, its mode
 * and model, one prompt, and the end of stdin. */
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "provider/agent/classify.h"
#include "provider/agent/permission_policy.h"
#include "provider/agent/rpc.h"
#include "provider/agent/stream.h"
#include "provider/api/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* These are in the order of a call; each step follows from the answer to the last one. */
enum acp_method {
  ACP_INITIALIZE,
  ACP_AUTHENTICATE, /* only after the agent said that it needs that */
  ACP_NEW,
  ACP_LOAD,
  ACP_RESUME,
  ACP_FORK,
  ACP_SET_MODE,
  ACP_SET_OPTION, /* sets the model, if the agent has it as an option ... */
  ACP_SET_MODEL,  /* ... or by a request of its own */
  ACP_PROMPT,
  ACP_CLOSE, /* nobody waits for its answer */
  ACP_METHOD_COUNT
};

struct acp {
  struct driver *d;
  struct rpc rpc;
  char session[128];   /* the conversation; "": none yet */
  json_t *initialized; /* the agent's answer to initialize */
  json_t *opened;      /* answer to session/new, load or resume */
  bool authenticated, prompting;
  bool denied;       /* refused something, and has neither said nor begun anything since */
  bool interrupted;  /* we interrupted it */
  unsigned gone_on;  /* how often it was told to continue after that */
  json_t *used;      /* tokens of the earlier prompts; or NULL */
  bool failed;       /* its last words were the client's own for an error */
  bool replayed;     /* it repeats the history of a conversation: this is not new */
  bool ids;          /* messages carry ids: those without one are asides */
  json_t *tools;     /* what was told of each tool by its id: the last of each member; or NULL */
  json_t *own_usage; /* {"input", "output", "cached"}, reported before the end */
  json_t *cost;      /* dollars that it told last, by the protocol of its whole session; or NULL */
  json_t *allowing;  /* in a replay: ids of options that allow something, as the agent named them */
};

static const char *const methods[] = {
    "initialize",        "authenticate",   "session/new",      "session/load",
    "session/resume",    "session/fork",   "session/set_mode", "session/set_config_option",
    "session/set_model", "session/prompt", "session/close",    NULL};

_Static_assert(sizeof methods / sizeof *methods == ACP_METHOD_COUNT + 1, "one name a method");

enum { ACP_AUTH_REQUIRED = -32000, ACP_NOT_FOUND = -32002, RPC_NO_METHOD = -32601 };

static struct acp *acp_of(struct driver *d) {
  return d->own;
}

static const char *acp_key(const struct acp *acp, const char *name) {
  return json_string_value(json_object_get(acp->d->profile->acp, name));
}

/* Returns whether the agent can do this with sessions. */
static bool acp_can(const struct acp *acp, const char *what) {
  const json_t *can = json_object_get(acp->initialized, "agentCapabilities");
  return json_is_object(json_object_get(json_object_get(can, "sessionCapabilities"), what));
}

static void acp_over(struct acp *acp, enum profile_end end) {
  acp->prompting = false;
  if (acp->session[0] != '\0' && acp_can(acp, "close") && !rpc_replays(&acp->rpc))
    (void)rpc_request(&acp->rpc, ACP_CLOSE, json_pack("{s:s}", "sessionId", acp->session));
  stream_over(acp->d, end);
}

static void acp_fail(struct acp *acp, enum error_class class, const char *message) {
  acp->prompting = false;
  stream_fail(acp->d, class, message);
}

static void acp_request(struct acp *acp, enum acp_method method, json_t *params) {
  if (!rpc_request(&acp->rpc, (int)method, params))
    acp_fail(acp, CLASS_PROTOCOL, "the agent stopped reading its standard input");
}

static struct str first_of(const json_t *object, const char *a, const char *b, const char *c) {
  struct str text = json_view_at(object, a);
  if (text.n == 0)
    text = json_view_at(object, b);
  return text.n == 0 ? json_view_at(object, c) : text;
}

/* --- tokens --- */

static bool acp_number(const json_t *object, const char *a, const char *b, json_int_t *out) {
  const json_t *value = json_object_get(object, a);
  if (!json_is_integer(value))
    value = json_object_get(object, b);
  *out = json_is_integer(value) ? json_integer_value(value) : 0;
  return json_is_integer(value) && *out >= 0 && *out < 1000000000000;
}

/* Returns the tokens in an answer to session/prompt, or in a chunk's _meta. */
static json_t *acp_usage(const json_t *usage) {
  json_int_t input, output, cached, written, total;
  if (!acp_number(usage, "inputTokens", "input_tokens", &input) ||
      !acp_number(usage, "outputTokens", "output_tokens", &output))
    return NULL;
  bool known = acp_number(usage, "cachedReadTokens", "cached_tokens", &cached);
  if (!acp_number(usage, "cachedWriteTokens", "cache_write_tokens", &written))
    written = 0;
  json_int_t thought;
  bool thinks = acp_number(usage, "thoughtTokens", "thought_tokens", &thought);
  /* Agents differ in whether the input includes what came from a cache; the total shows it. */
  if (known && acp_number(usage, "totalTokens", "total_tokens", &total) &&
      input + cached + written + output <= total)
    input += cached + written;
  json_t *out = json_pack("{s:I, s:I}", "input", input, "output", output);
  if (known)
    json_object_set_new(out, "cached", json_integer(cached));
  if (thinks)
    json_object_set_new(out, "reasoning", json_integer(thought));
  if (written > 0)
    json_object_set_new(out, "cache_write", json_integer(written));
  return out;
}

/* Notes what the session has cost so far, if that is told in dollars. */
static void acp_note_cost(struct acp *acp, const json_t *cost) {
  const json_t *amount = json_object_get(cost, "amount");
  double usd = json_number_value(amount);
  if (acp->prompting && str_eq_c(json_view_at(cost, "currency"), "USD") && usd > 0 &&
      usd <= LIMIT_COST_USD)
    json_keep(&acp->cost, amount);
}

/* --- texts --- */

/* Takes a piece that is the client's own words, by the profile's `notices`. Returns false if it is
 * no such piece. */
static bool take_notice(struct acp *acp, struct str text) {
  struct driver *d = acp->d;
  for (size_t i = 0; i < d->profile->notice_count; i++) {
    const struct profile_notice *notice = &d->profile->notices[i];
    if (pattern_match(notice->pattern, &d->scratch, text.p, text.n) != PATTERN_MATCH)
      continue;
    json_t *data = json_object();
    switch (notice->kind) {
    case NOTICE_RETRY: /* what was said so far will come again */
      buf_clear(&d->told);
      stream_retry(d, data, str_trim(text));
      break;
    case NOTICE_NOTE:
      json_decref(data);
      stream_note(d, str_trim(text));
      break;
    case NOTICE_ERROR:
      json_decref(data);
      stream_trouble(d, classify_status(text), str_trim(text));
      acp->failed = true;
      break;
    }
    return true;
  }
  return false;
}

/* Tells a piece of a message. Pieces of one message have one id. Where messages have ids, a piece
 * without one is an aside (a warning of the client, say): it is told, and is no part of the
 * answer. */
static void acp_say_piece(struct acp *acp, const json_t *update) {
  struct driver *d = acp->d;
  struct str id = json_view_at(update, "messageId");
  struct str text = json_view_at(json_object_get(update, "content"), "text");
  json_t *usage = acp_usage(json_object_get(json_object_get(update, "_meta"), "usage"));
  if (usage != NULL) {
    json_decref(acp->own_usage);
    acp->own_usage = usage;
  }
  if (text.n == 0 || (id.n == 0 && take_notice(acp, text)))
    return;
  acp->failed = acp->denied = false;
  if (id.n == 0 && acp->ids && !d->text_of_all) {
    stream_tell(d, NEWS_TEXT, text, NULL);
    return;
  }
  if (id.n > 0 && !str_eq(id, buf_view(&d->last_id))) {
    stream_end_message(d, (struct str){0});
    buf_set(&d->last_id, id);
    buf_clear(&d->last);
    if (d->all.n > 0)
      buf_puts(&d->all, "\n\n");
    acp->ids = true;
  }
  stream_tell_piece(d, text);
}

/* --- tools --- */

/* Returns what a tool is called in the log: by the client's own name, else by the protocol's word
 * for its kind, so that what does the same is counted together: titles are sentences. */
static struct str tool_name(const json_t *tool) {
  struct str name =
      json_view_at(json_object_get(json_object_get(tool, "_meta"), "claudeCode"), "toolName");
  struct str kind = json_view_at(tool, "kind"), title = json_view_at(tool, "title");
  if (name.n == 0)
    name = json_view_at(tool, "name");
  bool is_word = title.n > 0 && memchr(title.p, ' ', title.n) == NULL;
  if (name.n == 0 && is_word && (kind.n == 0 || str_eq_c(kind, "other")))
    return title;
  return name.n > 0 ? name : first_of(tool, "name", "kind", "title");
}

/* Returns the input of a tool; some agents tell it as a text of JSON. A new reference, or NULL. */
static json_t *tool_input(const json_t *tool) {
  const json_t *input = json_object_get(tool, "rawInput");
  struct str text = json_view_at(
      json_object_get(json_array_get(json_object_get(tool, "content"), 0), "content"), "text");
  if (tool_has_argument(input))
    return json_incref((json_t *)input);
  json_t *read = text.n > 0 && text.p[0] == '{' ? json_loadb(text.p, text.n, 0, NULL) : NULL;
  return read != NULL ? read : json_incref((json_t *)input);
}

/* Returns what a tool is used for: its input, else its title, where that is not its name. */
static const json_t *tool_argument(const json_t *known) {
  const json_t *input = json_object_get(known, "rawInput"),
               *title = json_object_get(known, "title");
  bool is_name = str_eq(json_view(title), tool_name(known));
  return tool_has_argument(input) || is_name ? input : title;
}

/* Returns all that is known of a tool: an update or a question tells only what is new. Borrowed. */
static const json_t *tool_known(struct acp *acp, const json_t *update) {
  static const char *const kept[] = {"kind", "name", "title", "_meta", "locations", "rawInput"};
  struct str id = json_view_at(update, "toolCallId");
  if (id.n == 0)
    return update;
  if (acp->tools == NULL)
    acp->tools = json_object();
  json_t *tool = json_object_getn(acp->tools, id.p, id.n);
  if (tool == NULL && json_object_size(acp->tools) == LIMIT_CALL_EVENT_COUNT)
    return update;
  if (tool == NULL) {
    tool = json_object();
    json_object_setn_new(acp->tools, id.p, id.n, tool);
  }
  for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
    json_t *value = json_object_get(update, kept[i]);
    if (value != NULL && !json_is_null(value))
      json_object_set(tool, kept[i], value);
  }
  json_auto_t *input = tool_input(update);
  if (tool_has_argument(input))
    json_object_set(tool, "rawInput", input);
  return tool;
}

static void acp_end_tool(struct acp *acp, const json_t *update, const json_t *known, bool begins,
                         bool failed) {
  static const char *const names[] = {"rawOutput", "content", NULL};
  bool told = json_is_true(json_object_get(known, "told"));
  struct tool_summary tool = {.name = begins ? (struct str){0} : tool_name(known),
                              .id = json_view_at(update, "toolCallId"),
                              .state = "end",
                              .failed = failed,
                              .input = told ? NULL : tool_argument(known)};
  for (size_t i = 0; names[i] != NULL && tool.output == NULL; i++)
    tool.output = json_object_get(update, names[i]);
  const json_t *raw = json_object_get(update, "rawOutput");
  tool.exit = json_object_get(raw, "exit_code");
  if (tool.exit == NULL)
    tool.exit = json_object_get(raw, "exitCode");
  if (tool.exit == NULL) /* codex-acp's terminals */
    tool.exit = json_object_get(json_object_get(json_object_get(update, "_meta"), "terminal_exit"),
                                "exit_code");
  stream_tool(acp->d, &tool);
}

/* Tells once what a tool is used for: some agents say it at the beginning, others later. */
static void acp_say_tool(struct acp *acp, const json_t *update, bool begins) {
  struct driver *d = acp->d;
  struct str status = json_view_at(update, "status");
  bool failed = str_eq_c(status, "failed");
  const json_t *known = tool_known(acp, update), *input = json_object_get(known, "rawInput");
  /* The value of claude's own tool for structured output. */
  if (d->schema_asked && str_eq_c(tool_name(known), "StructuredOutput") &&
      json_object_size(input) > 0)
    json_keep(&d->structured, input);
  if (begins) {
    acp->denied = false;
    if (!acp->ids) /* what came before is a message of its own */
      stream_end_message(d, (struct str){0});
    stream_tool(d, &(struct tool_summary){.name = tool_name(known),
                                          .id = json_view_at(update, "toolCallId"),
                                          .state = "start",
                                          .failed = -1,
                                          .input = input});
    if (tool_has_argument(input) && known != update)
      json_object_set_new((json_t *)known, "told", json_true());
  }
  if (failed || str_eq_c(status, "completed"))
    acp_end_tool(acp, update, known, begins, failed);
}

static void acp_update(struct acp *acp, const json_t *params) {
  const json_t *update = json_object_get(params, "update");
  struct str session = json_view_at(params, "sessionId"),
             what = json_view_at(update, "sessionUpdate");
  bool other = session.n > 0 && acp->session[0] != '\0' && !str_eq_c(session, acp->session);
  if (acp->replayed || other || acp->d->end != STREAM_END_NONE)
    return;
  if (str_eq_c(what, "agent_message_chunk")) {
    acp_say_piece(acp, update);
  } else if (str_eq_c(what, "agent_thought_chunk")) {
    stream_tell_thinking(acp->d, json_view_at(json_object_get(update, "content"), "text"));
  } else if (str_eq_c(what, "usage_update")) {
    acp_note_cost(acp, json_object_get(update, "cost"));
  } else if (str_eq_c(what, "session_info_update")) {
    /* That the client tries again, only codex-acp says: _meta.codex.error. */
    const json_t *error =
        json_object_get(json_object_get(json_object_get(update, "_meta"), "codex"), "error");
    struct str message = json_view_at(error, "message");
    int status = classify_status(json_view_at(error, "additionalDetails"));
    json_t *data = json_object();
    if (status > 0)
      json_object_set_new(data, "status", json_integer(status));
    if (json_is_true(json_object_get(error, "willRetry")))
      stream_retry(acp->d, data, message);
    else
      json_decref(data);
  } else if (str_eq_c(what, "tool_call") || str_eq_c(what, "tool_call_update")) {
    acp_say_tool(acp, update, str_eq_c(what, "tool_call"));
  }
}

/* --- questions --- */

static const struct ask_words tool_kinds[] = {{"read search think", ASK_READ},
                                              {"edit delete move", ASK_EDIT},
                                              {"execute", ASK_EXECUTE},
                                              {"fetch", ASK_FETCH},
                                              {NULL, ASK_OTHER}};

static bool acp_decide(struct acp *acp, const json_t *asked, const char **reason) {
  const json_t *tool = tool_known(acp, asked);
  json_auto_t *paths = json_array();
  for (size_t l = 0; l < 2; l++) { /* the content holds diffs */
    const json_t *list = json_object_get(l == 0 ? tool : asked, l == 0 ? "locations" : "content");
    for (size_t i = 0; i < json_array_size(list); i++) {
      json_t *path = json_object_get(json_array_get(list, i), "path");
      if (json_is_string(path))
        json_array_append(paths, path);
    }
  }
  permission_policy_add_paths(paths, json_object_get(tool, "rawInput"));
  struct str command = json_view_at(json_object_get(tool, "rawInput"), "command");
  if (command.n == 0 && acp_key(acp, "command") != NULL)
    command = json_view_at(tool, "title");
  const struct permission_policy_ask ask = {.kind =
                                                ask_kind_of(tool_kinds, json_view_at(tool, "kind")),
                                            .tool = json_view_at(tool, "name"),
                                            .paths = paths,
                                            .command = command};
  return driver_allows(acp->d->call, &ask, reason);
}

static struct str option_of(const json_t *params, const char *kind) {
  const json_t *options = json_object_get(params, "options");
  for (size_t i = 0; i < json_array_size(options); i++)
    if (str_eq_c(json_view_at(json_array_get(options, i), "kind"), kind))
      return json_view_at(json_array_get(options, i), "optionId");
  return (struct str){0};
}

static void acp_ask_permission(struct acp *acp, const json_t *id, const json_t *params) {
  const json_t *asked = json_object_get(params, "toolCall"), *tool = tool_known(acp, asked);
  struct question question = {.tool = tool_name(tool),
                              .title = first_of(asked, "title", "name", "toolCallId")};
  question.allowed = acp_decide(acp, asked, &question.reason);
  /* Once, not always: only full permission takes "always" where "once" is not offered. */
  struct str option = option_of(params, question.allowed ? "allow_once" : "reject_once");
  if (option.n == 0 && (!question.allowed || acp->d->call->permission == PERMISSION_FULL))
    option = option_of(params, question.allowed ? "allow_always" : "reject_always");
  if (question.allowed && option.n == 0 && !acp->d->questions.recorded) {
    question.allowed = false;
    question.reason = "it cannot be allowed once";
  }
  acp->denied = !question.allowed;
  if (acp->d->questions.recorded) { /* its answer is one of these ids if it means yes */
    static const char *const kinds[] = {"allow_once", "allow_always"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
      struct str yes = option_of(params, kinds[i]);
      if (acp->allowing == NULL)
        acp->allowing = json_object();
      if (yes.n > 0)
        json_object_setn_new(acp->allowing, yes.p, yes.n, json_true());
    }
  }
  question_ask(acp->d, id, &question);
  json_t *outcome = json_pack("{s:s}", "outcome", option.n > 0 ? "selected" : "cancelled");
  if (option.n > 0)
    json_object_set_new(outcome, "optionId", json_text(option));
  (void)rpc_reply(&acp->rpc, id, json_pack("{s:o}", "outcome", outcome));
}

/* --- steps --- */

/* Builds _meta of session/new: the profile's `meta`, and a schema under the name that `schema:
 * NAME` gives. */
static json_t *meta(const struct acp *acp) {
  const char *name = acp_key(acp, "schema");
  const json_t *own = json_object_get(acp->d->profile->acp, "meta");
  json_t *out = own ? json_clone(own) : json_object();
  enum call_purpose purpose = acp->d->call->request->purpose;
  if (purpose == PURPOSE_JUDGE || purpose == PURPOSE_REASK)
    json_object_update_recursive(out, json_object_get(acp->d->profile->acp, "judge_meta"));
  if (name != NULL && acp->d->call->schema != NULL) {
    json_t *with = json_pack("{s:{s:{s:{s:s, s:O}}}}", name, "options", "outputFormat", "type",
                             "json_schema", "schema", acp->d->call->schema);
    json_object_update_recursive(out, with);
    json_decref(with);
  }
  if (json_object_size(out) > 0)
    return out;
  json_decref(out);
  return NULL;
}

static void acp_open_session(struct acp *acp) {
  bool loads = json_is_true(
      json_object_get(json_object_get(acp->initialized, "agentCapabilities"), "loadSession"));
  bool resumes = acp_can(acp, "resume"), forks = acp->d->call->request->forks;
  json_t *params = json_pack("{s:s, s:[]}", "cwd", acp->d->call->cwd, "mcpServers");
  json_t *with = meta(acp);
  if (with != NULL)
    json_object_set_new(params, "_meta", with);
  if (acp->d->call->session[0] == '\0') {
    acp_request(acp, ACP_NEW, params);
  } else if (forks ? acp_can(acp, "fork") : loads || resumes) {
    enum acp_method how = resumes ? ACP_RESUME : ACP_LOAD;
    json_object_set_new(params, "sessionId", json_string(acp->d->call->session));
    acp->replayed = !forks && !resumes; /* a load tells the whole history again */
    acp_request(acp, forks ? ACP_FORK : how, params);
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
  const char *word = permission_name(profile_told(acp->d->profile, acp->d->call));
  const char *mode =
      json_string_value(json_object_get(json_object_get(acp->d->profile->acp, "modes"), word));
  char text[300];
  if (mode == NULL || (current != NULL && strcmp(current, mode) == 0))
    return true;
  if (!offers(json_object_get(modes, "availableModes"), "id", mode)) {
    print_into(text, sizeof text, "the agent has no mode %.100s, which %s work needs", mode, word);
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
  JSON_EACH(options, i, option) {
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
  struct str wanted = acp->d->call->request->model;
  if (wanted.n == 0 || says_model(acp->d->profile))
    return true;
  print_into(model, sizeof model, STR_FMT, STR_ARG(wanted));
  if (option != NULL && offers(json_object_get(option, "options"), "value", model)) {
    acp_request(acp, ACP_SET_OPTION,
                json_pack("{s:s, s:O, s:s}", "sessionId", acp->session, "configId",
                          json_object_get(option, "id"), "value", model));
  } else if (offers(models, "modelId", model)) {
    acp_request(acp, ACP_SET_MODEL,
                json_pack("{s:s, s:s}", "sessionId", acp->session, "modelId", model));
  } else {
    print_into(text, sizeof text, "the agent does not offer the model %.200s", model);
    acp_fail(acp, CLASS_NOT_FOUND, text);
    return false;
  }
  return true;
}

static void acp_prompt(struct acp *acp, struct str text) {
  acp_request(acp, ACP_PROMPT,
              json_pack("{s:s, s:[{s:s, s:o}]}", "sessionId", acp->session, "prompt", "type",
                        "text", "text", json_text(text)));
}

/* Sends the prompt once everything before it has been requested and answered. */
static void acp_go_on(struct acp *acp) {
  if (acp->rpc.open_count == 0 && acp->session[0] != '\0' && acp->d->end == STREAM_END_NONE &&
      !acp->prompting) {
    acp->prompting = true;
    acp_prompt(acp, acp->d->call->prompt);
  }
}

/* --- answers --- */

static void on_initialized(struct acp *acp, const json_t *result) {
  const json_t *version = json_object_get(result, "protocolVersion");
  char text[160];
  json_keep(&acp->initialized, result);
  if (json_is_integer(version) && json_integer_value(version) == 1) {
    acp_open_session(acp);
    return;
  }
  print_into(text, sizeof text, "the agent speaks version %lld of the Agent Client Protocol, not 1",
             (long long)json_integer_value(version));
  acp_fail(acp, CLASS_PROTOCOL, text);
}

static void on_opened(struct acp *acp, const json_t *result) {
  const json_t *id = json_object_get(result, "sessionId");
  struct str session = str_from(acp->session[0] ? acp->session : acp->d->call->session);
  if (json_is_string(id))
    session = json_view(id);
  acp->replayed = false;
  if (session.n == 0 || session.n >= sizeof acp->session) {
    acp_fail(acp, CLASS_PROTOCOL, "the agent did not name a conversation");
    return;
  }
  print_into(acp->session, sizeof acp->session, STR_FMT, STR_ARG(session));
  json_keep(&acp->opened, result);
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
  buf_auto_t text = {0};
  buf_printf(&text, "That was not allowed, and was not done: " STR_FMT ". Go on without it.",
             STR_ARG(buf_view(&d->denied)));
  json_t *note = json_pack("{s:o}", "text", json_text(buf_view(&text)));
  json_keep(&acp->used, usage);
  stream_end_message(d, (struct str){0});
  stream_tell(d, NEWS_NOTE, (struct str){0}, note);
  acp->gone_on++;
  acp->denied = acp->failed = d->trouble.there = false;
  acp_prompt(acp, buf_view(&text));
  return true;
}

static void on_stopped(struct acp *acp, const json_t *result) {
  const char *reason = json_string_value(json_object_get(result, "stopReason"));
  json_t *usage = acp_usage(json_object_get(result, "usage"));
  if (usage == NULL)
    usage = acp_usage(
        json_object_get(json_object_get(json_object_get(result, "_meta"), "quota"), "token_count"));
  if (usage == NULL)
    usage = json_incref(acp->own_usage);
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
  if (usage != NULL || acp->cost != NULL) {
    json_t *turn = usage != NULL ? usage : json_object();
    if (acp->cost != NULL)
      json_object_set(turn, "cost_usd", acp->cost);
    usage = stream_usage_turn(acp->d, json_object(), turn);
    if (told != NULL)
      json_object_set_new(usage, "told", json_string(told));
    stream_usage(acp->d, usage);
  }
  stream_end_message(acp->d, (struct str){0});
  char message[80];
  snprintf(message, sizeof message, "the agent stopped: %.48s", reason ? reason : "");
  enum error_class class = reply_end_class(str_from(reason));
  if (reason != NULL && strcmp(reason, "cancelled") == 0)
    class = CLASS_CANCELLED;
  if (reason == NULL)
    acp_fail(acp, CLASS_PROTOCOL, "the agent does not say why it stopped");
  else if (class != CLASS_NONE)
    acp_fail(acp, class, message);
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
  buf_str(&message, json_view(text));
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
      stream_kind(d, json_view(kind));
  }
  enum error_class said = classify_of_words(buf_view(&message));
  bool is_status = code >= 400 && code < 600;
  if (code == 500 && said != CLASS_NONE) /* agents that know no better report this for everything */
    is_status = false;
  stream_trouble(d, is_status ? (int)code : 0, buf_view(&message));
  if (code == ACP_AUTH_REQUIRED && (said == CLASS_NONE || said == CLASS_AUTH))
    d->trouble.class = CLASS_AUTH;
  else if (code == ACP_NOT_FOUND ||
           ((method == ACP_LOAD || method == ACP_RESUME || method == ACP_FORK) &&
            said == CLASS_NONE))
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
    bool opening = method >= ACP_NEW && method <= ACP_FORK;
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
  case ACP_FORK:
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
  case ACP_CLOSE:
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
  acp->rpc = (struct rpc){.host = &d->host, .methods = methods, .versioned = true};
  acp_request(acp, ACP_INITIALIZE,
              json_pack("{s:i, s:{s:{s:b, s:b}, s:b}, s:{s:s, s:s}}", "protocolVersion", 1,
                        "clientCapabilities", "fs", "readTextFile", 0, "writeTextFile", 0,
                        "terminal", 0, "clientInfo", "name", "segue", "version", SEGUE_VERSION));
  return d;
}

static void acp_sent(struct driver *d, struct str line) {
  struct acp *acp = acp_of(d);
  d->questions.recorded = true;
  json_auto_t *value = rpc_sent(&acp->rpc, line);
  const char *method = json_string_value(json_object_get(value, "method"));
  const json_t *params = json_object_get(value, "params");
  const char *session = json_string_value(json_object_get(params, "sessionId"));
  if (method == NULL) {
    const char *chosen = json_string_value(
        json_object_get(json_object_get(json_object_get(value, "result"), "outcome"), "optionId"));
    question_answered(d, json_object_get(value, "id"),
                      chosen != NULL && json_object_get(acp->allowing, chosen) != NULL);
  } else if (strcmp(method, methods[ACP_LOAD]) == 0)
    acp->replayed = true;
  else if (strcmp(method, methods[ACP_PROMPT]) == 0)
    acp->prompting = true, acp->replayed = false;
  if (session != NULL) { /* the recording may have cut the answer that named it */
    print_into(acp->session, sizeof acp->session, "%s", session);
    stream_session(d, str_from(acp->session));
  }
  json_t *asked = json_object_get(json_object_get(params, "_meta"), "claudeCode");
  if (json_object_get(json_object_get(asked, "options"), "outputFormat") != NULL)
    d->schema_asked = true;
}

static bool acp_interrupt(struct driver *d) {
  struct acp *acp = acp_of(d);
  acp->interrupted = true;
  return acp->prompting &&
         rpc_notify(&acp->rpc, "session/cancel", json_pack("{s:s}", "sessionId", acp->session));
}

static void acp_close(struct driver *d) {
  struct acp *acp = acp_of(d);
  json_decref(acp->initialized);
  json_decref(acp->opened);
  json_decref(acp->own_usage);
  json_decref(acp->cost);
  json_decref(acp->tools);
  json_decref(acp->used);
  json_decref(acp->allowing);
  stream_close(d);
}

const struct driver_ops driver_acp = {.name = "acp",
                                      .transport = TRANSPORT_ACP,
                                      .keeps_stdin = true,
                                      .open = acp_open,
                                      .output = stream_output,
                                      .sent = acp_sent,
                                      .interrupt = acp_interrupt,
                                      .end = stream_end,
                                      .close = acp_close};
