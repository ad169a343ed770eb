/* Keeps a census and brings it up to date with the logs. */
#include "audit/census_kept.h"

#include "audit/packed.h"
#include "base/log.h"
#include "os/clock.h"
#include "store/brief.h"
#include "store/kept.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kept_name[] = "census", kept_magic[] = "segue census 3 " SEGUE_VERSION;

enum { SETTLED_MS = 2000 }; /* a folder's time is coarser than a nanosecond */

struct kept_census {
  const struct store *store;
  struct census *census;
  int64_t stamp;                  /* of the store when the list was made; 0: not known */
  struct store_id *known, *waits; /* already in the census, by id; not ended or not sound */
  size_t known_count, wait_count;
  bool spoiled; /* it holds a log that must not be kept as known */
};

/* The key "schema" costs a hash per call, and is not kept. */
static bool kept_key(enum tally_key key) {
  return key != TALLY_SCHEMA;
}

static struct census *kept_census(void) {
  struct census *c = census_new();
  c->more = xcalloc(TALLY_KEY_COUNT, sizeof *c->more);
  for (int i = 0; i < TALLY_KEY_COUNT; i++)
    if (kept_key((enum tally_key)i))
      c->more[c->more_count++] =
          (struct tally_table){.keys = {(enum tally_key)i}, .key_count = 1, .memory = &c->memory};
  return c;
}

bool census_kept_can(const char *by) {
  enum tally_key key;
  return by == NULL || (tally_key_from_name(str_from(by), &key) && kept_key(key));
}

/* --- as bytes --- */

static void kept_put_counts(struct buf *out, const struct census *c) {
  packed_put(out, c->logs, sizeof c->logs);
  packed_put_number(out, c->rows.bytes);
  packed_put_number(out, c->sessions);
  packed_put_number(out, c->unavailable);
  packed_put_number(out, c->no_match);
  packed_put_number(out, c->cause_count);
  packed_put(out, c->causes, c->cause_count * sizeof *c->causes);
  packed_put_number(out, c->outcome_count);
  packed_put(out, c->outcomes, c->outcome_count * sizeof *c->outcomes);
}

static void put_ids(struct buf *out, const struct store_id *ids, size_t count) {
  packed_put_number(out, count);
  packed_put(out, ids, count * sizeof *ids);
}

/* Writes the file from one buffer, reserved at once: the ids of many logs are most of it. */
static void kept_write(const struct kept_census *k) {
  enum { REST_BYTES = 1024 * 1024 };
  struct buf file = {0};
  char sum[SHA256_HEX] = "";
  buf_reserve(&file, (k->known_count + k->wait_count) * sizeof *k->known + REST_BYTES);
  packed_put(&file, kept_magic, sizeof kept_magic);
  packed_put_number(&file, sizeof(struct tally_group));
  size_t at = file.n;
  packed_put(&file, sum, sizeof sum);
  packed_put_names(&file, &k->census->names);
  for (size_t i = 0; i < CENSUS_TABLE_COUNT; i++)
    packed_put_table(&file, &k->census->tables[i]);
  for (size_t i = 0; i < k->census->more_count; i++)
    packed_put_table(&file, &k->census->more[i]);
  kept_put_counts(&file, k->census);
  packed_put_number(&file, (uint64_t)k->stamp);
  put_ids(&file, k->known, k->known_count);
  put_ids(&file, k->waits, k->wait_count);
  sha256_hex(file.p + at + sizeof sum, file.n - at - sizeof sum, NULL, 0, sum);
  memcpy(file.p + at, sum, sizeof sum);
  (void)store_kept_put(k->store, kept_name,
                       buf_view(&file)); /* if it is missing, everything is read as before */
  buf_deinit(&file);
}

static uint32_t mapped(struct packed *in, uint32_t name, const uint32_t *map, uint32_t count) {
  in->bad = in->bad || name >= count;
  return in->bad ? 0 : map[name];
}

