/* segue rejudge: judges recorded turns again, with another judge or another prompt. */
#include "audit/rejudge.h"
#include "audit/aggregate.h"
#include "audit/kappa.h"
#include "audit/rejudged.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/utf8.h"
#include "cli/audit_filters.h"
#include "cli/cli.h"
#include "cli/gate.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/setup.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "host/session_pool.h"
#include "judge/chain.h"
#include "os/clock.h"
#include "provider/model_family.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the judgments --- */

/* Chooses the recorded turns to judge again: those in some logs that pass an aggregate's filters
 * and needed a judge.
 *
 * All are from one store, sorted by session and turn, without duplicates. */

struct rejudge_turn {
  char session[STORE_ID_BYTES];
  long turn, rule;             /* as recorded; rule 0: none */
  uint32_t workflow, movement; /* names, as are the next ones */
  uint32_t worker, worker_model, judge, judge_model;
  int64_t calls, cost_nano; /* used by its judging, as recorded */
  size_t nth;               /* judgment of its log: a resumed turn may have several */
};

struct rejudge_turns {
  struct aggregate *aggregate; /* applies its filters and names; borrowed */
  struct store source;
  bool has_source;
  struct rejudge_turn *list;
  size_t count, room;
  uint64_t passed_over, unsound; /* judgments that needed no judge; unsound logs */
  int64_t calls, cost_nano;      /* used by all judgings together */
  struct rows rows;
  size_t in_log; /* judgments of the log that is read */
};

static void choose_on_row(void *ctx, const struct row *row) {
  struct rejudge_turns *t = ctx;
  if (row->kind != ROW_JUDGMENT || !aggregate_wants_row(t->aggregate, row))
    return;
  if (!aggregate_needs_judge(row) || strlen(t->rows.session.id) != STORE_ID_BYTES - 1) {
    t->passed_over++;
    return;
  }
  t->list = xgrow(t->list, &t->room, t->count + 1, sizeof *t->list);
  struct rejudge_turn *one = &t->list[t->count++];
  *one = (struct rejudge_turn){.turn = row->turn,
                               .rule = (long)row->rule,
                               .nth = t->in_log++,
                               .workflow = row->workflow,
                               .movement = row->movement,
                               .worker = row->worker,
                               .worker_model = row->worker_model,
                               .judge = row->provider,
                               .judge_model = row->model};
  for (size_t i = 0; i < row->stage_count + row->rest_count; i++) {
    one->calls += row->stages[i].use.calls;
    one->cost_nano += row->stages[i].use.cost_nano;
  }
  memcpy(one->session, t->rows.session.id, sizeof one->session);
}

static void choose_read(void *ctx, const struct store_ref *ref) {
  struct rejudge_turns *t = ctx;
  t->in_log = 0;
  enum rows_log state = rows_read(&t->rows, ref);
  t->unsound += state != ROWS_SOUND && state != ROWS_TORN && state != ROWS_EMPTY;
}

static bool choose_store(struct rejudge_turns *t, const struct store *store, struct err *err) {
  if (t->has_source && strcmp(t->source.where, store->where) != 0)
    return err_set(err, ERR_USAGE,
                   "the logs are in several folders: name logs from one folder at a time");
  t->source = *store;
  t->has_source = true;
  return true;
}

static bool choose_folder(void *ctx, const struct store *store, struct err *err) {
  return choose_store(ctx, store, err) && store_each(store, ctx, choose_read, err);
}

static bool choose_log(void *ctx, const struct store_ref *ref, struct err *err) {
  struct rejudge_turns *t = ctx;
  char id[STORE_ID_BYTES];
  struct store store;
  store_of(ref, &store);
  store_ref_id(ref, id);
  if (id[0] == '\0')
    return err_set(err, ERR_USAGE, "%.200s: a log to be judged again must have its session's name",
                   ref->name);
  if (!choose_store(t, &store, err))
    return false;
  choose_read(t, ref);
  return true;
}

static int turn_order(const void *a, const void *b) {
  const struct rejudge_turn *x = a, *y = b;
  int c = strcmp(x->session, y->session);
  if (c == 0)
    c = (x->turn > y->turn) - (x->turn < y->turn);
  return c != 0 ? c : (x->nth > y->nth) - (x->nth < y->nth);
}

/* Adds a turn to the list that is kept so far. A turn that was judged again after a resume is
 * judged once, against its last verdict, and its judging is all of that. */
static size_t keep_turn(struct rejudge_turn *list, size_t kept, const struct rejudge_turn *one) {
  struct rejudge_turn *last = kept > 0 ? &list[kept - 1] : NULL;
  bool same = last != NULL && strcmp(last->session, one->session) == 0 && last->turn == one->turn;
  if (same && last->nth == one->nth) /* the session was named twice */
    return kept;
  int64_t calls = same ? last->calls : 0, cost_nano = same ? last->cost_nano : 0;
  kept -= same;
  list[kept] = *one;
  list[kept].calls += calls;
  list[kept].cost_nano += cost_nano;
  return kept + 1;
}

