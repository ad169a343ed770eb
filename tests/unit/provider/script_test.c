/* The script provider: replies in the shapes of real backends, and files below --cwd only. */

#include "base/file.h"
#include "provider/registry.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
  uv_loop_t loop;
  struct provider_env env;
  struct scenario scenario;
  bool has_scenario;
  char *dir;
  size_t fds_before;
  int done, pieces;
  struct buf told; /* pieces of text, joined */
  struct call_result result;
};

static size_t count_fds(void) {
  size_t n = 0;
  DIR *dir = opendir("/proc/self/fd");
  while (readdir(dir) != NULL)
    n++;
  (void)closedir(dir);
  return n;
}

static int setup(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  f->fds_before = count_fds();
  assert_int_equal(uv_loop_init(&f->loop), 0);
  f->dir = folder_make();
  f->env = (struct provider_env){.loop = &f->loop, .cwd = f->dir};
  *state = f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&f->loop), 0);
  call_result_deinit(&f->result);
  buf_deinit(&f->told);
  if (f->has_scenario)
    scenario_deinit(&f->scenario);
  folder_remove(f->dir);
  assert_int_equal(count_fds(), f->fds_before);
  free(f);
  return 0;
}

static int warm_up(void **state) {
  uv_loop_t loop;
  (void)state;
  return uv_loop_init(&loop) != 0 || uv_loop_close(&loop) != 0;
}

static void use(struct fixture *f, const char *text) {
  struct err err;
  if (f->has_scenario)
    scenario_deinit(&f->scenario);
  if (!scenario_parse(&f->scenario, "s", str_from(text), &err))
    fail_msg("%s: %s", text, err.text);
  f->has_scenario = true;
  f->env.scenario = &f->scenario;
}

static void on_done(void *ctx, struct call_result *result) {
  struct fixture *f = ctx;
  f->done++;
  call_result_deinit(&f->result);
  f->result = *result;
  *result = (struct call_result){0};
}

static struct provider_run *to_cancel; /* at the first piece; or NULL */

static void on_news(void *ctx, const struct provider_news *news) {
  struct fixture *f = ctx;
  if (to_cancel != NULL)
    provider_script.ops->cancel(to_cancel);
  assert_int_equal(news->kind, NEWS_TEXT);
  assert_int_equal(f->done, 0);
  buf_str(&f->told, news->text);
  f->pieces++;
}

static struct provider_run *begin(struct fixture *f, struct call_request *request) {
  static const unsigned char entropy[16];
  const struct provider_sink sink = {on_news, on_done, f};
  f->done = 0;
  json_t *token = provider_script.ops->prepare(&provider_script, &f->env, request, NULL, entropy);
  request->token = token;
  struct provider_run *run = provider_script.ops->start(&provider_script, &f->env, request, &sink);
  assert_int_equal(f->done, 0); /* never from within */
  json_decref(token);
  request->token = NULL;
  return run;
}

static void call(struct fixture *f) {
  struct call_request request = {
      .movement = STR("go"), .purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT, .prompt = STR("p")};
  (void)begin(f, &request);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(f->done, 1);
}

TEST_ON(struct fixture *f, setup, teardown, replies_have_their_shape) {
  DATA_ROWS("provider/script/replies_have_their_shape.yaml", c, scenario, class, text, structured,
            message, retry_after_ms) {
    use(f, c.scenario);
    call(f);
    if (f->result.class != data_class(c.class) || strcmp(buf_c(&f->result.text.bytes), c.text) != 0)
      fail_msg("%s: %s, \"%s\"", c.scenario, error_class_name(f->result.class),
               buf_c(&f->result.text.bytes));
    assert_non_null(strstr(f->result.message, c.message));
    assert_int_equal(f->result.retry_after_ms, (int64_t)data_number(c.retry_after_ms));
    assert_int_equal(f->result.structured != NULL, c.structured != NULL);
    if (c.structured) {
      json_auto_t *wanted = json_loads(c.structured, 0, NULL);
      assert_true(json_equal(wanted, f->result.structured));
      assert_string_equal(f->result.enforced, "native");
    }
  }
}

