/* A night in virtual time: many sessions over the pure core, behind the gate that they share, while
 * their provider is away for a second or two hours, refuses the login, has limits, stalls, and the
 * program that runs them is killed. In the morning each has ended, or waits for a person who can do
 * something about it. Which seeds: support/seeds.h. */
#include "support/play.h"
#include "support/seeds.h"

#include "base/limits.h"
#include "host/call_queue.h"

#include <inttypes.h>

enum {
  NIGHT_SEEDS = 24,
  SESSIONS = 40,
  SECOND = 1000,
  MINUTE = 60 * SECOND,
  HOUR = 60 * MINUTE,
  NIGHT_MS = 8 * HOUR,
  DAY_MS = 23 * HOUR, /* a session waits for 24 hours in all */
  TROUBLES = 12,
  KILLS = 6,
  MAX_STEPS = 4000000
};

static const char workflow[] =
    "{'name':'night','max_movements':9,'movements':["
    "{'name':'work','instruction':'Work.','rules':[{'condition':'done','next':'review'},"
    "{'condition':'not done','next':'ABORT'}]},"
    "{'name':'review','instruction':'Review.','rules':[{'condition':'good','next':'COMPLETE'},"
    "{'condition':'bad','next':'work'}]}]}";

static const struct capability night_providers[] = {
    {.name = "script", .sessions = true, .structured = "prompt", .can_judge = true, .summary = "x"},
    {0}};

struct trouble { /* a time in which each call fails in one way */
  int64_t from_ms, to_ms;
  enum error_class class;
  bool names_end; /* a limit, with the time of its end */
  long failed;
};

struct night {
  uint64_t dice;
  int64_t began_ms, now_ms;
  struct provider_registry *registry;
  struct admission gate;
  struct play plays[SESSIONS];
  int64_t starts_ms[SESSIONS], due_ms[SESSIONS];
  long answered[SESSIONS]; /* how often the provider was asked for it */
  bool probes[SESSIONS];
  int stalled[SESSIONS]; /* attempts of its call: another one would be given up, rightly */
  struct trouble troubles[TROUBLES];
  int64_t kills_ms[KILLS];
  size_t killed;
};

struct night_totals {
  long sessions, complete, persons, calls, failed, kills, stalls, logins;
};

static unsigned night_roll(struct night *n, unsigned sides) { /* splitmix64 */
  uint64_t x = n->dice += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return (unsigned)((x ^ (x >> 31)) % sides);
}

static size_t play_number(const struct night *n, const struct play *p) {
  return (size_t)(p - n->plays);
}

static struct trouble *trouble_now(struct night *n) {
  for (size_t i = 0; i < TROUBLES; i++)
    if (n->troubles[i].from_ms <= n->now_ms && n->now_ms < n->troubles[i].to_ms)
      return &n->troubles[i];
  return NULL;
}

/* --- the provider, and the gate in front of it --- */

static void night_reply(struct play *p, const struct call_request *r, struct call_result *out) {
  struct night *n = p->ctx;
  size_t i = play_number(n, p);
  struct trouble *t = trouble_now(n);
  n->answered[i]++;
  if (t != NULL) {
    call_result_fail(out, t->class, "trouble");
    out->retry_after_ms = t->names_end ? t->to_ms - n->now_ms : 0;
    t->failed++;
  } else if (night_roll(n, 40) == 0 && n->stalled[i] < LIMIT_STALL_RETRY_COUNT) {
    n->stalled[i]++;
    call_result_fail(out, CLASS_TIMEOUT, "no output");
    out->silent_ms = 10 * MINUTE;
  } else if (r->stage == STAGE_COUNT) {
    buf_puts(&out->text.bytes, "It is done as it was asked for.");
  } else {
    buf_printf(&out->text.bytes, "{\"reason\": \"seen\", \"step\": %u}",
               1 + (str_eq_c(r->movement, "review") && night_roll(n, 4) == 0));
  }
  if (out->class == CLASS_NONE)
    n->stalled[i] = 0;
  out->duration_ms = 5;
  const struct admission_end end = {.class = out->class,
                                    .retry_after_ms = out->retry_after_ms,
                                    .probe = n->probes[i],
                                    .real_ms = n->now_ms};
  admission_done(&n->gate, STR("script"), p, &end, (uint64_t)(n->now_ms - n->began_ms));
  n->probes[i] = false;
}

