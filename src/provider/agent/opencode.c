/* Takes one call through a live `opencode serve`, and reads what it says, live or in a recording:
 * its events, and its answers to POST /session/ID/message.
 *
 *   stdout names the port -> GET /event, and once that flows -> POST /session, or GET /session/ID
 *   of the known one -> POST /session/ID/message, whose reply is the answer -> the last events ->
 *   the server is ended
 *
 * Each value is one event ({"type", "properties"}), one answer ({"info", "parts"}) or another
 * body. A recording may hold several prompts: the last one is what the end is about.
 *
 * The server tries again by itself and without end after rate limits and broken connections. Once
 * is enough; then the work is aborted, and what it said of the last failure is the error.
 *
 * It asks while it works: may it use a tool (permission.asked), and what should it do
 * (question.asked)? The first is answered by policy; the second is turned down, so that the agent
 * decides for itself. An answer counts once, never for good. */
#include "provider/agent/opencode.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "provider/agent/classify.h"
#include "provider/agent/permission_policy.h"
#include "provider/agent/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call with a live server has these steps. Each waits for one thing, most for a limited time. */
enum opencode_step {
  OPENCODE_STARTING,   /* for the line that says where it listens */
  OPENCODE_CONNECTING, /* for its stream of events */
  OPENCODE_OPENING,    /* for the conversation: a new one, or the known one if it still exists */
  OPENCODE_WORKING,    /* for the answer to the prompt */
  OPENCODE_ANSWERED,   /* for the events that belong to the answer */
  OPENCODE_STOPPING,   /* for the end of the work that was aborted */
  OPENCODE_LOST,       /* the connection broke: is the program dead, too? */
  OPENCODE_OVER
};

struct opencode {
  char session[128];
  json_t *assistant;  /* ids of the model's messages: the prompt is a message too */
  json_t *parts;      /* what was reported of each part: id -> bytes, or a tool's state */
  json_t *thoughts;   /* ids of reasoning parts, since their pieces do not say so */
  json_t *tokens;     /* usage of the model's messages, by id */
  struct buf talking; /* the message being received */
  bool aborted;       /* a request of ours aborted it */
  bool idle;          /* it says that the conversation is idle */
  /* A live server has these: */
  bool live;
  enum opencode_step step;
  struct buf line;   /* a line of its stdout; or why a connection broke */
  struct buf answer; /* the reply to the prompt, and its status */
  int answer_status;
  unsigned answering; /* questions of which it has not taken our answer yet */
};

static inline struct opencode *opencode_of(const struct driver *d) {
  return d->own;
}

/* --- steps --- */

static void serve_step(struct driver *d, enum opencode_step next, uint64_t limit_ms) {
  opencode_of(d)->step = next;
  d->host.wake(d->host.ctx, limit_ms);
}

static void serve_over(struct driver *d) {
  serve_step(d, OPENCODE_OVER, 0);
  d->host.give_up(d->host.ctx); /* it would serve on for ever */
}

PRINTF_LIKE(3, 4)
static void serve_fail(struct driver *d, enum error_class class, const char *fmt, ...) {
  char text[300];
  va_list ap;
  if (opencode_of(d)->step == OPENCODE_OVER)
    return;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  stream_trouble(d, 0, str_from(text));
  d->trouble.class = class;
  stream_finish(d, STREAM_END_ERROR);
  serve_over(d);
}

/* Returns true if the id may be part of a path. */
static bool opencode_is_id(struct str id) {
  return id.n > 0 && id.n < 128 && str_span(id, "_-") == id.n;
}

static void serve_get(struct driver *d, int id, const char *path) {
  const struct driver_request request = {.id = id, .path = path, .events = id == OPENCODE_EVENTS};
  d->host.request(d->host.ctx, &request);
}

/* Sends a POST; takes the body. */
static void opencode_post(struct driver *d, int id, const char *path, json_t *body) {
  struct opencode *o = opencode_of(d);
  o->answering += id == OPENCODE_REPLY && o->live;
  if (o->answering > LIMIT_SERVER_QUESTION_COUNT)
    serve_fail(d, CLASS_PROTOCOL, "opencode serve asks more than %u questions at once",
               LIMIT_SERVER_QUESTION_COUNT);
  if (o->live && o->step != OPENCODE_OVER) {
    char *text = json_dump_text(body, JSON_COMPACT);
    const struct driver_request request = {.id = id, .path = path, .body = str_from(text)};
    d->host.request(d->host.ctx, &request);
    free(text);
  }
  json_decref(body);
}

