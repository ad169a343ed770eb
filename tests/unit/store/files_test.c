/* The store in files: what a crash, a flipped bit, a full or failing disk and a second owner can do
 * to a log. Fault loops run in children: the counters of base/fault.h count for a whole process. */

#include "base/file.h"
#include "store/backend.h"
#include "store/reader.h"
#include "store/store.h"
#include "support/folder.h"
#include "support/leave.h"
#include "support/log_ref.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char id[] = "0199aaaa-0000-7000-8000-000000000001";

/* The file that replaces another right before the next lock is taken; NULL: none does. */
static const char *replaced_by, *to_replace;

/* In the place of the C library's, for the moment between open and lock. */
int fcntl(int fd, int cmd, ...) {
  va_list args;
  va_start(args, cmd);
  void *arg = va_arg(args, void *);
  va_end(args);
  if (cmd == F_OFD_SETLK && replaced_by != NULL) {
    assert_int_equal(rename(replaced_by, to_replace), 0);
    replaced_by = NULL;
  }
  return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

struct fixture {
  uv_loop_t loop;
  struct store store;
  char *dir;
  char path[512], torn[520];
};

struct answer { /* of one append */
  int calls;
  enum store_result result;
  struct err err;
  struct buf lines;
};

static int setup(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  struct err err;
  assert_int_equal(uv_loop_init(&f->loop), 0);
  f->dir = folder_make();
  assert_true(store_open(&f->store, f->dir, &err));
  print_into(f->path, sizeof f->path, "%s/%s.ndjson", f->dir, id);
  print_into(f->torn, sizeof f->torn, "%s.torn", f->path);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&f->loop), 0);
  folder_remove(f->dir);
  free(f);
  return 0;
}

/* ---- helpers ------------------------------------------------------------------------------------
 */

static json_t *make_record(uint64_t seq) {
  json_t *record = json_pack("{si sI ss ss ss}", "v", 1, "seq", (json_int_t)seq, "ts", "-", "type",
                             "note", "text", seq % 2 ? "an odd one" : "gerade: \xC3\xA4\n\t\"");
  assert_non_null(record);
  return record;
}

/* The same as a log takes it; record_free. */
static struct record *kept(json_t *json) {
  struct record_draft d;
  record_read(&d, json);
  struct record *record = record_keep(&d);
  json_decref(json);
  return record;
}

static void on_done(void *ctx, enum store_result result, struct str lines, const struct err *err) {
  struct answer *a = ctx;
  a->calls++;
  a->result = result;
  a->err = err ? *err : (struct err){0};
  assert_int_equal(err == NULL, result == STORE_OK);
  buf_clear(&a->lines);
  buf_str(&a->lines, lines);
}

static bool at_once; /* append on the calling thread */

static void append_now(struct store_log *log, uint64_t seq, struct record *const *records, size_t n,
                       struct answer *a) {
  buf_auto_t lines = {0};
  struct err *err = NULL;
  enum store_result result = store_append_now(log, seq, records, n, &lines, &err);
  on_done(a, result, buf_view(&lines), err);
  free(err);
}

static enum store_result append(struct fixture *f, struct store_log *log, uint64_t seq, size_t n,
                                struct answer *answer) {
  struct answer own = {0}, *a = answer ? answer : &own;
  struct record *records[16];
  assert_true(n <= ARRAY_LEN(records));
  a->calls = 0;
  for (size_t i = 0; i < n; i++)
    records[i] = kept(make_record(seq + i));
  if (at_once)
    append_now(log, seq, records, n, a);
  else
    store_append(log, &f->loop, seq, records, n, on_done, a);
  for (size_t i = 0; i < n; i++)
    record_free(records[i]);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(a->calls, 1);
  buf_deinit(&own.lines);
  return a->result;
}

static bool count_record(void *ctx, const json_t *record, struct err *err) {
  uint64_t *count = ctx;
  json_auto_t *wanted = make_record(++*count);
  json_auto_t *found = json_copy((json_t *)record);
  (void)err;
  assert_int_equal(json_string_length(json_object_get(found, "hash")), 64);
  json_object_del(found, "hash");
  if (!json_equal(wanted, found))
    fail_msg("record %d is another", (int)*count);
  return true;
}

/* Attaches and says how many records there are; NULL with err as store_attach. */
static struct store_log *attach(struct fixture *f, uint64_t *count, char notification[256],
                                struct err *err) {
  struct store_mend mend = {0};
  *count = 0;
  struct store_log *log =
      store_attach(&f->store, log_ref(f->path), count_record, count, &mend, err);
  print_into(notification, 256, "%.255s", mend.notification);
  return log;
}

static void write_bytes(const char *path, struct str bytes) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes.p, bytes.n), bytes.n);
  close(fd);
}

static void read_bytes(const char *path, struct buf *out) {
  struct err err;
  buf_clear(out);
  if (!file_read(path, 64u << 20, out, &err))
    fail_msg("%s", err.text);
}

