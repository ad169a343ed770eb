/* The arena: zeroed, aligned, many sizes, all gone at once. */
#include "base/arena.h"
#include "support/test.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

TEST(pieces_are_zeroed_aligned_and_apart) {
  struct arena arena = {0};
  unsigned char *last = NULL;
  size_t last_n = 0;
  for (size_t i = 0; i < 3000; i++) {
    size_t n = i * 7919 % 97 * (i % 50 == 0 ? 200 : 1);
    unsigned char *p = arena_alloc(&arena, n);
    assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
    for (size_t k = 0; k < n; k++)
      assert_int_equal(p[k], 0);
    memset(p, 0xAB, n);
    for (size_t k = 0; k < last_n; k++)
      assert_int_equal(last[k], 0xAB);
    last = p;
    last_n = n;
  }
  assert_true(arena.used_bytes > 0);
  arena_deinit(&arena);
  assert_null(arena.blocks);
  assert_int_equal(arena.used_bytes, 0);
  arena_deinit(&arena);
}

TEST(texts_are_copied) {
  AUTO(arena_deinit) struct arena arena = {0};
  char text[] = "hello";
  char *copy = arena_strdup(&arena, text), *part = arena_strndup(&arena, text, 2);
  struct str view = arena_str(&arena, (struct str){text, 4});
  struct str none = arena_str(&arena, (struct str){NULL, 0});
  memset(text, 'x', 5);
  assert_string_equal(copy, "hello");
  assert_string_equal(part, "he");
  assert_true(str_eq_c(view, "hell"));
  assert_int_equal(view.p[4], '\0');
  assert_string_equal(none.p, "");
  long *numbers = arena_array(&arena, 1000, sizeof *numbers);
  assert_int_equal(numbers[999], 0);
  assert_non_null(arena_array(&arena, 0, 8));
}

TEST(lists_copy_texts_and_end_with_null) {
  AUTO(arena_deinit) struct arena arena = {0};
  struct arena_list list = {0};
  char text[] = "n0";
  assert_null(list.items);
  for (size_t i = 0; i < 40; i++) {
    text[1] = (char)('0' + i % 10);
    arena_list_add(&arena, &list, str_from(text));
    assert_int_equal(list.n, i + 1);
    assert_null(list.items[i + 1]);
  }
  for (size_t i = 0; i < 40; i++)
    assert_int_equal(list.items[i][1], '0' + i % 10);
}
