/* Finds out how a session stands: from memory, or from its log. */
#include "daemon/api_status.h"

#include "base/limits.h"
#include "os/clock.h"

#include <string.h>
#include <unistd.h>

/* --- from its store --- */

bool status_snapshot_find(const struct store *store, const char *word, char id[STORE_ID_BYTES],
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

static bool status_snapshot_read(struct status_snapshot *s, const struct store_ref *ref,
                                 struct err *err) {
  s->owned = store_is_owned(ref); /* before reading: the last records precede the release */
  return summary_read(&s->summary, ref, err);
}

bool status_snapshot_take(struct status_snapshot *s, const struct store *store, const char *word,
                          bool settles, struct err *err) {
  struct store_ref ref;
  uint64_t until = clock_mono_ms() + LIMIT_STORE_SETTLE_MS;
  *s = (struct status_snapshot){0};
  /* a whole id, not a prefix or `last` */
  if (strlen(word) == STORE_ID_BYTES - 1 && strspn(word, "0123456789abcdef-") == strlen(word))
    store_ref(store, word, &ref);
  else if (!store_find(store, word, &ref, err))
    return false;
  store_ref_id(&ref, s->id);
  bool ok = status_snapshot_read(s, &ref, err);
  while (ok && settles && s->owned && summary_is_stopped(&s->summary) && clock_mono_ms() < until) {
    (void)usleep(LIMIT_STORE_SETTLE_LOOK_MS * 1000);
    summary_deinit(&s->summary);
    ok = status_snapshot_read(s, &ref, err);
  }
  return ok;
}

void status_snapshot_deinit(struct status_snapshot *s) {
  summary_deinit(&s->summary);
  *s = (struct status_snapshot){0};
}

/* --- from memory, if that is newer --- */

bool api_status_is_unfinished(const struct summary *b) {
  return strcmp(b->status, "running") == 0;
}

void api_status_deinit(struct api_status *v) {
  status_snapshot_deinit(&v->own);
}

static bool is_known(const struct daemon_entry *e) {
  bool ended = e->summary.seq > 0 && summary_is_over(&e->summary);
  return (entry_is_live(e) || ended) && !entry_is_elsewhere(e);
}

bool api_status_is_in_memory(const struct sessions *ss, const char *id) {
  const struct daemon_entry *e = sessions_find(ss, id);
  return e != NULL && e->summary.seq > 0 && is_known(e);
}

/* As its last records say, and who has it. What is unfinished and nobody's waits for a worker, or
 * (with files, or if it was never submitted) for somebody who resumes it. */
static void api_status_set(struct api_status *v, const struct sessions *ss,
                           const struct daemon_entry *e, bool owned) {
  const struct summary *b = v->summary;
  v->message = e != NULL && e->trouble != NULL ? e->trouble : b->message;
  v->status = summary_status(b);
  if (api_status_is_unfinished(b) && !owned)
    v->status = ss->shared && b->submitted ? "queued" : "open";
  if (e != NULL && entry_waits(e) && !owned && (e->wish == WISH_RESUME || summary_goes_on(b))) {
    v->status = "queued";
    v->position = entry_position(e);
  }
}

bool api_status_of(struct api_status *v, const struct sessions *ss, const char *id,
                   struct err *err) {
  const struct daemon_entry *e = sessions_find(ss, id);
  struct store_ref ref;
  *v = (struct api_status){.id = id};
  if (e != NULL && e->summary.seq == 0)
    return err_set(err, ERR_NOT_FOUND, "%s is not written yet", id);
  if (ss->shared && e == NULL)
    return err_set(err, ERR_NOT_FOUND, "there is no session %s here", id);
  if (e != NULL && is_known(e)) {
    v->summary = &e->summary;
    v->status = entry_status(e);
    v->message = entry_message(e);
    v->position = entry_position(e);
    return true;
  }
  bool here = e != NULL && e->session != NULL; /* about to be freed */
  if (ss->shared) {
    v->summary = &e->summary; /* since the last look at the store, for which nobody waits here */
    api_status_set(v, ss, e, !here && e->owner == OWNER_OTHER);
    return true;
  }
  store_ref(ss->env->store, id, &ref);
  if (!status_snapshot_read(&v->own, &ref, err))
    return false;
  v->summary = &v->own.summary;
  api_status_set(v, ss, e, !here && v->own.owned);
  return true;
}

json_t *api_status_json(const struct api_status *v, const struct sessions *ss) {
  struct store_ref ref;
  store_ref(ss->env->store, v->id, &ref);
  return summary_json(v->summary, v->id, ref.name, v->status, v->message, v->position);
}
