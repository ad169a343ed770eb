/* Classifies errors of agents by the statuses and words that vendors use. */
#include "provider/agent/classify.h"

#include "base/err.h"
#include "format/json_object.h"

#include <ctype.h>
#include <math.h>
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

/* Returns true if the text has one of the phrases, which stand a | apart, in any case (ASCII). */
static bool classify_has(struct str text, const char *phrases) {
  for (size_t n; *phrases != '\0'; phrases += n + (phrases[n] == '|')) {
    n = strcspn(phrases, "|");
    for (size_t i = 0; i + n <= text.n; i++)
      if (strncasecmp(text.p + i, phrases, n) == 0)
        return true;
  }
  return false;
}

bool classify_of_quota(struct str text) {
  static const char phrases[] =
      "insufficient_quota|credit balance|out of credit|enforced_spend_limit|spend limit|"
      "payment required|billing|insufficient credits|insufficient funds|quota exceeded|"
      "current quota|daily quota";
  return classify_has(text, phrases) && classify_retry_after_ms(text) == 0;
}

/* The words are tried in this order, more specific ones first. Only words that name a reason count,
 * none that a program uses in passing. */
static const struct {
  const char *phrases; /* a | apart */
  enum error_class class;
} known[] = {
    {"blocked due to safety|safety settings|content filter|content_filter|prohibited_content|"
     "usage policy|usage policies|can't help with this",
     CLASS_REFUSED},
    {"prompt is too long|input is too long|exceeds the maximum length|context_length_exceeded|"
     "maximum context length|context window|request too large|payload too large|"
     "entity too large",
     CLASS_BAD_REQUEST},
    {"max_output_tokens|output token maximum|max_tokens", CLASS_LENGTH},
    {"model does not exist|model not found|model_not_found|is not found for api version|"
     "unknown model|issue with the selected model|session not found|no conversation found|"
     "no session found|no saved session|not_found",
     CLASS_NOT_FOUND},
    {"permission_denied|unauthorized|unauthenticated|authentication|invalid api key|"
     "invalid_api_key|incorrect api key|api key not|no api key|missing api key|not logged in|"
     "please log in|please run /login|please sign in|login required|an auth method",
     CLASS_AUTH},
    {"rate limit|rate_limit|ratelimit|too many requests|resource_exhausted|exhausted your|"
     "usage limit",
     CLASS_RATE_LIMIT},
    {"overloaded|at capacity|high demand|temporarily unavailable|service unavailable|"
     "internal server error|server_error|bad gateway",
     CLASS_OVERLOADED},
    {"econnrefused|econnreset|enotfound|etimedout|eai_again|connection_failed|"
     "connection error|connection refused|connection reset|connection dropped|"
     "connection closed|connect error|network error|stream disconnected|error sending request|"
     "error decoding response body|unexpected eof|unexpected end of file|socket hang up|"
     "socket connection|fetch failed|other side closed|request timed out|premature close",
     CLASS_NETWORK},
    {"unknown option|unknown argument|unexpected argument|unrecognized|not a valid|"
     "invalid value|invalid_request|invalid_argument|must be provided|no prompt provided|"
     "cannot be used with root",
     CLASS_BAD_REQUEST},
};

enum error_class classify_of_words(struct str text) {
  if (classify_of_quota(text))
    return CLASS_QUOTA;
  for (size_t i = 0; i < ARRAY_LEN(known); i++)
    if (classify_has(text, known[i].phrases))
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

double classify_duration_part(struct str text, size_t *i) {
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

int64_t classify_duration_ms(struct str text) {
  double value = 0, part;
  size_t i = 0;
  do {
    size_t from = i;
    part = classify_duration_part(text, &i);
    value += part;
    if (i == from || !isalpha((unsigned char)text.p[i - 1]))
      break; /* "6m0s" is one duration, "30 2" is not */
  } while (i < text.n && isdigit((unsigned char)text.p[i]));
  return value > 0 && value < 1e13 ? (int64_t)ceil(value) : 0;
}

int64_t classify_retry_after_ms(struct str text) {
  static const char *const before[] = {"try again in ", "retry in ",     "retry after ",
                                       "retry-after: ", "retry_after: ", "reset after "};
  for (size_t w = 0; w < ARRAY_LEN(before); w++) {
    size_t n = strlen(before[w]);
    for (size_t i = 0; i + n < text.n; i++)
      if (strncasecmp(text.p + i, before[w], n) == 0) {
        int64_t ms = classify_duration_ms((struct str){text.p + i + n, text.n - i - n});
        if (ms > 0)
          return ms;
      }
  }
  return 0;
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
  if (at != NULL) {
    /* A value of logfmt ends at a space, or is quoted as in JSON. */
    struct str text = (struct str){at + key.n, found.n - (size_t)(at - found.p) - key.n};
    json_t *value = NULL;
    size_t n = 0;
    if (text.n > 0 && text.p[0] == '"')
      value = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
    while (n < text.n && text.p[n] != ' ')
      n++;
    if (value != NULL)
      buf_str(out, json_view(value));
    else
      buf_append(out, text.p, n);
    json_decref(value);
  } else
    buf_str(out, str_trim(found));
}