TEST_ON(struct fixture *f, setup, teardown, without_a_scenario) {
  call(f);
  assert_int_equal(f->result.class, CLASS_NOT_FOUND);
  assert_non_null(strstr(f->result.message, "no --scenario was given"));
}

TEST_ON(struct fixture *f, setup, teardown, a_dry_judge_names_its_stage) {
  use(f, "replies: []");
  struct call_request request = {.movement = STR("go"),
                                 .purpose = PURPOSE_JUDGE,
                                 .stage = STAGE_PHASE3_TAG,
                                 .prompt = STR("")};
  (void)begin(f, &request);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_non_null(strstr(f->result.message, "movement go, purpose judge, stage phase3_tag"));
}

TEST_ON(struct fixture *f, setup, teardown, a_cancel_ends_the_delay) {
  struct call_request request = {
      .movement = STR("go"), .purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT, .prompt = STR("")};
  use(f, "replies: [{text: late, delay_ms: 600000, write: {late.txt: x}}]");
  struct provider_run *run = begin(f, &request);
  provider_script.ops->cancel(run);
  provider_script.ops->cancel(run);
  assert_int_equal(f->done, 0);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(f->done, 1);
  assert_int_equal(f->result.class, CLASS_CANCELLED);
  assert_int_equal(f->result.text.bytes.n, 0);
  char path[600];
  print_into(path, sizeof path, "%s/late.txt", f->dir);
  assert_int_equal(access(path, F_OK), -1);
}

TEST_ON(struct fixture *f, setup, teardown, a_delay_over_the_limit_is_a_timeout) {
  struct call_request request = {.movement = STR("go"),
                                 .purpose = PURPOSE_EXECUTE,
                                 .stage = STAGE_COUNT,
                                 .prompt = STR(""),
                                 .timeout_ms = 20};
  use(f, "replies: [{text: late, delay_ms: 600000}]");
  (void)begin(f, &request);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(f->result.class, CLASS_TIMEOUT);
}

static void put(const struct fixture *f, const char *name, const char *content) {
  folder_put(f->dir, name, str_from(content));
}

static void expect(const struct fixture *f, const char *name, const char *content) {
  char path[600];
  buf_auto_t bytes = {0};
  struct err err;
  print_into(path, sizeof path, "%s/%s", f->dir, name);
  assert_true(file_read(path, 1 << 20, &bytes, &err));
  assert_string_equal(buf_c(&bytes), content);
}

TEST_ON(struct fixture *f, setup, teardown, files_are_written_and_counted) {
  put(f, "old.txt", "one\ntwo\nthree\nlong tail that goes\n");
  use(f,
      "replies: [{text: t, write: {old.txt: \"one\\n2\\nthree\\n\", deep/er/new.txt: \"x\\n\"}}]");
  call(f);
  assert_int_equal(f->result.class, CLASS_NONE);
  expect(f, "old.txt", "one\n2\nthree\n");
  expect(f, "deep/er/new.txt", "x\n");
  json_auto_t *wanted =
      json_loads("[{\"path\": \"old.txt\", \"added\": 1, \"removed\": 2},"
                 " {\"path\": \"deep/er/new.txt\", \"added\": 1, \"removed\": 0}]",
                 0, NULL);
  assert_true(json_equal(wanted, f->result.files));
}

TEST_ON(struct fixture *f, setup, teardown, links_within_are_followed) {
  char path[600];
  put(f, "real.txt", "old\n");
  print_into(path, sizeof path, "%s/real", f->dir);
  assert_int_equal(mkdir(path, 0700), 0);
  print_into(path, sizeof path, "%s/folder", f->dir);
  assert_int_equal(symlink("real", path), 0);
  print_into(path, sizeof path, "%s/link.txt", f->dir);
  assert_int_equal(symlink("real.txt", path), 0);
  use(f, "replies: [{text: t, write: {folder/new/a.txt: \"x\\n\", link.txt: \"new\\n\"}}]");
  call(f);
  assert_string_equal(f->result.message, "");
  expect(f, "real/new/a.txt", "x\n");
  expect(f, "real.txt", "new\n");
}

