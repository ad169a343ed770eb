/* Keeps sessions with the same key from running at once, and late ones from beginning. */
#include "base/limits.h"
#include "daemon/sessions_internal.h"
#include "os/clock.h"

#include <string.h>

/* Until its first record is written it stands in what it is launched with. */
static const char *entry_key(const struct daemon_entry *e) {
  if (e->brief.seq > 0)
    return e->brief.unique;
  return json_string_value(json_object_get(e->launch.config, "unique"));
}

static struct daemon_entry *find_with_key(const struct sessions *ss, enum entry_state state,
                                          const char *key, const struct daemon_entry *other) {
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[state]) {
    const char *own = e != other ? entry_key(e) : NULL;
    if (own != NULL && strcmp(own, key) == 0 && !brief_is_over(&e->brief))
      return e;
  }
  return NULL;
}

struct daemon_entry *sessions_with_key(const struct sessions *ss, const char *key) {
  static const enum entry_state live[] = {ENTRY_RUNNING, ENTRY_BROKEN, ENTRY_QUEUED, ENTRY_WRITING};
  struct daemon_entry *found = NULL;
  for (size_t i = 0; i < ARRAY_LEN(live) && found == NULL; i++)
    found = find_with_key(ss, live[i], key, NULL);
  return found;
}

bool entry_waits_for_same(const struct daemon_entry *e) {
  const struct sessions *ss = e->sessions;
  const char *key = entry_key(e);
  return key != NULL && (find_with_key(ss, ENTRY_RUNNING, key, e) != NULL ||
                         find_with_key(ss, ENTRY_BROKEN, key, e) != NULL);
}

bool entry_is_too_late(const struct daemon_entry *e) {
  int64_t last_ms;
  return e->brief.turns == 0 && record_time_parse(e->brief.not_after, &last_ms) &&
         clock_real_ms() > last_ms;
}
