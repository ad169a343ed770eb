/* Reads what an ACP agent tells and asks while it works. */
#include "provider/agent/acp_internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"
#include "provider/agent/evidence.h"
#include "provider/agent/policy.h"

#include <string.h>

static struct str acp_text_of(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  return (struct str){json_string_value(value), json_string_length(value)};
}

static struct str first_of(const json_t *object, const char *a, const char *b, const char *c) {
  struct str text = acp_text_of(object, a);
  if (text.n == 0)
    text = acp_text_of(object, b);
  return text.n == 0 ? acp_text_of(object, c) : text;
}

/* --- tokens --- */

static bool acp_number(const json_t *object, const char *a, const char *b, json_int_t *out) {
  const json_t *value = json_object_get(object, a);
  if (!json_is_integer(value))
    value = json_object_get(object, b);
  *out = json_is_integer(value) ? json_integer_value(value) : 0;
  return json_is_integer(value) && *out >= 0 && *out < 1000000000000;
}

json_t *acp_usage(const json_t *usage) {
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
  return out;
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
      stream_put_text(data, "text", str_trim(text));
      stream_tell(d, NEWS_NOTE, (struct str){0}, data);
      break;
    case NOTICE_ERROR:
      json_decref(data);
      stream_trouble(d, evidence_status(text), str_trim(text));
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
  struct str id = acp_text_of(update, "messageId");
  struct str text = acp_text_of(json_object_get(update, "content"), "text");
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
    buf_clear(&d->last_id);
    buf_str(&d->last_id, id);
    buf_clear(&d->last);
    if (d->all.n > 0)
      buf_puts(&d->all, "\n\n");
    acp->ids = true;
  }
  stream_tell_piece(d, text);
}

/* --- tools --- */

static struct str tool_name(const json_t *tool) {
  struct str name =
      acp_text_of(json_object_get(json_object_get(tool, "_meta"), "claudeCode"), "toolName");
  return name.n > 0 ? name : first_of(tool, "name", "title", "kind");
}

/* Takes the value of claude's own tool for structured output. */
static void take_structured(struct driver *d, const json_t *update) {
  const json_t *input = json_object_get(update, "rawInput");
  if (!d->schema_asked || !str_eq_c(tool_name(update), "StructuredOutput") ||
      json_object_size(input) == 0)
    return;
  json_decref(d->structured);
  d->structured = json_incref((json_t *)input);
}

/* Keeps what a tool is used for. Some agents report it at the beginning, others later; it is
 * reported with the tool's end. */
static void acp_keep_input(struct acp *acp, struct str id, const json_t *input, bool begins) {
  if (id.n == 0 || !tool_has_argument(input))
    return;
  if (acp->inputs == NULL)
    acp->inputs = json_object();
  const json_t *known = json_object_getn(acp->inputs, id.p, id.n);
  if (!json_is_true(known) && json_object_size(acp->inputs) < LIMIT_CALL_EVENT_COUNT)
    json_object_setn_new(acp->inputs, id.p, id.n,
                         begins ? json_true() : json_incref((json_t *)input));
}

static void acp_end_tool(struct acp *acp, const json_t *update, struct str id, bool begins,
                         bool failed) {
  static const char *const names[] = {"rawOutput", "content", NULL};
  const json_t *input = json_object_getn(acp->inputs, id.n > 0 ? id.p : "", id.n);
  struct tool_told tool = {.name = begins ? (struct str){0} : tool_name(update),
                           .id = id,
                           .state = "end",
                           .failed = failed,
                           .input = json_is_true(input) ? NULL : input};
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

static void acp_say_tool(struct acp *acp, const json_t *update, bool begins) {
  struct driver *d = acp->d;
  struct str id = acp_text_of(update, "toolCallId"), status = acp_text_of(update, "status");
  bool failed = str_eq_c(status, "failed");
  const json_t *input = json_object_get(update, "rawInput");
  take_structured(d, update);
  if (begins) {
    acp->denied = false;
    if (!acp->ids) /* what came before is a message of its own */
      stream_end_message(d, (struct str){0});
    stream_tool(
        d,
        &(struct tool_told){
            .name = tool_name(update), .id = id, .state = "start", .failed = -1, .input = input});
  }
  acp_keep_input(acp, id, input, begins);
  if (failed || str_eq_c(status, "completed"))
    acp_end_tool(acp, update, id, begins, failed);
}

/* Reports that the client tries again, which only codex-acp says: _meta.codex.error. */
static void acp_say_retry(struct driver *d, const json_t *meta) {
  const json_t *error = json_object_get(json_object_get(meta, "codex"), "error");
  struct str message = acp_text_of(error, "message");
  int status = evidence_status(acp_text_of(error, "additionalDetails"));
  json_t *data = json_object();
  if (status > 0)
    json_object_set_new(data, "status", json_integer(status));
  if (json_is_true(json_object_get(error, "willRetry")))
    stream_retry(d, data, message);
  else
    json_decref(data);
}

void acp_update(struct acp *acp, const json_t *params) {
  const json_t *update = json_object_get(params, "update");
  struct str session = acp_text_of(params, "sessionId"),
             what = acp_text_of(update, "sessionUpdate");
  bool other = session.n > 0 && acp->session[0] != '\0' && !str_eq_c(session, acp->session);
  if (acp->replayed || other || acp->d->end != STREAM_END_NONE)
    return;
  if (str_eq_c(what, "agent_message_chunk")) {
    acp_say_piece(acp, update);
  } else if (str_eq_c(what, "agent_thought_chunk")) {
    stream_tell_thinking(acp->d, acp_text_of(json_object_get(update, "content"), "text"));
  } else if (str_eq_c(what, "session_info_update")) {
    acp_say_retry(acp->d, json_object_get(update, "_meta"));
  } else if (str_eq_c(what, "tool_call") || str_eq_c(what, "tool_call_update")) {
    acp_say_tool(acp, update, str_eq_c(what, "tool_call"));
  }
}

/* --- questions --- */

static enum ask_kind ask_kind_of(struct str kind) {
  static const struct {
    const char *name;
    enum ask_kind kind;
  } kinds[] = {{"read", ASK_READ},       {"search", ASK_READ}, {"think", ASK_READ},
               {"edit", ASK_EDIT},       {"delete", ASK_EDIT}, {"move", ASK_EDIT},
               {"execute", ASK_EXECUTE}, {"fetch", ASK_FETCH}};
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    if (str_eq_c(kind, kinds[i].name))
      return kinds[i].kind;
  return ASK_OTHER;
}

static json_t *acp_paths_of(const json_t *tool) {
  static const char *const lists[] = {"locations", "content"}; /* the content holds diffs */
  json_t *paths = json_array();
  for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
    const json_t *list = json_object_get(tool, lists[l]);
    for (size_t i = 0; i < json_array_size(list); i++) {
      json_t *path = json_object_get(json_array_get(list, i), "path");
      if (json_is_string(path))
        json_array_append(paths, path);
    }
  }
  policy_add_paths(paths, json_object_get(tool, "rawInput"));
  return paths;
}

