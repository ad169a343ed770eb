/* Records: their times, there and back, and the order of their members. */
#include "core/record.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
  int64_t ms;
  const char *text;
} times[] = {
    {0, "1970-01-01T00:00:00.000Z"},
    {1, "1970-01-01T00:00:00.001Z"},
    {951782399999, "2000-02-28T23:59:59.999Z"},
    {951782400000, "2000-02-29T00:00:00.000Z"},
    {1795132800123, "2026-11-20T00:00:00.123Z"},
    {4102444800000, "2100-01-01T00:00:00.000Z"},
};

static void times_go_there_and_back(void **state) {
  (void)state;
  for (size_t i = 0; i < ARRAY_LEN(times); i++) {
    char text[RECORD_TIME_BYTES];
    int64_t ms = -1;
    record_time(times[i].ms, text);
    assert_string_equal(text, times[i].text);
    assert_true(record_time_parse(text, &ms));
    assert_int_equal(ms, times[i].ms);
  }
}

static void what_is_no_time(void **state) {
  static const char *const bad[] = {"",
                                    "yesterday",
                                    "2026-11-20",
                                    "2026-11-20T00:00:00Z",
                                    "2026-11-20T00:00:00.123",
                                    "2026-11-20T00:00:00.123ZZ",
                                    "2026-11-20 00:00:00.123Z",
                                    "2026-11-20T00:00:00.123+01:00"};
  int64_t ms;
  (void)state;
  assert_false(record_time_parse(NULL, &ms));
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    if (record_time_parse(bad[i], &ms))
      fail_msg("%s was taken for a time", bad[i]);
}

static void members_stand_in_one_order(void **state) {
  (void)state;
  json_t *time = json_string("2026-11-20T00:00:00.123Z"), *record = record_new(7, time, "stage");
  record_set_str(record, "reason", STR("because"));
  record_set_str(record, "empty", STR(""));
  char *text = json_dumps(record, JSON_COMPACT);
  assert_string_equal(text, "{\"v\":1,\"seq\":7,\"ts\":\"2026-11-20T00:00:00.123Z\",\"type\":"
                            "\"stage\",\"reason\":\"because\"}");
  free(text);
  json_decref(record);
  json_decref(time);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(times_go_there_and_back),
                                     cmocka_unit_test(what_is_no_time),
                                     cmocka_unit_test(members_stand_in_one_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
