/* How an entry stands, and who watches it. */
#include "base/limits.h"
#include "daemon/sessions_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void entry_path(const struct entry *e, char out[STORE_PATH_BYTES + 64]) {
  (void)snprintf(out, STORE_PATH_BYTES + 64, "%s/%s.ndjson", e->sessions->env->store->dir, e->id);
}

const char *entry_status(const struct entry *e) {
  bool unfinished = strcmp(e->brief.status, "running") == 0 || e->brief.status[0] == '\0';
  switch (e->state) {
  case ENTRY_WRITING:
  case ENTRY_QUEUED:
    return "queued";
  case ENTRY_RUNNING:
    if (unfinished || strcmp(e->brief.status, "stopped") == 0)
      return e->session && session_paused(e->session) ? "paused"
             : e->brief.wait                          ? "waiting"
                                                      : "running";
    return e->brief.status;
  case ENTRY_BROKEN:
    return "paused";
  case ENTRY_OVER:
    break;
  }
  return e->brief.status;
}

const char *entry_message(const struct entry *e) {
  const char *paused = e->session && e->state != ENTRY_BROKEN ? session_paused(e->session) : NULL;
  return paused ? paused : e->trouble ? e->trouble : e->brief.message;
}

bool entry_is_elsewhere(const struct entry *e) {
  char path[STORE_PATH_BYTES + 64];
  struct stat st;
  if (e->state != ENTRY_QUEUED || e->session != NULL)
    return false;
  entry_path(e, path);
  return brief_owned(path) || (stat(path, &st) == 0 && (uint64_t)st.st_size != e->brief.bytes);
}

bool entry_is_live(const struct entry *e) {
  return e->state == ENTRY_QUEUED || e->state == ENTRY_RUNNING || e->state == ENTRY_BROKEN;
}

size_t entry_position(const struct entry *e) {
  size_t n = 1;
  if (e->state != ENTRY_QUEUED)
    return 0;
  for (const struct entry *before = e->prev; before; before = before->prev)
    n++;
  return n;
}

/* --- watching --- */

static void on_emptied(void *ctx) {
  struct entry *e = ctx;
  feed_free(e->feed);
  e->feed = NULL;
  e->foreign = false;
}

bool entry_look(struct entry *e) {
  char path[STORE_PATH_BYTES + 64];
  struct brief brief;
  struct err err;
  entry_path(e, path);
  if (!brief_read(&brief, path, &err))
    return false;
  brief_deinit(&e->brief);
  e->brief = brief;
  if (e->feed != NULL)
    feed_grow(e->feed, e->brief.bytes);
  return true;
}

/* Another program may append to it. Its owner gone, or its session over: nothing more will come, unless
 * it waits here. */
static void look_for_others(struct entry *e) {
  char path[STORE_PATH_BYTES + 64];
  entry_path(e, path);
  bool was = e->foreign, over = e->state == ENTRY_OVER;
  e->foreign = brief_owned(path); /* before reading: the last records come with the lock's end */
  if (e->foreign || was || over)
    (void)entry_look(e);
  if (over && !e->foreign)
    feed_over(e->feed);
}

static bool look_at_all(struct entry_list *list) {
  bool any = false;
  struct entry *next;
  for (struct entry *e = list->first; e; e = next) {
    next = e->next;
    bool waits = e->state == ENTRY_QUEUED;
    if (e->feed == NULL || (!e->foreign && !waits))
      continue;
    if (e->session == NULL)
      look_for_others(e);
    any = any || e->foreign || waits;
  }
  return any;
}

static void on_looks(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  bool over = look_at_all(&ss->lists[ENTRY_OVER]), waiting = look_at_all(&ss->lists[ENTRY_QUEUED]);
  if (!over && !waiting)
    uv_timer_stop(&ss->looks);
}

void entry_watch(struct entry *e, struct server_request *r, uint64_t last_seq) {
  struct sessions *ss = e->sessions;
  if (e->feed == NULL) {
    char path[STORE_PATH_BYTES + 64];
    entry_path(e, path);
    e->feed = feed_new(ss->events, path, on_emptied, e);
    feed_grow(e->feed, e->session ? session_log_bytes(e->session) : e->brief.bytes);
    if (e->state == ENTRY_OVER || entry_is_elsewhere(e))
      look_for_others(e);
    if (e->foreign || e->state == ENTRY_QUEUED)
      uv_timer_start(&ss->looks, on_looks, LIMIT_API_FOREIGN_MS, LIMIT_API_FOREIGN_MS);
  }
  feed_watch(e->feed, r, last_seq);
}
