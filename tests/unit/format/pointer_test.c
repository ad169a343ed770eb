/* JSON Pointers: the examples of RFC 6901, what is none, and the star. */
#include "support/data.h"

#include "format/pointer.h"
#include "support/test.h"

static const json_t *get(const json_t *doc, const char *pointer) {
  return pointer_get(doc, str_from(pointer));
}

TEST(the_examples_of_the_rfc) {
  json_auto_t *doc = json_loads("{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,"
                                "\"g|h\":4,\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8}",
                                0, NULL);
  static const struct {
    const char *pointer;
    int value;
  } cases[] = {{"/", 0},     {"/a~1b", 1}, {"/c%d", 2}, {"/e^f", 3}, {"/g|h", 4},
               {"/i\\j", 5}, {"/k\"l", 6}, {"/ ", 7},   {"/m~0n", 8}};
  assert_ptr_equal(get(doc, ""), doc);
  assert_string_equal(json_string_value(get(doc, "/foo/0")), "bar");
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    assert_int_equal(json_integer_value(get(doc, cases[i].pointer)), cases[i].value);
}

TEST(what_is_not_there_is_null) {
  static const char *const none[] = {
      "/x",     "/foo/2",   "/foo/-1", "/foo/01", "/foo/bar",
      "/foo/-", "/foo/0/x", "foo",     "/a~2b",   "/foo/99999999999999999999"};
  json_auto_t *doc = json_loads("{\"foo\":[\"bar\",\"baz\"]}", 0, NULL);
  for (size_t i = 0; i < ARRAY_LEN(none); i++)
    if (get(doc, none[i]) != NULL)
      fail_msg("%s is there", none[i]);
}

static bool add(void *ctx, const json_t *value) {
  *(json_int_t *)ctx += json_integer_value(value);
  return true;
}

TEST(a_star_is_all_of_them) {
  json_auto_t *doc =
      data_json("{'m': {'x': {'n': [1, 2]}, 'y': {'n': [3]}, 'z': {'other': 0}}, 'l': []}");
  json_int_t sum = 0;
  pointer_each(doc, STR("/m/*/n/*"), add, &sum);
  assert_int_equal(sum, 6);
  assert_int_equal(json_integer_value(get(doc, "/m/*/n/0")), 1);
  assert_null(get(doc, "/l/*"));
}

TEST(pointers_are_checked) {
  assert_true(pointer_valid(STR("")));
  assert_true(pointer_valid(STR("/a/~0~1")));
  assert_false(pointer_valid(STR("a")));
  assert_false(pointer_valid(STR("/~")));
  assert_false(
      pointer_valid(STR("/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1")));
}
