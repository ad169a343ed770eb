/* Takes people's answers to sessions, and lists the questions that sessions ask. */
#include "base/limits.h"
#include "core/answer.h"
#include "daemon/sessions_internal.h"
#include "store/worker.h"

#include <assert.h>

/* The session is stopped or crashed, so its log is opened just for the answer. */
static bool answer_stopped(struct daemon_entry *e, struct core_answer *answer, uint64_t *question,
                           struct err *err) {
  struct store_ref ref;
  if (e->sessions->shared && !worker_answers(e->sessions->env->store, err))
    return false;
  entry_ref(e, &ref);
  if (store_is_owned(&ref))
    return err_set(err, ERR_LOCKED, "another program runs it: it is answered there");
  if (!entry_reopen(e, err) || e->session == NULL)
    return false;
  enum entry_state was = e->state;
  entry_set_state(e, ENTRY_WRITING);
  e->answering = true;
  if (host_reply(e->session, answer, question, err))
    return true;
  e->answering = false;
  entry_set_state(e, was);
  entry_drop_session(e);
  return false;
}

bool sessions_answer(struct sessions *ss, struct daemon_entry *e, struct core_answer *answer,
                     uint64_t *question, struct err *err) {
  sessions_free_dead(ss);
  *question = 0;
  if (e->state == ENTRY_WRITING || e->state == ENTRY_BROKEN || e->state == ENTRY_OPENING)
    return err_set(err, ERR_LOCKED, "it is just being written: try again");
  if (e->state == ENTRY_RUNNING || e->session != NULL)
    return host_reply(e->session, answer, question, err);
  return answer_stopped(e, answer, question, err);
}

void sessions_on_deadline(void *ctx, const char *id) {
  struct sessions *ss = ctx;
  struct err err;
  struct daemon_entry *e = sessions_find(ss, id);
  if (e == NULL)
    e = sessions_adopt(ss, id, &err);
  if (e == NULL || e->state != ENTRY_OVER || e->session != NULL || !brief_is_stopped(&e->brief) ||
      ss->draining)
    return;
  e->due = true;
  entry_set_state(e, ENTRY_QUEUED);
  sessions_soon(ss);
}
