/* The output of a run by a profile's rules: how bytes are cut, what counts as the answer, and what
 * class an end has. Profiles here are small ones of the test. */
#include "support/data.h"

#include "format/json_write.h"

#include "base/limits.h"
#include "base/memory.h"
#include "provider/agent/driver.h"
#include "provider/agent/replay_recording.h"
#include "provider/profile/profile.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

struct seen {
  struct buf lines; /* news as lines of JSON */
  struct call_result result;
  bool answered, gave_up;
};

static void on_news(void *ctx, const struct provider_news *news) {
  struct seen *s = ctx;
  json_auto_t *line = replay_news_json(news);
  char_auto_t *text = json_dump_text(line, JSON_COMPACT);
  buf_printf(&s->lines, "%s\n", text);
}

static void on_answered(void *ctx) {
  ((struct seen *)ctx)->answered = true;
}

static void on_give_up(void *ctx) {
  ((struct seen *)ctx)->gave_up = true;
}

static struct profile *profile_of(const char *text) {
  struct err_list errors = {0};
  struct profile *p = profile_load("t", "t.yaml", str_from(text), NULL, NULL, &errors);
  if (p == NULL)
    fail_msg("%d:%d: %s", errors.items[0].line, errors.items[0].column, errors.items[0].text);
  return p;
}

struct run {
  const char *out, *err;
  size_t piece; /* bytes fed at once, 0 = all */
  struct process_result process;
  bool schema;
  const char *session;  /* it goes on with */
  const json_t *before; /* tokens of that so far; or NULL */
};

static struct secrets *hidden; /* or NULL */

static void read_run(const struct profile *p, const struct run *run, struct seen *s) {
  const struct call_request request = {
      .purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT, .conversation = run->before};
  json_auto_t *schema = json_object();
  const struct agent_call call = {.request = &request,
                                  .session = run->session ? run->session : "",
                                  .new_session = "",
                                  .schema = run->schema ? schema : NULL};
  const struct driver_host host = {
      .news = on_news, .answered = on_answered, .give_up = on_give_up, .secrets = hidden, .ctx = s};
  struct str out = str_from(run->out), err = str_from(run->err);
  size_t piece = run->piece ? run->piece : out.n + 1;
  *s = (struct seen){0};
  struct driver *d = driver_exec.open(p, &call, &host);
  for (size_t at = 0; at < out.n; at += piece)
    driver_exec.output(d, 1, (struct str){out.p + at, out.n - at < piece ? out.n - at : piece});
  driver_exec.output(d, 2, err);
  buf_str(&s->result.error_text.bytes, err);
  driver_exec.end(d, &run->process, &s->result);
  driver_exec.close(d);
}

static void seen_deinit(struct seen *s) {
  buf_deinit(&s->lines);
  call_result_deinit(&s->result);
}

static const char events[] =
    "summary: t\nprogram: t\nargv: [x]\n"
    "classes: {too_much: length}\npatterns: [{match: 'c[o0]ffee', class: overloaded}]\n"
    "exits: {42: auth}\nstderr: [{match: '^retry', is: retry}]\nevents:\n"
    "  - {when: {/sid: '*'}, session: /sid}\n"
    "  - {when: {/t: d}, delta: /x}\n"
    "  - {when: {/t: c}, cumulative: /x}\n"
    "  - {when: {/t: m}, message: /x, message_id: /id}\n"
    "  - {when: {/t: list}, each: /items, where: {/k: [a, b]}, tool: {name: /n, failed: /bad}}\n"
    "  - {when: {/t: again}, retry: {reason: /why, delay_ms: /in}}\n"
    "  - {when: {/t: use}, usage: {input: [/i, /j], output: /o}}\n"
    "  - {when: {/t: e}, error: {status: /s, kind: [/k1, /k2], message: /m}}\n"
    "  - {when: {/t: ok}, text: /x, structured: /v, end: ok}\n"
    "  - {when: {/t: bad}, error: {status: /s, kind: [/k1, /k2], message: /m, log: /ref}, end: "
    "error}\n";

