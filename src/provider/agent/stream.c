/* Reads the output of one run by its profile's rules, the exec driver: bytes to values, values to
 * news, and by the evidence the result of the run. Drivers of protocols use its parts. */
#include "provider/agent/stream.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "format/pointer.h"
#include "os/clock.h"
#include "provider/agent/classify.h"
#include "provider/child.h"
#include "provider/moment.h"
#include "json/scan.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- telling --- */

static void stream_event_tell(struct driver *d, enum provider_news_kind kind, struct str text,
                              json_t *data) {
  const struct provider_news news = {.kind = kind, .text = text, .data = data};
  d->text_told = d->text_told || kind == NEWS_TEXT;
  d->thought = d->thought || kind == NEWS_THINKING;
  if (d->host.news != NULL)
    d->host.news(d->host.ctx, &news);
  json_decref(data);
}

void stream_tell(struct driver *d, enum provider_news_kind kind, struct str text, json_t *data) {
  if (kind == NEWS_TEXT || kind == NEWS_THINKING || kind == NEWS_TOOL) { /* the try succeeded */
    buf_clear(&d->retry);
    d->retry_count = 0;
  }
  stream_event_tell(d, kind, text, data);
}

static void keep_piece(struct driver *d, struct str piece) {
  if (d->is_text)
    head_tail_append(&d->printed, piece);
  else
    buf_str(&d->told, piece);
}

void stream_tell_piece(struct driver *d, struct str piece) {
  buf_auto_t clean = {0};
  if (!secrets_are_empty(d->secrets)) {
    redactor_push(&d->of_text, piece, &clean);
    piece = buf_view(&clean);
  }
  keep_piece(d, piece);
  if (piece.n > 0)
    stream_tell(d, NEWS_TEXT, piece, NULL);
}

void stream_tell_thinking(struct driver *d, struct str piece) {
  buf_auto_t clean = {0};
  redactor_push(&d->of_thinking, piece, &clean);
  if (clean.n > 0)
    stream_tell(d, NEWS_THINKING, buf_view(&clean), NULL);
}

/* Reports a message as far as it has come: only what is new is passed on, and nothing if it
 * contradicts what was passed on before. */
void stream_tell_rest(struct driver *d, struct str whole) {
  struct str told = buf_view(&d->told);
  buf_clear(&d->of_text.held); /* the whole contains it */
  bool grows = whole.n >= told.n && (told.n == 0 || memcmp(whole.p, told.p, told.n) == 0);
  if (grows && whole.n > told.n)
    stream_tell(d, NEWS_TEXT, (struct str){whole.p + told.n, whole.n - told.n}, NULL);
  buf_set(&d->told, whole);
}

/* Appends a message after others, without what did not fit into it. */
static void stream_add_message(struct buf *to, const struct buf *told) {
  buf_str(to, buf_view(told));
  to->cut |= told->cut;
  to->dropped += told->dropped;
}

void stream_end_message(struct driver *d, struct str id) {
  bool same = id.n > 0 && str_eq(id, buf_view(&d->last_id));
  if (d->told.n > 0) {
    if (d->all.n > 0 && !same && id.n > 0)
      buf_puts(&d->all, "\n\n");
    stream_add_message(&d->all, &d->told);
    if (!same)
      buf_clear(&d->last);
    stream_add_message(&d->last, &d->told);
  }
  buf_set(&d->last_id, id);
  buf_clear(&d->told);
}

/* --- values --- */

/* Finds what a rule's value names in `at`. Returns a value of that, or NULL; sets *literal to a
 * literal. */
static const json_t *stream_event_find(const struct profile_value *value, const json_t *at,
                                       struct str *literal) {
  *literal = (struct str){NULL, 0};
  for (size_t i = 0; i < value->count; i++) {
    if (value->items[i].n > 0 && value->items[i].p[0] != '/') {
      *literal = value->items[i];
      return NULL;
    }
    const json_t *found = pointer_get(at, value->items[i]);
    if (found != NULL && !json_is_null(found) &&
        !(json_is_string(found) && json_string_length(found) == 0))
      return found;
  }
  return NULL;
}

/* Returns the value as text; numbers and objects as JSON, which then lives in `scratch`. */
static struct str find_text(const struct profile_value *value, const json_t *at,
                            struct buf *scratch) {
  struct str literal;
  const json_t *found = stream_event_find(value, at, &literal);
  if (found == NULL)
    return literal;
  if (json_is_string(found))
    return json_view(found);
  buf_clear(scratch);
  json_write(found, scratch);
  return buf_view(scratch);
}

static bool fits_values(const json_t *values, const json_t *found) {
  JSON_EACH(values, i, wanted) {
    if (found == NULL ? json_is_null(wanted) : json_same(wanted, found))
      return true;
  }
  if (json_is_array(values))
    return false;
  return found == NULL ? json_is_null(values) : json_same(values, found);
}

static bool stream_event_fits(struct driver *d, const struct profile_matches *matches,
                              const json_t *at) {
  for (size_t i = 0; i < matches->count; i++) {
    const struct profile_match *m = &matches->items[i];
    const json_t *found = pointer_get(at, m->pointer);
    bool ok = false;
    switch (m->kind) {
    case MATCH_VALUES:
      ok = fits_values(m->values, found);
      break;
    case MATCH_PRESENT:
      ok = found != NULL && !json_is_null(found);
      break;
    case MATCH_PATTERN:
      ok = json_is_string(found) && pattern_match(m->pattern, &d->scratch, json_string_value(found),
                                                  json_string_length(found)) == PATTERN_MATCH;
      break;
    }
    if (!ok)
      return false;
  }
  return true;
}

/* --- news --- */

/* Keeps the last notice and counts; gives up if client_retries are used up and the reason is
 * known. */
static void stream_retry_noted(struct driver *d, int status, struct str reason) {
  buf_clear(&d->retry);
  d->retry_status = status;
  if (status > 0 && classify_status(reason) == 0)
    buf_printf(&d->retry, "HTTP status %d, ", status);
  buf_str(&d->retry, reason);
  d->retry_count++;
  if (d->client_retries >= 0 && d->retry_count > d->client_retries && d->host.give_up != NULL &&
      stream_retry_class(d) != CLASS_NONE)
    d->host.give_up(d->host.ctx);
}

/* Reports a message that goes on: its end may be the beginning of a secret's value. */
static void tell_growing(struct driver *d, struct str whole) {
  struct redactor r;
  buf_auto_t clean = {0};
  redactor_init(&r, d->secrets);
  redactor_push(&r, whole, &clean);
  stream_tell_rest(d, buf_view(&clean));
  redactor_deinit(&d->of_text);
  d->of_text = r;
}

/* Puts a text into a record: at most LIMIT_ERROR_TEXT_BYTES; nothing if it is empty. */
static void stream_put_text(json_t *object, const char *name, struct str text) {
  if (text.n > LIMIT_ERROR_TEXT_BYTES)
    text.n = utf8_floor(text.p, LIMIT_ERROR_TEXT_BYTES);
  if (text.p != NULL && text.n > 0)
    json_object_set_new(object, name, json_text(text));
}

static void put_number(json_t *object, const char *name, const struct profile_value *value,
                       const json_t *at) {
  struct str literal;
  const json_t *found = stream_event_find(value, at, &literal);
  if (json_is_integer(found))
    json_object_set(object, name, (json_t *)found);
  else if (json_is_real(found) && fabs(json_real_value(found)) < 1e15)
    json_object_set_new(object, name, json_integer((json_int_t)json_real_value(found)));
}

void stream_session(struct driver *d, struct str id) {
  if (id.n > 0 && id.n < sizeof d->session && !str_eq_c(id, d->session)) {
    memcpy(d->session, id.p, id.n);
    d->session[id.n] = '\0';
    stream_tell(d, NEWS_SESSION, (struct str){0},
                json_pack("{s:o}", "provider_session", json_text(id)));
  }
}

