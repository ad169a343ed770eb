/* provider_status.h - the providers as the daemon knows them: what is installed, calls now, places,
 * cooldowns, circuits, errors of the last hour; and the daemon itself.
 *
 *   a = provider_status_new(api)        from the loop: what only it may look at
 *   provider_status_read(a)             in the pool: looks for programs and logins; a new reference
 *   provider_status_free(a)             from the loop
 * Model APIs are not asked. Programs are asked for their version after the answer (versions.h), so
 * the next answer has it. */
#ifndef SEGUE_DAEMON_PROVIDER_STATUS_H
#define SEGUE_DAEMON_PROVIDER_STATUS_H

#include "daemon/control.h"

struct provider_status;
struct provider_status *provider_status_new(struct control *api);
json_t *provider_status_read(void *abilities);
void provider_status_free(void *abilities);

void control_get_providers(void *api, struct server_request *r);

#endif
