/* The map against a plain list: every key found with its last value, none that was not put. */
#include "base/map.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 5000 };

static struct str key_at(char out[32], uint32_t i) {
  int n = snprintf(out, 32, "%u/%u", i % 7, i);
  return (struct str){out, (size_t)n};
}

TEST(each_key_keeps_its_value_while_the_table_grows) {
  AUTO(map_deinit) struct map map = {0};
  AUTO(arena_deinit) struct arena arena = {0};
  char text[32];
  uint32_t value = 0;
  for (uint32_t i = 0; i < KEYS; i++) {
    map_put(&map, &arena, key_at(text, i), i * 3);
    assert_int_equal(map.count, i + 1);
    assert_false(map_get(&map, key_at(text, i + 1), &value));
  }
  for (uint32_t i = 0; i < KEYS; i++) {
    assert_true(map_get(&map, key_at(text, i), &value));
    assert_int_equal(value, i * 3);
  }
}

TEST(a_put_replaces_and_an_add_does_not) {
  AUTO(map_deinit) struct map map = {0};
  AUTO(arena_deinit) struct arena arena = {0};
  uint32_t value = 1;
  assert_true(map_add(&map, &arena, STR("a"), &value));
  value = 2;
  assert_false(map_add(&map, &arena, STR("a"), &value));
  assert_int_equal(value, 1);
  map_put(&map, &arena, STR("a"), 3);
  assert_true(map_get(&map, STR("a"), &value));
  assert_int_equal(value, 3);
  assert_int_equal(map.count, 1);
}

TEST(keys_are_bytes_and_copied) {
  AUTO(map_deinit) struct map map = {0};
  AUTO(arena_deinit) struct arena arena = {0};
  char key[] = {'a', '\0', 'b'};
  const void *pointer = &map;
  uint32_t value = 0;
  assert_false(map_get(&map, STR(""), &value));
  map_put(&map, &arena, (struct str){key, 3}, 1);
  map_put(&map, &arena, (struct str){key, 2}, 2);
  map_put(&map, &arena, (struct str){NULL, 0}, 3);
  map_put(&map, &arena, MAP_KEY(pointer), 4);
  memset(key, 'x', sizeof key);
  assert_true(map_get(&map, (struct str){"a\0b", 3}, &value));
  assert_int_equal(value, 1);
  assert_true(map_get(&map, (struct str){"a\0", 2}, &value));
  assert_int_equal(value, 2);
  assert_true(map_get(&map, STR(""), &value));
  assert_int_equal(value, 3);
  assert_true(map_get(&map, MAP_KEY(pointer), &value));
  assert_int_equal(value, 4);
  assert_false(map_get(&map, (struct str){key, 3}, &value));
}
