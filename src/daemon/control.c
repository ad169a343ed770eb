/* Answers the routes of the control API. */
#include "daemon/control.h"

#include "audit/aggregate.h"
#include "audit/ask_trace.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "base/utf8.h"
#include "core/record.h"
#include "core/state.h"
#include "daemon/session_api.h"
#include "daemon/window/window.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/daily_usage.h"
#include "host/resume_options.h"
#include "os/clock.h"
#include "os/loop.h"
#include "store/filter.h"
#include "store/inbox.h"
#include "store/label.h"
#include "store/reader.h"
#include "store/worker.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the tails of running calls ---
 *
 * The end of what each running call has said, for a page that is opened in the
 * middle of it.
 *
 *   tail = output_tails_add(&tails, id, turn, call, thinking, text)   a piece of an answer came
 *   output_tails_end(&tails, id, call)          it is over, or starts again; 0: all of the session
 *
 * At most LIMIT_TAIL_TEXT_BYTES and LIMIT_TAIL_THINKING_BYTES are kept for a call, and
 * LIMIT_TAIL_ALL_BYTES in all; beyond that, the call that was quiet longest is dropped. Places are
 * bytes since the call began. */

static void output_tail_drop(struct output_tails *ts, struct output_tail *t) {
  list_remove(&ts->all, &t->in_tails);
  ts->bytes -= t->text.text.cap + t->thinking.text.cap;
  buf_deinit(&t->text.text);
  buf_deinit(&t->thinking.text);
  free(t);
}

static struct output_tail *output_tail_find(const struct output_tails *ts, const char *id,
                                            long call) {
  LIST_EACH(struct output_tail, t, in_tails, (struct list *)&ts->all)
    if (t->call == call && strcmp(t->id, id) == 0)
      return t;
  return NULL;
}

/* Gathers twice the bound before it drops the first half, so that little is moved. */
static void said_add(struct output_tail_said *said, struct str text, size_t max) {
  said->end += text.n;
  if (text.n > max) {
    size_t from = utf8_ceil(text.p, text.n, text.n - max);
    buf_clear(&said->text);
    text = (struct str){text.p + from, text.n - from};
  }
  buf_str(&said->text, text);
  if (said->text.n <= 2 * max)
    return;
  size_t from = utf8_ceil(said->text.p, said->text.n, said->text.n - max);
  memmove(said->text.p, said->text.p + from, said->text.n - from);
  said->text.n -= from;
  said->text.p[said->text.n] = '\0';
}

static struct output_tail *output_tails_add(struct output_tails *ts, const char *id, long turn,
                                            long call, bool thinking, struct str text) {
  struct output_tail *t = output_tail_find(ts, id, call);
  if (t == NULL) {
    t = xcalloc(1, sizeof *t);
    memcpy(t->id, id, sizeof t->id);
    t->turn = turn;
    t->call = call;
  } else {
    list_remove(&ts->all, &t->in_tails);
  }
  list_push_front(&ts->all, &t->in_tails);
  struct output_tail_said *said = thinking ? &t->thinking : &t->text;
  size_t before = said->text.cap;
  said_add(said, text, thinking ? LIMIT_TAIL_THINKING_BYTES / 2 : LIMIT_TAIL_TEXT_BYTES / 2);
  ts->bytes += said->text.cap - before;
  while (ts->bytes > LIMIT_TAIL_ALL_BYTES && ts->all.count > 1)
    output_tail_drop(ts, LIST_ITEM(ts->all.last, struct output_tail, in_tails));
  return t;
}

static void output_tails_end(struct output_tails *ts, const char *id, long call) {
  LIST_EACH(struct output_tail, t, in_tails, &ts->all)
    if ((call == 0 || t->call == call) && strcmp(t->id, id) == 0)
      output_tail_drop(ts, t);
}

/* --- control --- */

/* GET /v1/audit: counts the judgments of the daemon's logs, with the filters of the
 * command. */

static const char *const audit_api_query[] = {"by",      "since",      "workflow",  "movement",
                                              "method",  "provider",   "model",     "worker",
                                              "outcome", "min_stages", "ambiguous", NULL};

struct counting {
  struct store store;
  struct aggregate *aggregate;
};

/* Reads the arguments. On false, err says which one is wrong. */
static bool audit_api_filters(const struct server_request *r, struct aggregate *c,
                              struct err *err) {
  const char *since = server_query(r, "since"), *least = server_query(r, "min_stages");
  const char *ambiguous = server_query(r, "ambiguous"), *by = server_query(r, "by");
  long n = 0;
  for (int i = 0; i < AGGREGATE_WORD_COUNT; i++)
    if (!aggregate_filter(c, (enum aggregate_word)i,
                          server_query(r, aggregate_word_name((enum aggregate_word)i)), err))
      return false;
  if (least != NULL && (!str_to_long(str_from(least), &n) || n < 1))
    return err_set(err, ERR_USAGE, "min_stages must be a number from 1");
  c->min_stages = n;
  if (ambiguous != NULL && strcmp(ambiguous, "true") != 0 && strcmp(ambiguous, "false") != 0)
    return err_set(err, ERR_USAGE, "ambiguous must be true or false");
  c->ambiguous = ambiguous != NULL && strcmp(ambiguous, "true") == 0;
  return (since == NULL || filter_since(since, clock_real_ms(), &c->since_ms, err)) &&
         (by == NULL || aggregate_by(c, by, err));
}

static void audit_api_put(struct buf *out, const char *before, json_t *value) {
  buf_puts(out, before);
  json_write(value, out);
  json_decref(value);
}

static void audit_api_work(void *ctx, struct read_job_answer *answer) {
  struct counting *work = ctx;
  struct aggregate *c = work->aggregate;
  json_t *group;
  if (!aggregate_read_store(c, &work->store, &answer->err)) {
    answer->status = 500;
    return;
  }
  aggregate_sort(c);
  buf_puts(&answer->body, "{\"groups\":[");
  for (size_t i = 0; (group = aggregate_group_json(c, i)) != NULL; i++)
    audit_api_put(&answer->body, i > 0 ? "," : "", group);
  audit_api_put(&answer->body, "],\"totals\":", aggregate_totals_json(c));
  buf_putc(&answer->body, '}');
}

static void audit_api_drop(void *ctx) {
  struct counting *work = ctx;
  aggregate_free(work->aggregate);
  free(work);
}

static void audit_api_take(struct read_jobs *rs, struct server_request *r,
                           const struct store *store) {
  struct err err = {0};
  struct aggregate *c = aggregate_new();
  if (!audit_api_filters(r, c, &err)) {
    aggregate_free(c);
    server_problem(r, 400, NULL, "%s", err.text);
    return;
  }
  struct counting *work = xmalloc(sizeof *work);
  *work = (struct counting){*store, c};
  read_job_take(rs, r, audit_api_work, audit_api_drop, work);
}

/* --- a session as JSON --- */