static bool rejudge_choose(struct rejudge_turns *t, const struct cli_args *args, struct err *err) {
  const char *logs = cli_value(args, "logs");
  const struct resolve_id_each each = {choose_folder, choose_log, t};
  t->rows = (struct rows){.names = &t->aggregate->names, .sink = {choose_on_row, NULL}, .ctx = t};
  if (!resolve_id_take_all(args->words, args->word_count, logs, &each, err))
    return false;
  size_t kept = 0;
  if (t->count > 1)
    qsort(t->list, t->count, sizeof *t->list, turn_order);
  for (size_t i = 0; i < t->count; i++)
    kept = keep_turn(t->list, kept, &t->list[i]);
  t->count = kept;
  for (size_t i = 0; i < kept; i++) {
    t->calls += t->list[i].calls;
    t->cost_nano += t->list[i].cost_nano;
  }
  return t->count <= LIMIT_AUDIT_LABEL_COUNT ||
         err_set(err, ERR_USAGE,
                 "these are %zu judgments, but at most %u can be judged again at once: filter",
                 t->count, LIMIT_AUDIT_LABEL_COUNT);
}

/* --- judging them again --- */

/* Judges recorded turns again, several at once, for `segue rejudge`. Each judgment is a session of
 * its own in the store `into`.
 *
 * Turns that already have a verdict in `verdicts` are skipped. Unfinished sessions come first:
 * they are continued, or cancelled if their text is missing or another has judged. After a limit
 * is reached or a signal came, no new session begins; a signal also stops the running ones,
 * otherwise they finish. */

/* Stand in for a rule's number; unreadable: it was tried, and is not tried again. */
enum { REJUDGE_OPEN = -2, REJUDGE_UNREADABLE = REJUDGED_UNDECIDED };

struct rejudging_left { /* a session in `into` */
  char id[STORE_ID_BYTES];
  size_t turn; /* in `of` */
  long repeat;
  bool judged; /* it lacks only its end */
};

enum { REJUDGE_TIMES_MAX = 20, REJUDGE_JOBS = 4, REJUDGE_JOBS_MAX = 64, REJUDGE_NAME_BYTES = 100 };

struct again {
  struct aggregate *aggregate; /* whose filters and names count */
  struct rejudge_turns of;     /* sorted by session */
  struct setup setup;
  struct gate gate;
  json_t *stages, *panel;
  char name[REJUDGE_NAME_BYTES + 1], settings[SHA256_HEX];
  bool json;
  char into[STORE_PATH_BYTES];
  struct rejudge_as as;
  long repeat;
  bool permute;
  size_t concurrency;
  int64_t max_calls, max_cost_nano; /* 0: no limit */
  long *verdicts;                   /* `repeat` for each turn */
  size_t done;
  struct rejudging_left *left; /* what an earlier run left unfinished */
  size_t left_count, left_next;
  /* The rest changes while they are judged. */
  struct session_pool several;
  struct watcher watcher;
  struct list jobs, cases;
  struct rejudge_reading *reading; /* the log that is being read, or NULL */
  long *numbers;                   /* its turns that are to be judged, owned */
  size_t *places;                  /* and where each stands in `of`, owned */
  size_t next;                     /* first turn whose log was not opened yet */
  int64_t calls, cost_nano;
  int64_t waits_until_ms; /* real time; end of the last wait reported */
  uint64_t unsound;       /* turns of logs that could not be read */
  bool bounded, stopped, closing;
  struct err failed;
};

struct pending { /* a case that has not been judged as often as wanted */
  struct list_node in_cases;
  struct rejudge_case *made;
  size_t turn;
  size_t users; /* jobs that use it */
  long next;    /* repeat, from 1 */
};

struct rejudge_job {
  struct list_node in_jobs;
  struct again *owner;
  struct pending *pending; /* NULL: it was left unfinished */
  struct session *session;
  size_t turn;
  long repeat;
  bool finished, judged, asked; /* asked: a judge's call of it has ended */
  bool untold;                  /* its verdict is known, or does not count */
  long rule;
  char method[32], why[256];
};

static long *rejudging_verdict(const struct again *a, size_t turn, long repeat) {
  return &a->verdicts[turn * (size_t)a->repeat + (size_t)(repeat - 1)];
}

/* --- telling --- */

static void again_put_rule(struct buf *out, long rule) {
  if (rule >= 0)
    cli_put_rule(out, rule);
  else
    buf_puts(out, "no verdict");
}

static json_t *again_rule_json(long rule) {
  return rule > 0 ? json_integer(rule) : json_null();
}

/* method NULL: the turn could not be judged; why then says why not. */
static void again_told(const struct again *a, size_t i, long repeat, const char *method,
                       const char *why) {
  const struct rejudge_turn *t = &a->of.list[i];
  long rule = *rejudging_verdict(a, i, repeat);
  struct str movement = dictionary_text(&a->aggregate->names, t->movement);
  if (a->json) {
    json_t *told =
        json_pack("{ss sI so sI so so sb ss?}", "session", t->session, "turn", (json_int_t)t->turn,
                  "movement", json_text(movement), "repeat", (json_int_t)repeat, "recorded",
                  again_rule_json(t->rule), "rule", again_rule_json(rule), "readable", rule >= 0,
                  "method", method && method[0] ? method : NULL);
    if (why[0] != '\0')
      json_object_set_new(told, "why", json_io_string(why));
    json_io_put(told);
    fflush(stdout); /* whoever reads along has it before the next question */
    return;
  }
  if (rule == t->rule)
    return;
  buf_auto_t line = buf_of("%s  turn %ld, ", t->session, t->turn);
  (void)cli_fit(&line, movement, 30);
  buf_puts(&line, ": recorded ");
  again_put_rule(&line, t->rule);
  buf_puts(&line, "; now ");
  again_put_rule(&line, rule);
  if (method != NULL && method[0] != '\0')
    buf_printf(&line, " by %s", method);
  if (why[0] != '\0') {
    buf_puts(&line, ": ");
    (void)cli_fit(&line, str_from(why), 100);
  }
  puts(buf_c(&line));
}

/* --- what its records tell --- */

