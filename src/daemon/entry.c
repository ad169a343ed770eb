/* How an entry stands, and who watches it. */
#include "daemon/sessions.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>

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

/* What another program appended. Its owner gone, or its session over: nothing more will come. */
static void look_at(struct entry *e, const char *path) {
  struct brief brief;
  struct err err;
  bool owned = brief_owned(path); /* before reading: the last records come with the lock's end */
  if (brief_read(&brief, path, &err)) {
    brief_deinit(&e->brief);
    e->brief = brief;
  }
  feed_grow(e->feed, e->brief.bytes);
  e->foreign = owned;
  if (!owned)
    feed_over(e->feed);
}

static void on_looks(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  bool any = false;
  struct entry *next;
  for (struct entry *e = ss->lists[ENTRY_OVER].first; e; e = next) {
    char path[STORE_PATH_BYTES + 64];
    next = e->next;
    if (!e->foreign || e->feed == NULL)
      continue;
    entry_path(e, path);
    look_at(e, path);
    any = any || e->foreign;
  }
  if (!any)
    uv_timer_stop(&ss->looks);
}

void entry_watch(struct entry *e, struct server_request *r, uint64_t last_seq) {
  struct sessions *ss = e->sessions;
  if (e->feed == NULL) {
    char path[STORE_PATH_BYTES + 64];
    entry_path(e, path);
    e->feed = feed_new(ss->events, path, on_emptied, e);
    if (e->state == ENTRY_OVER)
      look_at(e, path);
    else
      feed_grow(e->feed, e->session ? session_log_bytes(e->session) : e->brief.bytes);
    if (e->foreign)
      uv_timer_start(&ss->looks, on_looks, LIMIT_API_FOREIGN_MS, LIMIT_API_FOREIGN_MS);
  }
  feed_watch(e->feed, r, last_seq);
}
