/* Lines in pieces of every length, and their bound. */
#include "format/sse.h"

#include "support/test.h"

#include <string.h>

static bool on_line(void *ctx, struct str line) {
  struct buf *log = ctx;
  buf_str(log, line);
  buf_putc(log, ';');
  return !str_eq_c(line, "stop");
}

TEST(lines_are_found_however_they_are_cut) {
  static const struct {
    const char *stream, *log;
  } cases[] = {
      {"{}\n{\"a\":1}\n", "{};{\"a\":1};"},
      {"{}\r\n\r\n  \n[1]\r\n", "{};[1];"},
      {"1\nthe last", "1;the last;"},
      {"\n\n", ""},
      {"", ""},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    for (size_t piece = 1; piece <= 20; piece++) {
      buf_auto_t log = {0};
      AUTO(ndjson_deinit) struct ndjson nd;
      size_t n = strlen(cases[i].stream);
      ndjson_init(&nd, 100, on_line, &log);
      for (size_t at = 0; at < n; at += piece)
        assert_true(
            ndjson_feed(&nd, (struct str){cases[i].stream + at, n - at < piece ? n - at : piece}));
      assert_true(ndjson_end(&nd));
      assert_string_equal(buf_c(&log), cases[i].log);
    }
}

TEST(a_line_has_a_bound) {
  buf_auto_t log = {0};
  struct ndjson nd;
  ndjson_init(&nd, 5, on_line, &log);
  assert_true(ndjson_feed(&nd, STR("12345\n")));
  assert_false(ndjson_feed(&nd, STR("123456\n")));
  assert_true(nd.over_max);
  ndjson_deinit(&nd);
  ndjson_init(&nd, 5, on_line, &log);
  assert_true(ndjson_feed(&nd, STR("123")));
  assert_false(ndjson_feed(&nd, STR("456")));
  assert_true(nd.over_max);
  assert_false(ndjson_end(&nd));
  ndjson_deinit(&nd);
  assert_string_equal(buf_c(&log), "12345;");
}

TEST(the_reader_may_stop) {
  buf_auto_t log = {0};
  AUTO(ndjson_deinit) struct ndjson nd;
  ndjson_init(&nd, 100, on_line, &log);
  assert_false(ndjson_feed(&nd, STR("stop\nmore\n")));
  assert_true(nd.stopped && !nd.over_max);
  assert_string_equal(buf_c(&log), "stop;");
}