static void control_reply_session(const struct control *api, struct server_request *r,
                                  unsigned status, const char *id) {
  struct api_status v;
  struct err err = {0};
  if (!api_status_of(&v, api->sessions, id, &err)) {
    server_problem(r, 404, NULL, "there is no session %s", id);
    return;
  }
  server_reply_json(r, status, api_status_json(&v, api->sessions));
  api_status_deinit(&v);
}

static bool control_store_answers(const struct control *api, struct server_request *r) {
  struct err err = {0};
  if (worker_answers(api->sessions->env->store, &err))
    return true;
  server_set_header(r, "Retry-After", "1");
  server_problem(r, 503, NULL, "%s", err.text);
  return false;
}

/* Resolves an id, a unique prefix of one, or "last" to the whole id. Returns false if it has
 * answered the request. */
static bool control_find(struct control *api, struct server_request *r, char id[STORE_ID_BYTES]) {
  const char *word = server_part(r);
  struct store_ref ref;
  struct err err = {0};
  bool is_id = strspn(word, "0123456789abcdef-") == strlen(word);
  if (is_id && strlen(word) == STORE_ID_BYTES - 1) {
    memcpy(id, word, STORE_ID_BYTES);
    return true;
  }
  if (!control_store_answers(api, r))
    return false;
  if (api->sessions->shared) {
    read_job_find(&api->readings, r, api->sessions->env->store);
    return false;
  }
  if ((!is_id && strcmp(word, "last") != 0) ||
      !store_find(api->sessions->env->store, word, &ref, &err)) {
    server_problem(r, 404, NULL, "%s", err.text[0] ? err.text : "that is not a session's id");
    return false;
  }
  store_ref_id(&ref, id);
  return true;
}

static struct daemon_entry *control_entry(struct control *api, struct server_request *r,
                                          const char *id) {
  struct err err = {0};
  struct daemon_entry *e = sessions_find(api->sessions, id);
  if (!api_status_is_in_memory(api->sessions, id) && !control_store_answers(api, r))
    return NULL;
  if (e == NULL)
    e = sessions_adopt(api->sessions, id, &err);
  if (e == NULL || e->summary.seq == 0) {
    server_problem(r, 404, NULL, "there is no session %s", id);
    return NULL;
  }
  return e;
}

/* --- refusals --- */

/* Refuses a request while the daemon is draining, when no session begins or continues any more.
 * Returns true if it has answered the request. */
static bool control_refuse_draining(const struct control *api, struct server_request *r) {
  if (!api->draining)
    return false;
  server_set_header(r, "Retry-After", "5");
  server_problem(r, 503, NULL, "the daemon is stopping: it takes no more sessions");
  return true;
}

/* Refuses what only a person may ask for to a program that a session runs, see
 * host/resume_options.h. Returns true if it has answered the request. */
static bool control_refuse_program(struct server_request *r, const char *command, const char *id) {
  struct err err;
  const char *program = server_program(r);
  if (program == NULL || resume_options_refuse(program, command, id, &err))
    return false;
  server_problem(r, 403, NULL, "%s", err.text);
  return true;
}

/* Answers a body that could not be taken. */
static void control_refuse(const struct intake_result *result) {
  const struct err *err = &result->err;
  json_t *list = result->errors.count > 0 ? launch_errors_json(&result->errors) : NULL;
  json_t *members = list ? json_pack("{so}", "errors", list) : NULL;
  if (err->line > 0)
    server_problem(result->request, result->status, members, "%s:%d:%d: %s", err->file, err->line,
                   err->column, err->text);
  else
    server_problem(result->request, result->status, members, "%s", err->text);
}

/* --- the answer to a question (judge, ask) --- */

/* This gathers what the session's log says. */
struct question_told {
  json_t *judgment, *stop; /* the last of each, or NULL */
  struct ask_trace ask;
};

static void question_keep(json_t **slot, json_t *record) {
  json_decref(*slot);
  *slot = json_incref(record);
}

struct answering {
  struct store_ref ref;
  char id[STORE_ID_BYTES];
  char status[sizeof((struct summary *)NULL)->status];
  bool judges;
  struct question_told told;
};

static bool read_told(const struct store_ref *ref, struct question_told *told, struct err *err) {
  struct log_reader r;
  struct str line;
  if (!reader_open(&r, ref, err))
    return false;
  while (reader_next(&r, &line) && r.whole) {
    json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (record != NULL)
      ask_trace_feed(&told->ask, record);
    struct str type = json_view(json_at(record, "type"));
    if (str_eq_c(type, "judgment"))
      question_keep(&told->judgment, record);
    else if (str_among(type, "session_stop session_end"))
      question_keep(&told->stop, record);
  }
  reader_close(&r);
  return true;
}

static void answering_drop(void *what) {
  struct answering *a = what;
  json_decref(a->told.judgment);
  json_decref(a->told.stop);
  ask_trace_deinit(&a->told.ask);
  free(a);
}

static void answering_reply(void *what, struct server_request *r) {
  struct answering *a = what;
  const struct question_told *told = &a->told;
  if (a->judges && told->judgment != NULL) {
    server_reply_json(r, 200, json_pack("{ss sO}", "session", a->id, "judgment", told->judgment));
  } else if (!a->judges && told->ask.structured != NULL) {
    json_t *result = ask_trace_result(&told->ask, NULL);
    json_object_set_new(result, "session", json_string(a->id));
    server_reply_json(r, 200, result);
  } else {
    /* Nothing was answered: whoever was asked is away, or the session was stopped. */
    const char *message = json_string_value(json_object_get(told->stop, "message"));
    const char *reason = json_string_value(json_object_get(told->stop, "reason"));
    json_t *members = json_pack("{ss ss*}", "session", a->id, "reason", reason);
    server_problem(r, 502, members, "%s: %s", reason ? reason : a->status,
                   message ? message : "there is no answer");
  }
  answering_drop(a);
}

static void answering_work(void *what, struct read_job_answer *answer) {
  struct answering *a = what;
  answer->hand_on = answering_reply;
  if (!read_told(&a->ref, &a->told, &answer->err))
    answer->status = 500;
}

/* Reads the entry's log, which has ended or stopped, in the pool, and answers. judges: false if a
 * value was asked for. */
static void question_take(struct read_jobs *rs, struct server_request *r,
                          const struct daemon_entry *e, bool judges) {
  struct answering *a = xcalloc(1, sizeof *a);
  a->judges = judges;
  entry_ref(e, &a->ref);
  memcpy(a->id, e->id, sizeof a->id);
  memcpy(a->status, e->summary.status, sizeof a->status);
  read_job_add(rs, r, NULL, answering_work, answering_drop, a);
}

/* --- requests that wait for their session --- */

/* A request waits for one of these of its session. */
enum awaited { FIRST_RECORD, SKIPPED, RESUME, ANSWER, SAID, CANCEL, JUDGMENT, VALUE };

struct waiter {
  struct list_node in_control;
  struct control *api;
  struct server_request *request;
  char id[STORE_ID_BYTES];
  enum awaited what;
  uint64_t question; /* for ANSWER; for SAID the record that is awaited */
};

