/* Removes blobs that no log names any more. */
#include "store/backend.h"
#include "store/reader.h"

#include "base/log.h"
#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

/* Reports each blob that a line names, as the value of a member that ends with blob: within texts
 * such quotes are escaped. */
static void each_blob(struct str line, void (*each)(void *ctx, const char *sha256), void *ctx) {
  static const char member[] = "blob\":\"";
  while (line.n > 0) {
    const char *found = memmem(line.p, line.n, member, sizeof member - 1);
    char sha256[SHA256_HEX];
    if (found == NULL)
      return;
    size_t n = (size_t)(found - line.p) + sizeof member - 1;
    line = (struct str){line.p + n, line.n - n};
    if (line.n < sizeof sha256 || line.p[sizeof sha256 - 1] != '"')
      continue;
    memcpy(sha256, line.p, sizeof sha256 - 1);
    sha256[sizeof sha256 - 1] = '\0';
    if (strspn(sha256, "0123456789abcdef") == sizeof sha256 - 1)
      each(ctx, sha256);
  }
}

static void name_blob(void *ctx, const char *sha256) {
  json_object_set_new(ctx, sha256, json_true());
}

static void spare_blob(void *ctx, const char *sha256) {
  json_object_del(ctx, sha256);
}

/* Reports the blobs of a log. Returns false if it was not read to its end. */
static bool read_blobs(const struct store_ref *ref, void (*each)(void *ctx, const char *sha256),
                       json_t *set) {
  struct log_reader r;
  struct str line;
  struct err err;
  if (!reader_open(&r, ref, &err))
    return !store_is_there(ref);
  while (reader_next(&r, &line))
    each_blob(line, each, set);
  bool whole = r.error == 0 && !r.too_long;
  reader_close(&r);
  return whole;
}

void store_blobs_named(const struct store_ref *ref, json_t *named) {
  (void)read_blobs(ref, name_blob, named);
}

/* Spares the blobs that other logs name. *busy: somebody may have put a blob whose record is still
 * to come. */
static bool spare_used(const struct store *store, json_t *named, bool *busy, struct err *err) {
  struct store_id *ids = NULL;
  size_t count = 0;
  bool ok = store_list(store, &ids, &count, err);
  *busy = store_is_held(store, "daemon");
  for (size_t i = 0; ok && i < count && json_object_size(named) > 0; i++) {
    struct store_ref ref;
    store_ref(store, ids[i].id, &ref);
    *busy = *busy || store_is_owned(&ref);
    ok = read_blobs(&ref, spare_blob, named) ||
         err_set(err, ERR_CORRUPT, "%.300s cannot be read to its end: blobs stay", ref.name);
  }
  free(ids);
  return ok;
}

void store_blobs_tidy(const struct store *store, json_t *found) {
  if (store->ops->blobs_tidy != NULL)
    store->ops->blobs_tidy(store, found);
}

bool store_blobs_sweep(const struct store *store, json_t *named, size_t *kept, struct err *err) {
  enum { QUIET_S = 2, BUSY_S = 60 };
  const char *sha256;
  json_t *value;
  bool busy;
  *kept = 0;
  store_blobs_tidy(store, named);
  if (json_object_size(named) == 0)
    return true;
  time_t since = (time_t)(clock_real_ms() / 1000);
  if (!spare_used(store, named, &busy, err))
    return false;
  since -= busy ? BUSY_S : QUIET_S;
  json_object_foreach(named, sha256, value) {
    *kept += !store->ops->blob_drop(store, sha256, since);
  }
  return true;
}
