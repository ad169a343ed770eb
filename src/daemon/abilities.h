/* abilities.h - the providers as the daemon knows them: what is installed, calls now, places,
 * cooldowns, circuits, errors of the last hour; and the daemon itself.
 *
 *   a = abilities_new(api)        from the loop: what only it may look at
 *   abilities_read(a)             in the pool: looks for programs and logins; a new reference
 *   abilities_free(a)             from the loop
 * Model APIs are not asked. Programs are asked for their version after the answer (versions.h), so
 * the next answer has it. */
#ifndef SEGUE_DAEMON_ABILITIES_H
#define SEGUE_DAEMON_ABILITIES_H

#include "daemon/control.h"

struct abilities;
struct abilities *abilities_new(struct control *api);
json_t *abilities_read(void *abilities);
void abilities_free(void *abilities);

void control_get_providers(void *api, struct server_request *r);
/* Returns what GET /v1/health answers: a new object. */
json_t *control_health(const struct control *api);

#endif
