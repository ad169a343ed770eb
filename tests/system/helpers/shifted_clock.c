/* Laid between segue and libc: its wall clock is SHIFTED_CLOCK_S seconds off. All others stay. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t shift_s(void) {
  const char *text = getenv("SHIFTED_CLOCK_S");
  return text != NULL ? (time_t)strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (real == NULL)
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, at);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    at->tv_sec += shift_s();
  return result;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  (void)zone;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = (suseconds_t)(now.tv_nsec / 1000);
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  (void)clock_gettime(CLOCK_REALTIME, &now);
  if (at != NULL)
    *at = now.tv_sec;
  return now.tv_sec;
}
