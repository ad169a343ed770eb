/* submitting.h - submits to a shared store, where no daemon is needed: writes the first record, and
 * a worker with a free place takes the session. */
#ifndef SEGUE_CLI_SUBMITTING_H
#define SEGUE_CLI_SUBMITTING_H

#include "base/err.h"

#include <jansson.h>

/* Submits a session. body: as in POST /v1/sessions. Returns the session as far as it is known
 * ("id", "status", "log"), a new reference; NULL: err, or errors of the workflow. */
json_t *submitting_send(const char *store, const json_t *body, struct err *err,
                        struct err_list *errors);

#endif
