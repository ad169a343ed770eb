/* Reads how a session stands in its store. */
#include "daemon/snapshot.h"

#include "base/limits.h"
#include "os/clock.h"

#include <string.h>
#include <unistd.h>

/* Returns true for a whole id, false for a prefix or `last`. */
static bool is_whole_id(const char *word) {
  return strlen(word) == STORE_ID_BYTES - 1 && strspn(word, "0123456789abcdef-") == strlen(word);
}

bool snapshot_find(const struct store *store, const char *word, char id[STORE_ID_BYTES],
                   struct err *err) {
  struct store_ref ref;
  bool named = strspn(word, "0123456789abcdef-") == strlen(word) || strcmp(word, "last") == 0;
  if (!named)
    return err_set(err, ERR_NOT_FOUND, "that is not a session's id");
  if (!store_find(store, word, &ref, err)) /* a whole id, too */
    return false;
  store_ref_id(&ref, id);
  return true;
}

static bool snapshot_read(struct snapshot *s, const struct store_ref *ref, struct err *err) {
  s->owned = store_is_owned(ref); /* before reading: the last records precede the release */
  return brief_read(&s->brief, ref, err);
}

bool snapshot_take(struct snapshot *s, const struct store *store, const char *word, bool settles,
                   struct err *err) {
  struct store_ref ref;
  uint64_t until = clock_mono_ms() + LIMIT_STORE_SETTLE_MS;
  *s = (struct snapshot){0};
  if (is_whole_id(word))
    store_ref(store, word, &ref);
  else if (!store_find(store, word, &ref, err))
    return false;
  store_ref_id(&ref, s->id);
  bool ok = snapshot_read(s, &ref, err);
  while (ok && settles && s->owned && brief_is_stopped(&s->brief) && clock_mono_ms() < until) {
    (void)usleep(LIMIT_STORE_SETTLE_LOOK_MS * 1000);
    brief_deinit(&s->brief);
    ok = snapshot_read(s, &ref, err);
  }
  return ok;
}

void snapshot_deinit(struct snapshot *s) {
  brief_deinit(&s->brief);
  *s = (struct snapshot){0};
}