static void rejudge_why(struct rejudge_job *job, struct str why) {
  print_into(job->why, sizeof job->why, "%.*s", (int)(why.n < 250 ? why.n : 250), why.p);
}

static void rejudge_on_record(void *ctx, const struct record *record, struct str line) {
  struct rejudge_job *job = ctx;
  (void)line;
  if (record->type == RECORD_CALL_END) {
    struct again *a = job->owner;
    json_auto_t *json = record_json(record);
    const json_t *cost = json_at(json_at(json, "usage"), "cost_usd");
    if (record_number(record, MEMBER_CALL) > 1) /* the first is the work, already done */
      job->asked = true, a->calls++;
    if (json_number_value(cost) > 0)
      a->cost_nano += (int64_t)(json_number_value(cost) * 1e9 + 0.5);
    /* A person would take such a wait for a hang; many at once are reported as one. */
    int64_t ms = record_number(record, MEMBER_RETRY_IN_MS), now_ms = clock_real_ms();
    const json_t *message = json_at(record_tree(record, MEMBER_ERROR), "message");
    if (ms >= LIMIT_LONG_WAIT_MS && now_ms + ms > job->owner->waits_until_ms + LIMIT_LONG_WAIT_MS) {
      job->owner->waits_until_ms = now_ms + ms;
      cli_say(stderr,
              "segue rejudge: waiting %lld s: %s (Ctrl-C stops; run the same command again to "
              "continue)\n",
              (long long)(ms / 1000),
              json_is_string(message) ? json_string_value(message) : "no reason given");
    }
  } else if (record->type == RECORD_JUDGMENT) {
    const char *method = record_text_c(record, MEMBER_METHOD);
    job->judged = true;
    job->rule = (long)record_number(record, MEMBER_RULE);
    print_into(job->method, sizeof job->method, "%s", method ? method : "");
    if (!chain_was_decided(record_tree(record, MEMBER_STAGES))) {
      job->rule = REJUDGE_UNREADABLE;
      rejudge_why(job, record_text(record, MEMBER_REASON));
    }
  } else if (record->type == RECORD_SESSION_STOP && !job->judged) {
    rejudge_why(job, record_text(record, MEMBER_MESSAGE));
  }
}

static void rejudge_on_trouble(void *ctx, const char *message) {
  (void)ctx;
  cli_say(stderr, "segue rejudge: %s\n", message);
}

static void rejudge_on_finished(void *ctx, struct session *s) {
  struct rejudge_job *job = ctx;
  (void)s;
  job->finished = true;
  session_pool_wake(&job->owner->several);
}

/* --- cases --- */

static void pending_drop(struct again *a, struct pending *p) {
  if (p->in_cases.list != NULL)
    list_remove(&a->cases, &p->in_cases);
  if (p->users > 0)
    return;
  rejudge_case_free(p->made);
  free(p);
}

/* Returns the number of the next time that this turn is to be judged, 0 if it is done. */
static long pending_next(const struct again *a, struct pending *p) {
  while (p->next <= a->repeat && *rejudging_verdict(a, p->turn, p->next) != REJUDGE_OPEN)
    p->next++;
  return p->next <= a->repeat ? p->next++ : 0;
}

static bool has_open(const struct again *a, size_t turn) {
  for (long repeat = 1; repeat <= a->repeat; repeat++)
    if (*rejudging_verdict(a, turn, repeat) == REJUDGE_OPEN)
      return true;
  return false;
}

static void close_reading(struct again *a) {
  rejudge_close(a->reading);
  free(a->numbers);
  free(a->places);
  a->reading = NULL;
  a->numbers = NULL;
  a->places = NULL;
}

static void say_unsound(struct again *a, const char *session, struct err *err) {
  a->unsound++;
  err_wrap(err, "%.40s", session);
  (void)cli_fail("rejudge", err);
}

/* Opens the next log with turns that are to be judged. Returns false if there is none. */
static bool open_next_log(struct again *a) {
  while (a->next < a->of.count) {
    struct store_ref ref;
    struct err err = {0};
    const char *session = a->of.list[a->next].session;
    size_t end = a->next, n = 0;
    while (end < a->of.count && strcmp(a->of.list[end].session, session) == 0)
      end++;
    a->numbers = xcalloc(end - a->next, sizeof *a->numbers);
    a->places = xcalloc(end - a->next, sizeof *a->places);
    for (; a->next < end; a->next++)
      if (has_open(a, a->next)) {
        a->numbers[n] = a->of.list[a->next].turn;
        a->places[n++] = a->next;
      }
    store_ref(&a->of.source, session, &ref);
    if (n > 0)
      a->reading = rejudge_open(&ref, a->numbers, n, &a->as, &err);
    if (a->reading != NULL)
      return true;
    if (n > 0)
      say_unsound(a, session, &err);
    close_reading(a);
  }
  return false;
}

/* Reads the next turn that is to be judged, if its log has one more. Returns false if there is no
 * further log. */
static bool read_next_case(struct again *a) {
  struct rejudge_case *c;
  struct err err = {0};
  if (a->reading == NULL && !open_next_log(a))
    return false;
  if (!rejudge_next(a->reading, &c, &err))
    say_unsound(a, a->of.list[a->places[0]].session, &err);
  if (c == NULL) {
    close_reading(a);
    return true;
  }
  struct pending *p = xcalloc(1, sizeof *p);
  *p = (struct pending){.made = c, .next = 1, .turn = a->places[c->index]};
  list_push_back(&a->cases, &p->in_cases);
  return true;
}

/* --- jobs --- */