static void kept_take_counts(struct packed *in, struct census *c, const uint32_t *map,
                             uint32_t count) {
  packed_take(in, c->logs, sizeof c->logs);
  c->rows.bytes = packed_take_number(in);
  c->sessions = packed_take_number(in);
  c->unavailable = packed_take_number(in);
  c->no_match = packed_take_number(in);
  c->cause_count = (size_t)packed_take_number(in);
  in->bad = in->bad || c->cause_count > LIMIT_AUDIT_CAUSE_COUNT;
  c->cause_count = in->bad ? 0 : c->cause_count;
  packed_take(in, c->causes, c->cause_count * sizeof *c->causes);
  for (size_t i = 0; i < c->cause_count; i++)
    c->causes[i].cause = mapped(in, c->causes[i].cause, map, count);
  c->outcome_count = (size_t)packed_take_number(in);
  in->bad = in->bad || c->outcome_count > LIMIT_AUDIT_CAUSE_COUNT;
  c->outcome_count = in->bad ? 0 : c->outcome_count;
  packed_take(in, c->outcomes, c->outcome_count * sizeof *c->outcomes);
  for (size_t i = 0; i < c->outcome_count; i++)
    c->outcomes[i].word = mapped(in, c->outcomes[i].word, map, count);
}

static struct store_id *take_ids(struct packed *in, size_t *count) {
  uint64_t n = packed_take_number(in);
  in->bad = in->bad || n > in->rest.n / sizeof(struct store_id);
  *count = in->bad ? 0 : (size_t)n;
  struct store_id *ids = xcalloc(*count + 1, sizeof *ids);
  packed_take(in, ids, *count * sizeof *ids);
  for (size_t i = 0; i < *count; i++)
    in->bad = in->bad || ids[i].id[STORE_ID_BYTES - 1] != '\0';
  return ids;
}

static bool kept_take_all(struct kept_census *k, struct packed *in) {
  char magic[sizeof kept_magic], sum[SHA256_HEX], true_sum[SHA256_HEX];
  uint32_t count;
  packed_take(in, magic, sizeof magic);
  uint64_t size = packed_take_number(in);
  packed_take(in, sum, sizeof sum);
  if (in->bad || memcmp(magic, kept_magic, sizeof magic) != 0 || size != sizeof(struct tally_group))
    return false;
  sha256_hex(in->rest.p, in->rest.n, NULL, 0, true_sum);
  if (memcmp(sum, true_sum, sizeof sum) != 0)
    return false;
  uint32_t *map = packed_take_names(in, &k->census->names, &count);
  for (size_t i = 0; i < CENSUS_TABLE_COUNT; i++)
    packed_take_table(in, &k->census->tables[i], map, count);
  for (size_t i = 0; i < k->census->more_count; i++)
    packed_take_table(in, &k->census->more[i], map, count);
  kept_take_counts(in, k->census, map, count);
  free(map);
  k->stamp = (int64_t)packed_take_number(in);
  k->known = take_ids(in, &k->known_count);
  k->waits = take_ids(in, &k->wait_count);
  return !in->bad && in->rest.n == 0;
}

static void kept_forget(struct kept_census *k) {
  census_free(k->census);
  free(k->known);
  free(k->waits);
  *k = (struct kept_census){.store = k->store, .census = kept_census()};
}

static void kept_load(struct kept_census *k) {
  struct buf bytes = {0};
  bool ok = store_kept_get(k->store, kept_name, &bytes);
  struct packed in = {.rest = buf_view(&bytes)};
  if (!ok || !kept_take_all(k, &in))
    kept_forget(k);
  buf_deinit(&bytes);
}

/* --- new logs --- */

static int kept_id_order(const void *a, const void *b) {
  return memcmp(a, b, sizeof(struct store_id));
}

/* Finds the logs that are not yet known. False: a known one is gone, or they cannot be listed. */
static bool kept_list(struct kept_census *k, struct err *err) {
  struct store_id *ids = NULL;
  size_t count = 0, fresh = 0, met = 0;
  if (!store_list(k->store, &ids, &count, err))
    return false;
  if (count > 1)
    qsort(ids, count, sizeof *ids, kept_id_order);
  for (size_t i = 0; i < count; i++) {
    while (met < k->known_count && kept_id_order(&k->known[met], &ids[i]) < 0)
      met = k->known_count + 1; /* gone */
    if (met < k->known_count && kept_id_order(&k->known[met], &ids[i]) == 0)
      met++;
    else
      ids[fresh++] = ids[i];
  }
  free(k->waits);
  k->waits = ids;
  k->wait_count = fresh;
  return met == k->known_count;
}

static bool ended_for_good(const struct store_ref *ref) {
  struct brief b;
  struct err err;
  if (!brief_read(&b, ref, &err))
    return false;
  bool over = brief_is_over(&b);
  brief_deinit(&b);
  return over && !store_is_owned(ref);
}

