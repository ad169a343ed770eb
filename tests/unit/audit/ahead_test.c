/* ahead_test - a log that is read ahead in threads gives the same lines, in the same order and at
 * the same places, as one that is read from its start; it is whole only if all of it is sound. */
#include "audit/ahead.h"
#include "base/resource.h"
#include "schema/schema.h"
#include "support/audit_log.h"
#include "support/log_ref.h"

/* The pieces that are read ahead hold 128 KiB, so this log has several dozens. */
enum { LINES = 6000, LONG_EACH = 500, LONG_BYTES = 300000 };

static struct schema *schema;
static char *dir, path[160];
static struct buf written; /* the whole log */

static int setup(void **state) {
  const struct resource *r = resource_find("schemas/session-log.json");
  json_t *doc = line_read(str_trim((struct str){r->p, r->n}), NULL);
  (void)state;
  schema = schema_compile(doc, NULL, NULL, NULL);
  json_decref(doc);
  dir = folder_make();
  (void)snprintf(path, sizeof path, "%s/log.ndjson", dir);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  schema_free(schema);
  buf_deinit(&written);
  folder_remove(dir);
  return 0;
}

/* Closes the chain over lines of different lengths; `longest` is the length of the last one. */
static void compose(size_t lines, size_t longest) {
  char hash[SHA256_HEX];
  memcpy(hash, line_first_hash, SHA256_HEX);
  buf_clear(&written);
  for (size_t i = 0; i < lines; i++) {
    size_t start = written.n, filling = i % 97;
    if (i % LONG_EACH == LONG_EACH - 1)
      filling = LONG_BYTES;
    if (i == lines - 1)
      filling = longest;
    buf_printf(&written, "{\"n\":%zu,\"text\":\"", i);
    for (size_t k = 0; k < filling; k++)
      buf_puts(&written, "x");
    buf_puts(&written, "\"}");
    line_close(&written, start, hash);
  }
}

static void put(size_t bytes) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(written.p, 1, bytes, f), bytes);
  assert_int_equal(fclose(f), 0);
}

/* Reads the log that was put, and compares its lines with the written ones. Returns how many. */
static size_t read_ahead(bool *whole) {
  struct ahead *a = ahead_new(schema, log_ref(path));
  struct ahead_line line;
  size_t count = 0, at = 0;
  assert_non_null(a);
  while (ahead_next(a, &line)) {
    assert_int_equal(line.offset, at);
    assert_memory_equal(line.text.p, written.p + at, line.text.n);
    assert_int_equal(written.p[at + line.text.n], '\n');
    at += line.text.n + 1;
    count++;
  }
  *whole = ahead_is_whole(a);
  ahead_free(a);
  return count;
}

static void every_line_in_order(void **state) {
  bool whole;
  (void)state;
  compose(LINES, 10);
  put(written.n);
  assert_int_equal(read_ahead(&whole), LINES);
  assert_true(whole);
}

static void an_empty_log_is_whole(void **state) {
  bool whole;
  (void)state;
  compose(0, 0);
  put(0);
  assert_int_equal(read_ahead(&whole), 0);
  assert_true(whole);
}

/* A changed byte anywhere keeps the log from being whole, and no line behind it is given. */
static void a_changed_byte(void **state) {
  (void)state;
  compose(LINES, 10);
  for (size_t i = 1; i < 8; i++) {
    size_t at = written.n / 8 * i;
    bool whole;
    while (written.p[at] != 'x')
      at++;
    written.p[at] = 'y';
    put(written.n);
    written.p[at] = 'x';
    struct ahead *a = ahead_new(schema, log_ref(path));
    struct ahead_line line = {.offset = 0};
    assert_non_null(a);
    while (ahead_next(a, &line))
      assert_true(line.offset + line.text.n <= at);
    whole = ahead_is_whole(a);
    ahead_free(a);
    assert_false(whole);
  }
}

static void a_torn_end_is_not_whole(void **state) {
  bool whole;
  (void)state;
  compose(LINES, 10);
  put(written.n - 1);
  (void)read_ahead(&whole);
  assert_false(whole);
}

static void a_line_that_is_too_long_is_left_to_others(void **state) {
  bool whole;
  (void)state;
  compose(10, (size_t)3 * 1024 * 1024);
  put(written.n);
  assert_true(read_ahead(&whole) < 10);
  assert_false(whole);
}

/* The threads end with whoever has read enough. */
static void given_up_early(void **state) {
  struct ahead_line line;
  (void)state;
  compose(LINES, 10);
  put(written.n);
  for (size_t lines = 0; lines < 1200; lines += 300) {
    struct ahead *a = ahead_new(schema, log_ref(path));
    assert_non_null(a);
    for (size_t i = 0; i < lines; i++)
      assert_true(ahead_next(a, &line));
    ahead_free(a);
  }
}

static void no_log(void **state) {
  (void)state;
  assert_null(ahead_new(schema, log_ref("/there/is/none.ndjson")));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_line_in_order),
      cmocka_unit_test(an_empty_log_is_whole),
      cmocka_unit_test(a_changed_byte),
      cmocka_unit_test(a_torn_end_is_not_whole),
      cmocka_unit_test(a_line_that_is_too_long_is_left_to_others),
      cmocka_unit_test(given_up_early),
      cmocka_unit_test(no_log),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