TEST(pieces_may_be_cut_anywhere) {
  static const char out[] = "{\"t\":\"d\",\"x\":\"h\xC3\xA9\",\"sid\":\"s\"}\r\n\n"
                            "not json\n"
                            "[{\"t\":\"d\",\"x\":\"l\"},{\"t\":\"m\",\"x\":\"h\xC3\xA9llo\"}]\n"
                            "{\"t\":\"use\",\"i\":1,\"j\":2,\"o\":3}\n"
                            "{\"t\":\"ok\"}";
  struct profile *p = profile_of(events);
  struct seen whole, cut;
  read_run(p, &(struct run){.out = out, .err = ""}, &whole);
  assert_int_equal(whole.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&whole.lines), "{\"event\":\"session\",\"id\":\"s\"}\n"
                                           "{\"event\":\"text\",\"text\":\"h\xC3\xA9\"}\n"
                                           "{\"event\":\"text\",\"text\":\"l\"}\n"
                                           "{\"event\":\"text\",\"text\":\"lo\"}\n"
                                           "{\"event\":\"usage\",\"input\":3,\"output\":3}\n");
  assert_string_equal(buf_c(&whole.result.text.bytes), "h\xC3\xA9llo");
  assert_non_null(strstr(whole.result.note, "1 line of its output was no JSON"));
  assert_true(whole.answered);
  for (size_t piece = 1; piece < 9; piece++) {
    read_run(p, &(struct run){.out = out, .err = "", .piece = piece}, &cut);
    assert_string_equal(buf_c(&cut.lines), buf_c(&whole.lines));
    assert_string_equal(buf_c(&cut.result.text.bytes), buf_c(&whole.result.text.bytes));
    seen_deinit(&cut);
  }
  seen_deinit(&whole);
  profile_free(p);
}

TEST(numbers_that_are_too_large_are_left_out) {
  struct profile *p = profile_of(events);
  AUTO(seen_deinit) struct seen s;
  read_run(p,
           &(struct run){.out = "{\"t\":\"again\",\"why\":\"a\",\"in\":12.7}\n"
                                "{\"t\":\"again\",\"why\":\"b\",\"in\":1e300}\n{\"t\":\"ok\"}",
                         .err = ""},
           &s);
  assert_non_null(strstr(buf_c(&s.lines), "\"delay_ms\":12"));
  assert_null(strstr(buf_c(&s.lines), "\"delay_ms\":-"));
  profile_free(p);
}

TEST(the_text_is_the_last_message_or_all) {
  static const char out[] = "{\"t\":\"m\",\"x\":\"one\",\"id\":\"1\"}\n"
                            "{\"t\":\"m\",\"x\":\"two \",\"id\":\"2\"}\n"
                            "{\"t\":\"m\",\"x\":\"parts\",\"id\":\"2\"}\n"
                            "{\"t\":\"ok\"}\n";
  struct profile *last = profile_of(events);
  buf_auto_t text = {0};
  struct seen s;
  buf_printf(&text, "text: all\n%s", events);
  struct profile *all = profile_of(buf_c(&text));
  read_run(last, &(struct run){.out = out, .err = ""}, &s);
  assert_string_equal(buf_c(&s.result.text.bytes), "two parts");
  seen_deinit(&s);
  read_run(all, &(struct run){.out = out, .err = ""}, &s);
  assert_string_equal(buf_c(&s.result.text.bytes), "one\n\ntwo parts");
  seen_deinit(&s);
  profile_free(last);
  profile_free(all);
}

TEST(a_growing_message_is_told_once) {
  struct profile *p = profile_of(events);
  AUTO(seen_deinit) struct seen s;
  read_run(p,
           &(struct run){.out = "{\"t\":\"c\",\"x\":\"a\"}\n{\"t\":\"c\",\"x\":\"ab\"}\n"
                                "{\"t\":\"c\",\"x\":\"ab\"}\n{\"t\":\"m\",\"x\":\"abc\"}\n"
                                "{\"t\":\"c\",\"x\":\"z\"}\n{\"t\":\"ok\"}\n",
                         .err = ""},
           &s);
  assert_string_equal(buf_c(&s.lines), "{\"event\":\"text\",\"text\":\"a\"}\n"
                                       "{\"event\":\"text\",\"text\":\"b\"}\n"
                                       "{\"event\":\"text\",\"text\":\"c\"}\n"
                                       "{\"event\":\"text\",\"text\":\"z\"}\n");
  profile_free(p);
}

TEST(a_message_that_comes_again_is_one) {
  struct profile *p = profile_of(events);
  AUTO(seen_deinit) struct seen s;
  read_run(p,
           &(struct run){.out = "{\"t\":\"d\",\"x\":\"hal\"}\n"
                                "{\"t\":\"again\",\"why\":\"try 2/5: status 503\"}\n"
                                "{\"t\":\"d\",\"x\":\"half \"}\n{\"t\":\"d\",\"x\":\"whole\"}\n"
                                "{\"t\":\"ok\"}\n",
                         .err = ""},
           &s);
  assert_string_equal(buf_c(&s.result.text.bytes), "half whole");
  assert_non_null(strstr(buf_c(&s.lines), "{\"event\":\"retry\",\"attempt\":2,\"of\":5,"
                                          "\"status\":503,"));
  profile_free(p);
}

