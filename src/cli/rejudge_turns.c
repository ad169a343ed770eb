/* Chooses the recorded turns that are to be judged once more. */
#include "cli/rejudge_turns.h"

#include "base/limits.h"
#include "base/log.h"
#include "cli/find.h"

#include <stdlib.h>
#include <string.h>

static bool a_judge_was_needed(const struct row *row) {
  for (size_t i = 0; i < row->stage_count; i++)
    if (!row->stages[i].machine)
      return true;
  return false;
}

static void choose_on_row(void *ctx, const struct row *row) {
  struct rejudge_turns *t = ctx;
  if (row->kind != ROW_JUDGMENT || !census_wants_row(t->census, row))
    return;
  if (!a_judge_was_needed(row) || strlen(t->rows.session.id) != STORE_ID_BYTES - 1) {
    t->passed_over++;
    return;
  }
  if (t->count == t->room) {
    t->room = t->room ? t->room * 2 : 64;
    t->list = xrealloc(t->list, t->room * sizeof *t->list);
  }
  struct rejudge_turn *one = &t->list[t->count++];
  *one = (struct rejudge_turn){.turn = row->turn,
                               .rule = (long)row->rule,
                               .workflow = row->workflow,
                               .movement = row->movement,
                               .worker = row->worker,
                               .worker_model = row->worker_model,
                               .judge = row->provider,
                               .judge_model = row->model};
  for (size_t i = 0; i < row->stage_count; i++) {
    one->calls += row->stages[i].use.calls;
    one->cost_nano += row->stages[i].use.cost_nano;
  }
  memcpy(one->session, t->rows.session.id, sizeof one->session);
}

static void choose_read(struct rejudge_turns *t, const struct store_ref *ref) {
  enum rows_log state = rows_read(&t->rows, ref);
  t->unsound += state != ROWS_SOUND && state != ROWS_TORN && state != ROWS_EMPTY;
}

static bool choose_store(struct rejudge_turns *t, const struct store *store, struct err *err) {
  if (t->has_source && strcmp(t->source.where, store->where) != 0)
    return err_set(err, ERR_USAGE,
                   "the logs are in several folders: name logs from one folder at a time");
  t->source = *store;
  t->has_source = true;
  return true;
}

static bool choose_folder(void *ctx, const struct store *store, struct err *err) {
  struct rejudge_turns *t = ctx;
  struct store_id *ids = NULL;
  size_t count = 0;
  if (!choose_store(t, store, err) || !store_list(store, &ids, &count, err))
    return false;
  for (size_t i = 0; i < count; i++) {
    struct store_ref ref;
    store_ref(store, ids[i].id, &ref);
    choose_read(t, &ref);
  }
  free(ids);
  return true;
}

static bool choose_log(void *ctx, const struct store_ref *ref, struct err *err) {
  struct rejudge_turns *t = ctx;
  char id[STORE_ID_BYTES];
  struct store store;
  store_of(ref, &store);
  store_ref_id(ref, id);
  if (id[0] == '\0')
    return err_set(err, ERR_USAGE, "%.200s: a log to be judged again must have its session's name",
                   ref->name);
  if (!choose_store(t, &store, err))
    return false;
  choose_read(t, ref);
  return true;
}

static int turn_order(const void *a, const void *b) {
  const struct rejudge_turn *x = a, *y = b;
  int c = strcmp(x->session, y->session);
  return c != 0 ? c : (x->turn > y->turn) - (x->turn < y->turn);
}

static void choose_sort(struct rejudge_turns *t) {
  size_t kept = 0;
  if (t->count > 1)
    qsort(t->list, t->count, sizeof *t->list, turn_order);
  for (size_t i = 0; i < t->count; i++) /* a session may have been named twice */
    if (kept == 0 || turn_order(&t->list[kept - 1], &t->list[i]) != 0)
      t->list[kept++] = t->list[i];
  t->count = kept;
  for (size_t i = 0; i < kept; i++) {
    t->calls += t->list[i].calls;
    t->cost_nano += t->list[i].cost_nano;
  }
}

bool rejudge_choose(struct rejudge_turns *t, const struct cli_args *args, struct err *err) {
  const char *logs = cli_value(args, "logs");
  const struct find_each each = {choose_folder, choose_log, t};
  t->rows = (struct rows){.names = &t->census->names, .sink = {choose_on_row, NULL}, .ctx = t};
  if (!find_take_all(args->words, args->word_count, logs, &each, err))
    return false;
  choose_sort(t);
  return t->count <= LIMIT_AUDIT_LABEL_COUNT ||
         err_set(err, ERR_USAGE,
                 "these are %zu judgments, but at most %u can be judged again at once: filter",
                 t->count, LIMIT_AUDIT_LABEL_COUNT);
}

void rejudge_turns_deinit(struct rejudge_turns *t) {
  rows_deinit(&t->rows);
  free(t->list);
  *t = (struct rejudge_turns){0};
}
