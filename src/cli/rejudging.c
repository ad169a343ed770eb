/* Runs the rejudging of turns as sessions on one loop. */
#include "cli/rejudging.h"

#include "base/limits.h"
#include "base/log.h"
#include "cli/cli.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "judge/chain.h"
#include "os/clock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pending { /* a case that has not been judged as often as wanted */
  struct list_node in_cases;
  struct rejudge_case *made;
  size_t turn;
  size_t users; /* jobs that use it */
  long next;    /* repeat, from 1 */
};

struct rejudge_job {
  struct list_node in_jobs;
  struct rejudging *owner;
  struct pending *pending; /* NULL: it was left unfinished */
  struct session *session;
  size_t turn;
  long repeat;
  bool finished, judged, asked; /* asked: a judge's call of it has ended */
  bool untold;                  /* its verdict is known, or does not count */
  long rule;
  char method[32], why[256];
};

static long *rejudging_verdict(const struct rejudging *r, size_t turn, long repeat) {
  return &r->verdicts[turn * (size_t)r->repeat + (size_t)(repeat - 1)];
}

/* --- what its records tell --- */

static void rejudge_count_call(struct rejudge_job *job, const struct record *record) {
  struct rejudging *r = job->owner;
  json_t *json = record_json(record);
  const json_t *cost = json_at(json_at(json, "usage"), "cost_usd");
  if (record_number(record, MEMBER_CALL) > 1) /* the first is the work, already done */
    job->asked = true, r->calls++;
  if (json_number_value(cost) > 0)
    r->cost_nano += (int64_t)(json_number_value(cost) * 1e9 + 0.5);
  json_decref(json);
}

/* Reports a wait that a person would take for a hang; many at once are reported as one. */
static void rejudge_say_wait(struct rejudging *r, const struct record *record) {
  int64_t ms = record_number(record, MEMBER_RETRY_IN_MS), now_ms = clock_real_ms();
  const json_t *message = json_at(record_tree(record, MEMBER_ERROR), "message");
  if (ms < LIMIT_LONG_WAIT_MS || now_ms + ms <= r->waits_until_ms + LIMIT_LONG_WAIT_MS)
    return;
  r->waits_until_ms = now_ms + ms;
  fprintf(stderr, "segue rejudge: waiting %lld s: ", (long long)(ms / 1000));
  cli_put_safe(stderr, json_is_string(message) ? json_string_value(message) : "no reason given");
  fputs(" (Ctrl-C stops; run the same command again to continue)\n", stderr);
}

static void rejudge_why(struct rejudge_job *job, struct str why) {
  (void)snprintf(job->why, sizeof job->why, "%.*s", (int)(why.n < 250 ? why.n : 250), why.p);
}

