/* Sorts the entries of a ledger by session. */
#include "store/heads.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

struct loading {
  struct heads *heads;
  size_t cap;
  uint64_t number; /* number of entries seen */
  const struct ledger_end *anchor;
};

static void heads_add(struct loading *l, const struct ledger_entry *entry) {
  struct heads *h = l->heads;
  h->items = xgrow(h->items, &l->cap, h->count + 1, sizeof *h->items);
  h->items[h->count++] = *entry;
}

static void take_entry(void *ctx, const struct ledger_entry *entry) {
  struct loading *l = ctx;
  l->number++;
  if (l->anchor != NULL && l->number == l->anchor->entries)
    l->heads->anchored = strcmp(l->anchor->hash, entry->self) == 0;
  heads_add(l, entry);
}

/* Sorts by session, and the entries of one in their order. */
static int by_session(const void *a, const void *b) {
  const struct ledger_entry *x = a, *y = b;
  int order = strcmp(x->session, y->session);
  if (order == 0)
    order = x->number < y->number ? -1 : x->number > y->number;
  return order;
}

/* Drops entries that no longer count. */
static void heads_settle(struct heads *h) {
  size_t kept = 0, begin = 0;
  if (h->count > 1)
    qsort(h->items, h->count, sizeof *h->items, by_session);
  for (size_t i = 0; i < h->count; i++) {
    const struct ledger_entry entry = h->items[i];
    if (kept == begin || strcmp(h->items[begin].session, entry.session) != 0)
      begin = kept;
    while (kept > begin && (entry.kind == LEDGER_REMOVED ||
                            (entry.kind == LEDGER_CUT && h->items[kept - 1].seq > entry.seq)))
      kept--;
    h->items[kept++] = entry;
  }
  h->count = kept;
}

bool heads_load(struct heads *h, const struct store *store, const struct ledger_end *anchor,
                struct err *err) {
  struct loading l = {.heads = h, .anchor = anchor};
  *h = (struct heads){.anchored = anchor == NULL || anchor->entries == 0};
  if (!ledger_read(store, take_entry, &l, &h->end, err)) {
    heads_deinit(h);
    return false;
  }
  heads_settle(h);
  return true;
}

static bool parse_line(struct loading *l, struct str text, struct ledger_end *anchor) {
  json_auto_t *line = json_loadb(text.p, text.n, 0, NULL);
  const char *session = json_string_value(json_object_get(line, "session"));
  const char *hash = json_string_value(json_object_get(line, "hash"));
  const json_t *entries = json_object_get(line, "ledger");
  json_int_t seq = json_integer_value(json_object_get(line, "seq"));
  bool ok = hash != NULL && strlen(hash) == SHA256_HEX - 1;
  if (ok && json_is_integer(entries)) {
    ok = json_integer_value(entries) >= 0;
    anchor->entries = (uint64_t)json_integer_value(entries);
    memcpy(anchor->hash, hash, SHA256_HEX);
  } else if (ok) {
    struct ledger_entry entry = {.kind = LEDGER_STOP, .number = ++l->number, .seq = (uint64_t)seq};
    ok = session != NULL && strlen(session) == STORE_ID_BYTES - 1 && seq > 0;
    if (ok) {
      memcpy(entry.session, session, STORE_ID_BYTES);
      memcpy(entry.hash, hash, SHA256_HEX);
      heads_add(l, &entry);
    }
  }
  return ok;
}

bool heads_parse(struct heads *h, struct str text, struct ledger_end *anchor, struct err *err) {
  struct loading l = {.heads = h};
  int number = 0;
  *h = (struct heads){.anchored = true};
  *anchor = (struct ledger_end){0};
  while (text.n > 0) {
    number++;
    if (parse_line(&l, str_next_line(&text), anchor))
      continue;
    heads_deinit(h);
    return err_set(err, ERR_INVALID, "line %d is not a session's head as segue heads prints it",
                   number);
  }
  heads_settle(h);
  return true;
}

const struct ledger_entry *heads_of(const struct heads *h, const char *session, size_t *n) {
  size_t low = 0, high = h->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(h->items[middle].session, session) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  *n = 0;
  while (low + *n < h->count && strcmp(h->items[low + *n].session, session) == 0)
    ++*n;
  return *n > 0 ? &h->items[low] : NULL;
}

const struct ledger_entry *heads_last(const struct heads *h, const char *session) {
  size_t n;
  const struct ledger_entry *first = heads_of(h, session, &n);
  return n > 0 ? &first[n - 1] : NULL;
}

bool heads_ended(const struct heads *h, const char *session) {
  const struct ledger_entry *last = heads_last(h, session);
  return last != NULL && last->kind == LEDGER_END;
}

void heads_deinit(struct heads *h) {
  free(h->items);
  *h = (struct heads){0};
}

const struct heads *heads_once(struct heads **lazy, const struct store *store) {
  struct err err;
  if (*lazy == NULL) {
    *lazy = xcalloc(1, sizeof **lazy);
    if (!heads_load(*lazy, store, NULL, &err))
      **lazy = (struct heads){0};
  }
  return *lazy;
}

void heads_once_free(struct heads **lazy) {
  if (*lazy != NULL)
    heads_deinit(*lazy);
  free(*lazy);
  *lazy = NULL;
}
