/* Tests what follows from the runs of a check: the records, in order, and the end; the same after a
 * crash behind any of them. */
#include "base/memory.h"
#include "core/answer.h"
#include "support/data.h"
#include "support/play.h"
#include "support/test.h"

/* %s: further members of the check, and of the workflow. */
static const char flow[] =
    "{'name':'w','provider':'sim','max_movements':9,%s 'movements':["
    "{'name':'work','edit':true,'rules':[{'condition':'done','next':'check'}]},"
    "{'name':'check','command':['make'],'evidence':true %s ,'rules':["
    "{'condition':'when(exit == 0)','next':'COMPLETE'},"
    "{'condition':'when(movement_iteration < 4)','next':'work'},"
    "{'condition':'when(true)','next':'ABORT'}]}]}";

/* Cut off behind `taken`, the check is run on the base when it is looked at. */
static bool same_but_early_run(const char *got, const char *wanted) {
  const char *early = strstr(wanted, "run ran ");
  size_t n = early ? (size_t)(early - wanted) : 0;
  return strcmp(got, wanted) == 0 || (early != NULL && strncmp(got, wanted, n) == 0 &&
                                      strcmp(got + n, early + strlen("run ran ")) == 0);
}

/* "take taken run ran look found:on", then how it ended, and what that rests on. */
static char *told(const struct play *p) {
  struct buf out = {0};
  for (size_t i = 0; i < play_lines(p); i++) {
    const json_t *record = play_record(p, i), *data = json_object_get(record, "data");
    struct str event = data_get(record, "event"), goes = data_get(data, "goes");
    if (str_eq_c(data_get(record, "type"), "evidence"))
      buf_printf(&out, STR_FMT "%s" STR_FMT " ", STR_ARG(event), goes.n > 0 ? ":" : "",
                 STR_ARG(goes));
    if (json_object_get(data, "allows") != NULL)
      buf_printf(&out, "(%s) ", json_is_true(json_object_get(data, "allows")) ? "yes" : "no");
    if (str_eq_c(data_get(record, "type"), "hidden_tests"))
      buf_puts(&out, "hidden ");
  }
  const json_t *last = play_record(p, play_lines(p) - 1);
  bool ended = str_eq_c(data_get(last, "type"), "session_end");
  struct str end = data_get(last, ended ? "outcome" : "reason"), basis = data_get(last, "basis");
  buf_printf(&out, STR_FMT "%s" STR_FMT, STR_ARG(end), basis.n > 0 ? ":" : "", STR_ARG(basis));
  return buf_take(&out);
}

/* Answers the open question, and lets the session go on. */
static void say(struct play *p, const char *word) {
  struct err err = {0};
  json_auto_t *by = data_json("{'uid':1,'name':'t'}");
  struct core_answer answer = {.text = str_from(word), .by = by};
  struct event ev = play_event(p, EVENT_ANSWER);
  if (!core_answer_settle(&p->core, &answer, p->now_ms, &err))
    fail_msg("%s: %s", p->title, err.text);
  ev.answer = &answer;
  ev.hold = true;
  play_decide(p, &ev);
  play_commit(p);
  core_answer_deinit(&answer);
  play_send_and_run(p, EVENT_RESUME, "answer", NULL);
}

TEST(what_a_check_shows_says_what_follows) {
  DATA_ROWS("core/evidence_steps/what_follows.yaml", c, title, more, check, config, script, answer,
            wanted) {
    buf_auto_t workflow = {0};
    buf_printf(&workflow, flow, c.more ? c.more : "", c.check ? c.check : "");
    for (size_t cut = 0, lines = 1; cut < lines; cut++) {
      AUTO(play_deinit) struct play p;
      play_init(&p, c.title, buf_c(&workflow), c.config, c.script);
      play_start(&p);
      for (bool crashed = cut == 0; p.pending_count > 0;) {
        play_decide_next(&p);
        size_t had = play_lines(&p);
        if (crashed || had + p.out.record_count <= cut) {
          play_commit(&p);
          continue;
        }
        crashed = true;
        play_crash(&p, cut > had ? cut - had : 0);
        play_send(&p, EVENT_RESUME, "crash", NULL);
      }
      for (int i = 0; i < 3 && c.answer != NULL && p.core.status == SESSION_STOPPED; i++)
        say(&p, c.answer);
      char_auto_t *got = told(&p);
      if (cut == 0 ? strcmp(got, c.wanted) != 0 : !same_but_early_run(got, c.wanted))
        fail_msg("%s, cut behind %zu:\n%s\nwanted\n%s", c.title, cut, got, c.wanted);
      lines = strstr(c.wanted, "hidden") ? 1 : play_lines(&p); /* those are run again */
    }
  }
}

TEST_GROUP(NULL, play_over)