static void waiter_drop(struct waiter *w) {
  list_remove(&w->api->waiters, &w->in_control);
  free(w);
}

/* Nobody is waiting for the answer any more, so the question is dropped. */
static void control_on_gone(void *ctx) {
  struct waiter *w = ctx;
  struct sessions *ss = w->api->sessions;
  bool asks = w->what == JUDGMENT || w->what == VALUE;
  struct daemon_entry *e = asks && !server_closes(w->request) ? sessions_find(ss, w->id) : NULL;
  waiter_drop(w);
  if (e != NULL)
    sessions_leave(ss, e);
}

/* `question`: the one that an ANSWER answers, or the record of what is SAID. */
static void control_wait_for(struct control *api, struct server_request *r, const char *id,
                             enum awaited what, uint64_t question) {
  struct waiter *w = xcalloc(1, sizeof *w);
  *w = (struct waiter){.api = api, .request = r, .what = what, .question = question};
  print_into(w->id, sizeof w->id, "%s", id);
  list_push_front(&api->waiters, &w->in_control);
  server_keep(r, control_on_gone, w);
}

/* Says that what was asked for is not on disk. */
static void control_reply_broken(struct server_request *r, const struct daemon_entry *e,
                                 enum awaited what) {
  const struct err *broken = e->session ? session_broken(e->session) : NULL;
  bool paused = e->session != NULL && session_paused(e->session) != NULL;
  bool full = paused || (broken != NULL && broken->code == ERR_FULL);
  const char *why = entry_message(e) ? entry_message(e) : "its log broke";
  if (what == CANCEL && (paused || e->state == ENTRY_BROKEN)) {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, full ? 507 : 503, NULL,
                   "the cancel has not been accepted yet: %s. This daemon keeps trying while it "
                   "runs, but forgets it when it ends: ask again to be sure",
                   why);
  } else if (what == CANCEL && e->sessions->shared) {
    server_problem(r, 504, NULL, "%s", why); /* its worker did not do it in time */
  } else if (what == FIRST_RECORD && broken != NULL && broken->code == ERR_LIMIT) {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, 503, NULL, "%s", why);
  } else {
    const char *what_not = what == RESUME ? "it was not resumed: " : "";
    if (what == ANSWER || what == SAID)
      what_not = what == SAID ? "it was not told: " : "it was not answered: ";
    server_problem(r, full ? 507 : 500, NULL, "%s%s", what_not, why);
  }
}

/* Tells which record has it, and which running call was told, if any was. */
static void reply_said(struct server_request *r, const struct daemon_entry *e, uint64_t seq) {
  const json_t *list = e->session ? session_core(e->session)->said : NULL;
  json_t *reply = json_pack("{ss sI}", "session", e->id, "said", (json_int_t)seq);
  JSON_EACH(list, i, said) {
    if ((uint64_t)json_int_at(said, "said") == seq && json_at(said, "call") != NULL)
      json_object_set(reply, "call", json_at(said, "call"));
  }
  long will = e->session ? core_steer_will(session_core(e->session)) : 0;
  if (will > 0 && json_object_get(reply, "call") == NULL)
    json_object_set_new(reply, "next", json_integer(will));
  server_reply_json(r, 202, reply);
}

/* Answers a waiter whose time has come. */
static void control_answer(struct control *api, struct server_request *r,
                           const struct daemon_entry *e, enum awaited what, uint64_t question) {
  char place[64];
  switch (what) {
  case ANSWER:
    if (summary_asks(&e->summary, question))
      break;
    control_reply_session(api, r, 202, e->id);
    return;
  case SAID:
    if (e->summary.seq < question)
      break;
    reply_said(r, e, question);
    return;
  case SKIPPED:
    if (e->summary.seq == 0)
      break;
    control_reply_session(api, r, 200, e->id);
    return;
  case FIRST_RECORD:
    if (e->summary.seq == 0)
      break;
    print_into(place, sizeof place, "/v1/sessions/%s", e->id);
    server_set_header(r, "Location", place);
    control_reply_session(api, r, 201, e->id);
    return;
  case RESUME:
    if (summary_is_stopped(&e->summary))
      break;
    control_reply_session(api, r, 202, e->id);
    return;
  case JUDGMENT:
  case VALUE:
    if (api_status_is_unfinished(&e->summary))
      break;
    question_take(&api->readings, r, e, what == JUDGMENT);
    return;
  case CANCEL:
    if (!summary_is_over(&e->summary))
      break;
    if (strcmp(e->summary.status, "cancelled") == 0)
      control_reply_session(api, r, 200, e->id);
    else
      server_problem(r, 409, NULL, "it has ended already: %s", e->summary.status);
    return;
  }
  control_reply_broken(r, e, what);
}

void control_changed(void *ctx, struct daemon_entry *e) {
  struct control *api = ctx;
  event_stream_add(&api->news, e->id, entry_status(e), e->summary.seq);
  if (api->window != NULL)
    window_changed(api->window, e->id);
  bool paused = e->session != NULL && session_paused(e->session) != NULL;
  bool over = e->state == ENTRY_OVER || e->state == ENTRY_BROKEN || paused ||
              strcmp(e->summary.status, "running") != 0;
  LIST_EACH(struct waiter, w, in_control, &api->waiters) {
    struct server_request *r = w->request;
    enum awaited what = w->what;
    uint64_t question = w->question;
    bool open = what == ANSWER && summary_asks(&e->summary, question) && e->state != ENTRY_BROKEN &&
                e->state != ENTRY_OVER;
    open = open || (what == SAID && e->summary.seq < question && e->state != ENTRY_BROKEN &&
                    e->state != ENTRY_OVER);
    if (strcmp(w->id, e->id) != 0 || (what >= CANCEL && !over) || open)
      continue;
    waiter_drop(w);
    control_answer(api, r, e, what, question);
  }
}

/* --- which session a request is about --- */

/* Holds a request about one session while the session is looked up. */
struct about {
  struct control *api;
  /* Acts on the entry, as memory or the last look at the store describes it; owns the about. */
  void (*act)(struct about *a, struct server_request *r, struct daemon_entry *e);
  bool settles;                   /* waits for a release that is under way */
  bool told;                      /* what was said is kept for the worker that has it */
  uint64_t seq;                   /* of the last record that a watcher has */
  struct entry_ask ask;           /* for sessions_resume and sessions_answer */
  struct server_request *request; /* of the ask; NULL: its client has left */
  char word[SERVER_PART_BYTES];
  struct status_snapshot snapshot;
};
typedef void (*about_act)(struct about *a, struct server_request *r, struct daemon_entry *e);

static struct about *about_new(struct control *api, about_act act) {
  struct about *a = xcalloc(1, sizeof *a);
  a->api = api;
  a->act = act;
  return a;
}

static void about_free(void *what) {
  struct about *a = what;
  entry_ask_deinit(&a->ask);
  status_snapshot_deinit(&a->snapshot);
  free(a);
}

