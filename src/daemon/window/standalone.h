/* standalone.h - the window without a daemon: serves a folder of logs until SIGINT, SIGTERM or
 * SIGHUP (not under nohup), and changes nothing.
 *
 *   window_alone(where, address, read_only, show, day, ctx, &err)   returns when it was told to end
 * show(ctx, url, code, err) comes once the port is open; false ends it with err. day(ctx): as in
 * window.h. */
#ifndef SEGUE_DAEMON_WINDOW_STANDALONE_H
#define SEGUE_DAEMON_WINDOW_STANDALONE_H

#include "base/err.h"

#include <jansson.h>

typedef bool (*window_show)(void *ctx, const char *url, const char *code, struct err *err);

/* address: as in window.h, or NULL. */
bool window_alone(const char *where, const char *address, bool read_only, window_show show,
                  json_t *(*day)(void *ctx), void *ctx, struct err *err) MUST_CHECK;

#endif
