/* serve.h - the daemon: one loop with sessions, control socket, signals and the service manager.
 *
 * On TERM or INT nothing new is accepted or called, running calls get drain_ms, and then the rest
 * is stopped so that the next daemon can go on with it; a second signal stops at once, a third ends
 * the program. HUP reloads the user's configuration for sessions that start later; a wrong one is
 * refused and the old one stays.
 *
 * --- telling the service manager ---
 *
 * Tells the service manager how we are, with sd_notify(3)'s protocol, datagrams to
 * $NOTIFY_SOCKET.
 *
 *   sd_notify_init(&n)  reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and takes them
 *                               out of our environment, so that nothing we start inherits them
 *   sd_notify_send(&n, "READY=1\nSTATUS=...")     best effort; nothing happens without a manager
 *   sd_notify_deinit(&n)
 *
 * Socket names may be paths or, beginning with @, abstract ones. */
#ifndef SEGUE_DAEMON_SERVE_H
#define SEGUE_DAEMON_SERVE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct serve_options {
  /* --logs or NULL; with `store`, the folder for what stays on this machine */
  const char *logs;
  const char *store;         /* address of a shared store, or NULL */
  uint64_t lease_ms;         /* of this worker there */
  const char *const *labels; /* this worker's labels, NULL-ended; borrowed for good */
  const char *socket;        /* --socket or NULL */
  size_t max_sessions;
  uint64_t drain_ms;
  const char *http_origin; /* "https://HOST" of a reverse proxy before it, or NULL */
  bool http_any_peer;      /* the proxy runs as another user */
  const char *http;        /* address of a port for the window; NULL: none until requested */
  void (*ready)(const char *socket, const char *logs, size_t waiting); /* or NULL */
};

/* Returns when the daemon has ended. False: it could not start. */
bool serve(const struct serve_options *options, struct err *err) MUST_CHECK;

/* The version of libmicrohttpd, such as "0.9.75", loading it first; NULL if it cannot be loaded.
 * Not to be freed. */
const char *serve_library(void);

/* --- telling the service manager --- */

struct sd_notify {
  int fd; /* -1: there is no manager */
  struct sockaddr_un address;
  socklen_t address_bytes;
  uint64_t watchdog_ms; /* WATCHDOG=1 is due at least this often; 0: never */
};

void sd_notify_init(struct sd_notify *n);
void sd_notify_send(const struct sd_notify *n, const char *fmt, ...) PRINTF_LIKE(2, 3);
void sd_notify_deinit(struct sd_notify *n);

#endif