/* Memory does not know enough: it is another's, or is about to be let go of. */
static bool about_asks_store(const struct about *a, const char *word) {
  const struct sessions *ss = a->api->sessions;
  const struct daemon_entry *e = sessions_find(ss, word);
  if (!ss->shared || (e != NULL && e->summary.seq == 0))
    return false;
  return e == NULL || !api_status_is_in_memory(ss, word) ||
         (a->settles && summary_is_stopped(&e->summary));
}

static void act_resume(struct about *a, struct server_request *r, struct daemon_entry *e);

static void about_taken(void *what, struct server_request *r) {
  struct about *a = what;
  struct daemon_entry *e = sessions_update(a->api->sessions, &a->snapshot);
  if (a->told && a->act == act_resume) {
    control_reply_session(a->api, r, 202, e->id);
  } else if (a->told) {
    server_reply_json(r, 202, json_pack("{ss}", "session", e->id));
  } else if (e->summary.seq > 0) {
    a->act(a, r, e);
    return;
  } else {
    server_problem(r, 404, NULL, "there is no session %s", e->id);
  }
  about_free(a);
}

static void about_work(void *what, struct read_job_answer *answer) {
  struct about *a = what;
  const struct store *store = a->api->sessions->env->store;
  if (!status_snapshot_take(&a->snapshot, store, a->word, a->settles, &answer->err))
    answer->status = answer->err.code == ERR_NOT_FOUND ? 404 : 503;
  else if (a->ask.said.core.says == SAYS_STEER && a->ask.answers && a->snapshot.owned) {
    struct store_ref ref;
    json_auto_t *said = json_pack("{sO sO}", "text", json_object_get(a->ask.said.body, "text"),
                                  "by", a->ask.said.by);
    store_ref(store, a->snapshot.id, &ref);
    a->told = worker_say(&ref, said, &answer->err);
    if (!a->told)
      answer->status = answer->err.code == ERR_INVALID ? 409 : 503;
  } else if (a->act == act_resume && a->snapshot.owned &&
             summary_waits_for_login(&a->snapshot.summary)) {
    struct store_ref ref;
    store_ref(store, a->snapshot.id, &ref);
    a->told = worker_hurry(&ref, &answer->err);
    if (!a->told)
      answer->status = 503;
  }
  answer->hand_on = about_taken;
}

/* Finds the session that the request's path names; if there is none, answers. A shared store is
 * asked in the pool. Takes the about over. */
static void about_take(struct about *a, struct server_request *r) {
  struct control *api = a->api;
  const char *word = server_part(r);
  if (about_asks_store(a, word)) {
    print_into(a->word, sizeof a->word, "%s", word);
    if (control_store_answers(api, r))
      read_job_take(&api->readings, r, about_work, about_free, a);
    else
      about_free(a);
    return;
  }
  struct daemon_entry *e =
      control_find(api, r, a->snapshot.id) ? control_entry(api, r, a->snapshot.id) : NULL;
  if (e != NULL)
    a->act(a, r, e);
  else
    about_free(a);
}

/* --- beginning sessions --- */

/* The first record shows that a session is kept; a question's client waits for its end. */
static const enum awaited awaited_by[] = {
    [ASKS_SESSION] = FIRST_RECORD, [ASKS_JUDGMENT] = JUDGMENT, [ASKS_VALUE] = VALUE};

/* If another session with its key is running, answers with that one. */
static bool skip_session(struct control *api, struct server_request *r, const struct launch *l) {
  const char *key = json_string_value(json_object_get(l->config, "unique"));
  const struct daemon_entry *other = l->skips ? sessions_with_key(api->sessions, key) : NULL;
  if (other != NULL && other->summary.seq > 0)
    control_reply_session(api, r, 200, other->id);
  else if (other != NULL)
    control_wait_for(api, r, other->id, SKIPPED, 0);
  return other != NULL;
}

static void control_on_session(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  struct server_request *r = result->request;
  struct err err = {0};
  if (!result->ok) {
    control_refuse(result);
    return;
  }
  if (control_refuse_draining(api, r) || /* it began meanwhile */
      (result->launch.asks_more && control_refuse_program(r, "submit", "")) ||
      skip_session(api, r, &result->launch))
    return;
  enum launch_asks asks = result->launch.asks;
  const struct daemon_entry *e = sessions_submit(api->sessions, &result->launch, &err);
  if (e != NULL) {
    control_wait_for(api, r, e->id, awaited_by[asks], 0);
  } else {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, err.code == ERR_FULL ? 507 : 503, NULL, "%s", err.text);
  }
}

static void control_on_fork(void *ctx, struct intake_result *result) {
  struct err err = {0};
  if (result->ok && !launch_find_scenario(&result->launch, &err))
    server_problem(result->request, 422, NULL, "%s", err.text);
  else
    control_on_session(ctx, result);
}

static void act_fork(struct about *a, struct server_request *r, struct daemon_entry *e) {
  struct store_ref log;
  entry_ref(e, &log);
  intake_take(&a->api->intake, r, LAUNCH_FORK, &log, control_on_fork);
  about_free(a);
}

static void control_fork(void *ctx, struct server_request *r) {
  if (!control_refuse_draining(ctx, r))
    about_take(about_new(ctx, act_fork), r);
}

static void control_on_looked(void *ctx, struct intake_result *result) {
  (void)ctx;
  if (result->ok)
    server_reply_json(result->request, 200, json_incref(result->launch.answer));
  else
    control_refuse(result);
}

static void control_take_as(struct control *api, struct server_request *r, enum launch_kind kind) {
  if (kind == LAUNCH_LINT || kind == LAUNCH_PLAN) /* they begin nothing */
    intake_take(&api->intake, r, kind, NULL, control_on_looked);
  else if (!control_refuse_draining(api, r))
    intake_take(&api->intake, r, kind, NULL, control_on_session);
}

static void control_take(void *ctx, struct server_request *r) {
  control_take_as(ctx, r, (enum launch_kind)server_what(r));
}

/* --- cancelling, resuming --- */

/* Ends the entry, or answers why not. */
static void control_cancel_one(struct control *api, struct server_request *r,
                               struct daemon_entry *e) {
  const char *id = e->id;
  struct err err = {0};
  struct api_status v;
  if (api_status_of(&v, api->sessions, id, &err)) {
    bool done = strcmp(v.status, "cancelled") == 0;
    bool ended = summary_is_over(v.summary);
    if (ended && !done)
      server_problem(r, 409, NULL, "it has ended already: %s", v.status);
    api_status_deinit(&v);
    if (done)
      control_reply_session(api, r, 200, id);
    if (ended)
      return;
  }
  e->cancelled_by = server_browser(r);
  if (!sessions_cancel(api->sessions, e, &err)) {
    if (err.code == ERR_LOCKED)
      server_problem(r, 409, NULL,
                     "another program is running it, and only that one can cancel it");
    else
      server_problem(r, err.code == ERR_INVALID ? 409 : 500, NULL, "%s", err.text);
  } else if (e->session != NULL && session_paused(e->session)) {
    control_reply_broken(r, e, CANCEL);
  } else {
    control_wait_for(api, r, id, CANCEL, 0);
  }
}

