/* serve.h - the daemon: one loop with sessions, control socket, signals and the service manager.
 *
 * TERM or INT: nothing new is taken or called, calls that run get drain_ms, then what is left is
 * stopped so that the next daemon goes on with it; a second one stops at once, a third one ends the
 * program. HUP reads the user's configuration again, for sessions that start later; a wrong one is
 * refused and the old one stays. */
#ifndef SEGUE_DAEMON_SERVE_H
#define SEGUE_DAEMON_SERVE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct serve_options {
  const char *logs;          /* --logs or NULL; with `store` it is for what stays on this machine */
  const char *store;         /* address of a shared store, or NULL */
  uint64_t lease_ms;         /* of this worker there */
  const char *const *labels; /* of it, NULL-ended; borrowed for good */
  const char *socket;        /* --socket or NULL */
  size_t max_sessions;
  uint64_t drain_ms;
  const char *http_origin; /* "https://HOST" of a reverse proxy before it, or NULL */
  bool http_any_peer;      /* the proxy is of another user */
  const char *http;        /* address of a port for the window; NULL: none until it is asked for */
  void (*ready)(const char *socket, const char *logs, size_t waiting); /* or NULL */
};

/* Returns when the daemon has ended. False: it could not begin. */
bool serve(const struct serve_options *options, struct err *err) MUST_CHECK;

/* "0.9.75": of libmicrohttpd, which is loaded for it; NULL when it cannot be. Not to be freed. */
const char *serve_library(void);

#endif
