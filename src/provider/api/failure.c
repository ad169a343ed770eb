/* Works out what an error of a model API means, and when to try again. */
#include "provider/api/failure.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* These words decide, whatever the status is. */
static const struct reply_word decisive[] = {
    {"insufficient_quota", CLASS_QUOTA},
    {"billing_error", CLASS_QUOTA},
    {"billing_hard_limit_reached", CLASS_QUOTA},
    {"billing_not_active", CLASS_QUOTA},
    {"enforced_spend_limit_reached", CLASS_QUOTA},
    {"credit_balance_exhausted", CLASS_QUOTA},
    {"insufficient_credits", CLASS_QUOTA},
    {"invalid_api_key", CLASS_AUTH},
    {"authentication_error", CLASS_AUTH},
    {"permission_error", CLASS_AUTH},
    {"API_KEY_INVALID", CLASS_AUTH},
    {"UNAUTHENTICATED", CLASS_AUTH},
    {"PERMISSION_DENIED", CLASS_AUTH},
    {"model_not_found", CLASS_NOT_FOUND},
    {"overloaded_error", CLASS_OVERLOADED},
    {"server_is_overloaded", CLASS_OVERLOADED},
    {"slow_down", CLASS_OVERLOADED},
    {"content_filter", CLASS_REFUSED},
    {"content_policy_violation", CLASS_REFUSED},
    {"context_length_exceeded", CLASS_BAD_REQUEST},
    {NULL, CLASS_NONE},
};

/* These words tell of an error within a stream, which has no status of its own. */
static const struct reply_word general[] = {
    {"rate_limit_error", CLASS_RATE_LIMIT},
    {"rate_limit_exceeded", CLASS_RATE_LIMIT},
    {"RESOURCE_EXHAUSTED", CLASS_RATE_LIMIT},
    {"not_found_error", CLASS_NOT_FOUND},
    {"NOT_FOUND", CLASS_NOT_FOUND},
    {"invalid_request_error", CLASS_BAD_REQUEST},
    {"invalid_prompt", CLASS_BAD_REQUEST},
    {"request_too_large", CLASS_BAD_REQUEST},
    {"INVALID_ARGUMENT", CLASS_BAD_REQUEST},
    {"FAILED_PRECONDITION", CLASS_BAD_REQUEST},
    {NULL, CLASS_NONE},
};

static enum error_class of_status(int status) {
  switch (status) {
  case 401:
  case 403:
  case 407:
    return CLASS_AUTH;
  case 402:
    return CLASS_QUOTA;
  case 404:
  case 410:
    return CLASS_NOT_FOUND;
  case 408:
    return CLASS_NETWORK;
  case 409:
  case 425:
    return CLASS_OVERLOADED;
  case 429:
    return CLASS_RATE_LIMIT;
  default:
    break;
  }
  if (status >= 500)
    return status == 501 || status == 505 ? CLASS_BAD_REQUEST : CLASS_OVERLOADED;
  return status >= 400 ? CLASS_BAD_REQUEST : CLASS_NONE;
}

/* Classifies by texts for people, which the word of the error does not tell apart. */
static enum error_class of_message(const char *message) {
  static const struct reply_word phrases[] = {
      {"credit balance is too low", CLASS_QUOTA},
      {"exceeded your current quota", CLASS_QUOTA},
      {"API key not valid", CLASS_AUTH},
      {"Insufficient credits", CLASS_QUOTA},
      {NULL, CLASS_NONE},
  };
  for (const struct reply_word *p = phrases; message && p->word; p++)
    if (strcasestr(message, p->word))
      return p->class;
  return CLASS_NONE;
}

