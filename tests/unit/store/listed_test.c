/* Lists that are kept up to date: after each change they say what a fresh one says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "store/inbox.h"
#include "store/index_file.h"
#include "store/listed.h"
#include "support/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_COUNT = LIMIT_INDEX_LEAST_COUNT + 5 };

struct fixture {
  char *dir;
  struct store store;
  struct listed *listed;
  bool watched;
};

static size_t dropped;

static void drop(void *kept) {
  (void)kept;
  dropped++;
}

static void id_of(int i, char id[STORE_ID_BYTES]) {
  (void)snprintf(id, STORE_ID_BYTES, "0199%04x-0000-7000-8000-000000000000", i);
}

static void path_of(const struct fixture *f, int i, char path[700]) {
  char id[STORE_ID_BYTES];
  id_of(i, id);
  (void)snprintf(path, 700, "%s/%s.ndjson", f->dir, id);
}

/* It has stopped or, `ended`, it has ended. */
static void write_log(const struct fixture *f, int i, bool ended, int tokens) {
  char id[STORE_ID_BYTES], path[700];
  const char *over = "session_stop\",\"reason\":\"interrupted";
  if (ended)
    over = "session_end\",\"outcome\":\"complete";
  id_of(i, id);
  path_of(f, i, path);
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fprintf(out,
          "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-02T03:04:05.000Z\",\"type\":\"session_start\","
          "\"session\":\"%s\",\"workflow\":{\"name\":\"flow\"},\"config\":{},\"hash\":\"%064d\"}\n"
          "{\"v\":1,\"seq\":2,\"ts\":\"2026-01-02T03:04:08.000Z\",\"type\":\"%s\","
          "\"spent\":{\"input\":%d,\"output\":0},\"hash\":\"%064d\"}\n",
          id, 1, over, tokens, 2);
  assert_int_equal(fclose(out), 0);
}

static void refresh(const struct fixture *f) {
  bool more;
  index_refresh(&f->store, 2 * LOG_COUNT, &more);
  assert_false(more);
}

static int setup(void **state) {
  static struct fixture f;
  struct err err;
  f = (struct fixture){.dir = folder_make()};
  dropped = 0;
  for (int i = 0; i < LOG_COUNT; i++)
    write_log(&f, i, i % 2 == 0, 100 + i);
  store_at(&f.store, f.dir);
  refresh(&f);
  f.listed = listed_new(&f.store, drop);
  assert_true(listed_read(f.listed, true, &err));
  f.watched = f.listed->stirs.on;
  if (!f.watched)
    print_message("the kernel does not tell of changes here: all is read anew\n");
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  listed_free(f->listed);
  folder_remove(f->dir);
  return 0;
}

/* The kept list, brought up to date, says of each log what a fresh one says. */
static void check(const struct fixture *f) {
  struct listed *fresh = listed_new(&f->store, NULL), *l = f->listed;
  struct err err;
  assert_true(listed_read(l, true, &err));
  assert_true(listed_read(fresh, false, &err));
  listed_index(l);
  listed_index(fresh);
  assert_int_equal(l->count, fresh->count);
  for (size_t i = 0; i < l->count; i++) {
    const struct index_row *kept = listed_row(l, i), *read = listed_row(fresh, i);
    assert_string_equal(l->logs[i].id, fresh->logs[i].id);
    assert_int_equal(kept == NULL, read == NULL);
    if (kept != NULL)
      assert_memory_equal(kept, read, sizeof *kept);
  }
  listed_free(fresh);
}

static void logs_come_and_go(void **state) {
  struct fixture *f = *state;
  char path[700], other[700];
  check(f);
  write_log(f, LOG_COUNT + 7, true, 1);
  check(f);
  path_of(f, 3, path);
  assert_int_equal(unlink(path), 0);
  path_of(f, LOG_COUNT + 7, path);
  path_of(f, LOG_COUNT + 9, other);
  assert_int_equal(rename(path, other), 0);
  check(f);
  (void)snprintf(other, sizeof other, "%s/aside", f->dir); /* away, and the same log back */
  path_of(f, 5, path);
  assert_int_equal(rename(path, other), 0);
  check(f);
  assert_int_equal(rename(other, path), 0);
  check(f);
  for (int i = 0; i < 3; i++) { /* made, removed and made again between two lists */
    write_log(f, 1000 + i, false, 1);
    path_of(f, 1000 + i, path);
    assert_int_equal(unlink(path), 0);
  }
  write_log(f, 1001, true, 1);
  check(f);
  assert_int_equal(f->listed->count, LOG_COUNT + 1);
}