static void act_cancel(struct about *a, struct server_request *r, struct daemon_entry *e) {
  control_cancel_one(a->api, r, e);
  about_free(a);
}

static void control_cancel(void *ctx, struct server_request *r) {
  about_take(about_new(ctx, act_cancel), r);
}

static void control_on_ask_gone(void *ctx) {
  struct about *a = ctx;
  a->request = NULL;
}

static void control_on_asked(struct entry_ask *ask, struct daemon_entry *e, const struct err *err) {
  struct about *a = (struct about *)((char *)ask - offsetof(struct about, ask));
  struct server_request *r = a->request;
  if (r != NULL && err != NULL) {
    bool conflict = err->code == ERR_LOCKED || err->code == ERR_INVALID;
    unsigned status = conflict ? 409 : 500;
    if (err->code == ERR_LIMIT)
      status = 503;
    if (err->code == ERR_USAGE)
      status = 422;
    server_problem(r, status, NULL, "%s", err->text);
  } else if (r != NULL && ask->answers)
    control_wait_for(a->api, r, e->id, ask->said.core.says == SAYS_STEER ? SAID : ANSWER,
                     ask->question);
  else if (r != NULL && e->state == ENTRY_RESUMING)
    control_wait_for(a->api, r, e->id, RESUME, 0);
  else if (r != NULL)
    control_reply_session(a->api, r, 202, e->id);
  about_free(a);
}

static void about_ask(struct about *a, struct server_request *r) {
  a->ask.done = control_on_asked;
  a->request = r;
  server_keep(r, control_on_ask_gone, a);
}

static void act_resume(struct about *a, struct server_request *r, struct daemon_entry *e) {
  bool refused = str_among(str_from(e->summary.stop_reason), SESSION_STOPS_TO_ACCEPT) &&
                 control_refuse_program(r, "resume", e->id);
  bool may = e->state == ENTRY_OVER || e->state == ENTRY_AFTER || entry_is_elsewhere(e);
  bool runs = !refused && !may;
  if (runs && summary_waits_for_login(&e->summary)) { /* somebody has logged in */
    call_queue_hurry(&a->api->sessions->host->gate, str_from(e->summary.wait->provider));
    control_reply_session(a->api, r, 202, e->id);
    about_free(a);
    return;
  }
  if (runs)
    server_problem(r, 409, NULL, "it is %s: there is nothing to resume", entry_status(e));
  if (runs || refused) {
    about_free(a);
    return;
  }
  about_ask(a, r);
  sessions_resume(a->api->sessions, e, &a->ask);
}

/* Takes over the steer. */
static void resume_with(struct control *api, struct server_request *r, struct resume_options *st) {
  struct about *a = about_new(api, act_resume);
  a->settles = true;
  a->ask.steer = *st;
  a->ask.steer.browser = server_browser(r);
  *st = (struct resume_options){0};
  about_take(a, r);
}

static void control_on_steer(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  if (!result->ok)
    control_refuse(result);
  else if (!control_refuse_draining(api, result->request))
    resume_with(api, result->request, &result->launch.steer);
}

static void control_resume(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct resume_options nothing = {0};
  if (control_refuse_draining(api, r))
    return;
  if (server_body(r).n == 0)
    resume_with(api, r, &nothing);
  else if (!control_refuse_program(r, "resume", server_part(r)))
    intake_take(&api->intake, r, LAUNCH_STEER, NULL, control_on_steer);
}

/* --- people --- */

static void act_answer(struct about *a, struct server_request *r, struct daemon_entry *e) {
  about_ask(a, r);
  sessions_answer(a->api->sessions, e, &a->ask);
}

/* Takes over the answer. */
static void answer_with(struct control *api, struct server_request *r, struct parsed_answer *said) {
  struct about *a = about_new(api, act_answer);
  a->settles = true;
  a->ask.answers = true;
  a->ask.said = *said;
  resume_options_set_browser(a->ask.said.by, server_browser(r));
  *said = (struct parsed_answer){0};
  about_take(a, r);
}

static void control_on_answer(void *ctx, struct intake_result *result) {
  struct control *api = ctx;
  if (!result->ok)
    control_refuse(result);
  else if (!control_refuse_draining(api, result->request))
    answer_with(api, result->request, &result->launch.said);
}

static const struct {
  const char *command;
  enum launch_kind kind;
} answers[] = {[SAYS_TEXT] = {"answer", LAUNCH_ANSWER},
               [SAYS_APPROVE] = {"approve", LAUNCH_APPROVE},
               [SAYS_REJECT] = {"reject", LAUNCH_REJECT},
               [SAYS_STEER] = {"steer", LAUNCH_SAY}};

static void control_answer_as(struct control *api, struct server_request *r,
                              enum answer_says says) {
  AUTO(parsed_answer_deinit) struct parsed_answer said = {0};
  struct err err = {0};
  if (control_refuse_draining(api, r) ||
      control_refuse_program(r, answers[says].command, server_part(r)))
    return;
  if (server_body(r).n > 0) {
    intake_take(&api->intake, r, answers[says].kind, NULL, control_on_answer);
    return;
  }
  if (parsed_answer_parse(&said, NULL, says, &err))
    answer_with(api, r, &said);
  else
    server_problem(r, 400, NULL, "%s", err.text);
}

static void control_take_answer(void *ctx, struct server_request *r) {
  control_answer_as(ctx, r, (enum answer_says)server_what(r));
}

/* --- one session --- */

static void get_session(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  char id[STORE_ID_BYTES];
  if (!control_find(api, r, id))
    return;
  if (api_status_is_in_memory(api->sessions, id))
    control_reply_session(api, r, 200, id);
  else
    list_api_take_one(&api->readings, r, api->sessions, id);
}

/* Finds the log of the session that the request names. Returns false if it has answered. */
static bool control_log(struct control *api, struct server_request *r, struct store_ref *ref) {
  char id[STORE_ID_BYTES];
  const struct store *store = api->sessions->env->store;
  if (!control_find(api, r, id))
    return false;
  store_ref(store, id, ref);
  if (api_status_is_in_memory(api->sessions, id) || server_is_again(r))
    return true;
  if (api->sessions->shared) {
    read_job_find(&api->readings, r, store);
    return false;
  }
  if (store_is_there(ref))
    return true;
  server_problem(r, 404, NULL, "there is no session %s", id);
  return false;
}

/* --- dismissing --- */

struct dismissal {
  struct store_ref ref;
  char by[LABEL_BY_BYTES], why[LABEL_STRATUM_BYTES];
};