/* Writes a log of n records and gives its bytes. */
static void make_log(struct fixture *f, uint64_t n, struct buf *bytes) {
  struct err err;
  (void)unlink(f->path);
  struct store_log *log = store_create(&f->store, id, &err);
  assert_non_null(log);
  for (uint64_t seq = 1; seq <= n; seq++)
    assert_int_equal(append(f, log, seq, 1, NULL), STORE_OK);
  store_close(log);
  read_bytes(f->path, bytes);
}

static size_t line_start(const struct buf *bytes, int line) {
  size_t at = 0;
  for (int i = 1; i < line; i++)
    at = (size_t)((const char *)memchr(bytes->p + at, '\n', bytes->n - at) - bytes->p) + 1;
  return at;
}

static void expect_file(const char *path, struct str wanted) {
  buf_auto_t now = {0};
  read_bytes(path, &now);
  assert_int_equal(now.n, wanted.n);
  assert_memory_equal(buf_c(&now), wanted.p, wanted.n);
}

/* --- the ordinary life of a log --- */

TEST_ON(struct fixture *f, setup, teardown, records_come_back) {
  struct err err;
  struct answer a = {0};
  buf_auto_t all = {0};
  char notification[256];
  uint64_t count, seq = 1;
  struct store_log *log = store_create(&f->store, id, &err);
  assert_non_null(log);
  assert_string_equal(store_log_name(log), f->path);
  for (size_t n = 1; n <= 4; seq += n, n++) {
    assert_int_equal(append(f, log, seq, n, &a), STORE_OK);
    assert_int_equal(log->syncs, n); /* one a batch */
    buf_str(&all, buf_view(&a.lines));
    expect_file(f->path, buf_view(&all));
  }
  store_close(log);
  struct stat st;
  assert_int_equal(stat(f->path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);

  log = attach(f, &count, notification, &err);
  assert_non_null(log);
  assert_int_equal(count, 10);
  assert_string_equal(notification, "");
  for (uint64_t i = 1; i <= count; i++) {
    json_auto_t *record = store_read(log, i, &err);
    assert_int_equal(json_integer_value(json_object_get(record, "seq")), i);
  }
  assert_null(store_read(log, 0, &err));
  assert_null(store_read(log, count + 1, &err));
  assert_int_equal(append(f, log, 11, 2, NULL), STORE_OK);
  store_close(log);
  log = attach(f, &count, notification, &err);
  assert_non_null(log);
  assert_int_equal(count, 12);
  store_close(log);
  buf_deinit(&a.lines);
}

TEST_WITH(setup, teardown, records_come_back_at_once) {
  at_once = true;
  records_come_back(state);
  at_once = false;
}

TEST_ON(struct fixture *f, setup, teardown, an_id_is_taken_once) {
  struct err err;
  struct store_log *log = store_create(&f->store, id, &err);
  assert_non_null(log);
  assert_null(store_create(&f->store, id, &err));
  assert_non_null(strstr(err.text, "cannot make the log"));
  store_close(log);
}

/* The daemon's: no file is made on its loop. */
TEST_ON(struct fixture *f, setup, teardown, a_log_is_made_by_its_first_append) {
  struct answer a = {0};
  struct stat st;
  struct err err;
  struct store_log *log = store_create_later(&f->store, id, &err);
  assert_int_not_equal(stat(f->path, &st), 0);
  assert_string_equal(store_log_name(log), f->path);
  assert_int_equal(append(f, log, 1, 2, &a), STORE_OK);
  expect_file(f->path, buf_view(&a.lines));
  assert_null(store_create(&f->store, id, &err)); /* its lock is held, its name taken */
  struct store_log *second = store_create_later(&f->store, id, &err);
  assert_int_equal(append(f, second, 1, 1, &a), STORE_IO);
  assert_non_null(strstr(a.err.text, "cannot make the log"));
  store_close(second);
  assert_int_equal(append(f, log, 3, 1, NULL), STORE_OK);
  store_close(log);
  store_close(store_create_later(&f->store, id, &err)); /* one that was never written */
  buf_deinit(&a.lines);
}

static bool refuse(void *ctx, const json_t *record, struct err *err) {
  (void)ctx;
  return json_integer_value(json_object_get(record, "seq")) < 3 ||
         err_set(err, ERR_CORRUPT, "not this one");
}

TEST_ON(struct fixture *f, setup, teardown, a_fold_can_refuse) {
  buf_auto_t bytes = {0};
  struct err err;
  struct store_mend mend = {0};
  make_log(f, 5, &bytes);
  assert_null(store_attach(&f->store, log_ref(f->path), refuse, NULL, &mend, &err));
  assert_string_equal(err.text, "not this one");
  expect_file(f->path, buf_view(&bytes));
}

TEST_ON(struct fixture *f, setup, teardown, what_is_no_log_is_refused) {
  struct err err;
  char notification[256];
  uint64_t count;
  assert_null(attach(f, &count, notification, &err));
  assert_int_equal(err.code, ERR_NOT_FOUND);

  write_bytes(f->path, STR(""));
  assert_null(attach(f, &count, notification, &err));
  assert_int_equal(err.code, ERR_CORRUPT);
  assert_non_null(strstr(err.text, "has no records"));

  static const char *const first[] = {"{\"v\":1", "{}\n", "\n", "hello\nworld\n"};
  for (size_t i = 0; i < ARRAY_LEN(first); i++) {
    write_bytes(f->path, str_from(first[i]));
    assert_null(attach(f, &count, notification, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
    assert_non_null(strstr(err.text, "no whole first record"));
    expect_file(f->path, str_from(first[i]));
  }

  assert_int_equal(unlink(f->path), 0);
  assert_int_equal(mkdir(f->path, 0700), 0);
  assert_null(attach(f, &count, notification, &err));
  assert_int_equal(err.code, ERR_IO);
  assert_int_equal(rmdir(f->path), 0);

  assert_int_equal(mkfifo(f->path, 0600), 0); /* does not block */
  assert_null(attach(f, &count, notification, &err));
  assert_int_equal(err.code, ERR_IO);
  assert_non_null(strstr(err.text, "not a regular file"));
}

/* --- its lock --- */

static int in_child(int (*work)(struct fixture *f, int out), struct fixture *f, int out) {
  (void)fflush(NULL);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0)
    leave(work(f, out));
  return pid;
}

static int status_of(pid_t pid) {
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int attach_and_tell(struct fixture *f, int out) {
  struct err err;
  char notification[256];
  uint64_t count;
  (void)out;
  struct store_log *log = attach(f, &count, notification, &err);
  return log ? 50 : (int)err.code;
}

TEST_ON(struct fixture *f, setup, teardown, one_owner_at_a_time) {
  buf_auto_t bytes = {0};
  struct err err;
  char notification[256];
  uint64_t count;
  make_log(f, 2, &bytes);
  struct store_log *log = attach(f, &count, notification, &err);
  assert_non_null(log);
  assert_null(attach(f, &count, notification, &err)); /* this process, another descriptor */
  assert_int_equal(err.code, ERR_LOCKED);
  assert_int_equal(status_of(in_child(attach_and_tell, f, -1)), ERR_LOCKED);
  store_close(log);
  assert_int_equal(status_of(in_child(attach_and_tell, f, -1)), 50);
  log = attach(f, &count, notification, &err);
  assert_non_null(log);
  store_close(log);
}

static int own_until_killed(struct fixture *f, int out) {
  struct err err;
  struct store_log *log = store_create(&f->store, id, &err);
  if (log == NULL || append(f, log, 1, 2, NULL) != STORE_OK || write(out, "x", 1) != 1)
    return 1;
  for (;;)
    pause();
}

TEST_ON(struct fixture *f, setup, teardown, the_lock_dies_with_its_owner) {
  struct err err;
  char notification[256], byte;
  uint64_t count;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t pid = in_child(own_until_killed, f, ends[1]);
  assert_int_equal(read(ends[0], &byte, 1), 1);
  assert_null(attach(f, &count, notification, &err));
  assert_int_equal(err.code, ERR_LOCKED);
  assert_int_equal(kill(pid, SIGKILL), 0);
  assert_int_equal(status_of(pid), 1000 + SIGKILL);
  struct store_log *log = attach(f, &count, notification, &err);
  assert_non_null(log);
  assert_int_equal(count, 2);
  assert_int_equal(append(f, log, 3, 1, NULL), STORE_OK);
  store_close(log);
  close(ends[0]);
  close(ends[1]);
}

/* An owner that writes its log again renames the new file over the old one: whoever opened that
 * just before holds the lock of a file that nobody reads. */
TEST_ON(struct fixture *f, setup, teardown, a_log_that_is_replaced_before_the_lock) {
  buf_auto_t bytes = {0};
  struct err err;
  char notification[256], other[600];
  uint64_t count;
  make_log(f, 2, &bytes);
  print_into(other, sizeof other, "%s.new", f->path);
  int fd = open(other, O_WRONLY | O_CREAT | O_EXCL, 0600);
  assert_int_equal(write(fd, bytes.p, bytes.n), bytes.n);
  close(fd);
  to_replace = f->path;
  replaced_by = other;
  assert_null(attach(f, &count, notification, &err));
  assert_null(replaced_by);
  assert_int_equal(err.code, ERR_LOCKED);
  assert_non_null(strstr(err.text, "is being replaced"));
  struct store_log *log = attach(f, &count, notification, &err);
  assert_non_null(log);
  assert_int_equal(count, 2);
  store_close(log);
}

/* --- damage --- */

/* The file holds a sound prefix of `whole` records and then a tail: both are kept apart. */
static void expect_torn(struct fixture *f, uint64_t whole, struct str prefix, struct str tail) {
  struct err err;
  char notification[256];
  uint64_t count;
  (void)unlink(f->torn);
  struct store_log *log = attach(f, &count, notification, &err);
  if (log == NULL)
    fail_msg("%zu bytes + %zu of a tail: %s", prefix.n, tail.n, err.text);
  assert_int_equal(count, whole);
  assert_int_equal(notification[0] != '\0', tail.n > 0);
  expect_file(f->path, prefix);
  if (tail.n > 0)
    expect_file(f->torn, tail);
  else
    assert_int_equal(access(f->torn, F_OK), -1);
  assert_int_equal(append(f, log, whole + 1, 1, NULL), STORE_OK); /* on a fresh line */
  store_close(log);
  log = attach(f, &count, notification, &err);
  assert_non_null(log);
  assert_int_equal(count, whole + 1);
  assert_string_equal(notification, "");
  store_close(log);
}

TEST_ON(struct fixture *f, setup, teardown, a_torn_tail_is_cut_off) {
  buf_auto_t bytes = {0};
  make_log(f, 6, &bytes);
  size_t start = line_start(&bytes, 4);
  uint64_t whole = 3;
  size_t prefix = start;
  for (size_t cut = start; cut <= bytes.n; cut++) {
    if (cut > start && bytes.p[cut - 1] == '\n') {
      whole++;
      prefix = cut;
    }
    write_bytes(f->path, (struct str){bytes.p, cut});
    expect_torn(f, whole, (struct str){bytes.p, prefix},
                (struct str){bytes.p + prefix, cut - prefix});
  }
  assert_int_equal(whole, 6);
}

/* Nobody else can tell a changed record from a torn one: where its end or its JSON is whole it is
 * refused, else set aside. */
TEST_ON(struct fixture *f, setup, teardown, a_flipped_bit_of_the_last_record) {
  buf_auto_t bytes = {0};
  size_t refused = 0;
  make_log(f, 4, &bytes);
  size_t start = line_start(&bytes, 4);
  for (size_t at = start; at < bytes.n; at++) {
    bytes.p[at] ^= (char)(1 << (at % 7));
    write_bytes(f->path, buf_view(&bytes));
    struct err err;
    char notification[256];
    uint64_t count;
    struct store_log *log = attach(f, &count, notification, &err);
    if (log == NULL) {
      assert_int_equal(err.code, ERR_CORRUPT);
      expect_file(f->path, buf_view(&bytes));
      refused++;
    } else {
      store_close(log);
      write_bytes(f->path, buf_view(&bytes));
      expect_torn(f, 3, (struct str){bytes.p, start},
                  (struct str){bytes.p + start, bytes.n - start});
    }
    (void)unlink(f->torn);
    bytes.p[at] ^= (char)(1 << (at % 7));
  }
  print_message("%zu of %zu refused\n", refused, bytes.n - start);
  assert_true(refused > (bytes.n - start) * 9 / 10);
}

static void expect_corrupt(struct fixture *f, const struct buf *bytes, size_t at) {
  struct err err;
  char notification[256];
  uint64_t count;
  write_bytes(f->path, buf_view(bytes));
  struct store_log *log = attach(f, &count, notification, &err);
  if (log != NULL)
    fail_msg("byte %zu is 0x%02x: nobody saw it", at, (unsigned char)bytes->p[at]);
  if (err.code != ERR_CORRUPT)
    fail_msg("byte %zu: %s", at, err.text);
  expect_file(f->path, buf_view(bytes));
  assert_int_equal(access(f->torn, F_OK), -1);
}

TEST_ON(struct fixture *f, setup, teardown, a_flipped_byte_in_the_middle_is_reported) {
  static const char others[] = {'\0', '\n', ' ', '}', '\xFF'};
  buf_auto_t bytes = {0};
  make_log(f, 6, &bytes);
  size_t end = line_start(&bytes, 5) - 1; /* without the newline that ends record 4 */
  for (size_t at = 0; at < end; at++) {
    char was = bytes.p[at];
    bytes.p[at] ^= (char)(1 << (at % 8));
    expect_corrupt(f, &bytes, at);
    char other = others[at % sizeof others];
    if (other != was) {
      bytes.p[at] = other;
      expect_corrupt(f, &bytes, at);
    }
    bytes.p[at] = was;
  }
}

TEST_ON(struct fixture *f, setup, teardown, missing_and_swapped_records_are_reported) {
  buf_auto_t bytes = {0}, wrong = {0};
  make_log(f, 6, &bytes);
  size_t two = line_start(&bytes, 2), three = line_start(&bytes, 3), four = line_start(&bytes, 4);
  buf_append(&wrong, bytes.p, two); /* without record 2 */
  buf_append(&wrong, bytes.p + three, bytes.n - three);
  expect_corrupt(f, &wrong, two);
  buf_clear(&wrong); /* 3 before 2 */
  buf_append(&wrong, bytes.p, two);
  buf_append(&wrong, bytes.p + three, four - three);
  buf_append(&wrong, bytes.p + two, three - two);
  buf_append(&wrong, bytes.p + four, bytes.n - four);
  expect_corrupt(f, &wrong, two);
  buf_clear(&wrong); /* 2 twice */
  buf_append(&wrong, bytes.p, three);
  buf_append(&wrong, bytes.p + two, bytes.n - two);
  expect_corrupt(f, &wrong, three);
}

TEST_WITH(setup, teardown, garbage_after_the_tail_is_set_aside) {
  enum { MIB = 1024 * 1024 };
  struct fixture *f = *state;
  buf_auto_t bytes = {0};
  make_log(f, 3, &bytes);
  size_t sound = bytes.n;
  static const char *const garbage[] = {"\n",
                                        "\n\n\n",
                                        "x",
                                        "x\n",
                                        "{}\n{}\n",
                                        "{\"seq\":4}\n",
                                        "null\nnull\nnull",
                                        "\xFF\xFE\n\x80\n"};
  for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
    bytes.n = sound;
    buf_puts(&bytes, garbage[i]);
    write_bytes(f->path, buf_view(&bytes));
    expect_torn(f, 3, (struct str){bytes.p, sound}, (struct str){bytes.p + sound, bytes.n - sound});
  }
  bytes.n = sound; /* 1 MiB, newlines and NULs among it */
  uint32_t random = 12345;
  for (size_t i = 0; i < MIB; i++) {
    random = random * 1664525 + 1013904223;
    buf_putc(&bytes, (char)(random >> 24));
  }
  write_bytes(f->path, buf_view(&bytes));
  expect_torn(f, 3, (struct str){bytes.p, sound}, (struct str){bytes.p + sound, bytes.n - sound});
}

/* Blocks that never reached the disk read as NULs; what stands behind them was never synced. */
TEST_ON(struct fixture *f, setup, teardown, holes_are_a_torn_tail) {
  buf_auto_t bytes = {0}, holed = {0};
  make_log(f, 40, &bytes);
  size_t at = 0;
  uint64_t whole = 0;
  while (at < 4096 - 200) { /* records before the block that is missing */
    at = (size_t)((const char *)memchr(bytes.p + at, '\n', bytes.n - at) - bytes.p) + 1;
    whole++;
  }
  struct {
    size_t from, to;
  } holes[] = {
      {at, 4096},    /* the rest of a block that was half written before */
      {at, bytes.n}, /* everything after */
      {4096, 8192},  /* one block; the line before it begins in the block before */
      {4096, bytes.n},
  };
  for (size_t i = 0; i < ARRAY_LEN(holes); i++) {
    uint64_t sound = 0;
    size_t end = 0, hole_end = holes[i].to < bytes.n ? holes[i].to : bytes.n;
    buf_clear(&holed);
    buf_str(&holed, buf_view(&bytes));
    memset(holed.p + holes[i].from, 0, hole_end - holes[i].from);
    for (size_t k = 0; k < holes[i].from; k++)
      if (bytes.p[k] == '\n') {
        sound++;
        end = k + 1;
      }
    write_bytes(f->path, buf_view(&holed));
    expect_torn(f, sound, (struct str){holed.p, end}, (struct str){holed.p + end, holed.n - end});
  }
  assert_true(whole > 10);
}

static bool count_only(void *ctx, const json_t *record, struct err *err) {
  (void)record;
  (void)err;
  ++*(uint64_t *)ctx;
  return true;
}

/* Records of a call before its end can be in one batch with its end: behind a hole in that batch,
 * the end says nothing. The end of an attempt that began behind the hole does. */
TEST_WITH(setup, teardown, a_hole_in_what_a_call_tells) {
  static const struct {
    const char *records; /* type and attempt; | and , are for the reader */
    int hole;            /* in this record, from 1 */
    int sound;           /* records that are left; 0: the log is damaged */
  } cases[] = {
      {"call_start 1 | call_event 1, call_end 1, call_start 2", 2, 1},
      {"call_start 1 | call_event 1 | call_end 1, call_start 2 | call_end 2, stage 0", 2, 0},
      {"session_start 0, call_start 1 | call_end 1, stage 0", 2, 0},
      {"call_start 1 | call_event 1 | session_resume 0, call_start 2", 2, 0},
  };
  struct fixture *f = *state;
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    buf_auto_t bytes = {0};
    struct err err = {0};
    struct store_mend mend = {0};
    char type[32];
    int attempt, used, seq = 0;
    uint64_t count = 0;
    (void)unlink(f->path);
    struct store_log *log = store_create(&f->store, id, &err);
    assert_non_null(log);
    for (const char *at = cases[i].records;
         sscanf(at, " %31[a-z_] %d %n", type, &attempt, &used) == 2;
         at += used + (at[used] != '\0')) {
      char filler[1300];
      memset(filler, 'x', sizeof filler); /* each has a block of its own */
      filler[sizeof filler - 1] = '\0';
      struct record *record = kept(json_pack("{si ss si si ss}", "seq", ++seq, "type", type, "call",
                                             1, "attempt", attempt, "note", filler));
      struct answer answer = {0};
      append_now(log, (uint64_t)seq, &record, 1, &answer);
      assert_int_equal(answer.result, STORE_OK);
      buf_deinit(&answer.lines);
      record_free(record);
    }
    store_close(log);
    read_bytes(f->path, &bytes);
    size_t from = (line_start(&bytes, cases[i].hole) + 511) / 512 * 512;
    memset(bytes.p + from, 0, 512);
    write_bytes(f->path, buf_view(&bytes));
    log = store_attach(&f->store, log_ref(f->path), count_only, &count, &mend, &err);
    if ((log != NULL) != (cases[i].sound > 0))
      fail_msg("%s: %s", cases[i].records, log ? "accepted" : err.text);
    if (log != NULL)
      assert_int_equal(count, cases[i].sound);
    store_close(log);
  }
}

TEST_ON(struct fixture *f, setup, teardown, tails_gather_in_one_file) {
  buf_auto_t bytes = {0};
  struct err err;
  char notification[256];
  uint64_t count;
  make_log(f, 1, &bytes);
  for (int i = 0; i < 2; i++) {
    buf_puts(&bytes, "half");
    write_bytes(f->path, buf_view(&bytes));
    store_close(attach(f, &count, notification, &err));
    bytes.n -= 4;
  }
  expect_file(f->torn, STR("halfhalf"));
}

/* --- faults --- */

#ifdef SEGUE_FAULTS
enum { UNTOUCHED = 10, TOUCHED = 11, BATCHES = 4, BATCH = 3 };

static ino_t inode_of(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Appends all records; after an append that broke the log goes on from what is on disk. Tells each
 * acknowledged record as a byte. */
static int append_all(struct fixture *f, int out) {
  struct err err;
  struct answer a = {0};
  char notification[256];
  bool touched = false;
  uint64_t count = 0;
  struct store_log *log = store_create(&f->store, id, &err);
  if (log == NULL)
    return 1;
  ino_t inode = inode_of(f->path);
  while (count < BATCHES * BATCH) {
    enum store_result result = append(f, log, count + 1, BATCH, &a);
    while (result == STORE_FULL) {
      touched = true;
      if (a.err.code != ERR_FULL)
        return 2;
      store_append_again(log, &f->loop, on_done, &a);
      (void)uv_run(&f->loop, UV_RUN_DEFAULT);
      result = a.result;
    }
    if (result == STORE_OK) {
      count += BATCH;
      if (out >= 0 && write(out, "xxx", BATCH) != BATCH)
        return 3;
      continue;
    }
    if (result != STORE_IO || a.err.text[0] == '\0')
      return 4;
    touched = true;
    store_close(log);
    if (count == 0) { /* it had not begun */
      (void)unlink(f->path);
      log = store_create(&f->store, id, &err);
    } else {
      log = attach(f, &count, notification, &err);
    }
    if (log == NULL || count % BATCH != 0)
      return 5;
    inode = inode_of(f->path);
  }
  if (inode_of(f->path) != inode) { /* written again after a failed sync: still ours */
    touched = true;
    uint64_t ignored;
    if (attach(f, &ignored, notification, &err) != NULL || err.code != ERR_LOCKED)
      return 6;
  }
  if (append(f, log, count + 1, 1, &a) != STORE_OK)
    return 7;
  store_close(log);
  buf_deinit(&a.lines);
  return touched ? TOUCHED : UNTOUCHED;
}

static int append_all_at_once(struct fixture *f, int out) {
  at_once = true;
  return append_all(f, out);
}

static void all_records_survive(struct fixture *f, const char *fault, int n, uint64_t wanted) {
  struct err err;
  char notification[256], path[600];
  uint64_t count;
  struct store_log *log = attach(f, &count, notification, &err);
  if (log == NULL)
    fail_msg("SEGUE_FAULT=%s, n %d: %s", fault, n, err.text);
  if (count != wanted || notification[0])
    fail_msg("SEGUE_FAULT=%s, n %d: %d records, \"%s\"", fault, n, (int)count, notification);
  store_close(log);
  print_into(path, sizeof path, "%s.new", f->path);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(unlink(f->path), 0);
}

TEST_ON(struct fixture *f, setup, teardown, failed_calls_lose_nothing) {
  static const struct {
    const char *call, *error;
  } faults[] = {{"write", ""}, {"sync", ""}, {"write", ":ENOSPC"}, {"sync", ":ENOSPC"}};
  for (size_t i = 0; i < 2 * ARRAY_LEN(faults); i++) {
    int (*work)(struct fixture *, int) = i % 2 ? append_all_at_once : append_all;
    int status = TOUCHED, n = 0;
    while (status == TOUCHED) {
      char fault[64], notification[256];
      struct err err;
      uint64_t count;
      n++;
      print_into(fault, sizeof fault, "fail:%s:%d%s", faults[i / 2].call, n, faults[i / 2].error);
      assert_int_equal(setenv("SEGUE_FAULT", fault, 1), 0);
      status = status_of(in_child(work, f, -1));
      assert_int_equal(unsetenv("SEGUE_FAULT"), 0);
      if (status != TOUCHED && status != UNTOUCHED && status != 7)
        fail_msg("SEGUE_FAULT=%s: step %d failed", fault, status);
      if (status == 7) { /* the last, single record met the fault */
        status = TOUCHED;
        struct store_log *log = attach(f, &count, notification, &err);
        assert_non_null(log);
        assert_true(count >= BATCHES * BATCH);
        store_close(log);
        assert_int_equal(unlink(f->path), 0);
        continue;
      }
      all_records_survive(f, fault, n, BATCHES * BATCH + 1);
    }
    assert_true(n > BATCHES);
  }
}

/* Whatever was acknowledged before the process went is there. */
TEST_ON(struct fixture *f, setup, teardown, exits_keep_what_was_acknowledged) {
  int status = 99;
  for (int n = 1; status == 99; n++) {
    char fault[64], notification[256], byte;
    struct err err;
    uint64_t count = 0, acknowledged = 0;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    print_into(fault, sizeof fault, "exit:%d", n);
    assert_int_equal(setenv("SEGUE_FAULT", fault, 1), 0);
    pid_t pid = in_child(append_all, f, ends[1]);
    assert_int_equal(unsetenv("SEGUE_FAULT"), 0);
    close(ends[1]);
    while (read(ends[0], &byte, 1) == 1)
      acknowledged++;
    close(ends[0]);
    status = status_of(pid);
    assert_true(status == 99 || status == UNTOUCHED);
    struct store_log *log = attach(f, &count, notification, &err);
    if (log == NULL && acknowledged > 0)
      fail_msg("SEGUE_FAULT=%s: %s", fault, err.text);
    if (count < acknowledged)
      fail_msg("SEGUE_FAULT=%s: %d of %d records", fault, (int)count, (int)acknowledged);
    store_close(log);
    assert_int_equal(unlink(f->path), 0);
    assert_true(n < 1000);
  }
}

static int all_syncs_fail(struct fixture *f, int out) {
  struct err err;
  struct answer a = {0};
  char notification[256];
  uint64_t count;
  (void)out;
  struct store_log *log = attach(f, &count, notification, &err);
  if (log == NULL || append(f, log, 3, 1, &a) != STORE_IO)
    return 1;
  store_close(log);
  return strstr(a.err.text, "failed sync") != NULL ? 0 : 2;
}

TEST_ON(struct fixture *f, setup, teardown, a_sync_that_fails_again_breaks_the_log) {
  buf_auto_t bytes = {0};
  struct err err;
  char notification[256], path[600];
  uint64_t count;
  make_log(f, 2, &bytes);
  assert_int_equal(setenv("SEGUE_FAULT", "fail:sync:1+", 1), 0);
  assert_int_equal(status_of(in_child(all_syncs_fail, f, -1)), 0);
  assert_int_equal(unsetenv("SEGUE_FAULT"), 0);
  struct store_log *log = attach(f, &count, notification, &err);
  assert_non_null(log);
  assert_true(count == 2 || count == 3);
  store_close(log);
  print_into(path, sizeof path, "%s.new", f->path);
  assert_int_equal(access(path, F_OK), -1);
}

static int rewrite_what_was_changed(struct fixture *f, int out) {
  struct err err;
  struct answer a = {0};
  char notification[256];
  uint64_t count;
  (void)out;
  struct store_log *log = attach(f, &count, notification, &err);
  int fd = open(f->path, O_WRONLY | O_CLOEXEC);
  if (log == NULL || pwrite(fd, "X", 1, 30) != 1 || append(f, log, 3, 1, &a) != STORE_IO)
    return 1;
  return strstr(a.err.text, "is not what was written") != NULL ? 0 : 2;
}

TEST_ON(struct fixture *f, setup, teardown, a_rewrite_compares_first) {
  buf_auto_t bytes = {0};
  make_log(f, 2, &bytes);
  assert_int_equal(setenv("SEGUE_FAULT", "fail:sync:1", 1), 0);
  assert_int_equal(status_of(in_child(rewrite_what_was_changed, f, -1)), 0);
  assert_int_equal(unsetenv("SEGUE_FAULT"), 0);
}

static int fail_blob(struct fixture *f, int out) {
  struct err err;
  char name[SHA256_HEX];
  (void)out;
  if (store_blob_put(&f->store, STR("bytes"), name, &err))
    return UNTOUCHED;
  return err.text[0] ? TOUCHED : 1;
}

TEST_ON(struct fixture *f, setup, teardown, a_failed_blob_has_no_name) {
  static const char *const faults[] = {"fail:write", "fail:sync", "exit"};
  char name[SHA256_HEX], path[600];
  sha256_hex("bytes", 5, NULL, 0, name);
  print_into(path, sizeof path, "%s/blobs/%s", f->dir, name);
  for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
    int n = 0, status;
    do {
      char fault[64];
      buf_auto_t back = {0};
      struct err err;
      print_into(fault, sizeof fault, "%s:%d", faults[i], ++n);
      assert_int_equal(setenv("SEGUE_FAULT", fault, 1), 0);
      status = status_of(in_child(fail_blob, f, -1));
      assert_int_equal(unsetenv("SEGUE_FAULT"), 0);
      if (status == TOUCHED)
        assert_int_equal(access(path, F_OK), -1);
      else
        assert_true(status == UNTOUCHED || status == 99);
      if (access(path, F_OK) == 0) /* a name means all bytes */
        assert_true(store_blob_get(&f->store, name, &back, &err));
      (void)unlink(path);
    } while (status != UNTOUCHED && n < 100);
    assert_true(n > 1 && n < 100);
  }
}
#endif

/* --- blobs and the folder --- */

TEST_ON(struct fixture *f, setup, teardown, blobs_come_back) {
  buf_auto_t big = {0}, back = {0};
  struct err err;
  for (int i = 0; i < 300000; i++)
    buf_putc(&big, (char)(i * 7));
  const struct str texts[] = {STR(""), STR("a"), STR("nul \0 in it"), STR("\xFF\xFE \x1B[31m"),
                              buf_view(&big)};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    char name[SHA256_HEX], again[SHA256_HEX], wanted[SHA256_HEX], path[600];
    struct stat st;
    sha256_hex(texts[i].p, texts[i].n, NULL, 0, wanted);
    assert_true(store_blob_put(&f->store, texts[i], name, &err));
    assert_true(store_blob_put(&f->store, texts[i], again, &err));
    assert_string_equal(name, wanted);
    assert_string_equal(again, wanted);
    assert_true(store_blob_get(&f->store, name, &back, &err));
    assert_int_equal(back.n, texts[i].n);
    assert_memory_equal(buf_c(&back), texts[i].p, texts[i].n);
    print_into(path, sizeof path, "%s/blobs/%s", f->dir, name);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
  }
}

