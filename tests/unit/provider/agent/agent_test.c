/* Agents that behave and misbehave, as small programs under the shim: what comes of a call, and
 * that nothing of it is left. */

#include "base/limits.h"
#include "provider/agent/agent.h"
#include "provider/profile/profile.h"
#include "support/call_bed.h"
#include "support/data.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE SEGUE_BUILD_DIR "/helpers/fake_agent"

struct fixture {
  struct call_bed bed;
  struct profiles *profiles;
  struct provider provider;
  struct provider_run *run;
  struct buf texts; /* NEWS_TEXT, joined */
  struct buf news;  /* the kinds of the others, a letter each */
  struct buf note;  /* the last note's text */
  bool cancel_at_text, cancel_at_note;
};

static int setup(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  struct err_list errors = {0};
  call_bed_init(&f->bed);
  f->profiles = profiles_load(NULL, &errors);
  assert_non_null(f->profiles);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  json_decref((json_t *)f->provider.settings);
  profiles_free(f->profiles);
  buf_deinit(&f->texts);
  buf_deinit(&f->news);
  buf_deinit(&f->note);
  call_bed_deinit(&f->bed);
  free(f);
  return 0;
}

static void on_news(void *ctx, const struct provider_news *news) {
  struct fixture *f = ctx;
  if (news->kind != NEWS_TEXT) {
    buf_putc(&f->news, provider_news_name(news->kind)[0]);
    if (news->kind == NEWS_NOTE)
      buf_set(&f->note, str_from(json_string_value(json_object_get(news->data, "text"))));
    if (f->cancel_at_note)
      f->provider.ops->cancel(f->run);
    return;
  }
  if (f->texts.n < 4096)
    buf_str(&f->texts, news->text);
  if (f->cancel_at_text)
    f->provider.ops->cancel(f->run);
}

static void on_done(void *ctx, struct call_result *result) {
  struct fixture *f = ctx;
  call_bed_done(&f->bed, result);
}

static const struct provider_sink *sink_of(struct fixture *f) {
  static struct provider_sink sink;
  sink = (struct provider_sink){on_news, on_done, f};
  return &sink;
}

/* A call to the profile `name` whose program is what `settings` says (JSON with ' for "). */
static void call(struct fixture *f, const char *name, const char *settings,
                 const struct call_request *request) {
  json_decref((json_t *)f->provider.settings);
  f->provider = provider_of_profile(profiles_find(f->profiles, str_from(name)));
  f->provider.settings = data_json(settings);
  f->run = f->provider.ops->start(&f->provider, &f->bed.env, request, sink_of(f));
  assert_non_null(f->run);
  call_bed_run(&f->bed);
}

static struct call_request plain(void) {
  return (struct call_request){.session = "0190f0f0-0000-7000-8000-000000000000",
                               .turn = 1,
                               .call = 7,
                               .attempt = 1,
                               .purpose = PURPOSE_EXECUTE,
                               .stage = STAGE_COUNT,
                               .prompt = STR("Say something.\n"),
                               .edit = true,
                               .permission = PERMISSION_EDIT,
                               .timeout_ms = 600000};
}

/* A shell script as an agent of the jsonl profile. */
static void script(struct fixture *f, const char *more, const char *text) {
  char path[512], settings[1024];
  struct call_request request = plain();
  snprintf(path, sizeof path, "%s/agent.sh", f->bed.dir);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%s\n", text);
  assert_int_equal(fclose(file), 0);
  snprintf(settings, sizeof settings, "{'program': ['/bin/sh', '%s']%s}", path, more);
  call(f, "jsonl", settings, &request);
}