/* Looks for "opencode server listening on http://127.0.0.1:4096". No other host is spoken to. */
static void look_for_port(struct driver *d, struct str line) {
  static const char words[] = "listening on http://127.0.0.1:";
  const char *at = line.n > 0 ? memmem(line.p, line.n, words, sizeof words - 1) : NULL;
  long port = 0;
  if (at == NULL || opencode_of(d)->step != OPENCODE_STARTING)
    return;
  for (at += sizeof words - 1; at < line.p + line.n && str_is_digit(*at) && port < 100000; at++)
    port = port * 10 + (*at - '0');
  if (port < 1 || port > 65535) {
    serve_fail(d, CLASS_PROTOCOL, "opencode serve did not name its port");
    return;
  }
  d->host.serves_at(d->host.ctx, (unsigned)port);
  serve_step(d, OPENCODE_CONNECTING, LIMIT_SERVER_REPLY_MS);
  serve_get(d, OPENCODE_EVENTS, "/event");
}

static void serve_open_session(struct driver *d) {
  const struct agent_call *call = d->call;
  struct str known = str_from(call->session);
  char path[160], title[160];
  serve_step(d, OPENCODE_OPENING, LIMIT_SERVER_REPLY_MS);
  if (known.n > 0 && !opencode_is_id(known)) {
    serve_fail(d, CLASS_NOT_FOUND, "\"%.100s\" is not a conversation of opencode", call->session);
  } else if (known.n > 0) {
    print_into(path, sizeof path, "/session/" STR_FMT, STR_ARG(known));
    serve_get(d, OPENCODE_SESSION, path);
  } else { /* with a title: else it would ask the model for one */
    print_into(title, sizeof title, "segue %.80s %ld.%ld",
               call->request->session ? call->request->session : "", call->request->turn,
               call->request->call);
    opencode_post(d, OPENCODE_SESSION, "/session", json_pack("{s:s}", "title", title));
  }
}

static void serve_prompt(struct driver *d) {
  struct opencode *o = opencode_of(d);
  const struct agent_call *call = d->call;
  struct str model = call->request->model, name = model, vendor = str_cut(&name, '/');
  json_t *effort = json_object_get(call->request->options, "effort");
  char path[160];
  if (model.n > 0 && (vendor.n == 0 || name.n == 0)) {
    serve_fail(d, CLASS_BAD_REQUEST, "model \"%.*s\": opencode takes PROVIDER/MODEL",
               model.n < 150 ? (int)model.n : 150, model.p);
    return;
  }
  json_t *body =
      json_pack("{s:[{s:s, s:o}]}", "parts", "type", "text", "text", json_text(call->prompt));
  if (model.n > 0)
    json_object_set_new(
        body, "model",
        json_pack("{s:o, s:o}", "providerID", json_text(vendor), "modelID", json_text(name)));
  if (json_is_string(effort))
    json_object_set(body, "variant", effort);
  if (call->schema != NULL)
    json_object_set_new(body, "format",
                        json_pack("{s:s, s:O}", "type", "json_schema", "schema", call->schema));
  o->idle = false;
  serve_step(d, OPENCODE_WORKING, 0);
  print_into(path, sizeof path, "/session/%s/message", o->session);
  opencode_post(d, OPENCODE_PROMPT, path, body);
}

/* Aborts the work; what is already known to be wrong becomes the end. */
static void serve_stop(struct driver *d) {
  const struct opencode *o = opencode_of(d);
  char path[160];
  serve_step(d, OPENCODE_STOPPING, LIMIT_SERVER_TAIL_MS);
  print_into(path, sizeof path, "/session/%s/abort", o->session);
  opencode_post(d, OPENCODE_ABORT, path, json_object());
}

/* Notes that it retries by itself: how many times so far, and when next. */
static void opencode_on_retry(struct driver *d, json_int_t attempt, int64_t delay_ms,
                              struct str reason) {
  const struct opencode *o = opencode_of(d);
  json_int_t tries = attempt > d->retry_count ? attempt : d->retry_count;
  if (!o->live || o->step != OPENCODE_WORKING ||
      (tries <= LIMIT_CLIENT_RETRY_COUNT && delay_ms <= LIMIT_CLIENT_RETRY_WAIT_MS))
    return;
  stream_trouble(d, 0, reason);
  d->trouble.class = CLASS_NONE; /* by its words; what it tries again is transient at least */
  if (classify_of_words(reason) == CLASS_NONE && classify_status(reason) == 0)
    d->trouble.class = CLASS_OVERLOADED;
  if (delay_ms > LIMIT_CLIENT_RETRY_WAIT_MS)
    d->trouble.retry_after_ms = delay_ms;
  stream_finish(d, STREAM_END_ERROR);
  serve_stop(d);
}

/* --- questions --- */

/* Agents below a task ask for themselves. */
static const struct ask_words permissions[] = {
    {"read glob grep list lsp skill todowrite todoread task", ASK_READ},
    {"edit", ASK_EDIT},
    {"bash", ASK_EXECUTE},
    {"webfetch websearch codesearch", ASK_FETCH},
    {NULL, ASK_OTHER}};

