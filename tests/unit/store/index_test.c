/* The index: rows as logs say, none for a log that is another now; a damaged file is as none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "judge/stage.h"
#include "store/index_file.h"
#include "store/select.h"
#include "support/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_COUNT = LIMIT_INDEX_LEAST_COUNT + 5 };

struct fixture {
  char *dir, path[600];
  struct store store;
};

static void id_of(int i, char id[STORE_ID_BYTES]) {
  (void)snprintf(id, STORE_ID_BYTES, "0199%04x-0000-7000-8000-000000000000", i);
}

static void write_log(const struct fixture *f, int i, const char *more) {
  char id[STORE_ID_BYTES], path[700];
  id_of(i, id);
  (void)snprintf(path, sizeof path, "%s/%s.ndjson", f->dir, id);
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fprintf(
      out,
      "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-02T03:04:05.%03dZ\",\"type\":\"session_start\","
      "\"session\":\"%s\",\"workflow\":{\"name\":\"flow%d\"},\"config\":{},\"hash\":\"%064d\"}\n"
      "{\"v\":1,\"seq\":2,\"ts\":\"2026-01-02T03:04:06.000Z\",\"type\":\"call_start\",\"turn\":1,"
      "\"provider\":\"p%d\",\"hash\":\"%064d\"}\n"
      "{\"v\":1,\"seq\":3,\"ts\":\"2026-01-02T03:04:07.000Z\",\"type\":\"judgment\",\"turn\":1,"
      "\"method\":\"when\",\"hash\":\"%064d\"}\n"
      "{\"v\":1,\"seq\":4,\"ts\":\"2026-01-02T03:04:08.000Z\",\"type\":\"session_end\",\"turn\":1,"
      "\"outcome\":\"%s\",\"hash\":\"%064d\"}\n%s",
      i, id, i % 2, 1, i % 3, 2, 3, i % 5 ? "complete" : "abort", 4, more);
  assert_int_equal(fclose(out), 0);
}

static int setup(void **state) {
  static struct fixture f;
  f = (struct fixture){.dir = folder_make()};
  for (int i = 0; i < LOG_COUNT; i++)
    write_log(&f, i, "");
  store_at(&f.store, f.dir);
  (void)snprintf(f.path, sizeof f.path, "%s/" INDEX_NAME, f.dir);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  folder_remove(f->dir);
  return 0;
}

static size_t rows_of(const struct fixture *f) {
  struct index *x = index_open(&f->store);
  size_t n = x->count;
  index_close(x);
  return n;
}

static void refresh(const struct fixture *f) {
  bool more;
  index_refresh(&f->store, LOG_COUNT, &more);
  assert_false(more);
  assert_int_equal(rows_of(f), LOG_COUNT);
}

static void rows_say_what_logs_say(void **state) {
  struct fixture *f = *state;
  bool more;
  assert_int_equal(rows_of(f), 0);
  index_refresh(&f->store, 10, &more); /* the oldest first, the rest another time */
  assert_true(more);
  assert_int_equal(rows_of(f), 10);
  refresh(f);
  struct index *x = index_open(&f->store);
  for (int i = 0; i < LOG_COUNT; i++) {
    char id[STORE_ID_BYTES], name[16];
    id_of(i, id);
    const struct index_row *row = index_row(x, id);
    assert_non_null(row);
    assert_string_equal(index_text(x, row->status), i % 5 ? "complete" : "abort");
    (void)snprintf(name, sizeof name, "flow%d", i % 2);
    assert_string_equal(index_text(x, row->workflow), name);
    (void)snprintf(name, sizeof name, "p%d\n", i % 3);
    assert_string_equal(index_text(x, row->providers), name);
    assert_int_equal(row->methods, 1u << STAGE_WHEN);
    assert_int_equal(row->flags, INDEX_OVER | INDEX_ENDED);
    assert_int_equal(row->seq, 4);
    assert_int_equal(row->started_ms % 1000, i);
  }
  index_close(x);
}

