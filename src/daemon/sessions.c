/* Keeps the tables of sessions, the queue and its recovery. */
#include "daemon/sessions_internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/answer.h"
#include "os/leftover.h"
#include "store/index.h"
#include "store/worker.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const unsigned next_states[] = {
#define ES(name)            (1u << ENTRY_##name)
#define ES_NEXT(name, next) next,
    ENTRY_STATES(ES_NEXT)
#undef ES_NEXT
};

/* --- lists --- */

/* Keeps the list in order of ids; the new one nearly always goes last. */
static void sessions_list_insert(struct list *list, struct daemon_entry *e) {
  struct list_node *after = list->last;
  while (after && strcmp(LIST_ITEM(after, struct daemon_entry, in_state)->id, e->id) > 0)
    after = after->prev;
  list_insert(list, after, &e->in_state);
}

static struct list *sessions_list_of(struct sessions *ss, enum entry_state state) {
  return &ss->lists[state];
}

static size_t place_of(const struct sessions *ss, const char *id) {
  size_t low = 0, high = ss->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(ss->entries[middle]->id, id) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

struct daemon_entry *sessions_find(const struct sessions *ss, const char *id) {
  size_t i = place_of(ss, id);
  return i < ss->count && strcmp(ss->entries[i]->id, id) == 0 ? ss->entries[i] : NULL;
}

static void table_insert(struct sessions *ss, struct daemon_entry *e) {
  if (ss->count == ss->cap) {
    ss->cap = ss->cap ? ss->cap * 2 : 64;
    ss->entries = xrealloc(ss->entries, ss->cap * sizeof *ss->entries);
  }
  size_t i = place_of(ss, e->id);
  memmove(ss->entries + i + 1, ss->entries + i, (ss->count - i) * sizeof *ss->entries);
  ss->entries[i] = e;
  ss->count++;
}

struct daemon_entry *entry_new(struct sessions *ss, const char *id, enum entry_state state) {
  struct daemon_entry *e = xcalloc(1, sizeof *e);
  (void)snprintf(e->id, sizeof e->id, "%.36s", id);
  e->sessions = ss;
  e->state = state;
  table_insert(ss, e);
  sessions_list_insert(sessions_list_of(ss, state), e);
  return e;
}

static void sessions_entry_free(struct daemon_entry *e) {
  struct sessions *ss = e->sessions;
  assert(e->session == NULL && !feed_watched(e->feed));
  size_t i = place_of(ss, e->id);
  assert(ss->entries[i] == e);
  memmove(ss->entries + i, ss->entries + i + 1, (--ss->count - i) * sizeof *ss->entries);
  list_remove(sessions_list_of(ss, e->state), &e->in_state);
  feed_free(e->feed);
  launch_deinit(&e->launch);
  brief_deinit(&e->brief);
  free(e->trouble);
  free(e);
}

void entry_set_state(struct daemon_entry *e, enum entry_state state) {
  assert(next_states[e->state] & (1u << state));
  list_remove(sessions_list_of(e->sessions, e->state), &e->in_state);
  e->state = state;
  e->sessions->asking |= state == ENTRY_OVER && e->brief.questions != NULL;
  sessions_list_insert(sessions_list_of(e->sessions, state), e);
}

void entry_set_trouble(struct daemon_entry *e, const char *text) {
  char *copy = text ? xstrdup(text) : NULL;
  free(e->trouble);
  e->trouble = copy;
}

/* --- reports from the host --- */

/* Marks its session to be freed from the loop. */
static void let_go(struct daemon_entry *e) {
  e->next_dead = e->sessions->dead;
  e->sessions->dead = e;
}

/* The session was made here, but needs what only other workers have. */
static bool entry_is_for_others(const struct daemon_entry *e) {
  const json_t *on = json_object_get(session_core(e->session)->config, "on");
  return e->sessions->shared && on != NULL && !worker_has(on);
}

static void sessions_on_record(void *ctx, const struct record *record, struct str line) {
  struct daemon_entry *e = ctx;
  bool running = strcmp(e->brief.status, "running") == 0;
  (void)line;
  brief_feed(&e->brief, record);
  entry_heard(e);
  if (e->sessions->news != NULL)
    e->sessions->news(e->sessions->ctx, e, record);
  if (e->sessions->recorded != NULL)
    e->sessions->recorded(e->sessions->observer, e, record);
  e->brief.bytes = session_log_bytes(e->session);
  if (e->feed != NULL)
    feed_grow(e->feed, e->brief.bytes);
  if (e->state == ENTRY_WRITING && e->answering) {
    e->answering = false;
    e->resumed = false;
    entry_set_state(e, brief_goes_on(&e->brief) ? ENTRY_QUEUED : ENTRY_OVER);
    let_go(e);
    sessions_soon(e->sessions);
    e->sessions->changed(e->sessions->ctx, e);
  } else if (e->state == ENTRY_WRITING && entry_is_for_others(e)) {
    entry_set_state(e, ENTRY_OVER);
    let_go(e);
    sessions_soon(e->sessions);
    e->sessions->changed(e->sessions->ctx, e);
  } else if (e->state == ENTRY_WRITING) {
    entry_set_state(e, ENTRY_QUEUED);
    if (e->resumed)
      let_go(e);
    else
      e->held = true;
    sessions_soon(e->sessions);
    e->sessions->changed(e->sessions->ctx, e);
  } else if ((running && strcmp(e->brief.status, "running") != 0) ||
             record->type == RECORD_ANSWER) {
    e->sessions->changed(e->sessions->ctx, e);
  }
}

static void sessions_on_trouble(void *ctx, const char *message) {
  struct daemon_entry *e = ctx;
  log_warn("session %s: %s", e->id, message);
  if (e->cancelled && e->session != NULL && session_paused(e->session))
    e->sessions->changed(e->sessions->ctx, e);
}

static void sessions_on_delta(void *ctx, long turn, long call, bool thinking, struct str text) {
  struct daemon_entry *e = ctx;
  entry_heard(e);
  if (e->feed != NULL)
    feed_delta(e->feed, turn, call, thinking, text);
  if (e->sessions->said != NULL)
    e->sessions->said(e->sessions->observer, e, turn, call, thinking, text);
}

void entry_retire(struct daemon_entry *e) {
  struct sessions *ss = e->sessions;
  ss->pace.freed += e->state == ENTRY_RUNNING;
  entry_set_state(e, ENTRY_OVER);
  e->answering = e->due = false;
  deadlines_note(&ss->deadlines, e->id, &e->brief);
  let_go(e);
  if (e->feed != NULL)
    feed_over(e->feed);
  ss->changed(ss->ctx, e);
  sessions_soon(ss);
}

/* A person answered while the session's stop was being written: it goes on. */
static bool entry_was_answered(struct daemon_entry *e) {
  struct sessions *ss = e->sessions;
  if (e->state != ENTRY_RUNNING || ss->draining || !e->brief.answered || !brief_goes_on(&e->brief))
    return false;
  entry_set_state(e, ENTRY_OVER);
  entry_set_state(e, ENTRY_QUEUED);
  let_go(e);
  ss->changed(ss->ctx, e);
  sessions_soon(ss);
  return true;
}

static void sessions_on_finished(void *ctx, struct session *s) {
  struct daemon_entry *e = ctx;
  const struct err *broken = session_broken(s);
  if (e->state == ENTRY_WRITING)
    e->resumed = false; /* the resume was not written */
  if (broken != NULL) {
    entry_set_trouble(e, broken->text);
    log_warn("session %s: %s", e->id, broken->text);
    if (entry_mend_later(e, broken))
      return;
  }
  if (broken != NULL || !entry_was_answered(e))
    entry_retire(e);
}

const struct watcher sessions_watcher = {.record = sessions_on_record,
                                         .trouble = sessions_on_trouble,
                                         .delta = sessions_on_delta,
                                         .finished = sessions_on_finished};

/* --- starting --- */

static bool no_descriptors(void) {
  int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd >= 0)
    close(fd);
  return fd < 0;
}

