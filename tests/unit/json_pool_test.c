/* JSON trees on the pool: whole, independent of each other, and their memory is used again. In a
 * sanitized build the pool is off and the same must hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "format/json_pool.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Strings of every length around the pool's sizes, and keys too. */
static json_t *make(int seed) {
  json_t *object = json_object();
  char text[400];
  for (int n = 0; n < 300; n += 7) {
    char key[32];
    (void)snprintf(key, sizeof key, "key %d of %d", n, seed);
    memset(text, 'a' + (seed + n) % 26, (size_t)n);
    text[n] = '\0';
    json_object_set_new(object, key, json_pack("[s i f n]", text, n, n / 2.0));
  }
  return object;
}

static void trees_do_not_touch_each_other(void **state) {
  json_t *trees[50];
  (void)state;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 50; i++)
      trees[i] = make(i);
    for (int i = 0; i < 50; i += 2)
      json_decref(trees[i]);
    for (int i = 0; i < 50; i += 2)
      trees[i] = make(i + 100);
    for (int i = 0; i < 50; i++) {
      json_t *again = make(i % 2 ? i : i + 100);
      assert_true(json_equal(trees[i], again));
      json_decref(again);
    }
    for (int i = 0; i < 50; i++)
      json_decref(trees[i]);
  }
}

static long resident_kib(void) {
  long pages = 0, ignored = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%ld %ld", &ignored, &pages), 2);
  (void)fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void memory_is_used_again(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++)
    json_decref(make(i));
  long before = resident_kib();
  for (int i = 0; i < 2000; i++)
    json_decref(make(i)); /* some 30 KiB each */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  (void)before; /* a sanitizer keeps what was freed */
#else
  assert_true(resident_kib() - before < 2048);
#endif
}

/* More than the region holds: the rest comes from malloc, and each goes back where it came from. */
static void a_full_region_is_no_failure(void **state) {
  (void)state;
  if (getenv("SEGUE_LONG") == NULL)
    skip();
  json_t *array = json_array();
  size_t count = LIMIT_JSON_POOL_BYTES / 16 / 2; /* each integer takes two steps */
  for (size_t i = 0; i < count + 100000; i++)
    assert_int_equal(json_array_append_new(array, json_integer((json_int_t)i)), 0);
  for (size_t i = 0; i < count + 100000; i += 99991)
    assert_int_equal(json_integer_value(json_array_get(array, i)), i);
  json_decref(array);
  trees_do_not_touch_each_other(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(trees_do_not_touch_each_other),
      cmocka_unit_test(memory_is_used_again),
      cmocka_unit_test(a_full_region_is_no_failure),
  };
  json_pool_use();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