/* Returns 0 when the gate lets the call through, else when it is to be asked again. */
static int64_t night_gate(struct play *p) {
  struct night *n = p->ctx;
  const struct admission_call call = {.provider = STR("script"), .owner = p, .patient = true};
  struct admission_why why;
  uint64_t now = (uint64_t)(n->now_ms - n->began_ms);
  if (admission_ask(&n->gate, &call, now, &why) == ADMISSION_ADMITTED) {
    n->probes[play_number(n, p)] = why.probe;
    return 0;
  }
  return why.until_ms > now ? (int64_t)(why.until_ms - now) : SECOND;
}

static int64_t night_delay(struct play *p) {
  return (1 + night_roll(p->ctx, 20)) * MINUTE / 4;
}

static bool night_answered(void *ctx, struct str provider) {
  (void)ctx;
  return provider.n > 0;
}

/* --- the night --- */

static bool night_over(const struct play *p) {
  return p->core.status == SESSION_ENDED || p->core.status == SESSION_STOPPED;
}

static void night_resume(struct play *p, const char *reason) {
  struct event ev = play_event(p, EVENT_RESUME);
  ev.reason = reason;
  play_decide(p, &ev);
  play_commit(p);
}

/* Somebody goes on with what a refused login stopped. */
static long after_login(struct night *n) {
  long resumed = 0;
  for (size_t i = 0; i < SESSIONS; i++) {
    struct play *p = &n->plays[i];
    if (p->core.status == SESSION_STOPPED && p->core.stop_class == CLASS_AUTH) {
      p->now_ms = n->now_ms;
      night_resume(p, "user");
      resumed++;
    }
  }
  return resumed;
}

/* Tells the gate what the session's log says of an outage. */
static void night_doubt(struct night *n, const struct play *p) {
  for (const struct turn *turn = p->core.turns; turn; turn = turn->next)
    for (const struct call *call = turn->calls; call; call = call->next) {
      int64_t left_ms = call->wait_until_ms - n->now_ms;
      const struct admission_away away = {.class = call->class,
                                          .since_ms = call->outage.since_ms,
                                          .tries = call->outage.tries,
                                          .next_ms = left_ms > 0 ? (uint64_t)left_ms : 0};
      if (call->outage.tries > 0)
        admission_doubt(&n->gate, STR("script"), &away, (uint64_t)(n->now_ms - n->began_ms));
    }
}

/* The program dies with what it knew of its provider; of each session the log remains. */
static void night_kill(struct night *n) {
  admission_deinit(&n->gate);
  admission_init(&n->gate, n->registry);
  for (size_t i = 0; i < SESSIONS; i++) {
    struct play *p = &n->plays[i];
    n->probes[i] = false;
    if (play_lines(p) == 0 || night_over(p))
      continue;
    p->now_ms = n->now_ms;
    play_crash(p, 0);
    night_resume(p, "restart");
    night_doubt(n, p);
  }
}

/* Returns the session whose next thing is due first; SESSIONS: none has one. */
static size_t night_next(struct night *n, int64_t *due_ms) {
  size_t first = SESSIONS;
  for (size_t i = 0; i < SESSIONS; i++) {
    struct play *p = &n->plays[i];
    int64_t due = INT64_MAX;
    if (play_lines(p) == 0)
      due = n->starts_ms[i];
    for (size_t k = 0; k < p->pending_count; k++)
      due = p->pending[k].due_ms < due ? p->pending[k].due_ms : due;
    if (due < INT64_MAX && (first == SESSIONS || due < *due_ms)) {
      first = i;
      *due_ms = due;
    }
  }
  return first;
}