/* Adds a log that has ended. True: it is in the census for good. */
static bool kept_add_log(struct kept_census *k, const struct store_ref *ref) {
  struct census *c = k->census;
  uint64_t sound = c->logs[ROWS_SOUND], torn = c->logs[ROWS_TORN];
  if (!ended_for_good(ref))
    return false;
  size_t apart = c->apart_count;
  uint64_t logs[ROWS_LOG_COUNT], bytes = c->rows.bytes;
  memcpy(logs, c->logs, sizeof logs);
  census_read(c, ref);
  if (c->logs[ROWS_SOUND] > sound)
    return true;
  if (c->logs[ROWS_TORN] > torn) { /* somebody wrote after its end, and that was counted */
    k->spoiled = true;
    return true;
  }
  memcpy(c->logs, logs, sizeof logs);
  c->rows.bytes = bytes;
  for (; c->apart_count > apart; c->apart_count--)
    free(c->apart[c->apart_count - 1].log);
  return false;
}

/* Adds the logs that have ended since; the others stay in k->waits. Returns true if there were
 * some. */
static bool kept_grow(struct kept_census *k, struct census_kept_told *told) {
  size_t left = 0, before = k->known_count;
  k->known = xrealloc(k->known, (k->known_count + k->wait_count + 1) * sizeof *k->known);
  for (size_t i = 0; i < k->wait_count; i++) {
    struct store_ref ref;
    store_ref(k->store, k->waits[i].id, &ref);
    if (kept_add_log(k, &ref))
      k->known[k->known_count++] = k->waits[i];
    else
      k->waits[left++] = k->waits[i];
  }
  k->wait_count = left;
  k->waits = xrealloc(k->waits, (left + 1) * sizeof *k->waits);
  told->known = before;
  if (k->known_count > before)
    qsort(k->known, k->known_count, sizeof *k->known, kept_id_order);
  return k->known_count > before;
}

/* Takes a stamp that was too new when the logs were listed. To read them may have taken long enough
 * for it to be sure, if the same logs are listed again under the same stamp. */
static void kept_settle(struct kept_census *k, int64_t stamp) {
  struct store_id *waits = k->waits;
  size_t count = k->wait_count;
  struct err ignored;
  if (k->stamp == stamp || stamp / 1000000 >= clock_real_ms() - SETTLED_MS ||
      store_kept_stamp(k->store) != stamp)
    return;
  k->waits = NULL;
  if (kept_list(k, &ignored) && k->wait_count == count)
    k->stamp = stamp;
  free(k->waits);
  k->waits = waits;
  k->wait_count = count;
}

static bool has_left_out(const struct census *c) {
  uint64_t n = 0;
  for (size_t i = 0; i < CENSUS_TABLE_COUNT; i++)
    n += c->tables[i].left_out;
  for (size_t i = 0; i < c->more_count; i++)
    n += c->more[i].left_out;
  return n > 0;
}

static void kept_by(struct census *c, const char *by) {
  enum tally_key key;
  if (by == NULL || !tally_key_from_name(str_from(by), &key))
    return;
  for (size_t i = 0; i < c->more_count; i++)
    if (c->more[i].keys[0] == key) {
      c->tables[CENSUS_BY] = c->more[i];
      c->more[i] = c->more[--c->more_count];
      return;
    }
}

struct census *census_kept_read(const struct store *store, const char *by,
                                struct census_kept_told *told, struct err *err) {
  struct kept_census k = {.store = store, .census = kept_census()};
  assert(census_kept_can(by));
  kept_load(&k);
  if (k.known_count == 0)
    store_kept_prepare(store);
  int64_t stamp = store_kept_stamp(store), settled = clock_real_ms() - SETTLED_MS;
  bool listed = stamp != 0 && stamp == k.stamp, ok = true;
  if (!listed && !kept_list(&k, err)) {
    kept_forget(&k);
    ok = kept_list(&k, err);
  }
  k.stamp = stamp / 1000000 < settled ? stamp : 0; /* another log may still get the same stamp */
  bool changed = ok && kept_grow(&k, told);
  ok = ok && !has_left_out(k.census);
  if (ok && !k.spoiled && (changed || !listed)) {
    kept_settle(&k, stamp);
    kept_write(&k);
  }
  for (size_t i = 0; ok && i < k.wait_count; i++) {
    struct store_ref ref;
    store_ref(store, k.waits[i].id, &ref);
    census_read(k.census, &ref);
  }
  told->read = k.known_count - told->known + k.wait_count;
  free(k.known);
  free(k.waits);
  if (ok) {
    kept_by(k.census, by);
    return k.census;
  }
  census_free(k.census);
  return NULL;
}