static void add_text(json_t *list, const json_t *text) {
  if (json_is_string(text))
    json_array_append(list, (json_t *)text);
}

/* Returns the files that an edit is about: `files` of a patch, each with its new name where it gets
 * one, else `filepath`. What stands in `patterns` is relative to the repository, not to the working
 * directory. */
static json_t *opencode_paths_of(const json_t *asked, enum ask_kind kind) {
  const json_t *metadata = json_object_get(asked, "metadata");
  const json_t *files = json_object_get(metadata, "files");
  json_t *paths = json_array();
  if (kind != ASK_EDIT)
    return paths;
  if (!json_is_array(files))
    add_text(paths, json_object_get(metadata, "filepath"));
  for (size_t i = 0; i < json_array_size(files); i++) {
    const json_t *file = json_array_get(files, i);
    if (!json_is_string(json_object_get(file, "filePath"))) {
      json_array_clear(paths); /* one is not known, so none of them is */
      break;
    }
    add_text(paths, json_object_get(file, "filePath"));
    add_text(paths, json_object_get(file, "movePath"));
  }
  return paths;
}

/* Tells in a line what the agent wants to do: the command, the file, the address. */
static struct str opencode_title_of(const json_t *asked) {
  static const char *const names[] = {"command", "filepath", "url", "query", "pattern", "tool"};
  const json_t *metadata = json_object_get(asked, "metadata");
  const json_t *pattern = json_array_get(json_object_get(asked, "patterns"), 0);
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (json_view_at(metadata, names[i]).n > 0)
      return json_view_at(metadata, names[i]);
  return json_view(pattern);
}

static void opencode_on_permission(struct driver *d, const json_t *asked) {
  struct str id = json_view_at(asked, "id");
  char path[200];
  if (!opencode_is_id(id))
    return;
  struct str permission = json_view_at(asked, "permission");
  struct question question = {.tool = permission, .title = opencode_title_of(asked)};
  enum ask_kind kind = ask_kind_of(permissions, permission);
  json_t *paths = opencode_paths_of(asked, kind);
  const struct permission_policy_ask ask = {
      .kind = kind,
      .tool = permission,
      .paths = paths,
      .command = json_view_at(json_object_get(asked, "metadata"), "command")};
  question.allowed = driver_allows(d->call, &ask, &question.reason);
  if (!question.allowed && str_eq_c(permission, "external_directory"))
    question.reason = "it is outside the working directory";
  json_decref(paths);
  question_ask(d, json_object_get(asked, "id"), &question);
  print_into(path, sizeof path, "/permission/" STR_FMT "/reply", STR_ARG(id));
  json_t *reply = json_pack("{s:s}", "reply", question.allowed ? "once" : "reject");
  if (!question.allowed)
    json_object_set_new(reply, "message",
                        json_string(question.reason ? question.reason : "denied"));
  opencode_post(d, OPENCODE_REPLY, path, reply);
}

static void opencode_on_question(struct driver *d, const json_t *asked) {
  struct str id = json_view_at(asked, "id");
  const json_t *first = json_array_get(json_object_get(asked, "questions"), 0);
  char path[200];
  if (!opencode_is_id(id))
    return;
  const struct question question = {.tool = STR("question"),
                                    .title = json_view_at(first, "question"),
                                    .reason = "nobody is there to answer"};
  question_ask(d, json_object_get(asked, "id"), &question);
  print_into(path, sizeof path, "/question/" STR_FMT "/reject", STR_ARG(id));
  opencode_post(d, OPENCODE_REPLY, path, json_object());
}

/* Takes the answer of a recorded client: "/permission/ID/reply {...}". */
static void opencode_replied(struct driver *d, struct str line) {
  struct str path = str_cut(&line, ' ');
  if (!str_drop(&path, "/permission/") || line.p == NULL)
    return;
  struct str id = str_cut(&path, '/');
  json_auto_t *body = json_loadb(line.p, line.n, 0, NULL);
  struct str reply = json_view_at(body, "reply");
  if (path.p != NULL && reply.n > 0) {
    json_t *name = json_text(id);
    question_answered(d, name, !str_eq_c(reply, "reject"));
    json_decref(name);
  }
}

/* --- errors --- */

static void opencode_note_error(struct driver *d, const json_t *error) {
  const json_t *data = json_object_get(error, "data");
  json_int_t status = json_integer_value(json_object_get(data, "statusCode"));
  struct str message = json_view_at(data, "message"), name = json_view_at(error, "name");
  stream_kind(d, name);
  stream_trouble(d, status >= 400 && status < 600 ? (int)status : 0,
                 message.n > 0 ? message : name);
}

/* --- tokens: those of all messages of the call are added up --- */

static const char *const counts[] = {"input", "output", "cached", "reasoning", "cache_write"};

static json_int_t opencode_count_of(const json_t *object, const char *name) {
  json_int_t count = json_integer_value(json_object_get(object, name));
  return count > 0 && count < 1000000000000 ? count : 0;
}

