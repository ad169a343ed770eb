/* A judgment as pieces: cut, marked, and with its ambiguity told. */
#include "view/judgment.h"

#include "format/json_object.h"
#include "support/log_book.h"
#include "support/test.h"

static void read_told(struct view_judgment *told, const struct verified_reader *book, long turn,
                      size_t max) {
  struct err err;
  if (!view_judgment_read(told, book, turn, max, max, &err))
    fail_msg("%s", err.text);
}

/* However much of each text is kept: as many pieces, what is missing is told, marks stay within. */
TEST(cut) {
  for (long turn = 1; turn <= 4; turn++) {
    AUTO(view_judgment_deinit) struct view_judgment whole;
    read_told(&whole, &log_book, turn, SIZE_MAX);
    assert_false(view_judgment_is_cut(&whole));
    assert_int_equal(whole.pieces[0].kind, VIEW_TITLE);
    assert_non_null(whole.judgment);
    for (size_t max = 0; max < 200; max += 9) {
      AUTO(view_judgment_deinit) struct view_judgment told;
      bool any = false;
      read_told(&told, &log_book, turn, max);
      assert_int_equal(told.count, whole.count);
      for (size_t i = 0; i < told.count; i++) {
        const struct view_piece *p = &told.pieces[i];
        any |= p->more_bytes > 0;
        assert_int_equal(p->text.n + p->more_bytes, whole.pieces[i].text.n);
        assert_memory_equal(p->text.p, whole.pieces[i].text.p, p->text.n);
        for (const struct view_mark *m = p->marks; m != NULL; m = m->next)
          assert_true(m->length > 0 && m->offset + m->length <= p->text.n);
      }
      assert_int_equal(view_judgment_is_cut(&told), any);
    }
  }
}

/* Is there a mark of this kind on exactly these bytes? */
static bool is_marked(const struct view_judgment *told, enum text_writer_mark what,
                      const char *bytes) {
  for (size_t i = 0; i < told->count; i++)
    for (const struct view_mark *m = told->pieces[i].marks; m != NULL; m = m->next)
      if (m->what == what &&
          str_eq_c((struct str){told->pieces[i].text.p + m->offset, m->length}, bytes))
        return true;
  return false;
}

TEST(marked) {
  struct view_judgment told;
  read_told(&told, &log_book, 2, SIZE_MAX);
  assert_true(
      is_marked(&told, TEXT_WRITER_PIECE, "{\"reason\": \"a case fails\", \"matched_index\": 2}"));
  assert_true(is_marked(&told, TEXT_WRITER_MENTION, "[REVIEW:1]"));
  assert_false(is_marked(&told, TEXT_WRITER_TAG, "[REVIEW:1]"));
  json_auto_t *json = view_judgment_json(&told);
  assert_int_equal(json_integer_value(json_at(json_at(json, "judgment"), "rule")), 2);
  assert_true(json_array_size(json_at(json, "told")) > 3);
  view_judgment_deinit(&told);
  read_told(&told, &log_book, 3, SIZE_MAX);
  assert_true(is_marked(&told, TEXT_WRITER_TAG, "[FIX:1]"));
  view_judgment_deinit(&told);
}

static bool has_line(const struct view_judgment *told, const char *line) {
  for (size_t i = 0; i < told->count; i++)
    if (told->pieces[i].kind == VIEW_LINE && str_eq_c(told->pieces[i].text, line))
      return true;
  return false;
}

TEST(ambiguous) {
  AUTO(drive_deinit) struct drive d;
  AUTO(verified_close) struct verified_reader book;
  AUTO(view_judgment_deinit) struct view_judgment told;
  drive_init(&d);
  drive_start(&d, drive_workflow, "x", drive_config());
  drive_exit(&d, 0, "pass\n");
  drive_answer(&d, "It is good.");
  drive_answer(&d, "It is good."); /* no value, and none when it is asked again */
  drive_answer(&d, "It is good.");
  drive_answer(&d, "It is good."); /* no tag, twice */
  drive_answer(&d, "It is good.");
  drive_answer(
      &d, "{\"matched_index\": 1, \"reason\": \"a\"}\n\n{\"matched_index\": 2, \"reason\": \"b\"}");
  drive_answer(
      &d, "{\"matched_index\": 1, \"reason\": \"a\"}\n\n{\"matched_index\": 2, \"reason\": \"b\"}");
  drive_write(&d);
  log_book_open(&book, d.path);
  read_told(&told, &book, 2, SIZE_MAX);
  assert_true(has_line(
      &told,
      "candidate 1: rule 1 (approved): {\"matched_index\": 1, \"reason\": \"a\"} on line 1"));
  assert_true(has_line(
      &told,
      "candidate 2: rule 2 (needs fix): {\"matched_index\": 2, \"reason\": \"b\"} on line 3"));
}

TEST_GROUP(log_book_setup, log_book_teardown)
