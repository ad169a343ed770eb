/* segue replay: runs the replies in logs through today's code. */
#include "audit/replay.h"
#include "cli/cli.h"
#include "cli/gate.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"

struct replaying {
  struct replay *replay;
  bool json;
  size_t sessions, unsound;
  struct gate gate;
};

static json_t *verdict_json(long rule, const char *method) {
  return json_pack("{so ss?}", "rule", rule > 0 ? json_integer(rule) : json_null(), "method",
                   method);
}

static void replay_put_verdict(struct buf *out, long rule, const char *method) {
  cli_put_rule(out, rule);
  if (method != NULL) {
    buf_puts(out, " by ");
    buf_safe(out, str_from(method), false);
  }
}

static void replay_show(const struct replay_turn *t) {
  buf_auto_t line = {0};
  buf_safe(&line, str_from(t->session), false);
  buf_printf(&line, "  turn %ld, ", t->turn);
  (void)cli_fit(&line, str_from(t->movement), 30);
  buf_puts(&line, ": recorded ");
  replay_put_verdict(&line, t->rule, t->method);
  if (t->kind == REPLAY_OLDER)
    buf_puts(&line, " by an older reader");
  if (t->method_now != NULL && t->rule_now == 0)
    buf_printf(&line, "; today %s would ask again", t->method_now);
  else {
    buf_puts(&line, "; today ");
    replay_put_verdict(&line, t->rule_now, t->method_now);
  }
  if (t->why[0] != '\0') {
    buf_puts(&line, ": ");
    (void)cli_fit(&line, str_from(t->why), 100);
  }
  puts(buf_c(&line));
}

static void replay_case(struct gate *gate, const struct replay_turn *t) {
  buf_auto_t name = buf_of("%s turn %ld %s", t->session, t->turn, t->movement ? t->movement : "");
  buf_auto_t why = buf_of("rule %ld was recorded, today it is rule %ld by %s", t->rule, t->rule_now,
                          t->method_now ? t->method_now : "none");
  gate_case(gate, buf_c(&name),
            t->kind == REPLAY_RULE || t->kind == REPLAY_ASKS ? buf_c(&why) : NULL);
}

static void replay_on_turn(void *ctx, const struct replay_turn *t) {
  struct replaying *r = ctx;
  replay_case(&r->gate, t);
  if (r->json) {
    json_t *told =
        json_pack("{so sI so ss so so}", "session", json_io_string(t->session), "turn",
                  (json_int_t)t->turn, "movement", json_io_string(t->movement ? t->movement : ""),
                  "replay", replay_kind_name(t->kind), "recorded", verdict_json(t->rule, t->method),
                  "today", verdict_json(t->rule_now, t->method_now));
    if (t->why[0] != '\0')
      json_object_set_new(told, "why", json_io_string(t->why));
    json_io_put(told);
  } else if (t->kind != REPLAY_SAME && t->kind != REPLAY_HUMAN) {
    replay_show(t);
  }
}

static void replay_on_log(void *ctx, const struct store_ref *ref) {
  struct replaying *r = ctx;
  struct err err = {0};
  r->sessions++;
  if (replay_log(r->replay, ref, replay_on_turn, r, &err))
    return;
  r->unsound++;
  err_wrap(&err, "%.300s", ref->name);
  (void)cli_fail("replay", &err);
}

static void replay_sum(struct replaying *r) {
  uint64_t n[REPLAY_KIND_COUNT], all = 0;
  for (int i = 0; i < REPLAY_KIND_COUNT; i++)
    all += n[i] = replay_count(r->replay, (enum replay_kind)i);
  gate_check(&r->gate, "all judgments",
             json_pack("{sI sI sI sI sI sI}", "judgments", (json_int_t)all, "sessions",
                       (json_int_t)r->sessions, "unsound", (json_int_t)r->unsound, "changed",
                       (json_int_t)(n[REPLAY_RULE] + n[REPLAY_ASKS]), "other_stage",
                       (json_int_t)n[REPLAY_METHOD], "older_reader", (json_int_t)n[REPLAY_OLDER]));
  if (r->json) {
    json_t *sum = json_object();
    for (int i = 0; i < REPLAY_KIND_COUNT; i++)
      json_object_set_new(sum, replay_kind_name((enum replay_kind)i),
                          json_integer((json_int_t)n[i]));
    json_io_put(json_pack("{sI sI sI so}", "judgments", (json_int_t)all, "sessions",
                          (json_int_t)r->sessions, "unsound", (json_int_t)r->unsound, "replay",
                          sum));
    return;
  }
  char apart[40] = "";
  if (r->unsound > 0)
    print_into(apart, sizeof apart, " (%zu not sound)", r->unsound);
  printf("%llu judgment%s in %zu session%s%s: %llu as recorded, %llu by another stage, %llu would "
         "differ, %llu would ask again, %llu by a person",
         (unsigned long long)all, PLURAL(all), r->sessions, PLURAL(r->sessions), apart,
         (unsigned long long)n[REPLAY_SAME], (unsigned long long)n[REPLAY_METHOD],
         (unsigned long long)n[REPLAY_RULE], (unsigned long long)n[REPLAY_ASKS],
         (unsigned long long)n[REPLAY_HUMAN]);
  printf(n[REPLAY_OLDER] > 0 ? ", %llu by an older reader\n" : "\n",
         (unsigned long long)n[REPLAY_OLDER]);
}

static int replay_run(const struct cli_args *args) {
  struct replaying r = {0};
  struct err err = {0};
  bool missing = false, read = false;
  const struct resolve_id_each each = {.log = replay_on_log, .ctx = &r};
  r.json = cli_flag(args, "json");
  cli_errors_as_json(r.json);
  if (!gate_begin(&r.gate, "replay", args, &err) || (r.replay = replay_new(&err)) == NULL)
    return gate_end(&r.gate, cli_fail("replay", &err));
  for (size_t i = 0; i < args->word_count; i++)
    if (resolve_id_take(args->words[i], cli_value(args, "logs"), &each, &err)) {
      read = true;
    } else {
      (void)cli_fail("replay", &err);
      missing = true;
    }
  if (read)
    replay_sum(&r);
  bool differs = replay_count(r.replay, REPLAY_RULE) + replay_count(r.replay, REPLAY_ASKS) > 0;
  replay_free(r.replay);
  bool fails = r.unsound > 0 || (differs && cli_flag(args, "check"));
  int status = fails ? STATUS_FAILED : STATUS_COMPLETE;
  return gate_end(&r.gate, missing ? STATUS_USAGE : status);
}

const struct cli_command cmd_replay = {COMMAND_REPLAY, .run = replay_run};
