/* Tells the service manager how the daemon is doing. */
#include "daemon/sd_notify.h"

#include "base/str.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 512 };

/* The manager names the process that it watches; without a name, it watches whichever process got
 * the variable. */
static uint64_t watchdog_ms(void) {
  const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
  long value = 0, wanted = 0;
  if (usec == NULL || !str_to_long(str_from(usec), &value) || value <= 0)
    return 0;
  if (pid != NULL && (!str_to_long(str_from(pid), &wanted) || wanted != (long)getpid()))
    return 0;
  return (uint64_t)value / 1000;
}

void sd_notify_init(struct sd_notify *n) {
  const char *name = getenv("NOTIFY_SOCKET");
  *n = (struct sd_notify){
      .fd = -1, .address = {.sun_family = AF_UNIX}, .watchdog_ms = watchdog_ms()};
  size_t length = name ? strlen(name) : 0;
  if (length > 1 && length < sizeof n->address.sun_path && (name[0] == '/' || name[0] == '@')) {
    memcpy(n->address.sun_path, name, length);
    if (name[0] == '@')
      n->address.sun_path[0] = '\0';
    n->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  }
  (void)unsetenv("NOTIFY_SOCKET");
  (void)unsetenv("WATCHDOG_USEC");
  (void)unsetenv("WATCHDOG_PID");
}

void sd_notify_send(const struct sd_notify *n, const char *fmt, ...) {
  char message[MESSAGE_BYTES];
  va_list ap;
  if (n->fd < 0)
    return;
  va_start(ap, fmt);
  int length = vsnprintf(message, sizeof message, fmt, ap);
  va_end(ap);
  if (length > 0 && length < MESSAGE_BYTES)
    (void)sendto(n->fd, message, (size_t)length, MSG_NOSIGNAL, (const struct sockaddr *)&n->address,
                 n->address_bytes);
}

void sd_notify_deinit(struct sd_notify *n) {
  if (n->fd >= 0)
    close(n->fd);
  n->fd = -1;
}