static void logs_change(void **state) {
  struct fixture *f = *state;
  char path[700];
  check(f);
  path_of(f, 1, path);
  FILE *out = fopen(path, "a");
  assert_non_null(out);
  fputs("{\"v\":1,", out);
  assert_int_equal(fclose(out), 0);
  check(f);
  path_of(f, 7, path);
  assert_int_equal(truncate(path, 40), 0);
  check(f);
  path_of(f, 9, path);
  const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  check(f);
}

/* A log that is written in place is read again, though its size and time stay as they were: a clock
 * is coarser than a disk is quick. */
static void kept_until_written(void **state) {
  struct fixture *f = *state;
  struct listed *l = f->listed;
  char id[STORE_ID_BYTES], path[700];
  struct stat st;
  struct err err;
  size_t i;
  int what[3];
  check(f);
  if (!f->watched) {
    assert_false(listed_keep(l, 0, what));
    return;
  }
  for (int k = 0; k < 3; k++) {
    id_of(20 + k, id);
    assert_true(listed_find(l, id, &i));
    assert_true(listed_keep(l, i, &what[k]));
  }
  write_log(f, LOG_COUNT + 1, true, 1); /* the others move, and keep it */
  path_of(f, 21, path);
  assert_int_equal(stat(path, &st), 0);
  write_log(f, 21, false, 999);
  const struct timespec times[2] = {st.st_atim, st.st_mtim};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
  assert_true(listed_read(l, true, &err));
  assert_int_equal(dropped, 1);
  for (int k = 0; k < 3; k++) {
    id_of(20 + k, id);
    assert_true(listed_find(l, id, &i));
    assert_ptr_equal(l->logs[i].kept, k == 1 ? NULL : &what[k]);
  }
  path_of(f, 20, path);
  assert_int_equal(unlink(path), 0);
  assert_true(listed_read(l, true, &err));
  assert_int_equal(dropped, 2);
  listed_free(l);
  f->listed = NULL;
  assert_int_equal(dropped, 3);
}

static void index_is_another(void **state) {
  struct fixture *f = *state;
  char path[700];
  unsigned char c = 0;
  check(f);
  write_log(f, 2, true, 7);
  write_log(f, 3, false, 7);
  refresh(f); /* as a daemon does, with a file that takes the other's place */
  check(f);
  (void)snprintf(path, sizeof path, "%s/" INDEX_NAME, f->dir);
  int fd = open(path, O_RDWR); /* damaged in place: as none */
  assert_true(fd >= 0 && pread(fd, &c, 1, 300) == 1);
  c ^= 1;
  assert_int_equal(pwrite(fd, &c, 1, 300), 1);
  close(fd);
  check(f);
  assert_int_equal(f->listed->index->count, 0);
  assert_int_equal(unlink(path), 0);
  check(f);
  refresh(f);
  check(f);
  assert_int_equal(f->listed->index->count, LOG_COUNT);
}

/* A folder that takes the other's place is read anew, and so is one of which too much was told. */
static void all_anew(void **state) {
  struct fixture *f = *state;
  struct fixture second = {.dir = folder_make()};
  char aside[700];
  struct err err;
  check(f);
  (void)snprintf(aside, sizeof aside, "%s.aside", f->dir);
  write_log(&second, 1, true, 1);
  assert_int_equal(rename(f->dir, aside), 0);
  assert_int_equal(rename(second.dir, f->dir), 0);
  check(f);
  assert_int_equal(f->listed->count, 1);
  assert_int_equal(rename(f->dir, second.dir), 0);
  assert_false(listed_read(f->listed, true, &err));
  assert_int_equal(rename(aside, f->dir), 0);
  check(f);
  assert_int_equal(f->listed->count, LOG_COUNT);
  folder_remove(second.dir);
}