static void rejudge_on_record(void *ctx, const struct record *record, struct str line) {
  struct rejudge_job *job = ctx;
  (void)line;
  if (record->type == RECORD_CALL_END) {
    rejudge_count_call(job, record);
    rejudge_say_wait(job->owner, record);
  } else if (record->type == RECORD_JUDGMENT) {
    const char *method = record_text_c(record, MEMBER_METHOD);
    job->judged = true;
    job->rule = (long)record_number(record, MEMBER_RULE);
    (void)snprintf(job->method, sizeof job->method, "%s", method ? method : "");
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
  fputs("segue rejudge: ", stderr);
  cli_put_safe(stderr, message);
  fputc('\n', stderr);
}

static void rejudge_on_finished(void *ctx, struct session *s) {
  struct rejudge_job *job = ctx;
  (void)s;
  job->finished = true;
  several_wake(&job->owner->several);
}

/* --- cases --- */

static void pending_drop(struct rejudging *r, struct pending *p) {
  if (p->in_cases.list != NULL)
    list_remove(&r->cases, &p->in_cases);
  if (p->users > 0)
    return;
  rejudge_case_free(p->made);
  free(p);
}

/* Returns the number of the next time that this turn is to be judged, 0 if it is done. */
static long pending_next(const struct rejudging *r, struct pending *p) {
  while (p->next <= r->repeat && *rejudging_verdict(r, p->turn, p->next) != REJUDGE_OPEN)
    p->next++;
  return p->next <= r->repeat ? p->next++ : 0;
}

static bool has_open(const struct rejudging *r, size_t turn) {
  for (long repeat = 1; repeat <= r->repeat; repeat++)
    if (*rejudging_verdict(r, turn, repeat) == REJUDGE_OPEN)
      return true;
  return false;
}

static void close_reading(struct rejudging *r) {
  rejudge_close(r->reading);
  free(r->numbers);
  free(r->places);
  r->reading = NULL;
  r->numbers = NULL;
  r->places = NULL;
}

static void say_unsound(struct rejudging *r, const char *session, struct err *err) {
  r->unsound++;
  (void)err_wrap(err, "%.40s", session);
  (void)cli_fail("rejudge", err);
}

/* Opens the next log with turns that are to be judged. Returns false if there is none. */
static bool open_next_log(struct rejudging *r) {
  while (r->next < r->count) {
    struct store_ref ref;
    struct err err = {0};
    const char *session = r->turns[r->next].session;
    size_t end = r->next, n = 0;
    while (end < r->count && strcmp(r->turns[end].session, session) == 0)
      end++;
    r->numbers = xcalloc(end - r->next, sizeof *r->numbers);
    r->places = xcalloc(end - r->next, sizeof *r->places);
    for (; r->next < end; r->next++)
      if (has_open(r, r->next)) {
        r->numbers[n] = r->turns[r->next].turn;
        r->places[n++] = r->next;
      }
    store_ref(&r->source, session, &ref);
    if (n > 0)
      r->reading = rejudge_open(&ref, r->numbers, n, &r->as, &err);
    if (r->reading != NULL)
      return true;
    if (n > 0)
      say_unsound(r, session, &err);
    close_reading(r);
  }
  return false;
}

/* Reads the next turn that is to be judged, if its log has one more. Returns false if there is no
 * further log. */
static bool read_next_case(struct rejudging *r) {
  struct rejudge_case *c;
  struct err err = {0};
  if (r->reading == NULL && !open_next_log(r))
    return false;
  if (!rejudge_next(r->reading, &c, &err))
    say_unsound(r, r->turns[r->places[0]].session, &err);
  if (c == NULL) {
    close_reading(r);
    return true;
  }
  struct pending *p = xcalloc(1, sizeof *p);
  *p = (struct pending){.made = c, .next = 1, .turn = r->places[c->index]};
  list_push_back(&r->cases, &p->in_cases);
  return true;
}

/* --- jobs --- */

static json_t *job_config(const struct rejudging *r, const struct pending *p, long repeat) {
  const struct rejudge_turn *turn = &r->turns[p->turn];
  json_t *config = json_clone(r->setup->config);
  json_t *again =
      json_pack("{ss sI ss sI ss}", "session", turn->session, "turn", (json_int_t)turn->turn,
                "name", r->name, "repeat", (json_int_t)repeat, "settings", r->settings);
  if (r->permute && repeat > 1)
    json_object_set_new(again, "rotation", json_integer(repeat - 1));
  json_object_set_new(config, "rejudges", again);
  return config;
}

/* Returns true if the judges are there and can do what is asked of them. */
static bool can_judge(struct rejudging *r, struct workflow *workflow) {
  struct preflight preflight = setup_preflight_of(r->setup);
  preflight.workflow = workflow;
  preflight.looks = preflight.answered = true;
  return preflight_passes(&preflight, &r->failed);
}

static bool rejudge_start(struct rejudging *r, struct pending *p, long repeat) {
  const struct setup *setup = r->setup;
  if (!can_judge(r, p->made->core.workflow))
    return false;
  struct rejudge_job *job = xcalloc(1, sizeof *job);
  json_t *config = job_config(r, p, repeat);
  struct call_result answer;
  const struct session_params params = {
      .setup = {.cwd = setup->cwd,
                .pass_env = setup->user.env,
                .scenario = setup->has_scenario ? &setup->scenario : NULL},
      .workflow = p->made->core.workflow,
      .task = STR(""),
      .config = config,
      .parent = rejudge_parent(p->made)};
  *job = (struct rejudge_job){.owner = r, .pending = p, .turn = p->turn, .repeat = repeat};
  job->session = host_start(&r->several.solo.host, &params, &r->watcher, job, &r->failed);
  json_decref(config);
  if (job->session == NULL) {
    free(job);
    return false;
  }
  p->users++;
  list_push_back(&r->jobs, &job->in_jobs);
  rejudge_answer(p->made, &answer);
  host_answer_with(job->session, &answer);
  call_result_deinit(&answer);
  return true;
}

/* --- sessions that were left --- */

static bool left_choose(void *ctx, const json_t *config, struct session_setup *setup,
                        struct err *err) {
  const struct setup *mine = ((const struct rejudging *)ctx)->setup;
  (void)config;
  (void)err;
  *setup = (struct session_setup){.cwd = mine->cwd,
                                  .pass_env = mine->user.env,
                                  .scenario = mine->has_scenario ? &mine->scenario : NULL};
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

/* Lets a session that was left go on, or cancels it. Returns false if it cannot go on: r->failed
 * says why. */
static bool left_go(struct rejudging *r, struct rejudge_job *job,
                    const struct rejudging_left *left) {
  const struct core *core = session_core(job->session);
  bool wanted = *rejudging_verdict(r, left->turn, left->repeat) == REJUDGE_OPEN;
  job->untold = left->judged || !wanted || !has_its_text(core);
  if (job->untold && !left->judged) {
    host_cancel(job->session, "its turn is judged again in another session");
    return true;
  }
  if (!can_judge(r, core->workflow))
    return false;
  if (!host_go(job->session, left_choose, r, "rejudge", NULL, &r->failed))
    return false;
  if (wanted)
    *rejudging_verdict(r, left->turn, left->repeat) = REJUDGE_UNREADABLE; /* until it is over */
  return true;
}

/* Takes up the next session that was left. One that another process has just taken, or that is
 * damaged, stays. */
static void left_start(struct rejudging *r, const struct rejudging_left *left) {
  struct rejudge_job *job = xcalloc(1, sizeof *job);
  struct store into;
  struct store_ref ref;
  struct err err = {0};
  *job = (struct rejudge_job){.owner = r, .turn = left->turn, .repeat = left->repeat};
  store_at(&into, r->into);
  store_ref(&into, left->id, &ref);
  job->session = host_open(&r->several.solo.host, &ref, &r->watcher, job, &err);
  bool goes = job->session != NULL && session_core(job->session)->status != SESSION_ENDED;
  if (job->session == NULL && err.code != ERR_LOCKED) {
    (void)err_wrap(&err, "%.40s", left->id);
    (void)cli_fail("rejudge", &err);
  }
  if (goes && !left_go(r, job, left)) {
    goes = false;
    r->closing = true;
  }
  if (goes) {
    list_push_back(&r->jobs, &job->in_jobs);
    return;
  }
  session_free(job->session);
  free(job);
}

/* Returns how many calls what runs makes at the least, besides those that have ended. */
static int64_t calls_to_come(const struct rejudging *r) {
  int64_t n = 0;
  LIST_EACH(struct rejudge_job, job, in_jobs, &r->jobs)
    n += !job->asked;
  return n;
}

/* Returns false once a bound is met; what runs may still end. */
static bool within_bounds(struct rejudging *r) {
  int64_t calls = r->calls + calls_to_come(r);
  bool met = (r->max_calls > 0 && calls >= r->max_calls) ||
             (r->max_cost_nano > 0 && r->cost_nano >= r->max_cost_nano);
  r->bounded |= met;
  return !met;
}

static void rejudge_start_more(struct rejudging *r) {
  while (r->left_next < r->left_count && r->jobs.count < r->concurrency && !r->closing) {
    if (within_bounds(r))
      left_start(r, &r->left[r->left_next++]);
    else
      r->closing = true;
  }
  while (r->jobs.count < r->concurrency && !r->closing) {
    struct pending *p = NULL;
    if (r->cases.first != NULL)
      LIST_EACH(struct pending, first, in_cases, &r->cases) {
        p = first;
        break;
      }
    if (p == NULL) {
      r->closing = !read_next_case(r);
      continue;
    }
    long repeat = pending_next(r, p);
    if (repeat == 0) {
      pending_drop(r, p);
      continue;
    }
    if (!within_bounds(r) || !rejudge_start(r, p, repeat))
      r->closing = true;
  }
}

static void rejudge_take(struct rejudging *r, struct rejudge_job *job) {
  const struct err *broken = session_broken(job->session);
  struct pending *p = job->pending;
  if (broken != NULL && r->failed.code == ERR_NONE) {
    r->failed = *broken;
    r->closing = true;
  }
  list_remove(&r->jobs, &job->in_jobs);
  if (!job->untold) {
    bool over = broken == NULL && !(r->stopped && !job->judged);
    long *verdict = rejudging_verdict(r, job->turn, job->repeat);
    *verdict = over ? REJUDGE_UNREADABLE : REJUDGE_OPEN;
    if (job->judged)
      *verdict = job->rule;
    if (over)
      r->told(r->ctx, job->turn, job->repeat, job->judged ? job->method : NULL, job->why);
  }
  session_free(job->session);
  free(job);
  if (p != NULL && --p->users == 0 && p->in_cases.list == NULL)
    pending_drop(r, p);
}

static void rejudge_on_turn(void *ctx) {
  struct rejudging *r = ctx;
  LIST_EACH(struct rejudge_job, job, in_jobs, &r->jobs) {
    if (job->finished)
      rejudge_take(r, job);
  }
  rejudge_start_more(r);
  if (r->jobs.count == 0 && r->closing)
    several_close(&r->several);
}

static void rejudge_on_stop(void *ctx, const char *reason, const char *message, bool cancel) {
  struct rejudging *r = ctx;
  r->stopped = r->closing = true;
  LIST_EACH(struct rejudge_job, job, in_jobs, &r->jobs) {
    if (!job->finished)
      several_end(job->session, reason, message, cancel);
  }
}

bool rejudging_run(struct rejudging *r, struct err *err) {
  assert(r->repeat > 0);
  assert(r->concurrency > 0);
  r->watcher = (struct watcher){
      .record = rejudge_on_record, .trouble = rejudge_on_trouble, .finished = rejudge_on_finished};
  if (!several_init(&r->several, r->into, r->setup->registry, r->concurrency == 1, err))
    return false;
  r->several.ctx = r;
  r->several.turn = rejudge_on_turn;
  r->several.stop = rejudge_on_stop;
  (void)several_run(&r->several);
  LIST_EACH(struct pending, p, in_cases, &r->cases)
    pending_drop(r, p);
  close_reading(r);
  several_deinit(&r->several);
  if (r->failed.code != ERR_NONE)
    *err = r->failed;
  return r->failed.code == ERR_NONE;
}
