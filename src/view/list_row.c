/* Reads from a log what a row of a list says. */
#include "view/list_row.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "format/json_object.h"
#include "store/reader.h"
#include "json/pull.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- between the ends of the log --- */

/* Holds what a list shows of a session that is at neither end of its log. Nothing is proven: no
 * hash is checked, and lines are walked, not built. Texts are raw. */
struct skim {
  struct buf task;
  long methods[SKIM_METHODS]; /* judgments by the stage that decided; the last: no stage did */
  bool ambiguous;             /* a judgment, or a stage of one, named two rules */
  bool fell_back;             /* another provider took over a call */
  bool whole;                 /* the whole log was read, not only its last records */
};

enum {
  ESCAPE_BYTES = 6, /* of a character, at most: \\u and four digits */
  END_BYTES = LIMIT_SKIM_BYTES / 4
};

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

/* Returns true if one of the stages named two rules. */
static bool skim_stages(struct pull *at) {
  struct str key, outcome;
  bool ambiguous = false;
  if (!pull_open(at, '['))
    return false;
  while (pull_item(at))
    for (bool in = pull_open(at, '{'); in && pull_key(at, &key);) {
      if (!str_eq_c(key, "outcome"))
        pull_skip(at);
      else if (pull_text(at, &outcome))
        ambiguous |= str_eq_c(outcome, "ambiguous");
    }
  return ambiguous;
}

static void skim_line(struct skim *g, struct str line) {
  struct pull at = pull_of(line);
  struct str key, type = {0}, method = {0}, fallback;
  bool judged = false, ambiguous = false, fell_back = false;
  int64_t rule = 0;
  enum judge_stage stage;
  if (pull_open(&at, '{'))
    while (pull_key(&at, &key)) {
      if (str_eq_c(key, "type")) {
        (void)pull_text(&at, &type);
        judged = str_eq_c(type, "judgment");
        if (!judged && !str_eq_c(type, "call_end") && !str_eq_c(type, "admission"))
          return; /* the rest of such a line, which may be long, says nothing here */
      } else if (str_eq_c(key, "method")) {
        (void)pull_text(&at, &method);
      } else if (str_eq_c(key, "rule")) {
        (void)pull_integer(&at, &rule);
      } else if (str_eq_c(key, "ambiguous")) {
        ambiguous |= pull_true(&at);
      } else if (str_eq_c(key, "stages")) {
        ambiguous |= skim_stages(&at);
      } else if (str_eq_c(key, "fallback")) {
        fell_back = pull_text(&at, &fallback);
      } else {
        pull_skip(&at);
      }
    }
  if (at.bad)
    return;
  g->fell_back |= !judged && fell_back;
  if (!judged)
    return;
  g->ambiguous |= ambiguous;
  bool decided = rule > 0 && judge_stage_from_name(method, &stage);
  g->methods[decided ? (int)stage : SKIM_NO_RULE]++;
}

