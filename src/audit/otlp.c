/* Turns the records of a session into spans. */
#include "audit/otlp.h"

#include "audit/verified_reader.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <string.h>

/* numbers of OTLP's enums */
enum { KIND_INTERNAL = 1, KIND_CLIENT = 3, STATUS_IS_OK = 1, STATUS_IS_ERROR = 2 };
enum { SPAN_ID_BYTES = 17 };

struct otlp {
  const struct otlp_how *how;
  char session[40], trace[40];
  json_t *span;     /* the session's */
  json_t *resource; /* its attributes */
  json_t *turns;    /* turn -> {span, calls: of judges that no judgment has yet, judgments} */
  json_t *calls;    /* "call.attempt" -> span, of those that run */
  json_t *done;     /* spans that are over */
  int64_t now_ms;   /* of the record at hand */
  bool wanted;
};

/* --- spans --- */

static void otlp_id(const struct otlp *o, const char *what, char id[SPAN_ID_BYTES]) {
  char hash[SHA256_HEX];
  sha256_hex(o->session, strlen(o->session), what, strlen(what), hash);
  print_into(id, SPAN_ID_BYTES, "%.16s", hash);
}

static void otlp_put_time(json_t *span, const char *key, int64_t ms) {
  json_object_set_new(span, key, json_sprintf("%lld000000", (long long)ms));
}

static void otlp_put(json_t *span, const char *key, const char *type, json_t *owned_value) {
  json_t *list = json_at(span, "attributes");
  json_array_append_new(list, json_pack("{ss s{so}}", "key", key, "value", type, owned_value));
}

static void otlp_text(json_t *span, const char *key, struct str text) {
  if (text.n > 0)
    otlp_put(span, key, "stringValue", json_text(text));
}

/* OTLP writes 64 bits as a text. */
static void otlp_number(json_t *span, const char *key, const json_t *number) {
  if (json_is_integer(number))
    otlp_put(span, key, "intValue", json_sprintf("%lld", (long long)json_integer_value(number)));
}

static json_t *otlp_span(const struct otlp *o, const char *what, const char *parent, int kind,
                         const char *operation, struct str of) {
  char id[SPAN_ID_BYTES], parent_id[SPAN_ID_BYTES];
  buf_auto_t name = buf_of("%s", operation);
  if (of.n > 0)
    buf_printf(&name, " " STR_FMT, STR_ARG(of));
  otlp_id(o, what, id);
  json_t *span = json_pack("{ss ss}", "traceId", o->trace, "spanId", id);
  if (parent != NULL) {
    otlp_id(o, parent, parent_id);
    json_put(span, "parentSpanId", json_string(parent_id));
  }
  json_put(span, "name", json_text(buf_view(&name)));
  json_put(span, "kind", json_integer(kind));
  otlp_put_time(span, "startTimeUnixNano", o->now_ms);
  otlp_put_time(span, "endTimeUnixNano", o->now_ms);
  json_put(span, "attributes", json_array());
  otlp_text(span, "gen_ai.operation.name", str_from(operation));
  otlp_text(span, "gen_ai.conversation.id", str_from(o->session));
  return span;
}

static void otlp_status(json_t *span, int code) {
  json_put(span, "status", json_pack("{si}", "code", code));
}

static void otlp_failed(json_t *span, struct str class) {
  otlp_text(span, "error.type", class.n > 0 ? class : STR("_OTHER"));
  otlp_status(span, STATUS_IS_ERROR);
}

static void otlp_flush(struct otlp *o) {
  if (json_array_size(o->done) == 0 || !o->wanted)
    return;
  json_t *spans = o->done;
  o->done = json_array();
  o->wanted =
      o->how->batch(o->how->ctx, json_pack("{s[{s{sO} s[{s{ss} so}]}]}", "resourceSpans",
                                           "resource", "attributes", o->resource, "scopeSpans",
                                           "scope", "name", "segue", "spans", spans));
}

static void otlp_over(struct otlp *o, json_t *span, bool ends_now) {
  if (ends_now)
    otlp_put_time(span, "endTimeUnixNano", o->now_ms);
  json_array_append(o->done, span);
  if (json_array_size(o->done) >= LIMIT_OTLP_SPAN_COUNT)
    otlp_flush(o);
}

/* --- records --- */

static json_t *otlp_turn(const struct otlp *o, const json_t *r) {
  char turn[24];
  print_into(turn, sizeof turn, "%lld", (long long)json_int_at(r, "turn"));
  return json_object_get(o->turns, turn);
}

