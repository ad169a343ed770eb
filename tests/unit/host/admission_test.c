/* Who may go to a provider: places, cooldowns, circuits. Time is the caller's. */

#include "base/limits.h"
#include "host/call_queue.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
  struct provider_registry *registry;
  struct admission admission;
  uint64_t now;
  char owners[2];
  const char *owner; /* of the last call that was over: the two in turn */
  bool alone;        /* but not with this */
};

static void begin(struct fixture *f, const char *settings) {
  json_auto_t *json = json_loads(settings, 0, NULL);
  *f = (struct fixture){.registry = registry_new(json), .now = 1000};
  admission_init(&f->admission, f->registry);
}

static void end(struct fixture *f) {
  admission_deinit(&f->admission);
  registry_free(f->registry);
}

/* "admitted", "wait concurrency", "wait cooldown 500" (milliseconds from now), ... */
static const char *ask(struct fixture *f, bool has_fallback) {
  static char text[80];
  struct admission_why why;
  enum admission_answer answer =
      admission_ask(&f->admission, STR("script"), has_fallback, f->now, &why);
  int n = snprintf(text, sizeof text, "%s%s%s", admission_name(answer), why.reason ? " " : "",
                   why.reason ? why.reason : "");
  if (why.until_ms > 0)
    print_into(text + n, sizeof text - (size_t)n, " %d", (int)(why.until_ms - f->now));
  return text;
}

static void done(struct fixture *f, enum error_class class, int64_t retry_after_ms) {
  if (!f->alone)
    f->owner = f->owner == f->owners ? f->owners + 1 : f->owners;
  admission_done(&f->admission, STR("script"), f->owner, class, retry_after_ms, f->now);
}

TEST(places_are_counted) {
  struct fixture f;
  begin(&f, "{\"script\": {\"concurrency\": 2}}");
  assert_string_equal(ask(&f, false), "admitted");
  assert_string_equal(ask(&f, false), "admitted");
  assert_string_equal(ask(&f, false), "wait concurrency");
  assert_string_equal(ask(&f, true), "wait concurrency"); /* no reason to go elsewhere */
  done(&f, CLASS_NONE, 0);
  assert_string_equal(ask(&f, false), "admitted");
  assert_string_equal(ask(&f, false), "wait concurrency");
  end(&f);
  begin(&f, "{}");
  for (int i = 0; i < 5000; i++)
    assert_string_equal(ask(&f, false), "admitted");
  end(&f);
}

TEST(a_named_wait_holds_for_all) {
  struct fixture f;
  begin(&f, "{}");
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_RATE_LIMIT, 500);
  assert_string_equal(ask(&f, false), "wait cooldown 500");
  assert_string_equal(ask(&f, true), "use_fallback cooldown 500");
  f.now += 500;
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_RATE_LIMIT, 0); /* without a time there is nothing to wait for */
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_NONE, 700); /* of an answer nothing follows */
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_QUOTA, 0);
  assert_string_equal(ask(&f, true), "use_fallback cooldown 900000");
  end(&f);
}

TEST(the_longest_wait_holds) {
  struct fixture f;
  begin(&f, "{}");
  assert_string_equal(ask(&f, false), "admitted");
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_RATE_LIMIT, 5000);
  done(&f, CLASS_RATE_LIMIT, 500); /* of a call that had begun before */
  assert_string_equal(ask(&f, false), "wait cooldown 5000");
  end(&f);
}

TEST(a_wait_is_bounded) {
  struct fixture f;
  begin(&f, "{}");
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_OVERLOADED, INT64_MAX);
  assert_string_equal(ask(&f, false), "wait cooldown 691200000");
  end(&f);
}

static void fail_times(struct fixture *f, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    assert_string_equal(ask(f, false), "admitted");
    done(f, CLASS_NETWORK, 0);
  }
}

TEST(a_circuit_opens_and_one_call_tries) {
  struct fixture f;
  begin(&f, "{}");
  fail_times(&f, LIMIT_CIRCUIT_FAILURES - 1);
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_NONE, 0); /* an answer: counting starts anew */
  fail_times(&f, LIMIT_CIRCUIT_FAILURES);
  assert_string_equal(ask(&f, false), "wait circuit_open 30000");
  assert_string_equal(ask(&f, true), "use_fallback circuit_open 30000");
  f.now += 30000;
  assert_string_equal(ask(&f, false), "admitted");
  assert_string_equal(ask(&f, false), "wait circuit_open"); /* one is enough to try */
  done(&f, CLASS_NETWORK, 0);
  assert_string_equal(ask(&f, false), "wait circuit_open 60000");
  f.now += 60000;
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_CANCELLED, 0); /* says nothing: the next one tries */
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_NONE, 0);
  assert_string_equal(ask(&f, false), "admitted");
  assert_string_equal(ask(&f, false), "admitted");
  end(&f);
}

TEST(one_session_opens_no_circuit) {
  struct fixture f;
  begin(&f, "{}");
  f.alone = true;
  f.owner = f.owners;
  fail_times(&f, 5 * LIMIT_CIRCUIT_FAILURES);
  f.alone = false; /* then another sees the same */
  fail_times(&f, 1);
  assert_string_equal(ask(&f, false), "wait circuit_open 30000");
  end(&f);
}

TEST(a_circuit_waits_two_minutes_at_most) {
  struct fixture f;
  begin(&f, "{}");
  fail_times(&f, LIMIT_CIRCUIT_FAILURES);
  for (int i = 0; i < 20; i++) {
    f.now += LIMIT_CIRCUIT_MAX_MS;
    assert_string_equal(ask(&f, false), "admitted");
    done(&f, CLASS_CRASHED, 0);
  }
  assert_string_equal(ask(&f, false), "wait circuit_open 120000");
  end(&f);
}

TEST(errors_of_the_request_open_no_circuit) {
  struct fixture f;
  const enum error_class classes[] = {CLASS_REFUSED, CLASS_LENGTH, CLASS_BAD_REQUEST, CLASS_AUTH,
                                      CLASS_NOT_FOUND};
  begin(&f, "{}");
  for (int i = 0; i < 100; i++) {
    assert_string_equal(ask(&f, false), "admitted");
    done(&f, classes[(size_t)i % ARRAY_LEN(classes)], 0);
  }
  end(&f);
}

TEST(settings_are_checked) {
  static const char *const bad[] = {"0", "-1", "1001", "1.5", "\"2\"", "true"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    char text[80];
    struct err err;
    print_into(text, sizeof text, "{\"script\": {\"concurrency\": %s}}", bad[i]);
    json_auto_t *json = json_loads(text, 0, NULL);
    struct provider_registry *registry = registry_new(json);
    assert_false(admission_check(registry_find(registry, STR("script")), &err));
    assert_non_null(strstr(err.text, "providers.script.concurrency"));
    assert_true(admission_check(registry_find(registry, STR("command")), &err));
    registry_free(registry);
  }
}
