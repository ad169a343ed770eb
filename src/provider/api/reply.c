/* Reads the reply of a model API as its bytes come, and finds the meaning of an error: its class
 * and when to come back. */
#include "provider/api/reply.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "provider/agent/classify.h"
#include "provider/moment.h"
#include "json/scan.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void reply_init(struct reply *r, const struct dialect *dialect, int64_t wall_ms,
                reply_watch_fn watch, void *ctx) {
  assert(dialect != NULL);
  *r = (struct reply){.dialect = dialect,
                      .watch = watch,
                      .ctx = ctx,
                      .wall_ms = wall_ms,
                      .input = -1,
                      .output = -1,
                      .cached = -1,
                      .reasoning = -1,
                      .cache_write = -1,
                      .cost_usd = -1,
                      .wait = {.retry_after_ms = -1, .should_retry = -1}};
  r->text.max = r->tool.max = LIMIT_OUTPUT_BYTES;
  r->refusal.max = LIMIT_ERROR_TEXT_BYTES;
  r->document.max = LIMIT_HTTP_BODY_BYTES;
}

void reply_deinit(struct reply *r) {
  sse_deinit(&r->sse);
  ndjson_deinit(&r->lines);
  buf_deinit(&r->document);
  buf_deinit(&r->text);
  buf_deinit(&r->tool);
  buf_deinit(&r->refusal);
  redactor_deinit(&r->of_text);
  redactor_deinit(&r->of_thinking);
  redactor_deinit(&r->of_tool);
  *r = (struct reply){0};
}

void reply_redact(struct reply *r, const struct secrets *secrets) {
  redactor_init(&r->of_text, secrets);
  redactor_init(&r->of_thinking, secrets);
  redactor_init(&r->of_tool, secrets);
}

void reply_fail(struct reply *r, enum error_class class, const char *fmt, ...) {
  va_list ap;
  if (r->class != CLASS_NONE)
    return;
  r->class = class;
  va_start(ap, fmt);
  (void)vsnprintf(r->message, sizeof r->message, fmt, ap);
  va_end(ap);
}

/* --- what the dialects say --- */

/* Keeps the piece (in `keep`, which may be NULL) and tells it, without secrets. */
static void reply_pass(struct reply *r, struct redactor *redactor, bool thinking, struct str piece,
                       struct buf *keep, bool last) {
  buf_auto_t clean = {0};
  struct str view = piece;
  if (piece.n == 0 && !last)
    return;
  if (!secrets_are_empty(redactor->secrets)) {
    redactor_push(redactor, piece, &clean);
    if (last)
      redactor_flush(redactor, &clean);
    view = buf_view(&clean);
  }
  if (view.n > 0) {
    if (keep != NULL)
      buf_str(keep, view);
    if (r->watch != NULL && keep != &r->tool)
      r->watch(r->ctx, thinking, view);
  }
}

static void on_part(void *ctx, bool thinking, struct str piece) {
  struct reply *r = ctx;
  r->thought |= thinking;
  reply_pass(r, thinking ? &r->of_thinking : &r->of_text, thinking, piece,
             thinking ? NULL : &r->text, false);
}

void reply_text(struct reply *r, const json_t *piece) {
  struct str s = json_view(piece);
  if (s.n > 0)
    think_push(&r->think, s, on_part, r);
}

void reply_thinking(struct reply *r, const json_t *piece) {
  struct str s = json_view(piece);
  if (s.n > 0)
    on_part(r, true, s);
}

void reply_tool(struct reply *r, const json_t *piece) {
  r->has_tool = true;
  reply_pass(r, &r->of_tool, false, json_view(piece), &r->tool, false);
}

void reply_tool_value(struct reply *r, const json_t *value) {
  buf_auto_t text = {0};
  json_write(value, &text);
  r->has_tool = true;
  reply_pass(r, &r->of_tool, false, buf_view(&text), &r->tool, false);
}

void reply_refusal(struct reply *r, const json_t *piece) {
  buf_str(&r->refusal, json_view(piece));
}