/* Returns the command line that the tool would run, empty if it does not say. */
static struct str acp_command(const struct acp *acp, const json_t *tool) {
  struct str command = acp_text_of(json_object_get(tool, "rawInput"), "command");
  bool titled = json_object_get(acp->d->profile->acp, "command") != NULL;
  return command.n == 0 && titled ? acp_text_of(tool, "title") : command;
}

static bool acp_decide(const struct acp *acp, const json_t *params, const char **reason) {
  const json_t *tool = json_object_get(params, "toolCall");
  json_t *paths = acp_paths_of(tool);
  const struct policy policy = driver_policy(acp->call);
  const struct policy_ask ask = {.kind = ask_kind_of(acp_text_of(tool, "kind")),
                                 .tool = acp_text_of(tool, "name"),
                                 .paths = paths,
                                 .command = acp_command(acp, tool)};
  bool allowed = policy_allows(&ask, &policy, reason);
  json_decref(paths);
  return allowed;
}

static struct str option_of(const json_t *params, const char *kind) {
  const json_t *options = json_object_get(params, "options");
  for (size_t i = 0; i < json_array_size(options); i++)
    if (str_eq_c(acp_text_of(json_array_get(options, i), "kind"), kind))
      return acp_text_of(json_array_get(options, i), "optionId");
  return (struct str){0};
}

/* Returns the option to choose: once, not always. Only full permission takes "always" where "once"
 * is not offered. */
static struct str acp_choose(const struct acp *acp, const json_t *params, bool allowed) {
  struct str option = option_of(params, allowed ? "allow_once" : "reject_once");
  if (option.n == 0 && (!allowed || acp->call->permission == PERMISSION_FULL))
    option = option_of(params, allowed ? "allow_always" : "reject_always");
  return option;
}

/* Notes the ids that mean yes, for the answer in a recording. */
static void note_allowing(struct acp *acp, const json_t *params) {
  static const char *const kinds[] = {"allow_once", "allow_always"};
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
    struct str id = option_of(params, kinds[i]);
    if (acp->allowing == NULL)
      acp->allowing = json_object();
    if (id.n > 0)
      json_object_setn_new(acp->allowing, id.p, id.n, json_true());
  }
}

void acp_ask_permission(struct acp *acp, const json_t *id, const json_t *params) {
  const json_t *tool = json_object_get(params, "toolCall");
  struct question question = {.tool = first_of(tool, "name", "kind", "title"),
                              .title = first_of(tool, "title", "name", "toolCallId")};
  question.allowed = acp_decide(acp, params, &question.reason);
  struct str option = acp_choose(acp, params, question.allowed);
  if (question.allowed && option.n == 0 && !acp->questions.recorded) {
    question.allowed = false;
    question.reason = "it cannot be allowed once";
  }
  acp->denied = !question.allowed;
  if (acp->questions.recorded)
    note_allowing(acp, params);
  question_ask(&acp->questions, id, &question);
  json_t *outcome = json_pack("{s:s}", "outcome", option.n > 0 ? "selected" : "cancelled");
  if (option.n > 0)
    json_object_set_new(outcome, "optionId", json_text(option));
  (void)rpc_reply(&acp->rpc, id, json_pack("{s:o}", "outcome", outcome));
}

void acp_recorded_answer(struct acp *acp, const json_t *id, const json_t *result) {
  const char *chosen =
      json_string_value(json_object_get(json_object_get(result, "outcome"), "optionId"));
  question_answered(&acp->questions, id,
                    chosen != NULL && json_object_get(acp->allowing, chosen) != NULL);
}