TEST(items_are_looked_at_one_by_one) {
  struct profile *p = profile_of(events);
  AUTO(seen_deinit) struct seen s;
  read_run(p,
           &(struct run){.out = "{\"t\":\"list\",\"items\":[{\"k\":\"a\",\"n\":\"x\"},{\"k\":\"c\","
                                "\"n\":\"y\"},{\"k\":\"b\",\"n\":\"z\",\"bad\":true}]}\n"
                                "{\"t\":\"list\",\"items\":7}\n{\"t\":\"list\"}\n",
                         .err = ""},
           &s);
  assert_string_equal(buf_c(&s.lines), "{\"event\":\"tool\",\"name\":\"x\",\"failed\":false}\n"
                                       "{\"event\":\"tool\",\"name\":\"z\",\"failed\":true}\n");
  profile_free(p);
}

/* --- the end --- */

TEST(ends_have_classes_by_evidence) {
  struct profile *p = profile_of(events);
  DATA_ROWS("provider/agent/stream/ends_have_classes_by_evidence.yaml", c, name, out, err, why,
            exit, signal, class) {
    AUTO(seen_deinit) struct seen s;
    read_run(
        p,
        &(struct run){
            .out = c.out,
            .err = c.err,
            .process =
                {.why = data_among(
                     c.why,
                     "exited exec_failed spawn_failed wall_limit stall_limit cancelled shim_lost"),
                 .exit_code = (int)data_number(c.exit),
                 .signal = (int)data_number(c.signal)}},
        &s);
    if (s.result.class != data_class(c.class))
      fail_msg("%s: %s: %s", c.name, error_class_name(s.result.class), s.result.message);
    assert_true((s.result.class == CLASS_NONE) == (s.result.message[0] == '\0'));
  }
  profile_free(p);
}

TEST(an_error_is_told_in_the_logs_words) {
  struct profile *p = profile_of(events);
  AUTO(seen_deinit) struct seen s;
  read_run(p,
           &(struct run){.out = "{\"t\":\"bad\",\"m\":\"see the log\",\"ref\":\"e7\"}",
                         .err = "t=1 ref=e7 error=\"No: \\\"a b\\\"\\n\" cause=\"No\"\n",
                         .process = {.exit_code = 1}},
           &s);
  assert_int_equal(s.result.class, CLASS_CRASHED);
  assert_string_equal(s.result.message, "No: \"a b\"");
  profile_free(p);
}

TEST(an_error_says_when_to_come_back) {
  struct profile *p = profile_of(events);
  AUTO(seen_deinit) struct seen s;
  read_run(
      p,
      &(struct run){.out = "{\"t\":\"bad\",\"s\":429,\"m\":\"\\u001b[31mslow down\\n try again in "
                           "2s\"}",
                    .err = "",
                    .process = {.exit_code = 1}},
      &s);
  assert_int_equal(s.result.retry_after_ms, 2000);
  assert_string_equal(s.result.message, "slow down try again in 2s"); /* one line, no escapes */
  profile_free(p);
}

TEST(a_claimed_value_is_passed_on) {
  struct profile *codex, *p = profile_of(events);
  buf_auto_t text = {0};
  struct seen s;
  read_run(p, &(struct run){.out = "{\"t\":\"ok\",\"v\":[1]}", .err = "", .schema = true}, &s);
  assert_true(json_is_array(s.result.structured));
  seen_deinit(&s);
  buf_printf(&text, "schema: {by: text, value: text}\nargv: ['{schema}']\n%s",
             strstr(events, "summary"));
  char *argv = strstr(text.p, "argv: [x]");
  memset(argv, ' ', 8); /* the one above stands instead: a line of spaces and a comment */
  argv[8] = '#';
  codex = profile_of(buf_c(&text));
  read_run(codex,
           &(struct run){.out = "{\"t\":\"m\",\"x\":\" {\\\"a\\\":1} \"}\n{\"t\":\"ok\"}",
                         .err = "",
                         .schema = true},
           &s);
  assert_int_equal(json_integer_value(json_object_get(s.result.structured, "a")), 1);
  seen_deinit(&s);
  read_run(codex,
           &(struct run){.out = "{\"t\":\"m\",\"x\":\"{\\\"a\\\":1}\"}\n{\"t\":\"ok\"}", .err = ""},
           &s);
  assert_null(s.result.structured); /* nobody asked for one */
  seen_deinit(&s);
  read_run(codex,
           &(struct run){
               .out = "{\"t\":\"m\",\"x\":\"prose {\"}\n{\"t\":\"ok\"}", .err = "", .schema = true},
           &s);
  assert_null(s.result.structured);
  seen_deinit(&s);
  profile_free(codex);
  profile_free(p);
}

