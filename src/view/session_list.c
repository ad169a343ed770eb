/* Reads many sessions at a glance, and counts their judgments. */
#include "view/session_list.h"

#include "audit/verified_reader.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "format/json_object.h"
#include "store/index.h"
#include "store/reader.h"
#include "store/summary.h"
#include "json/pull.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- one row --- */

/* A row of a list says this of a session by its log alone, valid until the log changes. The caller
 * has to say how the session stands: who owns the log, what a daemon knows.
 *
 *   d = list_row_new(&ref)       both ends of the log; NULL: summary_read cannot read it
 *   list_row_skim(d, &ref)       what is between them, once
 *   list_row_free(d)             NULL is fine */

struct list_row {
  struct view_row row; /* without log, status, class and proof; each text is malloc'd */
  struct summary
      summary;     /* only the name of its workflow and when it began, for filter_wants_summary */
  char status[24]; /* summary_status */
  bool unfinished; /* neither stopped nor ended: it runs if somebody owns the log */
  bool skimmed;
};

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
  AUTO(reader_close) struct log_reader r = {0};
  struct str line;
  struct err ignored;
  *g = (struct skim){0};
  if (!reader_open(&r, ref, &ignored))
    return;
  bool more = reader_next(&r, &line);
  if (more) {
    buf_auto_t scratch = {0};
    struct str task = task_in(line, &scratch);
    if (task.n > 0)
      task = str_next_line(&task);
    if (task.n > LIMIT_VIEW_LINE_BYTES)
      task.n = LIMIT_VIEW_LINE_BYTES;
    buf_str(&g->task, task);
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
  JSON_MEMBERS(methods, name, count)
    for (int i = 0; i < STAGE_COUNT; i++)
      if (strcmp(name, skim_method_name(i)) == 0 ||
          strcmp(name, judge_stage_name((enum judge_stage)i)) == 0) {
        row->methods[i] = (long)json_integer_value(count);
        break;
      }
}

static void keep_wait(struct view_row *row, const struct summary *b) {
  buf_auto_t text = {0};
  if (b->wait == NULL || strcmp(b->status, "running") != 0)
    return;
  if (b->wait->tries > 0 || summary_waits(b))
    summary_say_wait(b, &text);
  else
    buf_printf(&text, "%s%s%s%s%s", b->wait->what, b->wait->provider[0] ? " of " : "",
               b->wait->provider, b->wait->until[0] != '\0' ? ", until " : "", b->wait->until);
  row->wait = list_row_line(buf_view(&text));
  row->retries = strcmp(b->wait->what, "concurrency") != 0 && strcmp(b->wait->what, "seats") != 0 &&
                 strcmp(b->wait->what, "folder") != 0 && !summary_waits(b);
  row->wait_ms = list_row_time(b->wait->since);
}

/* Makes a digest of what summary_unread says. */
static struct list_row *list_row_of(struct summary *owned_b, const struct store_ref *ref) {
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
  row->tokens = json_int_at(b.spent, "input") + json_int_at(b.spent, "output");
  row->priced = json_is_number(cost);
  row->cost_usd = row->priced ? json_number_value(cost) : 0;
  row->unpriced = json_at(b.spent, "unpriced") != NULL;
  keep_methods(row, b.methods);
  /* Commands are programs of the workflow, not providers. */
  buf_auto_t text = {0};
  JSON_MEMBERS(json_at(b.spent, "providers"), name, used)
    if (strcmp(name, "command") != 0)
      buf_printf(&text, "%s%s", text.n > 0 ? ", " : "", name);
  row->providers = list_row_line(buf_view(&text));
  keep_wait(row, &b);
  d->unfinished = strcmp(b.status, "running") == 0 && !summary_waits(&b);
  print_into(d->status, sizeof d->status, "%s", summary_status(&b));
  memcpy(d->summary.started, b.started, sizeof b.started);
  d->summary.workflow = b.workflow;
  b.workflow = NULL;
  summary_deinit(&b);
  *owned_b = (struct summary){0};
  return d;
}