/* Plays what is due in one session, unless the gate holds it. */
static void night_step(struct play *p) {
  size_t first = 0;
  if (play_lines(p) == 0) {
    play_start(p);
    return;
  }
  for (size_t k = 1; k < p->pending_count; k++)
    if (p->pending[k].due_ms < p->pending[first].due_ms)
      first = k;
  struct play_pending *due = &p->pending[first];
  struct turn *turn;
  const struct call *call = core_call(&p->core, due->call, &turn);
  bool waits = due->kind == PLAY_TIMER && call != NULL && call->outage.tries > 0;
  bool starts = due->kind == PLAY_CALL && due->told == 0;
  int64_t held_ms = waits || starts ? night_gate(p) : 0;
  if (held_ms > 0) {
    due->due_ms = p->now_ms + held_ms;
  } else if (starts) { /* it runs from now on */
    due->told = 1;
    due->due_ms = p->now_ms + night_delay(p);
  } else {
    if (waits) { /* its place is there: the attempt starts at once */
      const struct play_pending timer = *due;
      play_decide_next(p);
      play_commit(p);
      for (size_t k = 0; k < p->pending_count; k++)
        if (p->pending[k].kind == PLAY_CALL && p->pending[k].call == timer.call) {
          p->pending[k].told = 1;
          p->pending[k].due_ms = p->now_ms + night_delay(p);
        }
      return;
    }
    play_decide_next(p);
    play_commit(p);
  }
}

/* `day`: one outage of 23 hours instead. */
static void night_begin(struct night *n, uint64_t seed, bool day) {
  static const char *const configs[] = {"{'default_provider':'script'}",
                                        "{'default_provider':'script','wait_for_outage':'24h'}"};
  static const enum error_class classes[] = {CLASS_NETWORK, CLASS_OVERLOADED, CLASS_RATE_LIMIT,
                                             CLASS_RATE_LIMIT, CLASS_AUTH};
  *n = (struct night){.dice = seed, .registry = registry_new(NULL)};
  admission_init(&n->gate, n->registry);
  n->gate.holds_auth = true;
  for (size_t i = 0; i < SESSIONS; i++) {
    struct play *p = &n->plays[i];
    play_init(p, "a night", workflow, configs[day], NULL);
    p->env.providers = night_providers;
    p->env.has_answered = night_answered;
    p->reply = night_reply;
    p->ctx = n;
    p->entropy = night_roll(n, 1u << 30);
    n->began_ms = n->now_ms = p->now_ms;
    n->starts_ms[i] = n->began_ms + (int64_t)night_roll(n, 5 * HOUR);
  }
  int64_t at = n->began_ms;
  for (size_t i = 0; i < TROUBLES; i++) { /* from a second to two hours */
    struct trouble *t = &n->troubles[i];
    int64_t most = night_roll(n, 3) == 0 ? 2 * HOUR : 10 * MINUTE;
    t->class = classes[night_roll(n, ARRAY_LEN(classes))];
    t->names_end = t->class == CLASS_RATE_LIMIT && night_roll(n, 2) == 0;
    t->from_ms = at += night_roll(n, 40 * MINUTE);
    t->to_ms = at += SECOND + (int64_t)night_roll(n, (unsigned)most - SECOND);
  }
  if (day) {
    memset(n->troubles, 0, sizeof n->troubles);
    n->troubles[0] = (struct trouble){n->began_ms, n->began_ms + DAY_MS, CLASS_NETWORK, false, 0};
  }
  for (size_t i = 0; i < KILLS; i++)
    n->kills_ms[i] = n->began_ms + ((int64_t)i * 100 + night_roll(n, 100)) * NIGHT_MS / KILLS / 100;
}

/* No call was made without a record before it, none is given up in an outage, and no wait is longer
 * than its bound. */
static void night_check(struct night *n, size_t i, struct night_totals *t) {
  struct play *p = &n->plays[i];
  long starts = play_count(p, "call_start");
  if (n->answered[i] > starts)
    fail_msg("session %zu: %ld calls, and %ld in its log", i, n->answered[i], starts);
  if (!night_over(p))
    fail_msg("session %zu neither ended nor stopped", i);
  struct str reason = buf_view(&p->core.stop_reason);
  struct str class = str_from(error_class_name(p->core.stop_class));
  bool person = p->core.status == SESSION_STOPPED &&
                strcmp(session_stop_status(reason, class), "stopped") != 0;
  if (p->core.status == SESSION_STOPPED && !person)
    fail_msg("session %zu: stopped: " STR_FMT ": %s", i, STR_ARG(reason),
             buf_c(&p->core.stop_message));
  t->sessions++;
  t->persons += person;
  t->complete += p->core.outcome == END_COMPLETE;
  t->calls += n->answered[i];
  for (size_t k = 0; k < play_lines(p); k++) {
    const json_t *r = play_record(p, k), *outage = json_object_get(r, "outage");
    int64_t since = 0, until = 0;
    t->stalls += json_object_get(json_object_get(r, "error"), "silent_ms") != NULL;
    if (outage == NULL || !record_time_parse(data_get(outage, "since").p, &since) ||
        !record_time_parse(data_get(outage, "until").p, &until))
      continue; /* a refused login is waited for without an end */
    if (until - since > DAY_MS + HOUR)
      fail_msg("session %zu: record %zu waits from %ld to %ld", i, k + 1, (long)since, (long)until);
  }
}