TEST(text_is_taken_as_it_is) {
  struct profile *p = profile_of("summary: t\nprogram: t\nargv: [x]\noutput: text\n");
  struct seen s;
  read_run(p, &(struct run){.out = "a\n\n  b \nno newline", .err = "", .piece = 3}, &s);
  assert_int_equal(s.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&s.result.text.bytes), "a\n\n  b \nno newline");
  seen_deinit(&s);
  read_run(p, &(struct run){.out = "\x1b[32m[WORK:1]\x1b[0m\n\x1b[1mend", .err = ""}, &s);
  assert_string_equal(buf_c(&s.result.text.bytes), "[WORK:1]\nend");
  seen_deinit(&s);
  read_run(p, &(struct run){.out = " \n", .err = ""}, &s);
  assert_int_equal(s.result.class, CLASS_PROTOCOL);
  assert_non_null(strstr(s.result.message, "without an answer"));
  seen_deinit(&s);
  read_run(p,
           &(struct run){.out = "whole\n",
                         .err = "",
                         .process = {.exit_code = -1, .signal = 15, .ended_early = true}},
           &s);
  assert_int_equal(s.result.class, CLASS_NONE); /* it had closed its output */
  assert_non_null(strstr(s.result.note, "closed its output"));
  seen_deinit(&s);
  read_run(p, &(struct run){.out = "half", .err = "boom\n", .process = {.exit_code = 3}}, &s);
  assert_int_equal(s.result.class, CLASS_CRASHED);
  assert_string_equal(buf_c(&s.result.text.bytes), "half");
  assert_non_null(strstr(s.result.message, "boom"));
  seen_deinit(&s);
  profile_free(p);
}

TEST(what_only_a_terminal_reads_costs_no_line) {
  static const char *const lines[] = {
      "\x1b[2K\x1b[1G%s\x1b[0m\n",                            /* CSI around it */
      "\x1b]0;agent\a%s\x1b]133;D;0\x1b\\\n",                 /* OSC, ended by BEL and by ST */
      "\xEF\xBB\xBF%s\r\n",                                   /* a byte order mark */
      "\x1b[?25l\x1b(B\x1b[32mthinking\r\x1b[K%s\x1b[?25h\n", /* a progress line written over */
      "\a\b%s\a\n",
      "\x1b]%s\n", /* a sequence that does not end */
  };
  struct profile *p = profile_of(events);
  for (size_t i = 0; i < ARRAY_LEN(lines); i++)
    for (size_t piece = 0; piece < 4; piece++) {
      buf_auto_t out = {0};
      AUTO(seen_deinit) struct seen s;
      const char *mark = strstr(lines[i], "%s");
      buf_append(&out, lines[i], (size_t)(mark - lines[i]));
      buf_printf(&out, "{\"t\":\"ok\",\"x\":\"a \\u001b[1mb [c]\"}%s", mark + 2);
      read_run(p, &(struct run){.out = buf_c(&out), .err = "", .piece = piece}, &s);
      if (s.result.class != CLASS_NONE)
        fail_msg("case %zu: %s", i, s.result.message);
      assert_string_equal(buf_c(&s.result.text.bytes), "a \x1b[1mb [c]"); /* what it says stays */
      assert_string_equal(s.result.note, "");
    }
  profile_free(p);
}

