/* Classifies errors of agents by the statuses and words that vendors use. */
#include "provider/agent/classify.h"

#include "base/err.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum error_class classify_of_status(int status) {
  switch (status) {
  case 401:
  case 403:
    return CLASS_AUTH;
  case 402:
    return CLASS_QUOTA;
  case 404:
    return CLASS_NOT_FOUND;
  case 408:
    return CLASS_NETWORK;
  case 429:
    return CLASS_RATE_LIMIT;
  default:
    if (status >= 500)
      return CLASS_OVERLOADED;
    return status >= 400 ? CLASS_BAD_REQUEST : CLASS_NONE;
  }
}

/* Returns true if the text has the word, in any case (ASCII). */
static bool classify_has(struct str text, const char *word) {
  size_t n = strlen(word);
  for (size_t i = 0; i + n <= text.n; i++)
    if (strncasecmp(text.p + i, word, n) == 0)
      return true;
  return false;
}

bool classify_of_quota(struct str text) {
  static const char *const words[] = {
      "insufficient_quota", "credit balance",   "out of credit", "enforced_spend_limit",
      "spend limit",        "payment required", "billing",       "insufficient credits",
      "insufficient funds", "quota exceeded",   "current quota", "daily quota"};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (classify_has(text, words[i]))
      return classify_retry_after_ms(text) == 0;
  return false;
}

/* The words are tried in this order, more specific ones first. Only words that name a reason count,
 * none that a program uses in passing. */