static enum error_class failure_decide(int status, const json_t *error) {
  const json_t *metadata = json_object_get(error, "metadata");
  const json_t *details = json_object_get(error, "details"), *detail;
  const json_t *words[4] = {json_object_get(error, "code"), json_object_get(error, "type"),
                            json_object_get(error, "status"),
                            json_object_get(details, "error_code")};
  enum error_class class = CLASS_NONE;
  size_t i;
  for (i = 0; i < ARRAY_LEN(words) && class == CLASS_NONE; i++)
    class = reply_word_class(decisive, words[i], CLASS_NONE);
  json_array_foreach((json_t *)details, i, detail) {
    if (class == CLASS_NONE)
      class = reply_word_class(decisive, json_object_get(detail, "reason"), CLASS_NONE);
  }
  if (class == CLASS_NONE && json_object_get(metadata, "flagged_input"))
    class = CLASS_REFUSED;
  /* Gemini says this of an exhausted minute, too. */
  if (class == CLASS_NONE && !json_is_array(details))
    class = of_message(json_string_value(json_object_get(error, "message")));
  if (class == CLASS_NONE)
    class = of_status(status);
  /* A number as the code of an error within a stream is the status that it should have had. */
  if (class == CLASS_NONE && json_is_integer(words[0]))
    class = of_status((int)json_integer_value(words[0]));
  for (i = 0; i < ARRAY_LEN(words) && class == CLASS_NONE; i++)
    class = reply_word_class(general, words[i], CLASS_NONE);
  return class != CLASS_NONE ? class : CLASS_OVERLOADED; /* it failed on its side: try again */
}

/* Rounds up: coming back too early is useless. */
static int64_t failure_whole(double ms) {
  int64_t down = (int64_t)ms;
  return (double)down < ms ? down + 1 : down;
}

/* Reads "1.5s", "250ms", "6m0s" or "1h2m" as milliseconds. Returns -1 if it is no duration. */
static int64_t duration_ms(const char *s) {
  double total = 0;
  bool any = false;
  while (*s >= '0' && *s <= '9') {
    char *end;
    double n = strtod(s, &end), unit;
    if (str_starts(str_from(end), "ms")) {
      unit = 1;
      end++;
    } else if (*end == 's') {
      unit = 1000;
    } else if (*end == 'm') {
      unit = 60000;
    } else if (*end == 'h') {
      unit = 3600000;
    } else {
      return -1;
    }
    total += n * unit;
    s = end + 1;
    any = true;
  }
  return any && total < 1e12 ? failure_whole(total) : -1;
}

/* Reads a delay from Gemini's RetryInfo.retryDelay or OpenAI's "try again in 1.2s". */
static void read_delay(struct reply *r, const json_t *error) {
  const json_t *details = json_object_get(error, "details"), *detail;
  const char *message = json_string_value(json_object_get(error, "message"));
  const char *phrase = message ? strcasestr(message, "try again in ") : NULL;
  int64_t ms = phrase ? duration_ms(phrase + strlen("try again in ")) : -1;
  size_t i;
  json_array_foreach((json_t *)details, i, detail) {
    const char *delay = json_string_value(json_object_get(detail, "retryDelay"));
    if (delay != NULL)
      ms = duration_ms(delay);
  }
  if (ms >= 0 && r->wait.retry_after_ms < 0)
    r->wait.retry_after_ms = ms;
}

/* Takes the error's own message, safe for a terminal and without the value of a secret. */
static void message_of(const struct reply *r, const json_t *error, struct buf *out) {
  const json_t *text = json_is_string(error) ? error : json_object_get(error, "message");
  struct buf raw = {0};
  if (!json_is_string(text))
    text = json_object_get(error, "detail"); /* FastAPI: vLLM */
  if (json_is_string(text))
    buf_append(&raw, json_string_value(text), json_string_length(text));
  /* OpenRouter's own words say only that a provider failed. */
  text = json_object_get(json_object_get(error, "metadata"), "raw");
  if (json_is_string(text))
    buf_printf(&raw, ": %s", json_string_value(text));
  (void)secrets_hide(r->of_text.secrets, &raw);
  buf_safe(out, (struct str){buf_c(&raw), utf8_floor(buf_c(&raw), raw.n < 300 ? raw.n : 300)},
           false);
  buf_deinit(&raw);
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
    (void)snprintf(r->param, sizeof r->param, "%s", json_string_value(named));
}

static void fail_with(struct reply *r, int status, const json_t *error) {
  struct buf said = {0};
  enum error_class class = failure_decide(status, error);
  message_of(r, error, &said);
  read_delay(r, error);
  read_param(r, error);
  if (status >= 400)
    reply_fail(r, class, "HTTP %d%s%s", status, said.n ? ": " : "", buf_c(&said));
  else
    reply_fail(r, class, "the backend failed while it answered%s%s", said.n ? ": " : "",
               buf_c(&said));
  buf_deinit(&said);
}

void reply_error(struct reply *r, const json_t *doc) {
  enum { DEPTH = 4 }; /* gateways wrap what they received */
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
  fail_with(r, r->status, doc);
}