static bool sessions_choose(void *ctx, const json_t *config, struct session_setup *setup,
                            struct err *err) {
  struct daemon_entry *e = ctx;
  (void)config;
  (void)err;
  *setup = e->launch.setup;
  return true;
}

bool entry_reopen(struct daemon_entry *e, struct err *err) {
  struct store_ref ref;
  struct host *host = e->sessions->host;
  launch_deinit(&e->launch);
  e->launch.generation = generation_ref(e->sessions->env->generation);
  entry_ref(e, &ref);
  host->registry = e->launch.generation->registry;
  e->session = host_open(host, &ref, &sessions_watcher, e, err);
  return e->session != NULL || (err->code != ERR_LOCKED && !no_descriptors());
}

static bool waits_for_person(const struct core *core) {
  return core->status == SESSION_STOPPED && !core->answered &&
         session_stop_is_for_person(buf_view(&core->stop_reason));
}

/* A session that a person resumed, with no record of it yet, goes on with the configuration as it
 * is now. */
static bool go_on(struct daemon_entry *e, struct err *err) {
  const struct core *core = session_core(e->session);
  struct steer st = {0};
  bool by_user = e->resumed && core->status == SESSION_STOPPED;
  if (by_user && !entry_settle(e, &st, err)) {
    session_refuse(e->session);
    steer_deinit(&st);
    return false;
  }
  const char *reason = e->resumed ? "user" : "restart";
  if (core->answered || e->due)
    reason = core->answered ? "answer" : "deadline";
  json_t *config = json_incref(by_user ? st.config : core->config);
  launch_deinit(&e->launch);
  bool ok = launch_again(&e->launch, e->sessions->env, config, err) &&
            host_go(e->session, sessions_choose, e, reason, by_user ? &st.core : NULL, err);
  json_decref(config);
  steer_deinit(&st);
  return ok;
}