static void note_usage(struct opencode *o, const json_t *info) {
  const json_t *tokens = json_object_get(info, "tokens"), *cache = json_object_get(tokens, "cache");
  const char *id = json_string_value(json_object_get(info, "id"));
  double cost = json_number_value(json_object_get(info, "cost"));
  if (!json_is_integer(json_object_get(tokens, "input")))
    return;
  json_t *usage = json_pack(
      "{s:I, s:I, s:I, s:I, s:I}", counts[0],
      opencode_count_of(tokens, "input") + opencode_count_of(cache, "read") +
          opencode_count_of(cache, "write"),
      counts[1], opencode_count_of(tokens, "output") + opencode_count_of(tokens, "reasoning"),
      counts[2], opencode_count_of(cache, "read"), counts[3],
      opencode_count_of(tokens, "reasoning"), counts[4], opencode_count_of(cache, "write"));
  if (cost > 0 && cost < 1e9) /* 0: it knows no price */
    json_object_set_new(usage, "cost_usd", json_real(cost));
  json_object_set_new(o->tokens, id ? id : "", usage);
}

static void opencode_say_usage(struct driver *d) {
  json_t *sum = json_object(), *usage;
  const char *id;
  double cost = 0;
  bool priced = true;
  json_object_foreach(opencode_of(d)->tokens, id, usage) {
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
      json_object_set_new(sum, counts[i],
                          json_integer(json_integer_value(json_object_get(sum, counts[i])) +
                                       json_integer_value(json_object_get(usage, counts[i]))));
    cost += json_number_value(json_object_get(usage, "cost_usd"));
    priced = priced && (json_object_get(usage, "cost_usd") != NULL ||
                        json_integer_value(json_object_get(usage, "output")) == 0);
  }
  for (size_t i = 3; i < ARRAY_LEN(counts); i++)
    if (json_integer_value(json_object_get(sum, counts[i])) == 0)
      json_object_del(sum, counts[i]);
  if (priced && cost > 0)
    json_object_set_new(sum, "cost_usd", json_real(cost));
  stream_usage(d, sum);
}

/* --- events --- */

static void opencode_say_tool(struct driver *d, const json_t *part) {
  struct opencode *o = opencode_of(d);
  struct str name = json_view_at(part, "tool"), id = json_view_at(part, "callID");
  const char *state = json_string_value(json_object_get(json_object_get(part, "state"), "status"));
  const char *key = json_string_value(json_object_get(part, "id"));
  bool failed = state != NULL && strcmp(state, "error") == 0;
  bool ended = failed || (state != NULL && strcmp(state, "completed") == 0);
  const json_t *known = key ? json_object_get(o->parts, key) : NULL;
  if (key == NULL || json_is_true(known))
    return;
  const json_t *now = json_object_get(part, "state"), *input = json_object_get(now, "input");
  bool told = json_is_false(known) || (known == NULL && tool_has_argument(input));
  if (known == NULL)
    stream_tool(d, &(struct tool_summary){
                       .name = name, .id = id, .state = "start", .failed = -1, .input = input});
  const struct tool_summary end = {.name = name,
                                   .id = id,
                                   .state = "end",
                                   .failed = failed,
                                   .input = told ? NULL : input,
                                   .output = json_object_get(now, failed ? "error" : "output"),
                                   .exit =
                                       json_object_get(json_object_get(now, "metadata"), "exit")};
  if (ended)
    stream_tool(d, &end);
  json_t *kept = told ? json_false() : json_null();
  json_object_set_new(o->parts, key, ended ? json_true() : kept);
}

/* Notes that a piece of this message comes: the message before it is complete. */
static void talk(struct driver *d, struct str message) {
  struct opencode *o = opencode_of(d);
  if (message.n == 0 || str_eq(message, buf_view(&o->talking)))
    return;
  if (d->told.n > 0)
    stream_end_message(d, buf_view(&o->talking));
  buf_set(&o->talking, message);
}

static bool is_assistants(const struct opencode *o, struct str message) {
  return message.n > 0 && json_object_getn(o->assistant, message.p, message.n) != NULL;
}

static void opencode_say_piece(struct driver *d, const char *part, struct str message,
                               struct str piece) {
  talk(d, message);
  if (json_object_get(opencode_of(d)->thoughts, part) != NULL)
    stream_tell_thinking(d, piece);
  else
    stream_tell_piece(d, piece);
}