static void otlp_session_start(struct otlp *o, const json_t *r) {
  const char *id = json_word_at(r, "session");
  char *to = o->trace;
  print_into(o->session, sizeof o->session, "%s", id);
  for (; *id != '\0' && to < o->trace + 32; id++)
    if (*id != '-')
      *to++ = *id;
  *to = '\0';
  struct str name = json_view_at(json_at(r, "workflow"), "name");
  o->span = otlp_span(o, "session", NULL, KIND_INTERNAL, "invoke_workflow", name);
  otlp_text(o->span, "gen_ai.workflow.name", name);
  otlp_text(o->span, "segue.workflow.sha256", json_view_at(r, "workflow_sha256"));
  json_auto_t *holder = json_pack("{so}", "attributes", json_incref(o->resource));
  otlp_text(holder, "service.name", STR("segue"));
  otlp_text(holder, "service.version", json_view_at(json_at(r, "versions"), "segue"));
}

static void otlp_turn_start(struct otlp *o, const json_t *r) {
  char what[40], parent[40], turn[24];
  json_int_t above = json_int_at(r, "parent_turn");
  print_into(turn, sizeof turn, "%lld", (long long)json_int_at(r, "turn"));
  print_into(what, sizeof what, "turn %s", turn);
  print_into(parent, sizeof parent, "turn %lld", (long long)above);
  struct str movement = json_view_at(r, "movement");
  json_t *span =
      otlp_span(o, what, above > 0 ? parent : "session", KIND_INTERNAL, "turn", movement);
  otlp_text(span, "segue.movement", movement);
  otlp_number(span, "segue.turn", json_at(r, "turn"));
  otlp_number(span, "segue.run", json_at(r, "movement_iteration"));
  json_object_set_new(o->turns, turn,
                      json_pack("{so s[] si}", "span", span, "calls", "judgments", 0));
}

static void otlp_call_start(struct otlp *o, const json_t *r) {
  char what[64], parent[40];
  struct str provider = json_view_at(r, "provider"), model = json_view_at(r, "model");
  const struct capability *backend = capability_find(o->how->backends, provider);
  bool command = str_eq_c(provider, "command");
  bool agent = backend != NULL && backend->touches_files;
  print_into(what, sizeof what, "call %lld.%lld", (long long)json_int_at(r, "call"),
             (long long)json_int_at(r, "attempt"));
  print_into(parent, sizeof parent, "turn %lld", (long long)json_int_at(r, "turn"));
  const char *operation = "chat";
  if (command || agent)
    operation = command ? "execute_tool" : "invoke_agent";
  bool remote = !command && !agent;
  json_t *span = otlp_span(o, what, parent, remote ? KIND_CLIENT : KIND_INTERNAL, operation,
                           remote ? model : provider);
  otlp_text(span, command ? "gen_ai.tool.name" : "gen_ai.provider.name", provider);
  if (agent && !command)
    otlp_text(span, "gen_ai.agent.name", provider);
  otlp_text(span, "gen_ai.request.model", model);
  otlp_text(span, "segue.purpose", json_view_at(r, "purpose"));
  otlp_text(span, "segue.stage", json_view_at(r, "stage"));
  otlp_number(span, "segue.call", json_at(r, "call"));
  otlp_number(span, "segue.attempt", json_at(r, "attempt"));
  json_object_set_new(o->calls, what + 5, span);
}

static void otlp_use(json_t *span, const json_t *usage) {
  static const char *const names[][2] = {
      {"input", "gen_ai.usage.input_tokens"},
      {"output", "gen_ai.usage.output_tokens"},
      {"cached", "gen_ai.usage.cache_read.input_tokens"},
      {"cache_write", "gen_ai.usage.cache_creation.input_tokens"},
      {"reasoning", "gen_ai.usage.reasoning.output_tokens"}};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    otlp_number(span, names[i][1], json_object_get(usage, names[i][0]));
  const json_t *cost = json_at(usage, "cost_usd");
  if (json_is_number(cost))
    otlp_put(span, "segue.cost_usd", "doubleValue", json_real(json_number_value(cost)));
}