static void say_texts(struct driver *d, const struct profile_rule *r, const json_t *at) {
  buf_auto_t scratch = {0}, id_scratch = {0};
  if (r->delta.count > 0)
    stream_tell_piece(d, find_text(&r->delta, at, &scratch));
  if (r->cumulative.count > 0)
    tell_growing(d, find_text(&r->cumulative, at, &scratch));
  if (r->thinking.count > 0)
    stream_tell_thinking(d, find_text(&r->thinking, at, &scratch));
  if (r->message.count > 0) {
    struct str text = find_text(&r->message, at, &scratch);
    if (text.n > 0) {
      stream_tell_rest(d, text);
      stream_end_message(d, find_text(&r->message_id, at, &id_scratch));
    }
  }
}

void stream_tool(struct driver *d, const struct tool_summary *tool) {
  stream_tell(d, NEWS_TOOL, (struct str){0}, tool_summary_data(tool));
}

static const json_t *tool_value(const struct profile_rule *r, enum tool_field field,
                                const json_t *at) {
  struct str literal;
  return stream_event_find(&r->tool[field], at, &literal);
}

static void stream_event_say_tool(struct driver *d, const struct profile_rule *r,
                                  const json_t *at) {
  struct buf names[3] = {{0}, {0}, {0}};
  struct str literal, state = find_text(&r->tool[TOOL_STATE], at, &names[2]);
  char word[16];
  struct tool_summary tool = {.name = find_text(&r->tool[TOOL_NAME], at, &names[0]),
                              .id = find_text(&r->tool[TOOL_ID], at, &names[1]),
                              .failed = -1,
                              .input = tool_value(r, TOOL_INPUT, at),
                              .output = tool_value(r, TOOL_OUTPUT, at),
                              .exit = tool_value(r, TOOL_EXIT, at)};
  print_into(word, sizeof word, STR_FMT, STR_ARG(state));
  tool.state = state.n > 0 ? word : NULL;
  if (r->tool[TOOL_FAILED].count > 0) {
    const json_t *failed = stream_event_find(&r->tool[TOOL_FAILED], at, &literal);
    tool.failed =
        json_is_true(failed) || json_is_object(failed) || json_is_string(failed) || literal.n > 0;
  }
  json_t *data = tool_summary_data(&tool);
  /* Keeps a tool's name: later lines may give only its id. */
  const char *id = json_string_value(json_object_get(data, "id"));
  const char *name = json_string_value(json_object_get(data, "name"));
  if (id != NULL && name != NULL) {
    buf_clear(&d->tool_id);
    buf_clear(&d->tool_name);
    buf_str(&d->tool_id, str_from(id));
    buf_str(&d->tool_name, str_from(name));
  }
  stream_tell(d, NEWS_TOOL, (struct str){0}, data);
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    buf_deinit(&names[i]);
}

static bool add_number(void *ctx, const json_t *value) {
  double *sum = ctx;
  if (json_is_number(value))
    *sum = (isnan(*sum) ? 0 : *sum) + json_number_value(value);
  return true;
}

void stream_usage(struct driver *d, json_t *data) {
  if (json_object_size(data) == 0) {
    json_decref(data);
    return;
  }
  json_keep(&d->usage, data);
  stream_tell(d, NEWS_USAGE, (struct str){0}, data);
}

static const char *const scope_words[] = {"call", "request", "conversation", "turn"};
static const char *const usage_names[] = {"input",     "output",      "cached",
                                          "reasoning", "cache_write", "cost_usd"};

static void put_told(json_t *to, enum usage_field name, const struct profile_value *from,
                     const json_t *at) {
  double sum = NAN;
  for (size_t k = 0; k < from->count; k++)
    pointer_each(at, from->items[k], add_number, &sum);
  /* Clients report a cost of 0 for models whose price they do not know. */
  if (sum >= 0 && sum <= 1e15 && (name != USAGE_COST || sum > 0))
    json_object_set_new(to, usage_names[name],
                        name == USAGE_COST ? json_real(sum) : json_integer((json_int_t)sum));
}

json_t *stream_usage_added(const json_t *a, const json_t *b, int sign) {
  json_t *sum = json_object();
  for (size_t i = 0; i < ARRAY_LEN(usage_names); i++) {
    const json_t *one = json_object_get(a, usage_names[i]),
                 *two = json_object_get(b, usage_names[i]);
    if (sign < 0 && two == NULL && json_object_get(b, "input") != NULL)
      continue; /* an older log knew nothing of it: nor can the difference */
    double n = json_number_value(one) + sign * json_number_value(two);
    if (n < 0) {
      json_decref(sum);
      return NULL;
    }
    if (one != NULL || two != NULL)
      json_object_set_new(sum, usage_names[i],
                          i == USAGE_COST ? json_real(n) : json_integer((json_int_t)n));
  }
  return sum;
}

void stream_usage_total(struct driver *d, json_t *total) {
  json_t *own = NULL;
  if (!d->resumed)
    own = json_clone_top(total);
  else if (d->before != NULL)
    own = stream_usage_added(total, d->before, -1);
  if (own == NULL)
    own = json_pack("{s:s}", "told", "none");
  json_object_set_new(own, "total", total);
  stream_usage(d, own);
}

static double used_of(const json_t *usage, enum usage_field name) {
  return json_number_value(json_object_get(usage, usage_names[name]));
}

/* Returns the tokens that make most of the cost: those from a cache are cheap. */
static double dear_tokens(const json_t *usage) {
  return used_of(usage, USAGE_INPUT) - used_of(usage, USAGE_CACHED) + used_of(usage, USAGE_OUTPUT);
}

/* Returns true if the cost that was told is that of the conversation, not of the call: versions of
 * a client differ. Such a sum holds what it held before and what the call has used. Without sums of
 * tokens the price of the tokens before says what is nearer; older logs have only the cost. */
static bool is_of_conversation(const json_t *all, const json_t *before, const json_t *own) {
  double was = used_of(before, USAGE_COST), is = used_of(all, USAGE_COST), tokens;
  double input = used_of(all, USAGE_INPUT) - used_of(own, USAGE_INPUT);
  double output = used_of(all, USAGE_OUTPUT) - used_of(own, USAGE_OUTPUT);
  if (was <= 0 || is < was)
    return false;
  if (json_object_get(own, "input") == NULL) /* the protocol says so, and nothing else does */
    return true;
  if (json_object_get(all, "input") == NULL && (tokens = dear_tokens(before)) > 0)
    return is >= was / 2 + was / tokens * dear_tokens(own);
  if (json_object_get(before, "input") == NULL)
    return input + output != 0;
  return input >= used_of(before, USAGE_INPUT) && output >= used_of(before, USAGE_OUTPUT);
}

/* The total keeps what was told, for the call that continues the conversation. */
json_t *stream_usage_turn(const struct driver *d, json_t *all, json_t *data) {
  json_t *own = stream_usage_added(data, d->usage, 1);
  const json_t *before = d->resumed ? d->before : NULL;
  double cost = used_of(data, USAGE_COST);
  if (cost > 0) {
    json_object_set_new(all, "cost_usd", json_real(cost));
    bool sum = is_of_conversation(all, before, own);
    if (json_object_get(all, "input") == NULL && json_object_get(own, "input") != NULL) {
      json_t *known = stream_usage_added(own, sum ? before : NULL, 1); /* as many as are known */
      json_object_update_missing(all, known);
      json_decref(known);
    }
    if (sum)
      cost = round((cost - used_of(before, USAGE_COST)) * 1e12) / 1e12;
    json_object_set_new(own, "cost_usd", json_real(cost));
    json_object_set_new(own, "cost_of", json_string(sum ? "conversation" : "call"));
    json_object_set(own, "total", all);
  } else if (json_object_get(d->usage, "total") != NULL) {
    json_object_set(own, "total", json_object_get(d->usage, "total"));
  }
  json_decref(all);
  json_decref(data);
  return own;
}

/* Counts requests: a client that keeps asking, whatever the reply, would go on for as long as it
 * may. */