static bool reply_is_count(const json_t *n) {
  return json_is_integer(n) && json_integer_value(n) >= 0 &&
         json_integer_value(n) <= LIMIT_USAGE_TOKENS;
}

json_t *reply_sum(const json_t *const *counts, size_t n) {
  json_int_t sum = 0;
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    if (counts[i] == NULL || json_is_null(counts[i]))
      continue;
    if (!reply_is_count(counts[i]))
      return NULL;
    sum += json_integer_value(counts[i]);
    any = true;
  }
  return any ? json_integer(sum) : NULL;
}

static void set_count(int64_t *out, const json_t *n) {
  if (reply_is_count(n))
    *out = json_integer_value(n);
}

void reply_usage(struct reply *r, const json_t *input, const json_t *output, const json_t *cached,
                 const json_t *reasoning, const json_t *cache_write) {
  set_count(&r->input, input);
  set_count(&r->output, output);
  set_count(&r->cached, cached);
  set_count(&r->reasoning, reasoning);
  set_count(&r->cache_write, cache_write);
}

void reply_cost(struct reply *r, const json_t *usd) {
  double cost = json_number_value(usd);
  if (json_is_number(usd) && cost >= 0 && cost < LIMIT_COST_USD)
    r->cost_usd = cost;
}

static void reply_keep(char *out, size_t size, struct str value) {
  size_t n = value.n < size ? value.n : size - 1;
  memcpy(out, value.p, n);
  out[n] = '\0';
}

enum error_class reply_end_class(struct str word) {
  /* The words of all dialects, folded: gateways pass on those of the API behind them. */
  static const struct reply_word ends[] = {
      {"stop end_turn stop_sequence tool_use tool_calls function_call complete completed eos "
       "eos_token word finish_reason_unspecified",
       CLASS_NONE},
      {"length max_tokens max_output_tokens model_length model_context_window_exceeded limit "
       "max_turn_requests continuation",
       CLASS_LENGTH},
      {"content_filter content_filtered refusal safety recitation language blocklist "
       "prohibited_content spii image_safety sensitive guardrail_intervened",
       CLASS_REFUSED},
      {"error network_error insufficient_system_resource", CLASS_OVERLOADED}};
  char folded[48];
  size_t n = 0;
  for (; n < word.n && n < sizeof folded && word.p[n] != ':'; n++) /* "content_filter: SPII" */
    folded[n] = (char)(word.p[n] == '-' ? '_' : tolower((unsigned char)word.p[n]));
  for (size_t i = 0; i < ARRAY_LEN(ends); i++)
    if (str_among((struct str){folded, n}, ends[i].word))
      return ends[i].class;
  return word.n > 0 ? CLASS_PROTOCOL : CLASS_NONE;
}

void reply_stop(struct reply *r, const json_t *word, enum error_class class) {
  assert(r->dialect != NULL);
  struct str s = json_view(word);
  r->over = true;
  if (s.n > 0)
    reply_keep(r->stop, sizeof r->stop, s);
  if (class == CLASS_NONE)
    class = reply_end_class(s);
  if (class == CLASS_LENGTH)
    reply_fail(r, class, "the answer was cut off by the limit of tokens (%s): raise max_tokens",
               r->stop);
  else if (class == CLASS_REFUSED)
    reply_fail(r, class, "the model refused (%s)", r->stop);
  else if (class != CLASS_NONE)
    reply_fail(r, class, "the backend ended the answer: %s", r->stop);
}

void reply_close(struct reply *r) {
  r->over = r->closed = true;
}

json_t *reply_usage_json(const struct reply *r) {
  const struct {
    const char *name;
    int64_t n;
  } counts[] = {{"input", r->input},
                {"output", r->output},
                {"cached", r->cached},
                {"reasoning", r->reasoning},
                {"cache_write", r->cache_write}};
  if (r->input < 0 && r->output < 0)
    return NULL;
  json_t *usage = json_object();
  for (size_t i = 0; i < ARRAY_LEN(counts); i++)
    if (counts[i].n >= 0)
      json_object_set_new(usage, counts[i].name, json_integer(counts[i].n));
  if (r->cost_usd >= 0)
    json_object_set_new(usage, "cost_usd", json_real(r->cost_usd));
  return usage;
}

