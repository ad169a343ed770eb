/* The index: rows as logs say, none for a log that is another now; a damaged file is as none, and
 * one that another process writes keeps nobody waiting. */

#include "base/limits.h"
#include "store/index.h"
#include "support/folder.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOG_COUNT = LIMIT_INDEX_LEAST_COUNT + 5 };

struct fixture {
  char *dir, path[600];
  struct store store;
};

static void id_of(int i, char id[STORE_ID_BYTES]) {
  print_into(id, STORE_ID_BYTES, "0199%04x-0000-7000-8000-000000000000", i);
}

static void write_log(const struct fixture *f, int i, const char *more) {
  char id[STORE_ID_BYTES], path[700];
  id_of(i, id);
  print_into(path, sizeof path, "%s/%s.ndjson", f->dir, id);
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fprintf(
      out,
      "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-02T03:04:05.%03dZ\",\"type\":\"session_start\","
      "\"session\":\"%s\",\"workflow\":{\"name\":\"flow%d\"},\"config\":{},\"hash\":\"%064d\"}\n"
      "{\"v\":1,\"seq\":2,\"ts\":\"2026-01-02T03:04:06.000Z\",\"type\":\"call_start\",\"turn\":1,"
      "\"provider\":\"p\\\"%d\",\"hash\":\"%064d\"}\n"
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
  print_into(f.path, sizeof f.path, "%s/" INDEX_NAME, f.dir);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  folder_remove(f->dir);
  return 0;
}

static size_t rows_wanted(const struct fixture *f, const struct filter *wanted) {
  struct index *x = index_open(&f->store, wanted, INDEX_NOTHING);
  size_t n = 0;
  for (int i = 0; i < LOG_COUNT; i++) {
    char id[STORE_ID_BYTES];
    id_of(i, id);
    const struct index_row *row = index_row(x, id);
    n += row != NULL && !row->passed_over;
  }
  index_close(x);
  return n;
}

static size_t rows_of(const struct fixture *f) {
  return rows_wanted(f, NULL);
}

static void refresh(const struct fixture *f) {
  bool more;
  assert_true(index_refresh(&f->store, LOG_COUNT, &more));
  assert_false(more);
  assert_int_equal(rows_of(f), LOG_COUNT);
}

TEST_ON(struct fixture *f, setup, teardown, rows_say_what_logs_say) {
  bool more;
  assert_int_equal(rows_of(f), 0);
  assert_true(index_refresh(&f->store, 10, &more)); /* the oldest first, the rest another time */
  assert_true(more);
  assert_int_equal(rows_of(f), 10);
  refresh(f);
  struct index *x = index_open(&f->store, &(struct filter){.statuses = "abort"}, INDEX_STARTED);
  for (int i = 0; i < LOG_COUNT; i++) {
    char id[STORE_ID_BYTES];
    id_of(i, id);
    const struct index_row *row = index_row(x, id);
    assert_non_null(row);
    assert_string_equal(row->id, id);
    assert_int_equal(row->flags, INDEX_OVER | INDEX_ENDED);
    assert_int_equal(row->passed_over, i % 5 != 0);
    assert_int_equal((int64_t)row->value % 1000, i);
  }
  index_close(x);
}

TEST_ON(struct fixture *f, setup, teardown, a_log_that_is_another_has_no_row) {
  char id[STORE_ID_BYTES], path[700];
  refresh(f);
  write_log(f, 7,
            "{\"v\":1,\"seq\":5,\"ts\":\"2026-01-02T03:04:09.000Z\",\"type\":\"turn_end\",\"hash\":"
            "\"00000000000000000000000000000005\"}\n");
  id_of(8, id);
  print_into(path, sizeof path, "%s/%s.ndjson", f->dir, id);
  const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0); /* the same size, another time */
  id_of(9, id);
  print_into(path, sizeof path, "%s/%s.ndjson", f->dir, id);
  assert_int_equal(unlink(path), 0);
  struct index *x = index_open(&f->store, NULL, INDEX_NOTHING);
  for (int i = 6; i < 11; i++) {
    id_of(i, id);
    assert_int_equal(index_row(x, id) == NULL, i >= 7 && i <= 9);
    assert_non_null(index_row_of_list(x, id)); /* it had ended */
  }
  assert_null(index_row(x, "0199ffff-0000-7000-8000-000000000000"));
  assert_null(index_row(x, "no id"));
  index_close(x);
  bool more;
  assert_true(index_refresh(&f->store, LOG_COUNT, &more));
  assert_int_equal(rows_of(f), LOG_COUNT - 1);
  x = index_open(&f->store, NULL, INDEX_NOTHING);
  id_of(9, id);
  assert_null(index_row_of_list(x, id));
  index_close(x);
}

static void put_bytes(const char *path, off_t at, size_t n) {
  static const char junk[4096] = "not what was written";
  int fd = open(path, O_WRONLY);
  assert_true(fd >= 0 && pwrite(fd, junk, n, at) == (ssize_t)n);
  close(fd);
}

/* Whatever became of the file, no row is wrong, and the next writers have it whole again. */
static void expect_mended(const struct fixture *f) {
  bool more;
  for (int i = 0; i < 2; i++)
    (void)index_refresh(&f->store, LOG_COUNT, &more);
  assert_int_equal(rows_of(f), LOG_COUNT);
}

