/* Plans: an object is found again by its keys, and fits where its words are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schema/text_plan.h"

#include <stdio.h>
#include <string.h>

struct bed {
  struct text_plans plans;
  struct text_object object;
  struct text_trace trace;
};

static struct jscan scan_of(const char *text) {
  struct jscan js;
  jscan_init(&js, text, strlen(text));
  return js;
}

/* Reads an object as it is read where no plan is known. */
static void read_object(struct bed *b, const char *text) {
  struct jscan js = scan_of(text);
  assert_int_equal(text_find_members(&js, 0, &b->object), strlen(text));
  jscan_deinit(&js);
  text_trace_begin(&b->trace);
}

static const struct plan_place *find(struct bed *b, const char *text) {
  struct jscan js = scan_of(text);
  size_t end = 0;
  const struct plan_place *place = text_plans_find(&b->plans, &js, &b->object, &end);
  jscan_deinit(&js);
  return place != NULL && end == strlen(text) ? place : NULL;
}

static void finds_what_has_the_same_keys(void **state) {
  static const char *const others[] = {
      "{\"a\":1}",
      "{\"b\":2,\"a\":1}",
      "{\"a\":1,\"b\":2,\"c\":3}",
      "{\"a\":1, \"b\":2}",
      "{\"a\" :1,\"b\":2}",
      "{\"a\":1,\"bb\":2}",
      "{\"a\":1,\"b\":2",
      "{\"a\":1,\"b\":}",
      "{\"a\":1,\"b\":tru}",
      "{\"a\":1,\"b\":2}{}",
      "{\"a\":1,\"b\":\"x\n\"}",
      "{",
      "{}",
      "{\"a\":1,\"b\":2,\"a\":1}",
      "{\"a\":1,\"a\":2}",
  };
  struct bed b = {0};
  (void)state;
  assert_null(find(&b, "{\"a\":1,\"b\":2}"));
  read_object(&b, "{\"a\":1,\"b\":2}");
  text_trace_value(&b.trace, 0, 7, true);
  text_trace_value(&b.trace, 1, 8, false);
  text_trace_value(&b.trace, 0, 7, true);
  text_plans_add(&b.plans, &b.object, &b.trace);
  const struct plan_place *place = find(&b, "{\"a\":\"other\",\"b\":[3]}");
  assert_non_null(place);
  assert_int_equal(b.object.count, 2);
  assert_true(str_eq_c(b.object.keys[1], "b") && str_eq_c(b.object.values[1].text, "[3]"));
  const struct text_plan *plan = place->plans;
  assert_non_null(plan);
  assert_int_equal(plan->step_count, 2); /* the same question is asked once */
  assert_true(plan->steps[0].node == 7 && plan->steps[0].yes);
  assert_true(plan->steps[1].node == 8 && plan->steps[1].member == 1 && !plan->steps[1].yes);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    place = find(&b, others[i]);
    if (place != NULL && place->plans != NULL)
      fail_msg("found: %s", others[i]);
  }
  text_plans_deinit(&b.plans);
}

static void words_tell_kinds_apart(void **state) {
  struct bed b = {0};
  (void)state;
  read_object(&b, "{\"t\":\"x\"}");
  text_trace_word(&b.trace, 0, STR("w"), false);
  text_trace_word(&b.trace, 0, STR("x"), true);
  text_trace_word(&b.trace, 0, STR("z"), false);
  assert_int_equal(b.trace.word_count, 1); /* what it is says what it is not */
  text_plans_add(&b.plans, &b.object, &b.trace);
  read_object(&b, "{\"t\":\"q\"}");
  text_trace_word(&b.trace, 0, STR("w"), false);
  text_trace_word(&b.trace, 0, STR("x"), false);
  text_plans_add(&b.plans, &b.object, &b.trace);
  text_plans_add(&b.plans, &b.object, &b.trace);
  const struct plan_place *place = find(&b, "{\"t\":\"x\"}");
  assert_int_equal(place->plan_count, 2); /* nothing is kept twice */
  assert_false(text_plan_fits(place->plans, &b.object));
  assert_true(text_plan_fits(place->plans->next, &b.object));
  (void)find(&b, "{\"t\":\"w\"}");
  assert_false(text_plan_fits(place->plans, &b.object));
  assert_false(text_plan_fits(place->plans->next, &b.object));
  (void)find(&b, "{\"t\":\"\\u0078\"}"); /* escapes are left to those who decode them */
  assert_false(text_plan_fits(place->plans, &b.object));
  assert_false(text_plan_fits(place->plans->next, &b.object));
  (void)find(&b, "{\"t\":1}");
  assert_false(text_plan_fits(place->plans, &b.object));
  text_plans_deinit(&b.plans);
}