/* --- what a failure means, and when to come back --- */

static void code_put(struct buf *codes, const json_t *word) {
  if (json_is_string(word)) {
    buf_str(codes, json_view(word));
    buf_putc(codes, '\n');
  }
}

/* Reads the words of an error's fields, one a line, and what else they say as words of a text:
 * Gemini's quotas. */
static void read_codes(const json_t *error, struct buf *codes, struct buf *more) {
  static const char *const names[] = {"code", "type", "status", "reason", "error_code", "__type"};
  const json_t *details = json_object_get(error, "details");
  const json_t *from[] = {error, details, json_object_get(error, "innererror")};
  for (size_t k = 0; k < ARRAY_LEN(from); k++)
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
      code_put(codes, json_object_get(from[k], names[i]));
  JSON_EACH(details, i, detail) {
    code_put(codes, json_object_get(detail, "reason"));
    JSON_EACH(json_object_get(detail, "violations"), k, quota)
      buf_printf(more, "\nquotaId: %s quotaValue: %s", json_word_at(quota, "quotaId"),
                 json_word_at(quota, "quotaValue"));
  }
}

static void failure_header(struct reply_wait *wait, int64_t wall_ms, struct str name,
                           struct str value);

/* Reads the fields that name a delay: Gemini's RetryInfo.retryDelay, and the headers of the host
 * behind OpenRouter. */
static void read_delay(struct reply *r, const json_t *error) {
  const json_t *behind = json_object_get(json_object_get(error, "metadata"), "headers");
  JSON_EACH(json_object_get(error, "details"), i, detail) {
    int64_t ms = moment_of_value(json_view_at(detail, "retryDelay"), r->wall_ms);
    if (ms > 0 && r->wait.retry_after_ms <= 0)
      r->wait.retry_after_ms = ms;
    r->passes |= ms > 0;
  }
  JSON_MEMBERS(behind, name, value) {
    buf_auto_t text = {0};
    if (json_is_string(value))
      buf_str(&text, json_view(value));
    else
      json_write(value, &text);
    failure_header(&r->wait, r->wall_ms, str_from(name), buf_view(&text));
  }
}

/* Reads which parameter is meant: OpenAI's `param`, Gemini's fieldViolations, or the last word of
 * FastAPI's `loc`. */
static void read_param(struct reply *r, const json_t *error) {
  const json_t *named = json_object_get(error, "param"), *detail;
  size_t i;
  json_array_foreach(json_object_get(error, "details"), i, detail) {
    const json_t *first = json_array_get(json_object_get(detail, "fieldViolations"), 0);
    if (!json_is_string(named))
      named = json_object_get(first, "field");
  }
  const json_t *loc = json_object_get(json_array_get(json_object_get(error, "detail"), 0), "loc");
  if (!json_is_string(named) && json_array_size(loc) > 0)
    named = json_array_get(loc, json_array_size(loc) - 1);
  if (json_is_string(named))
    print_into(r->param, sizeof r->param, "%s", json_string_value(named));
}

/* Finds what the error means, and when it passes. */
static enum error_class failure_class(struct reply *r, const json_t *error, const struct buf *codes,
                                      const struct buf *text) {
  const json_t *code = json_object_get(error, "code");
  struct failure_said f = {.by_status = classify_of_status(r->status),
                           .codes = buf_view(codes),
                           .message = buf_view(text),
                           .param = str_from(r->param)};
  /* A number as the code of an error within a stream is the status that it should have had. */
  if (f.by_status == CLASS_NONE && json_is_integer(code))
    f.by_status = classify_of_status((int)json_integer_value(code));
  if (json_object_get(json_object_get(error, "metadata"), "flagged_input"))
    f.codes = STR("content_filter");
  struct meaning m = classify_failure(&f);
  if (m.class == CLASS_NONE)
    m.class = CLASS_OVERLOADED; /* it failed on its side: try again */
  if (r->class == CLASS_NONE) {
    r->elsewhere = m.elsewhere;
    r->lasts = m.row != NULL && m.row->lasts;
    classify_wait(m.row, f.message, r->wall_ms, &m.class, &r->retry_after_ms);
  }
  return m.class;
}