/* Tells a part as far as it has come. `parts` holds what was already told of it. */
static void say_part(struct driver *d, const json_t *part) {
  struct opencode *o = opencode_of(d);
  struct str type = json_view_at(part, "type"), text = json_view_at(part, "text");
  struct str message = json_view_at(part, "messageID");
  const char *key = json_string_value(json_object_get(part, "id"));
  if (!is_assistants(o, message) || key == NULL)
    return;
  if (str_eq_c(type, "tool")) {
    opencode_say_tool(d, part);
    return;
  }
  if (str_eq_c(type, "reasoning"))
    json_object_set_new(o->thoughts, key, json_true());
  size_t told = (size_t)json_integer_value(json_object_get(o->parts, key));
  if (text.n <= told || (!str_eq_c(type, "text") && !str_eq_c(type, "reasoning")))
    return;
  struct str rest = {text.p + told, text.n - told};
  opencode_say_piece(d, key, message, rest);
  json_object_set_new(o->parts, key, json_integer((json_int_t)text.n));
}

static void say_delta(struct driver *d, const json_t *properties) {
  struct opencode *o = opencode_of(d);
  struct str delta = json_view_at(properties, "delta");
  struct str message = json_view_at(properties, "messageID");
  const char *key = json_string_value(json_object_get(properties, "partID"));
  if (delta.n == 0 || key == NULL || !is_assistants(o, message) ||
      !str_eq_c(json_view_at(properties, "field"), "text"))
    return;
  json_int_t told = json_integer_value(json_object_get(o->parts, key));
  opencode_say_piece(d, key, message, delta);
  json_object_set_new(o->parts, key, json_integer(told + (json_int_t)delta.n));
}

static bool is_of_call(const struct opencode *o, struct str session) {
  return session.n == 0 || o->session[0] == '\0' || str_eq_c(session, o->session);
}

static void opencode_on_idle(struct driver *d) {
  struct opencode *o = opencode_of(d);
  o->idle = true;
  if (o->live && o->step == OPENCODE_ANSWERED)
    d->host.wake(d->host.ctx, 1); /* from the loop: this event is still being read */
}

static void say_status(struct driver *d, const json_t *properties) {
  struct opencode *o = opencode_of(d);
  const json_t *status = json_object_get(properties, "status");
  struct str type = json_view_at(status, "type");
  bool ours = is_of_call(o, json_view_at(properties, "sessionID"));
  if (str_eq_c(type, "retry")) { /* also for agents below it: they hold it up */
    json_t *attempt = json_object_get(status, "attempt"), *data = json_object();
    struct str reason = json_view_at(status, "message");
    int64_t delay = 0, now_ms = clock_real_ms(),
            at = json_integer_value(json_object_get(status, "next"));
    if (o->live && at > now_ms && at < INT64_MAX / 2)
      delay = at - now_ms;
    if (json_is_integer(attempt))
      json_object_set(data, "attempt", attempt);
    if (delay > 0)
      json_object_set_new(data, "delay_ms", json_integer(delay));
    if (classify_status(reason) > 0)
      json_object_set_new(data, "status", json_integer(classify_status(reason)));
    stream_retry(d, data, reason);
    opencode_on_retry(d, json_integer_value(attempt), delay, reason);
  } else if (ours && str_eq_c(type, "busy"))
    o->idle = false;
  else if (ours && str_eq_c(type, "idle"))
    opencode_on_idle(d);
}

static void opencode_on_event(struct driver *d, struct str type, const json_t *properties) {
  struct opencode *o = opencode_of(d);
  if (str_eq_c(type, "session.status"))
    say_status(d, properties);
  else if (str_eq_c(type, "permission.asked")) /* also from agents below it: they wait */
    opencode_on_permission(d, properties);
  else if (str_eq_c(type, "question.asked"))
    opencode_on_question(d, properties);
  /* There are more messages and parts than any work has. The answer tells their text all the
   * same. */
  else if (str_starts(type, "message.") &&
           json_object_size(o->parts) + json_object_size(o->thoughts) +
                   json_object_size(o->assistant) + json_object_size(o->tokens) >=
               LIMIT_AGENT_PART_COUNT)
    return;
  else if (str_eq_c(type, "message.updated")) {
    const json_t *info = json_object_get(properties, "info");
    const char *id = json_string_value(json_object_get(info, "id"));
    bool model = id != NULL && str_eq_c(json_view_at(info, "role"), "assistant");
    if (model)
      note_usage(o, info); /* agents below it cost, too */
    if (model && is_of_call(o, json_view_at(info, "sessionID")))
      json_object_set_new(o->assistant, id, json_true());
  } else if (!is_of_call(o, json_view_at(properties, "sessionID")))
    return;
  else if (str_eq_c(type, "message.part.updated"))
    say_part(d, json_object_get(properties, "part"));
  else if (str_eq_c(type, "message.part.delta"))
    say_delta(d, properties);
  else if (str_eq_c(type, "session.error"))
    opencode_note_error(d, json_object_get(properties, "error"));
  else if (str_eq_c(type, "session.idle"))
    opencode_on_idle(d);
}

/* --- answers --- */