/* Runs in the pool: it reads the log, and writes beside it. */
static void dismiss_work(void *what, struct read_job_answer *answer) {
  struct dismissal *d = what;
  char id[STORE_ID_BYTES];
  store_ref_id(&d->ref, id);
  if (!inbox_dismiss(&d->ref, d->by, d->why, &answer->err)) {
    answer->status = answer->err.code == ERR_NOT_FOUND ? 409 : 503;
    return;
  }
  json_auto_t *told = json_pack("{ss ss}", "session", id, "status", "dismissed");
  json_write(told, &answer->body);
}

/* Reads {"why": TEXT}, or nothing, into `why`. */
static bool dismissal_why(struct str body, char why[LABEL_STRATUM_BYTES]) {
  json_auto_t *said = body.n > 0 ? json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, NULL) : NULL;
  const json_t *text = json_object_get(said, "why");
  print_into(why, LABEL_STRATUM_BYTES, "%s", json_is_string(text) ? json_string_value(text) : "");
  return body.n == 0 || (json_is_object(said) && json_object_size(said) == (text != NULL) &&
                         (text == NULL || json_is_string(text)));
}

static void control_dismiss(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct dismissal d = {0};
  if (control_refuse_program(r, "inbox dismiss", server_part(r)))
    return;
  if (server_body(r).n > LIMIT_STEER_BYTES) {
    server_problem(r, 413, NULL, "a dismissal takes up to %u bytes", LIMIT_STEER_BYTES);
  } else if (!dismissal_why(server_body(r), d.why)) {
    server_problem(r, 422, NULL, "the body must be {\"why\": TEXT}");
  } else if (control_log(api, r, &d.ref)) {
    json_auto_t *by = resume_options_person();
    unsigned browser = server_browser(r);
    print_into(d.by, sizeof d.by, "%s", json_word_at(by, "name"));
    if (browser > 0)
      print_into(d.by, sizeof d.by, "%s, window %u", json_word_at(by, "name"), browser);
    struct dismissal *kept = xmalloc(sizeof *kept);
    *kept = d;
    read_job_take(&api->readings, r, dismiss_work, free, kept);
  }
}

static void control_act(void *ctx, struct server_request *r, const char *id, const char *what) {
  (void)id; /* the request's path names it, as on the socket */
  if (strcmp(what, "cancel") == 0)
    control_cancel(ctx, r);
  else if (strcmp(what, "resume") == 0)
    control_resume(ctx, r);
  else if (strcmp(what, "dismiss") == 0)
    control_dismiss(ctx, r);
  else if (strcmp(what, "fork") == 0)
    control_fork(ctx, r);
  else if (strcmp(what, "start") == 0)
    control_take_as(ctx, r, LAUNCH_SESSION);
  else if (strcmp(what, "plan") == 0)
    control_take_as(ctx, r, LAUNCH_PLAN);
  for (size_t i = 0; i < ARRAY_LEN(answers); i++)
    if (answers[i].command != NULL && strcmp(answers[i].command, what) == 0)
      control_answer_as(ctx, r, (enum answer_says)i);
}

/* A route's `what` is what it looks at. */
static void control_look(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct store_ref ref;
  if (control_log(api, r, &ref))
    session_api_take(&api->readings, r, api->view_cache, &ref, (enum session_api)server_what(r));
}

static void control_on_changes(void *ctx, struct server_request *r,
                               const struct session_diff *difference) {
  json_t *told = json_pack("{so sb}", "diff", json_text(difference->diff), "cut", difference->cut);
  (void)ctx;
  if (difference->why != NULL)
    json_object_set_new(told, "error", json_text(str_from(difference->why)));
  server_reply_json(r, 200, told);
}

static void control_get_changes(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct store_ref ref;
  const struct session_diff_ask ask = {.processes = api->sessions->host->processes,
                                       .done = control_on_changes};
  if (control_log(api, r, &ref))
    session_diff_take(&api->readings, &ask, r, &ref);
}

static void control_get_compare(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  const char *a = server_query(r, "a"), *b = server_query(r, "b");
  if (a == NULL || a[0] == '\0' || b == NULL || b[0] == '\0')
    server_problem(r, 400, NULL, "give two sessions: a and b");
  else if (control_store_answers(api, r))
    session_api_compare(&api->readings, r, api->sessions->env->store, a, b);
}

/* --- lists --- */

static bool read_limit(struct server_request *r, size_t *limit) {
  const char *given = server_query(r, "limit");
  long n = 100;
  if (given != NULL && (!str_to_long(str_from(given), &n) || n < 1 || n > LIMIT_API_PAGE_COUNT)) {
    server_problem(r, 400, NULL, "limit must be a number from 1 to %u", LIMIT_API_PAGE_COUNT);
    return false;
  }
  *limit = (size_t)n;
  return true;
}

/* Returns false if it has answered the request. */
static bool read_wanted(struct server_request *r, struct filter *wanted, const char **before) {
  const char *since = server_query(r, "since");
  struct err err = {0};
  *wanted = (struct filter){.statuses = server_query(r, "status"),
                            .workflow = server_query(r, "workflow"),
                            .method = server_query(r, "method"),
                            .provider = server_query(r, "provider")};
  *before = server_query(r, "before");
  if ((since != NULL && !filter_since(since, clock_real_ms(), &wanted->since_ms, &err)) ||
      !filter_check(wanted, &err)) {
    server_problem(r, 400, NULL, "%s", err.text);
    return false;
  }
  if (*before != NULL && strspn(*before, "0123456789abcdef-") != STORE_ID_BYTES - 1) {
    server_problem(r, 400, NULL, "before must be a session's id: `next` of the previous page");
    return false;
  }
  return true;
}

static void list_sessions(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  const char *before;
  struct filter wanted;
  size_t limit;
  if (read_wanted(r, &wanted, &before) && read_limit(r, &limit))
    list_api_take(&api->readings, r, api->sessions, &wanted, limit);
}

static void get_inbox(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  list_api_take_inbox(&api->readings, r, api->sessions);
}

/* --- events --- */

/* Reads which record the client saw last. Returns false if it has answered the request. */
static bool last_seen(struct server_request *r, uint64_t *seq) {
  const char *given = server_header(r, "Last-Event-ID");
  long n = 0;
  if (given == NULL)
    given = server_query(r, "after");
  if (given != NULL && (!str_to_long(str_from(given), &n) || n < 0)) {
    server_problem(r, 400, NULL, "Last-Event-ID must be the number of a record");
    return false;
  }
  *seq = (uint64_t)n;
  return true;
}

static void act_watch(struct about *a, struct server_request *r, struct daemon_entry *e) {
  struct err err = {0};
  struct api_status v;
  bool seen = false;
  if (api_status_of(&v, a->api->sessions, e->id, &err)) {
    bool runs = api_status_is_unfinished(v.summary) && strcmp(v.status, "open") != 0;
    bool over = !entry_is_live(e) && !runs;
    seen = over && a->seq >= v.summary->seq;
    api_status_deinit(&v);
  }
  if (seen) /* this stops an EventSource from reconnecting */
    server_reply(r, 204, NULL, STR(""));
  else
    entry_watch(e, r, a->seq);
  about_free(a);
}