/* A judge's call waits for its judgment, whose child it is. */
static void otlp_call_end(struct otlp *o, const json_t *r) {
  char call[40];
  print_into(call, sizeof call, "%lld.%lld", (long long)json_int_at(r, "call"),
             (long long)json_int_at(r, "attempt"));
  json_t *span = json_object_get(o->calls, call);
  if (span == NULL)
    return;
  otlp_use(span, json_at(r, "usage"));
  otlp_text(span, "segue.provider_session", json_view_at(r, "provider_session"));
  otlp_number(span, "segue.exit", json_at(r, "exit"));
  if (json_at(r, "error") != NULL)
    otlp_failed(span, json_view_at(json_at(r, "error"), "class"));
  bool judges = false;
  JSON_EACH(json_at(span, "attributes"), i, attribute)
    judges = judges || str_eq_c(json_view_at(attribute, "key"), "segue.stage");
  if (judges && otlp_turn(o, r) != NULL) {
    otlp_put_time(span, "endTimeUnixNano", o->now_ms);
    json_array_append(json_at(otlp_turn(o, r), "calls"), span);
  } else {
    otlp_over(o, span, true);
  }
  json_object_del(o->calls, call);
}

static void otlp_call_event(struct otlp *o, const json_t *r) {
  const json_t *data = json_at(r, "data");
  char what[40], parent[64];
  if (!str_eq_c(json_view_at(r, "event"), "tool"))
    return;
  print_into(what, sizeof what, "tool %lld", (long long)json_int_at(r, "seq"));
  print_into(parent, sizeof parent, "call %lld.%lld", (long long)json_int_at(r, "call"),
             (long long)json_int_at(r, "attempt"));
  json_auto_t *span =
      otlp_span(o, what, parent, KIND_INTERNAL, "execute_tool", json_view_at(data, "name"));
  otlp_text(span, "gen_ai.tool.name", json_view_at(data, "name"));
  otlp_number(span, "segue.exit", json_at(data, "exit"));
  otlp_over(o, span, false);
}

/* Appends one way of judging as the event that the conventions have for it. */
static void otlp_stage(const struct otlp *o, json_t *events, const json_t *stage) {
  json_auto_t *event = json_pack("{ss s[]}", "name", "gen_ai.evaluation.result", "attributes");
  otlp_put_time(event, "timeUnixNano", o->now_ms);
  otlp_text(event, "gen_ai.evaluation.name", json_view_at(stage, "stage"));
  if (json_int_at(stage, "rule") > 0)
    otlp_put(event, "gen_ai.evaluation.score.label", "stringValue",
             json_sprintf("rule %lld", (long long)json_int_at(stage, "rule")));
  otlp_text(event, "segue.stage.outcome", json_view_at(stage, "outcome"));
  otlp_number(event, "segue.vote", json_at(stage, "vote"));
  otlp_text(event, "error.type", json_view_at(stage, "class"));
  if (o->how->reasons)
    otlp_text(event, "gen_ai.evaluation.explanation", json_view_at(stage, "reason"));
  json_array_append(events, event);
}

static void otlp_judgment(struct otlp *o, const json_t *r) {
  char what[64], parent[40], id[SPAN_ID_BYTES];
  json_t *turn = otlp_turn(o, r);
  if (turn == NULL)
    return;
  json_int_t number = json_int_at(turn, "judgments") + 1;
  json_put(turn, "judgments", json_integer(number));
  print_into(parent, sizeof parent, "turn %lld", (long long)json_int_at(r, "turn"));
  print_into(what, sizeof what, "judgment %lld.%lld", (long long)json_int_at(r, "turn"),
             (long long)number);
  struct str movement = json_view_at(r, "movement"), next = json_view_at(r, "next");
  json_auto_t *span = otlp_span(o, what, parent, KIND_INTERNAL, "evaluate", movement);
  otlp_id(o, what, id);
  JSON_EACH(json_at(turn, "calls"), i, call) {
    json_put(call, "parentSpanId", json_string(id));
    if (i == 0)
      json_object_set(span, "startTimeUnixNano", json_at(call, "startTimeUnixNano"));
    otlp_over(o, call, false);
  }
  json_array_clear(json_at(turn, "calls"));
  otlp_text(span, "gen_ai.evaluation.name", movement);
  otlp_text(span, "gen_ai.evaluation.score.label", next.n > 0 ? next : STR("none"));
  otlp_text(span, "gen_ai.provider.name", json_view_at(r, "provider"));
  otlp_text(span, "gen_ai.request.model", json_view_at(r, "model"));
  otlp_number(span, "segue.rule", json_at(r, "rule"));
  otlp_text(span, "segue.method", json_view_at(r, "method"));
  otlp_text(span, "segue.match_method", json_view_at(r, "match_method"));
  otlp_text(span, "segue.basis", json_view_at(r, "basis"));
  otlp_text(span, "segue.failure", json_view_at(r, "failure"));
  json_put(span, "events", json_array());
  JSON_EACH(json_at(r, "stages"), i, stage)
    otlp_stage(o, json_at(span, "events"), stage);
  otlp_over(o, span, true);
}