void reply_error(struct reply *r, const json_t *doc) {
  enum { DEPTH = 4, SAID = 400 }; /* gateways wrap what they received */
  for (int i = 0; i < DEPTH; i++) {
    const json_t *inner = json_object_get(doc, "error");
    if (inner == NULL)
      inner = json_array_get(json_object_get(doc, "errors"), 0);
    if (json_is_string(inner) && (i == 0 || json_object_get(doc, "message") == NULL))
      doc = inner;
    if (!json_is_object(inner))
      break;
    doc = inner;
  }
  buf_auto_t said = {0}, raw = {0}, codes = {0}, more = {0};
  /* Takes the error's own message, safe for a terminal and without the value of a secret. */
  const json_t *text = json_is_string(doc) ? doc : json_object_get(doc, "message");
  if (!json_is_string(text))
    text = json_object_get(doc, "detail"); /* FastAPI: vLLM */
  if (json_is_string(text))
    buf_str(&raw, json_view(text));
  /* OpenRouter's own words say only that a provider failed. */
  text = json_object_get(json_object_get(doc, "metadata"), "raw");
  if (json_is_string(text))
    buf_printf(&raw, ": %s", json_string_value(text));
  (void)secrets_hide(r->of_text.secrets, &raw);
  buf_safe(&said, (struct str){buf_c(&raw), utf8_floor(buf_c(&raw), raw.n < SAID ? raw.n : SAID)},
           false);
  read_codes(doc, &codes, &more);
  buf_str(&raw, buf_view(&more));
  read_delay(r, doc);
  read_param(r, doc);
  enum error_class class = failure_class(r, doc, &codes, &raw);
  if (r->status >= 400)
    reply_fail(r, class, "HTTP %d%s%s", r->status, said.n ? ": " : "", buf_c(&said));
  else
    reply_fail(r, class, "the backend failed while it answered%s%s", said.n ? ": " : "",
               buf_c(&said));
}

/* Classes a reply whose status is no success. owned_doc: its body, NULL if that is not JSON. */
static void failure_status(struct reply *r, json_t *owned_doc) {
  if (r->status >= 300 && r->status < 400) {
    reply_fail(r, CLASS_BAD_REQUEST,
               "HTTP %d: the server redirects to %s, and redirects are not followed: correct "
               "base_url",
               r->status, r->location[0] ? r->location : "another place");
  } else if (json_is_object(owned_doc)) {
    reply_error(r, owned_doc);
  } else {
    /* An array with the error as its only item is Gemini's form for a stream. */
    const json_t *first = json_is_array(owned_doc) ? json_array_get(owned_doc, 0) : NULL;
    enum error_class class = classify_of_status(r->status);
    json_auto_t *page = NULL;
    if (first == NULL && !str_starts_fold(str_from(r->content_type), "text/html"))
      page = json_text(str_trim(buf_view(&r->document)));
    if (first != NULL || json_string_length(page) > 0)
      reply_error(r, first ? first : page);
    else
      reply_fail(r, class != CLASS_NONE ? class : CLASS_PROTOCOL, "HTTP %d", r->status);
  }
  json_decref(owned_doc);
}

/* Takes a header about a limit. The names are anthropic-ratelimit-requests-remaining / -reset,
 * anthropic-ratelimit-unified-status / -reset, x-ratelimit-remaining-tokens / -reset-... */