static json_t *job_config(const struct again *a, const struct pending *p, long repeat) {
  const struct rejudge_turn *turn = &a->of.list[p->turn];
  json_t *config = json_clone(a->setup.config);
  json_t *again =
      json_pack("{ss sI ss sI ss}", "session", turn->session, "turn", (json_int_t)turn->turn,
                "name", a->name, "repeat", (json_int_t)repeat, "settings", a->settings);
  if (a->permute && repeat > 1)
    json_object_set_new(again, "rotation", json_integer(repeat - 1));
  json_object_set_new(config, "rejudges", again);
  return config;
}

/* Returns true if the judges are there and can do what is asked of them. */
static bool can_judge(struct again *a, struct workflow *workflow) {
  struct preflight preflight = setup_preflight_of(&a->setup);
  preflight.workflow = workflow;
  preflight.looks = preflight.answered = true;
  return preflight_passes(&preflight, &a->failed);
}

static bool rejudge_start(struct again *a, struct pending *p, long repeat) {
  const struct setup *setup = &a->setup;
  if (!can_judge(a, p->made->core.workflow))
    return false;
  struct rejudge_job *job = xcalloc(1, sizeof *job);
  json_auto_t *config = job_config(a, p, repeat);
  AUTO(call_result_deinit) struct call_result answer = {0};
  const struct session_params params = {.setup = setup_session(setup),
                                        .workflow = p->made->core.workflow,
                                        .task = STR(""),
                                        .config = config,
                                        .parent = rejudge_parent(p->made)};
  *job = (struct rejudge_job){.owner = a, .pending = p, .turn = p->turn, .repeat = repeat};
  job->session = host_start(&a->several.solo.host, &params, &a->watcher, job, &a->failed);
  if (job->session == NULL) {
    free(job);
    return false;
  }
  p->users++;
  list_push_back(&a->jobs, &job->in_jobs);
  rejudge_answer(p->made, &answer);
  host_answer_with(job->session, &answer);
  return true;
}

/* --- sessions that were left --- */

static bool left_choose(void *ctx, const json_t *config, struct session_setup *setup,
                        struct err *err) {
  (void)config;
  (void)err;
  *setup = setup_session(&((const struct again *)ctx)->setup);
  return true;
}

/* Returns true if the text that is judged is in the log. */
static bool has_its_text(const struct core *core) {
  for (const struct turn *turn = core->turns; turn != NULL; turn = turn->next) {
    const struct call *call = turn_execute_call(turn);
    if (call != NULL && call->state == CALL_DONE)
      return true;
  }
  return false;
}

/* Lets a session that was left go on, or cancels it. Returns false if it cannot go on: a->failed
 * says why. */
static bool left_go(struct again *a, struct rejudge_job *job, const struct rejudging_left *left) {
  const struct core *core = session_core(job->session);
  bool wanted = *rejudging_verdict(a, left->turn, left->repeat) == REJUDGE_OPEN;
  job->untold = left->judged || !wanted || !has_its_text(core);
  if (job->untold && !left->judged) {
    host_cancel(job->session, "its turn is judged again in another session");
    return true;
  }
  if (!can_judge(a, core->workflow) ||
      !host_go(job->session, left_choose, a, "rejudge", NULL, &a->failed))
    return false;
  if (wanted)
    *rejudging_verdict(a, left->turn, left->repeat) = REJUDGE_UNREADABLE; /* until it is over */
  return true;
}

/* Takes up the next session that was left. One that another process has just taken, or that is
 * damaged, stays. */
static void left_start(struct again *a, const struct rejudging_left *left) {
  struct rejudge_job *job = xcalloc(1, sizeof *job);
  struct store into;
  struct store_ref ref;
  struct err err = {0};
  *job = (struct rejudge_job){.owner = a, .turn = left->turn, .repeat = left->repeat};
  store_at(&into, a->into);
  store_ref(&into, left->id, &ref);
  job->session = host_open(&a->several.solo.host, &ref, &a->watcher, job, &err);
  bool goes = job->session != NULL && session_core(job->session)->status != SESSION_ENDED;
  if (job->session == NULL && err.code != ERR_LOCKED) {
    err_wrap(&err, "%.40s", left->id);
    (void)cli_fail("rejudge", &err);
  }
  if (goes && !left_go(a, job, left)) {
    goes = false;
    a->closing = true;
  }
  if (goes) {
    list_push_back(&a->jobs, &job->in_jobs);
    return;
  }
  session_free(job->session);
  free(job);
}

/* Returns false once a bound is met; what runs may still end. */
static bool within_bounds(struct again *a) {
  int64_t calls = a->calls;
  /* Each that runs makes a call at the least, besides those that have ended. */
  LIST_EACH(struct rejudge_job, job, in_jobs, &a->jobs)
    calls += !job->asked;
  bool met = (a->max_calls > 0 && calls >= a->max_calls) ||
             (a->max_cost_nano > 0 && a->cost_nano >= a->max_cost_nano);
  a->bounded |= met;
  return !met;
}

static void rejudge_start_more(struct again *a) {
  while (a->left_next < a->left_count && a->jobs.count < a->concurrency && !a->closing) {
    if (within_bounds(a))
      left_start(a, &a->left[a->left_next++]);
    else
      a->closing = true;
  }
  while (a->jobs.count < a->concurrency && !a->closing) {
    struct pending *p = LIST_FIRST(struct pending, in_cases, &a->cases);
    if (p == NULL) {
      a->closing = !read_next_case(a);
      continue;
    }
    long repeat = pending_next(a, p);
    if (repeat == 0) {
      pending_drop(a, p);
      continue;
    }
    if (!within_bounds(a) || !rejudge_start(a, p, repeat))
      a->closing = true;
  }
}

