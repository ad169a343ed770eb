/* line_test - one record as a line: its form, its hash, and that no change of a byte goes through.
 */
#include "base/memory.h"
#include "format/json_write.h"
#include "store/record_line.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static void compose(const char *json, struct buf *out, char hash[SHA256_HEX]) {
  size_t start = out->n;
  json_auto_t *record = json_loads(json, JSON_ALLOW_NUL, NULL);
  assert_non_null(record);
  json_write(record, out);
  record_line_close(out, start, hash);
}

static void start(char hash[SHA256_HEX]) {
  memcpy(hash, record_line_first_hash, SHA256_HEX);
}

TEST(form) {
  buf_auto_t line = {0};
  char hash[SHA256_HEX], expected[SHA256_HEX];
  const char *body = "{\"v\":1,\"seq\":1";
  start(hash);
  compose("{\"v\": 1, \"seq\": 1}", &line, hash);
  sha256_hex(record_line_first_hash, 64, body, strlen(body), expected);
  assert_string_equal(hash, expected);
  assert_int_equal(line.n, strlen(body) + strlen(",\"hash\":\"") + 64 + strlen("\"}\n"));
  assert_memory_equal(line.p, body, strlen(body));
  assert_int_equal(line.p[line.n - 1], '\n');
  assert_memory_equal(line.p + line.n - 3 - 64, expected, 64);
}

TEST(chain_of_three) {
  static const char *const records[] = {"{\"seq\":1,\"text\":\"a\\u0000b\"}",
                                        "{\"seq\":2,\"text\":\"\\u00e9\\ud83d\\ude00\\n\"}",
                                        "{\"seq\":3,\"x\":{\"hash\":\"0\"},\"y\":[1.5,null]}"};
  buf_auto_t log = {0};
  char written[SHA256_HEX], read[SHA256_HEX];
  start(written);
  start(read);
  for (size_t i = 0; i < ARRAY_LEN(records); i++)
    compose(records[i], &log, written);
  struct str rest = buf_view(&log);
  for (size_t i = 0; i < ARRAY_LEN(records); i++) {
    struct err err;
    struct str line = str_next_line(&rest);
    json_auto_t *record = record_line_parse(line, read, &err);
    json_auto_t *original = json_loads(records[i], JSON_ALLOW_NUL, NULL);
    assert_non_null(record);
    assert_memory_equal(json_string_value(json_object_get(record, "hash")), read, 64);
    json_object_del(record, "hash");
    assert_true(json_equal(record, original));
  }
  assert_string_equal(written, read);
}

TEST(out_of_order) {
  buf_auto_t first = {0}, second = {0};
  char hash[SHA256_HEX], before[SHA256_HEX];
  struct err err;
  start(hash);
  compose("{\"seq\":1}", &first, hash);
  compose("{\"seq\":2}", &second, hash);
  start(hash);
  memcpy(before, hash, SHA256_HEX);
  assert_null(record_line_parse((struct str){second.p, second.n - 1}, hash, &err));
  assert_int_equal(err.code, ERR_CORRUPT);
  assert_string_equal(hash, before); /* a refused line leaves the chain where it was */
}

/* Any byte to any other, and any byte dropped or doubled. */
TEST(every_change) {
  buf_auto_t line = {0}, changed = {0};
  char hash[SHA256_HEX];
  struct err err;
  start(hash);
  compose("{\"seq\":1,\"text\":\"x\"}", &line, hash);
  line.n--; /* its newline is the reader's */
  for (size_t i = 0; i < line.n; i++)
    for (int byte = -2; byte < 256; byte++) {
      if (byte == (unsigned char)line.p[i])
        continue;
      buf_clear(&changed);
      buf_append(&changed, line.p, i);
      if (byte >= 0)
        buf_putc(&changed, (char)byte);
      else if (byte == -2)
        buf_append(&changed, (const char[]){line.p[i], line.p[i]}, 2);
      buf_append(&changed, line.p + i + 1, line.n - i - 1);
      start(hash);
      json_t *record = record_line_parse(buf_view(&changed), hash, &err);
      if (record != NULL)
        fail_msg("byte %zu to %d goes through: %s", i, byte, changed.p);
    }
}

/* The hash is right, and the line still is no record. */
TEST(hashed_nonsense) {
  static const char *const bodies[] = {"",  "[1",   "{\"a\":1,\"a\":2", "{\"a\":\"\xff\"",
                                       "{", "\"x\""};
  for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
    buf_auto_t line = {0};
    char hash[SHA256_HEX], own[SHA256_HEX];
    struct err err;
    start(hash);
    sha256_hex(hash, 64, bodies[i], strlen(bodies[i]), own);
    buf_printf(&line, "%s,\"hash\":\"%s\"}", bodies[i], own);
    assert_null(record_line_parse(buf_view(&line), hash, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
    assert_string_equal(hash, record_line_first_hash);
  }
}

TEST(short_lines) {
  static const char tail[] = ",\"hash\":\"\"}";
  char hash[SHA256_HEX];
  struct err err;
  start(hash);
  for (size_t n = 0; n < sizeof tail; n++) {
    char_auto_t *exact = xstrndup(tail, n); /* on the heap: a read too far is seen */
    assert_null(record_line_parse((struct str){exact, n}, hash, &err));
  }
}