static struct list_row *list_row_new(const struct store_ref *ref) {
  struct summary b;
  struct err ignored;
  return summary_read(&b, ref, &ignored) ? list_row_of(&b, ref) : NULL;
}

static void list_row_skim(struct list_row *d, const struct store_ref *ref) {
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

/* frees what it holds */
static void list_row_clear(struct list_row *d) {
  const struct str texts[] = {d->row.workflow,  d->row.task,    d->row.movement,
                              d->row.providers, d->row.message, d->row.wait};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free((char *)texts[i].p);
  summary_deinit(&d->summary);
  *d = (struct list_row){0};
}

static void list_row_free(struct list_row *d) {
  if (d == NULL)
    return;
  list_row_clear(d);
  free(d);
}

void session_list_init(struct session_list *f) {
  *f = (struct session_list){.aggregate = aggregate_new()};
}

/* Copies as much of a text as a row shows. */
static struct str row_keep(struct session_list *f, struct str text) {
  if (text.n > LIMIT_VIEW_LINE_BYTES)
    text.n = LIMIT_VIEW_LINE_BYTES;
  return arena_str(&f->arena, text);
}

const char *view_class_statuses(enum view_class class) {
  static const char *const statuses[VIEW_CLASS_COUNT] = {
      [VIEW_FAILED] = "failed,abort,rule_no_match,max_movements,bad,empty",
      [VIEW_NEEDS] = "needs_input",
      [VIEW_WAITS] = "queued,waiting,paused,stopped,open",
      [VIEW_RUNS] = "running",
      [VIEW_DONE] = "complete",
      [VIEW_CANCELLED] = "cancelled"};
  return statuses[class];
}

enum view_class view_class_of(const char *status) {
  for (int i = VIEW_FAILED + 1; i < VIEW_CLASS_COUNT; i++)
    if (summary_wanted(view_class_statuses((enum view_class)i), status))
      return (enum view_class)i;
  return VIEW_FAILED;
}

/* filter may be NULL. */
static const char *row_status(const struct list_row *d, const struct store_ref *ref,
                              const struct view_filter *filter) {
  char id[STORE_ID_BYTES];
  const char *told = NULL;
  store_ref_id(ref, id);
  if (filter != NULL && filter->stands != NULL)
    told = filter->stands(filter->ctx, id);
  if (told != NULL)
    return told;
  return d->unfinished && !store_is_owned(ref) ? "open" : d->status;
}

/* Counts its judgments; the aggregate says how its chain stands. */
static const char *count_log(struct session_list *f, const struct store_ref *ref) {
  uint64_t before[ROWS_LOG_COUNT];
  memcpy(before, f->aggregate->logs, sizeof before);
  (void)aggregate_read(f->aggregate, ref);
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    if (f->aggregate->logs[i] != before[i])
      return rows_log_name((enum rows_log)i);
  return "";
}

static struct str *row_texts(struct view_row *row, size_t k) {
  struct str *const texts[] = {&row->log,      &row->workflow,  &row->task,
                               &row->movement, &row->providers, &row->status,
                               &row->message,  &row->wait,      &row->verification};
  return k < ARRAY_LEN(texts) ? texts[k] : NULL;
}

/* d NULL: the log cannot be read. */
static void add_row(struct session_list *f, const struct store_ref *ref, const struct list_row *d,
                    const char *status) {
  struct view_row row = {0};
  const char *verification = rows_log_name(ROWS_SOUND);
  if (f->aggregate != NULL)
    verification = count_log(f, ref);
  else if (d != NULL && verified_is_damaged(ref, &f->proof_left, NULL))
    verification = rows_log_name(ROWS_TAMPERED);
  bool bad = strcmp(verification, rows_log_name(ROWS_SOUND)) != 0 &&
             strcmp(verification, rows_log_name(ROWS_TORN)) != 0 &&
             strcmp(verification, rows_log_name(ROWS_EMPTY)) != 0;
  if (d != NULL) {
    row = d->row;
    row.status = str_from(status);
    row.class = view_class_of(status);
  } else {
    store_ref_id(ref, row.id);
  }
  row.log = str_from(ref->name);
  row.verification = str_from(verification);
  if (bad || d == NULL) {
    row.class = VIEW_FAILED;
    row.status = STR("bad");
    row.message = STR("its log is not what was written: segue verify says where");
  }
  struct str *text;
  for (size_t k = 0; (text = row_texts(&row, k)) != NULL; k++)
    *text = row_keep(f, *text);
  f->rows = xgrow(f->rows, &f->room, f->count + 1, sizeof *f->rows);
  f->classes[row.class]++;
  f->rows[f->count++] = row;
}

static bool row_wanted(const struct filter *wanted, const struct store_ref *ref,
                       const struct index_row *row, const struct summary *b, const char *status) {
  return summary_wanted(wanted->statuses, status) && filter_wants_summary(wanted, b) &&
         (row != NULL || filter_wants_log(wanted, ref));
}

static void add_wanted(struct session_list *f, const struct store_ref *ref, struct list_row *d,
                       const struct filter *wanted, const struct index_row *row,
                       const struct view_filter *filter) {
  const char *status = row_status(d, ref, filter);
  if (!row_wanted(wanted, ref, row, &d->summary, status))
    return;
  if (!f->tasks_later)
    list_row_skim(d, ref);
  add_row(f, ref, d, status);
}

/* Adds a log that cannot be read, as bad. A log without a whole record that nobody writes is empty:
 * lists have it, as segue ls does, and reports of what was done do not. */
static void add_unread(struct session_list *f, const struct store_ref *ref,
                       const struct filter *wanted, const struct view_filter *filter) {
  struct summary b;
  if (!summary_unread(&b, ref, NULL))
    return;
  struct list_row *d = list_row_of(&b, ref);
  bool reports = filter == NULL, bad = strcmp(d->status, "bad") == 0;
  const char *status = d->unfinished ? row_status(d, ref, filter) : d->status;
  if (!(reports && strcmp(status, "empty") == 0) &&
      row_wanted(wanted, ref, NULL, &d->summary, status)) {
    if (!bad && !f->tasks_later)
      list_row_skim(d, ref);
    add_row(f, ref, bad ? NULL : d, status);
  }
  list_row_free(d);
}

bool session_list_read(struct session_list *f, const struct store *store,
                       const struct filter *wanted, size_t max, struct err *err) {
  struct store_id *ids;
  size_t count, i = 0;
  if (!store_list(store, &ids, &count, err))
    return false;
  struct index *x = index_open(store, wanted, INDEX_NOTHING);
  for (; i < count && f->count < max; i++) {
    const struct index_row *row = index_row(x, ids[i].id);
    struct store_ref ref;
    if (row != NULL && row->passed_over)
      continue;
    store_ref(store, ids[i].id, &ref);
    struct list_row *d = list_row_new(&ref);
    if (d != NULL)
      add_wanted(f, &ref, d, wanted, row, NULL);
    else
      add_unread(f, &ref, wanted, NULL);
    list_row_free(d);
  }
  f->left_out += count - i;
  index_close(x);
  free(ids);
  return true;
}

/* --- at a glance --- */

/* Copies the text, to be cut into words. */
static bool filter_take(struct view_filter *f, const char *text, struct err *err) {
  if (strlen(text) >= sizeof f->text)
    return err_set(err, ERR_USAGE, "the text to filter by is longer than %zu bytes",
                   sizeof f->text - 1);
  print_into(f->text, sizeof f->text, "%s", text);
  return true;
}

/* Ends the next word; NULL: there is none. *at moves past it. */
static char *filter_next(char **at) {
  char *word = *at + strspn(*at, " ");
  if (*word == '\0')
    return NULL;
  *at = word + strcspn(word, " ");
  if (**at != '\0')
    *(*at)++ = '\0';
  return word;
}

static bool filter_add_word(struct view_filter *f, const char *word, struct err *err) {
  size_t n = 0;
  while (f->words[n] != NULL)
    n++;
  if (n + 1 == ARRAY_LEN(f->words))
    return err_set(err, ERR_USAGE, "more than %zu words cannot be looked for at once", n);
  f->words[n] = word;
  return true;
}

bool view_filter_read(struct view_filter *f, const char *text, int64_t now_ms, struct err *err) {
  assert(f != NULL);
  static const char *const keys[] = {"status", "since", "workflow", "method", "provider"};
  const char *since = NULL;
  *f = (struct view_filter){0};
  const char **slots[] = {&f->select.statuses, &since, &f->select.workflow, &f->select.method,
                          &f->select.provider};
  if (!filter_take(f, text, err))
    return false;
  for (char *word, *at = f->text; (word = filter_next(&at)) != NULL;) {
    size_t key = 0, n = strcspn(word, ":");
    while (word[n] == ':' && key < ARRAY_LEN(keys) && !str_eq_c((struct str){word, n}, keys[key]))
      key++;
    if (word[n] == ':' && key < ARRAY_LEN(keys))
      *slots[key] = word + n + 1;
    else if (!filter_add_word(f, word, err))
      return false;
  }
  return (since == NULL || filter_since(since, now_ms, &f->select.since_ms, err)) &&
         filter_check(&f->select, err);
}

bool view_filter_words(struct view_filter *f, const char *text, struct err *err) {
  if (!filter_take(f, text, err))
    return false;
  for (char *word, *at = f->text; (word = filter_next(&at)) != NULL;)
    if (!filter_add_word(f, word, err))
      return false;
  return true;
}

static bool row_says(const struct view_row *row, const char *word) {
  const struct str texts[] = {row->task, row->workflow, row->movement, row->message,
                              str_from(row->id)};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    if (strcasestr(texts[i].n > 0 ? texts[i].p : "", word) != NULL)
      return true;
  return false;
}

static void drop_unsaid(struct session_list *f, const struct view_filter *filter) {
  const struct view_row *row = &f->rows[f->count - 1];
  for (size_t i = 0; filter->words[i] != NULL; i++)
    if (!row_says(row, filter->words[i])) {
      f->classes[row->class]--;
      f->count--;
      return;
    }
}

/* --- sorted --- */

static const char *const sort_names[] = {"", "started", "took", "turns", "tokens", "cost"};

const char *view_sort_name(enum view_sort sort) {
  return sort_names[sort];
}

bool view_sort_read(const char *word, enum view_sort *sort, bool *least_first) {
  *least_first = word[0] == '-';
  for (size_t i = 0; i < ARRAY_LEN(sort_names); i++)
    if (strcmp(word + *least_first, sort_names[i]) == 0) {
      *sort = (enum view_sort)i;
      return true;
    }
  return false;
}

static double sort_value(const struct view_row *row, enum view_sort sort) {
  switch (sort) {
  case VIEW_SORT_TOOK:
    return (double)(row->updated_ms - row->started_ms);
  case VIEW_SORT_TURNS:
    return (double)row->turns;
  case VIEW_SORT_TOKENS:
    return (double)row->tokens;
  case VIEW_SORT_COST:
    return row->cost_usd;
  case VIEW_SORT_NONE:
  case VIEW_SORT_STARTED:
  case VIEW_SORT_COUNT:
    break;
  }
  return (double)row->started_ms;
}

/* Compares rows; equal ones stay newest first. */
static int row_order(const void *a, const void *b, void *filter) {
  const struct view_filter *f = filter;
  const struct view_row *x = a, *y = b;
  double left = sort_value(x, f->sort), right = sort_value(y, f->sort);
  int order = (right > left) - (right < left);
  if (order == 0)
    return strcmp(y->id, x->id);
  return f->least_first ? -order : order;
}

/* --- logs of a store --- */

struct page { /* the logs that a page is made of */
  const struct store *store;
  const struct view_filter *filter;
  struct store_id *ids; /* newest first */
  size_t count;
  struct index *index; /* NULL: each log is read */
};

static const struct index_row *page_row(const struct page *p, size_t i) {
  return p->index != NULL ? index_row_of_list(p->index, p->ids[i].id) : NULL;
}

/* Adds a log if it is wanted. */
static void add_log(struct session_list *f, const struct page *p, size_t i,
                    const struct index_row *row) {
  struct store_ref ref;
  store_ref(p->store, p->ids[i].id, &ref);
  struct list_row *d = list_row_new(&ref);
  if (d != NULL)
    add_wanted(f, &ref, d, &p->filter->select, row, p->filter);
  else
    add_unread(f, &ref, &p->filter->select, p->filter);
  list_row_free(d);
}

/* Reads for the rows that stay what takes reading a whole log. */
static void skim_shown(struct session_list *f, const struct store *store) {
  for (size_t k = 0; k < f->count; k++) {
    struct view_row *row = &f->rows[k];
    struct list_row d = {0};
    struct store_ref ref;
    if (row->started_ms == 0) /* nothing of it is known: it is bad */
      continue;
    memcpy(d.row.methods, row->methods, sizeof row->methods);
    store_ref(store, row->id, &ref);
    list_row_skim(&d, &ref);
    row->task = row_keep(f, d.row.task);
    row->ambiguous = d.row.ambiguous;
    row->fell_back = d.row.fell_back;
    row->last_methods = d.row.last_methods;
    memcpy(row->methods, d.row.methods, sizeof row->methods);
    list_row_clear(&d);
  }
}

/* --- sorted, by the index --- */

struct sorting { /* a log as the index has it */
  double value;
  size_t i;
  const struct index_row *row;
};

static bool sorts_before(const struct sorting *a, const struct sorting *b, bool least_first) {
  if (a->value != b->value)
    return least_first ? a->value < b->value : a->value > b->value;
  return a->i < b->i; /* the newest first */
}

/* Sinks an item in a heap whose first item comes before all others. */
static void sorting_sink(struct sorting *all, size_t n, size_t at, bool least_first) {
  for (size_t below; (below = 2 * at + 1) < n; at = below) {
    if (below + 1 < n && sorts_before(&all[below + 1], &all[below], least_first))
      below++;
    if (!sorts_before(&all[below], &all[at], least_first))
      return;
    struct sorting moved = all[at];
    all[at] = all[below];
    all[below] = moved;
  }
}

/* Sorts logs by their rows in the index, and opens only those that may be shown: the index does not
 * say how an unfinished session stands. Logs without a valid row are read; the caller sorts
 * everything that was read. */
static void read_sorted(struct session_list *f, const struct page *p) {
  const struct view_filter *filter = p->filter;
  struct sorting *known = xcalloc(p->count + 1, sizeof *known);
  size_t n = 0, looked = 0;
  for (size_t i = 0; i < p->count && looked < LIMIT_API_READ_COUNT; i++) {
    const struct index_row *row = page_row(p, i);
    if (row != NULL && row->passed_over)
      continue;
    if (row != NULL) {
      known[n++] = (struct sorting){row->value, i, row};
      continue;
    }
    looked++;
    add_log(f, p, i, NULL);
  }
  for (size_t at = n / 2; at-- > 0;)
    sorting_sink(known, n, at, filter->least_first);
  for (size_t before = f->count;
       n > 0 && f->count - before < filter->max && looked < LIMIT_API_READ_COUNT; looked++) {
    struct sorting first = known[0];
    known[0] = known[--n];
    sorting_sink(known, n, 0, filter->least_first);
    add_log(f, p, first.i, first.row);
  }
  f->left_out += n;
  free(known);
}

/* Reads the newest page, or as many as may be read to be sorted. */
static void read_newest(struct session_list *f, const struct page *p, bool sorts) {
  const struct view_filter *filter = p->filter;
  size_t i = 0, looked = 0;
  for (; i < p->count && (sorts || f->count < filter->max) && looked < LIMIT_API_READ_COUNT; i++) {
    if (!sorts && filter->before != NULL && strcmp(p->ids[i].id, filter->before) >= 0)
      continue;
    const struct index_row *row = page_row(p, i);
    size_t before = f->count;
    if (row != NULL && row->passed_over)
      continue;
    looked++;
    add_log(f, p, i, row);
    if (f->count > before)
      drop_unsaid(f, filter);
  }
  if (!sorts && i < p->count && i > 0)
    memcpy(f->next, p->ids[i - 1].id, STORE_ID_BYTES);
}

/* Counts all sessions by class. Gives up where many logs would have to be read. */
static void count_all(struct session_list *f, const struct page *p) {
  struct index *x = index_open(p->store, NULL, INDEX_NOTHING);
  size_t looked = 0;
  for (size_t i = 0; i < p->count && looked <= LIMIT_WINDOW_COUNT_LOGS; i++) {
    const struct index_row *row = index_row_of_list(x, p->ids[i].id);
    if (row != NULL && (row->flags & INDEX_OVER)) {
      f->all[view_class_of(row->status)]++;
      continue;
    }
    struct store_ref ref;
    store_ref(p->store, p->ids[i].id, &ref);
    struct list_row *d = list_row_new(&ref);
    f->all[d != NULL ? view_class_of(row_status(d, &ref, p->filter)) : VIEW_FAILED]++;
    list_row_free(d);
    looked++;
  }
  f->all_known = looked <= LIMIT_WINDOW_COUNT_LOGS;
  index_close(x);
}

bool session_list_page(struct session_list *f, const struct store *store,
                       const struct view_filter *filter, struct err *err) {
  assert(f != NULL && filter != NULL);
  static const enum index_value values[VIEW_SORT_COUNT] = {
      [VIEW_SORT_NONE] = INDEX_NOTHING,  [VIEW_SORT_STARTED] = INDEX_STARTED,
      [VIEW_SORT_TOOK] = INDEX_TOOK,     [VIEW_SORT_TURNS] = INDEX_TURNS,
      [VIEW_SORT_TOKENS] = INDEX_TOKENS, [VIEW_SORT_COST] = INDEX_COST};
  struct page p = {.store = store, .filter = filter};
  bool sorts = filter->sort != VIEW_SORT_NONE;
  if (!store_list(store, &p.ids, &p.count, err))
    return false;
  if (sorts || filter_is_set(&filter->select))
    p.index = index_open(store, &filter->select, values[filter->sort]);
  f->proof_left = LIMIT_WINDOW_PROOF_BYTES;
  f->tasks_later = sorts && filter->words[0] == NULL;
  if (f->tasks_later)
    read_sorted(f, &p);
  else
    read_newest(f, &p, sorts);
  if (sorts) {
    struct view_filter by = {.sort = filter->sort, .least_first = filter->least_first};
    if (f->count > 1)
      qsort_r(f->rows, f->count, sizeof *f->rows, row_order, &by);
    if (f->count > filter->max) {
      f->left_out += f->count - filter->max;
      f->count = filter->max;
    }
  }
  if (f->tasks_later)
    skim_shown(f, store);
  if (p.index == NULL && filter->words[0] == NULL && filter->before == NULL && f->next[0] == '\0') {
    memcpy(f->all, f->classes, sizeof f->all); /* the page has them all */
    f->all_known = true;
  } else {
    count_all(f, &p);
  }
  index_close(p.index);
  free(p.ids);
  return true;
}

void session_list_finish(struct session_list *f) {
  aggregate_sort(f->aggregate);
}

void session_list_deinit(struct session_list *f) {
  free(f->rows);
  if (f->aggregate != NULL)
    aggregate_free(f->aggregate);
  arena_deinit(&f->arena);
  *f = (struct session_list){0};
}
