/* The queue before the providers: its order, who wakes it, and that it keeps no loop alive. */
#include "base/limits.h"
#include "host/call_queue.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

struct fixture {
  uv_loop_t loop;
  struct provider_registry *registry;
  struct call_queue gate;
};

static char told[200]; /* "1 admitted, 2 use_fallback, " */
static size_t told_count;

static void on_told(void *owner, long call, enum admission_answer answer,
                    const struct admission_why *why) {
  size_t n = strlen(told);
  (void)owner;
  told_count++;
  bool gave_up = why->gave_up != CLASS_NONE;
  const char *said = gave_up ? error_class_name(why->gave_up) : admission_name(answer);
  if (n < sizeof told - 40)
    print_into(told + n, sizeof told - n, "%ld %s%s, ", call, gave_up ? "gave up: " : "", said);
}

static int setup(void **state) {
  static struct fixture f;
  json_t *settings =
      json_loads("{\"script\": {\"concurrency\": 1}, \"command\": {\"concurrency\": 1}}", 0, NULL);
  told[0] = '\0';
  told_count = 0;
  f = (struct fixture){.registry = registry_new(settings)};
  json_decref(settings);
  call_queue_init(&f.gate, (uv_loop_init(&f.loop), &f.loop), f.registry, NULL, on_told);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  call_queue_deinit(&f->gate);
  registry_free(f->registry);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  return uv_loop_close(&f->loop);
}

static const char *ask(struct fixture *f, void *owner, long call, const char *provider) {
  struct admission_why why;
  const struct admission_call one = {
      .owner = owner, .call = call, .provider = str_from(provider), .patient = true};
  return admission_name(call_queue_ask(&f->gate, &one, &why));
}

static void leave(struct fixture *f, const void *owner, const char *provider,
                  enum error_class class, int64_t retry_after_ms) {
  const struct admission_end end = {
      .class = class, .retry_after_ms = retry_after_ms, .probe = true, .real_ms = 1};
  call_queue_leave(&f->gate, owner, str_from(provider), &end);
}

/* Another provider's call ends, so that everybody is asked again. */
static void leave_again(struct fixture *f) {
  int c;
  assert_string_equal(ask(f, &c, 9, "command"), "admitted");
  leave(f, &c, "command", CLASS_NONE, 0);
  (void)uv_run(&f->loop, UV_RUN_NOWAIT);
  (void)uv_run(&f->loop, UV_RUN_NOWAIT);
}

TEST_ON(struct fixture *f, setup, teardown, nobody_overtakes) {
  int a, b;
  assert_string_equal(ask(f, &a, 1, "script"), "admitted");
  assert_string_equal(ask(f, &b, 2, "script"), "wait");
  leave(f, &a, "script", CLASS_NONE, 0);
  assert_string_equal(ask(f, &a, 3, "script"), "wait"); /* the place is call 2's */
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_string_equal(told, "2 admitted, ");
  leave(f, &b, "script", CLASS_NONE, 0);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_string_equal(told, "2 admitted, 3 admitted, ");
  leave(f, &a, "script", CLASS_NONE, 0);
}

/* Who waits for a place hears that there is none before a time, once. */
TEST_ON(struct fixture *f, setup, teardown, what_is_waited_for_can_change) {
  int a, b;
  assert_string_equal(ask(f, &a, 1, "script"), "admitted");
  assert_string_equal(ask(f, &b, 2, "script"), "wait");
  leave(f, &a, "script", CLASS_RATE_LIMIT, 3600000);
  (void)uv_run(&f->loop, UV_RUN_NOWAIT);
  (void)uv_run(&f->loop, UV_RUN_NOWAIT);
  assert_string_equal(told, "2 wait, ");
  leave_again(f); /* asked once more: nothing new */
  assert_string_equal(told, "2 wait, ");
  call_queue_drop(&f->gate, &b, 0);
}

/* A call that begins to wait elsewhere does not put off those who have a place to take. */
TEST_ON(struct fixture *f, setup, teardown, a_free_place_is_given_though_others_come) {
  int a, b;
  assert_string_equal(ask(f, &a, 1, "script"), "admitted");
  assert_string_equal(ask(f, &b, 2, "script"), "wait");
  assert_string_equal(ask(f, &a, 3, "command"), "admitted");
  leave(f, &a, "script", CLASS_NONE, 0);
  assert_string_equal(ask(f, &a, 4, "command"), "wait");
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_string_equal(told, "2 admitted, ");
  leave(f, &a, "command", CLASS_NONE, 0);
  leave(f, &b, "script", CLASS_NONE, 0);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_string_equal(told, "2 admitted, 4 admitted, ");
  leave(f, &a, "command", CLASS_NONE, 0);
}