/* The session goes on, once its log is read back (else err says why not) and nobody else has taken
 * it meanwhile. */
static bool start_opened(struct daemon_entry *e, struct err *err) {
  const struct core *core = e->session ? session_core(e->session) : NULL;
  entry_set_trouble(e, core ? NULL : err->text);
  if (core == NULL && entry_mend_later(e, err))
    return true;
  const char *asked =
      core != NULL && core->status != SESSION_ENDED ? session_asked(e->session) : "";
  if (core != NULL && core->status != SESSION_ENDED &&
      (strcmp(asked, "cancel") == 0 || (e->sessions->shared && e->cancelled)))
    return entry_cancel_now(e, NULL, err);
  e->foreign = false;
  e->resumed = e->resumed ||
               (core != NULL && core->status == SESSION_STOPPED && strcmp(asked, "resume") == 0);
  if (core != NULL && core->seq != e->brief.seq && !e->sessions->shared)
    entry_look(e);    /* another program has advanced it */
  if (core != NULL) { /* questions may be anywhere in its log */
    json_decref(e->brief.questions);
    e->brief.questions = core_questions(core);
  }
  bool runs = core != NULL && core->status != SESSION_ENDED &&
              (e->resumed || e->due || !waits_for_person(core));
  bool stops = runs && !e->resumed && host_stop_poison(e->session);
  if (runs && !stops && !go_on(e, err)) {
    runs = false;
    entry_set_trouble(e, err->text);
    worker_pause(e->sessions->env->store, e->id, err->text);
  }
  e->resumed = e->due = false;
  if (runs) {
    entry_set_state(e, ENTRY_RUNNING);
    return true;
  }
  if (e->trouble != NULL)
    log_warn("session %s does not continue: %s", e->id, e->trouble);
  entry_retire(e);
  return true;
}

void entry_opened(struct daemon_entry *e, struct err *err) {
  struct sessions *ss = e->sessions;
  if (e->ask != NULL) {
    entry_opened_for(e, err);
  } else if (ss->draining && !e->cancelled) { /* another worker goes on with it */
    entry_set_state(e, ENTRY_OVER);
    let_go(e);
    sessions_soon(ss);
  } else if (e->session == NULL && err->code == ERR_LOCKED) {
    entry_set_state(e, ENTRY_OVER); /* another worker has it; the queue will say when it is free */
    if (e->cancelled)
      entry_ask_cancel(e);
    else
      ss->changed(ss->ctx, e);
    sessions_soon(ss);
  } else if (!start_opened(e, err)) {
    entry_set_trouble(e, err->text);
    entry_retire(e);
  }
}

/* Takes over a log and continues its session, unless somebody else did so meanwhile. */
static bool start_again(struct daemon_entry *e) {
  struct err err = {0};
  if (e->sessions->shared) {
    entry_open_later(e);
    return true;
  }
  if (entry_reopen(e, &err))
    return start_opened(e, &err);
  e->not_before_ms = uv_now(e->sessions->host->loop) + LIMIT_LOCK_RETRY_MS;
  return false;
}

/* Returns false if another program has it, or no descriptor is left. */
static bool end_late(struct daemon_entry *e) {
  struct err err;
  char why[80];
  (void)snprintf(why, sizeof why, "it did not begin before %s", e->brief.not_after);
  if (entry_cancel_now(e, why, &err))
    return true;
  e->not_before_ms = uv_now(e->sessions->host->loop) + LIMIT_LOCK_RETRY_MS;
  return false;
}

static bool sessions_start(struct daemon_entry *e) {
  struct err err;
  if (e->left)
    return entry_cancel_now(e, "its client has left", &err);
  if (entry_is_too_late(e))
    return end_late(e);
  if (!e->held)
    return start_again(e);
  e->held = false;
  entry_set_state(e, ENTRY_RUNNING);
  launch_started(&e->launch);
  host_begin(e->session);
  if (e->launch.asks == ASKS_JUDGMENT)
    host_answer(e->session, buf_view(&e->launch.given));
  return true;
}