/* Whoever writes a new key into each object gets no memory for it. */
static void what_is_kept_has_bounds(void **state) {
  struct bed b = {0};
  char text[64];
  (void)state;
  for (int i = 0; i < 3 * PLAN_PLACES_MAX; i++) {
    (void)snprintf(text, sizeof text, "{\"k%d\":1}", i);
    read_object(&b, text);
    text_plans_add(&b.plans, &b.object, &b.trace);
  }
  assert_int_equal(b.plans.place_count, PLAN_PLACES_MAX);
  assert_non_null(find(&b, "{\"k7\":1}"));
  assert_null(find(&b, text));
  text_trace_begin(&b.trace);
  for (size_t i = 0; i <= PLAN_STEPS_MAX; i++)
    text_trace_value(&b.trace, 0, (uint32_t)i, true);
  assert_true(b.trace.over);
  text_trace_begin(&b.trace);
  for (size_t i = 0; i <= PLAN_WORDS_MAX; i++)
    text_trace_word(&b.trace, 0, (struct str){text, i % sizeof text}, false);
  assert_true(b.trace.over);
  text_plans_deinit(&b.plans);
}

/* Finds {"w":OBJECT} again, where OBJECT has a text of n bytes that ends with `end`. */
static const struct text_value *find_large(struct bed *b, size_t n, char end) {
  static char text[PLAN_TAKEN_MOST + 64];
  (void)snprintf(text, sizeof text, "{\"w\":{\"k\":\"%*s", (int)(n - 8), "");
  (void)snprintf(text + 5 + n - 3, sizeof text - 5 - n + 3, "%c\"}}", end);
  return find(b, text) != NULL ? &b->object.values[0] : NULL;
}

/* A large object that passed is known by its text, the last few of one place. */
static void large_objects_are_known_by_their_text(void **state) {
  struct bed b = {0};
  const size_t n = PLAN_TAKEN_LEAST;
  (void)state;
  read_object(&b, "{\"w\":{}}");
  text_trace_value(&b.trace, 0, 7, true);
  text_plans_add(&b.plans, &b.object, &b.trace);
  const struct text_value *v = find_large(&b, n, 'a');
  assert_non_null(v);
  assert_int_equal(v->text.n, n);
  assert_null(v->taken);
  assert_false(v->read);
  text_plan_take(&b.plans, v, 7);
  v = find_large(&b, n, 'a');
  assert_true(v->taken != NULL && v->taken->node == 7 && v->read && !v->escaped);
  assert_int_equal(v->text.n, n);
  assert_null(find_large(&b, n, 'b')->taken);
  assert_null(find_large(&b, n + 1, 'a')->taken);
  for (char end = 'c'; end < 'c' + PLAN_TAKEN_COUNT; end++)
    text_plan_take(&b.plans, find_large(&b, n, end), 7);
  assert_null(find_large(&b, n, 'a')->taken); /* the oldest is forgotten */
  assert_non_null(find_large(&b, n, 'c')->taken);
  static const size_t others[] = {PLAN_TAKEN_LEAST - 1, PLAN_TAKEN_MOST + 1};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    text_plan_take(&b.plans, find_large(&b, others[i], 'a'), 7);
    assert_null(find_large(&b, others[i], 'a')->taken);
  }
  for (int i = 0; i < 100; i++) {
    char text[16];
    (void)snprintf(text, sizeof text, "{\"%c\":{}}", 'a' + i % 20);
    read_object(&b, text);
    text_plans_add(&b.plans, &b.object, &b.trace);
    struct jscan js = scan_of(text);
    size_t end;
    assert_non_null(text_plans_find(&b.plans, &js, &b.object, &end));
    static char large[PLAN_TAKEN_MOST];
    b.object.values[0].text = (struct str){large, sizeof large};
    text_plan_take(&b.plans, &b.object.values[0], 7);
    jscan_deinit(&js);
    assert_true(b.plans.taken_bytes <= PLAN_TAKEN_ALL + PLAN_TAKEN_MOST);
  }
  assert_true(b.plans.taken_bytes > PLAN_TAKEN_ALL / 2);
  text_plans_deinit(&b.plans);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_what_has_the_same_keys),
      cmocka_unit_test(words_tell_kinds_apart),
      cmocka_unit_test(what_is_kept_has_bounds),
      cmocka_unit_test(large_objects_are_known_by_their_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