static void play_night(uint64_t seed, bool day, struct night_totals *t) {
  static struct night n;
  int64_t due_ms = 0;
  size_t i, login = 0;
  night_begin(&n, seed, day);
  for (int steps = 0; (i = night_next(&n, &due_ms)) < SESSIONS || login < TROUBLES; steps++) {
    if (steps == MAX_STEPS || n.now_ms > n.began_ms + 5 * NIGHT_MS)
      fail_msg("seed %" PRIu64 ": the night does not end", seed);
    int64_t login_ms = login < TROUBLES ? n.troubles[login].to_ms : INT64_MAX;
    int64_t kill_ms = n.killed < KILLS ? n.kills_ms[n.killed] : INT64_MAX;
    if (i == SESSIONS)
      due_ms = INT64_MAX;
    if (kill_ms <= due_ms && kill_ms <= login_ms) {
      n.now_ms = kill_ms > n.now_ms ? kill_ms : n.now_ms;
      n.killed++;
      night_kill(&n);
      t->kills++;
    } else if (login_ms <= due_ms) {
      n.now_ms = login_ms > n.now_ms ? login_ms : n.now_ms;
      if (n.troubles[login++].class == CLASS_AUTH && night_roll(&n, 3) > 0)
        t->logins += after_login(&n);
    } else {
      n.now_ms = due_ms > n.now_ms ? due_ms : n.now_ms;
      n.plays[i].now_ms = n.now_ms;
      night_step(&n.plays[i]);
    }
  }
  for (i = 0; i < SESSIONS; i++)
    night_check(&n, i, t);
  for (i = 0; i < TROUBLES; i++) { /* those that ran when it began, then a probe at a time */
    const struct trouble *one = &n.troubles[i];
    long most = SESSIONS + (one->to_ms - one->from_ms) / (LIMIT_OUTAGE_MAX_MS / (day ? 1 : 2));
    if (one->failed > most)
      fail_msg("seed %" PRIu64 ": %ld calls in an outage of %ld s", seed, one->failed,
               (long)(one->to_ms - one->from_ms) / SECOND);
    t->failed += one->failed;
  }
  for (i = 0; i < SESSIONS; i++)
    play_deinit(&n.plays[i]);
  admission_deinit(&n.gate);
  registry_free(n.registry);
}

TEST(in_the_morning_all_is_done_or_waits_for_somebody) {
  const struct seeds seeds = seeds_asked(NIGHT_SEEDS);
  struct night_totals t = {0};
  for (uint64_t seed = seeds.first; seed - seeds.first < seeds.count; seed++)
    play_night(seed, false, &t);
  print_message("%" PRIu64 " nights: %ld sessions, %ld complete, %ld wait for a person; %ld calls, "
                "%ld failed, %ld stalled, %ld kills, %ld resumed after a login\n",
                seeds.count, t.sessions, t.complete, t.persons, t.calls, t.failed, t.stalls,
                t.kills, t.logins);
  assert_true(t.complete > t.sessions / 2);
  assert_true(t.failed > 0 && t.stalls > 0 && t.kills > 0);
}

/* Forty sessions ask no more often than one would: a probe in five minutes. */
TEST(a_day_without_names_is_sat_out) {
  const struct seeds seeds = seeds_asked(8);
  struct night_totals t = {0};
  for (uint64_t seed = seeds.first; seed - seeds.first < seeds.count; seed++)
    play_night(seed, true, &t);
  print_message("%" PRIu64 " days: %ld sessions, %ld complete, %ld calls failed\n", seeds.count,
                t.sessions, t.complete, t.failed);
  assert_int_equal(t.persons, 0);
}

TEST_GROUP(NULL, play_over)
