/* Decides which sessions a list includes, by time, workflow, method of judging, and provider. */
#include "store/filter.h"

#include "core/record.h"
#include "format/json_object.h"
#include "judge/stage.h"
#include "store/reader.h"

#include <assert.h>
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
  static const char *const statuses[] = {"queued",        "running",       "waiting",   "paused",
                                         "stopped",       "open",          "complete",  "abort",
                                         "rule_no_match", "max_movements", "cancelled", "failed",
                                         "bad",           "empty",         NULL};
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

/* Looks for a judgment or an answer. Only lines that can contain one are parsed. */
static bool log_holds(const struct store_ref *ref, const char *method, const char *provider) {
  struct log_reader r;
  struct str line;
  struct err err;
  if (!reader_open(&r, ref, &err))
    return false;
  while ((method != NULL || provider != NULL) && reader_next(&r, &line)) {
    bool judged = method != NULL && str_has(line, "\"type\":\"judgment\"");
    bool called = provider != NULL && str_has(line, "\"type\":\"call_start\"");
    if (!judged && !called)
      continue;
    json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (judged && str_eq_c(json_view_at(record, "method"), method))
      method = NULL;
    if (called && str_eq_c(json_view_at(record, "provider"), provider))
      provider = NULL;
    json_decref(record);
  }
  reader_close(&r);
  return method == NULL && provider == NULL;
}

bool filter_wants_log(const struct filter *s, const struct store_ref *ref) {
  assert(ref != NULL);
  return (s->method == NULL && s->provider == NULL) || log_holds(ref, s->method, s->provider);
}