/* Over two events, two lines of text, the pieces of a long one, or behind JSON's escapes. */
TEST(a_value_never_gets_through) {
  static const char *const outs[] = {
      "{\"t\":\"d\",\"x\":\"a sk-test/\"}\n{\"t\":\"d\",\"x\":\"12345 b\"}\n{\"t\":\"ok\"}\n",
      "{\"t\":\"d\",\"x\":\"a sk-test\\/\"}\n{\"t\":\"m\",\"x\":\"a sk-test/12345 "
      "b\"}\n{\"t\":\"ok\"}\n",
      "{\"t\":\"c\",\"x\":\"a sk-te\"}\n{\"t\":\"c\",\"x\":\"a sk-test/12345\"}\n"
      "{\"t\":\"c\",\"x\":\"a sk-test/12345 b\"}\n{\"t\":\"ok\"}\n",
      "{\"t\":\"ok\",\"x\":\"a sk-test\\/12345 b\"}\n",
      "{\"t\":\"ok\",\"x\":\"a s\\u006b-test\\u002f12345 b\"}\n",
  };
  struct profile *p = profile_of(events);
  struct seen s;
  hidden = secrets_new();
  secrets_add(hidden, "STREAM_TEST_KEY", STR("sk-test/12345"));
  for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++) {
    read_run(p, &(struct run){.out = outs[i], .err = ""}, &s);
    assert_string_equal(buf_c(&s.result.text.bytes), "a \xC2\xABsecret:STREAM_TEST_KEY\xC2\xBB b");
    assert_null(strstr(buf_c(&s.lines), "sk-te"));
    seen_deinit(&s);
  }
  read_run(p, &(struct run){.out = "{\"t\":\"d\",\"x\":\"an s\"}\n{\"t\":\"ok\"}", .err = ""}, &s);
  assert_string_equal(buf_c(&s.result.text.bytes), "an s");
  seen_deinit(&s);
  profile_free(p);
  p = profile_of("summary: t\nprogram: t\nargv: [x]\noutput: text\n");
  struct buf text = {0};
  for (size_t i = 0; i < LIMIT_PIPE_PIECE_BYTES - 5; i++)
    buf_putc(&text, 'x');
  buf_puts(&text, "sk-test/12345 b");
  for (size_t piece = LIMIT_PIPE_PIECE_BYTES; piece > 1024; piece /= 2) {
    read_run(p, &(struct run){.out = buf_c(&text), .err = "", .piece = piece}, &s);
    assert_null(strstr(buf_c(&s.result.text.bytes), "sk-te"));
    assert_non_null(strstr(buf_c(&s.result.text.bytes), "STREAM_TEST_KEY\xC2\xBB b"));
    seen_deinit(&s);
  }
  buf_deinit(&text);
  profile_free(p);
  secrets_free(hidden);
  hidden = NULL;
}

/* A text without lines is told in pieces, which may end anywhere. */
TEST(escapes_go_from_a_text_without_lines) {
  struct profile *p = profile_of("summary: t\nprogram: t\nargv: [x]\noutput: text\n");
  for (size_t before = LIMIT_PIPE_PIECE_BYTES - 12; before < LIMIT_PIPE_PIECE_BYTES; before++) {
    buf_auto_t text = {0}, wanted = {0};
    AUTO(seen_deinit) struct seen s;
    for (size_t i = 0; i < before; i++)
      buf_putc(&wanted, 'x');
    buf_printf(&text, "%s\033[31m\xC3\xA9\033[0m!", buf_c(&wanted));
    buf_puts(&wanted, "\xC3\xA9!");
    read_run(p, &(struct run){.out = buf_c(&text), .err = "", .piece = 1024}, &s);
    assert_true(str_eq(buf_view(&s.result.text.bytes), buf_view(&wanted)));
  }
  profile_free(p);
}

TEST(bytes_that_are_no_text_cost_no_line) {
  struct profile *p = profile_of(events);
  AUTO(seen_deinit) struct seen s;
  read_run(p, &(struct run){.out = "{\"t\":\"ok\",\"x\":\"caf\xE9 \xE2\x82\"}\n", .err = ""}, &s);
  assert_int_equal(s.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&s.result.text.bytes), "caf\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD");
  profile_free(p);
}

TEST(without_a_final_event_the_exit_is_the_end) {
  static const char text[] = "summary: t\nprogram: t\nargv: [x]\nevents:\n"
                             "  - {when: {/t: d}, delta: /x}\n"
                             "  - {when: {/t: e}, error: {message: /m}, end: error}\n";
  static const char out[] = "{\"t\":\"d\",\"x\":\"hello\"}\n";
  struct profile *p = profile_of(text);
  buf_auto_t strict = {0};
  struct seen s;
  read_run(p, &(struct run){.out = out, .err = ""}, &s);
  assert_int_equal(s.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&s.result.text.bytes), "hello");
  seen_deinit(&s);
  read_run(p, &(struct run){.out = out, .err = "", .process = {.exit_code = 1}}, &s);
  assert_int_equal(s.result.class, CLASS_CRASHED);
  seen_deinit(&s);
  profile_free(p);
  buf_printf(&strict, "ends: event\n%s", text);
  p = profile_of(buf_c(&strict));
  read_run(p, &(struct run){.out = out, .err = ""}, &s);
  assert_int_equal(s.result.class, CLASS_PROTOCOL);
  seen_deinit(&s);
  profile_free(p);
}