/* A writer that died, or a full disk, left less than the name says. */
TEST_ON(struct fixture *f, setup, teardown, a_cut_blob_is_written_again) {
  buf_auto_t back = {0};
  struct err err;
  char name[SHA256_HEX], path[600];
  assert_true(store_blob_put(&f->store, STR("all of it"), name, &err));
  print_into(path, sizeof path, "%s/blobs/%s", f->dir, name);
  write_bytes(path, STR("all"));
  assert_true(store_blob_put(&f->store, STR("all of it"), name, &err));
  assert_true(store_blob_get(&f->store, name, &back, &err));
  assert_true(str_eq_c(buf_view(&back), "all of it"));
}

TEST_ON(struct fixture *f, setup, teardown, damaged_blobs_are_refused) {
  static const char *const no_names[] = {
      "", "../../etc/passwd", "abc",
      "ZZZZaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
  buf_auto_t back = {0};
  struct err err;
  char name[SHA256_HEX], path[600];
  for (size_t i = 0; i < ARRAY_LEN(no_names); i++) {
    assert_false(store_blob_get(&f->store, no_names[i], &back, &err));
    assert_int_equal(err.code, ERR_CORRUPT);
  }
  assert_true(store_blob_put(&f->store, STR("what was written"), name, &err));
  print_into(path, sizeof path, "%s/blobs/%s", f->dir, name);
  write_bytes(path, STR("what was WRITTEN"));
  assert_false(store_blob_get(&f->store, name, &back, &err));
  assert_int_equal(err.code, ERR_CORRUPT);
  assert_int_equal(unlink(path), 0);
  assert_false(store_blob_get(&f->store, name, &back, &err));
  assert_int_equal(err.code, ERR_NOT_FOUND);
}

TEST_ON(struct fixture *f, setup, teardown, the_folder_is_made) {
  struct store store;
  struct err err;
  struct stat st;
  char dir[512];
  print_into(dir, sizeof dir, "%s/a/b/c", f->dir);
  assert_true(store_open(&store, dir, &err));
  assert_true(store_open(&store, dir, &err));
  assert_int_equal(stat(dir, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
  print_into(dir, sizeof dir, "%s/file", f->dir);
  write_bytes(dir, STR("x"));
  assert_false(store_open(&store, dir, &err));
  assert_non_null(strstr(err.text, dir));
  print_into(dir, sizeof dir, "%s/file/logs", f->dir);
  assert_false(store_open(&store, dir, &err));
}
