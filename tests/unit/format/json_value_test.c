/* Comparing and copying values, with keys and texts that contain NUL. */

#include "format/json_value.h"
#include "support/test.h"
#include "json/scan.h"

#include <string.h>

static json_t *parsed(const char *text) {
  AUTO(jscan_deinit) struct jscan js;
  struct jscan_result r = {0};
  jscan_init(&js, text, strlen(text));
  assert_int_equal(jscan_value(&js, 0, &r), JSCAN_OK);
  return r.value;
}

TEST(test_same) {
  static const struct {
    const char *a, *b;
    bool same;
  } rows[] = {
      {"{\"a\":1,\"b\":[true,null,\"x\"]}", "{\"b\":[true,null,\"x\"],\"a\":1}", true},
      {"{\"a\\u0000b\":1}", "{\"a\\u0000b\":1}", true},
      {"{\"a\\u0000b\":1}", "{\"a\\u0000c\":1}", false},
      {"{\"a\\u0000b\":1}", "{\"a\":1}", false},
      {"[{\"\\u0000\":{}}]", "[{\"\":{}}]", false},
      {"\"a\\u0000b\"", "\"a\\u0000c\"", false},
      {"\"a\\u0000b\"", "\"a\\u0000b\"", true},
      {"\"a\"", "\"a\\u0000\"", false},
      {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
      {"[1,2]", "[1]", false},
      {"[1,2]", "[2,1]", false},
      {"1", "1.0", false},
      {"1.5", "1.50", true},
      {"true", "false", false},
      {"null", "false", false},
      {"[]", "{}", false},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    json_auto_t *a = parsed(rows[i].a), *b = parsed(rows[i].b);
    if (json_same(a, b) != rows[i].same || json_same(b, a) != rows[i].same)
      fail_msg("%s and %s", rows[i].a, rows[i].b);
    assert_true(json_same(a, a));
    assert_false(json_same(a, NULL) || json_same(NULL, a));
  }
  assert_false(json_same(NULL, NULL));
}

TEST(test_clone) {
  json_auto_t *a =
      parsed("{\"a\\u0000b\":[1,{\"\\u0000\":\"x\\u0000y\"},2.5,true,false,null],\"a\":\"t\"}");
  json_auto_t *deep = json_clone(a), *top = json_clone_top(a);
  assert_true(json_same(a, deep) && json_same(a, top));
  json_t *list = json_object_getn(a, "a\0b", 3);
  assert_ptr_equal(json_object_getn(top, "a\0b", 3), list); /* shared */
  json_array_clear(list);
  assert_false(json_same(a, deep));
  assert_int_equal(json_array_size(json_object_getn(deep, "a\0b", 3)), 6);
  json_object_clear(top);
  assert_int_equal(json_object_size(a), 2);
  assert_null(json_clone(NULL));
  assert_null(json_clone_top(NULL));
}