TEST_ON(struct fixture *f, setup, teardown, an_answer_comes_in_pieces) {
  script(f, "",
         "read line\n"
         "echo '{\"event\":\"session\",\"id\":\"s-1\"}'\n"
         "echo '{\"event\":\"text\",\"text\":\"You said: \"}'\n"
         "printf '{\"event\":\"text\",\"text\":\"%s\"}\\n' \"$line\"\n"
         "echo '{\"event\":\"tool\",\"name\":\"sh\",\"state\":\"start\"}'\n"
         "echo '{\"event\":\"usage\",\"input\":3,\"output\":4}'\n"
         "echo '{\"event\":\"end\",\"class\":\"ok\",\"structured\":{\"a\":1}}'\n");
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "You said: Say something.");
  assert_string_equal(buf_c(&f->texts), "You said: Say something.");
  assert_string_equal(buf_c(&f->news), "stu"); /* session, tool, usage */
  assert_string_equal(f->bed.result.provider_session, "s-1");
  assert_int_equal(json_integer_value(json_object_get(f->bed.result.usage, "output")), 4);
  assert_int_equal(json_integer_value(json_object_get(f->bed.result.structured, "a")), 1);
  assert_null(f->bed.result.enforced);
}

/* A shell script as an agent that speaks ACP: `text` is what follows its prompt. */
static void acp_script(struct fixture *f, const char *text) {
  char path[512], settings[1024];
  struct call_request request = plain();
  snprintf(path, sizeof path, "%s/acp.sh", f->bed.dir);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file,
          "read line\n"
          "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}'\n"
          "read line\n"
          "echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"sessionId\":\"s-1\"}}'\n"
          "read prompt\n"
          "echo '{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"update\":"
          "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"text\":\"hello\"}}}}'\n"
          "%s\n",
          text);
  assert_int_equal(fclose(file), 0);
  snprintf(settings, sizeof settings, "{'program': ['/bin/sh', '%s']}", path);
  call(f, "acp", settings, &request);
}

TEST_ON(struct fixture *f, setup, teardown, a_protocol_is_spoken) {
  acp_script(f, "case $prompt in *'Say something.'*) ;; *) exit 3;; esac\n"
                "echo '{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}'\n"
                "read line || exit 0\n"
                "exit 4");
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "hello");
  assert_string_equal(f->bed.result.provider_session, "s-1");
  assert_string_equal(f->bed.result.note, ""); /* its stdin ended, so it left with 0 */
}

TEST_ON(struct fixture *f, setup, teardown, a_cancel_is_said_in_the_protocol) {
  f->cancel_at_text = true;
  acp_script(f, "read line\n"
                "case $line in *session/cancel*) ;; *) exit 3;; esac\n"
                "echo '{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"cancelled\"}}'\n"
                "read line || exit 0\n"
                "sleep 1000");
  assert_int_equal(f->bed.result.class, CLASS_CANCELLED);
  assert_true(f->bed.result.duration_ms < LIMIT_AGENT_INTERRUPT_MS);
}

TEST_ON(struct fixture *f, setup, teardown, one_that_does_not_hear_a_cancel_is_ended) {
  f->cancel_at_text = true;
  acp_script(f, "while read line; do :; done\n"); /* the end of its stdin it hears */
  assert_int_equal(f->bed.result.class, CLASS_CANCELLED);
  assert_in_range(f->bed.result.duration_ms, LIMIT_AGENT_INTERRUPT_MS / 2, 60000);
}

TEST_ON(struct fixture *f, setup, teardown, one_that_leaves_in_the_middle_has_not_answered) {
  acp_script(f, "exit 0");
  assert_int_equal(f->bed.result.class, CLASS_PROTOCOL);
}

TEST_ON(struct fixture *f, setup, teardown, it_has_its_own_folder_and_environment) {
  assert_int_equal(setenv("OTHER_API_KEY", "sk-of-somebody-else", 1), 0);
  script(f, ", 'env': ['MY_TOKEN'], 'set': {'MODE': 'quiet'}",
         "[ -d \"$TMPDIR\" ] && [ -w \"$TMPDIR\" ] && t=own\n"
         "touch \"$TMPDIR/litter\"\n"
         "echo \"{\\\"event\\\":\\\"text\\\",\\\"text\\\":\\\"$t $MODE $SEGUE_CALL "
         "${OTHER_API_KEY:-none} $(pwd)\\\"}\"\n"
         "echo '{\"event\":\"end\"}'");
  char wanted[512];
  snprintf(wanted, sizeof wanted, "own quiet 1.7 none %s", f->bed.dir);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), wanted);
  assert_int_equal(unsetenv("OTHER_API_KEY"), 0);
}

