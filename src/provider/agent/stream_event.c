/* Turns values of the output into news: every rule that matches is applied. */
#include "provider/agent/stream_internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "format/pointer.h"
#include "provider/agent/evidence.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- values --- */

static struct str stream_json_view(const json_t *value) {
  return (struct str){json_string_value(value), json_string_length(value)};
}

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
    return stream_json_view(found);
  buf_clear(scratch);
  json_write(found, scratch);
  return buf_view(scratch);
}

static bool fits_values(const json_t *values, const json_t *found) {
  for (size_t i = 0; i < json_array_size(values); i++) {
    const json_t *wanted = json_array_get(values, i);
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

void stream_retry_noted(struct driver *d, int status, struct str reason) {
  buf_clear(&d->retry);
  d->retry_status = status;
  if (status > 0 && evidence_status(reason) == 0)
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
  struct buf clean = {0};
  redactor_init(&r, d->secrets);
  redactor_push(&r, whole, &clean);
  stream_tell_rest(d, buf_view(&clean));
  redactor_deinit(&d->of_text);
  d->of_text = r;
  buf_deinit(&clean);
}

void stream_put_text(json_t *object, const char *name, struct str text) {
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

static void say_session(struct driver *d, const struct profile_rule *r, const json_t *at) {
  struct buf scratch = {0};
  stream_session(d, find_text(&r->session, at, &scratch));
  buf_deinit(&scratch);
}

static void say_texts(struct driver *d, const struct profile_rule *r, const json_t *at) {
  struct buf scratch = {0}, id_scratch = {0};
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
  buf_deinit(&scratch);
  buf_deinit(&id_scratch);
}

static bool is_failure(const json_t *value, struct str literal) {
  return json_is_true(value) || json_is_object(value) || json_is_string(value) || literal.n > 0;
}

void stream_tool(struct driver *d, const struct tool_told *tool) {
  stream_tell(d, NEWS_TOOL, (struct str){0}, tool_told_data(tool));
}

/* Keeps a tool's name: later lines may give only its id. */
static void keep_tool(struct driver *d, const json_t *data) {
  const char *id = json_string_value(json_object_get(data, "id"));
  const char *name = json_string_value(json_object_get(data, "name"));
  if (id == NULL || name == NULL)
    return;
  buf_clear(&d->tool_id);
  buf_clear(&d->tool_name);
  buf_str(&d->tool_id, str_from(id));
  buf_str(&d->tool_name, str_from(name));
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
  struct tool_told tool = {.name = find_text(&r->tool[TOOL_NAME], at, &names[0]),
                           .id = find_text(&r->tool[TOOL_ID], at, &names[1]),
                           .failed = -1,
                           .input = tool_value(r, TOOL_INPUT, at),
                           .output = tool_value(r, TOOL_OUTPUT, at),
                           .exit = tool_value(r, TOOL_EXIT, at)};
  (void)snprintf(word, sizeof word, STR_FMT, STR_ARG(state));
  tool.state = state.n > 0 ? word : NULL;
  if (r->tool[TOOL_FAILED].count > 0) {
    const json_t *failed = stream_event_find(&r->tool[TOOL_FAILED], at, &literal);
    tool.failed = is_failure(failed, literal);
  }
  json_t *data = tool_told_data(&tool);
  keep_tool(d, data);
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
  json_decref(d->usage);
  d->usage = json_incref(data);
  stream_tell(d, NEWS_USAGE, (struct str){0}, data);
}

static const char *const usage_names[] = {"input", "output", "cached", "reasoning", "cost_usd"};

json_t *stream_usage_added(const json_t *a, const json_t *b, int sign) {
  json_t *sum = json_object();
  for (size_t i = 0; i < ARRAY_LEN(usage_names); i++) {
    const json_t *one = json_object_get(a, usage_names[i]),
                 *two = json_object_get(b, usage_names[i]);
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

static void stream_event_say_usage(struct driver *d, const struct profile_rule *r,
                                   const json_t *at) {
  json_t *data = json_object();
  for (size_t i = 0; i < USAGE_FIELDS; i++) {
    double sum = NAN;
    for (size_t k = 0; k < r->usage[i].count; k++)
      pointer_each(at, r->usage[i].items[k], add_number, &sum);
    /* Clients report a cost of 0 for models whose price they do not know. */
    if (!(sum >= 0) || sum > 1e15 || (i == USAGE_COST && sum == 0))
      continue;
    json_object_set_new(data, usage_names[i],
                        i == USAGE_COST ? json_real(sum) : json_integer((json_int_t)sum));
  }
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
  struct buf scratch = {0};
  json_t *data = json_object();
  struct str reason = find_text(&r->retry[RETRY_REASON], at, &scratch);
  int status = evidence_status(reason);
  put_number(data, "attempt", &r->retry[RETRY_ATTEMPT], at);
  put_number(data, "of", &r->retry[RETRY_OF], at);
  put_number(data, "delay_ms", &r->retry[RETRY_DELAY_MS], at);
  put_number(data, "status", &r->retry[RETRY_STATUS], at);
  if (json_object_get(data, "attempt") == NULL)
    put_tries(data, reason);
  if (status > 0 && json_object_get(data, "status") == NULL)
    json_object_set_new(data, "status", json_integer(status));
  stream_retry(d, data, reason);
  buf_deinit(&scratch);
}

void stream_permission(struct driver *d, struct str tool, bool allowed, struct str message) {
  json_t *data = json_object();
  stream_put_text(data, "message", message);
  stream_put_text(data, "tool", tool);
  stream_put_text(data, "answer", str_from(allowed ? "allowed" : "denied"));
  if (!allowed) {
    buf_clear(&d->denied);
    buf_str(&d->denied, message);
  }
  stream_tell(d, NEWS_PERMISSION, (struct str){0}, data);
}

static void say_permission(struct driver *d, const struct profile_rule *r, const json_t *at) {
  struct buf scratch = {0};
  json_t *data = json_object();
  struct str message = find_text(&r->permission[ASKED_MESSAGE], at, &scratch);
  stream_put_text(data, "message", message);
  buf_clear(&d->denied);
  buf_str(&d->denied, message);
  struct str tool = find_text(&r->permission[ASKED_TOOL], at, &scratch);
  bool is_id = tool.n > 0 && str_eq(tool, buf_view(&d->tool_id));
  stream_put_text(data, "tool", is_id ? buf_view(&d->tool_name) : tool);
  stream_put_text(data, "answer", find_text(&r->permission[ASKED_ANSWER], at, &scratch));
  buf_deinit(&scratch);
  stream_tell(d, NEWS_PERMISSION, (struct str){0}, data);
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
    buf_clear(&d->trouble.message);
    buf_str(&d->trouble.message, message);
  }
}

void stream_finish(struct driver *d, enum profile_end end) {
  if (end == STREAM_END_ERROR)
    d->trouble.there = true;
  d->end = end;
  if (d->host.answered != NULL)
    d->host.answered(d->host.ctx);
}

static void stream_event_note_error(struct driver *d, const struct profile_rule *r,
                                    const json_t *at) {
  struct trouble *t = &d->trouble;
  const struct profile_value *kinds = &r->error[ERROR_KIND];
  struct buf scratch = {0};
  struct str literal, message = find_text(&r->error[ERROR_MESSAGE], at, &scratch);
  const json_t *status = stream_event_find(&r->error[ERROR_STATUS], at, &literal);
  t->there = true;
  if (message.n > 0) {
    buf_clear(&t->message);
    buf_str(&t->message, message);
  }
  if (json_is_integer(status))
    t->status = (int)json_integer_value(status);
  else if (json_is_string(status))
    t->status = evidence_status(stream_json_view(status));
  for (size_t i = 0; i < kinds->count; i++) {
    struct profile_value one = {&kinds->items[i], 1};
    struct str word = find_text(&one, at, &scratch);
    enum error_class class = profile_class(d->profile, word);
    if (class != CLASS_NONE && (t->class == CLASS_NONE || i == 0))
      t->class = class;
    buf_str(&t->kinds, word);
    buf_putc(&t->kinds, '\n');
  }
  buf_clear(&t->log);
  buf_str(&t->log, find_text(&r->error[ERROR_LOG], at, &scratch));
  const json_t *after = stream_event_find(&r->error[ERROR_RETRY_AFTER_MS], at, &literal);
  if (json_is_number(after) && json_number_value(after) > 0 && json_number_value(after) < 1e13)
    t->retry_after_ms = (int64_t)json_number_value(after);
  buf_deinit(&scratch);
}

/* --- events --- */

static void stream_event_set_text(struct driver *d, const struct profile_rule *r,
                                  const json_t *at) {
  struct buf scratch = {0};
  struct str text = find_text(&r->text, at, &scratch);
  if (text.n > 0) {
    d->has_text = true;
    buf_clear(&d->text);
    buf_str(&d->text, text);
  }
  buf_deinit(&scratch);
}

static void apply_rule(struct driver *d, const struct profile_rule *r, const json_t *at) {
  struct buf scratch = {0};
  struct str literal;
  say_session(d, r, at);
  say_texts(d, r, at);
  if (r->has_tool)
    stream_event_say_tool(d, r, at);
  if (r->has_usage)
    stream_event_say_usage(d, r, at);
  if (r->has_retry)
    stream_event_say_retry(d, r, at);
  if (r->has_permission)
    say_permission(d, r, at);
  if (r->has_error)
    stream_event_note_error(d, r, at);
  struct str note = find_text(&r->note, at, &scratch);
  if (note.n > 0) {
    json_t *data = json_object();
    stream_put_text(data, "text", note);
    stream_tell(d, NEWS_NOTE, (struct str){0}, data);
  }
  buf_deinit(&scratch);
  stream_event_set_text(d, r, at);
  const json_t *structured = stream_event_find(&r->structured, at, &literal);
  if (structured != NULL) {
    json_decref(d->structured);
    d->structured = json_incref((json_t *)structured);
  }
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
    if (r->each.p != NULL)
      pointer_each(value, r->each, apply_each, &each);
    else
      apply_where(d, r, value);
  }
}