static void watch_session(void *ctx, struct server_request *r) {
  struct about *a = about_new(ctx, act_watch);
  store_reads_nothing(false); /* a feed sends the log itself, by the KiB, as the client takes it */
  if (last_seen(r, &a->seq))
    about_take(a, r);
  else
    about_free(a);
}

static void watch_all(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  const char *last = server_header(r, "Last-Event-ID");
  event_stream_watch(&api->news, r, last != NULL ? last : server_query(r, "after"));
}

/* --- what is counted and told as it happens --- */

static void control_get_audit(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  audit_api_take(&api->readings, r, api->sessions->env->store);
}

static void control_get_metrics(void *ctx, struct server_request *r) {
  const struct control *api = ctx;
  buf_auto_t text = {0};
  metrics_print(&api->metrics, api->sessions, &text);
  server_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", buf_view(&text));
}

static void control_on_record(void *observer, const struct daemon_entry *e,
                              const struct record *record) {
  struct control *api = observer;
  if (record == NULL)
    output_tails_end(&api->tails, e->id, 0);
  else if (record->type == RECORD_CALL_START || record->type == RECORD_CALL_END)
    output_tails_end(&api->tails, e->id, (long)record_number(record, MEMBER_CALL));
  if (record == NULL)
    metrics_forget(&api->metrics, e);
  else
    metrics_record(&api->metrics, e, record);
  if (record != NULL && (record->type == RECORD_TURN_START || record->type == RECORD_JUDGMENT))
    event_stream_add(&api->news, e->id, entry_status(e), e->summary.seq);
  if (record != NULL && api->window != NULL)
    window_changed(api->window, e->id);
}

static void control_on_said(void *observer, const struct daemon_entry *e, long turn, long call,
                            bool thinking, struct str text) {
  struct control *api = observer;
  const struct output_tail *tail = output_tails_add(&api->tails, e->id, turn, call, thinking, text);
  if (api->window != NULL)
    window_said(api->window, e->id, call, thinking, thinking ? tail->thinking.end : tail->text.end,
                text);
}

/* --- the window --- */

/* Closes the window after nobody has looked for a long time. */
static void on_idle(void *ctx) {
  struct control *api = ctx;
  window_free(api->window);
  api->window = NULL;
}

/* Gives the pages the status of waiting sessions: their logs say only that they began. */
static size_t control_live(void *ctx, struct page_live **list) {
  const struct control *api = ctx;
  const struct id_list *all = &api->sessions->all;
  size_t n = 0;
  *list = xcalloc(all->count + 1, sizeof **list);
  for (size_t i = 0; i < all->count; i++) {
    const struct daemon_entry *e = id_list_at(all, i);
    if (e->state == ENTRY_OVER || e->state == ENTRY_FAILED)
      continue;
    struct page_live *live = &(*list)[n++];
    memcpy(live->id, e->id, sizeof live->id);
    print_into(live->status, sizeof live->status, "%s", entry_status(e));
  }
  return n;
}

/* Copies what the session's running calls said last. */
static size_t control_said(void *ctx, const char *id, struct page_said **list) {
  struct control *api = ctx;
  size_t n = 0;
  *list = NULL;
  LIST_EACH(struct output_tail, t, in_tails, &api->tails.all) {
    if (strcmp(t->id, id) != 0)
      continue;
    *list = xrealloc(*list, (n + 1) * sizeof **list);
    (*list)[n++] = (struct page_said){.turn = t->turn,
                                      .call = t->call,
                                      .text = xstrdup(buf_c(&t->text.text)),
                                      .thinking = xstrdup(buf_c(&t->thinking.text)),
                                      .text_end = t->text.end,
                                      .thinking_end = t->thinking.end};
  }
  return n;
}

static json_t *control_day(void *ctx) {
  const struct control *api = ctx;
  const struct generation *now = api->sessions->env->generation;
  return daily_usage_json(&api->sessions->host->day, day_set_of(now->registry));
}

bool control_open_window(struct control *api, const char *address, struct err *err) {
  const struct window_options options = {.loop = api->sessions->host->loop,
                                         .store = api->sessions->env->store,
                                         .view_cache = api->view_cache,
                                         .processes = api->sessions->host->processes,
                                         .address = address,
                                         .origin = api->http_origin,
                                         .any_peer = api->http_any_peer,
                                         .act = control_act,
                                         .live = control_live,
                                         .said = control_said,
                                         .about = provider_status_new,
                                         .about_read = provider_status_read,
                                         .about_drop = provider_status_free,
                                         .day = control_day,
                                         .idle = address == NULL ? on_idle : NULL,
                                         .ctx = api};
  if (api->window == NULL)
    api->window = window_new(&options, err);
  return api->window != NULL;
}

static bool web_body(struct server_request *r, bool *read_only, bool *revoke) {
  struct str body = server_body(r);
  json_error_t why;
  if (body.n == 0)
    return true;
  json_auto_t *given = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, &why);
  bool ok = json_is_object(given);
  JSON_MEMBERS(given, key, value) {
    struct str name = str_from(key);
    ok = ok && json_is_boolean(value) && (str_eq_c(name, "read_only") || str_eq_c(name, "revoke"));
  }
  *read_only = json_is_true(json_at(given, "read_only"));
  *revoke = json_is_true(json_at(given, "revoke"));
  if (!ok)
    server_problem(r, 422, NULL,
                   "the body is an object with read_only and revoke, each true or false");
  return ok;
}

static void control_post_code(void *ctx, struct server_request *r) {
  struct control *api = ctx;
  struct err err = {0};
  char url[WINDOW_URL_BYTES], code[WINDOW_CODE_BYTES];
  bool read_only = false, revoke = false;
  if (!web_body(r, &read_only, &revoke) || (!read_only && control_refuse_program(r, "web", "")))
    return;
  if (revoke) {
    if (api->window != NULL)
      window_revoke(api->window);
    server_reply_json(r, 200, json_pack("{sb}", "revoked", 1));
    return;
  }
  if (!control_open_window(api, NULL, &err)) {
    server_problem(r, 503, NULL, "%s", err.text);
    return;
  }
  window_url(api->window, url);
  window_code(api->window, read_only, code);
  server_reply_json(
      r, 201,
      json_pack("{ss ss si}", "url", url, "code", code, "seconds", LIMIT_WINDOW_CODE_MS / 1000));
}

/* --- the rest --- */

static void get_health(void *ctx, struct server_request *r) {
  server_reply_json(r, 200, provider_status_daemon(ctx));
}

static void get_description(void *ctx, struct server_request *r) {
  const struct resource *file = resource_find("schemas/api.json");
  (void)ctx;
  server_reply(r, 200, "application/json", (struct str){file->p, file->n});
}

static const char *const list_query[] = {"status", "since", "workflow", "method", "provider",
                                         "text",   "sort",  "before",   "limit",  NULL};
static const char *const watch_query[] = {"after", NULL};
static const char *const compare_query[] = {"a", "b", NULL};

