/* Raw records in pages, and single texts in pieces. */
#include "view/raw.h"

#include "format/json_object.h"
#include "support/log_book.h"
#include "support/test.h"

static struct str line_of(size_t number) {
  struct str log = buf_view(&drive.log), line = {0};
  for (size_t i = 0; i < number; i++)
    line = str_next_line(&log);
  return line;
}

/* Each record once, whatever the size of a page, with what its line says of it. */
TEST(pages) {
  size_t count = json_array_size(drive.records);
  for (size_t max = 1; max <= count + 1; max++) {
    uint64_t after = 0;
    size_t seen = 0;
    do {
      struct view_raws raws;
      struct err err;
      assert_true(view_raws_read(&raws, &log_book, after, max, SIZE_MAX, &err));
      assert_true(raws.count <= max);
      for (size_t i = 0; i < raws.count; i++) {
        const struct view_raw *raw = &raws.items[i];
        json_t *record = json_array_get(drive.records, seen++);
        assert_int_equal(raw->seq, seen);
        assert_true(str_eq(raw->line, line_of(seen)));
        assert_int_equal(raw->more_bytes, 0);
        assert_true(str_eq_c(raw->type, json_string_value(json_at(record, "type"))));
        assert_int_equal(raw->turn, json_integer_value(json_at(record, "turn")));
        assert_int_equal(raw->hash.n, SHA256_HEX - 1);
        assert_non_null(memmem(raw->line.p, raw->line.n, raw->hash.p, raw->hash.n));
        assert_false(raw->unproven);
      }
      after = raws.next;
      view_raws_deinit(&raws);
    } while (after > 0);
    assert_int_equal(seen, count);
  }
}

/* A line that is cut keeps whole characters, and its hash, which stands at its end. */
TEST(cut_lines) {
  for (size_t max = 0; max < 700; max += 7) {
    AUTO(view_raws_deinit) struct view_raws raws;
    struct err err;
    assert_true(view_raws_read(&raws, &log_book, 0, 100, max, &err));
    for (size_t i = 0; i < raws.count; i++) {
      struct str line = line_of(i + 1);
      assert_true(raws.items[i].line.n <= max);
      assert_int_equal(raws.items[i].line.n + raws.items[i].more_bytes, line.n);
      assert_memory_equal(raws.items[i].line.p, line.p, raws.items[i].line.n);
      assert_int_equal(raws.items[i].hash.n, SHA256_HEX - 1);
    }
  }
}

/* Pieces of any size, put together, are the text; none begins or ends within a character. */
static void in_pieces(const char *ref, struct str whole) {
  for (size_t max = 4; max < whole.n + 8; max = max < 40 ? max + 1 : max * 2) {
    buf_auto_t got = {0};
    size_t from = 0;
    do {
      struct view_excerpt e;
      struct err err;
      if (!view_excerpt_read(&e, &log_book, ref, from, max, &err))
        fail_msg("%s: %s", ref, err.text);
      assert_int_equal(e.offset, from);
      assert_int_equal(e.bytes, whole.n);
      assert_true(e.text.n > 0 && e.text.n <= max);
      buf_str(&got, e.text);
      from += e.text.n;
      view_excerpt_deinit(&e);
    } while (from < whole.n);
    assert_true(str_eq(buf_view(&got), whole));
  }
}

TEST(excerpts) {
  in_pieces("1#/task", STR("Mend the queue.\nIt loses its oldest item when it is full."));
  JSON_EACH(drive.records, i, record) {
    char ref[40];
    print_into(ref, sizeof ref, "%zu", i + 1);
    in_pieces(ref, line_of(i + 1));
    if (json_at(record, "text") == NULL || json_at(record, "text_blob") != NULL)
      continue;
    print_into(ref, sizeof ref, "%zu#/text", i + 1);
    in_pieces(ref, json_view(json_at(record, "text")));
  }
}

/* A text that is not UTF-8 stands in a blob: its bytes are what is read. */
TEST(from_a_blob) {
  size_t blobs = 0;
  JSON_EACH(drive.records, i, record) {
    struct view_excerpt e;
    struct err err;
    char ref[40];
    if (json_at(record, "text_blob") == NULL)
      continue;
    blobs++;
    print_into(ref, sizeof ref, "%zu#/text", i + 1);
    assert_true(view_excerpt_read(&e, &log_book, ref, 0, 100, &err));
    assert_true(str_eq(e.text, (struct str){"fixed \xff it\n", 11}));
    view_excerpt_deinit(&e);
  }
  assert_int_equal(blobs, 1);
}

/* An offset within a character counts as its begin; one behind the end counts as the end. */
TEST(odd_offsets) {
  static const char word[] = "\xE2\x80\xAE"; /* stands in the first review's answer */
  for (size_t i = 0; i < json_array_size(drive.records); i++) {
    struct str line = line_of(i + 1);
    const char *at = memmem(line.p, line.n, word, 3);
    struct view_excerpt e;
    struct err err;
    char ref[40];
    if (at == NULL)
      continue;
    print_into(ref, sizeof ref, "%zu", i + 1);
    for (size_t k = 0; k < 3; k++) {
      assert_true(view_excerpt_read(&e, &log_book, ref, (size_t)(at - line.p) + k, 100, &err));
      assert_int_equal(e.offset, at - line.p);
      view_excerpt_deinit(&e);
    }
    assert_true(view_excerpt_read(&e, &log_book, ref, line.n + 50, 100, &err));
    assert_int_equal(e.text.n, 0);
    assert_int_equal(e.offset, line.n);
    view_excerpt_deinit(&e);
  }
}

TEST(no_texts) {
  static const char *const wrong[] = {"",         "0",         "99",     "-1",   "1#/nothing",
                                      "99#/text", "1#/config", "#/text", "x#/y", "1#"};
  for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
    struct view_excerpt e;
    struct err err = {0};
    if (view_excerpt_read(&e, &log_book, wrong[i], 0, 10, &err))
      fail_msg("\"%s\" is a place", wrong[i]);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_null(view_text_json(&log_book, wrong[i], 0, 10, &err));
  }
}

TEST(as_json) {
  struct err err;
  json_auto_t *first = view_text_json(&log_book, "1#/task", 0, 4, &err);
  assert_string_equal(json_string_value(json_at(first, "text")), "Mend");
  assert_int_equal(json_integer_value(json_at(first, "next")), 4);
  json_auto_t *last = view_text_json(&log_book, "1#/task", 4, 400, &err);
  assert_true(json_is_null(json_at(last, "next")));
  json_auto_t *records = view_raws_json(&log_book, 2, 3, SIZE_MAX, &err);
  assert_int_equal(json_array_size(json_at(records, "records")), 3);
  assert_int_equal(json_integer_value(json_at(records, "next")), 5);
  json_auto_t *call = view_call_json(&log_book, 1, SIZE_MAX, &err);
  assert_true(json_array_size(json_at(call, "records")) >= 2);
  assert_null(view_call_json(&log_book, 999, SIZE_MAX, &err));
  assert_int_equal(err.code, ERR_NOT_FOUND);
}

TEST_GROUP(log_book_setup, log_book_teardown)