static void on_message(struct driver *d, const json_t *info, const json_t *parts) {
  struct opencode *o = opencode_of(d);
  const json_t *error = json_object_get(info, "error");
  json_t *structured = json_object_get(info, "structured");
  struct str finish = json_view_at(info, "finish");
  struct buf text = {.max = LIMIT_OUTPUT_BYTES};
  if (o->aborted && finish.n == 0 && !json_is_object(error))
    return; /* what had come until then is no answer */
  for (size_t i = 0; i < json_array_size(parts); i++)
    if (str_eq_c(json_view_at(json_array_get(parts, i), "type"), "text"))
      buf_str(&text, json_view_at(json_array_get(parts, i), "text"));
  talk(d, json_view_at(info, "id"));
  if (text.n > 0)
    stream_tell_rest(d, buf_view(&text));
  buf_deinit(&text);
  stream_end_message(d, (struct str){0});
  note_usage(o, info);
  opencode_say_usage(d);
  if (structured != NULL && !json_is_null(structured))
    json_keep(&d->structured, structured);
  bool cut = str_eq_c(finish, "length");
  if (json_is_object(error)) {
    opencode_note_error(d, error);
  } else if (cut) {
    stream_trouble(d, 0, STR("the answer was cut by the model's limit of tokens"));
    d->trouble.class = CLASS_LENGTH;
  }
  stream_finish(d, json_is_object(error) || cut ? STREAM_END_ERROR : STREAM_END_OK);
}

/* Takes an event ({"type", "properties"}) or an answer ({"info", "parts"}); skips other values. */
static void opencode_value(struct driver *d, const json_t *value) {
  struct str type = json_view_at(value, "type");
  const json_t *properties = json_object_get(value, "properties");
  const json_t *info = json_object_get(value, "info");
  bool over = d->end != STREAM_END_NONE;
  if (over && opencode_of(d)->live) /* a recording may go on with the next prompt */
    return;
  if (properties != NULL && type.n > 0 && !over)
    opencode_on_event(d, type, properties);
  else if (json_is_object(info) && json_is_array(json_object_get(value, "parts")))
    on_message(d, info, json_object_get(value, "parts"));
}

/* Notes the id of the conversation. */
static void opencode_enter(struct driver *d, struct str session) {
  struct opencode *o = opencode_of(d);
  if (session.n >= sizeof o->session)
    return;
  memcpy(o->session, session.p, session.n);
  o->session[session.n] = '\0';
  stream_session(d, session);
}

/* --- replies --- */

static void refused(struct driver *d, int status, struct str body) {
  if (status == 401 || status == 403) {
    serve_fail(d, CLASS_PROTOCOL,
               "opencode serve refuses the password that it was given (status %d)", status);
    return;
  }
  /* A reply with another status than 200 says: {"name", "data": {"message"}}. */
  json_t *value = stream_read_json(body);
  char text[64];
  print_into(text, sizeof text, "opencode serve answers with status %d", status);
  if (!d->trouble.there || d->trouble.message.n == 0) /* an event said it better */
    stream_trouble(d, 0, str_from(text));
  if (json_is_object(value) && d->trouble.kinds.n == 0)
    opencode_note_error(d, value);
  json_decref(value);
  stream_finish(d, STREAM_END_ERROR);
  serve_over(d);
}

/* Takes the answer: the events that belong to it are all there, or do not come. */
static void take_answer(struct driver *d) {
  struct opencode *o = opencode_of(d);
  if (o->answer_status != 200) {
    refused(d, o->answer_status, buf_view(&o->answer));
    return;
  }
  for (size_t i = 0; i < o->answer.n; i++) /* white space, where it is JSON */
    if (o->answer.p[i] == '\n' || o->answer.p[i] == '\r')
      o->answer.p[i] = ' ';
  stream_output(d, 1, buf_view(&o->answer));
  stream_output(d, 1, STR("\n"));
  if (d->end == STREAM_END_NONE)
    serve_fail(d, CLASS_PROTOCOL, "the answer of opencode serve cannot be read");
  else
    serve_over(d);
}

static void serve_on_answer(struct driver *d, const struct driver_reply *reply) {
  struct opencode *o = opencode_of(d);
  if (o->step == OPENCODE_STOPPING) {
    serve_step(d, OPENCODE_STOPPING, 1);
    return;
  }
  buf_set(&o->answer, reply->body);
  o->answer_status = reply->status;
  serve_step(d, OPENCODE_ANSWERED, o->idle ? 1 : LIMIT_SERVER_TAIL_MS);
}

static void on_session(struct driver *d, const struct driver_reply *reply) {
  const char *known = d->call->session;
  if (reply->status == 404 && known[0] != '\0') {
    serve_fail(d, CLASS_NOT_FOUND, "opencode no longer knows the conversation %.100s", known);
    return;
  }
  if (reply->status != 200) {
    refused(d, reply->status, reply->body);
    return;
  }
  json_auto_t *value = stream_read_json(reply->body);
  struct str id = json_view_at(value, "id");
  if (!opencode_is_id(id)) {
    serve_fail(d, CLASS_PROTOCOL, "opencode serve did not name a conversation");
  } else {
    opencode_enter(d, id);
    serve_prompt(d);
  }
}

