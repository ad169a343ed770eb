/* Adds up what a tree of processes has used, from /proc. */
#include "os/tree_work.h"

#include "base/limits.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A client that waits does a little all the time: a spinner's timer, a wake-up of its loop. */
enum { IDLE_CPU_SHARE = 50, IDLE_BYTES = 1024, DEPTH = 64, TEXT_BYTES = 4096 };

/* Reads a small file of a process. Returns false if it is gone, or may not be read. */
static bool tree_work_read(pid_t pid, const char *name, char text[TEXT_BYTES]) {
  char path[64];
  print_into(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_BYTES - 1);
  if (fd >= 0)
    close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

/* Adds the state and the processor time of /proc/PID/stat: its fields 3 and 14 to 17, counted from
 * the end of the program's name, which may hold anything. */
static void add_stat(const char *stat, struct tree_work *out) {
  const char *at = strrchr(stat, ')');
  out->stopped += at != NULL && at[1] == ' ' && (at[2] == 'T' || at[2] == 't');
  unsigned long long user, system, waited_user, waited_system;
  if (at != NULL &&
      sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &user,
             &system, &waited_user, &waited_system) == 4)
    out->cpu_ms += (user + system + waited_user + waited_system) * 1000 /
                   (unsigned long long)sysconf(_SC_CLK_TCK);
}

static void tree_work_add(pid_t pid, int depth, struct tree_work *out) {
  char text[TEXT_BYTES], path[64];
  if (depth > DEPTH || out->processes >= LIMIT_TREE_PROCESSES || !tree_work_read(pid, "stat", text))
    return;
  out->processes++;
  out->identities += (uint64_t)pid * (uint64_t)pid;
  add_stat(text, out);
  const char *at = tree_work_read(pid, "io", text) ? strstr(text, "wchar: ") : NULL;
  if (at != NULL)
    out->written += strtoull(at + 7, NULL, 10);
  print_into(path, sizeof path, "/proc/%ld/task", (long)pid);
  DIR *threads = opendir(path);
  for (const struct dirent *e; threads != NULL && (e = readdir(threads)) != NULL;) {
    if (e->d_name[0] == '.')
      continue;
    print_into(path, sizeof path, "task/%.20s/children", e->d_name);
    if (!tree_work_read(pid, path, text))
      continue;
    char *rest = text;
    for (long child; (child = strtol(rest, &rest, 10)) > 0;)
      tree_work_add((pid_t)child, depth + 1, out);
  }
  if (threads != NULL)
    closedir(threads);
}

void tree_work_measure(pid_t root, struct tree_work *out) {
  *out = (struct tree_work){0};
  if (root > 0)
    tree_work_add(root, 0, out);
}

bool tree_work_idles(const struct tree_work *before, const struct tree_work *now, uint64_t ms) {
  return before->processes > 0 && now->processes == before->processes &&
         now->identities == before->identities && now->cpu_ms >= before->cpu_ms &&
         now->cpu_ms - before->cpu_ms <= ms / IDLE_CPU_SHARE && now->written >= before->written &&
         now->written - before->written < IDLE_BYTES;
}