static void rejudge_take(struct again *a, struct rejudge_job *job) {
  const struct err *broken = session_broken(job->session);
  struct pending *p = job->pending;
  if (broken != NULL && a->failed.code == ERR_NONE) {
    a->failed = *broken;
    a->closing = true;
  }
  list_remove(&a->jobs, &job->in_jobs);
  if (!job->untold) {
    bool over = broken == NULL && !(a->stopped && !job->judged);
    long *verdict = rejudging_verdict(a, job->turn, job->repeat);
    *verdict = over ? REJUDGE_UNREADABLE : REJUDGE_OPEN;
    if (job->judged)
      *verdict = job->rule;
    if (over)
      again_told(a, job->turn, job->repeat, job->judged ? job->method : NULL, job->why);
  }
  session_free(job->session);
  free(job);
  if (p != NULL && --p->users == 0 && p->in_cases.list == NULL)
    pending_drop(a, p);
}

static void rejudge_on_turn(void *ctx) {
  struct again *a = ctx;
  LIST_EACH(struct rejudge_job, job, in_jobs, &a->jobs) {
    if (job->finished)
      rejudge_take(a, job);
  }
  rejudge_start_more(a);
  if (a->jobs.count == 0 && a->closing)
    session_pool_close(&a->several);
}

static void rejudge_on_stop(void *ctx, const char *reason, const char *message, bool cancel) {
  struct again *a = ctx;
  a->stopped = a->closing = true;
  LIST_EACH(struct rejudge_job, job, in_jobs, &a->jobs) {
    if (!job->finished)
      session_pool_end(job->session, reason, message, cancel);
  }
}

/* Returns false if it could not continue; what was already judged stays. */
static bool rejudging_run(struct again *a, struct err *err) {
  assert(a->repeat > 0);
  assert(a->concurrency > 0);
  a->watcher = (struct watcher){
      .record = rejudge_on_record, .trouble = rejudge_on_trouble, .finished = rejudge_on_finished};
  if (!session_pool_init(&a->several, a->into, a->setup.registry, a->concurrency == 1, err))
    return false;
  a->several.ctx = a;
  a->several.turn = rejudge_on_turn;
  a->several.stop = rejudge_on_stop;
  (void)session_pool_run(&a->several);
  LIST_EACH(struct pending, p, in_cases, &a->cases)
    pending_drop(a, p);
  close_reading(a);
  session_pool_deinit(&a->several);
  if (a->failed.code != ERR_NONE)
    *err = a->failed;
  return a->failed.code == ERR_NONE;
}

/* --- the command --- */

/* --- how --- */

static bool again_panel(struct again *a, const struct cli_args *args, struct err *err) {
  const char *list = cli_value(args, "panel");
  long agree = 0;
  size_t i;
  const json_t *word;
  if (list == NULL)
    return cli_value(args, "agree") == NULL || err_set(err, ERR_USAGE, "--agree needs --panel");
  a->panel = cli_list(list);
  json_array_foreach(a->panel, i, word) {
    struct str name = json_view(word);
    if (registry_find(a->setup.registry, name) == NULL) {
      (void)registry_unknown(a->setup.registry, name, err);
      return err_wrap(err, "--panel");
    }
  }
  if (i < 2 || i > LIMIT_PANEL_COUNT)
    return err_set(err, ERR_USAGE, "--panel: write two to %d judges, separated by commas",
                   (int)LIMIT_PANEL_COUNT);
  if (a->as.provider != NULL)
    return err_set(err, ERR_USAGE, "--panel and --provider cannot be combined");
  if (!cli_number(args, "agree", 1, (long)i, &agree, err))
    return false;
  a->as.agree = (int)agree;
  return true;
}

static bool again_bounds(struct again *a, const struct cli_args *args, struct err *err) {
  const char *cost = cli_value(args, "max-cost");
  long calls = 0, jobs = REJUDGE_JOBS, repeat = 1;
  char *end = NULL;
  double usd = cost ? strtod(cost, &end) : 0;
  if (!cli_number(args, "max-calls", 1, 100000000, &calls, err) ||
      !cli_number(args, "concurrency", 1, REJUDGE_JOBS_MAX, &jobs, err) ||
      !cli_number(args, "repeat", 1, REJUDGE_TIMES_MAX, &repeat, err))
    return false;
  if (cost != NULL && (*end != '\0' || end == cost || !(usd > 0 && usd <= LIMIT_COST_USD)))
    return err_set(err, ERR_USAGE, "--max-cost %.40s: write US dollars, such as 2.50", cost);
  if (cli_flag(args, "permute") && repeat < 2)
    return err_set(err, ERR_USAGE, "--permute needs --repeat 2 or more");
  a->max_calls = calls;
  a->max_cost_nano = (int64_t)(usd * 1e9);
  a->concurrency = (size_t)jobs;
  a->repeat = repeat;
  a->permute = cli_flag(args, "permute");
  return true;
}

