/* submitting.h - submits to a shared store, where no daemon is needed: the first record is
 * written from here, and a worker that has a place takes the session. */
#ifndef SEGUE_CLI_SUBMITTING_H
#define SEGUE_CLI_SUBMITTING_H

#include "base/err.h"

#include <jansson.h>

/* on: "LABEL,LABEL" of the workers that may take it; NULL: those with the label that the user's
 * shared_paths has for its folder, or this machine's. body: as in POST /v1/sessions. Returns the
 * session as far as it is known ("id", "status", "log"), a new reference; NULL: see err, or the
 * errors of the workflow. */
json_t *submitting_send(const char *store, const char *on, const json_t *body, struct err *err,
                        struct err_list *errors);

#endif
