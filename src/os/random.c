/* Gets random bytes from the system. */
#include "os/random.h"

#include "base/log.h"

#include <assert.h>
#include <sys/random.h>

void random_fill(void *p, size_t n) {
  assert(n <= RANDOM_FILL_BYTES_MAX);
  if (getrandom(p, n, 0) != (ssize_t)n)
    BUG("no random bytes");
}

bool random_try(void *p, size_t n) {
  assert(n <= RANDOM_FILL_BYTES_MAX);
  return getrandom(p, n, GRND_NONBLOCK) == (ssize_t)n;
}
