/* Start-up: `segue version` and `segue lint` of a 10-movement file against an empty program that is
 * linked against the same libraries, and against `node -e 0` where node is there. */
#include "base/log.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
enum { RUNS = 101 };

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Milliseconds of one run, -1 when it cannot be run or fails. */
static double run(char *const argv[]) {
  posix_spawn_file_actions_t actions;
  pid_t pid;
  int status;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  double start = now_ms();
  int failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed || waitpid(pid, &status, 0) != pid || status != 0)
    return -1;
  return now_ms() - start;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void write_workflow(const char *path) {
  FILE *f = fopen(path, "w");
  if (f == NULL)
    die("cannot write %s", path);
  fprintf(f, "name: ten\nprovider: script\nmovements:\n");
  for (int i = 0; i < 10; i++)
    fprintf(
        f,
        "  - name: step%d\n    instruction: |\n      Do part %d of {task}, then report.\n"
        "    rules:\n      - condition: done\n        next: %s%.0d\n      - condition: not done\n"
        "        next: step%d\n",
        i, i, i < 9 ? "step" : "COMPLETE", i < 9 ? i + 1 : 0, i);
  fclose(f);
}

int main(void) {
  char workflow[] = "/tmp/segue-bench-XXXXXX";
  int fd = mkstemp(workflow);
  if (fd < 0)
    die("no temporary file");
  close(fd);
  write_workflow(workflow);
  char segue[] = SEGUE_BUILD_DIR "/segue", empty[] = SEGUE_BUILD_DIR "/helpers/empty_probe";
  char *const commands[][5] = {
      {empty, NULL},
      {segue, "version", NULL},
      {segue, "lint", workflow, NULL},
      {"node", "-e", "0", NULL},
  };
  static const char *const names[] = {"empty program, same libraries", "segue version",
                                      "segue lint (10 movements)", "node -e 0"};
  static double times[4][RUNS];
  double medians[4];
  for (int i = 0; i < RUNS; i++)
    for (int c = 0; c < 4; c++)
      if (c < 3 || i < 15) /* in turns, so that a busy moment hits all alike */
        times[c][i] = run(commands[c]);
  for (int c = 0; c < 4; c++) {
    int n = c < 3 ? RUNS : 15;
    qsort(times[c], (size_t)n, sizeof times[c][0], by_value);
    medians[c] = times[c][n / 2];
    if (times[c][0] < 0) {
      printf("%-32s did not run\n", names[c]);
      medians[c] = -1;
      continue;
    }
    printf("%-32s median %.2f ms, best %.2f ms", names[c], medians[c], times[c][0]);
    if (c > 0 && medians[0] > 0)
      printf(", %.2f times the empty program", medians[c] / medians[0]);
    printf("\n");
  }
  if (medians[3] > 0)
    printf("segue version / node: %.3f (limit 0.1), lint / node: %.3f\n", medians[1] / medians[3],
           medians[2] / medians[3]);
  unlink(workflow);
  return 0;
}
