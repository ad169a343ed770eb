/* Reads many sessions at a glance, and counts their judgments. */
#include "view/session_list.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "store/index.h"
#include "view/list_row.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void session_list_init(struct session_list *f) {
  *f = (struct session_list){.aggregate = aggregate_new()};
}

/* Copies as much of a text as a row shows. */
static struct str row_keep(struct session_list *f, struct str text) {
  if (text.n > LIMIT_VIEW_LINE_BYTES)
    text.n = LIMIT_VIEW_LINE_BYTES;
  return arena_str(&f->arena, text);
}

static enum view_class class_of(const char *status) {
  static const struct {
    const char *status;
    enum view_class class;
  } table[] = {{"complete", VIEW_DONE}, {"running", VIEW_RUNS}, {"cancelled", VIEW_CANCELLED},
               {"waiting", VIEW_WAITS}, {"queued", VIEW_WAITS}, {"paused", VIEW_WAITS},
               {"stopped", VIEW_WAITS}, {"open", VIEW_WAITS}};
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    if (strcmp(table[i].status, status) == 0)
      return table[i].class;
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
  const char *verification = f->aggregate != NULL ? count_log(f, ref) : "sound";
  bool bad = strcmp(verification, rows_log_name(ROWS_SOUND)) != 0 &&
             strcmp(verification, rows_log_name(ROWS_TORN)) != 0 &&
             strcmp(verification, rows_log_name(ROWS_EMPTY)) != 0;
  if (d != NULL) {
    row = d->row;
    row.status = str_from(status);
    row.class = class_of(status);
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
  if (f->count == f->room) {
    f->room = f->room > 0 ? 2 * f->room : 64;
    f->rows = xrealloc(f->rows, f->room * sizeof *f->rows);
  }
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

static void sort_rows(struct session_list *f, const struct view_filter *filter) {
  struct view_filter by = {.sort = filter->sort, .least_first = filter->least_first};
  if (f->count > 1)
    qsort_r(f->rows, f->count, sizeof *f->rows, row_order, &by);
  if (f->count > filter->max) {
    f->left_out += f->count - filter->max;
    f->count = filter->max;
  }
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
  f->tasks_later = sorts && filter->words[0] == NULL;
  if (f->tasks_later)
    read_sorted(f, &p);
  else
    read_newest(f, &p, sorts);
  if (sorts)
    sort_rows(f, filter);
  if (f->tasks_later)
    skim_shown(f, store);
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