static void failure_limit(struct reply_wait *wait, int64_t wall_ms, struct str name,
                          struct str value) {
  buf_auto_t folded = {0};
  for (size_t i = 0; i < name.n; i++)
    buf_putc(&folded, str_lower(name.p[i]));
  struct str low = buf_view(&folded);
  bool unified = str_has(low, "-unified-");
  enum reply_limit limit = str_has(low, "request") ? LIMIT_OF_REQUESTS : LIMIT_OF_TOKENS;
  if (unified)
    limit = LIMIT_OF_PLAN;
  if (str_has(low, "-remaining")) {
    wait->told_left = true;
    if (str_eq_c(value, "0"))
      wait->used_up |= 1u << limit;
  } else if (unified && str_ends(low, "-unified-status")) {
    wait->used_up |= (unsigned)str_eq_fold(value, "rejected") << limit;
  } else if (str_ends(low, "-reset") || str_has(low, "-reset-")) {
    if (!unified || str_ends(low, "-unified-reset"))
      wait->resets_ms[limit] = moment_of_value(value, wall_ms);
  }
}

/* Takes a header that says when to come back: retry-after(-ms), x-should-retry,
 * *ratelimit*-reset. */
static void failure_header(struct reply_wait *wait, int64_t wall_ms, struct str name,
                           struct str value) {
  int64_t ms = 0;
  value = str_trim(value);
  if (str_eq_fold(name, "retry-after-ms") || str_eq_fold(name, "x-ms-retry-after-ms")) {
    char *end, text[32];
    print_into(text, sizeof text, STR_FMT, STR_ARG(value));
    double number = strtod(text, &end);
    if (end != text && *end == '\0' && number >= 0 && number < 1e12)
      wait->retry_after_ms = (int64_t)ceil(number);
  } else if (str_eq_fold(name, "retry-after")) {
    if (wait->retry_after_ms < 0 && (ms = moment_of_value(value, wall_ms)) > 0)
      wait->retry_after_ms = ms;
  } else if (str_eq_fold(name, "x-should-retry")) {
    wait->should_retry = str_eq_fold(value, "false") ? 0 : -1;
    if (str_eq_fold(value, "true"))
      wait->should_retry = 1;
  } else if (name.n > 12 && (str_has(name, "ratelimit-") || str_has(name, "RateLimit-"))) {
    failure_limit(wait, wall_ms, name, value);
  }
}

/* --- bytes to documents --- */

/* Returns a new reference, NULL if the text is not JSON. */
static json_t *reply_parse(struct reply *r, struct str text) {
  struct jscan_result found;
  text = str_trim(text);
  if (jscan_whole(text, &found) == JSCAN_UTF8) {
    struct buf mended = {0};
    buf_mended(&mended, text);
    r->mended = jscan_whole(buf_view(&mended), &found) == JSCAN_OK;
    buf_deinit(&mended);
  }
  return found.value;
}

static bool on_document(void *ctx, struct str text) {
  struct reply *r = ctx;
  if (r->closed)
    return true;
  json_t *doc = reply_parse(r, text);
  if (doc == NULL) {
    if (!r->ending) /* the last one was cut off: not whole, rather than wrong */
      reply_fail(r, CLASS_PROTOCOL, "an event of the reply is not JSON: %.*s",
                 (int)utf8_floor(text.p, text.n < 80 ? text.n : 80), text.p);
    return r->ending;
  }
  if (json_is_object(json_object_get(doc, "error")) ||
      json_is_string(json_object_get(doc, "error")))
    reply_error(r, doc);
  else if (json_is_object(doc))
    r->dialect->event(r, doc);
  json_decref(doc);
  return true;
}

static bool reply_on_event(void *ctx, struct str type, struct str data) {
  struct reply *r = ctx;
  (void)type;
  if (str_eq_c(str_trim(data), "[DONE]")) {
    reply_close(r);
    return true;
  }
  return data.n == 0 || on_document(r, data);
}

