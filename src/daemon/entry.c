/* Reports an entry's status, and keeps track of who watches it. */
#include "base/limits.h"
#include "daemon/sessions_internal.h"
#include "os/clock.h"

#include <string.h>

void entry_ref(const struct daemon_entry *e, struct store_ref *ref) {
  store_ref(e->sessions->env->store, e->id, ref);
}

const char *entry_status(const struct daemon_entry *e) {
  switch (e->state) {
  case ENTRY_WRITING:
  case ENTRY_QUEUED:
  case ENTRY_OPENING:
    return "queued";
  case ENTRY_RUNNING:
    if (brief_is_over(&e->brief))
      return e->brief.status;
    if (e->session && session_paused(e->session))
      return "paused";
    return e->brief.wait ? "waiting" : "running";
  case ENTRY_BROKEN:
    return "paused";
  case ENTRY_OVER:
    break;
  }
  return e->brief.status;
}

const char *entry_message(const struct daemon_entry *e) {
  const char *paused = e->session && e->state != ENTRY_BROKEN ? session_paused(e->session) : NULL;
  if (paused)
    return paused;
  return e->trouble ? e->trouble : e->brief.message;
}

bool entry_is_elsewhere(const struct daemon_entry *e) {
  struct store_ref ref;
  uint64_t bytes;
  if (e->state != ENTRY_QUEUED || e->session != NULL || e->sessions->shared) /* it was claimed */
    return false;
  entry_ref(e, &ref);
  return store_is_owned(&ref) || (store_bytes(&ref, &bytes) && bytes != e->brief.bytes);
}

bool entry_is_live(const struct daemon_entry *e) {
  return e->state == ENTRY_QUEUED || e->state == ENTRY_OPENING || e->state == ENTRY_RUNNING ||
         e->state == ENTRY_BROKEN;
}

size_t entry_position(const struct daemon_entry *e) {
  size_t n = 1;
  if (e->state != ENTRY_QUEUED)
    return 0;
  for (const struct list_node *before = e->in_state.prev; before; before = before->prev)
    n++;
  return n;
}

/* --- watching --- */

void entry_heard(struct daemon_entry *e) {
  e->heard_ms = uv_now(e->sessions->host->loop);
  e->silent = false;
}

bool entry_is_silent(struct daemon_entry *e, uint64_t after_ms) {
  uint64_t now = uv_now(e->sessions->host->loop);
  bool works = e->state == ENTRY_RUNNING && e->brief.wait == NULL && !brief_is_over(&e->brief) &&
               !brief_is_stopped(&e->brief) && session_paused(e->session) == NULL &&
               json_array_size(e->brief.questions) == 0;
  if (!works || e->silent || now - e->heard_ms < after_ms)
    return false;
  e->silent = true;
  return true;
}

static void on_emptied(void *ctx) {
  struct daemon_entry *e = ctx;
  feed_free(e->feed);
  e->feed = NULL;
  e->foreign = false;
}

bool entry_look(struct daemon_entry *e) {
  struct store_ref ref;
  struct brief brief;
  struct err err;
  entry_ref(e, &ref);
  if (!brief_read(&brief, &ref, &err))
    return false;
  brief_deinit(&e->brief);
  e->brief = brief;
  e->sessions->asking |= brief.questions != NULL;
  if (e->feed != NULL)
    feed_grow(e->feed, e->brief.bytes);
  return true;
}

/* Another program may append to the log. Once its owner is gone or its session over, nothing more
 * will come, unless the session waits here. */
static void look_for_others(struct daemon_entry *e) {
  struct store_ref ref;
  entry_ref(e, &ref);
  bool was = e->foreign, over = e->state == ENTRY_OVER;
  e->foreign = store_is_owned(&ref); /* before reading: the last records precede the release */
  if (e->foreign || was || over)
    (void)entry_look(e);
  if (over && !e->foreign)
    feed_over(e->feed);
}

static bool entry_look_at_all(struct list *list) {
  bool any = false;
  LIST_EACH(struct daemon_entry, e, in_state, list) {
    bool waits = e->state == ENTRY_QUEUED;
    if (e->feed == NULL || (!e->foreign && !waits))
      continue;
    if (e->session == NULL)
      look_for_others(e);
    any = any || e->foreign || waits;
  }
  return any;
}

void sessions_on_looks(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  if (ss->shared) {
    if (!sessions_look_at_others(ss))
      uv_timer_stop(&ss->looks);
    return;
  }
  bool over = entry_look_at_all(&ss->lists[ENTRY_OVER]),
       waiting = entry_look_at_all(&ss->lists[ENTRY_QUEUED]);
  if (!over && !waiting)
    uv_timer_stop(&ss->looks);
}

void entry_watch(struct daemon_entry *e, struct server_request *r, uint64_t last_seq) {
  struct sessions *ss = e->sessions;
  if (e->feed == NULL) {
    struct store_ref ref;
    entry_ref(e, &ref);
    e->feed = feed_new(ss->events, &ref, on_emptied, e);
    feed_grow(e->feed, e->session ? session_log_bytes(e->session) : e->brief.bytes);
    bool over = e->state == ENTRY_OVER; /* its session may still be about to be freed */
    if (ss->shared)
      e->foreign = e->session == NULL || over; /* looked at in the pool */
    else if (over || entry_is_elsewhere(e))
      look_for_others(e);
    if (e->foreign || e->state == ENTRY_QUEUED)
      uv_timer_start(&ss->looks, sessions_on_looks, LIMIT_API_FOREIGN_MS, LIMIT_API_FOREIGN_MS);
  }
  feed_watch(e->feed, r, last_seq);
}

/* --- sessions with one key --- */

/* Until the first record is written, the key is only in the launch's configuration. */
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
  static const enum entry_state live[] = {ENTRY_RUNNING, ENTRY_OPENING, ENTRY_BROKEN, ENTRY_QUEUED,
                                          ENTRY_WRITING};
  struct daemon_entry *found = NULL;
  for (size_t i = 0; i < ARRAY_LEN(live) && found == NULL; i++)
    found = find_with_key(ss, live[i], key, NULL);
  return found;
}

bool entry_waits_for_same(const struct daemon_entry *e) {
  const struct sessions *ss = e->sessions;
  const char *key = entry_key(e);
  return key != NULL && (find_with_key(ss, ENTRY_RUNNING, key, e) != NULL ||
                         find_with_key(ss, ENTRY_OPENING, key, e) != NULL ||
                         find_with_key(ss, ENTRY_BROKEN, key, e) != NULL);
}

bool entry_is_too_late(const struct daemon_entry *e) {
  int64_t last_ms;
  return e->brief.turns == 0 && record_time_parse(e->brief.not_after, &last_ms) &&
         clock_real_ms() > last_ms;
}
