/* Gathers what waits for people from the logs of a store. */
#include "store/inbox.h"

#include "base/limits.h"
#include "base/log.h"
#include "store/index.h"
#include "store/reader.h"

#include <stdlib.h>
#include <string.h>

enum { LAST_BYTES = 16 * 1024 };

static void add_questions(json_t *list, const json_t *questions, const json_t *spent,
                          const char *workflow, const char *id) {
  size_t i;
  json_t *question;
  json_array_foreach((json_t *)questions, i, question) {
    json_t *item = json_pack("{ss}", "id", id);
    json_object_set_new(item, "workflow", json_string(workflow));
    json_object_update(item, question);
    json_object_set(item, "spent", (json_t *)spent);
    if (json_array_size(list) < LIMIT_INBOX_COUNT)
      json_array_append(list, item);
    json_decref(item);
  }
}

static void inbox_add(json_t *list, const struct summary *b, const char *id) {
  add_questions(list, b->questions, b->spent, b->workflow, id);
}

/* Reads the last line into `text`, if it is whole and not too long. */
static bool inbox_last_line(const struct store_ref *ref, struct buf *text, struct str *line) {
  struct log_reader r;
  struct err ignored;
  if (!reader_open(&r, ref, &ignored))
    return false;
  uint64_t size = reader_bytes(&r);
  size_t n = size < LAST_BYTES ? (size_t)size : LAST_BYTES;
  buf_clear(text);
  buf_reserve(text, n + 1);
  bool ok = n > 1 && reader_read_all(&r, size - n, text->p, n) && text->p[n - 1] == '\n';
  reader_close(&r);
  const char *before = ok ? memrchr(text->p, '\n', n - 1) : NULL;
  if (before != NULL)
    *line = (struct str){before + 1, (size_t)(text->p + n - 1 - (before + 1))};
  return before != NULL;
}

/* Adds what the last record says: for a stopped or ended session it says all. False: read more. */
static bool add_by_last(json_t *list, const char *id, struct str line) {
  static const char stop[] = "\"type\":\"session_stop\"", end[] = "\"type\":\"session_end\"";
  size_t n = line.n < 128 ? line.n : 128; /* only v, seq and ts come before it */
  if (memmem(line.p, n, end, sizeof end - 1) != NULL)
    return true;
  if (memmem(line.p, n, stop, sizeof stop - 1) == NULL)
    return false;
  json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
  add_questions(list, json_object_get(record, "questions"), json_object_get(record, "spent"), NULL,
                id);
  json_decref(record);
  return record != NULL;
}

static void inbox_take_log(json_t *list, const struct store *store, const char *id,
                           struct buf *text) {
  struct store_ref ref;
  struct summary b;
  struct str line;
  struct err ignored;
  store_ref(store, id, &ref);
  if (inbox_last_line(&ref, text, &line) && add_by_last(list, id, line))
    return;
  if (!summary_read(&b, &ref, &ignored))
    return;
  if (!summary_is_over(&b) && !summary_is_stopped(&b))
    summary_look(&b, &ref);
  inbox_add(list, &b, id);
  summary_deinit(&b);
}

void inbox_add_log(json_t *list, const struct store *store, const char *id) {
  struct buf text = {0};
  inbox_take_log(list, store, id, &text);
  buf_deinit(&text);
}

static int by_since(const void *a, const void *b) {
  const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
  const char *at = json_string_value(json_object_get(x, "since"));
  const char *bt = json_string_value(json_object_get(y, "since"));
  return strcmp(at ? at : "", bt ? bt : "");
}

static json_t *inbox_sort(json_t *list) {
  size_t n = json_array_size(list);
  json_t **items = xcalloc(n + 1, sizeof *items), *sorted = json_array();
  for (size_t i = 0; i < n; i++)
    items[i] = json_array_get(list, i);
  qsort(items, n, sizeof *items, by_since);
  for (size_t i = 0; i < n; i++)
    json_array_append(sorted, items[i]);
  free(items);
  json_decref(list);
  return sorted;
}

json_t *inbox_list(const struct store *store,
                   const struct summary *(*live)(void *ctx, const char *id), void *ctx,
                   struct err *err) {
  struct store_id *ids;
  size_t count;
  struct buf text = {0};
  if (!store_list(store, &ids, &count, err))
    return NULL;
  json_t *list = json_array();
  struct index *x = index_open(store, NULL, INDEX_NOTHING);
  for (size_t i = count; i-- > 0;) {
    const struct summary *known = live ? live(ctx, ids[i].id) : NULL;
    const struct index_row *row = known == NULL ? index_row_of_list(x, ids[i].id) : NULL;
    if (known != NULL)
      inbox_add(list, known, ids[i].id);
    else if (row == NULL || (row->flags & INDEX_ASKS))
      inbox_take_log(list, store, ids[i].id, &text);
  }
  index_close(x);
  free(ids);
  buf_deinit(&text);
  return inbox_sort(list);
}