static void count_request(struct driver *d) {
  if (++d->request_count != (size_t)d->profile->max_requests || d->host.give_up == NULL)
    return;
  struct buf why = {0};
  buf_printf(&why, "it made %zu requests in one call: it was ended (max_requests)",
             d->request_count);
  stream_trouble(d, 0, buf_view(&why));
  d->trouble.class = CLASS_LENGTH;
  buf_deinit(&why);
  d->host.give_up(d->host.ctx);
}

/* Books each number by what it covers. What is told of the conversation is kept as `total`, for the
 * call that continues it; where an earlier call's is not known, only a part is. */
static json_t *usage_by_field(const struct driver *d, const struct profile_rule *r,
                              const json_t *told) {
  json_t *own = json_object(), *total = json_object();
  bool partial = false;
  for (enum usage_field i = USAGE_INPUT; i <= USAGE_COST; i++) {
    const json_t *is = json_object_get(told, usage_names[i]);
    const json_t *was = json_object_get(d->usage, usage_names[i]);
    double n = json_number_value(is != NULL ? is : was);
    bool sums = is != NULL && r->usage_of_field[i] == USAGE_OF_CONVERSATION;
    if (is != NULL && r->usage_of_field[i] == USAGE_OF_REQUEST)
      n += json_number_value(was);
    const json_t *before = sums && d->resumed ? json_object_get(d->before, usage_names[i]) : NULL;
    bool lost = sums && d->resumed && (before == NULL || n < json_number_value(before));
    partial = partial || lost;
    if (sums)
      json_object_set(total, usage_names[i], (json_t *)is);
    if ((is == NULL && was == NULL) || lost)
      continue;
    n -= json_number_value(before);
    if (i == USAGE_COST)
      json_object_set_new(own, usage_names[i], json_real(round(n * 1e12) / 1e12));
    else
      json_object_set_new(own, usage_names[i], json_integer((json_int_t)n));
  }
  if (partial)
    json_object_set_new(own, "told", json_string("partial"));
  if (r->usage_of_field[USAGE_COST] != USAGE_OF_CALL && json_object_get(own, "cost_usd") != NULL)
    json_object_set_new(own, "cost_of", json_string(scope_words[r->usage_of_field[USAGE_COST]]));
  json_object_update_missing(total, json_object_get(d->usage, "total"));
  if (json_object_size(total) > 0)
    json_object_set(own, "total", total);
  json_decref(total);
  return own;
}

static void stream_event_say_usage(struct driver *d, const struct profile_rule *r,
                                   const json_t *at) {
  json_t *data = json_object(), *all;
  for (enum usage_field i = USAGE_INPUT; i <= USAGE_COST; i++)
    put_told(data, i, &r->usage[i], at);
  if (json_object_size(data) == 0) {
    json_decref(data);
    return;
  }
  switch (r->usage_of) {
  case USAGE_OF_CALL:
    stream_usage(d, data);
    return;
  case USAGE_OF_REQUEST:
    count_request(d);
    stream_usage(d, stream_usage_added(data, d->usage, 1));
    json_decref(data);
    return;
  case USAGE_OF_CONVERSATION:
    stream_usage_total(d, data);
    return;
  case USAGE_OF_TURN:
    all = json_object();
    put_told(all, USAGE_INPUT, &r->usage[USAGE_ALL_INPUT], at);
    put_told(all, USAGE_OUTPUT, &r->usage[USAGE_ALL_OUTPUT], at);
    stream_usage(d, stream_usage_turn(d, all, data));
    return;
  case USAGE_OF_FIELD:
    if (r->usage_of_field[USAGE_INPUT] == USAGE_OF_REQUEST)
      count_request(d);
    stream_usage(d, usage_by_field(d, r, data));
    json_decref(data);
    return;
  }
  BUG("tokens of nobody");
}

/* Reads which try it is, and of how many: "Reconnecting... 1/5". */
static void put_tries(json_t *data, struct str reason) {
  for (size_t i = 1; i + 1 < reason.n; i++) {
    if (reason.p[i] != '/' || !isdigit((unsigned char)reason.p[i - 1]) ||
        !isdigit((unsigned char)reason.p[i + 1]))
      continue;
    size_t from = i, to = i + 1;
    while (from > 0 && isdigit((unsigned char)reason.p[from - 1]))
      from--;
    while (to < reason.n && isdigit((unsigned char)reason.p[to]))
      to++;
    long attempt, of;
    if (i - from < 5 && to - i < 6 &&
        str_to_long((struct str){reason.p + from, i - from}, &attempt) &&
        str_to_long((struct str){reason.p + i + 1, to - i - 1}, &of) && attempt <= of) {
      json_object_set_new(data, "attempt", json_integer(attempt));
      json_object_set_new(data, "of", json_integer(of));
    }
    return;
  }
}

void stream_retry(struct driver *d, json_t *data, struct str reason) {
  stream_put_text(data, "reason", reason);
  stream_retry_noted(d, (int)json_integer_value(json_object_get(data, "status")), reason);
  if (!d->text_of_all) {
    buf_clear(&d->of_text.held);
    buf_clear(&d->told); /* the message that broke off starts again */
  }
  stream_tell(d, NEWS_RETRY, (struct str){0}, data);
}

static void stream_event_say_retry(struct driver *d, const struct profile_rule *r,
                                   const json_t *at) {
  buf_auto_t scratch = {0};
  json_t *data = json_object();
  struct str reason = find_text(&r->retry[RETRY_REASON], at, &scratch);
  int status = classify_status(reason);
  put_number(data, "attempt", &r->retry[RETRY_ATTEMPT], at);
  put_number(data, "of", &r->retry[RETRY_OF], at);
  put_number(data, "delay_ms", &r->retry[RETRY_DELAY_MS], at);
  put_number(data, "status", &r->retry[RETRY_STATUS], at);
  if (json_object_get(data, "attempt") == NULL)
    put_tries(data, reason);
  if (status > 0 && json_object_get(data, "status") == NULL)
    json_object_set_new(data, "status", json_integer(status));
  stream_retry(d, data, reason);
}

static void say_permission(struct driver *d, const struct profile_rule *r, const json_t *at) {
  struct buf scratch = {0};
  json_t *data = json_object();
  struct str message = find_text(&r->permission[ASKED_MESSAGE], at, &scratch);
  stream_put_text(data, "message", message);
  buf_set(&d->denied, message);
  struct str tool = find_text(&r->permission[ASKED_TOOL], at, &scratch);
  bool is_id = tool.n > 0 && str_eq(tool, buf_view(&d->tool_id));
  stream_put_text(data, "tool", is_id ? buf_view(&d->tool_name) : tool);
  stream_put_text(data, "answer", find_text(&r->permission[ASKED_ANSWER], at, &scratch));
  buf_deinit(&scratch);
  stream_tell(d, NEWS_PERMISSION, (struct str){0}, data);
}

/* --- questions, with the answers that they got --- */

static void question_tell(struct driver *d, const struct question *question) {
  buf_auto_t message = {.max = LIMIT_ERROR_TEXT_BYTES};
  json_t *data = json_object();
  buf_str(&message, question->title);
  if (!question->allowed && question->reason != NULL && question->reason[0] != '\0')
    buf_printf(&message, "%s%s", message.n > 0 ? ": " : "", question->reason);
  stream_put_text(data, "message", buf_view(&message));
  stream_put_text(data, "tool", question->tool);
  stream_put_text(data, "answer", str_from(question->allowed ? "allowed" : "denied"));
  if (!question->allowed)
    buf_set(&d->denied, buf_view(&message));
  stream_tell(d, NEWS_PERMISSION, (struct str){0}, data);
}

static void question_drop(struct questions *q, size_t i) {
  json_decref(q->open[i].id);
  json_decref(q->open[i].what);
  q->count--;
  memmove(&q->open[i], &q->open[i + 1], (q->count - i) * sizeof q->open[0]);
}

