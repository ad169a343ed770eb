/* Ends the process, or makes a call fail, where a test asks for it. */
#include "base/fault.h"

#ifdef SEGUE_FAULTS
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void __gcov_dump(void) __attribute__((weak)); /* in a build for coverage only */

static atomic_int exit_count, fail_count;

/* Splits SEGUE_FAULT "verb:name:n" or "verb:n"; false when the verb is another. */
static bool fault_parse(const char *verb, char *name, size_t size, int *n, const char **rest) {
  const char *spec = getenv("SEGUE_FAULT");
  size_t verb_len = strlen(verb);
  if (spec == NULL || strncmp(spec, verb, verb_len) != 0 || spec[verb_len] != ':')
    return false;
  spec += verb_len + 1;
  name[0] = '\0';
  if (*spec < '0' || *spec > '9') {
    const char *colon = strchr(spec, ':');
    if (colon == NULL || (size_t)(colon - spec) >= size)
      return false;
    memcpy(name, spec, (size_t)(colon - spec));
    name[colon - spec] = '\0';
    spec = colon + 1;
  }
  char *end;
  *n = (int)strtol(spec, &end, 10);
  *rest = end;
  return *n > 0;
}

void fault_point(const char *name) {
  char wanted[32];
  const char *rest;
  int n;
  bool stops = fault_parse("stop", wanted, sizeof wanted, &n, &rest);
  if (!stops && !fault_parse("exit", wanted, sizeof wanted, &n, &rest))
    return;
  if (wanted[0] != '\0' && strcmp(wanted, name) != 0)
    return;
  if (atomic_fetch_add(&exit_count, 1) + 1 != n)
    return;
  if (!stops && __gcov_dump != NULL)
    __gcov_dump(); /* what ran up to here was tested */
  if (!stops)
    _exit(99);
  (void)kill(getpid(), SIGSTOP);
}

bool fault_fails(const char *name) {
  char wanted[32];
  const char *rest;
  int n;
  if (!fault_parse("fail", wanted, sizeof wanted, &n, &rest) || strcmp(wanted, name) != 0)
    return false;
  int now = atomic_fetch_add(&fail_count, 1) + 1;
  int last = n;
  if (*rest == '+')
    last = now;
  else if (*rest == '-')
    last = (int)strtol(rest + 1, NULL, 10);
  bool on = now >= n && now <= last;
  if (on)
    errno = strstr(rest, "ENOSPC") ? ENOSPC : EIO;
  return on;
}
#else
typedef int fault_is_compiled_out; /* an empty translation unit is not C */
#endif
