/* explain_test - one judgment in full, against files: tests/data/audit/<case>.txt is what is
 * printed for a turn of the session of audit_log.h. SEGUE_UPDATE=1 writes the files anew: read the
 * difference. */
#include "audit/explain.h"
#include "base/file.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "support/audit_log.h"
#include "support/data.h"
#include "support/log_ref.h"
#include "support/test.h"

static struct drive drive;
static struct verified_reader book;

static void read_all(struct verified_reader *b, const char *path) {
  struct err err;
  json_t *record;
  assert_true(verified_open(b, log_ref(path), true, &err));
  while ((record = verified_next(b)) != NULL)
    json_decref(record);
  while ((record = verified_next_unproven(b)) != NULL)
    json_decref(record);
}

static int setup(void **state) {
  (void)state;
  drive_everything(&drive);
  drive_write(&drive);
  read_all(&book, drive.path);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  verified_close(&book);
  drive_deinit(&drive);
  return 0;
}

static void explain_word(const struct verified_reader *b, const char *word, bool full,
                         struct buf *out) {
  const struct explain_opts opts = {.full = full, .columns = 100};
  struct explain_found found;
  struct err err = {0};
  if (!explain_find(b, word, false, &found, &err) || !explain_turn(b, found.turn, &opts, out, &err))
    fail_msg("%s: %s", word, err.text);
}

/* Bytes that a terminal would act on: nothing of it may be left. */
static void expect_harmless(const struct buf *text) {
  for (size_t i = 0; i < text->n; i++)
    if (((unsigned char)text->p[i] < 0x20 && text->p[i] != '\n') || text->p[i] == 0x7F)
      fail_msg("byte %02x at %zu", (unsigned char)text->p[i], i);
  assert_true(utf8_valid(text->p, text->n));
  assert_null(strstr(text->p, "\xE2\x80\xAE")); /* right-to-left override */
}

static void expect_file(const char *name, const struct buf *text) {
  char path[512];
  buf_auto_t expected = {0};
  struct err err;
  print_into(path, sizeof path, "%s/tests/data/audit/%s", SEGUE_SOURCE_DIR, name);
  if (getenv("SEGUE_UPDATE") != NULL)
    folder_write(path, (struct str){text->p, text->n});
  if (!file_read(path, 1u << 20, &expected, &err))
    fail_msg("%s", err.text);
  if (expected.n != text->n || memcmp(expected.p, text->p, text->n) != 0)
    fail_msg("%s is not what is printed:\n%s", path, text->p);
}

