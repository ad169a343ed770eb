/* Walks a log's lines for a row of a list. */
#include "view/skim.h"

#include "base/limits.h"
#include "store/reader.h"
#include "json/pull.h"

#include <assert.h>

enum {
  ESCAPE_BYTES = 6, /* of a character, at most: \\u and four digits */
  HEAD_BYTES = 128, /* of a line, in which its type stands */
  END_BYTES = LIMIT_SKIM_BYTES / 4
};

const char *skim_method_name(int method) {
  return method < STAGE_COUNT ? judge_stage_match_method((enum judge_stage)method) : "no rule";
}

/* Returns the beginning of the task in a first record. Nothing is built from the workflow in it. */
static struct str task_in(struct str line, struct buf *scratch) {
  struct pull at = pull_of(line);
  struct str key, raw = {0};
  bool found = false;
  if (pull_open(&at, '{'))
    while (!found && pull_key(&at, &key)) {
      found = str_eq_c(key, "task");
      if (!found)
        pull_skip(&at);
      else if (!pull_text(&at, &raw))
        raw = (struct str){0};
    }
  if (raw.n > LIMIT_VIEW_LINE_BYTES * ESCAPE_BYTES)
    raw.n = LIMIT_VIEW_LINE_BYTES * ESCAPE_BYTES;
  return str_trim(pull_decode(raw, scratch));
}

static void skim_task(struct skim *g, struct str line) {
  struct buf scratch = {0};
  struct str task = task_in(line, &scratch);
  if (task.n > 0)
    task = str_next_line(&task);
  if (task.n > LIMIT_VIEW_LINE_BYTES)
    task.n = LIMIT_VIEW_LINE_BYTES;
  buf_str(&g->task, task);
  buf_deinit(&scratch);
}

static void skim_judgment(struct skim *g, struct str line) {
  struct pull at = pull_of(line);
  struct str key, method = {0};
  int64_t rule = 0;
  enum judge_stage stage;
  if (pull_open(&at, '{'))
    while (pull_key(&at, &key)) {
      if (str_eq_c(key, "method"))
        (void)pull_text(&at, &method);
      else if (str_eq_c(key, "rule"))
        (void)pull_integer(&at, &rule);
      else if (str_eq_c(key, "ambiguous"))
        g->ambiguous |= pull_true(&at);
      else
        pull_skip(&at);
    }
  if (at.bad)
    return;
  g->ambiguous |= str_has(line, "\"outcome\":\"ambiguous\"");
  bool decided = rule > 0 && judge_stage_from_name(method, &stage);
  g->methods[decided ? (int)stage : SKIM_NO_RULE]++;
}

static void skim_line(struct skim *g, struct str line) {
  struct str head = {line.p, line.n < HEAD_BYTES ? line.n : HEAD_BYTES};
  if (str_has(head, "\"type\":\"judgment\""))
    skim_judgment(g, line);
  else if (str_has(head, "\"type\":\"call_end\"") || str_has(head, "\"type\":\"admission\""))
    g->fell_back |= str_has(line, "\"fallback\":\"");
}

void skim_read(struct skim *g, const struct store_ref *ref) {
  assert(g != NULL && ref != NULL);
  struct log_reader r;
  struct str line;
  struct err ignored;
  *g = (struct skim){0};
  if (!reader_open(&r, ref, &ignored))
    return;
  bool more = reader_next(&r, &line);
  if (more)
    skim_task(g, line);
  uint64_t bytes = reader_bytes(&r);
  bool small = bytes <= LIMIT_SKIM_BYTES;
  if (more && !small) {
    reader_from(&r, bytes - END_BYTES);
    more = reader_next(&r, &line); /* the end of one */
  }
  while (more && (more = reader_next(&r, &line)))
    skim_line(g, line);
  g->whole = small && !r.too_long && r.error == 0;
  reader_close(&r);
}

void skim_deinit(struct skim *g) {
  buf_deinit(&g->task);
}