/* Reads which judge is used (not which agent): --provider, --model and -O. */
static bool again_judge(struct again *a, const struct cli_args *args, struct err *err) {
  const char *language = cli_value(args, "language"), *prompts = cli_value(args, "prompts");
  const char *provider = cli_value(args, "provider");
  long reasks = -1;
  if (provider != NULL && (cli_values(args, "provider", 1) != NULL || strchr(provider, '=')))
    return err_set(err, ERR_USAGE, "--provider: name one judge; several vote with --panel");
  if (language && strcmp(language, "en") != 0 && strcmp(language, "ja") != 0)
    return err_set(err, ERR_USAGE, "--language must be en or ja");
  if (prompts != NULL && !file_is_folder(prompts))
    return err_set(err, ERR_USAGE, "--prompts %.200s is not a folder", prompts);
  if (prompts != NULL && !config_templates(&a->setup.user, prompts, err))
    return false;
  if (prompts != NULL && a->setup.user.templates == NULL)
    return err_set(err, ERR_USAGE, "--prompts %.200s has no template such as en/judge_ai.md",
                   prompts);
  if (!cli_number(args, "max-reasks", 0, LIMIT_REASK_COUNT, &reasks, err))
    return false;
  if (a->setup.user.templates != NULL)
    json_object_set(a->setup.config, "templates", a->setup.user.templates);
  a->as = (struct rejudge_as){.provider = provider,
                              .model = cli_value(args, "model"),
                              .language = language,
                              .options = json_object_get(a->setup.config, "options"),
                              .max_reasks = (int)reasks};
  if (provider != NULL && a->as.model == NULL && a->setup.user.provider != NULL &&
      strcmp(provider, a->setup.user.provider) == 0)
    a->as.model = a->setup.user.model;
  json_object_del(a->setup.config, "provider");
  json_object_del(a->setup.config, "model");
  if (!again_panel(a, args, err) || !setup_stages(cli_value(args, "stages"), &a->stages, err))
    return false;
  a->as.panel = a->panel;
  a->as.stages = a->stages;
  return true;
}

/* Names the run: "ollama/tiny, ai_judge", or "as recorded" if nothing differs. */
static void again_default_name(const struct again *a, struct buf *out) {
  const struct rejudge_as *as = &a->as;
  if (as->provider != NULL)
    buf_puts(out, as->provider);
  JSON_EACH(as->panel, i, word)
    buf_printf(out, "%s%s", i > 0 ? "+" : "", json_string_value(word));
  if (out->n == 0)
    buf_puts(out, "as recorded");
  if (as->model != NULL)
    buf_printf(out, "/%s", as->model);
  JSON_EACH(as->stages, i, word)
    buf_printf(out, "%s%s", i > 0 ? "+" : ", ", json_string_value(word));
  if (as->language != NULL)
    buf_printf(out, ", %s", as->language);
  if (a->permute)
    buf_puts(out, ", permuted");
}

static bool again_name(struct again *a, const char *given, struct err *err) {
  const struct rejudge_as *as = &a->as;
  buf_auto_t name = {.max = REJUDGE_NAME_BYTES}, text = {0};
  if (given != NULL)
    buf_puts(&name, given);
  else
    again_default_name(a, &name);
  bool ok = name.n > 0 && !name.cut && utf8_valid(name.p, name.n);
  if (ok)
    memcpy(a->name, name.p, name.n + 1);
  if (!ok)
    return err_set(err, ERR_USAGE, "--as: write a name of 1 to %d bytes in UTF-8",
                   REJUDGE_NAME_BYTES);
  json_t *all =
      json_pack("{ss? ss? ss? sO? sO? sO? sO? sO? si si sb}", "provider", as->provider, "model",
                as->model, "language", as->language, "stages", as->stages, "panel", as->panel,
                "options", as->options, "templates", json_object_get(a->setup.config, "templates"),
                "scenario", json_object_get(json_object_get(a->setup.config, "scenario"), "sha256"),
                "agree", as->agree, "max_reasks", as->max_reasks, "permute", a->permute);
  json_write(all, &text);
  json_decref(all);
  sha256_hex(text.p, text.n, NULL, 0, a->settings);
  return true;
}

/* --- what is there already --- */

/* Adds a session that was left unfinished, if it judges one of these turns. */
static void again_take_left(struct again *a, const struct rejudged_left *left) {
  struct rejudging_left *to = &a->left[a->left_count];
  size_t i = 0;
  while (i < a->of.count &&
         (a->of.list[i].turn != left->turn || strcmp(a->of.list[i].session, left->session) != 0))
    i++;
  if (i == a->of.count || left->repeat < 1 || left->repeat > a->repeat)
    return;
  *to = (struct rejudging_left){.turn = i, .repeat = left->repeat, .judged = left->judged};
  memcpy(to->id, left->id, sizeof to->id);
  a->left_count++;
}

static bool again_resume(struct again *a, struct err *err) {
  AUTO(rejudged_deinit) struct rejudged known = {.names = &a->aggregate->names};
  struct store into;
  uint32_t name = dictionary_add(&a->aggregate->names, str_from(a->name));
  uint32_t settings = dictionary_add(&a->aggregate->names, str_from(a->settings));
  bool ok = rejudged_store(&a->of.source, &into, err) && rejudged_read(&known, &into, err);
  if (ok)
    memcpy(a->into, into.where, sizeof a->into);
  for (size_t i = 0; ok && i < known.count; i++)
    if (known.list[i].name == name && known.list[i].settings != settings)
      ok = err_set(err, ERR_USAGE,
                   "\"%s\" was judged differently before (judge, prompt or order): use another "
                   "name with --as",
                   a->name);
  a->left = xcalloc(known.left_count + 1, sizeof *a->left);
  for (size_t i = 0; ok && i < known.left_count; i++)
    if (known.left[i].name == name && known.left[i].settings == settings)
      again_take_left(a, &known.left[i]);
  for (size_t i = 0; ok && i < a->of.count; i++) {
    const struct rejudge_turn *t = &a->of.list[i];
    for (size_t k = rejudged_find(&known, t->session, t->turn);
         rejudged_is_of(&known, k, t->session, t->turn); k++)
      if (known.list[k].name == name && known.list[k].repeat >= 1 &&
          known.list[k].repeat <= a->repeat) {
        *rejudging_verdict(a, i, known.list[k].repeat) = known.list[k].rule;
        a->done++;
      }
  }
  char shown[STORE_SHOWN_BYTES];
  if (known.unsound > 0)
    fprintf(stderr, "segue rejudge: %llu logs in %s are not intact and do not count\n",
            (unsigned long long)known.unsound, store_shown(into.where, shown));
  return ok;
}

