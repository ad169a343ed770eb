/* Reads many sessions at a glance, and counts their judgments. */
#include "view/folder.h"

#include "base/log.h"
#include "core/record.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void view_folder_init(struct view_folder *f) {
  *f = (struct view_folder){.census = census_new()};
}

static struct str row_keep(struct view_folder *f, const char *text) {
  struct str kept = str_from(text);
  if (kept.n > LIMIT_VIEW_LINE_BYTES)
    kept.n = LIMIT_VIEW_LINE_BYTES;
  return arena_str(&f->arena, kept);
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

static int64_t folder_time(const char *text) {
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

/* Reads what neither end of the log says. */
static void row_skim(struct view_folder *f, struct view_row *row, const struct store_ref *ref) {
  struct skim g;
  skim_read(&g, ref);
  row->task = arena_str(&f->arena, buf_view(&g.task));
  row->ambiguous = g.ambiguous;
  row->fell_back = g.fell_back;
  long known = 0;
  for (size_t i = 0; i < SKIM_METHODS; i++)
    known += row->methods[i];
  row->last_methods = !g.whole && known == 0;
  if (g.whole || row->last_methods)
    memcpy(row->methods, g.methods, sizeof row->methods);
  skim_deinit(&g);
}

static void keep_spent(struct view_row *row, const json_t *spent) {
  const json_t *cost = json_at(spent, "cost_usd");
  row->tokens =
      json_integer_value(json_at(spent, "input")) + json_integer_value(json_at(spent, "output"));
  row->priced = json_is_number(cost);
  row->cost_usd = row->priced ? json_number_value(cost) : 0;
  row->unpriced = json_at(spent, "unpriced") != NULL;
}

/* Keeps the names of providers. Commands are programs of the workflow, not providers. */
static void keep_providers(struct view_folder *f, struct view_row *row, const json_t *spent) {
  struct buf text = {0};
  const char *name;
  const json_t *used;
  json_object_foreach((json_t *)json_at(spent, "providers"), name, used) {
    if (strcmp(name, "command") != 0)
      buf_printf(&text, "%s%s", text.n > 0 ? ", " : "", name);
  }
  row->providers = row_keep(f, buf_c(&text));
  buf_deinit(&text);
}

static void keep_wait(struct view_folder *f, struct view_row *row, const struct brief *b) {
  struct buf text = {0};
  if (b->wait == NULL || strcmp(b->status, "running") != 0)
    return;
  buf_printf(&text, "%s of %s", b->wait->what, b->wait->provider);
  if (b->wait->until[0] != '\0')
    buf_printf(&text, ", until %s", b->wait->until);
  row->wait = row_keep(f, buf_c(&text));
  row->retries = strcmp(b->wait->what, "concurrency") != 0 && strcmp(b->wait->what, "seats") != 0 &&
                 strcmp(b->wait->what, "folder") != 0;
  row->wait_ms = folder_time(b->wait->since);
  buf_deinit(&text);
}

/* filter: or NULL. */
static const char *row_status(const struct brief *b, const struct store_ref *ref,
                              const struct view_filter *filter) {
  char id[STORE_ID_BYTES];
  const char *told = NULL;
  bool unfinished = strcmp(b->status, "running") == 0;
  store_ref_id(ref, id);
  if (filter != NULL && filter->stands != NULL)
    told = filter->stands(filter->ctx, id);
  if (told != NULL)
    return told;
  return unfinished && !store_is_owned(ref) ? "open" : brief_status(b);
}

static void keep_brief(struct view_folder *f, struct view_row *row, const struct brief *b,
                       const struct store_ref *ref, const char *status) {
  if (row->id[0] == '\0') /* its log has a name that says no id */
    (void)snprintf(row->id, sizeof row->id, "%s", b->session);
  row->workflow = row_keep(f, b->workflow);
  row->movement = row_keep(f, b->movement);
  row->status = row_keep(f, status);
  row->message = row_keep(f, b->message);
  row->class = class_of(status);
  row->started_ms = folder_time(b->started);
  row->updated_ms = folder_time(b->updated);
  row->turns = b->turns;
  row->submitted = b->submitted;
  row->asks = json_array_size(b->questions);
  keep_spent(row, b->spent);
  keep_methods(row, b->methods);
  keep_providers(f, row, b->spent);
  keep_wait(f, row, b);
  if (!f->tasks_later)
    row_skim(f, row, ref);
}

/* Counts its judgments; the census says how its chain stands. */
static const char *count_log(struct view_folder *f, const struct store_ref *ref) {
  uint64_t before[ROWS_LOG_COUNT];
  memcpy(before, f->census->logs, sizeof before);
  census_read(f->census, ref);
  for (int i = 0; i < ROWS_LOG_COUNT; i++)
    if (f->census->logs[i] != before[i])
      return rows_log_name((enum rows_log)i);
  return "";
}

/* b: NULL: it cannot be read. */
static void add_row(struct view_folder *f, const struct store_ref *ref, const struct brief *b,
                    const char *status) {
  struct view_row row = {0};
  const char *proof = f->census != NULL ? count_log(f, ref) : "sound";
  bool bad = strcmp(proof, rows_log_name(ROWS_SOUND)) != 0 &&
             strcmp(proof, rows_log_name(ROWS_TORN)) != 0 &&
             strcmp(proof, rows_log_name(ROWS_EMPTY)) != 0;
  store_ref_id(ref, row.id);
  if (b != NULL)
    keep_brief(f, &row, b, ref, status);
  row.log = row_keep(f, ref->name);
  row.proof = row_keep(f, proof);
  if (bad || b == NULL) {
    row.class = VIEW_FAILED;
    row.status = STR("bad");
    row.message = STR("its log is not what was written: segue verify says where");
  }
  if (f->count == f->room) {
    f->room = f->room > 0 ? 2 * f->room : 64;
    f->rows = xrealloc(f->rows, f->room * sizeof *f->rows);
  }
  f->classes[row.class]++;
  f->rows[f->count++] = row;
}

static bool row_wanted(const struct select *wanted, const struct store_ref *ref,
                       const struct index_row *row, const struct brief *b, const char *status) {
  return brief_wanted(wanted->statuses, status) && select_wants_brief(wanted, b) &&
         select_wants_log(wanted, ref, row);
}

/* A log that cannot be read is bad. One without a whole record that nobody writes is empty: lists
 * have it, as segue ls does, and reports of what was done do not. */
static void add_unread(struct view_folder *f, const struct store_ref *ref,
                       const struct select *wanted, const struct view_filter *filter) {
  struct brief b;
  if (!brief_unread(&b, ref, NULL))
    return;
  bool bad = strcmp(b.status, "bad") == 0;
  const char *status = strcmp(b.status, "running") == 0 ? row_status(&b, ref, filter) : b.status;
  bool reports = filter == NULL;
  if (!(reports && strcmp(status, "empty") == 0) && row_wanted(wanted, ref, NULL, &b, status))
    add_row(f, ref, bad ? NULL : &b, status);
  brief_deinit(&b);
}

static void add_wanted(struct view_folder *f, const struct store_ref *ref,
                       const struct select *wanted, const struct index_row *row,
                       const struct view_filter *filter) {
  struct brief b;
  struct err err;
  if (!brief_read(&b, ref, &err)) {
    add_unread(f, ref, wanted, filter);
    return;
  }
  const char *status = row_status(&b, ref, filter);
  if (row_wanted(wanted, ref, row, &b, status))
    add_row(f, ref, &b, status);
  brief_deinit(&b);
}

bool view_folder_read(struct view_folder *f, const struct store *store, const struct select *wanted,
                      size_t max, struct err *err) {
  struct store_id *ids;
  size_t count, i = 0;
  if (!store_list(store, &ids, &count, err))
    return false;
  struct index *x = index_open(store);
  for (; i < count && f->count < max; i++) {
    const struct index_row *row = index_row(x, ids[i].id);
    struct store_ref ref;
    if (row != NULL && select_passes_over(wanted, x, row))
      continue;
    store_ref(store, ids[i].id, &ref);
    add_wanted(f, &ref, wanted, row, NULL);
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
  (void)snprintf(f->text, sizeof f->text, "%s", text);
  return true;
}

/* Ends the next word; NULL: there is none. *at: what is behind it. */
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
  return (since == NULL || select_since(since, now_ms, &f->select.since_ms, err)) &&
         select_check(&f->select, err);
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

static void drop_unsaid(struct view_folder *f, const struct view_filter *filter) {
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

/* Equal ones stay newest first. */
static int row_order(const void *a, const void *b, void *filter) {
  const struct view_filter *f = filter;
  const struct view_row *x = a, *y = b;
  double left = sort_value(x, f->sort), right = sort_value(y, f->sort);
  int order = (right > left) - (right < left);
  if (order == 0)
    return strcmp(y->id, x->id);
  return f->least_first ? -order : order;
}

static void sort_rows(struct view_folder *f, const struct store *store,
                      const struct view_filter *filter) {
  struct view_filter by = {.sort = filter->sort, .least_first = filter->least_first};
  if (f->count > 1)
    qsort_r(f->rows, f->count, sizeof *f->rows, row_order, &by);
  if (f->count > filter->max) {
    f->left_out += f->count - filter->max;
    f->count = filter->max;
  }
  for (size_t i = 0; f->tasks_later && i < f->count; i++) {
    struct store_ref ref;
    store_ref(store, f->rows[i].id, &ref);
    if (f->rows[i].started_ms > 0) /* else nothing of it is known: it is bad */
      row_skim(f, &f->rows[i], &ref);
  }
}

/* --- sorted, by the index --- */

struct sorting { /* a log as the index has it */
  double value;
  const char *id;
  const struct index_row *row;
};

static double sorting_value(const struct index_row *row, enum view_sort sort) {
  const struct view_row shown = {.started_ms = row->started_ms,
                                 .updated_ms = row->updated_ms,
                                 .turns = (long)row->turns,
                                 .tokens = row->tokens,
                                 .cost_usd = row->cost_usd};
  return sort_value(&shown, sort);
}

static int sorting_order(const void *a, const void *b, void *filter) {
  const struct view_filter *f = filter;
  const struct sorting *x = a, *y = b;
  int order = (y->value > x->value) - (y->value < x->value);
  if (order == 0)
    return strcmp(y->id, x->id);
  return f->least_first ? -order : order;
}

/* Logs whose row in the index holds are opened only as far as they may be shown: how one stands
 * that did not end is not in it. The others are read; the caller sorts all that was read. */
static void read_sorted(struct view_folder *f, const struct store *store,
                        const struct view_filter *filter, const struct index *x,
                        const struct store_id *ids, size_t count) {
  struct view_filter by = {.sort = filter->sort, .least_first = filter->least_first};
  struct sorting *known = xcalloc(count + 1, sizeof *known);
  struct store_ref ref;
  size_t n = 0, looked = 0, i = 0;
  for (size_t k = 0; k < count && looked < LIMIT_API_READ_COUNT; k++) {
    const struct index_row *row = index_row_quick(x, ids[k].id);
    if (row != NULL && select_passes_over(&filter->select, x, row))
      continue;
    if (row != NULL) {
      known[n++] = (struct sorting){sorting_value(row, filter->sort), ids[k].id, row};
      continue;
    }
    looked++;
    store_ref(store, ids[k].id, &ref);
    add_wanted(f, &ref, &filter->select, row, filter);
  }
  qsort_r(known, n, sizeof *known, sorting_order, &by);
  for (size_t before = f->count;
       i < n && f->count - before < filter->max && looked < LIMIT_API_READ_COUNT; i++, looked++) {
    store_ref(store, known[i].id, &ref);
    add_wanted(f, &ref, &filter->select, known[i].row, filter);
  }
  f->left_out += n - i;
  free(known);
}

bool view_folder_page(struct view_folder *f, const struct store *store,
                      const struct view_filter *filter, struct err *err) {
  assert(f != NULL && filter != NULL);
  struct store_id *ids;
  size_t count, i = 0, looked = 0;
  if (!store_list(store, &ids, &count, err))
    return false;
  bool sorts = filter->sort != VIEW_SORT_NONE;
  struct index *x = sorts || select_is_set(&filter->select) ? index_open(store) : NULL;
  f->tasks_later = sorts && filter->words[0] == NULL;
  if (f->tasks_later) {
    read_sorted(f, store, filter, x, ids, count);
    i = count;
  }
  for (; i < count && (sorts || f->count < filter->max) && looked < LIMIT_API_READ_COUNT; i++) {
    const struct index_row *row = x != NULL ? index_row_quick(x, ids[i].id) : NULL;
    struct store_ref ref;
    size_t before = f->count;
    if (!sorts && filter->before != NULL && strcmp(ids[i].id, filter->before) >= 0)
      continue;
    if (row != NULL && select_passes_over(&filter->select, x, row))
      continue;
    looked++;
    store_ref(store, ids[i].id, &ref);
    add_wanted(f, &ref, &filter->select, row, filter);
    if (f->count > before)
      drop_unsaid(f, filter);
  }
  if (sorts)
    sort_rows(f, store, filter);
  else if (i < count && i > 0)
    (void)snprintf(f->next, sizeof f->next, "%s", ids[i - 1].id);
  index_close(x);
  free(ids);
  return true;
}

void view_folder_finish(struct view_folder *f) {
  census_sort(f->census);
}

void view_folder_deinit(struct view_folder *f) {
  free(f->rows);
  if (f->census != NULL)
    census_free(f->census);
  arena_deinit(&f->arena);
  *f = (struct view_folder){0};
}