const struct server_route control_routes[] = {
    {"POST", "/v1/sessions", "submit a session", TAKES_JSON, NULL, control_take, LAUNCH_SESSION},
    {"GET", "/v1/sessions",
     "list sessions, newest first (status, since, workflow, method, provider, text, sort, before, "
     "limit)",
     TAKES_NOTHING, list_query, list_sessions, 0},
    {"GET", "/v1/sessions/{id}", "one session", TAKES_NOTHING, NULL, get_session, 0},
    {"GET", "/v1/sessions/{id}/events", "its records as server-sent events (Last-Event-ID, after)",
     TAKES_NOTHING, watch_query, watch_session, 0},
    {"GET", "/v1/events", "changes of all sessions as server-sent events (Last-Event-ID, after)",
     TAKES_NOTHING, watch_query, watch_all, 0},
    {"GET", "/v1/sessions/{id}/view", "its view, as segue show --as view prints it", TAKES_NOTHING,
     NULL, control_look, SESSION_API_VIEW},
    {"GET", "/v1/sessions/{id}/turns", "its turns (after, limit)", TAKES_NOTHING,
     session_api_page_query, control_look, SESSION_API_TURNS},
    {"GET", "/v1/sessions/{id}/turns/{turn}", "a judgment in full", TAKES_NOTHING, NULL,
     control_look, SESSION_API_TURN},
    {"GET", "/v1/sessions/{id}/calls/{call}", "all records of a call", TAKES_NOTHING, NULL,
     control_look, SESSION_API_CALL},
    {"GET", "/v1/sessions/{id}/text", "a text of a record (ref, offset, limit)", TAKES_NOTHING,
     session_api_text_query, control_look, SESSION_API_TEXT},
    {"GET", "/v1/sessions/{id}/records", "its records (after, limit)", TAKES_NOTHING,
     session_api_page_query, control_look, SESSION_API_RECORDS},
    {"GET", "/v1/sessions/{id}/find", "find a text in it (text)", TAKES_NOTHING,
     session_api_find_query, control_look, SESSION_API_FIND},
    {"GET", "/v1/sessions/{id}/changes", "the lines it changed in its files", TAKES_NOTHING, NULL,
     control_get_changes, 0},
    {"GET", "/v1/sessions/{id}/integrity", "verify its log", TAKES_NOTHING, NULL, control_look,
     SESSION_API_INTEGRITY},
    {"POST", "/v1/sessions/{id}/cancel", "end it for good", TAKES_NOTHING, NULL, control_cancel, 0},
    {"POST", "/v1/sessions/{id}/resume", "resume a stopped session", TAKES_JSON_OR_NOTHING, NULL,
     control_resume, 0},
    {"POST", "/v1/sessions/{id}/answer", "answer its question", TAKES_JSON, NULL,
     control_take_answer, SAYS_TEXT},
    {"POST", "/v1/sessions/{id}/approve", "approve the movement it wants to run",
     TAKES_JSON_OR_NOTHING, NULL, control_take_answer, SAYS_APPROVE},
    {"POST", "/v1/sessions/{id}/reject", "reject the movement it wants to run",
     TAKES_JSON_OR_NOTHING, NULL, control_take_answer, SAYS_REJECT},
    {"POST", "/v1/sessions/{id}/steer", "say something to it while it works", TAKES_JSON, NULL,
     control_take_answer, SAYS_STEER},
    {"POST", "/v1/sessions/{id}/dismiss", "take it out of the inbox", TAKES_JSON_OR_NOTHING, NULL,
     control_dismiss, 0},
    {"GET", "/v1/inbox", "what waits for persons", TAKES_NOTHING, NULL, get_inbox, 0},
    {"POST", "/v1/sessions/{id}/fork", "fork a session", TAKES_JSON, NULL, control_fork, 0},
    {"POST", "/v1/judge", "judge a text", TAKES_JSON, NULL, control_take, LAUNCH_JUDGE},
    {"POST", "/v1/ask", "ask for a value that matches a schema", TAKES_JSON, NULL, control_take,
     LAUNCH_ASK},
    {"POST", "/v1/lint", "check a workflow", TAKES_JSON, NULL, control_take, LAUNCH_LINT},
    {"POST", "/v1/plan", "plan a session", TAKES_JSON, NULL, control_take, LAUNCH_PLAN},
    {"GET", "/v1/audit",
     "count judgments (by, since, workflow, movement, method, provider, model, worker, outcome, "
     "min_stages, ambiguous)",
     TAKES_NOTHING, audit_api_query, control_get_audit, 0},
    {"GET", "/v1/compare", "two sessions side by side (a, b)", TAKES_NOTHING, compare_query,
     control_get_compare, 0},
    {"GET", "/v1/providers", "providers: calls, places, cooldowns, circuits, errors", TAKES_NOTHING,
     NULL, control_get_providers, 0},
    {"POST", "/v1/web/codes", "open the web page's port and return a code for it",
     TAKES_JSON_OR_NOTHING, NULL, control_post_code, 0},
    {"GET", "/metrics", "counters for Prometheus", TAKES_NOTHING, NULL, control_get_metrics, 0},
    {"GET", "/v1/health", "the daemon's state", TAKES_NOTHING, NULL, get_health, 0},
    {"GET", "/v1/openapi.json", "this interface as OpenAPI 3.1", TAKES_NOTHING, NULL,
     get_description, 0},
    {0},
};

bool control_idle(const struct control *api) {
  return api->intake.jobs.count == 0 && read_jobs_busy(&api->readings) == 0 &&
         api->versions.busy == 0 && (api->window == NULL || window_busy(api->window) == 0);
}

void control_drain(struct control *api) {
  api->draining = true;
  versions_close(&api->versions);
}

void control_close(struct control *api) {
  window_free(api->window);
  api->window = NULL;
  uv_close((uv_handle_t *)&api->news.beat, NULL);
  view_cache_free(api->view_cache);
  api->view_cache = NULL;
}

void control_deinit(struct control *api) {
  metrics_deinit(&api->metrics);
  versions_deinit(&api->versions);
  LIST_EACH(struct output_tail, t, in_tails, &api->tails.all)
    output_tail_drop(&api->tails, t);
  free(api->news.ring);
}

/* Pages that show providers reload themselves. */
static void control_on_version(void *ctx) {
  struct control *api = ctx;
  if (api->window != NULL)
    window_changed(api->window, NULL);
}

void control_init(struct control *api, struct sessions *sessions) {
  *api = (struct control){.sessions = sessions};
  sessions->recorded = control_on_record;
  sessions->said = control_on_said;
  sessions->observer = api;
  read_jobs_init(&api->readings, sessions->host->loop);
  api->versions = (struct client_versions){
      .processes = sessions->host->processes, .told = control_on_version, .ctx = api};
  event_stream_init(&api->news, sessions->host->loop);
  api->view_cache = view_cache_new(sessions->host->loop);
  api->intake = (struct intake){.loop = sessions->host->loop, .env = sessions->env, .ctx = api};
  record_time(clock_real_ms(), api->started);
}
