/* Comparing and copying values, with keys and texts that contain NUL. */

#include "format/json_value.h"
#include "support/data.h"
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
  DATA_ROWS("format/json_value/same.yaml", c, a, b, same) {
    json_auto_t *a = parsed(c.a), *b = parsed(c.b);
    if (json_same(a, b) != data_true(c.same) || json_same(b, a) != data_true(c.same))
      fail_msg("%s and %s", c.a, c.b);
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