void failure_status(struct reply *r, json_t *owned_doc) {
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
    struct buf shown = {0};
    if (first == NULL && !str_starts_fold(str_from(r->content_type), "text/html")) {
      struct str head = {buf_c(&r->document), r->document.n};
      head.n = utf8_floor(head.p, head.n < 160 ? head.n : 160);
      (void)buf_safe(&shown, str_trim(head), false);
      (void)secrets_hide(r->of_text.secrets, &shown);
    }
    if (first != NULL)
      reply_error(r, first);
    else
      reply_fail(r, of_status(r->status) != CLASS_NONE ? of_status(r->status) : CLASS_PROTOCOL,
                 "HTTP %d%s%s", r->status, shown.n ? ": " : "", buf_c(&shown));
    buf_deinit(&shown);
  }
  json_decref(owned_doc);
}

/* Reads seconds (whole or not) or a date of RFC 9110. Returns -1 if it is neither. */
static int64_t retry_after_ms(const char *value, int64_t wall_ms) {
  char *end;
  double seconds = strtod(value, &end);
  if (end != value && *end == '\0' && seconds >= 0 && seconds < 1e9)
    return failure_whole(seconds * 1000);
  struct tm tm = {0};
  const char *rest = strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &tm);
  if (rest == NULL || *rest != '\0')
    return -1;
  int64_t in = (int64_t)timegm(&tm) * 1000 - wall_ms;
  return in > 0 ? in : 0;
}

/* Reads a duration ("6m0s"), a time of day (RFC 3339) or seconds; -1 if it is none of them. */
static int64_t reset_ms(const char *value, int64_t wall_ms) {
  struct tm tm = {0};
  int64_t ms = duration_ms(value);
  const char *rest = strptime(value, "%Y-%m-%dT%H:%M:%S", &tm);
  if (ms >= 0 || rest == NULL)
    return ms;
  int64_t in = (int64_t)timegm(&tm) * 1000 - wall_ms;
  return in > 0 ? in : 0;
}

void failure_header(struct reply_wait *wait, int64_t wall_ms, struct str name, struct str value) {
  char text[64];
  size_t n = value.n < sizeof text ? value.n : sizeof text - 1;
  memcpy(text, value.p, n);
  text[n] = '\0';
  if (str_eq_fold(name, "retry-after-ms")) {
    char *end;
    double ms = strtod(text, &end);
    if (end != text && *end == '\0' && ms >= 0 && ms < 1e12)
      wait->retry_after_ms = failure_whole(ms);
  } else if (str_eq_fold(name, "retry-after")) {
    if (wait->retry_after_ms < 0)
      wait->retry_after_ms = retry_after_ms(text, wall_ms);
  } else if (str_eq_fold(name, "x-should-retry")) {
    wait->should_retry = -1;
    if (strcasecmp(text, "true") == 0)
      wait->should_retry = 1;
    else if (strcasecmp(text, "false") == 0)
      wait->should_retry = 0;
  } else if (name.n > 12 && str_has(name, "ratelimit-")) {
    /* The names are anthropic-ratelimit-requests-remaining / -reset and
     * x-ratelimit-remaining-tokens / -reset-... */
    bool remaining = str_has(name, "-remaining");
    bool reset = str_ends(name, "-reset") || str_has(name, "-reset-");
    unsigned bit = str_has(name, "request") ? 1u : 2u;
    if (remaining && strcmp(text, "0") == 0)
      wait->used_up |= bit;
    else if (reset)
      wait->resets_ms[bit - 1] = reset_ms(text, wall_ms);
  }
}

void failure_wait(struct reply *r) {
  int64_t ms = r->wait.retry_after_ms;
  if (r->class == CLASS_NONE)
    return;
  for (unsigned i = 0; i < 2 && r->wait.retry_after_ms < 0; i++)
    if ((r->wait.used_up & (1u << i)) && r->wait.resets_ms[i] > ms)
      ms = r->wait.resets_ms[i];
  bool transient = error_class_is_transient(r->class);
  if (r->wait.should_retry == 0 && transient)
    r->class = r->class == CLASS_RATE_LIMIT ? CLASS_QUOTA : CLASS_BAD_REQUEST;
  else if (r->wait.should_retry == 1 && r->status >= 400 && r->class == CLASS_BAD_REQUEST)
    r->class = CLASS_OVERLOADED;
  if (ms > 0 && (r->class == CLASS_RATE_LIMIT || r->class == CLASS_OVERLOADED))
    r->retry_after_ms = ms;
}