TEST(a_client_that_only_tries_again_is_given_up) {
  static const char again[] = "{\"t\":\"again\",\"why\":\"status 429\"}\n",
                    text[] = "{\"t\":\"d\",\"x\":\"y\"}\n";
  buf_auto_t profile = {0}, out = {0};
  struct seen s;
  buf_printf(&profile, "client_retries: 1\n%s", events);
  struct profile *p = profile_of(buf_c(&profile));
  buf_printf(&out, "%s%s%s%s", again, text, again, text); /* each try went well in the end */
  read_run(p, &(struct run){.out = buf_c(&out), .err = ""}, &s);
  assert_false(s.gave_up);
  seen_deinit(&s);
  buf_clear(&out);
  buf_printf(&out, "%s%s%s", text, again, again);
  read_run(p,
           &(struct run){.out = buf_c(&out),
                         .err = "",
                         .process = {.exit_code = -1, .signal = 15, .ended_early = true}},
           &s);
  assert_true(s.gave_up);
  assert_int_equal(s.result.class, CLASS_RATE_LIMIT);
  seen_deinit(&s);
  read_run(p, &(struct run){.out = text, .err = "retry 1: status 503\nretry 2: status 503\n"}, &s);
  assert_true(s.gave_up); /* stderr counts, too */
  seen_deinit(&s);
  read_run(p, &(struct run){.out = text, .err = "retry 1\nretry 2\nretry 3\n"}, &s);
  assert_false(s.gave_up); /* its last word may say why */
  seen_deinit(&s);
  profile_free(p);
}

TEST(a_sum_is_no_usage_of_one_call) {
  struct profile *p = profile_of("summary: t\nprogram: t\nargv: [x]\nevents:\n"
                                 "  - {when: {/t: ok}, text: /x, end: ok,\n"
                                 "     usage: {of: conversation, input: /i, output: /o}}\n");
  struct run run = {.out = "{\"t\":\"ok\",\"x\":\"y\",\"i\":30,\"o\":4}\n", .err = ""};
  struct seen s;
  read_run(p, &run, &s);
  assert_int_equal(json_integer_value(json_object_get(s.result.usage, "input")), 30);
  seen_deinit(&s);
  run.session = "s-1";
  read_run(p, &run, &s);
  assert_string_equal(json_string_value(json_object_get(s.result.usage, "told")), "none");
  assert_null(json_object_get(s.result.usage, "input"));
  seen_deinit(&s);
  json_auto_t *before = json_pack("{si si}", "input", 20, "output", 3);
  run.before = before;
  read_run(p, &run, &s);
  assert_int_equal(json_integer_value(json_object_get(s.result.usage, "input")), 10);
  assert_int_equal(json_integer_value(json_object_get(s.result.usage, "output")), 1);
  assert_null(json_object_get(s.result.usage, "told"));
  seen_deinit(&s);
  json_object_set_new(before, "input", json_integer(31)); /* it was begun anew behind our back */
  read_run(p, &run, &s);
  assert_string_equal(json_string_value(json_object_get(s.result.usage, "told")), "none");
  seen_deinit(&s);
  profile_free(p);
}