/* --- asking --- */

static size_t again_open(const struct again *a) {
  return a->of.count * (size_t)a->repeat - a->done;
}

static void again_plan(const struct again *a, FILE *out) {
  size_t judges = a->panel != NULL ? json_array_size(a->panel) : 1;
  fprintf(out, "%zu judgment%s", a->of.count, PLURAL(a->of.count));
  if (a->repeat > 1)
    fprintf(out, ", each %ld times", a->repeat);
  if (a->done > 0)
    fprintf(out, ", %zu done before", a->done);
  if (a->left_count > 0)
    fprintf(out, ", %zu unfinished to continue", a->left_count);
  cli_say(out, ": %zu or more calls as \"%s\"; their judging took %lld call%s, $%.4f then",
          again_open(a) * judges, a->name, (long long)a->of.calls, PLURAL(a->of.calls),
          (double)a->of.cost_nano / 1e9);
  if (a->of.passed_over > 0)
    fprintf(out, " (%llu more needed no judge)", (unsigned long long)a->of.passed_over);
  if (a->of.unsound > 0)
    fprintf(out, " (%llu log%s not intact and left out)", (unsigned long long)a->of.unsound,
            a->of.unsound == 1 ? " is" : "s are");
  fputc('\n', out);
}

/* Asks before spending money. */
static bool again_agreed(const struct again *a, const struct cli_args *args, struct err *err) {
  char word[16] = "";
  bool bound = a->max_calls > 0 || a->max_cost_nano > 0;
  if (!a->json || !isatty(STDOUT_FILENO))
    again_plan(a, stderr);
  if (cli_flag(args, "yes") || bound)
    return true;
  if (!isatty(STDIN_FILENO))
    return err_set(
        err, ERR_USAGE,
        "nothing was asked: set a limit with --max-cost USD or --max-calls N, or give --yes");
  fputs("Begin? [y/N] ", stderr);
  bool yes = fgets(word, sizeof word, stdin) != NULL && (word[0] == 'y' || word[0] == 'Y');
  return yes || err_set(err, ERR_USAGE, "nothing was asked");
}

/* --- telling --- */

struct again_sum {
  size_t same, other, unreadable, open, flipped, repeated;
  struct {
    size_t turns, first_rule;
  } family[2]; /* 1: the judge's own worked */
};

/* Returns whether the judge is of the family that did the work. */
static bool is_own_work(const struct again *a, const struct rejudge_turn *t) {
  const struct rejudge_as *as = &a->as;
  const struct name_list *names = &a->aggregate->names;
  struct str judge = dictionary_text(names, t->judge),
             model = dictionary_text(names, t->judge_model);
  if (as->provider != NULL) {
    judge = str_from(as->provider);
    model = str_from(as->model);
  }
  return model_family_is_same(dictionary_text(names, t->worker),
                              dictionary_text(names, t->worker_model), judge, model);
}

static void sum_turn(const struct again *a, size_t i, struct again_sum *sum) {
  const struct rejudge_turn *t = &a->of.list[i];
  const long *verdicts = &a->verdicts[i * (size_t)a->repeat];
  long first = REJUDGE_OPEN;
  size_t readable = 0;
  bool flips = false, own = is_own_work(a, t);
  for (long k = 0; k < a->repeat; k++) {
    sum->same += verdicts[k] == t->rule;
    sum->other += verdicts[k] >= 0 && verdicts[k] != t->rule;
    sum->unreadable += verdicts[k] == REJUDGE_UNREADABLE;
    sum->open += verdicts[k] == REJUDGE_OPEN;
    if (verdicts[k] < 0)
      continue;
    flips |= readable++ > 0 && verdicts[k] != first;
    first = verdicts[k];
    if (a->as.panel != NULL) /* its judges may be of several families */
      continue;
    sum->family[own].turns++;
    sum->family[own].first_rule += verdicts[k] == 1;
  }
  sum->repeated += readable > 1;
  sum->flipped += flips;
}

static json_t *family_json(const struct again_sum *sum, int own) {
  return json_pack("{sI sI}", "verdicts", (json_int_t)sum->family[own].turns, "first_rule",
                   (json_int_t)sum->family[own].first_rule);
}

static void print_family(const struct again_sum *s) {
  static const char *const whose[] = {"of others' work", "of its own family's work"};
  if (s->family[0].turns == 0 || s->family[1].turns == 0)
    return;
  for (int i = 1; i >= 0; i--)
    printf("%s it chose the first rule in %.1f %% of %zu\n", whose[i],
           100.0 * (double)s->family[i].first_rule / (double)s->family[i].turns,
           s->family[i].turns);
}