/* Tells an open question with the recorded answer, or else with ours. */
static void question_settle(struct driver *d, size_t i, const bool *recorded) {
  const json_t *what = d->questions.open[i].what;
  const struct question question = {
      .tool = json_view_at(what, "tool"),
      .title = json_view_at(what, "title"),
      .allowed = recorded ? *recorded : json_is_true(json_object_get(what, "allowed")),
      .reason = json_word_at(what, "reason")};
  question_tell(d, &question);
  question_drop(&d->questions, i);
}

void question_ask(struct driver *d, const json_t *id, const struct question *question) {
  struct questions *q = &d->questions;
  if (!q->recorded) {
    question_tell(d, question);
    return;
  }
  if (q->count == ARRAY_LEN(q->open))
    question_settle(d, 0, NULL);
  q->open[q->count].id = json_incref((json_t *)id);
  q->open[q->count++].what =
      json_pack("{s:o, s:o, s:s, s:b}", "tool", json_text(question->tool), "title",
                json_text(question->title), "reason", question->reason ? question->reason : "",
                "allowed", question->allowed);
}

void question_answered(struct driver *d, const json_t *id, bool allowed) {
  for (size_t i = 0; i < d->questions.count; i++)
    if (json_same(d->questions.open[i].id, id)) {
      question_settle(d, i, &allowed);
      return;
    }
}

/* --- errors --- */

void stream_kind(struct driver *d, struct str word) {
  enum error_class class = profile_class(d->profile, word);
  if (class != CLASS_NONE && d->trouble.class == CLASS_NONE)
    d->trouble.class = class;
  d->trouble.there = true;
  buf_str(&d->trouble.kinds, word);
  buf_putc(&d->trouble.kinds, '\n');
}

void stream_trouble(struct driver *d, int status, struct str message) {
  d->trouble.there = true;
  if (status > 0)
    d->trouble.status = status;
  if (message.n > 0) {
    buf_set(&d->trouble.message, message);
  }
}

/* Returns whether a task runs that is waited for: none that outlived an earlier call's wait. */
static bool task_awaited(const struct driver *d) {
  JSON_MEMBERS(d->tasks, id, what) {
    size_t i = 0;
    while (i < json_array_size(d->outlived) && !json_same(what, json_array_get(d->outlived, i)))
      i++;
    if (i == json_array_size(d->outlived))
      return true;
  }
  return false;
}

/* Tells the host whether the client, whose final event has come, works on. */
static void tell_over(struct driver *d) {
  d->awaited = d->works_on || d->unread > 0 || task_awaited(d);
  if (d->awaited && d->host.awaits != NULL)
    d->host.awaits(d->host.ctx, d->works_on);
  else if (!d->awaited && d->host.answered != NULL)
    d->host.answered(d->host.ctx);
}

void stream_finish(struct driver *d, enum profile_end end) {
  if (end == STREAM_END_ERROR)
    d->trouble.there = true;
  d->end = end;
  d->works_on = false;
  if (end == STREAM_END_ERROR)
    d->unread = 0;
  tell_over(d);
  d->over = !d->awaited;
}

void stream_over(struct driver *d, enum profile_end end) {
  stream_finish(d, end);
  if (d->host.close_stdin != NULL)
    d->host.close_stdin(d->host.ctx);
}

void stream_fail(struct driver *d, enum error_class class, const char *message) {
  stream_trouble(d, 0, str_from(message));
  d->trouble.class = class;
  stream_over(d, STREAM_END_ERROR);
}

void stream_read_steer(struct driver *d, uint64_t key) {
  d->unread -= d->unread > 0;
  if (d->end != STREAM_END_NONE &&
      !d->works_on) { /* it came too late for that turn, and begins another */
    d->works_on = true;
    tell_over(d);
  }
  stream_tell(d, NEWS_STEER, (struct str){0}, json_pack("{sI}", "said", (json_int_t)key));
}

void stream_note(struct driver *d, struct str text) {
  json_t *data = json_object();
  stream_put_text(data, "text", text);
  stream_tell(d, NEWS_NOTE, (struct str){0}, data);
}

/* Keeps what a task does that did not come to its end. */
static void stream_unfinished(struct driver *d, json_t *what) {
  d->unfinished = d->unfinished ? d->unfinished : json_array();
  if (json_array_size(d->unfinished) < LIMIT_AGENT_TASK_COUNT)
    json_array_append(d->unfinished, what);
}

static void follow_tasks(struct driver *d) {
  if (d->known == NULL) {
    d->known = json_object();
    d->tasks = json_object();
  }
}

void stream_task(struct driver *d, struct str id, struct str what, struct str state) {
  const char *key = id.n > 0 ? id.p : "";
  follow_tasks(d);
  json_t *known = json_object_getn(d->known, key, id.n);
  if (what.n > LIMIT_AGENT_TASK_BYTES)
    what.n = utf8_floor(what.p, LIMIT_AGENT_TASK_BYTES);
  if (str_eq_c(state, "end") || str_eq_c(state, "stopped")) {
    if (known != NULL && str_eq_c(state, "stopped"))
      stream_unfinished(d, known);
    (void)json_object_deln(d->tasks, key, id.n);
    (void)json_object_deln(d->known, key, id.n);
  } else if (id.n > 0 && id.n <= LIMIT_AGENT_TASK_BYTES &&
             (known != NULL || json_object_size(d->known) < LIMIT_AGENT_TASK_COUNT)) {
    if (known == NULL)
      json_object_setn_new(d->known, key, id.n, json_text(what.n > 0 ? what : id));
    json_object_setn(d->tasks, key, id.n, json_object_getn(d->known, key, id.n));
  }
}

static void note_task(struct driver *d, const struct profile_rule *r, const json_t *at,
                      struct str state) {
  buf_auto_t id_scratch = {0}, scratch = {0};
  struct str id = find_text(&r->background[TASK_ID], at, &id_scratch);
  stream_task(d, id, find_text(&r->background[TASK_WHAT], at, &scratch), state);
}

/* Follows the client's background tasks. When one has ended, it begins another turn. */
static void say_background(struct driver *d, const struct profile_rule *r, const json_t *at) {
  buf_auto_t scratch = {0};
  struct str literal, state = find_text(&r->background[TASK_STATE], at, &scratch);
  const json_t *all = stream_event_find(&r->background[TASK_ALL], at, &literal);
  if (str_eq_c(state, "turn")) {
    d->works_on = (d->known != NULL || d->steered) && d->end != STREAM_END_NONE;
    d->over = d->over && !d->works_on;
  } else {
    follow_tasks(d);
  }
  if (json_is_array(all))
    json_object_clear(d->tasks);
  for (size_t i = 0; i < json_array_size(all); i++)
    note_task(d, r, json_array_get(all, i), state);
  if (r->background[TASK_ALL].count == 0 && !str_eq_c(state, "turn"))
    note_task(d, r, at, state);
  if (d->end != STREAM_END_NONE && (d->awaited || d->works_on || json_object_size(d->tasks) > 0))
    tell_over(d);
}

static void stream_event_note_error(struct driver *d, const struct profile_rule *r,
                                    const json_t *at) {
  struct trouble *t = &d->trouble;
  const struct profile_value *kinds = &r->error[ERROR_KIND];
  buf_auto_t scratch = {0};
  struct str literal, message = find_text(&r->error[ERROR_MESSAGE], at, &scratch);
  const json_t *status = stream_event_find(&r->error[ERROR_STATUS], at, &literal);
  t->there = true;
  if (message.n > 0) {
    buf_set(&t->message, message);
  }
  if (json_is_integer(status))
    t->status = (int)json_integer_value(status);
  else if (json_is_string(status))
    t->status = classify_status(json_view(status));
  for (size_t i = 0; i < kinds->count; i++) {
    struct profile_value one = {&kinds->items[i], 1};
    struct str word = find_text(&one, at, &scratch);
    enum error_class class = profile_class(d->profile, word);
    if (class != CLASS_NONE && (t->class == CLASS_NONE || i == 0))
      t->class = class;
    buf_str(&t->kinds, word);
    buf_putc(&t->kinds, '\n');
  }
  buf_set(&t->log, find_text(&r->error[ERROR_LOG], at, &scratch));
  const json_t *after = stream_event_find(&r->error[ERROR_RETRY_AFTER_MS], at, &literal);
  if (json_is_number(after) && json_number_value(after) > 0 && json_number_value(after) < 1e13)
    t->retry_after_ms = (int64_t)json_number_value(after);
}

