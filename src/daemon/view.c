/* Reports a session's status. */
#include "daemon/view.h"

#include <string.h>

bool view_is_unfinished(const struct brief *b) {
  return strcmp(b->status, "running") == 0;
}

void view_deinit(struct view *v) {
  brief_deinit(&v->own);
}

static bool view_read(struct view *v, const struct sessions *ss, const struct daemon_entry *e,
                      struct err *err) {
  struct store_ref ref;
  store_ref(ss->env->store, v->id, &ref);
  bool ours = e != NULL && e->session != NULL; /* about to be freed */
  bool owned = !ours && store_is_owned(&ref);
  if (!brief_read(&v->own, &ref, err))
    return false;
  v->brief = &v->own;
  v->message = e && e->trouble ? e->trouble : v->own.message;
  v->status = brief_status(v->brief);
  if (view_is_unfinished(v->brief) && !owned)
    v->status = "open";
  if (e != NULL && e->state == ENTRY_QUEUED && !owned && (e->resumed || brief_goes_on(v->brief))) {
    v->status = "queued";
    v->position = entry_position(e);
  }
  return true;
}

/* With a shared store: as memory has it since the last look, for which nobody waits here. */
static void view_remembered(struct view *v, const struct daemon_entry *e) {
  bool held = e->session == NULL && e->owned;
  v->brief = &e->brief;
  v->message = e->trouble ? e->trouble : e->brief.message;
  v->status = brief_status(v->brief);
  if (view_is_unfinished(v->brief) && !held)
    v->status = v->brief->submitted ? "queued" : "open";
}

static bool is_known(const struct daemon_entry *e) {
  bool ended = e->brief.seq > 0 && brief_is_over(&e->brief);
  return (entry_is_live(e) || ended) && !entry_is_elsewhere(e);
}

bool view_is_in_memory(const struct sessions *ss, const char *id) {
  const struct daemon_entry *e = sessions_find(ss, id);
  return e != NULL && e->brief.seq > 0 && is_known(e);
}

bool view_of(struct view *v, const struct sessions *ss, const char *id, struct err *err) {
  const struct daemon_entry *e = sessions_find(ss, id);
  *v = (struct view){.id = id};
  if (e != NULL && e->brief.seq == 0)
    return err_set(err, ERR_NOT_FOUND, "%s is not written yet", id);
  if (ss->shared && e == NULL)
    return err_set(err, ERR_NOT_FOUND, "there is no session %s here", id);
  if (ss->shared && !is_known(e)) {
    view_remembered(v, e);
    return true;
  }
  if (e == NULL || !is_known(e))
    return view_read(v, ss, e, err);
  v->brief = &e->brief;
  v->status = entry_status(e);
  v->message = entry_message(e);
  v->position = entry_position(e);
  return true;
}

json_t *view_json(const struct view *v, const struct sessions *ss) {
  struct store_ref ref;
  store_ref(ss->env->store, v->id, &ref);
  return brief_json(v->brief, v->id, ref.name, v->status, v->message, v->position);
}
