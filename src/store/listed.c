/* Lists the logs of a store, and keeps the list up to date by what the kernel tells. */
#include "store/listed.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"
#include "store/backend.h"
#include "store/index_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".ndjson"

struct listed *listed_new(const struct store *store, void (*drop)(void *kept)) {
  struct listed *l = xcalloc(1, sizeof *l);
  l->store = *store;
  l->drop = drop;
  return l;
}

static void listed_let_go(struct listed *l, struct listed_log *log) {
  if (log->kept == NULL)
    return;
  l->drop(log->kept);
  log->kept = NULL;
  l->kept--;
}

static void listed_let_all_go(struct listed *l) {
  for (size_t i = 0; i < l->count && l->kept > 0; i++)
    listed_let_go(l, &l->logs[i]);
}

static void listed_clear(struct listed *l) {
  listed_let_all_go(l);
  free(l->logs);
  l->logs = NULL;
  l->count = l->room = 0;
  index_close(l->index);
  l->index = NULL;
}

void listed_free(struct listed *l) {
  if (l == NULL)
    return;
  listed_clear(l);
  stirs_end(&l->stirs);
  free(l);
}

/* --- what changed --- */

/* Returns the index of an id, or where it would be. */
static size_t listed_place(const struct listed *l, const char *id) {
  size_t low = 0, high = l->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(l->logs[middle].id, id) > 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool listed_find(const struct listed *l, const char *id, size_t *i) {
  *i = listed_place(l, id);
  return *i < l->count && strcmp(l->logs[*i].id, id) == 0;
}

static void listed_set_row(const struct listed *l, struct listed_log *log) {
  uint64_t bits[2];
  const struct index_row *row =
      l->index != NULL && index_bits(log->id, bits) ? index_find(l->index, bits) : NULL;
  log->row = row != NULL ? (uint32_t)(row - l->index->rows) + 1 : 0;
}

static void listed_insert(struct listed *l, size_t i, const char *id) {
  if (l->count == l->room) {
    l->room = l->room > 0 ? 2 * l->room : 64;
    l->logs = xrealloc(l->logs, l->room * sizeof *l->logs);
  }
  memmove(&l->logs[i + 1], &l->logs[i], (l->count - i) * sizeof *l->logs);
  l->logs[i] = (struct listed_log){0};
  memcpy(l->logs[i].id, id, STORE_ID_BYTES);
  l->count++;
  listed_set_row(l, &l->logs[i]);
}

static void listed_remove(struct listed *l, size_t i) {
  listed_let_go(l, &l->logs[i]);
  l->count--;
  memmove(&l->logs[i], &l->logs[i + 1], (l->count - i) * sizeof *l->logs);
}

/* Reads the id from a file name. Returns false if it is not that of a log. */
static bool listed_id(const char *name, char id[STORE_ID_BYTES]) {
  if (strlen(name) != STORE_ID_BYTES - 1 + sizeof SUFFIX - 1 ||
      strcmp(name + STORE_ID_BYTES - 1, SUFFIX) != 0)
    return false;
  memcpy(id, name, STORE_ID_BYTES - 1);
  id[STORE_ID_BYTES - 1] = '\0';
  return strspn(id, "0123456789abcdef-") == STORE_ID_BYTES - 1;
}

static void listed_on_stir(void *ctx, const char *name, enum stir what) {
  struct listed *l = ctx;
  char id[STORE_ID_BYTES];
  size_t i;
  if (strcmp(name, INDEX_NAME) == 0) {
    index_close(l->index);
    l->index = NULL;
  }
  if (!listed_id(name, id))
    return;
  bool known = listed_find(l, id, &i);
  if (known) {
    listed_let_go(l, &l->logs[i]);
    l->logs[i].looked = l->logs[i].asks_nobody = false;
  }
  if (known && what == STIR_WENT)
    listed_remove(l, i);
  else if (!known && what == STIR_CAME)
    listed_insert(l, i, id);
}

/* --- reading --- */

static bool listed_read_all(struct listed *l, struct err *err) {
  struct store_id *ids;
  size_t count;
  if (!store_list(&l->store, &ids, &count, err))
    return false;
  l->room = count + 1;
  l->logs = xcalloc(l->room, sizeof *l->logs);
  for (size_t i = 0; i < count; i++)
    memcpy(l->logs[i].id, ids[i].id, STORE_ID_BYTES);
  l->count = count;
  free(ids);
  return true;
}

bool listed_read(struct listed *l, bool watches, struct err *err) {
  assert(l != NULL);
  uint64_t now_ms = clock_mono_ms();
  watches = watches && l->store.ops == &files_ops;
  if (l->stirs.on && (!watches || now_ms - l->read_ms >= LIMIT_LISTED_MS))
    stirs_end(&l->stirs);
  if (l->stirs.on && stirs_take(&l->stirs, listed_on_stir, l))
    return true;
  listed_clear(l);
  l->read_ms = now_ms;
  if (watches)
    (void)stirs_begin(&l->stirs, l->store.where); /* else all is read anew each time */
  if (!listed_read_all(l, err)) {
    stirs_end(&l->stirs);
    return false;
  }
  if (l->count > LIMIT_LISTED_COUNT)
    stirs_end(&l->stirs);
  return true;
}

/* Joins the rows of the index with the logs; they are sorted in opposite directions. */
static void listed_join(struct listed *l) {
  size_t left = l->index->count;
  uint64_t bits[2];
  for (size_t i = 0; i < l->count; i++) {
    struct listed_log *log = &l->logs[i];
    log->row = 0;
    if (!index_bits(log->id, bits))
      continue;
    while (left > 0 && index_compare(l->index->rows[left - 1].id, bits) > 0)
      left--;
    if (left > 0 && index_compare(l->index->rows[left - 1].id, bits) == 0)
      log->row = (uint32_t)left;
  }
}

void listed_index(struct listed *l) {
  if (l->index != NULL)
    return;
  l->index = index_open(&l->store);
  listed_join(l);
}

const struct index_row *listed_row(struct listed *l, size_t i) {
  assert(i < l->count && l->index != NULL);
  struct listed_log *log = &l->logs[i];
  if (log->row == 0)
    return NULL;
  const struct index_row *row = &l->index->rows[log->row - 1];
  if (row->flags & INDEX_ENDED)
    return row;
  if (!log->looked) {
    if (!index_stat(l->index->dir, log->id, &log->bytes, &log->time_ns))
      log->bytes = 0;
    log->looked = l->stirs.on;
  }
  return log->bytes > 0 && row->bytes == log->bytes && row->time_ns == log->time_ns ? row : NULL;
}

bool listed_keep(struct listed *l, size_t i, void *what) {
  assert(i < l->count && l->logs[i].kept == NULL);
  if (!l->stirs.on || l->drop == NULL)
    return false;
  if (l->kept >= LIMIT_LISTED_KEPT)
    listed_let_all_go(l);
  l->logs[i].kept = what;
  l->kept++;
  return true;
}