TEST(turns) {
  static const struct {
    const char *word, *file;
    bool full;
  } cases[] = {
      {"check", "check.txt", false},           {"review#1", "review-1.txt", false},
      {"review#1", "review-1-full.txt", true}, {"fix", "fix.txt", false},
      {"review", "review-2.txt", false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t text = {0};
    explain_word(&book, cases[i].word, cases[i].full, &text);
    expect_harmless(&text);
    expect_file(cases[i].file, &text);
  }
}

/* After each record of the session, whatever is known can be told. */
TEST(every_prefix) {
  buf_auto_t text = {0};
  char path[200];
  print_into(path, sizeof path, "%s/prefix.ndjson", drive.dir);
  for (size_t i = 0; i < drive.log.n; i++) {
    struct verified_reader b;
    if (drive.log.p[i] != '\n')
      continue;
    folder_write(path, (struct str){drive.log.p, i + 1});
    read_all(&b, path);
    for (size_t k = 0; k < b.place_count; k++)
      if (b.places[k].kind == VERIFIED_TURN_START) {
        const struct explain_opts opts = {.full = true};
        struct err err;
        buf_clear(&text);
        assert_true(explain_turn(&b, b.places[k].turn, &opts, &text, &err));
        expect_harmless(&text);
      }
    verified_close(&b);
  }
}

/* All turns of a log that may hold anything. */
static void explain_all(const struct verified_reader *b, bool full, struct buf *text) {
  const struct explain_opts opts = {.full = full, .columns = 80};
  for (long turn = 1; turn <= 4; turn++) {
    struct err err;
    buf_clear(text);
    if (explain_turn(b, turn, &opts, text, &err))
      expect_harmless(text);
  }
}

/* Any one record missing or turned to nonsense: something is told, nothing breaks. */
TEST(holes) {
  static const char *const keys[] = {"calls", "prompt", "text", "stages", "workflow", "movement",
                                     "type",  "call",   "turn", "errors", "text_blob"};
  buf_auto_t text = {0};
  char path[200];
  print_into(path, sizeof path, "%s/hole.ndjson", drive.dir);
  for (size_t hole = 0; hole < json_array_size(drive.records); hole++)
    for (size_t k = 0; k <= ARRAY_LEN(keys); k++) {
      buf_auto_t log = {0};
      struct verified_reader b;
      char hash[SHA256_HEX];
      if (k < ARRAY_LEN(keys) &&
          json_object_get(json_array_get(drive.records, hole), keys[k]) == NULL)
        continue;
      memcpy(hash, record_line_first_hash, SHA256_HEX);
      JSON_EACH(drive.records, i, record) {
        json_auto_t *copy = json_copy(record);
        if (i == hole && k < ARRAY_LEN(keys))
          json_object_set_new(copy, keys[k], json_pack("[s{}i]", "x", 7));
        if (i != hole || k < ARRAY_LEN(keys))
          drive_line(copy, &log, hash);
      }
      folder_write(path, (struct str){log.p, log.n});
      read_all(&b, path);
      explain_all(&b, false, &text);
      verified_close(&b);
    }
}

/* The largest and the smallest number in the place of every one of a name. */
TEST(numbers_of_any_size) {
  static const char *const keys[] = {"duration_ms", "attempt", "exit", "iteration", "rule"};
  static const json_int_t numbers[] = {INT64_MAX, INT64_MIN};
  buf_auto_t text = {0};
  char path[200];
  print_into(path, sizeof path, "%s/numbers.ndjson", drive.dir);
  for (size_t k = 0; k < ARRAY_LEN(keys) * ARRAY_LEN(numbers); k++) {
    const char *key = keys[k / ARRAY_LEN(numbers)];
    buf_auto_t log = {0};
    AUTO(verified_close) struct verified_reader b;
    char hash[SHA256_HEX];
    memcpy(hash, record_line_first_hash, SHA256_HEX);
    JSON_EACH(drive.records, i, record) {
      json_auto_t *copy = json_copy(record);
      if (json_is_integer(json_object_get(copy, key)))
        json_object_set_new(copy, key, json_integer(numbers[k % ARRAY_LEN(numbers)]));
      drive_line(copy, &log, hash);
    }
    folder_write(path, (struct str){log.p, log.n});
    read_all(&b, path);
    explain_all(&b, true, &text);
  }
}

TEST(finding) {
  static const struct {
    const char *word;
    long turn, run, runs;
  } found_cases[] = {{"check", 1, 1, 1},
                     {"review", 4, 2, 2},
                     {"review#1", 2, 1, 2},
                     {"review#2", 4, 2, 2},
                     {"fix#1", 3, 1, 1}};
  struct explain_found found;
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(found_cases); i++) {
    assert_true(explain_find(&book, found_cases[i].word, false, &found, &err));
    assert_int_equal(found.turn, found_cases[i].turn);
    assert_int_equal(found.run, found_cases[i].run);
    assert_int_equal(found.runs, found_cases[i].runs);
  }
  DATA_ROWS("audit/explain/finding.yaml", c, word, why) {
    assert_false(explain_find(&book, c.word, false, &found, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    if (strstr(err.text, c.why) == NULL)
      fail_msg("%s: %s", c.word, err.text);
  }
}

/* Long texts: head and end are shown, the rest is counted; --full shows all. */
TEST(long_texts) {
  AUTO(drive_deinit) struct drive d;
  AUTO(verified_close) struct verified_reader b;
  buf_auto_t answer = {0}, text = {0};
  drive_init(&d);
  drive_start(&d, drive_workflow, "t", drive_config());
  for (int i = 1; i <= 1000; i++)
    buf_printf(&answer, "line %d\n", i);
  for (int i = 0; i < 5000; i++)
    buf_puts(&answer, "wide ");
  drive_exit(&d, 0, answer.p);
  drive_write(&d);
  read_all(&b, d.path);
  explain_word(&b, "check", false, &text);
  assert_true(text.n < 3000);
  assert_non_null(strstr(text.p, "| line 16\n"));
  assert_null(strstr(text.p, "| line 17\n"));
  assert_non_null(strstr(text.p, "979 lines more (--full shows them)"));
  assert_non_null(strstr(text.p, "| line 1000\n"));
  assert_non_null(strstr(text.p, "bytes more)"));
  buf_clear(&text);
  explain_word(&b, "check", true, &text);
  assert_non_null(strstr(text.p, "| line 500\n"));
  assert_true(text.n > answer.n);
}

TEST_GROUP(setup, teardown)
