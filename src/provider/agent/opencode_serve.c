/* Takes one call through a live `opencode serve`; its recordings are driven from here too.
 *
 *   stdout names the port -> GET /event, and once that flows -> POST /session, or GET /session/ID
 *   of the known one -> POST /session/ID/message, whose reply is the answer -> the last events ->
 *   the server is ended
 *
 * The server tries again by itself and without end after rate limits and broken connections. Once
 * is enough; then the work is aborted, and what it said of the last failure is the error. */
#include "provider/agent/opencode_internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"
#include "provider/agent/evidence.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- steps --- */

static void serve_step(struct driver *d, enum opencode_step next, uint64_t limit_ms) {
  opencode_of(d)->step = next;
  d->host.wake(d->host.ctx, limit_ms);
}

static void serve_over(struct driver *d) {
  serve_step(d, OPENCODE_OVER, 0);
  d->host.give_up(d->host.ctx); /* it would serve on for ever */
}

static void serve_fail(struct driver *d, enum error_class class, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
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

bool opencode_is_id(struct str id) {
  for (size_t i = 0; i < id.n; i++)
    if (!(id.p[i] >= '0' && id.p[i] <= '9') && !(id.p[i] >= 'a' && id.p[i] <= 'z') &&
        !(id.p[i] >= 'A' && id.p[i] <= 'Z') && id.p[i] != '_' && id.p[i] != '-')
      return false;
  return id.n > 0 && id.n < 128;
}

static void serve_get(struct driver *d, int id, const char *path) {
  const struct driver_request request = {.id = id, .path = path, .events = id == OPENCODE_EVENTS};
  d->host.request(d->host.ctx, &request);
}

void opencode_post(struct driver *d, int id, const char *path, json_t *body) {
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
  for (at += sizeof words - 1; at < line.p + line.n && *at >= '0' && *at <= '9' && port < 100000;
       at++)
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
  const struct agent_call *call = opencode_of(d)->call;
  struct str known = str_from(call->session);
  char path[160], title[160];
  serve_step(d, OPENCODE_OPENING, LIMIT_SERVER_REPLY_MS);
  if (known.n > 0 && !opencode_is_id(known)) {
    serve_fail(d, CLASS_NOT_FOUND, "\"%.100s\" is not a conversation of opencode", call->session);
  } else if (known.n > 0) {
    (void)snprintf(path, sizeof path, "/session/" STR_FMT, STR_ARG(known));
    serve_get(d, OPENCODE_SESSION, path);
  } else { /* with a title: else it would ask the model for one */
    (void)snprintf(title, sizeof title, "segue %.80s %ld.%ld",
                   call->request->session ? call->request->session : "", call->request->turn,
                   call->request->call);
    opencode_post(d, OPENCODE_SESSION, "/session", json_pack("{s:s}", "title", title));
  }
}

static void serve_prompt(struct driver *d) {
  struct opencode *o = opencode_of(d);
  const struct agent_call *call = o->call;
  struct str model = call->request->model;
  const char *slash = model.n > 0 ? memchr(model.p, '/', model.n) : NULL;
  json_t *effort = json_object_get(call->request->options, "effort");
  char path[160];
  if (model.n > 0 && (slash == NULL || slash == model.p || slash == model.p + model.n - 1)) {
    serve_fail(d, CLASS_BAD_REQUEST, "model \"%.*s\": opencode takes PROVIDER/MODEL",
               model.n < 150 ? (int)model.n : 150, model.p);
    return;
  }
  json_t *body =
      json_pack("{s:[{s:s, s:o}]}", "parts", "type", "text", "text", json_text(call->prompt));
  if (slash != NULL)
    json_object_set_new(
        body, "model",
        json_pack("{s:o, s:o}", "providerID",
                  json_text((struct str){model.p, (size_t)(slash - model.p)}), "modelID",
                  json_text((struct str){slash + 1, (size_t)(model.p + model.n - slash - 1)})));
  if (json_is_string(effort))
    json_object_set(body, "variant", effort);
  if (call->schema != NULL)
    json_object_set_new(body, "format",
                        json_pack("{s:s, s:O}", "type", "json_schema", "schema", call->schema));
  o->idle = false;
  serve_step(d, OPENCODE_WORKING, 0);
  (void)snprintf(path, sizeof path, "/session/%s/message", o->session);
  opencode_post(d, OPENCODE_PROMPT, path, body);
}

/* Aborts the work; what is already known to be wrong becomes the end. */
static void serve_stop(struct driver *d) {
  const struct opencode *o = opencode_of(d);
  char path[160];
  serve_step(d, OPENCODE_STOPPING, LIMIT_SERVER_TAIL_MS);
  (void)snprintf(path, sizeof path, "/session/%s/abort", o->session);
  opencode_post(d, OPENCODE_ABORT, path, json_object());
}

void opencode_on_retry(struct driver *d, json_int_t attempt, int64_t delay_ms, struct str reason) {
  const struct opencode *o = opencode_of(d);
  json_int_t tries = attempt > d->retry_count ? attempt : d->retry_count;
  if (!o->live || o->step != OPENCODE_WORKING ||
      (tries <= LIMIT_CLIENT_RETRY_COUNT && delay_ms <= LIMIT_CLIENT_RETRY_WAIT_MS))
    return;
  stream_trouble(d, 0, reason);
  d->trouble.class = CLASS_NONE; /* by its words; what it tries again is transient at least */
  if (evidence_of_words(reason) == CLASS_NONE && evidence_status(reason) == 0)
    d->trouble.class = CLASS_OVERLOADED;
  if (delay_ms > LIMIT_CLIENT_RETRY_WAIT_MS)
    d->trouble.retry_after_ms = delay_ms;
  stream_finish(d, STREAM_END_ERROR);
  serve_stop(d);
}

/* --- replies --- */

/* Notes what a reply with another status than 200 says: {"name", "data": {"message"}}. */
static void note_refusal(struct driver *d, int status, struct str body) {
  json_t *value = stream_read_json(body);
  char text[64];
  (void)snprintf(text, sizeof text, "opencode serve answers with status %d", status);
  if (!d->trouble.there || d->trouble.message.n == 0) /* an event said it better */
    stream_trouble(d, 0, str_from(text));
  if (json_is_object(value) && d->trouble.kinds.n == 0)
    opencode_note_error(d, value);
  json_decref(value);
}

static void refused(struct driver *d, int status, struct str body) {
  if (status == 401 || status == 403) {
    serve_fail(d, CLASS_PROTOCOL,
               "opencode serve refuses the password that it was given (status %d)", status);
    return;
  }
  note_refusal(d, status, body);
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

void opencode_on_idle(struct driver *d) {
  struct opencode *o = opencode_of(d);
  o->idle = true;
  if (o->live && o->step == OPENCODE_ANSWERED)
    d->host.wake(d->host.ctx, 1); /* from the loop: this event is still being read */
}

static void serve_on_answer(struct driver *d, const struct driver_reply *reply) {
  struct opencode *o = opencode_of(d);
  if (o->step == OPENCODE_STOPPING) {
    serve_step(d, OPENCODE_STOPPING, 1);
    return;
  }
  buf_clear(&o->answer);
  buf_str(&o->answer, reply->body);
  o->answer_status = reply->status;
  serve_step(d, OPENCODE_ANSWERED, o->idle ? 1 : LIMIT_SERVER_TAIL_MS);
}

static void on_session(struct driver *d, const struct driver_reply *reply) {
  const char *known = opencode_of(d)->call->session;
  if (reply->status == 404 && known[0] != '\0') {
    serve_fail(d, CLASS_NOT_FOUND, "opencode no longer knows the conversation %.100s", known);
    return;
  }
  if (reply->status != 200) {
    refused(d, reply->status, reply->body);
    return;
  }
  json_t *value = stream_read_json(reply->body);
  struct str id = opencode_text(value, "id");
  if (!opencode_is_id(id)) {
    serve_fail(d, CLASS_PROTOCOL, "opencode serve did not name a conversation");
  } else {
    opencode_enter(d, id);
    serve_prompt(d);
  }
  json_decref(value);
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
  buf_clear(&o->line);
  buf_puts(&o->line, reply->message);
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
    (void)snprintf(why, sizeof why, "%.199s", buf_c(&o->line));
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
  o->call = call;
  o->questions.d = d;
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
  json_t *value = stream_read_json(body);
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
  json_decref(value);
}

/* Ends a session whose prompt the recording may not show any more. */
static void abort_at(struct driver *d, struct str session) {
  struct opencode *o = opencode_of(d);
  if (!str_eq_c(session, o->session))
    d->end = STREAM_END_NONE;
  opencode_enter(d, session);
  o->aborted = true;
}

/* Reads a recorded request, such as "POST /session/ID/message {...}". */
static void opencode_sent(struct driver *d, struct str line) {
  static const char post[] = "POST ", start[] = "/session/";
  opencode_of(d)->questions.recorded = true;
  if (!str_starts(line, post))
    return;
  struct str rest = {line.p + sizeof post - 1, line.n - (sizeof post - 1)};
  opencode_replied(d, rest);
  if (!str_starts(rest, start))
    return;
  rest = (struct str){rest.p + sizeof start - 1, rest.n - (sizeof start - 1)};
  const char *slash = memchr(rest.p, '/', rest.n);
  if (slash == NULL)
    return;
  struct str session = {rest.p, (size_t)(slash - rest.p)};
  struct str verb = {slash, rest.n - session.n};
  if (str_starts(verb, "/message "))
    serve_begin(d, session, (struct str){verb.p + 9, verb.n - 9});
  else if (str_starts(verb, "/abort"))
    abort_at(d, session);
}

static void opencode_end(struct driver *d, const struct process_result *p, struct call_result *r) {
  struct opencode *o = opencode_of(d);
  stream_take_rest(d);
  question_end(&o->questions);
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
  questions_deinit(&o->questions);
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