/* Ends what a turn has open; that it has is no error: the log may go on. */
static void otlp_turn_over(struct otlp *o, const char *number, json_t *turn) {
  JSON_EACH(json_at(turn, "calls"), i, call)
    otlp_over(o, call, false);
  otlp_over(o, json_at(turn, "span"), true);
  json_object_del(o->turns, number);
}

static void otlp_turn_end(struct otlp *o, const json_t *r) {
  char number[24];
  json_t *turn = otlp_turn(o, r);
  if (turn == NULL)
    return;
  print_into(number, sizeof number, "%lld", (long long)json_int_at(r, "turn"));
  otlp_text(json_at(turn, "span"), "segue.next", json_view_at(r, "next"));
  if (str_eq_c(json_view_at(r, "outcome"), "error"))
    otlp_failed(json_at(turn, "span"), json_view_at(r, "class"));
  otlp_turn_over(o, number, turn);
}

/* Ends everything, and says how the session ended, by its last record. */
static void otlp_end(struct otlp *o, const json_t *last) {
  struct str type = json_view_at(last, "type");
  const char *number;
  json_t *turn, *call;
  void *next;
  json_object_foreach(o->calls, number, call)
    otlp_over(o, call, true);
  json_object_foreach_safe(o->turns, next, number, turn) otlp_turn_over(o, number, turn);
  struct str status = STR("open");
  if (str_eq_c(type, "session_end"))
    status = json_view_at(last, "outcome");
  else if (str_eq_c(type, "session_stop"))
    status = STR("stopped");
  otlp_text(o->span, "segue.session.status", status);
  otlp_text(o->span, "segue.session.reason", json_view_at(last, "reason"));
  otlp_text(o->span, "segue.basis", json_view_at(last, "basis"));
  if (str_eq_c(status, "complete"))
    otlp_status(o->span, STATUS_IS_OK);
  else if (str_eq_c(type, "session_stop") && json_at(last, "class") != NULL)
    otlp_failed(o->span, json_view_at(last, "class"));
  otlp_over(o, o->span, true);
  otlp_flush(o);
}

static void otlp_take(struct otlp *o, const json_t *r) {
  static const struct {
    const char *type;
    void (*take)(struct otlp *o, const json_t *r);
  } takers[] = {{"turn_start", otlp_turn_start}, {"call_start", otlp_call_start},
                {"call_event", otlp_call_event}, {"call_end", otlp_call_end},
                {"judgment", otlp_judgment},     {"turn_end", otlp_turn_end}};
  struct str type = json_view_at(r, "type");
  int64_t ms;
  if (record_time_parse(json_word_at(r, "ts"), &ms))
    o->now_ms = ms;
  if (o->span == NULL && str_eq_c(type, "session_start"))
    otlp_session_start(o, r);
  for (size_t i = 0; o->span != NULL && i < ARRAY_LEN(takers); i++)
    if (str_eq_c(type, takers[i].type))
      takers[i].take(o, r);
}

bool otlp_read(const struct store_ref *ref, const struct otlp_how *how, struct err *err) {
  struct verified_reader b = {0};
  struct otlp o = {.how = how,
                   .resource = json_array(),
                   .turns = json_object(),
                   .calls = json_object(),
                   .done = json_array(),
                   .wanted = true};
  json_t *r, *last = NULL;
  bool ok = verified_open(&b, ref, false, err);
  while (ok && o.wanted && (r = verified_next(&b)) != NULL) {
    otlp_take(&o, r);
    json_keep(&last, r);
    json_decref(r);
  }
  if (o.span != NULL)
    otlp_end(&o, last);
  if (ok && b.state == VERIFIED_DAMAGED)
    ok = err_set(err, ERR_CORRUPT, "record %llu of %.200s is not what was written: %.300s",
                 (unsigned long long)b.records + 1, ref->name, b.damage.text);
  verified_close(&b);
  json_t *const owned[] = {o.span, o.resource, o.turns, o.calls, o.done, last};
  for (size_t i = 0; i < ARRAY_LEN(owned); i++)
    json_decref(owned[i]);
  return ok;
}