TEST_WITH(setup, teardown, nothing_is_written_outside) {
  static const char *const bad[] = {"/tmp/outside", "../outside", "a/../../outside", "link/x",
                                    "file/x",       "dir",        "linked",          "..",
                                    "fifo",         "updir/x"};
  struct fixture *f = *state;
  char path[600], scenario[700];
  put(f, "file", "x");
  print_into(path, sizeof path, "%s/dir", f->dir);
  assert_int_equal(mkdir(path, 0700), 0);
  print_into(path, sizeof path, "%s/link", f->dir);
  assert_int_equal(symlink("/tmp", path), 0);
  print_into(path, sizeof path, "%s/linked", f->dir);
  assert_int_equal(symlink("/tmp/outside-of-segue", path), 0);
  print_into(path, sizeof path, "%s/updir", f->dir);
  assert_int_equal(symlink("..", path), 0);
  print_into(path, sizeof path, "%s/fifo", f->dir);
  assert_int_equal(mkfifo(path, 0600), 0);
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    print_into(scenario, sizeof scenario, "replies: [{text: t, write: {'%s': evil}}]", bad[i]);
    use(f, scenario);
    call(f);
    if (f->result.class != CLASS_BAD_REQUEST)
      fail_msg("%s: %s", bad[i], error_class_name(f->result.class));
    assert_true(f->result.message[0] != '\0');
    if (strstr(bad[i], "link") != NULL || strstr(bad[i], "updir") != NULL)
      assert_non_null(strstr(f->result.message, "leaves the working directory"));
  }
  assert_int_equal(access("/tmp/outside-of-segue", F_OK), -1);
  expect(f, "file", "x");
}

TEST_ON(struct fixture *f, setup, teardown, a_folder_that_is_gone) {
  use(f, "replies: [{text: t, write: {a: b}}]");
  f->env.cwd = "/nowhere/at/all";
  call(f);
  assert_int_equal(f->result.class, CLASS_BAD_REQUEST);
  f->env.cwd = f->dir;
}

TEST_ON(struct fixture *f, setup, teardown, a_text_comes_in_pieces) {
  use(f, "{replies: [{chunks: ['[1,', ' 2]']}, {text: whole}]}");
  call(f);
  assert_int_equal(f->pieces, 2);
  assert_string_equal(buf_c(&f->told), "[1, 2]");
  assert_string_equal(buf_c(&f->result.text.bytes), "[1, 2]");
}

TEST_ON(struct fixture *f, setup, teardown, a_cancel_at_a_piece_ends_the_delay) {
  struct call_request request = {
      .movement = STR("go"), .purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT, .prompt = STR("p")};
  use(f, "{replies: [{chunks: ['a', 'b'], delay_ms: 600000}]}");
  to_cancel = begin(f, &request);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  to_cancel = NULL;
  assert_int_equal(f->done, 1);
  assert_int_equal(f->result.class, CLASS_CANCELLED);
}

TEST(options_are_checked) {
  struct provider_registry *registry = registry_new(NULL);
  DATA_ROWS("provider/script/options_are_checked.yaml", c, provider, options, error) {
    const struct provider *p = registry_find(registry, str_from(c.provider));
    json_auto_t *given = json_loads(c.options, 0, NULL);
    struct err err = {0};
    bool ok = provider_check_options(&p->capability, given, &err);
    if (ok != (c.error == NULL) || (!ok && strstr(err.text, c.error) == NULL))
      fail_msg("%s %s: %s", c.provider, c.options, ok ? "accepted" : err.text);
  }
  struct err err;
  assert_true(provider_check_options(&provider_command.capability, NULL, &err));
  assert_null(registry_find(registry, STR("nobody")));
  assert_null(registry_find(registry, STR("")));
  assert_string_equal(registry_capabilities(registry)[0].name, "script");
  registry_free(registry);
}

TEST_GROUP(warm_up, NULL)