TEST_ON(struct fixture *f, setup, teardown, a_key_never_enters) {
  assert_int_equal(setenv("MY_TOKEN", "sk-123456789", 1), 0);
  script(f, ", 'env': ['MY_TOKEN']",
         "echo \"{\\\"event\\\":\\\"text\\\",\\\"text\\\":\\\"key $MY_TOKEN\\\"}\"\n"
         "echo \"$MY_TOKEN\" >&2\n"
         "echo \"{\\\"event\\\":\\\"end\\\",\\\"class\\\":\\\"auth\\\",\\\"message\\\":\\\"bad "
         "$MY_TOKEN\\\"}\"");
  assert_int_equal(f->bed.result.class, CLASS_AUTH);
  assert_null(strstr(buf_c(&f->bed.result.text.bytes), "sk-123456789"));
  assert_null(strstr(buf_c(&f->texts), "sk-123456789"));
  assert_null(strstr(f->bed.result.message, "sk-123456789"));
  assert_null(strstr(buf_c(&f->bed.result.error_text.bytes), "sk-123456789"));
  assert_int_equal(unsetenv("MY_TOKEN"), 0);
}

TEST_ON(struct fixture *f, setup, teardown, one_that_hangs_after_its_answer_is_ended) {
  script(f, "",
         "echo '{\"event\":\"text\",\"text\":\"done\"}'; echo '{\"event\":\"end\"}'\n"
         "exec sleep 1000");
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "done");
  assert_in_range(f->bed.result.duration_ms, LIMIT_AGENT_FINAL_GRACE_MS / 2, 30000);
}

TEST_ON(struct fixture *f, setup, teardown, silence_ends_it) {
  script(f, ", 'stall_ms': 300",
         "echo '{\"event\":\"retry\",\"attempt\":1,\"status\":429,\"reason\":\"slow down\"}'\n"
         "exec sleep 1000");
  assert_int_equal(f->bed.result.class, CLASS_RATE_LIMIT); /* as it said itself */
  assert_non_null(strstr(f->bed.result.message, "300 ms"));
  assert_non_null(strstr(f->bed.result.message, "429"));
}

/* A call to the text profile. */
static void text_script(struct fixture *f, const char *more, const char *text) {
  struct call_request request = plain();
  buf_auto_t settings = {0};
  buf_printf(&settings, "{'program': ['/bin/sh', '-c', '%s']%s}", text, more);
  call(f, "text", buf_c(&settings), &request);
}

TEST_ON(struct fixture *f, setup, teardown, a_text_whose_program_closed_its_output_is_whole) {
  text_script(f, "", "echo all of it; exec >&-; sleep 1000");
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "all of it\n");
  assert_non_null(strstr(f->bed.result.note, "closed its output"));
  assert_in_range(f->bed.result.duration_ms, LIMIT_AGENT_FINAL_GRACE_MS / 2, 30000);
}

TEST_ON(struct fixture *f, setup, teardown, one_that_still_says_something_is_not_ended) {
  text_script(f, "",
              "echo all; exec >&-; for i in 1 2 3 4; do sleep 1; echo busy >&2; done; exit 3");
  assert_int_equal(f->bed.result.class, CLASS_CRASHED); /* by its own exit */
}

TEST_ON(struct fixture *f, setup, teardown, a_text_that_keeps_its_output_open_is_not_whole) {
  text_script(f, ", 'stall_ms': 300", "echo half of it; exec sleep 1000");
  assert_int_equal(f->bed.result.class, CLASS_TIMEOUT);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "half of it\n");
}

TEST_ON(struct fixture *f, setup, teardown, a_cut_stream_is_no_answer) {
  script(f, "", "printf '{\"event\":\"text\",\"text\":\"half of it\"}\\n{\"event\":\"end\",\"cl'");
  assert_int_equal(f->bed.result.class, CLASS_PROTOCOL); /* exit status 0 says nothing */
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "half of it");
}

TEST_ON(struct fixture *f, setup, teardown, a_cancelled_one_is_cancelled) {
  f->cancel_at_text = true;
  script(f, "",
         "trap '' TERM; echo '{\"event\":\"text\",\"text\":\"begun\"}'; sleep 1000; sleep 1000");
  assert_int_equal(f->bed.result.class, CLASS_CANCELLED);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "begun");
}

