/* Divides what a stage says of several answers among them. A stage of a judge who was asked to
 * correct itself lists the errors of all its answers, one answer after the other. */
#include "audit/flaws_internal.h"

#include "base/limits.h"
#include "format/json_object.h"
#include "judge/reading.h"

#include <string.h>

/* Returns whether the text is a schema's error, of which one answer can have several. */
static bool split_is_schema_error(struct str text) {
  return text.n > 0 && text.p[0] == '$' && !str_has(text, " is not offered (") &&
         !str_has(text, ": 0: no rule holds");
}

static bool split_is_of_tag(struct str text) {
  return text.n > 4 && memcmp(text.p, "tag ", 4) == 0;
}

/* Returns how many errors the schema of the stage has for the answer. */
static size_t split_read(const struct flaw_log *log, const struct flaw *flaw) {
  const struct recall recall = book_recall(&log->book);
  bool ai = strcmp(flaw->stage, "ai_judge") == 0;
  struct buf text = {0};
  struct err err;
  struct reading reading;
  json_t *record = book_get(&log->book, flaw->end_seq, &err);
  if (record == NULL)
    return 1;
  if (!recall_text(&recall, record, "text", &text, &err))
    buf_str(&text, json_view(json_at(record, "text")));
  reading_init(&reading, ai ? log->schemas->evaluation : log->schemas->judgment,
               ai ? "matched_index" : "step", json_at(record, "structured"), buf_view(&text),
               STR(""));
  size_t n = reading.value != NULL && !reading.valid ? reading.errors.count : 1;
  reading_deinit(&reading);
  buf_deinit(&text);
  json_decref(record);
  return n < LIMIT_STAGE_ERROR_COUNT ? n : LIMIT_STAGE_ERROR_COUNT;
}

/* Returns how many of the errors from `at` on are of this answer, which others follow. */
static size_t split_count(const struct flaw_log *log, const struct flaw *flaw, const json_t *texts,
                          size_t at) {
  size_t run = 0, n = 1, all = json_array_size(texts);
  while (at + run < all && split_is_schema_error(json_view(json_array_get(texts, at + run))))
    run++;
  if (run > 1) {
    n = log->schemas != NULL ? split_read(log, flaw) : 1;
    n = n < run ? n : run;
  }
  bool tag = strcmp(flaw->stage, "ai_judge") == 0 && at + n < all &&
             split_is_of_tag(json_view(json_array_get(texts, at + n)));
  return n + tag;
}

/* Returns the class of an answer's errors by their texts. */
static struct str split_reason(const struct flaw *flaw, const json_t *texts, size_t at, size_t n) {
  struct str first = json_view(json_array_get(texts, at));
  enum stage_outcome outcome = OUTCOME_UNREADABLE;
  for (size_t i = at; i < at + n; i++)
    if (str_has(json_view(json_array_get(texts, i)), " is not offered ("))
      outcome = OUTCOME_OUT_OF_RANGE;
  if (outcome == OUTCOME_UNREADABLE && split_is_schema_error(first))
    outcome = OUTCOME_INVALID;
  return str_from(rows_reason(str_from(flaw->stage), outcome, false, first));
}

/* Returns the class of the answer that the stage's outcome is about. */
static struct str split_own(const struct flaw *first, const json_t *texts, size_t at) {
  return str_from(rows_reason(str_from(first->stage), first->joint_outcome, false,
                              json_view(json_array_get(texts, at))));
}

/* Gives n errors from `at` on to the answer. */
static void split_give(struct flaw *flaw, const json_t *texts, size_t at, size_t n,
                       struct str reason) {
  flaw->errors = json_array();
  for (size_t i = at; i < at + n; i++)
    json_array_append_new(flaw->errors,
                          flaw_stage_error(json_view(json_array_get(texts, i)), reason));
  if (n == 0)
    json_array_append_new(flaw->errors, flaw_stage_error(reason, reason));
}

void flaw_split(const struct flaw_log *log, struct flaw *first) {
  json_t *texts = first->joint;
  size_t at = 0, all = json_array_size(texts);
  first->joint = NULL;
  for (size_t k = 0; k < first->joint_count; k++) {
    struct flaw *flaw = &first[k];
    bool last = k + 1 == first->joint_count;
    bool decides = last && !first->joint_mended; /* the stage's own outcome is its own */
    size_t n = last ? all - at : 0;
    if (!last && at < all)
      n = split_count(log, flaw, texts, at);
    n = n < all - at ? n : all - at;
    struct str reason = decides ? split_own(first, texts, at) : split_reason(flaw, texts, at, n);
    split_give(flaw, texts, at, n, reason);
    at += n;
  }
  json_decref(texts);
}