static enum reply_form form_of(const struct reply *r, unsigned char first) {
  if (r->status < 200 || r->status > 299)
    return REPLY_DOCUMENT; /* an error, or something reported as one */
  if (first == '{' || first == '[')
    return r->dialect->lines ? REPLY_LINES : REPLY_DOCUMENT;
  if (first == 0xEF || (first != '\0' && strchr(":deir", first) != NULL))
    return REPLY_EVENTS;
  return REPLY_UNREADABLE;
}

void reply_header(struct reply *r, struct str name, struct str value) {
  if (str_eq_fold(name, "content-type"))
    reply_keep(r->content_type, sizeof r->content_type, value);
  else if (str_eq_fold(name, "location"))
    reply_keep(r->location, sizeof r->location, value);
  else if (name.n > 9) /* the shortest name that says when to come back */
    failure_header(&r->wait, r->wall_ms, name, value);
}

void reply_head(struct reply *r, int status) {
  r->status = status;
  if (status < 200 || status > 299)
    r->document.max = LIMIT_HTTP_ERROR_BYTES;
}

bool reply_body(struct reply *r, struct str bytes) {
  assert(!r->ending);
  while (r->form == REPLY_UNKNOWN && bytes.n > 0) {
    unsigned char first = (unsigned char)bytes.p[0];
    if (first == ' ' || first == '\n' || first == '\r' || first == '\t') {
      bytes = (struct str){bytes.p + 1, bytes.n - 1};
      continue;
    }
    r->form = form_of(r, first);
    if (r->form == REPLY_EVENTS)
      sse_init(&r->sse, LIMIT_HTTP_EVENT_BYTES, reply_on_event, r);
    else if (r->form == REPLY_LINES)
      ndjson_init(&r->lines, LIMIT_HTTP_EVENT_BYTES, on_document, r);
  }
  switch (r->form) {
  case REPLY_UNKNOWN:
    return true;
  case REPLY_EVENTS:
    if (!sse_feed(&r->sse, bytes) && r->sse.over_max)
      reply_fail(r, CLASS_PROTOCOL, "an event of the reply is larger than %u bytes",
                 LIMIT_HTTP_EVENT_BYTES);
    return !r->sse.stopped && !r->sse.over_max;
  case REPLY_LINES:
    if (!ndjson_feed(&r->lines, bytes) && r->lines.over_max)
      reply_fail(r, CLASS_PROTOCOL, "a line of the reply is longer than %u bytes",
                 LIMIT_HTTP_EVENT_BYTES);
    return !r->lines.stopped && !r->lines.over_max;
  case REPLY_DOCUMENT:
    buf_str(&r->document, bytes);
    return !r->document.cut;
  case REPLY_UNREADABLE:
    buf_append(&r->document, bytes.p, bytes.n < 80 ? bytes.n : 80);
    return r->document.n < 80; /* enough to tell what it is */
  }
  return false;
}

/* --- the end --- */

static void end_document(struct reply *r, bool whole) {
  json_auto_t *doc = reply_parse(r, buf_view(&r->document));
  if (doc == NULL)
    reply_fail(r, whole ? CLASS_PROTOCOL : CLASS_NETWORK,
               whole ? "the reply is not JSON" : "the connection broke before the reply was whole");
  else if (json_object_get(doc, "error") && !json_is_null(json_object_get(doc, "error")))
    reply_error(r, doc);
  else if (json_is_object(doc))
    r->dialect->whole(r, doc);
  else
    reply_fail(r, CLASS_PROTOCOL, "the reply is not a JSON object");
}