static void again_put_sum(const struct again *a, const struct again_sum *s) {
  double low, high;
  size_t read = s->same + s->other;
  if (a->of.count == 0) {
    puts("no judgment that needed a judge matches");
    return;
  }
  printf("%zu verdict%s: %zu as recorded", read, PLURAL(read), s->same);
  if (read > 0) {
    double share = (double)s->same / (double)read;
    kappa_wilson(share, (double)read, &low, &high);
    printf(" (%.1f %%, %.1f to %.1f)", 100 * share, 100 * low, 100 * high);
  }
  printf(", %zu other, %zu could not be judged, %zu open; %lld calls, $%.4f\n", s->other,
         s->unreadable, s->open, (long long)a->calls, (double)a->cost_nano / 1e9);
  if (s->repeated > 0)
    printf("%zu of %zu turns flipped between %s\n", s->flipped, s->repeated,
           a->permute ? "orders of the rules" : "repeats");
  print_family(s);
  if (a->stopped)
    puts("interrupted: run the same command again to continue");
  if (a->bounded)
    puts("a limit was reached: run the same command with a higher one to continue");
  printf("segue agree compares them with verdicts and labels; segue verify %s checks them\n",
         resolve_id_shown(a->into));
}

/* Adds a turn to the cases of --junit: it fails where a verdict is another than recorded. */
static void again_case(struct again *a, size_t i) {
  const struct rejudge_turn *t = &a->of.list[i];
  const long *verdicts = &a->verdicts[i * (size_t)a->repeat];
  buf_auto_t name = buf_of("%s turn %ld", t->session, t->turn), why = {0};
  for (long k = 0; k < a->repeat && why.n == 0; k++)
    if (verdicts[k] != t->rule && verdicts[k] != REJUDGE_OPEN)
      buf_printf(&why, "rule %ld was recorded, now %s%ld", t->rule,
                 verdicts[k] == REJUDGE_UNREADABLE ? "no judge could be read, " : "it is rule ",
                 verdicts[k]);
  gate_case(&a->gate, buf_c(&name), why.n > 0 ? buf_c(&why) : NULL);
}

static int again_tell(struct again *a) {
  struct again_sum sum = {0};
  for (size_t i = 0; i < a->of.count; i++) {
    sum_turn(a, i, &sum);
    again_case(a, i);
  }
  gate_check(&a->gate, "all judgments",
             json_pack("{sI sI sI sI sI sI sI sI sf}", "judgments", (json_int_t)a->of.count, "same",
                       (json_int_t)sum.same, "changed", (json_int_t)sum.other, "unreadable",
                       (json_int_t)sum.unreadable, "open", (json_int_t)sum.open, "repeated",
                       (json_int_t)sum.repeated, "flipped", (json_int_t)sum.flipped, "calls",
                       (json_int_t)a->calls, "cost_usd", (double)a->cost_nano / 1e9));
  if (a->json) {
    json_io_put(
        json_pack("{sI sI sI sI sI sI sI so sI sf sb ss ss}", "judgments", (json_int_t)a->of.count,
                  "same", (json_int_t)sum.same, "other", (json_int_t)sum.other, "unreadable",
                  (json_int_t)sum.unreadable, "open", (json_int_t)sum.open, "repeated",
                  (json_int_t)sum.repeated, "flipped", (json_int_t)sum.flipped, "family",
                  json_pack("{so so}", "own", family_json(&sum, 1), "other", family_json(&sum, 0)),
                  "calls", (json_int_t)a->calls, "cost_usd", (double)a->cost_nano / 1e9, "bounded",
                  a->bounded, "name", a->name, "store", a->into));
  } else {
    again_put_sum(a, &sum);
  }
  if (a->stopped)
    return STATUS_INTERRUPTED;
  return sum.unreadable + sum.open > 0 ? STATUS_FAILED : STATUS_COMPLETE;
}

/* --- the command --- */

static int again_run(struct again *a, const struct cli_args *args, struct err *err) {
  if (cli_flag(args, "dry-run")) {
    again_plan(a, stdout);
    return STATUS_COMPLETE;
  }
  if (again_open(a) == 0 && a->left_count == 0)
    return again_tell(a);
  if (again_open(a) > 0 && !again_agreed(a, args, err))
    return cli_fail("rejudge", err);
  if (!rejudging_run(a, err))
    return cli_fail("rejudge", err);
  return again_tell(a);
}

static int rejudge_run(const struct cli_args *args) {
  struct again a = {0};
  struct err err = {0};
  int status;
  a.json = cli_flag(args, "json");
  cli_errors_as_json(a.json);
  if (!setup_flags(&a.setup, args, &status)) {
    setup_deinit(&a.setup);
    return status;
  }
  a.of.aggregate = a.aggregate = aggregate_new();
  bool ok = gate_begin(&a.gate, "rejudge", args, &err) &&
            audit_filters(a.aggregate, args, true, &err) && again_bounds(&a, args, &err) &&
            again_judge(&a, args, &err) && again_name(&a, cli_value(args, "as"), &err) &&
            rejudge_choose(&a.of, args, &err);
  size_t room = a.of.count * (size_t)(a.repeat > 0 ? a.repeat : 1);
  if (ok) {
    a.verdicts = xmalloc((room + 1) * sizeof *a.verdicts);
    for (size_t i = 0; i < room; i++)
      a.verdicts[i] = REJUDGE_OPEN;
    ok = again_resume(&a, &err);
  }
  status = ok ? again_run(&a, args, &err) : cli_fail("rejudge", &err);
  rows_deinit(&a.of.rows);
  free(a.of.list);
  aggregate_free(a.aggregate);
  setup_deinit(&a.setup);
  json_decref(a.stages);
  json_decref(a.panel);
  free(a.verdicts);
  free(a.left);
  return gate_end(&a.gate, status);
}

const struct cli_command cmd_rejudge = {COMMAND_REJUDGE, .run = rejudge_run};
