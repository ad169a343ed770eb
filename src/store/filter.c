/* Decides which sessions a list includes, by time, workflow, method of judging, and provider. */
#include "store/filter.h"

#include "core/record.h"
#include "judge/stage.h"
#include "store/reader.h"
#include "json/pull.h"

#include <stdio.h>
#include <string.h>

/* Rejects an impossible time, such as one in a 13th month: it would be read, and printed, as
 * another. */
static bool is_a_time(const char *text, int64_t *time_ms) {
  char same[RECORD_TIME_BYTES];
  if (!record_time_parse(text, time_ms))
    return false;
  record_time(*time_ms, same);
  return strcmp(text, same) == 0;
}

bool filter_since(const char *text, int64_t now_ms, int64_t *since_ms, struct err *err) {
  static const struct {
    char unit;
    long seconds;
  } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7L * 86400}};
  struct str word = str_from(text);
  char date[32];
  long n;
  for (size_t i = 0; i < ARRAY_LEN(units) && word.n > 1; i++)
    if (word.p[word.n - 1] == units[i].unit && str_to_long((struct str){word.p, word.n - 1}, &n) &&
        n >= 0 && n < 1000000) {
      *since_ms = now_ms - (int64_t)n * units[i].seconds * 1000;
      return true;
    }
  if (word.n == strlen("2026-01-31") &&
      snprintf(date, sizeof date, "%sT00:00:00.000Z", text) < (int)sizeof date)
    text = date;
  return is_a_time(text, since_ms) ||
         err_set(err, ERR_USAGE,
                 "since %.40s: write how long ago (90m, 12h, 3d, 2w), a date (2026-01-31), or a "
                 "time as in a log",
                 text);
}

/* Returns false if the list has a word that is no status. NULL is fine. */
static bool statuses_are_known(const char *list, struct err *err) {
  static const char *const statuses[] = {
      "queued",   "running", "waiting",       "paused",        "needs_input", "stopped", "open",
      "complete", "abort",   "rule_no_match", "max_movements", "cancelled",   "failed",  "bad",
      "empty",    NULL};
  for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
    const struct str word = {at, strcspn(at, ",")};
    bool known = false;
    for (size_t i = 0; statuses[i]; i++)
      known = known || str_eq_c(word, statuses[i]);
    if (!known)
      return err_no_such(err, "status", word, statuses);
  }
  return true;
}

bool filter_check(const struct filter *s, struct err *err) {
  enum judge_stage stage;
  if (s->method != NULL && !judge_stage_from_name(str_from(s->method), &stage))
    return err_set(err, ERR_USAGE,
                   "method %.40s: write structured_output, phase3_tag, phase1_tag, ai_judge, "
                   "auto_select, when ...",
                   s->method);
  return statuses_are_known(s->statuses, err) || err_wrap(err, "status");
}

bool filter_is_set(const struct filter *s) {
  return s->statuses != NULL || s->since_ms != 0 || s->workflow != NULL || s->method != NULL ||
         s->provider != NULL;
}

bool filter_wants_summary(const struct filter *s, const struct summary *b) {
  int64_t then;
  if (s->since_ms != 0 && (!record_time_parse(b->started, &then) || then < s->since_ms))
    return false;
  return s->workflow == NULL || (b->workflow != NULL && strcmp(b->workflow, s->workflow) == 0);
}

static bool has_line(const struct buf *lines, struct str line) {
  struct str rest = buf_view(lines);
  while (rest.n > 0)
    if (str_eq(str_next_line(&rest), line))
      return true;
  return false;
}

/* Adds the name that a record has in a member, unless it is there. */
static void filter_add_name(struct buf *lines, struct str record, const char *member) {
  struct pull at = pull_of(record);
  struct str key, text;
  buf_auto_t scratch = {0};
  for (bool in = pull_open(&at, '{'); in && pull_key(&at, &key);)
    if (!str_eq_c(key, member)) {
      pull_skip(&at);
    } else if (pull_text(&at, &text)) {
      struct str name = pull_decode(text, &scratch);
      if (name.n > 0 && !has_line(lines, name))
        buf_printf(lines, STR_FMT "\n", STR_ARG(name));
    }
}

bool filter_read_names(const struct store_ref *ref, struct buf *providers, struct buf *methods) {
  struct log_reader r;
  struct str line;
  struct err err;
  if (!reader_open(&r, ref, &err))
    return false;
  while (reader_next(&r, &line) && r.whole) /* only lines that can say so are taken apart */
    if (str_has(line, "\"type\":\"judgment\""))
      filter_add_name(methods, line, "method");
    else if (str_has(line, "\"type\":\"call_start\""))
      filter_add_name(providers, line, "provider");
  bool ok = !r.too_long && r.error == 0;
  reader_close(&r);
  return ok;
}

bool filter_wants_log(const struct filter *s, const struct store_ref *ref) {
  buf_auto_t providers = {0}, methods = {0};
  if (s->method == NULL && s->provider == NULL)
    return true;
  (void)filter_read_names(ref, &providers, &methods);
  return (s->method == NULL || has_line(&methods, str_from(s->method))) &&
         (s->provider == NULL || has_line(&providers, str_from(s->provider)));
}
