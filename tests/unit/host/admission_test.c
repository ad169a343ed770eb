/* Who may go to a provider: places, cooldowns, gates. Time is the caller's. */
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
  bool impatient, probe;
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
  const struct admission_call call = {
      .provider = STR("script"), .has_fallback = has_fallback, .patient = !f->impatient};
  enum admission_answer answer = admission_ask(&f->admission, &call, f->now, &why);
  f->probe = why.probe;
  int n = snprintf(text, sizeof text, "%s%s%s", admission_name(answer), why.reason ? " " : "",
                   why.reason ? why.reason : "");
  if (why.until_ms > 0)
    print_into(text + n, sizeof text - (size_t)n, " %d", (int)(why.until_ms - f->now));
  return text;
}

static void done(struct fixture *f, enum error_class class, int64_t retry_after_ms) {
  if (!f->alone)
    f->owner = f->owner == f->owners ? f->owners + 1 : f->owners;
  const struct admission_end end = {
      .class = class, .retry_after_ms = retry_after_ms, .probe = f->probe, .real_ms = 7};
  f->probe = false;
  admission_done(&f->admission, STR("script"), f->owner, &end, f->now);
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

/* One failure is enough; then one call at a time tries, after pauses that grow. */
TEST(a_gate_shuts_and_one_call_tries) {
  static const int pauses[] = {5, 10, 20, 40, 80, 160, 300, 300, 300};
  struct fixture f;
  begin(&f, "{}");
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_NETWORK, 0);
  for (int i = 1; i < LIMIT_CALL_ATTEMPT_COUNT; i++) { /* so that a blip sends nobody elsewhere */
    assert_string_equal(ask(&f, true), "admitted");
    assert_false(f.probe);
    done(&f, CLASS_NETWORK, 0);
  }
  assert_string_equal(ask(&f, true), "use_fallback network 5000");
  for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
    char text[40];
    print_into(text, sizeof text, "wait network %d", pauses[i] * 1000);
    assert_string_equal(ask(&f, false), text);
    f.now += (uint64_t)pauses[i] * 1000;
    assert_string_equal(ask(&f, false), "admitted");
    assert_true(f.probe);
    assert_string_equal(ask(&f, false), "wait network"); /* one is enough to try */
    f.probe = true;
    done(&f, CLASS_NETWORK, 0);
  }
  const struct admission_away *away = admission_away_of(&f.admission, STR("script"));
  assert_int_equal(away->since_ms, 7);
  assert_int_equal(away->tries, 1 + ARRAY_LEN(pauses));
  f.now += 300000;
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_CANCELLED, 0); /* says nothing: the next one tries */
  assert_string_equal(ask(&f, false), "admitted");
  assert_true(f.probe);
  done(&f, CLASS_OVERLOADED, 60000); /* the time that the backend names is kept to */
  assert_string_equal(ask(&f, false), "wait network 300000");
  f.now += 300000;
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_BAD_REQUEST, 0); /* an answer, too */
  assert_string_equal(ask(&f, false), "admitted");
  assert_false(f.probe);
  end(&f);
}

/* Whoever does not wait takes no notice of it; an answer to such a call opens it for all. */
TEST(the_impatient_pass) {
  struct fixture f;
  begin(&f, "{}");
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_RATE_LIMIT, 0);
  f.impatient = true;
  for (int i = 0; i < 3; i++) {
    assert_string_equal(ask(&f, false), "admitted");
    done(&f, CLASS_RATE_LIMIT, 0);
  }
  f.impatient = false;
  assert_string_equal(ask(&f, false), "wait rate_limit 5000");
  f.impatient = true;
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_NONE, 0);
  f.impatient = false;
  assert_string_equal(ask(&f, false), "admitted");
  end(&f);
}

/* Providers of one account have one gate. */
TEST(a_pool_has_one_gate) {
  struct fixture f;
  const struct admission_call other = {.provider = STR("command"), .patient = true};
  struct admission_why why;
  begin(&f, "{\"script\": {\"pool\": \"a\"}, \"command\": {\"pool\": \"a\"}}");
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_NETWORK, 0);
  assert_int_equal(admission_ask(&f.admission, &other, f.now, &why), ADMISSION_WAIT);
  assert_string_equal(why.reason, "network");
  end(&f);
}

TEST(a_refused_login_shuts_it_where_others_wait) {
  struct fixture f;
  begin(&f, "{}");
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_AUTH, 0);
  assert_string_equal(ask(&f, false), "admitted");
  assert_string_equal(ask(&f, false), "admitted");
  f.admission.holds_auth = true;
  done(&f, CLASS_AUTH, 0);
  assert_string_equal(ask(&f, false), "wait auth 300000");
  done(&f, CLASS_NONE, 0); /* it had begun before */
  assert_string_equal(ask(&f, false), "wait auth 300000");
  f.now += 300000;
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_NETWORK, 0); /* which says nothing of the login */
  assert_string_equal(ask(&f, false), "wait auth 300000");
  f.now += 300000;
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_NONE, 0);
  assert_string_equal(ask(&f, false), "admitted");
  end(&f);
}

static void fail_times(struct fixture *f, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    assert_string_equal(ask(f, false), "admitted");
    done(f, CLASS_CRASHED, 0);
  }
}

/* Failures that may be the session's own shut it when several sessions have many. */
TEST(crashes_of_several_sessions_shut_it) {
  struct fixture f;
  begin(&f, "{}");
  f.alone = true;
  f.owner = f.owners;
  fail_times(&f, 5 * LIMIT_CIRCUIT_FAILURES);
  f.alone = false; /* then another sees the same */
  fail_times(&f, 1);
  assert_string_equal(ask(&f, false), "wait crashed 5000");
  end(&f);
  begin(&f, "{}");
  fail_times(&f, LIMIT_CIRCUIT_FAILURES - 1);
  assert_string_equal(ask(&f, false), "admitted");
  done(&f, CLASS_NONE, 0); /* an answer: counting starts anew */
  fail_times(&f, LIMIT_CIRCUIT_FAILURES);
  assert_string_equal(ask(&f, false), "wait crashed 5000");
  end(&f);
}

TEST(errors_of_the_request_shut_no_gate) {
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