/* Versions of a client tell the cost of the conversation or of the call: the tokens show which. */
TEST(a_cost_is_of_the_conversation_or_of_the_call) {
  static const struct {
    const char *what, *before, *out;
    double cost;
  } cases[] = {
      {"a new conversation", NULL, "{'t':'r','i':10,'o':2,'c':3,'I':15,'O':2}", 3},
      {"the sum", "{'input':15,'output':2,'cost_usd':3}",
       "{'t':'r','i':10,'o':2,'c':5,'I':25,'O':4}", 2},
      {"the sum, with agents below", "{'input':15,'output':2,'cost_usd':3}",
       "{'t':'r','i':10,'o':2,'c':9,'I':75,'O':14}", 6},
      {"the call's", "{'input':15,'output':2,'cost_usd':3}",
       "{'t':'r','i':20,'o':5,'c':4,'I':20,'O':5}", 4},
      {"the call's, with agents below", "{'input':15,'output':2,'cost_usd':3}",
       "{'t':'r','i':20,'o':5,'c':5,'I':30,'O':6}", 5},
      {"more output than the call can have", "{'input':15,'output':9,'cost_usd':3}",
       "{'t':'r','i':10,'o':2,'c':5,'I':90,'O':8}", 5},
      {"less than before", "{'input':15,'output':2,'cost_usd':3}",
       "{'t':'r','i':10,'o':2,'c':2,'I':25,'O':4}", 2},
      {"a call that used nothing", "{'input':15,'output':2,'cost_usd':3}",
       "{'t':'r','i':0,'o':0,'c':3,'I':15,'O':2}", 0},
      {"not known before", NULL, "{'t':'r','i':10,'o':2,'c':5,'I':25,'O':4}", 5},
      {"an older log, the sum", "{'cost_usd':3}", "{'t':'r','i':10,'o':2,'c':5,'I':25,'O':4}", 2},
      {"an older log, the call's", "{'cost_usd':3}", "{'t':'r','i':10,'o':2,'c':5,'I':10,'O':2}",
       5},
      {"no tokens, the sum", "{'input':100,'output':0,'cost_usd':1}",
       "{'t':'r','i':300,'o':0,'c':4}", 3},
      {"no tokens, the call's", "{'input':100,'output':0,'cost_usd':1}",
       "{'t':'r','i':300,'o':0,'c':3}", 3},
      {"no tokens, a cheap cache", "{'input':1000,'output':0,'cost_usd':1}",
       "{'t':'r','i':1500,'k':1400,'o':0,'c':1.25}", 0.25},
      {"two turns of a call", "{'input':15,'output':2,'cost_usd':3}",
       "{'t':'r','i':4,'o':1,'c':4,'I':19,'O':3}\n{'t':'r','i':6,'o':1,'c':5,'I':25,'O':4}", 2},
      {"the second tells no cost", NULL,
       "{'t':'r','i':4,'o':1,'c':4,'I':19,'O':3}\n{'t':'r','i':6,'o':1}", 4},
  };
  struct profile *p =
      profile_of("summary: t\nprogram: t\nargv: [x]\nevents:\n"
                 "  - {when: {/t: r}, text: /t, end: ok, usage: {of: turn, input: /i, output: /o,\n"
                 "     cached: /k, cost: /c, all_input: /I, all_output: /O}}\n");
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *before = cases[i].before ? data_json(cases[i].before) : NULL;
    char out[400];
    AUTO(seen_deinit) struct seen s;
    print_into(out, sizeof out, "%s\n", cases[i].out);
    for (char *c = out; *c != '\0'; c++)
      *c = *c == '\'' ? '"' : *c;
    read_run(p, &(struct run){.out = out, .err = "", .session = "s-1", .before = before}, &s);
    double cost = json_number_value(json_object_get(s.result.usage, "cost_usd"));
    if (cost < cases[i].cost - 1e-9 || cost > cases[i].cost + 1e-9)
      fail_msg("%s: %f", cases[i].what, cost);
    const json_t *total = json_object_get(s.result.usage, "total");
    assert_true(json_is_number(json_object_get(total, "cost_usd")));
    assert_true(json_is_integer(json_object_get(total, "input")));
  }
  profile_free(p);
}

TEST(an_answer_of_reasoning_alone_is_none) {
  struct profile *p = profile_of("summary: t\nprogram: t\nargv: [x]\nempty: refused\nevents:\n"
                                 "  - {when: {/t: think}, thinking: /x}\n"
                                 "  - {when: {/t: ok}, end: ok}\n");
  struct run run = {.out = "{\"t\":\"think\",\"x\":\"hm\"}\n{\"t\":\"ok\"}\n", .err = ""};
  struct seen s;
  read_run(p, &run, &s);
  assert_int_equal(s.result.class, CLASS_PROTOCOL);
  seen_deinit(&s);
  run.out = "{\"t\":\"ok\"}\n";
  read_run(p, &run, &s);
  assert_int_equal(s.result.class, CLASS_REFUSED);
  seen_deinit(&s);
  profile_free(p);
}

TEST(a_client_that_asks_without_end_is_ended) {
  struct profile *p = profile_of("summary: t\nprogram: t\nargv: [x]\nmax_requests: 3\nevents:\n"
                                 "  - {when: {/t: step}, usage: {of: request, input: /i}}\n"
                                 "  - {when: {/t: ok}, text: /x, end: ok}\n");
  buf_auto_t out = {0};
  struct seen s;
  for (int i = 0; i < 3; i++) {
    struct run run = {.err = ""};
    buf_puts(&out, "{\"t\":\"step\",\"i\":1}\n");
    run.out = buf_c(&out);
    read_run(p, &run, &s);
    assert_int_equal(s.gave_up, i == 2);
    assert_int_equal(s.result.class, i == 2 ? CLASS_LENGTH : CLASS_PROTOCOL);
    seen_deinit(&s);
  }
  profile_free(p);
}

