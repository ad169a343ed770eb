/* Reads the system's clocks, so that nothing else needs to. */
#include "os/clock.h"

#include <assert.h>
#include <time.h>

static struct timespec clock_read(clockid_t id) {
  struct timespec t;
  int rc = clock_gettime(id, &t);
  assert(rc == 0); /* both clocks always exist */
  return t;
}

int64_t clock_real_ms(void) {
  struct timespec t = clock_read(CLOCK_REALTIME);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

uint64_t clock_mono_us(void) {
  struct timespec t = clock_read(CLOCK_MONOTONIC);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t clock_mono_ms(void) {
  return clock_mono_us() / 1000;
}

uint64_t clock_boot_ms(void) {
  struct timespec t = clock_read(CLOCK_BOOTTIME);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}
