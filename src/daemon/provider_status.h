/* provider_status.h - the providers as the daemon knows them: what is installed, calls now, places,
 * cooldowns, circuits, errors of the last hour; and the daemon itself.
 *
 *   a = provider_status_new(api)        from the loop: what only it may look at
 *   provider_status_read(a)             in the pool: looks for programs and logins; a new reference
 *   provider_status_free(a)             from the loop
 * Model APIs are not asked. Programs are asked for their version after the answer (versions_want),
 * so the next answer has it. */
#ifndef SEGUE_DAEMON_PROVIDER_STATUS_H
#define SEGUE_DAEMON_PROVIDER_STATUS_H

#include "base/list.h"
#include "daemon/server.h"
#include "os/process.h"
#include "provider/provider.h"

#include <jansson.h>

struct client_versions {
  struct process_table *processes; /* its owner sets the first three */
  void (*told)(void *ctx);
  void *ctx;
  struct list items;
  size_t busy; /* so many have not answered */
  bool closing;
};

void versions_close(struct client_versions *vs);
void versions_deinit(struct client_versions *vs);

struct control;
/* Returns what GET /v1/health answers: a new object. */
json_t *provider_status_daemon(const struct control *api);
void *provider_status_new(void *api); /* a struct control */
json_t *provider_status_read(void *abilities);
void provider_status_free(void *abilities);

void control_get_providers(void *api, struct server_request *r);

#endif
