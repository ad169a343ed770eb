/* Logs line by line: sizes around the chunk, a last line without newline, files that grow. */

#include "base/limits.h"
#include "store/reader.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/log_ref.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *dir;
static char path[512];

static int setup(void **state) {
  (void)state;
  dir = folder_make();
  print_into(path, sizeof path, "%s/log", dir);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

static void add(const void *bytes, size_t n, int flags) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, n), n);
  close(fd);
}

TEST_WITH(setup, teardown, lines_come_in_order) {
  DATA_ROWS("store/reader/lines_come_in_order.yaml", c, text, lines, last, whole) {
    AUTO(reader_close) struct log_reader r;
    struct str line = {"", 0};
    struct err err;
    size_t n = 0;
    uint64_t at = 0;
    add(c.text, strlen(c.text), O_TRUNC);
    assert_true(reader_open(&r, log_ref(path), &err));
    while (reader_next(&r, &line)) {
      n++;
      assert_int_equal(r.offset, at);
      at += line.n + r.whole;
      if (n == (size_t)data_number(c.lines)) {
        assert_true(str_eq_c(line, c.last));
        assert_int_equal(r.whole, data_true(c.whole));
      } else {
        assert_true(r.whole);
      }
    }
    assert_int_equal(n, (size_t)data_number(c.lines));
    assert_int_equal(at, strlen(c.text));
    assert_false(reader_next(&r, &line));
    assert_int_equal(r.error, 0);
  }
}

TEST_WITH(setup, teardown, sizes_around_a_chunk) {
  static const size_t sizes[] = {1, 65534, 65535, 65536, 65537, 131071, 131072, 131073, 1 << 20};
  for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
    buf_auto_t text = {0};
    AUTO(reader_close) struct log_reader r;
    struct str line;
    struct err err;
    for (int k = 0; k < 3; k++) {
      for (size_t n = 0; n < sizes[i]; n++)
        buf_putc(&text, (char)('a' + k));
      buf_putc(&text, '\n');
    }
    add(text.p, text.n, O_TRUNC);
    assert_true(reader_open(&r, log_ref(path), &err));
    for (int k = 0; k < 3; k++) {
      assert_true(reader_next(&r, &line));
      assert_int_equal(line.n, sizes[i]);
      assert_int_equal(line.p[0], 'a' + k);
      assert_int_equal(line.p[line.n - 1], 'a' + k);
      assert_int_equal(r.offset, (size_t)k * (sizes[i] + 1));
    }
    assert_false(reader_next(&r, &line));
  }
}

TEST_WITH(setup, teardown, nothing_over_the_limit_is_kept) {
  struct log_reader r;
  struct str line;
  struct err err;
  add("first\n", 6, O_TRUNC);
  assert_int_equal(truncate(path, (off_t)LIMIT_LOG_LINE_BYTES + 1000), 0); /* a hole of NULs */
  assert_true(reader_open(&r, log_ref(path), &err));
  assert_true(reader_next(&r, &line));
  assert_true(str_eq_c(line, "first"));
  assert_false(reader_next(&r, &line)); /* the hole is one byte too long, or more */
  assert_true(r.too_long);
  assert_true(r.buffer.cap < LIMIT_LOG_LINE_BYTES / 8);
  reader_close(&r);
  assert_int_equal(truncate(path, (off_t)LIMIT_LOG_LINE_BYTES + (1 << 20)), 0);
  assert_true(reader_open(&r, log_ref(path), &err));
  assert_true(reader_next(&r, &line));
  assert_false(reader_next(&r, &line));
  assert_true(r.too_long);
  reader_close(&r);
}

TEST_WITH(setup, teardown, a_growing_file_is_followed) {
  AUTO(reader_close) struct log_reader r;
  struct str line;
  struct err err;
  add("one\ntw", 6, O_TRUNC);
  assert_true(reader_open(&r, log_ref(path), &err));
  assert_true(reader_next(&r, &line));
  assert_true(str_eq_c(line, "one"));
  assert_true(reader_next(&r, &line));
  assert_false(r.whole);
  reader_again(&r);
  assert_true(reader_next(&r, &line));
  assert_false(r.whole); /* still half */
  reader_again(&r);
  add("o\nthree\n", 8, O_APPEND);
  assert_true(reader_next(&r, &line));
  assert_true(str_eq_c(line, "two"));
  assert_true(r.whole);
  assert_int_equal(r.offset, 4);
  assert_true(reader_next(&r, &line));
  assert_true(str_eq_c(line, "three"));
  assert_false(reader_next(&r, &line));
  reader_again(&r);
  assert_false(reader_next(&r, &line));
  reader_again(&r);
  add("four\n", 5, O_APPEND);
  assert_true(reader_next(&r, &line));
  assert_true(str_eq_c(line, "four"));
  assert_int_equal(r.offset, 14);
}

/* Bytes near the last line are in memory. */
TEST_WITH(setup, teardown, lines_are_held) {
  AUTO(reader_close) struct log_reader r;
  struct str line;
  struct err err;
  add("one\ntwo\nthree\n", 14, O_TRUNC);
  assert_true(reader_open(&r, log_ref(path), &err));
  assert_null(reader_held(&r, 0, 3));
  assert_true(reader_next(&r, &line) && reader_next(&r, &line));
  assert_memory_equal(reader_held(&r, 0, 7), "one\ntwo", 7);
  assert_memory_equal(reader_held(&r, 8, 6), "three\n", 6);
  assert_null(reader_held(&r, 8, 7));
}

/* A read that met the end saves the next one there, and no more: what was appended is read. */
TEST_WITH(setup, teardown, an_end_is_seen_once) {
  char out[16];
  AUTO(reader_close) struct log_reader r;
  struct err err;
  add("one\n", 4, O_TRUNC);
  assert_true(reader_open(&r, log_ref(path), &err));
  assert_int_equal(reader_read(&r, 0, out, sizeof out), 4);
  add("two\n", 4, O_APPEND);
  assert_int_equal(reader_read(&r, 4, out, sizeof out), 0);
  assert_int_equal(reader_read(&r, 4, out, sizeof out), 4);
  assert_int_equal(reader_read(&r, 0, out, 4), 4);
  assert_int_equal(reader_read(&r, 4, out, sizeof out), 4); /* the first had no room to see it */
  assert_int_equal(reader_read(&r, 0, out, sizeof out), 8);
  assert_int_equal(reader_read(&r, 4, out, sizeof out), 4);
}

TEST_WITH(setup, teardown, only_files_are_read) {
  AUTO(reader_close) struct log_reader r;
  struct err err;
  assert_false(reader_open(&r, log_ref(path), &err));
  assert_int_equal(err.code, ERR_NOT_FOUND);
  assert_false(reader_open(&r, log_ref(dir), &err));
  assert_int_equal(err.code, ERR_IO);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_false(reader_open(&r, log_ref(path), &err));
  assert_int_equal(err.code, ERR_IO);
}
