/* Which sessions `segue ls` shows: since when, of which workflow, judged how, answered by whom. */
#include "cli/ls_filter.h"

#include "core/record.h"
#include "judge/stage.h"
#include "os/clock.h"
#include "store/reader.h"

#include <assert.h>
#include <string.h>

bool ls_filter_since(const char *text, int64_t *since_ms, struct err *err) {
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
      *since_ms = clock_real_ms() - (int64_t)n * units[i].seconds * 1000;
      return true;
    }
  if (word.n == strlen("2026-01-31") &&
      snprintf(date, sizeof date, "%sT00:00:00.000Z", text) < (int)sizeof date)
    text = date;
  return record_time_parse(text, since_ms) ||
         err_set(err, ERR_USAGE,
                 "--since %.40s: write how long ago (90m, 12h, 3d, 2w), a date (2026-01-31), or a "
                 "time as in a log",
                 text);
}

bool ls_filter_read(struct ls_filter *filter, const struct cli_args *args, struct err *err) {
  const char *since = cli_value(args, "since");
  enum judge_stage stage;
  assert(filter != NULL);
  *filter = (struct ls_filter){.workflow = cli_value(args, "workflow"),
                               .method = cli_value(args, "method"),
                               .provider = cli_value(args, "provider")};
  if (filter->method != NULL && !judge_stage_from_name(str_from(filter->method), &stage))
    return err_set(err, ERR_USAGE,
                   "--method %.40s: write structured_output, phase3_tag, phase1_tag, ai_judge, "
                   "auto_select, when ...",
                   filter->method);
  return since == NULL || ls_filter_since(since, &filter->since_ms, err);
}

static bool ls_has_text(const json_t *record, const char *key, const char *wanted) {
  const char *text = json_string_value(json_object_get(record, key));
  return text != NULL && strcmp(text, wanted) == 0;
}

/* Only the lines that can tell are parsed. */
static bool ls_log_holds(const char *name, const char *method, const char *provider) {
  struct store_ref ref;
  struct log_reader r;
  struct str line;
  struct err err;
  if (!store_ref_named(name, &ref) || !reader_open(&r, &ref, &err))
    return false;
  while ((method != NULL || provider != NULL) && reader_next(&r, &line)) {
    bool judged = method != NULL && str_has(line, "\"type\":\"judgment\"");
    bool called = provider != NULL && str_has(line, "\"type\":\"call_start\"");
    if (!judged && !called)
      continue;
    json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (judged && ls_has_text(record, "method", method))
      method = NULL;
    if (called && ls_has_text(record, "provider", provider))
      provider = NULL;
    json_decref(record);
  }
  reader_close(&r);
  return method == NULL && provider == NULL;
}

bool ls_filter_is_set(const struct ls_filter *filter) {
  return filter->since_ms != 0 || filter->workflow != NULL || filter->method != NULL ||
         filter->provider != NULL;
}

bool ls_filter_wants(const struct ls_filter *filter, const json_t *session) {
  assert(filter != NULL);
  const char *started = json_string_value(json_object_get(session, "started"));
  const char *log = json_string_value(json_object_get(session, "log"));
  int64_t then;
  if (filter->since_ms != 0 &&
      (started == NULL || !record_time_parse(started, &then) || then < filter->since_ms))
    return false;
  if (filter->workflow != NULL && !ls_has_text(session, "workflow", filter->workflow))
    return false;
  if (filter->method == NULL && filter->provider == NULL)
    return true;
  return log != NULL && ls_log_holds(log, filter->method, filter->provider);
}
