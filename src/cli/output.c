/* Watches standard output as a whole: a failed write is known at the end, whichever command it was
 * and whenever it happened. */
#include "base/limits.h"
#include "cli/cli.h"
#include "host/solo.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int lost; /* errno of the first write that failed; 0 = none did */

/* Opens standard descriptors that are closed: the next file would get their numbers, and a log
 * could be overwritten by output meant for a terminal. Standard output is then opened for reading
 * only, so that printing fails. */
static void hold_standard_descriptors(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      (void)open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

/* Waits until a pipe has room for PIPE_BUF bytes: it is full after 64 KiB without a reader, and a
 * process blocked in write() acts on no signal. Once a session has been told to stop, this waits
 * LIMIT_OUTPUT_WAIT_MS more in all; then the rest is dropped, and the loop gets to the signal. */
static bool wait_for_room(void) {
  static int waited_ms; /* since a signal came */
  struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
  for (;;) {
    bool stopping = solo_signalled(), dropped = waited_ms >= LIMIT_OUTPUT_WAIT_MS;
    int n = poll(&out, 1, dropped ? 0 : LIMIT_OUTPUT_LOOK_MS);
    if (n > 0 || (n < 0 && errno != EINTR))
      return n > 0;
    if (dropped) {
      errno = ETIMEDOUT;
      return false;
    }
    if (stopping && n == 0)
      waited_ms += LIMIT_OUTPUT_LOOK_MS;
  }
}

/* Writes everything, or returns less than n as stdio expects. The process at the other end may have
 * made a pipe non-blocking. */
static ssize_t write_all(void *cookie, const char *p, size_t n) {
  size_t done = 0;
  (void)cookie;
  while (done < n) {
    size_t piece = n - done < PIPE_BUF ? n - done : PIPE_BUF;
    ssize_t written = wait_for_room() ? write(STDOUT_FILENO, p + done, piece) : -1;
    if (written >= 0) {
      done += (size_t)written;
    } else if (errno != EINTR && errno != EAGAIN) {
      lost = lost != 0 ? lost : errno;
      break;
    }
  }
  return (ssize_t)done;
}

void cli_begin(void) {
  hold_standard_descriptors();
  /* stdio says that a write failed, but not why once another call came in between. */
  FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_all});
  if (out == NULL)
    return;
  if (isatty(STDOUT_FILENO))
    (void)setvbuf(out, NULL, _IOLBF, 0);
  stdout = out;
}

int cli_end(const char *command, int status) {
  assert(command != NULL);
  assert(status >= 0);
  if (fflush(stdout) == 0 && !ferror(stdout))
    return status;
  if (lost != EPIPE)
    fprintf(stderr, "segue %s: cannot write to standard output%s%s\n", command, lost ? ": " : "",
            lost ? strerror(lost) : "");
  return status == STATUS_COMPLETE ? STATUS_FAILED : status;
}