void entry_drop_session(struct daemon_entry *e) {
  if (e->sessions->recorded != NULL)
    e->sessions->recorded(e->sessions->observer, e, NULL);
  session_free(e->session);
  e->session = NULL;
  launch_deinit(&e->launch);
  e->held = false;
}

void sessions_free_dead(struct sessions *ss) {
  while (ss->dead) {
    struct daemon_entry *e = ss->dead;
    ss->dead = e->next_dead;
    e->next_dead = NULL;
    struct store_ref ref;
    bool begun = e->brief.seq > 0;
    entry_ref(e, &ref);
    entry_drop_session(e);
    if (!begun && !e->taken) /* its submitter was told so */
      store_remove(&ref);
    if (!begun && e->feed == NULL)
      sessions_entry_free(e);
    else if (e->claimed && e->state == ENTRY_OVER)
      sessions_take(ss, e->id, &(struct brief){0});
  }
}

/* Forgets the sessions that ended longest ago, and those that wait for a person, perhaps for days.
 * Their logs stay. */
static void forget(struct sessions *ss) {
  const struct list *over = sessions_list_of(ss, ENTRY_OVER);
  bool asking = ss->asking;
  ss->asking = false;
  LIST_EACH(struct daemon_entry, e, in_state, over) {
    bool asks = brief_is_stopped(&e->brief) && e->brief.questions != NULL;
    if (!asking && over->count <= LIMIT_OVER_COUNT)
      break;
    if ((over->count > LIMIT_OVER_COUNT || asks) && e->session == NULL && e->feed == NULL)
      sessions_entry_free(e);
    else
      ss->asking |= asks;
  }
}

static void on_later(uv_timer_t *timer) {
  sessions_soon(timer->data);
}

/* Counts by spans of time. Returns whether another one has begun. */
static bool pace_passes(struct sessions *ss) {
  uint64_t now = uv_now(ss->host->loop), passed = now - ss->pace.since_ms;
  if (passed < LIMIT_QUEUE_PACE_MS)
    return false;
  ss->pace.before = passed < 2 * LIMIT_QUEUE_PACE_MS ? ss->pace.freed : 0;
  ss->pace.freed = 0;
  ss->pace.since_ms = now;
  return true;
}

/* Returns how many at the front of the queue begin here so soon, as things go, that giving them to
 * other workers is not worth it. */
static size_t begin_soon(const struct sessions *ss) {
  size_t most = ss->pace.freed > ss->pace.before ? ss->pace.freed : ss->pace.before;
  if (!ss->shared || ss->draining)
    return 0;
  most *= LIMIT_QUEUE_HELD_MS / LIMIT_QUEUE_PACE_MS;
  return most < LIMIT_QUEUE_HELD_COUNT ? most : LIMIT_QUEUE_HELD_COUNT;
}

/* Keeps nothing in memory for sessions that have to wait for long, except a text to be judged. */
static void release_held(struct sessions *ss) {
  bool all = pace_passes(ss);
  const struct list *queue = sessions_list_of(ss, ENTRY_QUEUED);
  size_t place = queue->count, soon = begin_soon(ss);
  for (struct list_node *last = queue->last; last && place > soon; last = last->prev, place--) {
    struct daemon_entry *e = LIST_ITEM(last, struct daemon_entry, in_state);
    if (!e->held && !all)
      break;
    if (e->held && e->launch.asks != ASKS_JUDGMENT) /* its text is not in its log yet */
      entry_drop_session(e);
  }
  if (soon > 0 && queue->count > 0)
    uv_timer_start(&ss->later, on_later, LIMIT_QUEUE_PACE_MS, 0);
}

static void sessions_on_soon(uv_timer_t *timer) {
  struct sessions *ss = timer->data;
  unsigned started = 0;
  sessions_free_dead(ss);
  forget(ss);
  uint64_t now = uv_now(ss->host->loop);
  LIST_EACH(struct daemon_entry, e, in_state, sessions_list_of(ss, ENTRY_QUEUED)) {
    if (ss->draining || sessions_running(ss) >= ss->max_running)
      break;
    bool now_due = e->not_before_ms <= now;
    if (entry_waits_for_same(e)) /* the other's end leads back here */
      continue;
    if (now_due && started++ == LIMIT_START_COUNT) {
      sessions_soon(ss);
      return;
    }
    if (!now_due || !sessions_start(e))
      uv_timer_start(&ss->later, on_later, LIMIT_LOCK_RETRY_MS, 0);
  }
  release_held(ss);
  if (ss->shared)
    sessions_claim(ss);
}

