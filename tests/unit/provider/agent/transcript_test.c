/* Recordings: both forms, and what is none. */

#include "provider/agent/transcript.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool load(struct transcript *t, const char *text, struct err *err) {
  char path[] = "/tmp/segue-transcript-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  bool ok = transcript_load(t, path, err);
  assert_int_equal(unlink(path), 0);
  return ok;
}

TEST(output_and_errors_are_told_apart) {
  struct transcript t;
  struct err err;
  assert_true(load(&t,
                   "# {\"argv\": [\"c\", \"--schema\", \"S\"], \"exit\": -9, \"timed_out\": true}\n"
                   "--- stdout ---\none\ntwo\n\n--- stderr ---\nthree\n\n",
                   &err));
  assert_false(t.driven);
  assert_true(t.timed_out);
  assert_int_equal(t.signal, 9);
  assert_int_equal(t.exit_code, -1);
  assert_true(str_eq_c(t.out, "one\ntwo\n"));
  assert_true(str_eq_c(t.err, "three\n"));
  assert_string_equal(transcript_flag(&t, "--schema"), "S");
  assert_null(transcript_flag(&t, "S"));
  transcript_deinit(&t);
  assert_true(load(&t, "# {\"exit\": 3}\n--- stdout ---\n", &err)); /* nothing at all was printed */
  assert_int_equal(t.exit_code, 3);
  assert_int_equal(t.out.n + t.err.n, 0);
  transcript_deinit(&t);
}

TEST(driven_runs_are_lines) {
  static const enum transcript_mark marks[] = {TRANSCRIPT_SENT, TRANSCRIPT_RECEIVED,
                                               TRANSCRIPT_STDERR, TRANSCRIPT_SSE, TRANSCRIPT_NOTE};
  AUTO(transcript_deinit) struct transcript t;
  struct err err;
  assert_true(load(&t,
                   "# an agent, driven\n0 > {\"id\":1}\n7 < {\"id\":1}\n8 ! oh\nwell\n"
                   "9 sse data: {\"x\":2}\n10 # exit 0\n",
                   &err));
  assert_true(t.driven);
  assert_null(t.header);
  assert_int_equal(t.line_count, 5);
  for (size_t i = 0; i < t.line_count; i++)
    assert_int_equal(t.lines[i].mark, marks[i]);
  assert_int_equal(t.lines[1].ms, 7);
  assert_true(str_eq_c(t.lines[2].text, "oh\nwell")); /* a line without a mark goes on */
  assert_true(str_eq_c(t.lines[3].text, "{\"x\":2}"));
}

TEST(lines_may_end_with_cr_lf) {
  struct transcript t;
  struct err err;
  assert_true(load(
      &t, "# {\"exit\": 1}\r\n--- stdout ---\r\none\r\n\r\n--- stderr ---\r\ntwo\r\n\r\n", &err));
  assert_false(t.driven);
  assert_true(str_eq_c(t.out, "one\r\n"));
  assert_true(str_eq_c(t.err, "two\r\n"));
  transcript_deinit(&t);
  assert_false(load(&t, "# {\"exit\": 1}\n--- stdout --- x\n", &err)); /* no such mark */
}

TEST(other_files_are_refused) {
  struct transcript t;
  struct err err;
  DATA_ROWS("provider/agent/transcript/other_files_are_refused.yaml", c, text, line) {
    assert_false(load(&t, c.text, &err));
    if (err.line != (int)data_number(c.line))
      fail_msg("%s: line %d: %s", c.text, err.line, err.text);
  }
  assert_false(transcript_load(&t, "/nonexistent", &err));
}