/* --- events --- */

static void stream_event_set_text(struct driver *d, const struct profile_rule *r,
                                  const json_t *at) {
  buf_auto_t scratch = {0};
  struct str text = find_text(&r->text, at, &scratch);
  if (text.n > 0) {
    d->has_text = true;
    buf_set(&d->text, text);
    if (d->known != NULL || d->steered) { /* text and value are of one final event */
      json_decref(d->structured);
      d->structured = NULL;
    }
  }
}

static void apply_rule(struct driver *d, const struct profile_rule *r, const json_t *at) {
  struct buf scratch = {0};
  struct str literal;
  struct buf session = {0};
  stream_session(d, find_text(&r->session, at, &session));
  buf_deinit(&session);
  say_texts(d, r, at);
  if (r->has_tool)
    stream_event_say_tool(d, r, at);
  if (r->has_background)
    say_background(d, r, at);
  if (r->has_usage)
    stream_event_say_usage(d, r, at);
  if (r->has_retry)
    stream_event_say_retry(d, r, at);
  if (r->has_permission)
    say_permission(d, r, at);
  if (r->has_error)
    stream_event_note_error(d, r, at);
  struct str note = find_text(&r->note, at, &scratch);
  if (note.n > 0)
    stream_note(d, note);
  buf_deinit(&scratch);
  stream_event_set_text(d, r, at);
  const json_t *structured = stream_event_find(&r->structured, at, &literal);
  if (structured != NULL)
    json_keep(&d->structured, structured);
  if (r->end != STREAM_END_NONE)
    stream_finish(d, r->end);
}

struct each {
  struct driver *d;
  const struct profile_rule *rule;
};

static void apply_where(struct driver *d, const struct profile_rule *r, const json_t *value) {
  if (stream_event_fits(d, &r->where, value))
    apply_rule(d, r, value);
}

static bool apply_each(void *ctx, const json_t *value) {
  struct each *each = ctx;
  if (!json_is_array(value))
    apply_where(each->d, each->rule, value);
  for (size_t i = 0; i < json_array_size(value); i++)
    apply_where(each->d, each->rule, json_array_get(value, i));
  return true;
}

void stream_event(struct driver *d, const json_t *value) {
  for (size_t i = 0; i < d->profile->rule_count; i++) {
    const struct profile_rule *r = &d->profile->rules[i];
    struct each each = {d, r};
    if (!stream_event_fits(d, &r->when, value) ||
        (r->unless.count > 0 && stream_event_fits(d, &r->unless, value)))
      continue;
    if (r->each.n > 0)
      pointer_each(value, r->each, apply_each, &each);
    else
      apply_where(d, r, value);
  }
}

/* --- the driver --- */

struct driver *stream_open(const struct profile *profile, const struct agent_call *call,
                           const struct driver_host *host) {
  struct driver *d = xcalloc(1, sizeof *d);
  d->profile = profile;
  d->call = call;
  d->value = stream_event;
  d->is_text = profile->dialect == DIALECT_TEXT;
  d->ends_by_exit = profile->ends_by_exit;
  d->text_of_all = profile->text_of_all;
  d->client_retries = profile->client_retries;
  d->host = *host;
  d->schema_asked = call->schema != NULL;
  d->resumed = call->session[0] != '\0';
  d->before = call->request ? call->request->conversation : NULL;
  d->outlived = call->request ? call->request->outlived : NULL;
  d->secrets = host->secrets;
  redactor_init(&d->of_text, d->secrets);
  redactor_init(&d->of_thinking, d->secrets);
  head_tail_init(&d->printed, LIMIT_OUTPUT_BYTES);
  d->told.max = d->last.max = d->all.max = d->text.max = LIMIT_OUTPUT_BYTES;
  d->retry.max = d->denied.max = d->trouble.message.max = LIMIT_EVIDENCE_BYTES;
  d->trouble.kinds.max = d->trouble.log.max = d->last_id.max = LIMIT_EVIDENCE_BYTES;
  return d;
}

void stream_close(struct driver *d) {
  struct buf *const bufs[] = {&d->line,    &d->err_line,  &d->whole,         &d->told,
                              &d->last,    &d->all,       &d->last_id,       &d->text,
                              &d->retry,   &d->denied,    &d->trouble.kinds, &d->trouble.message,
                              &d->tool_id, &d->tool_name, &d->trouble.log,   &d->skipped_type};
  for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
    buf_deinit(bufs[i]);
  head_tail_deinit(&d->printed);
  json_decref(d->structured);
  json_decref(d->usage);
  json_decref(d->tasks);
  json_decref(d->known);
  json_decref(d->unfinished);
  while (d->questions.count > 0)
    question_drop(&d->questions, 0);
  pattern_scratch_deinit(&d->scratch);
  free(d->own);
  redactor_deinit(&d->of_text);
  redactor_deinit(&d->of_thinking);
  free(d);
}

static void one_value(struct driver *d, const json_t *value) {
  d->event_count++;
  d->value(d, value);
}

/* Trims from both ends what a terminal does not show: white space, other control characters, a byte
 * order mark. */
static struct str bare(struct str text) {
  (void)str_drop(&text, "\xEF\xBB\xBF");
  while (text.n > 0 && ((unsigned char)text.p[0] <= ' ' || text.p[0] == 0x7F))
    text = (struct str){text.p + 1, text.n - 1};
  while (text.n > 0 && ((unsigned char)text.p[text.n - 1] <= ' ' || text.p[text.n - 1] == 0x7F))
    text.n--;
  return text;
}

/* Reads JSON as clients write it. They cut text between the two halves of a surrogate pair and
 * write each half as an escape. jansson's reader refuses that, and integers of more than 64 bits;
 * ours does not. jansson's comes first because it takes eight times as many levels. */
json_t *stream_read_json(struct str text) {
  json_t *value = json_loadb(text.p ? text.p : "", text.n, JSON_ALLOW_NUL, NULL);
  struct jscan_result result;
  if (value != NULL || text.n == 0 || (text.p[0] != '{' && text.p[0] != '['))
    return value;
  (void)jscan_whole(str_trim(text), &result);
  return result.value;
}

/* Reads a line or document with one value, or an array of them; false: it is not JSON. */
static bool stream_read_value(struct driver *d, struct str text) {
  struct str trimmed = bare(text);
  const char *over = NULL;
  if (trimmed.n > 0 && trimmed.p[0] != '{' && trimmed.p[0] != '[')
    over = memrchr(trimmed.p, '\r', trimmed.n);
  if (over != NULL) /* overwritten, as the line of a progress display is */
    trimmed = bare((struct str){over, trimmed.n - (size_t)(over - trimmed.p)});
  if (trimmed.n == 0 || (trimmed.p[0] != '{' && trimmed.p[0] != '['))
    return false;
  json_t *value = stream_read_json(trimmed);
  if (value == NULL)
    return false;
  if (json_is_object(value))
    one_value(d, value);
  for (size_t i = 0; i < json_array_size(value); i++)
    if (json_is_object(json_array_get(value, i)))
      one_value(d, json_array_get(value, i));
  json_decref(value);
  return true;
}

/* --- bytes --- */

/* Drops escape sequences: JSON never holds an ESC, and no answer needs one. Bytes that are not text
 * stay. */
static void drop_escapes(struct driver *d) {
  if (!d->is_text || utf8_valid(d->line.p, d->line.n))
    d->line.n = escapes_drop(d->line.p, d->line.n);
}

/* Reports text without lines in pieces. A character or sequence that may be cut at the end of a
 * piece waits. */