TEST(requests_are_added_up) {
  struct profile *p =
      profile_of("summary: t\nprogram: t\nargv: [x]\nevents:\n"
                 "  - {when: {/t: step}, usage: {of: request, input: /i, output: /o,"
                 " cost: /c, reasoning: /r}}\n"
                 "  - {when: {/t: ok}, text: /x, end: ok}\n");
  struct run run = {.out = "{\"t\":\"step\",\"i\":1011,\"o\":7,\"c\":0.25,\"r\":2}\n"
                           "{\"t\":\"step\",\"i\":1011,\"o\":7,\"c\":0.5,\"r\":3}\n"
                           "{\"t\":\"ok\",\"x\":\"y\"}\n",
                    .err = ""};
  AUTO(seen_deinit) struct seen s;
  read_run(p, &run, &s);
  assert_int_equal(json_integer_value(json_object_get(s.result.usage, "input")), 2022);
  assert_int_equal(json_integer_value(json_object_get(s.result.usage, "reasoning")), 5);
  assert_true(json_number_value(json_object_get(s.result.usage, "cost_usd")) == 0.75);
  profile_free(p);
}

/* One client's numbers cover different things: tokens of a request, the money of its conversation,
 * what came from a cache of the call, thinking of its process. */
TEST(each_number_covers_what_it_covers) {
  struct profile *p = profile_of(
      "summary: t\nprogram: t\nargv: [x]\nevents:\n"
      "  - {when: {/t: step}, usage: {input: /i, output: /o, cached: /k, reasoning: /r, cost: /c,\n"
      "     of: {input: request, output: request, reasoning: process, cost: conversation}}}\n"
      "  - {when: {/t: ok}, text: /x, end: ok}\n");
  struct run run = {.out = "{\"t\":\"step\",\"i\":100,\"o\":7,\"k\":9,\"r\":2,\"c\":1.25}\n"
                           "{\"t\":\"step\",\"i\":50,\"o\":3,\"k\":40,\"r\":3,\"c\":1.5}\n"
                           "{\"t\":\"ok\",\"x\":\"y\"}\n",
                    .err = ""};
  static const struct {
    const char *before; /* NULL: a new conversation */
    double cost;        /* below 0: not known */
  } cases[] = {
      {NULL, 1.5}, {"{\"cost_usd\":1.0}", 0.5}, {"{\"input\":5}", -1}, {"{\"cost_usd\":2}", -1}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    json_auto_t *before = cases[i].before ? json_loads(cases[i].before, 0, NULL) : NULL;
    run.session = before != NULL ? "s-1" : NULL;
    run.before = before;
    struct seen s;
    read_run(p, &run, &s);
    const json_t *usage = s.result.usage, *cost = json_object_get(usage, "cost_usd");
    assert_int_equal(json_integer_value(json_object_get(usage, "input")), 150);
    assert_int_equal(json_integer_value(json_object_get(usage, "output")), 10);
    assert_int_equal(json_integer_value(json_object_get(usage, "cached")), 40);
    assert_int_equal(json_integer_value(json_object_get(usage, "reasoning")), 3);
    assert_true((cost == NULL) == (cases[i].cost < 0));
    assert_true(cost == NULL || json_number_value(cost) == cases[i].cost);
    assert_true((json_object_get(usage, "told") != NULL) == (cost == NULL));
    assert_true(json_number_value(json_object_get(json_object_get(usage, "total"), "cost_usd")) ==
                1.5); /* what was told */
    seen_deinit(&s);
  }
  profile_free(p);
}

TEST(stderr_says_when_to_come_back) {
  static const struct {
    const char *err;
    int64_t ms;
  } cases[] = {
      {"Error: 429 Too Many Requests, retry after 1 s\n", 1000},
      {"429 rate limit reached. Please try again in 6m1.5s.\n", 361500},
      {"429 rate limit: retry after 30 2 more\n", 30000},
      {"429 rate limit\n", 0},
  };
  struct profile *p = profile_of("summary: t\nprogram: t\nargv: [x]\noutput: text\n");
  struct seen s;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    read_run(p, &(struct run){.out = "", .err = cases[i].err, .process = {.exit_code = 1}}, &s);
    assert_int_equal(s.result.class, CLASS_RATE_LIMIT);
    assert_int_equal(s.result.retry_after_ms, cases[i].ms);
    seen_deinit(&s);
  }
  profile_free(p);
}
