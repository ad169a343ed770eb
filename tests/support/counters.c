/* counters.c - keeps the counters of a program's coverage in a file that all its processes share.
 *
 * By default each process that ends merges its counts into one file for each source, under a lock.
 * That is 600 files, costs ten times what the process itself does, and one that is killed counts
 * for nothing. Here the counters are a shared mapping (counters.ld puts them side by side), so that
 * nothing is left to do at the end. A process started with SEGUE_COUNTERS=write writes the usual
 * files, once. Two processes may lose a count between them, never the fact that a line was run.
 *
 * The linker hands the calls of gcov's end to the __wrap_ functions (--wrap). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern char counters_begin[], counters_end[]; /* both on a page's border */

void __real___gcov_dump(void);
void __wrap___gcov_exit(void);
void __wrap___gcov_dump(void);
void __wrap___gcov_reset(void);

void __wrap___gcov_exit(void) {
}

void __wrap___gcov_dump(void) { /* before an exec */
}

void __wrap___gcov_reset(void) { /* after an exec that failed */
}

__attribute__((constructor)) static void counters_map(void) {
  const char *word = getenv("SEGUE_COUNTERS");
  size_t size = (size_t)(counters_end - counters_begin);
  int fd = open(COUNTERS_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  (void)fchmod(fd, 0666); /* tests run as other users, too */
  if (ftruncate(fd, (off_t)size) != 0 || mmap(counters_begin, size, PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
    perror(COUNTERS_FILE); /* then this process is not counted */
  if (fd >= 0)
    (void)close(fd);
  if (word == NULL)
    return;
  __real___gcov_dump();
  _exit(0);
}