/* A provider that asked for a day's rest does not keep a program that is asked to stop. */
TEST_ON(struct fixture *f, setup, teardown, who_leaves_the_queue_leaves_no_timer) {
  int a;
  assert_string_equal(ask(f, &a, 1, "script"), "admitted");
  leave(f, &a, "script", CLASS_RATE_LIMIT, LIMIT_RESET_WAIT_MS);
  assert_string_equal(ask(f, &a, 2, "script"), "wait");
  call_queue_drop(&f->gate, &a, 0);
  assert_false(uv_is_active((uv_handle_t *)f->gate.timer));
  assert_string_equal(told, "");
}

static void await(struct fixture *f, void *owner, long call, const char *session, int64_t in_ms,
                  int64_t gives_up_ms) {
  const struct admission_call one = {
      .owner = owner, .call = call, .provider = STR("script"), .session = session, .patient = true};
  const struct admission_away away = {
      .class = CLASS_NETWORK, .since_ms = 1, .tries = 1, .next_ms = (uint64_t)in_ms};
  call_queue_await(&f->gate, &one, &away);
  call_queue_gives_up(&f->gate, owner, call, gives_up_ms);
}

/* After a restart the sessions' own logs shut the gate: one of them tries, the oldest; its end
 * hands the turn on. An answer lets the others go, in order. */
TEST_ON(struct fixture *f, setup, teardown, who_waits_goes_by_age) {
  int a, b, c;
  await(f, &c, 3, "s3", 0, 60000);
  await(f, &a, 1, "s1", 0, 60000);
  await(f, &b, 2, "s2", 0, 60000);
  (void)uv_run(&f->loop, UV_RUN_ONCE);
  assert_string_equal(told, "1 admitted, ");
  leave(f, &a, "script", CLASS_CANCELLED, 0);
  (void)uv_run(&f->loop, UV_RUN_ONCE);
  assert_string_equal(told, "1 admitted, 2 admitted, ");
  leave(f, &b, "script", CLASS_NONE, 0);
  (void)uv_run(&f->loop, UV_RUN_ONCE);
  assert_string_equal(told, "1 admitted, 2 admitted, 3 admitted, ");
  leave(f, &c, "script", CLASS_NONE, 0);
}

/* Nobody is asked for it: the last probe's answer counts. */
TEST_ON(struct fixture *f, setup, teardown, a_wait_has_an_end) {
  int a, b;
  assert_string_equal(ask(f, &a, 1, "script"), "admitted");
  leave(f, &a, "script", CLASS_NETWORK, 0);
  await(f, &b, 2, "s2", 5000, 1);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_string_equal(told, "2 gave up: network, ");
}

/* Many waiting calls need little memory, and the first starts at once. */
TEST_ON(struct fixture *f, setup, teardown, ten_thousand_wait) {
  enum { MANY = 10000 };
  static char owners[MANY], ids[MANY][8];
  assert_string_equal(ask(f, owners, 1, "command"), "admitted");
  leave(f, owners, "command", CLASS_OVERLOADED, 0);
  for (size_t i = 0; i < MANY; i++) {
    const struct admission_call one = {.owner = owners + i,
                                       .call = 1,
                                       .provider = STR("command"),
                                       .session = ids[i],
                                       .patient = true};
    struct admission_why why;
    print_into(ids[i], sizeof ids[i], "%06zu", i);
    assert_int_equal(call_queue_ask(&f->gate, &one, &why), ADMISSION_WAIT);
  }
  uint64_t start = uv_hrtime();
  call_queue_reached(&f->gate, STR("command"));
  while (told_count == 0)
    (void)uv_run(&f->loop, UV_RUN_ONCE);
  assert_true(uv_hrtime() - start < 100 * 1000 * 1000);
  assert_true(told_count < 100); /* the loop has time for what these lead to */
  for (size_t i = 0; i < MANY; i++)
    call_queue_drop(&f->gate, owners + i, 0);
  leave(f, owners, "command", CLASS_NONE, 0);
}
