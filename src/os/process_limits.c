/* Counts a user's tasks: the kernel's limit of processes covers all of them together. */
#include "os/process_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* Counts a process's threads: a folder has two links more than subfolders, one for each task. */
static unsigned long threads_of(int proc, const char *pid) {
  char path[300];
  struct stat st;
  (void)snprintf(path, sizeof path, "%s/task", pid);
  bool ours = fstatat(proc, path, &st, 0) == 0 && st.st_uid == getuid();
  return ours && st.st_nlink > 2 ? (unsigned long)st.st_nlink - 2 : 0;
}

unsigned long process_threads_of_user(void) {
  unsigned long count = 0;
  DIR *proc = opendir("/proc");
  for (struct dirent *e; proc != NULL && (e = readdir(proc)) != NULL;)
    if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
      count += threads_of(dirfd(proc), e->d_name);
  if (proc != NULL)
    (void)closedir(proc);
  return count;
}
