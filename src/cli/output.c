/* Standard output as a whole: what could not be written is known at the end, whichever command it was
 * and whenever it happened. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int lost; /* errno of the first write that failed; 0 = none did */

/* A closed standard descriptor would be given to the next file that is opened, and a log written
 * over by what was meant for a terminal. Standard output is held open for reading only: what is
 * printed there is lost, and must fail. */
static void hold_standard_descriptors(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

/* A pipe may be set not to block by whoever has its other end. */
static bool is_ready_again(void) {
  struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
  return errno == EINTR || (errno == EAGAIN && (poll(&out, 1, -1) > 0 || errno == EINTR));
}

/* All of it or an error, as stdio wants it: 0. */
static ssize_t write_all(void *cookie, const char *p, size_t n) {
  size_t done = 0;
  (void)cookie;
  while (done < n) {
    ssize_t written = write(STDOUT_FILENO, p + done, n - done);
    if (written >= 0) {
      done += (size_t)written;
    } else if (!is_ready_again()) {
      lost = lost != 0 ? lost : errno;
      return 0;
    }
  }
  return (ssize_t)n;
}

void cli_begin(void) {
  hold_standard_descriptors();
  /* stdio tells that a write failed, but not why once another call came between. */
  FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_all});
  if (out == NULL)
    return;
  if (isatty(STDOUT_FILENO))
    (void)setvbuf(out, NULL, _IOLBF, 0);
  stdout = out;
}

int cli_end(const char *command, int status) {
  if (fflush(stdout) == 0 && !ferror(stdout))
    return status;
  if (lost != EPIPE)
    fprintf(stderr, "segue %s: cannot write to standard output%s%s\n", command, lost ? ": " : "",
            lost ? strerror(lost) : "");
  return status == STATUS_COMPLETE ? STATUS_FAILED : status;
}