static void a_flood(void **state) {
  struct fixture *f = *state;
  char path[700];
  check(f);
  for (int i = 0; i < 20000; i++) { /* more than the kernel queues by default */
    path_of(f, 1 + 2 * (i % 2), path);
    assert_int_equal(truncate(path, 100 + i % 7), 0);
  }
  path_of(f, 11, path);
  assert_int_equal(unlink(path), 0);
  check(f);
  check(f);
}

/* It runs, as far as its log says; it has stopped with a question, or without. */
static void write_asking(const struct fixture *f, int i, bool stopped, bool asks) {
  char id[STORE_ID_BYTES], path[700];
  id_of(i, id);
  path_of(f, i, path);
  FILE *out = fopen(path, "w");
  assert_non_null(out);
  fprintf(out,
          "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-02T03:04:05.000Z\",\"type\":\"session_start\","
          "\"session\":\"%s\",\"workflow\":{\"name\":\"flow\"},\"config\":{},\"hash\":\"%064d\"}\n",
          id, 1);
  if (stopped)
    fprintf(out,
            "{\"v\":1,\"seq\":2,\"ts\":\"2026-01-02T03:04:08.000Z\",\"type\":\"session_stop\","
            "\"reason\":\"question\"%s,\"hash\":\"%064d\"}\n",
            asks ? ",\"questions\":[{\"since\":\"2026-01-02T03:04:07.000Z\",\"text\":\"?\"}]" : "",
            2);
  assert_int_equal(fclose(out), 0);
}

static bool asks_nobody(const struct fixture *f, int i) {
  char id[STORE_ID_BYTES];
  size_t at;
  id_of(i, id);
  assert_true(listed_find(f->listed, id, &at));
  return f->listed->logs[at].asks_nobody;
}

/* The inbox of the kept list is that of a fresh one, and has `count` questions. */
static void check_inbox(const struct fixture *f, size_t count) {
  struct err err;
  json_t *kept = inbox_list(&f->store, f->listed, NULL, NULL, &err);
  json_t *read = inbox_list(&f->store, NULL, NULL, NULL, &err);
  assert_non_null(kept);
  assert_true(json_equal(kept, read));
  assert_int_equal(json_array_size(kept), count);
  json_decref(kept);
  json_decref(read);
}

/* A log that asks nobody is read once and no more, until something is written into it. */
static void inbox_of_kept(void **state) {
  const struct fixture *f = *state;
  char path[700];
  check_inbox(f, 0);
  write_asking(f, 2000, true, true);
  write_asking(f, 2001, true, false);
  write_asking(f, 2002, false, false);
  check_inbox(f, 1);
  assert_false(asks_nobody(f, 2000));
  assert_int_equal(asks_nobody(f, 2001), f->watched);
  assert_int_equal(asks_nobody(f, 2002), f->watched);
  write_asking(f, 2000, true, false); /* answered */
  write_asking(f, 2001, true, true);
  check_inbox(f, 1);
  assert_int_equal(asks_nobody(f, 2000), f->watched);
  assert_false(asks_nobody(f, 2001));
  write_asking(f, 2000, true, true);
  write_asking(f, 2002, true, true);
  check_inbox(f, 3);
  path_of(f, 2001, path);
  assert_int_equal(unlink(path), 0);
  check_inbox(f, 2);
  refresh(f);
  check_inbox(f, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(logs_come_and_go, setup, teardown),
      cmocka_unit_test_setup_teardown(logs_change, setup, teardown),
      cmocka_unit_test_setup_teardown(kept_until_written, setup, teardown),
      cmocka_unit_test_setup_teardown(index_is_another, setup, teardown),
      cmocka_unit_test_setup_teardown(all_anew, setup, teardown),
      cmocka_unit_test_setup_teardown(a_flood, setup, teardown),
      cmocka_unit_test_setup_teardown(inbox_of_kept, setup, teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