static void a_log_that_is_another_has_no_row(void **state) {
  struct fixture *f = *state;
  char id[STORE_ID_BYTES], path[700];
  refresh(f);
  write_log(f, 7,
            "{\"v\":1,\"seq\":5,\"ts\":\"2026-01-02T03:04:09.000Z\",\"type\":\"turn_end\",\"hash\":"
            "\"00000000000000000000000000000005\"}\n");
  id_of(8, id);
  (void)snprintf(path, sizeof path, "%s/%s.ndjson", f->dir, id);
  const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0); /* the same size, another time */
  id_of(9, id);
  (void)snprintf(path, sizeof path, "%s/%s.ndjson", f->dir, id);
  assert_int_equal(unlink(path), 0);
  struct index *x = index_open(&f->store);
  for (int i = 6; i < 11; i++) {
    id_of(i, id);
    assert_int_equal(index_row(x, id) == NULL, i >= 7 && i <= 9);
  }
  assert_null(index_row(x, "0199ffff-0000-7000-8000-000000000000"));
  assert_null(index_row(x, "no id"));
  index_close(x);
  bool more;
  index_refresh(&f->store, LOG_COUNT, &more);
  x = index_open(&f->store);
  assert_int_equal(x->count, LOG_COUNT - 1);
  id_of(7, id);
  assert_int_equal(index_row(x, id)->seq, 5);
  index_close(x);
}

static void put_byte(const char *path, off_t at, unsigned char flip) {
  unsigned char c = 0;
  int fd = open(path, O_RDWR);
  assert_true(fd >= 0 && pread(fd, &c, 1, at) == 1);
  c = (unsigned char)(c ^ flip);
  assert_int_equal(pwrite(fd, &c, 1, at), 1);
  close(fd);
}

static void a_damaged_file_is_none(void **state) {
  struct fixture *f = *state;
  struct stat st;
  refresh(f);
  assert_int_equal(stat(f->path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  for (off_t at = 0; at < st.st_size; at += at < 256 ? 1 : 61) { /* each byte of the head */
    put_byte(f->path, at, 0x41);
    if (rows_of(f) != 0)
      fail_msg("byte %ld was changed, and nobody saw it", (long)at);
    put_byte(f->path, at, 0x41);
  }
  assert_int_equal(rows_of(f), LOG_COUNT);
  for (off_t n = 0; n < st.st_size; n += 97) {
    assert_int_equal(truncate(f->path, st.st_size - 1 - n), 0);
    assert_int_equal(rows_of(f), 0);
  }
  refresh(f); /* made anew */
  assert_int_equal(unlink(f->path), 0);
  assert_int_equal(symlink("/dev/zero", f->path), 0);
  assert_int_equal(rows_of(f), 0);
  refresh(f);
  assert_int_equal(unlink(f->path), 0);
  assert_int_equal(mkfifo(f->path, 0600), 0);
  assert_int_equal(rows_of(f), 0);
  refresh(f);
  if (geteuid() == 0) {
    assert_int_equal(chown(f->path, 65534, 65534), 0); /* somebody else's */
    assert_int_equal(rows_of(f), 0);
  }
}

static void filters_pass_over_by_row(void **state) {
  struct fixture *f = *state;
  struct err err;
  static const struct {
    struct select wanted;
    int kept; /* of the first 30 */
  } rows[] = {
      {{.statuses = "abort"}, 6},   {{.statuses = "running,complete"}, 24},
      {{.statuses = "stopped"}, 0}, {{.workflow = "flow1"}, 15},
      {{.workflow = "flow"}, 0},    {{.provider = "p2"}, 10},
      {{.provider = "p"}, 0},       {{.method = "when"}, 30},
      {{.method = "ai_judge"}, 0},  {{.since_ms = INT64_MAX}, 0},
      {{.since_ms = 1}, 30},        {{.statuses = "abort", .provider = "p0"}, 2},
  };
  refresh(f);
  struct index *x = index_open(&f->store);
  for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
    int kept = 0;
    for (int i = 0; i < 30; i++) {
      char id[STORE_ID_BYTES];
      id_of(i, id);
      kept += !select_passes_over(&rows[k].wanted, x, index_row(x, id));
    }
    if (kept != rows[k].kept)
      fail_msg("filter %zu keeps %d", k, kept);
    assert_true(select_is_set(&rows[k].wanted));
    assert_true(select_check(&rows[k].wanted, &err));
  }
  index_close(x);
  assert_false(select_check(&(struct select){.method = "guess"}, &err));
  assert_false(select_check(&(struct select){.statuses = "done"}, &err));
}

static void a_small_folder_has_none(void **state) {
  struct fixture *f = *state;
  char id[STORE_ID_BYTES], path[700];
  bool more;
  for (int i = 0; i < 6; i++) {
    id_of(i, id);
    (void)snprintf(path, sizeof path, "%s/%s.ndjson", f->dir, id);
    assert_int_equal(unlink(path), 0);
  }
  index_refresh(&f->store, LOG_COUNT, &more);
  assert_int_equal(access(f->path, F_OK), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(rows_say_what_logs_say),  TEST(a_log_that_is_another_has_no_row),
      TEST(a_damaged_file_is_none),  TEST(filters_pass_over_by_row),
      TEST(a_small_folder_has_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