TEST_ON(struct fixture *f, setup, teardown, a_damaged_file_is_none) {
  struct stat st;
  refresh(f);
  assert_int_equal(stat(f->path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  for (off_t n = 1; n < st.st_size; n += 7001) {
    assert_int_equal(truncate(f->path, st.st_size - n), 0);
    (void)rows_of(f);
    expect_mended(f);
  }
  put_bytes(f->path, 0, 100);
  assert_int_equal(rows_of(f), 0);
  expect_mended(f);
  for (off_t at = 0; at + 4096 <= st.st_size; at += 4096) {
    put_bytes(f->path, at, 4096);
    (void)rows_of(f);
    expect_mended(f);
  }
  assert_int_equal(unlink(f->path), 0);
  assert_int_equal(symlink("/dev/zero", f->path), 0);
  assert_int_equal(rows_of(f), 0);
  bool more;
  assert_false(index_refresh(&f->store, LOG_COUNT, &more));
  assert_int_equal(unlink(f->path), 0);
  assert_int_equal(mkfifo(f->path, 0600), 0);
  assert_int_equal(rows_of(f), 0);
  assert_int_equal(unlink(f->path), 0);
  refresh(f);
  if (geteuid() == 0) {
    assert_int_equal(chown(f->path, 65534, 65534), 0); /* somebody else's */
    assert_int_equal(rows_of(f), 0);
  }
}

TEST_ON(struct fixture *f, setup, teardown, another_version_is_made_anew) {
  refresh(f);
  struct sqlite *s = sqlite_open(f->path);
  assert_true(sqlite_run(s, "PRAGMA user_version=999999; ALTER TABLE list_rows RENAME TO other"));
  sqlite_close(s);
  assert_int_equal(rows_of(f), 0);
  refresh(f);
}

TEST_ON(struct fixture *f, setup, teardown, nobody_waits) {
  bool more;
  refresh(f);
  write_log(f, 3, "\n");
  struct sqlite *s = sqlite_open(f->path);
  assert_true(sqlite_run(s, "BEGIN IMMEDIATE; DELETE FROM list_rows"));
  assert_false(index_refresh(&f->store, LOG_COUNT, &more)); /* it goes on without */
  assert_false(more);
  assert_int_equal(rows_of(f), LOG_COUNT - 1); /* the last rows that were whole */
  assert_true(sqlite_run(s, "ROLLBACK"));
  sqlite_close(s);
  refresh(f);
}

TEST_ON(struct fixture *f, setup, teardown, a_killed_writer_leaves_the_last_rows) {
  refresh(f);
  pid_t child = fork();
  if (child == 0) {
    struct sqlite *s = sqlite_open(f->path);
    (void)sqlite_run(s, "PRAGMA cache_size=1; BEGIN IMMEDIATE; DELETE FROM list_rows");
    (void)kill(getpid(), SIGKILL);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(rows_of(f), LOG_COUNT);
  refresh(f);
}

/* A limit on the size of files stands for a full disk. */
TEST_ON(struct fixture *f, setup, teardown, a_full_disk_leaves_the_last_rows) {
  struct rlimit before, small;
  bool more;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 8192;
  (void)signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  assert_false(index_refresh(&f->store, LOG_COUNT, &more));
  assert_false(more);
  assert_int_equal(rows_of(f), 0);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  refresh(f);
}

TEST_ON(struct fixture *f, setup, teardown, filters_pass_over_by_row) {
  struct err err;
  static const struct {
    struct filter wanted;
    int modulus, rest; /* of the logs that are wanted; 0: all or none, by `rest` */
  } rows[] = {
      {{.statuses = "abort"}, 5, 0},
      {{.statuses = "stopped"}, 0, 0},
      {{.workflow = "flow1"}, 2, 1},
      {{.workflow = "flow"}, 0, 0},
      {{.provider = "p\"2"}, 3, 2},
      {{.provider = "p"}, 0, 0},
      {{.method = "when"}, 0, 1},
      {{.method = "ai_judge"}, 0, 0},
      {{.since_ms = INT64_MAX}, 0, 0},
      {{.since_ms = 1}, 0, 1},
      {{.statuses = "abort,running", .provider = "p\"0"}, 15, 0},
  };
  refresh(f);
  for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
    size_t wanted = 0;
    for (int i = 0; i < LOG_COUNT; i++)
      wanted += rows[k].modulus ? i % rows[k].modulus == rows[k].rest : rows[k].rest;
    if (rows_wanted(f, &rows[k].wanted) != wanted)
      fail_msg("filter %zu wants %zu", k, rows_wanted(f, &rows[k].wanted));
    assert_true(filter_is_set(&rows[k].wanted));
    assert_true(filter_check(&rows[k].wanted, &err));
  }
  assert_false(filter_check(&(struct filter){.method = "guess"}, &err));
  assert_false(filter_check(&(struct filter){.statuses = "done"}, &err));
}

TEST_ON(struct fixture *f, setup, teardown, a_small_folder_has_none) {
  char id[STORE_ID_BYTES], path[700];
  bool more;
  for (int i = 0; i < 6; i++) {
    id_of(i, id);
    print_into(path, sizeof path, "%s/%s.ndjson", f->dir, id);
    assert_int_equal(unlink(path), 0);
  }
  assert_false(index_refresh(&f->store, LOG_COUNT, &more));
  assert_int_equal(access(f->path, F_OK), -1);
}

static int needs_sqlite(void **state) {
  struct err err;
  (void)state;
  if (sqlite_load(&err) != NULL)
    return 0;
  print_message("skipped: %s\n", err.text);
  exit(77);
}

TEST_GROUP(needs_sqlite, NULL)