/* Handles a broken connection. A server that died says more by its exit status, which is about to
 * come. */
static void take_lost_connection(struct driver *d, const struct driver_reply *reply) {
  struct opencode *o = opencode_of(d);
  if (reply->class != CLASS_NETWORK) {
    serve_fail(d, reply->class, "opencode serve: %.200s", reply->message);
    return;
  }
  if (o->step == OPENCODE_LOST)
    return;
  buf_set(&o->line, str_from(reply->message));
  serve_step(d, OPENCODE_LOST, LIMIT_SERVER_LOST_MS);
}

static void opencode_reply(struct driver *d, const struct driver_reply *reply) {
  struct opencode *o = opencode_of(d);
  o->answering -= reply->id == OPENCODE_REPLY && o->answering > 0;
  if (o->step == OPENCODE_OVER || reply->id == OPENCODE_REPLY)
    return;
  if (reply->id == OPENCODE_ABORT || o->step == OPENCODE_STOPPING) {
    if (reply->id == OPENCODE_PROMPT || reply->class != CLASS_NONE)
      serve_step(d, OPENCODE_STOPPING, 1);
    return;
  }
  if (reply->id == OPENCODE_EVENTS && o->step == OPENCODE_ANSWERED) {
    d->host.wake(d->host.ctx, 1); /* no more of them come */
    return;
  }
  if (reply->class != CLASS_NONE) {
    take_lost_connection(d, reply);
    return;
  }
  switch ((enum opencode_request)reply->id) {
  case OPENCODE_EVENTS:
    if (reply->status != 200)
      refused(d, reply->status, reply->body);
    else if (!reply->begun)
      take_lost_connection(d, &(struct driver_reply){.class = CLASS_NETWORK,
                                                     .message = "its stream of events ended"});
    else if (o->step == OPENCODE_CONNECTING)
      serve_open_session(d);
    break;
  case OPENCODE_SESSION:
    if (o->step == OPENCODE_OPENING) /* else its events broke: nobody would answer its questions */
      on_session(d, reply);
    break;
  case OPENCODE_PROMPT:
    serve_on_answer(d, reply);
    break;
  case OPENCODE_ABORT:
  case OPENCODE_REPLY:
    break;
  }
}

/* --- the driver --- */

static void opencode_event(struct driver *d, struct str data) {
  static const char *const idle_talk[] = {"\"server.heartbeat\"", "\"server.connected\"",
                                          "\"session.status\""};
  bool works = data.n > 0;
  for (size_t i = 0; works && i < ARRAY_LEN(idle_talk); i++)
    works = memmem(data.p, data.n < 200 ? data.n : 200, idle_talk[i], strlen(idle_talk[i])) == NULL;
  if (works) /* a heartbeat, or that it waits to try again, is no sign of work */
    d->host.progress(d->host.ctx);
  stream_output(d, 1, data);
  stream_output(d, 1, STR("\n"));
}

static void opencode_woke(struct driver *d) {
  struct opencode *o = opencode_of(d);
  switch (o->step) {
  case OPENCODE_STARTING:
    serve_fail(d, CLASS_TIMEOUT, "opencode serve did not say where it listens within %d s",
               LIMIT_SERVER_START_MS / 1000);
    break;
  case OPENCODE_CONNECTING:
  case OPENCODE_OPENING:
    serve_fail(d, CLASS_TIMEOUT, "opencode serve did not reply within %d s",
               LIMIT_SERVER_REPLY_MS / 1000);
    break;
  case OPENCODE_ANSWERED:
    take_answer(d);
    break;
  case OPENCODE_STOPPING:
    if (d->end == STREAM_END_NONE)
      serve_fail(d, CLASS_CANCELLED, "cancelled");
    else
      serve_over(d);
    break;
  case OPENCODE_LOST: {
    char why[200];
    print_into(why, sizeof why, "%.199s", buf_c(&o->line));
    serve_fail(d, CLASS_NETWORK, "the connection to opencode serve broke: %s", why);
    break;
  }
  case OPENCODE_WORKING:
  case OPENCODE_OVER:
    break;
  }
}

/* Reads output. A live server's stdout only tells the port; a recording's is what was received. */
static void opencode_output(struct driver *d, int fd, struct str bytes) {
  struct opencode *o = opencode_of(d);
  if (!o->live || fd != 1) {
    stream_output(d, fd, bytes);
    return;
  }
  while (o->step == OPENCODE_STARTING && bytes.n > 0) {
    const char *end = memchr(bytes.p, '\n', bytes.n);
    size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
    if (o->line.n + n <= LIMIT_EVIDENCE_BYTES)
      buf_append(&o->line, bytes.p, n);
    if (end == NULL)
      return;
    look_for_port(d, buf_view(&o->line));
    buf_clear(&o->line);
    bytes = (struct str){end + 1, bytes.n - n - 1};
  }
}