/* Reads the log; one over LIMIT_SKIM_BYTES only for its task, and for what its end says. */
static void skim_read(struct skim *g, const struct store_ref *ref) {
  assert(g != NULL && ref != NULL);
  struct log_reader r;
  struct str line;
  struct err ignored;
  *g = (struct skim){0};
  if (!reader_open(&r, ref, &ignored))
    return;
  bool more = reader_next(&r, &line);
  if (more) {
    struct buf scratch = {0};
    struct str task = task_in(line, &scratch);
    if (task.n > 0)
      task = str_next_line(&task);
    if (task.n > LIMIT_VIEW_LINE_BYTES)
      task.n = LIMIT_VIEW_LINE_BYTES;
    buf_str(&g->task, task);
    buf_deinit(&scratch);
  }
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

/* --- the row --- */

/* Copies as much of a text as a row shows. */
static struct str list_row_line(struct str text) {
  size_t n = text.n < LIMIT_VIEW_LINE_BYTES ? text.n : LIMIT_VIEW_LINE_BYTES;
  return (struct str){xstrndup(n > 0 ? text.p : "", n), n};
}

static struct str list_row_word(const char *text) {
  return list_row_line(str_from(text));
}

static int64_t list_row_time(const char *text) {
  int64_t ms;
  return record_time_parse(text, &ms) ? ms : 0;
}

/* Keeps how the judgments of a long log were decided, known once it has stopped or ended. */
static void keep_methods(struct view_row *row, const json_t *methods) {
  const char *name;
  json_t *count;
  json_object_foreach((json_t *)methods, name, count) {
    for (int i = 0; i < STAGE_COUNT; i++)
      if (strcmp(name, skim_method_name(i)) == 0 ||
          strcmp(name, judge_stage_name((enum judge_stage)i)) == 0) {
        row->methods[i] = (long)json_integer_value(count);
        break;
      }
  }
}

static void keep_wait(struct view_row *row, const struct summary *b) {
  struct buf text = {0};
  if (b->wait == NULL || strcmp(b->status, "running") != 0)
    return;
  buf_printf(&text, "%s%s%s", b->wait->what, b->wait->provider[0] ? " of " : "", b->wait->provider);
  const char *until = b->wait->gives_up[0] ? b->wait->gives_up : b->wait->until;
  if (until[0] != '\0')
    buf_printf(&text, ", until %s", until);
  row->wait = list_row_line(buf_view(&text));
  row->retries = strcmp(b->wait->what, "concurrency") != 0 && strcmp(b->wait->what, "seats") != 0 &&
                 strcmp(b->wait->what, "folder") != 0;
  row->wait_ms = list_row_time(b->wait->since);
  buf_deinit(&text);
}

struct list_row *list_row_of(struct summary *owned_b, const struct store_ref *ref) {
  struct summary b = *owned_b;
  struct list_row *d = xcalloc(1, sizeof *d);
  struct view_row *row = &d->row;
  store_ref_id(ref, row->id);
  if (row->id[0] == '\0') /* its log has a name that says no id */
    print_into(row->id, sizeof row->id, "%s", b.session);
  row->workflow = list_row_word(b.workflow);
  row->movement = list_row_word(b.movement);
  row->message = list_row_word(b.message);
  row->started_ms = list_row_time(b.started);
  row->updated_ms = list_row_time(b.updated);
  row->turns = b.turns;
  row->submitted = b.submitted;
  row->asks = json_array_size(b.questions);
  const json_t *cost = json_at(b.spent, "cost_usd");
  row->tokens = json_integer_value(json_at(b.spent, "input")) +
                json_integer_value(json_at(b.spent, "output"));
  row->priced = json_is_number(cost);
  row->cost_usd = row->priced ? json_number_value(cost) : 0;
  row->unpriced = json_at(b.spent, "unpriced") != NULL;
  keep_methods(row, b.methods);
  /* Commands are programs of the workflow, not providers. */
  struct buf text = {0};
  const char *name;
  const json_t *used;
  json_object_foreach((json_t *)json_at(b.spent, "providers"), name, used) {
    if (strcmp(name, "command") != 0)
      buf_printf(&text, "%s%s", text.n > 0 ? ", " : "", name);
  }
  row->providers = list_row_line(buf_view(&text));
  buf_deinit(&text);
  keep_wait(row, &b);
  d->unfinished = strcmp(b.status, "running") == 0;
  print_into(d->status, sizeof d->status, "%s", summary_status(&b));
  memcpy(d->summary.started, b.started, sizeof b.started);
  d->summary.workflow = b.workflow;
  b.workflow = NULL;
  summary_deinit(&b);
  *owned_b = (struct summary){0};
  return d;
}

struct list_row *list_row_new(const struct store_ref *ref) {
  struct summary b;
  struct err ignored;
  return summary_read(&b, ref, &ignored) ? list_row_of(&b, ref) : NULL;
}

void list_row_skim(struct list_row *d, const struct store_ref *ref) {
  struct view_row *row = &d->row;
  struct skim g;
  if (d->skimmed)
    return;
  d->skimmed = true;
  skim_read(&g, ref);
  row->task = list_row_line(buf_view(&g.task));
  row->ambiguous = g.ambiguous;
  row->fell_back = g.fell_back;
  long known = 0;
  for (size_t i = 0; i < SKIM_METHODS; i++)
    known += row->methods[i];
  row->last_methods = !g.whole && known == 0;
  if (g.whole || row->last_methods)
    memcpy(row->methods, g.methods, sizeof row->methods);
  buf_deinit(&g.task);
}

void list_row_clear(struct list_row *d) {
  const struct str texts[] = {d->row.workflow,  d->row.task,    d->row.movement,
                              d->row.providers, d->row.message, d->row.wait};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free((char *)texts[i].p);
  summary_deinit(&d->summary);
  *d = (struct list_row){0};
}

void list_row_free(struct list_row *d) {
  if (d == NULL)
    return;
  list_row_clear(d);
  free(d);
}
