/* Makes sessions that edit wait for their folder. */
#include "host/folder_queue.h"

#include "base/log.h"
#include "format/json_object.h"
#include "host/folder.h"
#include "host/session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct folder_waiter {
  struct list_node in_queue;
  struct session *session;
  long call;
  unsigned round;               /* the round in which it was last asked for */
  char told_of[STORE_ID_BYTES]; /* whom its session was told to wait for; "": nobody yet */
};

static void folder_on_timer(uv_timer_t *timer);

void folder_queue_init(struct folder_queue *q, uv_loop_t *loop) {
  *q = (struct folder_queue){.timer = xcalloc(1, sizeof *q->timer)};
  uv_timer_init(loop, q->timer);
  q->timer->data = q;
}

static void folder_on_closed(uv_handle_t *handle) {
  free(handle);
}

void folder_queue_deinit(struct folder_queue *q) {
  if (q->timer == NULL)
    return;
  assert(q->waiters.count == 0);
  uv_close((uv_handle_t *)q->timer, folder_on_closed);
  *q = (struct folder_queue){0};
}

static void folder_arm(struct folder_queue *q, uint64_t ms) {
  if (q->waiters.count == 0)
    uv_timer_stop(q->timer);
  else
    uv_timer_start(q->timer, folder_on_timer, ms, 0);
}

enum folder_answer { FOLDER_MINE, FOLDER_TAKEN, FOLDER_SOON };

/* Asks for the right to the folder. If there is no place for rights, the session goes on and is
 * told so once. */
static enum folder_answer folder_ask_for(struct session *s, struct folder_holder *holder) {
  struct err err = {0};
  char *real = realpath(s->env.cwd, NULL);
  const struct folder_ask ask = {.session = s->core.session,
                                 .path = real ? real : s->env.cwd,
                                 .logs = s->host->store ? s->host->store->where : NULL};
  s->folder = folder_take(&ask, holder, &err);
  free(real);
  if (s->folder != NULL)
    return FOLDER_MINE;
  if (holder->session[0] != '\0')
    return FOLDER_TAKEN;
  if (err.code == ERR_LOCKED)
    return FOLDER_SOON;
  char text[LIMIT_ERROR_TEXT_BYTES];
  (void)snprintf(text, sizeof text,
                 "cannot keep other sessions from editing here at the same time: %.300s", err.text);
  session_trouble(s, text);
  s->folder_free = true;
  return FOLDER_MINE;
}

static void tell_folder(struct session *s, long call, enum admission_answer answer,
                        const char *message) {
  struct event ev = {.kind = EVENT_ADMISSION,
                     .call = call,
                     .admission = answer,
                     .reason = "folder",
                     .message = message};
  session_event(s, &ev);
}

static void tell_wait(struct session *s, long call, const struct folder_holder *holder) {
  char text[LIMIT_ERROR_TEXT_BYTES];
  (void)snprintf(text, sizeof text, "session %s %s %.300s", holder->session,
                 holder->kept ? "waits for a person and keeps" : "edits", holder->path);
  tell_folder(s, call, ADMISSION_WAIT, text);
}

/* Asks once more for one that waits, which this may free. */
static void ask_again(struct folder_queue *q, struct folder_waiter *w) {
  struct folder_holder holder = {0};
  struct session *s = w->session;
  long call = w->call;
  enum folder_answer answer = FOLDER_MINE;
  if (s->folder == NULL && !s->folder_free)
    answer = folder_ask_for(s, &holder);
  if (answer == FOLDER_MINE) {
    bool told = w->told_of[0] != '\0';
    list_remove(&q->waiters, &w->in_queue);
    free(w);
    struct effect start = {.kind = EFFECT_START_CALL, .call = call};
    const struct session_batch batch = {.effects = &start, .effect_count = 1};
    if (told)
      tell_folder(s, call, ADMISSION_ADMITTED, NULL);
    else
      session_run_effects(s, &batch);
  } else if (answer == FOLDER_TAKEN && strcmp(w->told_of, holder.session) != 0) {
    memcpy(w->told_of, holder.session, sizeof w->told_of);
    tell_wait(s, call, &holder);
  }
}

/* Asks for each waiter's folder. A session may do anything when told, so the list is searched from
 * its start each time. */
static void folder_on_timer(uv_timer_t *timer) {
  struct folder_queue *q = timer->data;
  bool more = true;
  q->round++;
  while (more) {
    more = false;
    LIST_EACH(struct folder_waiter, w, in_queue, &q->waiters)
      if (w->round != q->round) {
        w->round = q->round;
        ask_again(q, w);
        more = true;
        break;
      }
  }
  folder_arm(q, LIMIT_FOLDER_POLL_MS);
}

/* Returns true for a session that edits here and was not told to ignore others. */
static bool needs_folder(const struct session *s) {
  return s->core.edits && s->folder == NULL && !s->folder_free && s->env.cwd != NULL &&
         !s->core.worktree.made && !json_is_false(json_at(s->core.config, "lock"));
}

bool session_takes_folder(struct session *s, long call) {
  struct folder_queue *q = &s->host->folders;
  struct folder_holder holder = {0};
  if (!needs_folder(s))
    return true;
  enum folder_answer answer = folder_ask_for(s, &holder);
  if (answer == FOLDER_MINE)
    return true;
  struct folder_waiter *w = xcalloc(1, sizeof *w);
  *w = (struct folder_waiter){.session = s, .call = call, .round = q->round};
  list_push_back(&q->waiters, &w->in_queue);
  folder_arm(q, answer == FOLDER_SOON ? LIMIT_FOLDER_SOON_MS : LIMIT_FOLDER_POLL_MS);
  if (answer == FOLDER_TAKEN) {
    memcpy(w->told_of, holder.session, sizeof w->told_of);
    tell_wait(s, call, &holder);
  }
  return false;
}

void session_leave_folder(struct session *s, long call) {
  struct folder_queue *q = &s->host->folders;
  LIST_EACH(struct folder_waiter, w, in_queue, &q->waiters)
    if (w->session == s && (call == 0 || w->call == call)) {
      list_remove(&q->waiters, &w->in_queue);
      free(w);
    }
  if (q->timer != NULL && q->waiters.count == 0)
    uv_timer_stop(q->timer);
}

void session_give_folder(struct session *s) {
  struct folder_queue *q = &s->host->folders;
  bool asks = s->core.status == SESSION_STOPPED && s->host->store != NULL &&
              session_stop_asks(buf_view(&s->core.stop_reason));
  struct folder_right *right = s->folder;
  if (right == NULL)
    return;
  s->folder = NULL;
  if (asks) {
    char text[LIMIT_ERROR_TEXT_BYTES];
    (void)snprintf(text, sizeof text,
                   "this session keeps the folder while it waits for you; segue resume %s "
                   "--release releases it",
                   s->core.session);
    folder_keep(right);
    session_trouble(s, text);
  } else {
    folder_give(right);
  }
  folder_arm(q, 0);
}