static const struct {
  const char *word;
  enum error_class class;
} known[] = {
    {"blocked due to safety", CLASS_REFUSED},
    {"safety settings", CLASS_REFUSED},
    {"content filter", CLASS_REFUSED},
    {"content_filter", CLASS_REFUSED},
    {"prohibited_content", CLASS_REFUSED},
    {"usage policy", CLASS_REFUSED},
    {"usage policies", CLASS_REFUSED},
    {"can't help with this", CLASS_REFUSED},
    {"prompt is too long", CLASS_BAD_REQUEST},
    {"input is too long", CLASS_BAD_REQUEST},
    {"exceeds the maximum length", CLASS_BAD_REQUEST},
    {"context_length_exceeded", CLASS_BAD_REQUEST},
    {"maximum context length", CLASS_BAD_REQUEST},
    {"context window", CLASS_BAD_REQUEST},
    {"request too large", CLASS_BAD_REQUEST},
    {"payload too large", CLASS_BAD_REQUEST},
    {"entity too large", CLASS_BAD_REQUEST},
    {"max_output_tokens", CLASS_LENGTH},
    {"output token maximum", CLASS_LENGTH},
    {"max_tokens", CLASS_LENGTH},
    {"model does not exist", CLASS_NOT_FOUND},
    {"model not found", CLASS_NOT_FOUND},
    {"model_not_found", CLASS_NOT_FOUND},
    {"is not found for api version", CLASS_NOT_FOUND},
    {"unknown model", CLASS_NOT_FOUND},
    {"issue with the selected model", CLASS_NOT_FOUND},
    {"session not found", CLASS_NOT_FOUND},
    {"no conversation found", CLASS_NOT_FOUND},
    {"no session found", CLASS_NOT_FOUND},
    {"no saved session", CLASS_NOT_FOUND},
    {"not_found", CLASS_NOT_FOUND},
    {"permission_denied", CLASS_AUTH},
    {"unauthorized", CLASS_AUTH},
    {"unauthenticated", CLASS_AUTH},
    {"authentication", CLASS_AUTH},
    {"invalid api key", CLASS_AUTH},
    {"invalid_api_key", CLASS_AUTH},
    {"incorrect api key", CLASS_AUTH},
    {"api key not", CLASS_AUTH},
    {"no api key", CLASS_AUTH},
    {"missing api key", CLASS_AUTH},
    {"not logged in", CLASS_AUTH},
    {"please log in", CLASS_AUTH},
    {"please run /login", CLASS_AUTH},
    {"please sign in", CLASS_AUTH},
    {"login required", CLASS_AUTH},
    {"an auth method", CLASS_AUTH},
    {"rate limit", CLASS_RATE_LIMIT},
    {"rate_limit", CLASS_RATE_LIMIT},
    {"ratelimit", CLASS_RATE_LIMIT},
    {"too many requests", CLASS_RATE_LIMIT},
    {"resource_exhausted", CLASS_RATE_LIMIT},
    {"exhausted your", CLASS_RATE_LIMIT},
    {"usage limit", CLASS_RATE_LIMIT},
    {"overloaded", CLASS_OVERLOADED},
    {"at capacity", CLASS_OVERLOADED},
    {"high demand", CLASS_OVERLOADED},
    {"temporarily unavailable", CLASS_OVERLOADED},
    {"service unavailable", CLASS_OVERLOADED},
    {"internal server error", CLASS_OVERLOADED},
    {"server_error", CLASS_OVERLOADED},
    {"bad gateway", CLASS_OVERLOADED},
    {"econnrefused", CLASS_NETWORK},
    {"econnreset", CLASS_NETWORK},
    {"enotfound", CLASS_NETWORK},
    {"etimedout", CLASS_NETWORK},
    {"eai_again", CLASS_NETWORK},
    {"connection_failed", CLASS_NETWORK},
    {"connection error", CLASS_NETWORK},
    {"connection refused", CLASS_NETWORK},
    {"connection reset", CLASS_NETWORK},
    {"connection dropped", CLASS_NETWORK},
    {"connection closed", CLASS_NETWORK},
    {"connect error", CLASS_NETWORK},
    {"network error", CLASS_NETWORK},
    {"stream disconnected", CLASS_NETWORK},
    {"error sending request", CLASS_NETWORK},
    {"error decoding response body", CLASS_NETWORK},
    {"unexpected eof", CLASS_NETWORK},
    {"unexpected end of file", CLASS_NETWORK},
    {"socket hang up", CLASS_NETWORK},
    {"socket connection", CLASS_NETWORK},
    {"fetch failed", CLASS_NETWORK},
    {"other side closed", CLASS_NETWORK},
    {"request timed out", CLASS_NETWORK},
    {"premature close", CLASS_NETWORK},
    {"unknown option", CLASS_BAD_REQUEST},
    {"unknown argument", CLASS_BAD_REQUEST},
    {"unexpected argument", CLASS_BAD_REQUEST},
    {"unrecognized", CLASS_BAD_REQUEST},
    {"not a valid", CLASS_BAD_REQUEST},
    {"invalid value", CLASS_BAD_REQUEST},
    {"invalid_request", CLASS_BAD_REQUEST},
    {"invalid_argument", CLASS_BAD_REQUEST},
    {"must be provided", CLASS_BAD_REQUEST},
    {"no prompt provided", CLASS_BAD_REQUEST},
    {"cannot be used with root", CLASS_BAD_REQUEST},
};

enum error_class classify_of_words(struct str text) {
  if (classify_of_quota(text))
    return CLASS_QUOTA;
  for (size_t i = 0; i < ARRAY_LEN(known); i++)
    if (classify_has(text, known[i].word))
      return known[i].class;
  return CLASS_NONE;
}

/* Returns three digits from 400 to 599 that stand alone at `i`, else 0. */
static int status_at(struct str text, size_t i) {
  if (i + 3 > text.n || (text.p[i] != '4' && text.p[i] != '5') ||
      !isdigit((unsigned char)text.p[i + 1]) || !isdigit((unsigned char)text.p[i + 2]) ||
      (i + 3 < text.n && isalnum((unsigned char)text.p[i + 3])))
    return 0;
  return (text.p[i] - '0') * 100 + (text.p[i + 1] - '0') * 10 + text.p[i + 2] - '0';
}

