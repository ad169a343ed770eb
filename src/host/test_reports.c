/* Counts the tests that a command ran. */
#include "host/test_reports.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "evidence/counts.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "format/test_counts.h"
#include "os/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct test_reports {
  int64_t since_ms;
  unsigned read, older;
  struct test_counts counts;
  struct err problem;
};

static bool read_report(struct test_reports *r, int folder, const char *path) {
  struct stat st;
  struct buf text = {0};
  struct err err;
  int fd = fs_open_beneath(folder, path, O_RDONLY);
  if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    if (fd >= 0)
      (void)close(fd);
    return err_set(&r->problem, ERR_NOT_FOUND, "there is no report %s", path);
  }
  int64_t ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
  if (ms + LIMIT_TREE_TICK_MS < r->since_ms) {
    r->older++;
    (void)close(fd);
    return true;
  }
  bool ok = file_read_fd(fd, path, LIMIT_REPORT_BYTES, &text, &err) &&
            test_counts_junit(buf_view(&text), &r->counts, &err);
  (void)close(fd);
  buf_deinit(&text);
  r->read++;
  return ok || err_set(&r->problem, ERR_INVALID, "%s: %.300s", path, err.text);
}

/* Reads every *.xml file in the folder itself. */
static bool read_folder(struct test_reports *r, int at) {
  DIR *dir = fdopendir(at);
  struct dirent *entry;
  bool ok = dir != NULL;
  while (ok && (entry = readdir(dir)) != NULL) {
    if (!str_ends(str_from(entry->d_name), ".xml"))
      continue;
    if (r->read + r->older >= LIMIT_REPORT_COUNT)
      ok = err_set(&r->problem, ERR_LIMIT, "there are over %u reports", LIMIT_REPORT_COUNT);
    else
      ok = read_report(r, at, entry->d_name);
  }
  if (dir != NULL)
    (void)closedir(dir);
  else
    (void)close(at);
  return ok;
}

static bool read_reports(struct test_reports *r, const char *cwd, const char *path) {
  int folder = open(cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return err_set_errno(&r->problem, errno, "cannot open %s", cwd);
  int below = fs_open_beneath(folder, path, O_RDONLY | O_DIRECTORY);
  bool ok = below >= 0 ? read_folder(r, below) : read_report(r, folder, path);
  (void)close(folder);
  if (ok && r->read == 0 && r->older > 0)
    return err_set(&r->problem, ERR_NOT_FOUND, "%s is older than this run", path);
  if (ok && r->read == 0)
    return err_set(&r->problem, ERR_NOT_FOUND, "there is no report in %s", path);
  return ok;
}

static void reports_put(json_t *tests, const struct test_counts *counts) {
  json_put(tests, "passed", json_integer(counts->passed));
  json_put(tests, "failed", json_integer(counts->failed));
  json_put(tests, "skipped", json_integer(counts->skipped));
}

/* Looks for a summary of any kind in both outputs. */
static void count_any(struct call_result *result) {
  struct check_counts found;
  buf_auto_t both = {0};
  buf_str(&both, buf_view(&result->text.bytes));
  buf_putc(&both, '\n');
  buf_str(&both, buf_view(&result->error_text.bytes));
  counts_find(buf_view(&both), &found);
  const char *name = test_format_name(found.kind == COUNTS_MEASURED ? found.format : TESTS_AUTO);
  result->tests = json_object();
  json_put(result->tests, "format", json_string(name));
  reports_put(result->tests, &found.tests);
  if (found.kind == COUNTS_SAID)
    json_put(result->tests, "said", json_true());
  if (found.tests.passed + found.tests.failed + found.tests.skipped == 0)
    json_put(result->tests, "none", json_true());
}

void test_reports_count(struct str spec, const char *cwd, int64_t since_ms,
                        struct call_result *result) {
  enum test_format format;
  struct str path;
  struct test_reports r = {.since_ms = since_ms};
  bool ok = test_format_parse(spec, &format, &path);
  if (ok && format == TESTS_AUTO) {
    count_any(result);
    return;
  }
  if (ok && format == TESTS_JUNIT) {
    char_auto_t *name = strndup(path.p, path.n);
    ok = name != NULL && read_reports(&r, cwd, name);
  } else if (ok && !test_counts_read(format, buf_view(&result->text.bytes), &r.counts) &&
             !test_counts_read(format, buf_view(&result->error_text.bytes), &r.counts)) {
    ok = err_set(&r.problem, ERR_NOT_FOUND, "its output holds no summary of %s",
                 test_format_name(format));
  }
  if (!ok)
    r.counts = (struct test_counts){0};
  result->tests = json_object();
  json_put(result->tests, "format", json_string(test_format_name(format)));
  reports_put(result->tests, &r.counts);
  if (!ok)
    json_put(result->tests, "problem", json_text(str_from(r.problem.text)));
}