static void tell_part_of_line(struct driver *d) {
  enum { SEQUENCE_BYTES = 64 };
  struct buf rest = {0};
  size_t n = utf8_floor(d->line.p, d->line.n);
  const char *escape = memrchr(d->line.p, 0x1B, n);
  if (escape != NULL && (size_t)(d->line.p + n - escape) < SEQUENCE_BYTES)
    n = (size_t)(escape - d->line.p);
  buf_append(&rest, d->line.p + n, d->line.n - n);
  d->line.n = n;
  d->line.p[n] = '\0';
  drop_escapes(d);
  stream_tell_piece(d, buf_view(&d->line));
  buf_deinit(&d->line);
  d->line = rest;
}

static void stream_whole_line(struct driver *d) {
  bool text = d->is_text;
  if (!text && str_trim(buf_view(&d->line)).n == 0) {
    buf_clear(&d->line);
    return;
  }
  drop_escapes(d);
  if (text) {
    buf_putc(&d->line, '\n');
    stream_tell_piece(d, buf_view(&d->line));
    buf_clear(&d->line);
    return;
  }
  (void)secrets_hide(d->secrets, &d->line);
  if (!utf8_valid(d->line.p, d->line.n)) { /* the line is still worth keeping */
    struct buf mended = {0};
    buf_mended(&mended, buf_view(&d->line));
    buf_deinit(&d->line);
    d->line = mended;
  }
  if (!stream_read_value(d, buf_view(&d->line))) {
    d->garbage_count++;
    if (d->event_count == 0 && d->whole.n + d->line.n < LIMIT_AGENT_LINE_BYTES) {
      buf_str(&d->whole, buf_view(&d->line));
      buf_putc(&d->whole, '\n');
    }
  }
  if (d->line.cap > LIMIT_INLINE_TEXT_BYTES) /* one long line must not hold memory to the end */
    buf_deinit(&d->line);
  buf_clear(&d->line);
}

static void stderr_line(struct driver *d) {
  d->err_line.n = escapes_drop(d->err_line.p, d->err_line.n);
  (void)secrets_hide(d->secrets, &d->err_line);
  struct str line = str_trim(buf_view(&d->err_line));
  for (size_t i = 0; line.n > 0 && i < d->profile->stderr_rule_count; i++) {
    const struct profile_stderr *rule = &d->profile->stderr_rules[i];
    if (pattern_match(rule->pattern, &d->scratch, line.p, line.n) != PATTERN_MATCH)
      continue;
    const char *words =
        rule->after ? memmem(line.p, line.n, rule->after, strlen(rule->after)) : NULL;
    if (words != NULL) {
      words += strlen(rule->after);
      line = str_trim((struct str){words, line.n - (size_t)(words - line.p)});
    }
    json_t *data = json_object();
    switch (rule->kind) {
    case STDERR_RETRY:
      if (classify_status(line) > 0)
        json_object_set_new(data, "status", json_integer(classify_status(line)));
      stream_retry_noted(d, classify_status(line), line);
      stream_put_text(data, "reason", line);
      stream_tell(d, NEWS_RETRY, (struct str){0}, data);
      break;
    case STDERR_PERMISSION:
      buf_set(&d->denied, line);
      stream_put_text(data, "message", line);
      json_object_set_new(data, "answer", json_string("denied"));
      stream_tell(d, NEWS_PERMISSION, (struct str){0}, data);
      break;
    case STDERR_NOTE:
      json_decref(data);
      stream_note(d, line);
      break;
    }
    break;
  }
  buf_clear(&d->err_line);
}

static void take_stderr(struct driver *d, struct str bytes) {
  if (d->profile->stderr_rule_count == 0)
    return;
  while (bytes.n > 0) {
    const char *end = memchr(bytes.p, '\n', bytes.n);
    size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
    if (d->err_line.n + n <= LIMIT_EVIDENCE_BYTES)
      buf_append(&d->err_line, bytes.p, n);
    if (end == NULL)
      return;
    stderr_line(d);
    bytes = (struct str){end + 1, bytes.n - n - 1};
  }
}

static void note_skipped(struct driver *d) {
  struct buf text = {0};
  buf_printf(&text, "an event%s%.*s of %zu bytes was left out: a line may have %u",
             d->skipped_type.n > 0 ? " " : "", (int)d->skipped_type.n, buf_c(&d->skipped_type),
             d->skipped, LIMIT_AGENT_LINE_BYTES);
  stream_note(d, buf_view(&text));
  buf_deinit(&text);
  d->skipped = 0;
}

/* Returns the type that the beginning of an event names; empty: none is there. */
static struct str event_type(struct str line) {
  enum { BEGINNING_BYTES = 256 };
  static const char *const names[] = {"\"type\":", "\"method\":"};
  if (line.n > BEGINNING_BYTES)
    line.n = BEGINNING_BYTES;
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    const char *at = memmem(line.p, line.n, names[i], strlen(names[i]));
    struct str rest = {at, at ? line.n - (size_t)(at - line.p) : 0};
    const char *first = at ? memchr(at + strlen(names[i]), '"', rest.n - strlen(names[i])) : NULL;
    const char *last = first ? memchr(first + 1, '"', line.n - (size_t)(first + 1 - line.p)) : NULL;
    if (last != NULL)
      return (struct str){first + 1, (size_t)(last - first) - 1};
  }
  return STR("");
}

/* Leaves out a line that is too long to be kept, such as a tool's result of 200 MB, which the
 * answer does not need. The call goes on, unless a protocol would wait for what the line may have
 * been. */
static void skip_line(struct driver *d, size_t n, bool is_whole) {
  if (d->skipped == 0) {
    struct str type = event_type(buf_view(&d->line));
    d->reply_lost = type.n == 0 && d->own != NULL;
    buf_set(&d->skipped_type, type);
    d->skipped = d->line.n;
    d->skipped_count++;
    buf_deinit(&d->line);
  }
  d->skipped += n;
  d->reply_lost |= d->skipped > LIMIT_AGENT_SKIP_BYTES; /* it may have no end */
  if (d->reply_lost && d->host.give_up != NULL)
    d->host.give_up(d->host.ctx);
  if (is_whole)
    note_skipped(d);
}

void stream_output(struct driver *d, int fd, struct str bytes) {
  if (fd != 1) {
    take_stderr(d, bytes);
    return;
  }
  while (bytes.n > 0 && !d->reply_lost) {
    const char *end = memchr(bytes.p, '\n', bytes.n);
    size_t n = end ? (size_t)(end - bytes.p) : bytes.n;
    if (d->skipped > 0 || (d->line.n + n > LIMIT_AGENT_LINE_BYTES && !d->is_text)) {
      skip_line(d, n, end != NULL);
      bytes = (struct str){bytes.p + n + (end != NULL), bytes.n - n - (end != NULL)};
      continue;
    }
    buf_append(&d->line, bytes.p, n);
    bool piece = d->is_text && d->line.n >= LIMIT_PIPE_PIECE_BYTES;
    if (end == NULL && !piece)
      return;
    if (end == NULL) {
      tell_part_of_line(d);
      return;
    }
    stream_whole_line(d);
    bytes = (struct str){end + 1, bytes.n - n - 1};
  }
}

void stream_take_rest(struct driver *d) {
  if (d->line.n > 0 && d->is_text) {
    drop_escapes(d);
    stream_tell_piece(d, buf_view(&d->line)); /* as it is: no newline of ours */
    buf_clear(&d->line);
  }
  if (d->skipped > 0)
    note_skipped(d);
  if (d->line.n > 0)
    stream_whole_line(d);
  if (d->err_line.n > 0)
    stderr_line(d);
  if (d->event_count == 0 && d->whole.n > 0 && stream_read_value(d, buf_view(&d->whole)))
    d->garbage_count = 0;
  buf_deinit(&d->whole);
  /* Reports what was held back: it came before the last notice of a try, if there was one. */
  buf_auto_t clean = {0};
  redactor_flush(&d->of_thinking, &clean);
  if (clean.n > 0)
    stream_event_tell(d, NEWS_THINKING, buf_view(&clean), NULL);
  buf_clear(&clean);
  redactor_flush(&d->of_text, &clean);
  keep_piece(d, buf_view(&clean));
  if (clean.n > 0)
    stream_event_tell(d, NEWS_TEXT, buf_view(&clean), NULL);
}