static void end_success(struct reply *r, bool whole) {
  r->ending = true;
  switch (r->form) {
  case REPLY_UNKNOWN:
    if (whole)
      reply_fail(r, CLASS_NETWORK, "the reply is empty (HTTP %d)", r->status);
    break;
  case REPLY_EVENTS:
    if (!sse_end(&r->sse) && whole && r->sse.over_max)
      reply_fail(r, CLASS_PROTOCOL, "an event of the reply is larger than %u bytes",
                 LIMIT_HTTP_EVENT_BYTES);
    break;
  case REPLY_LINES:
    if (!ndjson_end(&r->lines) && whole && r->lines.over_max)
      reply_fail(r, CLASS_PROTOCOL, "a line of the reply is longer than %u bytes",
                 LIMIT_HTTP_EVENT_BYTES);
    break;
  case REPLY_DOCUMENT:
    end_document(r, whole);
    break;
  case REPLY_UNREADABLE: {
    struct buf shown = {0};
    buf_safe(&shown, buf_view(&r->document), false);
    reply_fail(r, CLASS_PROTOCOL,
               "the reply is neither JSON nor an event stream (%s): is base_url right? It begins: "
               "%.*s",
               r->content_type[0] ? r->content_type : "no content type",
               (int)utf8_floor(buf_c(&shown), shown.n < 100 ? shown.n : 100), buf_c(&shown));
    buf_deinit(&shown);
    break;
  }
  }
  think_flush(&r->think, on_part, r);
  reply_pass(r, &r->of_text, false, STR(""), &r->text, true);
  reply_pass(r, &r->of_thinking, true, STR(""), NULL, true);
  reply_pass(r, &r->of_tool, false, STR(""), &r->tool, true);
  size_t bare = 0;
  if (r->dialect->local && r->think.state == THINK_OUTSIDE && !r->thought)
    bare = think_bare_end(buf_view(&r->text));
  if (bare > 0) {
    r->thought = true;
    memmove(r->text.p, r->text.p + bare, r->text.n - bare + 1);
    r->text.n -= bare;
  }
  if (r->class == CLASS_NONE && !r->over)
    reply_fail(r, CLASS_NETWORK, "the reply ended before the model had finished");
  if (r->class == CLASS_NONE && r->refusal.n > 0 && r->text.n == 0)
    reply_fail(r, CLASS_REFUSED, "the model refused");
}

void reply_end(struct reply *r, bool whole) {
  if (r->status >= 200 && r->status <= 299)
    end_success(r, whole);
  else
    failure_status(r, reply_parse(r, buf_view(&r->document)));
  if (r->class == CLASS_REFUSED && r->refusal.n > 0) {
    struct buf shown = {0};
    buf_safe(&shown, buf_view(&r->refusal), false);
    print_into(r->message, sizeof r->message, "the model refused: %.*s",
               (int)utf8_floor(shown.p, shown.n < 300 ? shown.n : 300), shown.p);
    buf_deinit(&shown);
  }
  /* Fills retry_after_ms of a failed reply: fields first, its words second. */
  int64_t ms = r->wait.retry_after_ms;
  if (r->class != CLASS_NONE) {
    bool any = r->wait.used_up == 0 && !r->wait.told_left && r->class == CLASS_RATE_LIMIT;
    for (unsigned i = 0; i < LIMIT_OF_COUNT && r->wait.retry_after_ms < 0; i++)
      if (((r->wait.used_up & (1u << i)) || (any && i != LIMIT_OF_PLAN)) &&
          r->wait.resets_ms[i] > ms)
        ms = r->wait.resets_ms[i];
    bool transient = error_class_is_transient(r->class);
    r->elsewhere |= r->wait.should_retry == 0 && transient;
    if (r->wait.should_retry == 0 && transient)
      r->class = r->class == CLASS_RATE_LIMIT ? CLASS_QUOTA : CLASS_BAD_REQUEST;
    else if (r->wait.should_retry == 1 && r->status >= 400 && r->class == CLASS_BAD_REQUEST)
      r->class = CLASS_OVERLOADED;
    if (r->class == CLASS_QUOTA && r->passes && !r->lasts)
      r->class = CLASS_RATE_LIMIT;
    if (r->class != CLASS_RATE_LIMIT && r->class != CLASS_OVERLOADED)
      r->retry_after_ms = 0;
    else if (ms > 0 && !r->lasts)
      r->retry_after_ms = ms;
  }
}
