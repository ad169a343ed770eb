/* Finds what a failure means: by fields and statuses first, by words second. */
#include "provider/agent/classify.h"

#include "base/err.h"
#include "format/json_object.h"
#include "provider/moment.h"

#include <ctype.h>
#include <string.h>

enum error_class classify_of_status(int status) {
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
  case 501:
  case 505:
    return CLASS_BAD_REQUEST;
  default:
    if (status >= 500)
      return CLASS_OVERLOADED;
    return status >= 400 ? CLASS_BAD_REQUEST : CLASS_NONE;
  }
}

struct meaning classify_failure(const struct failure_said *f) {
  unsigned skip = 0;
  if (f->by_status == CLASS_RATE_LIMIT) /* it names tokens a minute, not those of the prompt */
    skip |= 1u << CLASS_BAD_REQUEST;
  if (f->param.n > 0 && !str_eq_c(f->param, "model")) /* the model lacks that parameter only */
    skip |= 1u << CLASS_NOT_FOUND;
  struct meaning m = {.row = words_find(f->codes, f->message, false, skip)};
  m.class = m.row ? m.row->class : f->by_status;
  if (m.class == CLASS_NONE && (m.row = words_find(f->codes, f->message, true, 0)) != NULL)
    m.class = m.row->class;
  m.elsewhere = m.class == CLASS_BAD_REQUEST && (m.row == NULL || m.row->weak);
  return m;
}

enum error_class classify_of_words(struct str text) {
  return classify_failure(&(struct failure_said){.message = text}).class;
}

void classify_wait(const struct words_row *row, struct str text, int64_t now_ms,
                   enum error_class *class, int64_t *wait_ms) {
  bool lasts = row != NULL && row->lasts;
  int64_t said_ms = lasts ? 0 : moment_in_text(text, now_ms);
  if (*class == CLASS_QUOTA && said_ms > 0) /* there will be more */
    *class = CLASS_RATE_LIMIT;
  if (lasts || (*class != CLASS_RATE_LIMIT && *class != CLASS_OVERLOADED))
    *wait_ms = 0;
  else if (*wait_ms <= 0)
    *wait_ms = said_ms;
  if (*class == CLASS_RATE_LIMIT && *wait_ms <= 0 && row != NULL && row->until != NULL)
    *wait_ms = moment_of_value(str_from(row->until), now_ms);
}

/* Returns the client's own words in an error's text: the first line, without its "Error:". */
static struct str error_words(const char *message) {
  static const char *const heads[] = {"API Error:", "Error:", "429"};
  struct str rest = str_from(message), line = str_trim(str_next_line(&rest));
  for (size_t i = 0; i < ARRAY_LEN(heads); i++)
    if (str_starts_fold(line, heads[i]))
      line = str_trim((struct str){line.p + strlen(heads[i]), line.n - strlen(heads[i])});
  return line;
}

void classify_settle(struct call_result *r, int64_t now_ms) {
  bool answered = r->class == CLASS_NONE;
  struct str text = answered ? str_trim(buf_view(&r->text.bytes)) : error_words(r->message);
  const struct words_row *report;
  char words[sizeof r->message];
  if (r->structured != NULL || (answered && r->by_model) || r->class == CLASS_CANCELLED ||
      r->class == CLASS_TIMEOUT)
    return;
  struct meaning m = {.class = r->class};
  /* A stray word of an error is not enough to change a class; a whole report is. */
  if ((answered || r->class == CLASS_CRASHED || r->class == CLASS_OVERLOADED) &&
      (report = words_report(text)) != NULL) {
    m = classify_failure(&(struct failure_said){.message = text, .by_status = report->class});
    print_into(words, sizeof words, STR_FMT, STR_ARG(text));
    call_result_fail(r, m.class, "%s", words);
  } else if (!answered) {
    m.row = words_find(STR(""), text, false, 0);
  }
  if (r->class != CLASS_NONE)
    classify_wait(m.row, str_from(r->message), now_ms, &r->class, &r->retry_after_ms);
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