const struct driver_ops driver_exec = {.name = "exec",
                                       .transport = TRANSPORT_EXEC,
                                       .open = stream_open,
                                       .output = stream_output,
                                       .end = stream_end,
                                       .close = stream_close};

/* --- classes --- */

static enum error_class class_of_patterns(struct driver *d, struct str text) {
  for (size_t i = 0; text.n > 0 && i < d->profile->pattern_count; i++)
    if (pattern_match(d->profile->patterns[i].pattern, &d->scratch, text.p, text.n) ==
        PATTERN_MATCH)
      return d->profile->patterns[i].class;
  return CLASS_NONE;
}

static enum error_class class_of_kind_names(struct str kinds) {
  enum error_class class = CLASS_NONE;
  while (kinds.p != NULL && kinds.n > 0) {
    struct str word = str_next_line(&kinds);
    if (word.n > 0 && error_class_from_name(word, &class) && class != CLASS_NONE)
      return class;
  }
  return CLASS_NONE;
}

/* Classifies trouble: by the profile's own words first, then by what every vendor's words and
 * statuses mean. */
static enum error_class class_of_trouble(struct driver *d, struct str message, bool *elsewhere) {
  const struct trouble *t = &d->trouble;
  struct str kinds = buf_view(&t->kinds);
  int status = t->status > 0 ? t->status : classify_status(message);
  enum error_class class = t->class;
  bool vague = class == CLASS_RATE_LIMIT || class == CLASS_BAD_REQUEST;
  if (class == CLASS_NONE)
    class = class_of_patterns(d, message);
  if (class != CLASS_NONE && !vague)
    return class;
  enum error_class by_status =
      class != CLASS_NONE ? class : profile_status_class(d->profile, status);
  if (by_status == CLASS_NONE)
    by_status = classify_of_status(status);
  if (by_status == CLASS_NONE)
    by_status = class_of_kind_names(kinds);
  struct meaning m = classify_failure(
      &(struct failure_said){.by_status = by_status, .codes = kinds, .message = message});
  *elsewhere = m.elsewhere && class == CLASS_NONE;
  return m.class;
}

/* --- the end --- */

/* Makes one line of a text: white space becomes a space, and a terminal's escape sequences go. */
static void tidy(char *text) {
  char *to = text;
  text[escapes_drop(text, strlen(text))] = '\0';
  for (const char *from = text; *from != '\0'; from++) {
    if ((unsigned char)*from > ' ') {
      *to++ = *from;
    } else if (to > text && to[-1] != ' ') {
      *to++ = ' ';
    }
  }
  while (to > text && to[-1] == ' ')
    to--;
  *to = '\0';
}

static int stream_end_shown(struct str text) {
  return (int)(text.n > 400 ? utf8_floor(text.p, 400) : text.n);
}

/* Looks for a JSON document on stderr, where some clients print their last one after an error. */
static void look_at_stderr(struct driver *d, struct str text) {
  size_t tries = 0;
  for (size_t i = 0; i < text.n && d->end == STREAM_END_NONE && tries < 32; i++)
    if (text.p[i] == '{' && (i == 0 || text.p[i - 1] == '\n')) {
      tries++;
      (void)stream_read_value(d, (struct str){text.p + i, text.n - i});
    }
}

static struct str evidence_part(struct str text) {
  if (text.n > LIMIT_EVIDENCE_BYTES)
    text = (struct str){text.p + (text.n - LIMIT_EVIDENCE_BYTES), LIMIT_EVIDENCE_BYTES};
  return text;
}

/* Returns the most telling line of stderr: the one that gave away the class, else the last. */
static struct str telling_line(struct str text, enum error_class class) {
  struct str last = {0}, rest = text;
  while (rest.p != NULL && rest.n > 0) {
    struct str line = str_trim(str_next_line(&rest));
    if (line.n == 0)
      continue;
    last = line;
    if (class != CLASS_NONE && classify_of_words(line) == class)
      return line;
  }
  return last;
}

/* Takes the time that the client told in a field; what its words say is read when it has ended. */
static void read_retry_after(struct driver *d, struct str text, struct call_result *r) {
  if (r->class != CLASS_RATE_LIMIT && r->class != CLASS_OVERLOADED)
    return;
  r->retry_after_ms = d->trouble.retry_after_ms;
  if (r->retry_after_ms == 0)
    r->retry_after_ms = moment_in_text(text, clock_real_ms());
}

/* Judges a run without a final event: by stderr and, the last and weakest sign, the exit status. */
static void judge_exit(struct driver *d, const struct process_result *p, struct call_result *r) {
  struct str text = evidence_part(str_trim(buf_view(&r->error_text.bytes)));
  enum error_class class = CLASS_NONE;
  if (p->signal > 0) {
    call_result_fail(r, CLASS_CRASHED, "it was killed by signal %d before its final event",
                     p->signal);
    return;
  }
  if (p->exit_code != 0) {
    class = class_of_patterns(d, text);
    if (class == CLASS_NONE)
      class = classify_failure(
                  &(struct failure_said){.by_status = classify_of_status(classify_status(text)),
                                         .message = text})
                  .class;
    if (class == CLASS_NONE)
      class = profile_exit_class(d->profile, p->exit_code);
    if (class == CLASS_NONE && d->event_count == 0 && (p->exit_code == 126 || p->exit_code == 127))
      class = CLASS_NOT_FOUND; /* shells and env say so of a program or its interpreter */
  }
  struct str line = telling_line(text, class);
  if (class != CLASS_NONE)
    call_result_fail(r, class, "%.*s", stream_end_shown(line), line.p ? line.p : "");
  else if (p->exit_code != 0)
    call_result_fail(r, CLASS_CRASHED, "it ended with exit status %d and no final event%s%.*s",
                     p->exit_code, line.n > 0 ? ": " : "", stream_end_shown(line),
                     line.p ? line.p : "");
  else
    call_result_fail(r, CLASS_PROTOCOL, "it ended with exit status 0 but without its final event");
  read_retry_after(d, text, r);
}

static void judge_trouble(struct driver *d, const struct process_result *p, struct call_result *r) {
  struct str text = evidence_part(str_trim(buf_view(&r->error_text.bytes)));
  /* The log's words about the same error are better than the event's. */
  struct buf reason = {.max = LIMIT_EVIDENCE_BYTES};
  classify_logged(text, buf_view(&d->trouble.log), &reason);
  if (reason.n > 0) {
    buf_set(&d->trouble.message, buf_view(&reason));
  }
  buf_deinit(&reason);
  struct str message = str_trim(buf_view(&d->trouble.message));
  bool elsewhere = false;
  enum error_class class = class_of_trouble(d, message, &elsewhere);
  if (class == CLASS_NONE && message.n == 0) { /* an error, but not which: stderr may say */
    class = class_of_patterns(d, text);
    class = class == CLASS_NONE ? classify_of_words(text) : class;
    message = telling_line(text, class);
  }
  if (class == CLASS_NONE && p->why == PROCESS_END_EXITED && p->signal == 0)
    class = profile_exit_class(d->profile, p->exit_code);
  call_result_fail(r, class == CLASS_NONE ? CLASS_CRASHED : class, "%.*s",
                   stream_end_shown(message), message.p ? message.p : "");
  r->elsewhere = elsewhere;
  read_retry_after(d, message, r);
}