TEST_ON(struct fixture *f, setup, teardown, an_answer_that_is_there_outlives_cancelling) {
  f->cancel_at_text = true;
  script(f, "",
         "printf '{\"event\":\"text\",\"text\":\"all\"}\\n{\"event\":\"end\"}\\n'; sleep 1000");
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "all");
}

TEST_ON(struct fixture *f, setup, teardown, a_hundred_megabytes_are_bounded) {
  script(f, "",
         "line=$(head -c 65536 /dev/zero | tr '\\0' x)\n"
         "yes \"{\\\"event\\\":\\\"text\\\",\\\"text\\\":\\\"$line\\\"}\" | head -n 1600\n"
         "echo '{\"event\":\"end\"}'");
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_int_equal(f->bed.result.dropped_bytes, 1600u * 65536u - LIMIT_OUTPUT_BYTES);
  assert_string_equal(f->bed.result.text.bytes.p + LIMIT_OUTPUT_BYTES,
                      "\n[... 88080384 bytes were cut here ...]\n");
}

TEST_ON(struct fixture *f, setup, teardown, a_long_text_keeps_its_end) {
  struct call_request request = plain();
  call(f, "text",
       "{'program': ['/bin/sh', '-c', 'yes a line | head -c 18000000; echo; echo [PLAN:2]']}",
       &request);
  struct str text = buf_view(&f->bed.result.text.bytes);
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_true(text.n <= LIMIT_OUTPUT_BYTES);
  assert_true(str_starts(text, "a line\na line\n"));
  assert_string_equal(text.p + text.n - 9, "[PLAN:2]\n");
  const char *line = strstr(text.p, "[... ");
  assert_non_null(line);
  assert_int_equal(strtoull(line + 5, NULL, 10), f->bed.result.dropped_bytes);
}

TEST_ON(struct fixture *f, setup, teardown, the_end_of_stderr_says_why) {
  script(f, "",
         "yes 'a line of a progress display' | head -n 20000 >&2\n"
         "echo 'Error: you are not logged in' >&2; exit 1");
  assert_int_equal(f->bed.result.class, CLASS_AUTH);
  assert_non_null(strstr(buf_c(&f->bed.result.error_text.bytes), "bytes were cut here"));
  assert_true(f->bed.result.error_dropped_bytes > 0);
}

TEST_ON(struct fixture *f, setup, teardown, a_line_without_end_is_given_up) {
  script(f, "", "printf '{\"event\":\"'; exec yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | tr -d '\\n'");
  assert_int_equal(f->bed.result.class, CLASS_PROTOCOL);
  assert_non_null(strstr(f->bed.result.message, "longer than"));
}

/* A tool's result of 40 MB is in one line; its event may say nothing that is needed. */
TEST_ON(struct fixture *f, setup, teardown, a_line_that_is_too_long_is_left_out) {
  script(f, "",
         "printf '{\"type\":\"user\",\"event\":\"x\",\"text\":\"'\n"
         "head -c 40000000 /dev/zero | tr '\\0' x; echo '\"}'\n"
         "echo '{\"event\":\"text\",\"text\":\"an answer\"}'\n"
         "echo '{\"event\":\"end\",\"class\":\"ok\"}'\n");
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "an answer");
  assert_string_equal(buf_c(&f->news), "n");
  assert_string_equal(buf_c(&f->note),
                      "an event user of 40000037 bytes was left out: a line may have 16777216");
}

TEST_ON(struct fixture *f, setup, teardown, a_final_event_that_is_too_long_is_missed) {
  script(f, "",
         "printf '{\"event\":\"end\",\"class\":\"ok\",\"text\":\"'\n"
         "head -c 20000000 /dev/zero | tr '\\0' x; printf '\"}'\n");
  assert_int_equal(f->bed.result.class, CLASS_PROTOCOL);
  assert_non_null(strstr(f->bed.result.message, "longer than"));
}

