/* versions.h - finds out the versions of agents' programs by running them, and keeps the answers.
 *
 *   versions_init(&vs, processes, told, ctx)
 *   versions_known(&vs)              {program: version} of those that answered: a new object
 *   versions_want(&vs, provider, program)    asked, unless that was done lately or is being done;
 *                                    told(ctx) once something new is known
 *   versions_busy(&vs)               so many have not answered
 *   versions_close(&vs)              none is asked any more; those that are asked are ended
 *   versions_deinit(&vs)             none is busy
 *
 * Each is a bounded run as `segue providers` makes it: LIMIT_VERSION_ASK_COUNT at a time, for
 * LIMIT_PROBE_WALL_MS at most, and not again for LIMIT_VERSION_FRESH_MS. From the loop only. */
#ifndef SEGUE_DAEMON_VERSIONS_H
#define SEGUE_DAEMON_VERSIONS_H

#include "base/list.h"
#include "os/process.h"
#include "provider/provider.h"

#include <jansson.h>

struct client_versions {
  struct process_table *processes;
  void (*told)(void *ctx);
  void *ctx;
  struct list items;
  size_t busy;
  bool closing;
};

void versions_init(struct client_versions *vs, struct process_table *processes,
                   void (*told)(void *ctx), void *ctx);
json_t *versions_known(const struct client_versions *vs);
void versions_want(struct client_versions *vs, const struct provider *provider,
                   const char *program);
size_t versions_busy(const struct client_versions *vs);
void versions_close(struct client_versions *vs);
void versions_deinit(struct client_versions *vs);

#endif
