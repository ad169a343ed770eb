/* A tree that works and one that idles, told apart by what /proc says. */

#include "os/tree_work.h"
#include "support/test.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_ENDS_S = 60, MS = 300 };

/* Starts a child whose own child does `what` until it is killed; both end by themselves, too. */
static pid_t start(void (*what)(void)) {
  int ready[2];
  char byte;
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    setpgid(0, 0);
    alarm(CHILD_ENDS_S);
    if (fork() == 0) {
      alarm(CHILD_ENDS_S);
      if (write(ready[1], "", 1) == 1)
        what();
    }
    for (;;)
      pause();
  }
  setpgid(pid, pid);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return pid;
}

static void end(pid_t pid) {
  kill(-pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

static void nothing(void) {
  for (;;)
    pause();
}

static void compute(void) {
  for (volatile unsigned long n = 0;; n++)
    ;
}

static void print(void) {
  static const char line[200];
  int out[2];
  char all[4096];
  if (pipe(out) != 0)
    return;
  while (write(out[1], line, sizeof line) > 0) {
    poll(NULL, 0, 20); /* what it writes is what it does: no processor time to speak of */
    if (read(out[0], all, sizeof all) < 0)
      return;
  }
}

static void begin_others(void) {
  for (;;) {
    pid_t pid = fork();
    if (pid == 0)
      nothing();
    poll(NULL, 0, MS / 3);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
  }
}

/* Returns whether it idles in some time of MS: what works does so in none. */
static bool idles(pid_t pid, int times) {
  for (int i = 0; i < times; i++) {
    struct tree_work before, now;
    tree_work_measure(pid, &before);
    assert_true(before.processes >= 2);
    poll(NULL, 0, MS); /* the time that is judged */
    tree_work_measure(pid, &now);
    if (tree_work_idles(&before, &now, MS))
      return true;
  }
  return false;
}

TEST(a_tree_that_waits_idles) {
  pid_t pid = start(nothing);
  assert_true(idles(pid, 20)); /* it may not be there yet at the first look */
  end(pid);
}

TEST(a_tree_that_works_does_not) {
  static void (*const ways[])(void) = {compute, print, begin_others};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    pid_t pid = start(ways[i]);
    assert_false(idles(pid, 2));
    end(pid);
  }
}

TEST(what_is_gone_is_not_known) {
  struct tree_work before, now;
  pid_t pid = start(nothing);
  end(pid);
  tree_work_measure(pid, &before);
  tree_work_measure(0, &now);
  assert_int_equal(before.processes, 0);
  assert_int_equal(now.processes, 0);
  assert_false(tree_work_idles(&before, &now, MS));
}