static struct driver *opencode_open(const struct profile *profile, const struct agent_call *call,
                                    const struct driver_host *host) {
  struct driver *d = stream_open(profile, call, host);
  struct opencode *o = xcalloc(1, sizeof *o);
  d->own = o;
  d->value = opencode_value;
  d->is_text = d->ends_by_exit = d->text_of_all = false;
  o->assistant = json_object();
  o->parts = json_object();
  o->thoughts = json_object();
  o->tokens = json_object();
  o->answer.max = LIMIT_AGENT_LINE_BYTES;
  o->live = host->request != NULL;
  if (o->live) {
    d->client_retries = -1; /* ended by an abort, not by a signal: see opencode_on_retry */
    serve_step(d, OPENCODE_STARTING, LIMIT_SERVER_START_MS);
  }
  return d;
}

static bool opencode_interrupt(struct driver *d) {
  const struct opencode *o = opencode_of(d);
  if (o->live && o->step < OPENCODE_WORKING)
    serve_step(d, OPENCODE_OVER, 0); /* no work is begun while it ends */
  if (!o->live || o->step != OPENCODE_WORKING)
    return false;
  serve_stop(d);
  return true;
}

/* Begins the next prompt of a recording. Nothing of the last one counts for it. */
static void serve_begin(struct driver *d, struct str session, struct str body) {
  struct opencode *o = opencode_of(d);
  json_auto_t *value = stream_read_json(body);
  d->end = STREAM_END_NONE;
  d->schema_asked = json_object_get(value, "format") != NULL;
  d->trouble.there = false;
  d->trouble.status = 0;
  d->trouble.class = CLASS_NONE;
  buf_clear(&d->trouble.kinds);
  buf_clear(&d->trouble.message);
  buf_clear(&d->told);
  buf_clear(&d->last);
  buf_clear(&d->retry);
  json_decref(d->structured);
  json_decref(d->usage);
  d->structured = d->usage = NULL;
  json_object_clear(o->tokens);
  o->aborted = o->idle = false;
  opencode_enter(d, session);
}

/* Reads a recorded request, such as "POST /session/ID/message {...}". */
static void opencode_sent(struct driver *d, struct str line) {
  d->questions.recorded = true;
  if (!str_drop(&line, "POST "))
    return;
  opencode_replied(d, line);
  if (!str_drop(&line, "/session/"))
    return;
  struct str session = str_cut(&line, '/');
  if (str_drop(&line, "message "))
    serve_begin(d, session, line);
  else if (str_starts(line, "abort")) {
    /* It ends a session whose prompt the recording may not show any more. */
    struct opencode *o = opencode_of(d);
    if (!str_eq_c(session, o->session))
      d->end = STREAM_END_NONE;
    opencode_enter(d, session);
    o->aborted = true;
  }
}

static void opencode_end(struct driver *d, const struct process_result *p, struct call_result *r) {
  struct opencode *o = opencode_of(d);
  stream_take_rest(d);
  if (o->step == OPENCODE_ANSWERED) /* it died before its last events were there */
    take_answer(d);
  if (d->schema_asked && r->enforced == NULL)
    r->enforced = "tool"; /* its own, StructuredOutput; it does not check the value */
  if (d->end == STREAM_END_NONE && o->aborted) {
    bool retried = d->retry.n > 0; /* given up because it tried again and again */
    enum error_class class = retried ? stream_retry_class(d) : CLASS_CANCELLED;
    stream_trouble(d, 0, retried ? buf_view(&d->retry) : STR("cancelled"));
    d->trouble.class = class == CLASS_NONE ? CLASS_TIMEOUT : class;
    d->end = STREAM_END_ERROR;
  }
  stream_end(d, p, r);
}

static void opencode_close(struct driver *d) {
  struct opencode *o = opencode_of(d);
  json_decref(o->assistant);
  json_decref(o->parts);
  json_decref(o->thoughts);
  json_decref(o->tokens);
  buf_deinit(&o->talking);
  buf_deinit(&o->line);
  buf_deinit(&o->answer);
  stream_close(d);
}

const struct driver_ops driver_opencode = {.name = "opencode",
                                           .transport = TRANSPORT_NATIVE,
                                           .password_env = "OPENCODE_SERVER_PASSWORD",
                                           .open = opencode_open,
                                           .output = opencode_output,
                                           .reply = opencode_reply,
                                           .event = opencode_event,
                                           .woke = opencode_woke,
                                           .sent = opencode_sent,
                                           .interrupt = opencode_interrupt,
                                           .end = opencode_end,
                                           .close = opencode_close};
