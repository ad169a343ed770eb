/* Keeps the chains beside the logs of a shared store: the ledger of heads and the labels. */
#include "store/postgres/shared.h"

#include "base/log.h"
#include "store/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN_TRIES = 20, CHAIN_PAGE = 1000 };

typedef void (*compose_fn)(const void *items, size_t i, uint64_t number, struct buf *out,
                           char hash[SHA256_HEX]);

static void compose_entry(const void *items, size_t i, uint64_t number, struct buf *out,
                          char hash[SHA256_HEX]) {
  ledger_compose((const struct ledger_entry *)items + i, number, out, hash);
}

static void compose_label(const void *items, size_t i, uint64_t number, struct buf *out,
                          char hash[SHA256_HEX]) {
  label_compose((const struct label *)items + i, number, out, hash);
}

/* Finds the number and hash of the last line. */
static bool chain_last(struct pg_base *pg, const char *name, uint64_t *number,
                       char hash[SHA256_HEX], struct err *err) {
  enum conn_failure failure;
  const struct conn_arg args[] = {arg_text(name)};
  PGresult *answer =
      base_ask(pg, "SELECT line FROM segue.chain WHERE name = $1 ORDER BY n DESC LIMIT 1", args, 1,
               true, &failure, err);
  memcpy(hash, line_first_hash, SHA256_HEX);
  *number = 0;
  if (answer != NULL && conn_rows(answer) == 1) {
    struct str line = conn_bytes(answer, 0, 0);
    json_t *json = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    const char *last = json_string_value(json_object_get(json, "hash"));
    if (last != NULL && strlen(last) == SHA256_HEX - 1)
      memcpy(hash, last, SHA256_HEX);
    *number = (uint64_t)json_integer_value(json_object_get(json, "n"));
    json_decref(json);
  }
  conn_free(answer);
  return answer != NULL;
}

/* Writes the lines from `number` on. *taken is false if another worker was quicker. */
static bool chain_put(struct pg_base *pg, const char *name, uint64_t number, struct str lines,
                      size_t n, bool *taken, struct err *err) {
  char first[24];
  enum conn_failure failure;
  struct buf list = {0};
  (void)snprintf(first, sizeof first, "%llu", (unsigned long long)number);
  conn_list_begin(&list, ARG_BYTES_LIST, n);
  while (lines.n > 0)
    conn_list_bytes(&list, str_next_line(&lines));
  const struct conn_arg args[] = {
      arg_text(name), arg_text(first), {.kind = ARG_BYTES_LIST, .bytes = buf_view(&list)}};
  PGresult *answer =
      base_ask(pg, "SELECT segue.chain_put($1, $2, $3)", args, 3, false, &failure, err);
  *taken = answer != NULL && conn_text(answer, 0, 0)[0] == 't';
  conn_free(answer);
  buf_deinit(&list);
  return answer != NULL;
}

static bool chain_append(const struct store *store, const char *name, const void *items, size_t n,
                         compose_fn compose, struct err *err) {
  struct pg_base *pg = shared_base(store, err);
  for (int tries = 0; pg != NULL && tries < CHAIN_TRIES; tries++) {
    struct buf lines = {0};
    char hash[SHA256_HEX];
    uint64_t number;
    bool taken = false;
    bool ok = chain_last(pg, name, &number, hash, err);
    for (size_t i = 0; ok && i < n; i++)
      compose(items, i, number + 1 + i, &lines, hash);
    ok = ok && chain_put(pg, name, number + 1, buf_view(&lines), n, &taken, err);
    buf_deinit(&lines);
    if (!ok || taken)
      return ok;
  }
  return pg != NULL &&
         err_set(err, ERR_LOCKED, "others are writing to the %s of the store %s: try again", name,
                 pg->shown);
}

/* Passes the lines to `each` in order, until it returns false. */
static bool chain_read(struct pg_base *pg, const char *name, bool (*each)(void *ctx, struct str),
                       void *ctx, struct err *err) {
  uint64_t from = 0;
  for (int n = CHAIN_PAGE; n == CHAIN_PAGE;) {
    char number[24];
    enum conn_failure failure;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)from);
    const struct conn_arg args[] = {arg_text(name), arg_text(number)};
    PGresult *answer = base_ask(pg,
                                "SELECT line FROM segue.chain WHERE name = $1 AND n > $2::bigint "
                                "ORDER BY n LIMIT 1000",
                                args, 2, true, &failure, err);
    if (answer == NULL)
      return false;
    n = conn_rows(answer);
    for (int i = 0; i < n; i++)
      if (!each(ctx, conn_bytes(answer, i, 0)))
        n = 0;
    conn_free(answer);
    from += (uint64_t)n;
  }
  return true;
}

/* --- the ledger --- */

struct ledger_reading {
  void (*each)(void *ctx, const struct ledger_entry *entry);
  void *ctx;
  struct ledger_end *end;
};

static bool on_entry(void *ctx, struct str text) {
  struct ledger_reading *r = ctx;
  struct ledger_entry entry;
  struct ledger_end *end = r->end;
  json_t *line = line_parse(text, end->hash, &end->why);
  bool sound = line != NULL && ledger_take(line, &entry) &&
               json_integer_value(json_object_get(line, "n")) == (json_int_t)end->entries + 1;
  if (sound) {
    entry.number = ++end->entries;
    memcpy(entry.self, end->hash, SHA256_HEX);
    r->each(r->ctx, &entry);
  } else if (line != NULL) {
    (void)err_set(&end->why, ERR_CORRUPT, "it is not the next entry");
  }
  end->damaged = !sound;
  json_decref(line);
  return sound;
}

bool shared_ledger_append(const struct store *store, const struct ledger_entry *entries, size_t n,
                          struct err *err) {
  return chain_append(store, "heads", entries, n, compose_entry, err);
}

bool shared_ledger_read(const struct store *store,
                        void (*each)(void *ctx, const struct ledger_entry *entry), void *ctx,
                        struct ledger_end *end, struct err *err) {
  struct ledger_reading r = {each, ctx, end};
  struct pg_base *pg = shared_base(store, err);
  *end = (struct ledger_end){0};
  memcpy(end->hash, line_first_hash, SHA256_HEX);
  return pg != NULL && chain_read(pg, "heads", on_entry, &r, err);
}

/* --- labels --- */

struct label_reading {
  label_fn each;
  void *ctx;
  char hash[SHA256_HEX];
  uint64_t count;
  struct err *err;
  bool ok;
};

static bool on_label(void *ctx, struct str text) {
  struct label_reading *r = ctx;
  struct label label;
  json_t *line = line_parse(text, r->hash, r->err);
  r->count++;
  r->ok = line != NULL || err_wrap(r->err, "label %llu", (unsigned long long)r->count);
  if (line != NULL && label_take(line, &label)) {
    label.number = r->count;
    r->each(r->ctx, &label);
  }
  json_decref(line);
  return r->ok;
}

bool shared_labels_append(const struct store *store, const struct label *labels, size_t n,
                          struct err *err) {
  return chain_append(store, "labels", labels, n, compose_label, err);
}

bool shared_labels_read(const struct store *store, label_fn each, void *ctx, struct err *err) {
  struct label_reading r = {.each = each, .ctx = ctx, .err = err, .ok = true};
  struct pg_base *pg = shared_base(store, err);
  memcpy(r.hash, line_first_hash, SHA256_HEX);
  return pg != NULL && chain_read(pg, "labels", on_label, &r, err) && r.ok;
}
