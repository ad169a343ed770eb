/* Reads the verdicts of rejudged turns. */
#include "audit/rejudged.h"

#include "base/limits.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rejudged_store(const struct store *of, struct store *out, struct err *err) {
  char where[STORE_PATH_BYTES];
  if (store_is_address(of->where))
    return err_set(
        err, ERR_USAGE,
        "what is judged again is kept in a folder beside the logs, and a shared store has "
        "none: segue store export ID... DIR, then segue rejudge DIR");
  int n = snprintf(where, sizeof where, "%s/" REJUDGED_FOLDER, of->where);
  if (n < 0 || (size_t)n >= sizeof where)
    return err_set(err, ERR_USAGE, "the log folder's path is too long");
  store_at(out, where);
  return true;
}

struct rejudged_log {
  struct rejudged *all;
  struct rows *rows;
  const char *id;
  bool judged;
};

static void on_rejudged(void *ctx, const struct row *row) {
  struct rejudged_log *log = ctx;
  const struct row_again *again = &log->rows->session.again;
  struct rejudged *r = log->all;
  if (row->kind != ROW_JUDGMENT || strlen(again->session) >= sizeof r->list->session ||
      again->session[0] == '\0')
    return;
  log->judged = true;
  if (r->count == LIMIT_AUDIT_LABEL_COUNT) {
    r->left_out++;
    return;
  }
  r->list = xgrow(r->list, &r->room, r->count + 1, sizeof *r->list);
  struct rejudged_verdict *v = &r->list[r->count++];
  *v = (struct rejudged_verdict){.name = again->name,
                                 .settings = again->settings,
                                 .turn = again->turn,
                                 .repeat = again->repeat,
                                 .rule = row->undecided ? REJUDGED_UNDECIDED : (long)row->rule};
  memcpy(v->session, again->session, strlen(again->session) + 1);
}

static void on_rejudged_end(void *ctx, const struct row_session *session) {
  struct rejudged_log *log = ctx;
  const struct row_again *again = &session->again;
  struct rejudged *r = log->all;
  struct str outcome = dictionary_text(r->names, session->outcome);
  bool judged = log->judged;
  log->judged = false;
  if ((!str_eq_c(outcome, "open") && !str_eq_c(outcome, "stopped")) || again->session[0] == '\0' ||
      strlen(again->session) >= sizeof r->left->session || r->left_count == LIMIT_AUDIT_LABEL_COUNT)
    return;
  r->left = xgrow(r->left, &r->left_room, r->left_count + 1, sizeof *r->left);
  struct rejudged_left *left = &r->left[r->left_count++];
  *left = (struct rejudged_left){.name = again->name,
                                 .settings = again->settings,
                                 .turn = again->turn,
                                 .repeat = again->repeat,
                                 .judged = judged};
  memcpy(left->session, again->session, strlen(again->session) + 1);
  memcpy(left->id, log->id, strlen(log->id) + 1);
}

static int compare_numbers(long x, long y) {
  return (x > y) - (x < y);
}

static int rejudged_order(const void *a, const void *b) {
  const struct rejudged_verdict *x = a, *y = b;
  int c = strcmp(x->session, y->session);
  c = c != 0 ? c : compare_numbers(x->turn, y->turn);
  c = c != 0 ? c : compare_numbers((long)x->name, (long)y->name);
  return c != 0 ? c : compare_numbers(x->repeat, y->repeat);
}

bool rejudged_read(struct rejudged *r, const struct store *store, struct err *err) {
  struct store_id *ids = NULL;
  struct rows rows = {.names = r->names, .sink = {on_rejudged, on_rejudged_end}};
  struct rejudged_log log = {.all = r, .rows = &rows};
  size_t count = 0;
  rows.ctx = &log;
  if (!store_exists(store))
    return true;
  if (!store_list(store, &ids, &count, err))
    return false;
  for (size_t i = 0; i < count; i++) {
    struct store_ref ref;
    store_ref(store, ids[i].id, &ref);
    log.id = ids[i].id;
    enum rows_log state = rows_read(&rows, &ref);
    r->unsound += state != ROWS_SOUND && state != ROWS_TORN && state != ROWS_EMPTY;
  }
  free(ids);
  rows_deinit(&rows);
  if (r->count > 1)
    qsort(r->list, r->count, sizeof *r->list, rejudged_order);
  /* One verdict is kept for each time a turn was to be judged. */
  size_t kept = 0;
  for (size_t i = 0; i < r->count; i++)
    if (kept == 0 || rejudged_order(&r->list[kept - 1], &r->list[i]) != 0)
      r->list[kept++] = r->list[i];
  r->count = kept;
  return true;
}

size_t rejudged_find(const struct rejudged *r, const char *session, long turn) {
  size_t low = 0, high = r->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const struct rejudged_verdict *v = &r->list[middle];
    int c = strcmp(v->session, session);
    if (c < 0 || (c == 0 && v->turn < turn))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool rejudged_is_of(const struct rejudged *r, size_t i, const char *session, long turn) {
  return i < r->count && r->list[i].turn == turn && strcmp(r->list[i].session, session) == 0;
}

bool rejudged_second(const struct rejudged *r, const char *named, uint32_t *name, struct err *err) {
  size_t *counts = xcalloc(r->names->count + 2, sizeof *counts), most = 0;
  *name = DICTIONARY_NONE;
  for (size_t i = 0; i < r->count; i++) {
    uint32_t n = r->list[i].name;
    if (r->list[i].rule == REJUDGED_UNDECIDED ||
        (named != NULL && !str_eq_c(dictionary_text(r->names, n), named)))
      continue;
    if (++counts[n] > most) {
      most = counts[n];
      *name = n;
    }
  }
  free(counts);
  return named == NULL || most > 0 ||
         err_set(err, ERR_NOT_FOUND, "--second %.80s: nothing was judged again under that name",
                 named);
}

enum rejudged_says rejudged_says(const struct rejudged *r, uint32_t name, const char *session,
                                 long turn, long rule) {
  for (size_t i = rejudged_find(r, session, turn); rejudged_is_of(r, i, session, turn); i++)
    if (r->list[i].name == name && r->list[i].rule != REJUDGED_UNDECIDED)
      return r->list[i].rule == rule ? REJUDGED_SAME : REJUDGED_OTHER;
  return REJUDGED_NOTHING;
}

void rejudged_deinit(struct rejudged *r) {
  free(r->list);
  free(r->left);
  *r = (struct rejudged){0};
}