enum error_class stream_retry_class(struct driver *d) {
  struct str why = buf_view(&d->retry);
  int status = d->retry_status > 0 ? d->retry_status : d->trouble.status;
  if (why.n == 0)
    return CLASS_NONE;
  enum error_class class = class_of_patterns(d, why);
  if (class == CLASS_NONE && d->trouble.message.n > 0 &&
      words_find(STR(""), buf_view(&d->trouble.message), false, ~(1u << CLASS_QUOTA)) != NULL)
    class = CLASS_QUOTA;
  if (class != CLASS_NONE)
    return class;
  class = profile_status_class(d->profile, status);
  if (class == CLASS_NONE)
    class = classify_of_status(status);
  return classify_failure(&(struct failure_said){.by_status = class, .message = why}).class;
}

/* Judges a run that we ended without an answer. If the last thing it reported was why it was
 * retrying, that is what went wrong. */
static void judge_silence(struct driver *d, const struct process_result *p, struct call_result *r) {
  const char *what = "it was ended before its answer";
  if (p->why == PROCESS_END_WALL_LIMIT)
    what = "it did not end in time";
  else if (p->why == PROCESS_END_STALL_LIMIT)
    what = "it stopped printing";
  struct str why = buf_view(&d->retry);
  enum error_class class = stream_retry_class(d);
  call_result_fail(r, class == CLASS_NONE ? CLASS_TIMEOUT : class, "%s%s%.*s", what,
                   why.n > 0 ? "; it was trying again by itself: " : "", stream_end_shown(why),
                   buf_c(&d->retry));
  read_retry_after(d, why, r);
  if (r->retry_after_ms == 0)
    read_retry_after(d, evidence_part(str_trim(buf_view(&r->error_text.bytes))), r);
}

static void judge_end(struct driver *d, const struct process_result *p, struct call_result *r) {
  switch (p->why) {
  case PROCESS_END_EXITED:
    if (d->trouble.there && d->end != STREAM_END_OK)
      judge_trouble(d, p, r);
    else if (p->ended_early && d->retry.n > 0)
      judge_silence(d, p, r);
    else if (p->ended_early && !d->ends_by_exit)
      call_result_fail(r, CLASS_PROTOCOL,
                       "it closed its output without its final event and did not end");
    else if (!d->ends_by_exit || (p->exit_code != 0 && !p->ended_early))
      judge_exit(d, p, r);
    else if (d->event_count == 0 && !d->is_text)
      call_result_fail(r, CLASS_PROTOCOL, "it ended with exit status 0, but printed no event");
    break;
  case PROCESS_END_EXEC_FAILED:
    call_result_fail(r, CLASS_NOT_FOUND, "cannot run %s: %s",
                     d->profile->program ? d->profile->program : d->profile->capability.name,
                     strerror(p->exec_errno));
    break;
  case PROCESS_END_WALL_LIMIT:
  case PROCESS_END_STALL_LIMIT:
    judge_silence(d, p, r);
    break;
  case PROCESS_END_SPAWN_FAILED:
  case PROCESS_END_CANCELLED:
  case PROCESS_END_SHIM_LOST:
    ended_fail(r, p);
    break;
  }
}

static void take_buf(struct buf *to, struct buf *from) {
  *to = *from;
  *from = (struct buf){0};
  to->max = 0;
}

static void give_text(struct driver *d, struct call_result *r) {
  struct buf *text = d->text_of_all ? &d->all : &d->last;
  if (d->is_text) {
    r->text.bytes = head_tail_finish(&d->printed);
    r->dropped_bytes = r->text.bytes.dropped;
    return;
  }
  if (d->has_text) {
    /* The final text may be the end of the model's last message, or hold it. */
    struct str final = str_trim(buf_view(&d->text)), said = str_trim(buf_view(&d->last));
    size_t n = final.n < said.n ? final.n : said.n;
    r->by_model = n > 0 && memcmp(final.p + final.n - n, said.p + said.n - n, n) == 0;
    take_buf(&r->text.bytes, &d->text);
  } else {
    bool own = d->told.n > 0; /* a message that was not finished, or pieces only */
    if (own && d->text_of_all)
      stream_add_message(text, &d->told);
    take_buf(&r->text.bytes, own && !d->text_of_all ? &d->told : text);
  }
  r->dropped_bytes = r->text.bytes.dropped;
  buf_say_cut(&r->text.bytes);
}

/* Tasks that ran in the background when the process ended were stopped as well. */
static void give_unfinished(struct driver *d, struct call_result *r) {
  JSON_MEMBERS(d->tasks, id, what)
    stream_unfinished(d, what);
  if (d->unfinished != NULL)
    print_into(r->note, sizeof r->note, "a background task was stopped: %s",
               json_string_value(json_array_get(d->unfinished, 0)));
  else if (d->works_on)
    print_into(r->note, sizeof r->note, "after this answer it began a turn that did not end");
  r->unfinished = d->unfinished;
  d->unfinished = NULL;
}

void stream_end(struct driver *d, const struct process_result *p, struct call_result *r) {
  stream_take_rest(d);
  while (d->questions.count > 0)
    question_settle(d, 0, NULL);
  if (p->why == PROCESS_END_EXITED && d->end == STREAM_END_NONE && !d->is_text && d->own == NULL &&
      d->event_count == 0)
    look_at_stderr(d, evidence_part(buf_view(&r->error_text.bytes)));
  give_text(d, r);
  if (d->schema_asked && r->enforced == NULL)
    r->enforced = d->profile->capability.structured;
  print_into(r->provider_session, sizeof r->provider_session, "%s", d->session);
  r->usage = json_incref(d->usage);
  struct str final = str_trim(buf_view(&r->text.bytes));
  if (!d->reply_lost && d->end != STREAM_END_OK)
    judge_end(d, p, r);
  else if (final.n > 0 && str_eq(final, str_trim(buf_view(&d->trouble.message))))
    judge_trouble(d, p, r); /* it reported an error and took that for its answer */
  if (d->reply_lost || (d->skipped_count > 0 && r->class == CLASS_PROTOCOL)) /* it was needed */
    call_result_fail(r, CLASS_PROTOCOL, "a line of its output is longer than %u bytes",
                     LIMIT_AGENT_LINE_BYTES);
  if (r->class == CLASS_NONE) {
    struct str text = str_trim(buf_view(&r->text.bytes));
    if (d->structured == NULL && d->schema_asked && d->profile->structured_is_text && text.n > 0 &&
        text.n <= LIMIT_STRUCTURED_BYTES && (text.p[0] == '{' || text.p[0] == '['))
      d->structured = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
    r->structured = d->structured;
    d->structured = NULL;
    bool empty = str_trim(buf_view(&r->text.bytes)).n == 0 && r->structured == NULL;
    if (empty && d->thought && d->denied.n == 0)
      call_result_fail(r, CLASS_PROTOCOL, "it ended without an error, but printed only reasoning");
    else if (empty)
      call_result_fail(
          r, d->profile->empty, "it ended without an error, but also without an answer%s%.*s",
          d->denied.n ? ": " : "", stream_end_shown(buf_view(&d->denied)), buf_c(&d->denied));
    else if (p->ended_early && d->end == STREAM_END_NONE)
      print_into(r->note, sizeof r->note,
                 "it closed its output and did not end by itself: it was ended");
    else if (p->why == PROCESS_END_EXITED && p->exit_code > 0)
      print_into(r->note, sizeof r->note, "exit status %d after the final event", p->exit_code);
    if (!d->text_told && r->structured == NULL && r->text.bytes.n > 0)
      stream_tell(d, NEWS_TEXT, buf_view(&r->text.bytes), NULL); /* those who watch see it too */
  }
  if (r->class != CLASS_NONE) {
    tidy(r->message);
    if (r->message[0] == '\0' && d->trouble.there)
      call_result_fail(r, r->class, "the client reports an error and does not say which");
    else if (r->message[0] == '\0')
      call_result_fail(r, r->class, "it ended with exit status %d", p->exit_code);
  }
  give_unfinished(d, r);
  if (d->garbage_count > 0 && r->note[0] == '\0')
    print_into(r->note, sizeof r->note, "%zu line%s of its output %s no JSON", d->garbage_count,
               d->garbage_count == 1 ? "" : "s", d->garbage_count == 1 ? "was" : "were");
}