TEST_ON(struct fixture *f, setup, teardown, bytes_that_are_no_text_are_no_harm) {
  struct call_request request = plain();
  call(f, "jsonl", "{'program': ['" FAKE "', 'binary']}", &request);
  assert_int_equal(f->bed.result.class, CLASS_PROTOCOL);
  call(f, "text", "{'program': ['" FAKE "', 'binary']}", &request);
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_int_equal(f->bed.result.text.bytes.n, 258); /* as they came */
}

TEST_ON(struct fixture *f, setup, teardown, half_characters_and_long_numbers_cost_no_line) {
  script(f, "",
         "printf '%s\\n' '{\"event\":\"text\",\"text\":\"cut \\ud83d\"}' "
         "'{\"event\":\"end\",\"at\":123456789012345678901,\"text\":\"cut \\ud83d here\"}'");
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "cut \xEF\xBF\xBD here");
  assert_string_equal(f->bed.result.note, "");
}

TEST_ON(struct fixture *f, setup, teardown, one_that_reads_nothing_may_answer) {
  static char big[3 * 1024 * 1024];
  struct call_request request = plain();
  memset(big, 'p', sizeof big);
  request.prompt = (struct str){big, sizeof big};
  call(f, "text", "{'program': ['/bin/sh', '-c', 'exec <&-; echo ready']}", &request);
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "ready\n");
}

TEST_ON(struct fixture *f, setup, teardown, a_prompt_of_three_megabytes_arrives) {
  static char big[3 * 1024 * 1024];
  struct call_request request = plain();
  memset(big, 'p', sizeof big);
  request.prompt = (struct str){big, sizeof big};
  call(f, "text", "{'program': ['/bin/sh', '-c', 'wc -c']}", &request);
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_int_equal(strtol(buf_c(&f->bed.result.text.bytes), NULL, 10), (long)sizeof big);
}

static bool nobody_holds(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bool free_now = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return free_now;
}

TEST_ON(struct fixture *f, setup, teardown, a_tree_that_ignores_everything_is_ended) {
  char lock[512], settings[1024];
  struct call_request request = plain();
  snprintf(lock, sizeof lock, "%s/lock", f->bed.dir);
  snprintf(settings, sizeof settings, "{'program': ['" FAKE "', 'tree', '%s']}", lock);
  f->cancel_at_text = true;
  call(f, "text", settings, &request);
  assert_int_equal(f->bed.result.class, CLASS_CANCELLED);
  assert_true(nobody_holds(lock)); /* double fork, setsid, TERM ignored: all dead */
}

/* The worker of a client that ignores its leader's signal obeys when the group gets it. */
TEST_ON(struct fixture *f, setup, teardown, the_group_is_asked_too) {
  f->cancel_at_text = true;
  script(f, "",
         "trap '' TERM\n"
         "(trap 'echo obeyed > worker; exit 0' TERM\n"
         " echo '{\"event\":\"text\",\"text\":\"begun\"}'\n"
         " while :; do sleep 0.05; done) &\n"
         "wait; wait; exit 0");
  assert_int_equal(f->bed.result.class, CLASS_CANCELLED);
  char path[512];
  snprintf(path, sizeof path, "%s/worker", f->bed.dir);
  assert_int_equal(access(path, F_OK), 0);
}

TEST_ON(struct fixture *f, setup, teardown, programs_that_cannot_run_say_why) {
  struct call_request request = plain();
  char path[512], settings[700];
  call(f, "claude", "{'program': '/nonexistent/claude'}", &request);
  assert_int_equal(f->bed.result.class, CLASS_NOT_FOUND);
  assert_non_null(strstr(f->bed.result.message, "not installed"));
  snprintf(path, sizeof path, "%s/plain-file", f->bed.dir);
  assert_int_equal(close(open(path, O_WRONLY | O_CREAT, 0644)), 0);
  snprintf(settings, sizeof settings, "{'program': '%s'}", path);
  call(f, "claude", settings, &request);
  assert_int_equal(f->bed.result.class, CLASS_NOT_FOUND);
  assert_non_null(strstr(f->bed.result.message, "not executable"));
  call(f, "text", "{}", &request);
  assert_int_equal(f->bed.result.class, CLASS_NOT_FOUND);
  assert_non_null(strstr(f->bed.result.message, "needs a program"));
}

