/* sd_notify.h - tells the service manager how we are, with sd_notify(3)'s protocol, datagrams to
 * $NOTIFY_SOCKET.
 *
 *   sd_notify_init(&n)  reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and takes them
 *                               out of our environment, so that nothing we start inherits them
 *   sd_notify_send(&n, "READY=1\nSTATUS=...")     best effort; nothing happens without a manager
 *   sd_notify_deinit(&n)
 *
 * Socket names may be paths or, beginning with @, abstract ones. */
#ifndef SEGUE_DAEMON_SD_NOTIFY_H
#define SEGUE_DAEMON_SD_NOTIFY_H

#include "base/err.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

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
