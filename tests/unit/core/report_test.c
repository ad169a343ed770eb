/* Tests how a report may be called, what stands in its file, and which step comes next. */
#include "core/report.h"

#include "core/kept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void names_are_files_without_a_folder(void **state) {
  (void)state;
  static const char *const good[] = {"plan.md", "00-plan.md", "a b", "計画.md", "x"};
  static const char *const bad[] = {"",      ".",    "..",         ".hidden", "a/b.md",
                                    "..\\x", "a\nb", "plan.",      " a.md",   "a ",
                                    "a:b",   "a*",   "/etc/passwd"};
  struct err err;
  char longest[200];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (!contract_check_name(str_from(good[i]), &err))
      fail_msg("refused: %s", good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (contract_check_name(str_from(bad[i]), &err))
      fail_msg("taken: %s", bad[i]);
  memset(longest, 'a', sizeof longest);
  assert_true(contract_check_name((struct str){longest, 128}, &err));
  assert_false(contract_check_name((struct str){longest, 129}, &err));
  assert_false(contract_check_name((struct str){"a\0b", 3}, &err));
}

static void a_file_is_the_trimmed_answer(void **state) {
  (void)state;
  struct buf content = {0};
  char sha256[SHA256_HEX], wanted[SHA256_HEX];
  contract_content(STR("\n\n # Plan\n\ntext \n"), &content);
  assert_string_equal(buf_c(&content), "# Plan\n\ntext\n");
  contract_sha256(STR("\n\n # Plan\n\ntext \n"), sha256);
  sha256_hex(content.p, content.n, NULL, 0, wanted);
  assert_string_equal(sha256, wanted);
  buf_deinit(&content);
}

struct next_case {
  const char *what;
  size_t kept;          /* reports that are there */
  struct call calls[2]; /* of the next one; report 0: not there */
  enum report_action action;
  bool fresh;
};

static const struct next_case cases[] = {
    {"the answer itself needs no call", 0, {{0}}, REPORT_KEEP, false},
    {"nobody was asked", 1, {{0}}, REPORT_ASK, false},
    {"it is under way", 1, {{.report = 2, .state = CALL_RUNNING}}, REPORT_WAIT, false},
    {"it waits for another attempt", 1, {{.report = 2, .state = CALL_WAITING}}, REPORT_WAIT, false},
    {"it is there", 1, {{.report = 2, .state = CALL_DONE}}, REPORT_KEEP, false},
    {"the conversation brought none",
     1,
     {{.report = 2, .state = CALL_FAILED, .resumed = true}},
     REPORT_ASK,
     true},
    {"nor did a new one",
     1,
     {{.report = 2, .state = CALL_FAILED, .resumed = true}, {.report = 2, .state = CALL_FAILED}},
     REPORT_FAILED,
     false},
    {"a new one was all there could be",
     1,
     {{.report = 2, .state = CALL_FAILED}},
     REPORT_FAILED,
     false},
    {"the call of another report counts for nothing",
     2,
     {{.report = 2, .state = CALL_DONE}},
     REPORT_ASK,
     false},
};

static void steps_follow_from_calls_and_reports(void **state) {
  (void)state;
  static const char *const names[] = {"answer.md", "a.md", "b.md"};
  struct contract contracts[3] = {{.is_answer = true}, {.judged = true}, {.judged = true}};
  const struct movement m = {.contracts = contracts, .contract_count = 3};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct next_case *c = &cases[i];
    struct call calls[2] = {c->calls[0], c->calls[1]};
    struct turn turn = {.phase = TURN_REPORTING};
    struct report_step step;
    for (size_t k = 0; k < c->kept; k++)
      (void)kept_put(&turn.reports, str_from(names[k]));
    if (calls[0].report > 0)
      turn.calls = &calls[0];
    if (calls[1].report > 0)
      calls[0].next = &calls[1];
    report_next(&m, &turn, &step);
    if (step.action != c->action || step.fresh != c->fresh || step.contract != &contracts[c->kept])
      fail_msg("%s", c->what);
    kept_free(&turn.reports);
  }
}

static void newer_texts_take_the_place_of_older_ones(void **state) {
  (void)state;
  struct kept_text *list = NULL, *turn = NULL;
  struct kept_text *kept = kept_put(&list, STR("a"));
  buf_puts(&kept->text, "one");
  strcpy(kept->sha256, "1");
  (void)kept_put(&list, STR("b"));
  kept = kept_put(&turn, STR("a"));
  buf_puts(&kept->text, "two");
  strcpy(kept->sha256, "2");
  kept_move(&list, &turn);
  assert_null(turn);
  assert_string_equal(buf_c(&list->text), "two");
  assert_string_equal(list->sha256, "2");
  assert_string_equal(list->before, "1");
  assert_string_equal(list->next->name, "b");
  assert_null(list->next->next);
  kept_free(&list);
  assert_null(list);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_files_without_a_folder),
      cmocka_unit_test(a_file_is_the_trimmed_answer),
      cmocka_unit_test(steps_follow_from_calls_and_reports),
      cmocka_unit_test(newer_texts_take_the_place_of_older_ones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