TEST_ON(struct fixture *f, setup, teardown, a_folder_that_vanished_is_an_error) {
  struct call_request request = plain();
  f->bed.env.cwd = "/nonexistent/project";
  call(f, "text", "{'program': 'true'}", &request);
  assert_int_equal(f->bed.result.class, CLASS_NOT_FOUND);
  assert_non_null(strstr(f->bed.result.message, "/nonexistent/project"));
}

TEST_ON(struct fixture *f, setup, teardown, requests_that_cannot_be_are_refused) {
  struct call_request request = plain();
  request.prompt = (struct str){"a\0b", 3};
  call(f, "text", "{'program': 'cat'}", &request);
  assert_int_equal(f->bed.result.class, CLASS_BAD_REQUEST);
  assert_non_null(strstr(f->bed.result.message, "NUL"));
  request = plain();
  request.model = STR("my model");
  call(f, "claude", "{'program': 'cat'}", &request);
  assert_int_equal(f->bed.result.class, CLASS_BAD_REQUEST);
  assert_non_null(strstr(f->bed.result.message, "my model"));
}

TEST_ON(struct fixture *f, setup, teardown, a_schema_without_an_option_stands_in_the_prompt) {
  struct call_request request = plain();
  json_auto_t *schema =
      json_pack("{s:s, s:{s:{s:s}}}", "type", "object", "properties", "verdict", "type", "string");
  request.schema = schema;
  request.purpose = PURPOSE_JUDGE;
  call(f, "text", "{'program': 'cat'}", &request);
  const char *prompt = buf_c(&f->bed.result.text.bytes);
  assert_int_equal(strncmp(prompt, "Say something.\n\n---\n", 20), 0);
  assert_non_null(strstr(prompt, "\n- verdict: string (optional)\n"));
  assert_string_equal(f->bed.result.enforced, "prompt");
  assert_null(f->bed.result.structured);
}

/* A repeat after a crash finds the conversation of the first try: it goes on there. */
TEST_ON(struct fixture *f, setup, teardown, a_conversation_that_is_there_goes_on) {
  struct call_request request = plain();
  json_auto_t *token = json_string("11111111-2222-4333-8444-555555555555");
  char settings[2048], path[512];
  snprintf(path, sizeof path, "%s/claude", f->bed.dir);
  FILE *file = fopen(path, "w");
  fprintf(file, "#!/bin/sh\n"
                "case \"$*\" in *--session-id*) echo 'Error: Session ID 1 is already in use.' >&2; "
                "exit 1;; *--resume*) ;; *) exit 9;; esac\n"
                "echo '{\"type\":\"result\",\"is_error\":false,\"result\":\"again\"}'\n");
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, 0755), 0);
  snprintf(settings, sizeof settings, "{'program': '%s'}", path);
  request.token = token;
  call(f, "claude", settings, &request);
  assert_int_equal(f->bed.result.class, CLASS_NONE);
  assert_string_equal(buf_c(&f->bed.result.text.bytes), "again");
  assert_string_equal(buf_c(&f->news), "n"); /* and says so */
  f->cancel_at_note = true;                  /* whoever hears that may have had enough */
  call(f, "claude", settings, &request);
  assert_int_equal(f->bed.result.class, CLASS_CANCELLED);
}

TEST_ON(struct fixture *f, setup, teardown, ids_are_chosen_from_the_calls_bytes) {
  struct call_request request = plain();
  static const unsigned char bytes[16] = {0xff, 1, 2,  3,  4,  5,  6,  7,
                                          0xff, 9, 10, 11, 12, 13, 14, 15};
  struct provider p = provider_of_profile(profiles_find(f->profiles, STR("claude")));
  json_auto_t *token = p.ops->prepare(&p, &f->bed.env, &request, NULL, bytes);
  assert_string_equal(json_string_value(token), "ff010203-0405-4607-bf09-0a0b0c0d0e0f");
  p = provider_of_profile(profiles_find(f->profiles, STR("codex")));
  assert_null(p.ops->prepare(&p, &f->bed.env, &request, NULL, bytes));
}