int classify_status(struct str text) {
  static const char *const before[] = {"status code", "status", "code", "http", "error"};
  struct str trimmed = str_trim(text);
  int status = status_at(trimmed, 0);
  for (size_t w = 0; status == 0 && w < ARRAY_LEN(before); w++) {
    size_t n = strlen(before[w]);
    for (size_t i = 0; status == 0 && i + n < text.n; i++) {
      size_t at = i + n;
      if (strncasecmp(text.p + i, before[w], n) != 0)
        continue;
      while (at < text.n && strchr(" \t\"'\\:=([", text.p[at]) != NULL && text.p[at] != '\0')
        at++;
      status = at > i + n ? status_at(text, at) : 0;
    }
  }
  return status;
}

/* Reads one number with its unit at *i, which moves past it. Returns milliseconds, or 0. */
static double duration_part(struct str text, size_t *i) {
  static const struct {
    const char *unit;
    double ms;
  } units[] = {{"ms", 1},    {"millisecond", 1}, {"s", 1000},
               {"m", 60000}, {"h", 3600000.0},   {"d", 86400000.0}};
  char digits[24];
  size_t n = 0;
  while (*i < text.n && n + 1 < sizeof digits &&
         (isdigit((unsigned char)text.p[*i]) || (n > 0 && text.p[*i] == '.')))
    digits[n++] = text.p[(*i)++];
  digits[n] = '\0';
  if (n == 0)
    return 0;
  while (*i < text.n && text.p[*i] == ' ')
    ++*i;
  double factor = 1000;
  for (size_t u = 0; u < ARRAY_LEN(units); u++) {
    size_t unit_n = strlen(units[u].unit);
    if (*i + unit_n <= text.n && strncasecmp(text.p + *i, units[u].unit, unit_n) == 0) {
      factor = units[u].ms;
      break;
    }
  }
  while (*i < text.n && isalpha((unsigned char)text.p[*i]))
    ++*i;
  return strtod(digits, NULL) * factor;
}

/* Reads a duration: "1.2s", "30 seconds", "6m0s", "2 hours", "800ms". A number without a unit is
 * seconds. */
static int64_t duration_at(struct str text, size_t i) {
  double value = 0, part;
  do {
    size_t from = i;
    part = duration_part(text, &i);
    value += part;
    if (i == from || !isalpha((unsigned char)text.p[i - 1]))
      break; /* "6m0s" is one duration, "30 2" is not */
  } while (i < text.n && isdigit((unsigned char)text.p[i]));
  return value > 0 && value < 1e13 ? (int64_t)value : 0;
}

int64_t classify_retry_after_ms(struct str text) {
  static const char *const before[] = {"try again in ", "retry in ",     "retry after ",
                                       "retry-after: ", "retry_after: ", "reset after "};
  for (size_t w = 0; w < ARRAY_LEN(before); w++) {
    size_t n = strlen(before[w]);
    for (size_t i = 0; i + n < text.n; i++)
      if (strncasecmp(text.p + i, before[w], n) == 0) {
        int64_t ms = duration_at(text, i + n);
        if (ms > 0)
          return ms;
      }
  }
  return 0;
}

/* Adds the value of logfmt at the head of `text`: it ends at a space, or is quoted as in JSON. */
static void classify_add_value(struct str text, struct buf *out) {
  json_t *value = NULL;
  size_t n = 0;
  if (text.n > 0 && text.p[0] == '"')
    value = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
  while (n < text.n && text.p[n] != ' ')
    n++;
  if (value != NULL)
    buf_append(out, json_string_value(value), json_string_length(value));
  else
    buf_append(out, text.p, n);
  json_decref(value);
}

void classify_logged(struct str log, struct str word, struct buf *out) {
  static const struct str key = STR_INIT(" error=");
  struct str found = {0};
  while (word.n > 0 && log.p != NULL && log.n > 0) {
    struct str line = str_next_line(&log);
    if (line.n > 0 && memmem(line.p, line.n, word.p, word.n) != NULL)
      found = line;
  }
  const char *at = found.n > 0 ? memmem(found.p, found.n, key.p, key.n) : NULL;
  if (at != NULL)
    classify_add_value((struct str){at + key.n, found.n - (size_t)(at - found.p) - key.n}, out);
  else
    buf_str(out, str_trim(found));
}
