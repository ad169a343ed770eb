/* call_bed.h - what a call to a program needs in a test: a loop, processes, a folder to work in and
 * one for temporary files. At the end nothing of them may be left, neither a process nor a file nor
 * a descriptor.
 *
 *   call_bed_init; provider's start with bed.env and call_bed_done as the sink's `done`;
 *   call_bed_run; bed.result; call_bed_deinit */
#ifndef SEGUE_TESTS_CALL_BED_H
#define SEGUE_TESTS_CALL_BED_H

#include "os/process_internal.h"
#include "os/sandbox.h"
#include "provider/provider.h"
#include "support/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct call_bed {
  uv_loop_t loop;
  struct provider_env env;
  char *dir, *tmp; /* the working directory; $TMPDIR */
  size_t fds_before;
  int done; /* how often call_bed_done was called since call_bed_run or the beginning */
  struct call_result result;
};

static inline size_t call_bed_entries(const char *path) {
  size_t n = 0;
  DIR *dir = opendir(path);
  for (struct dirent *e; (e = readdir(dir)) != NULL;)
    n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  (void)closedir(dir);
  return n;
}

static inline void call_bed_init(struct call_bed *bed) {
  static bool warm;
  struct err err;
  if (!warm) { /* the first loop opens what stays open */
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    warm = true;
  }
  *bed = (struct call_bed){.fds_before = call_bed_entries("/proc/self/fd")};
  assert_int_equal(setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1), 0);
  assert_int_equal(uv_loop_init(&bed->loop), 0);
  bed->dir = folder_make();
  bed->tmp = folder_make();
  assert_int_equal(setenv("TMPDIR", bed->tmp, 1), 0);
  bed->env = (struct provider_env){.loop = &bed->loop, .cwd = bed->dir};
  bed->env.processes = process_table_new(&bed->loop, &err);
  if (bed->env.processes == NULL)
    fail_msg("%s", err.text);
  bed->env.sandboxes = ruleset_cache_new(bed->env.processes);
}

static inline void call_bed_deinit(struct call_bed *bed) {
  char own[64];
  (void)uv_run(&bed->loop, UV_RUN_DEFAULT);
  assert_int_equal(bed->env.processes->processes.count, 0);
  ruleset_cache_free(bed->env.sandboxes);
  process_table_free(bed->env.processes);
  (void)uv_run(&bed->loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&bed->loop), 0);
  call_result_deinit(&bed->result);
  print_into(own, sizeof own, "segue-%ld.tmp", (long)geteuid());
  (void)rmdir(folder_path(bed->tmp, own));         /* stays for the user's next call, but empty */
  assert_int_equal(call_bed_entries(bed->tmp), 0); /* each call's TMPDIR is gone */
  assert_int_equal(unsetenv("TMPDIR"), 0);
  folder_remove(bed->dir);
  folder_remove(bed->tmp);
  assert_int_equal(call_bed_entries("/proc/self/fd"), bed->fds_before);
}

/* The `done` of a sink. */
static inline void call_bed_done(struct call_bed *bed, struct call_result *result) {
  bed->done++;
  call_result_deinit(&bed->result);
  bed->result = *result;
  *result = (struct call_result){0};
}

/* Until the call that was started is over. */
static inline void call_bed_run(struct call_bed *bed) {
  assert_int_equal(bed->done, 0); /* it ends from the loop only */
  (void)uv_run(&bed->loop, UV_RUN_DEFAULT);
  assert_int_equal(bed->done, 1);
  bed->done = 0;
}

#endif