void sessions_soon(struct sessions *ss) {
  if (!uv_is_closing((uv_handle_t *)&ss->soon))
    uv_timer_start(&ss->soon, sessions_on_soon, 0, 0);
}

/* --- submitting --- */

struct daemon_entry *sessions_submit(struct sessions *ss, struct launch *launch, struct err *err) {
  struct host *host = ss->host;
  if (sessions_list_of(ss, ENTRY_QUEUED)->count >= LIMIT_QUEUE_COUNT) {
    launch_deinit(launch);
    (void)err_set(err, ERR_LIMIT, "%u sessions wait already", LIMIT_QUEUE_COUNT);
    return NULL;
  }
  struct daemon_entry *e = entry_new(ss, "", ENTRY_WRITING);
  e->launch = *launch;
  *launch = (struct launch){0};
  struct launch_about *about = e->launch.about;
  const struct core_parent *parent = about ? fork_parent(&about->fork) : NULL;
  const struct session_params params = {.setup = e->launch.setup,
                                        .workflow = e->launch.workflow,
                                        .workflow_path = e->launch.workflow_path,
                                        .task = buf_view(&e->launch.task),
                                        .task_blob = e->launch.task_blob,
                                        .config = e->launch.config,
                                        .facets = e->launch.facets,
                                        .parent = parent,
                                        .hold = true};
  host->registry = e->launch.generation->registry;
  e->session = host_start(host, &params, &sessions_watcher, e, err);
  if (e->session == NULL) {
    sessions_entry_free(e);
    return NULL;
  }
  list_remove(sessions_list_of(ss, ENTRY_WRITING), &e->in_state);
  (void)snprintf(e->id, sizeof e->id, "%.36s", session_core(e->session)->session);
  sessions_list_insert(sessions_list_of(ss, ENTRY_WRITING), e);
  /* The entry is first, where one without an id belongs. */
  memmove(ss->entries, ss->entries + 1, --ss->count * sizeof *ss->entries);
  table_insert(ss, e);
  return e;
}

/* --- ending --- */

size_t sessions_running(const struct sessions *ss) {
  return ss->lists[ENTRY_RUNNING].count + ss->lists[ENTRY_OPENING].count;
}

size_t sessions_queued(const struct sessions *ss) {
  return ss->lists[ENTRY_QUEUED].count;
}

size_t sessions_busy(const struct sessions *ss) {
  return ss->host->session_count + sessions_claims(ss) + (ss->looking != NULL) + ss->due_count;
}

void sessions_drain(struct sessions *ss) {
  ss->draining = ss->host->draining = true;
  LIST_EACH(struct daemon_entry, e, in_state, sessions_list_of(ss, ENTRY_RUNNING))
    host_drain(e->session);
  LIST_EACH(struct daemon_entry, e, in_state, sessions_list_of(ss, ENTRY_BROKEN)) {
    struct err err;
    if (!entry_mend_now(e, &err)) /* the next start finds the log as it is */
      log_warn("session %s: %s", e->id, err.text);
    entry_retire(e);
  }
  sessions_soon(ss);
}

void sessions_stop(struct sessions *ss, const char *message) {
  LIST_EACH(struct daemon_entry, e, in_state, sessions_list_of(ss, ENTRY_RUNNING))
    host_stop(e->session, "shutdown", message);
}

void sessions_init(struct sessions *ss, struct host *host, struct launch_env *env,
                   struct events *events, size_t max_running,
                   void (*changed)(void *ctx, struct daemon_entry *e), void *ctx) {
  *ss = (struct sessions){.host = host,
                          .env = env,
                          .events = events,
                          .max_running = max_running,
                          .changed = changed,
                          .ctx = ctx};
  uv_timer_init(host->loop, &ss->soon);
  uv_timer_init(host->loop, &ss->later);
  uv_timer_init(host->loop, &ss->looks);
  uv_timer_init(host->loop, &ss->mends);
  deadlines_init(&ss->deadlines, host->loop, sessions_on_deadline, ss);
  ss->soon.data = ss->later.data = ss->looks.data = ss->mends.data = ss;
}

void sessions_close(struct sessions *ss) {
  sessions_free_dead(ss);
  while (ss->count > 0)
    sessions_entry_free(ss->entries[ss->count - 1]);
  free(ss->entries);
  uv_close((uv_handle_t *)&ss->soon, NULL);
  uv_close((uv_handle_t *)&ss->later, NULL);
  uv_close((uv_handle_t *)&ss->looks, NULL);
  uv_close((uv_handle_t *)&ss->mends, NULL);
  deadlines_deinit(&ss->deadlines);
}
