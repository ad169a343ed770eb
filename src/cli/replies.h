/* replies.h - finds the scenario of a session that is resumed or forked.
 *
 *   replies_take(&r, path, changed, &err)     from --scenario, in place of its own; or
 *   replies_find(&r, config, &err)            its own, as its config says, unless one was taken
 *   replies_deinit(&r)                        accepts a zeroed one */
#ifndef SEGUE_CLI_REPLIES_H
#define SEGUE_CLI_REPLIES_H

#include "provider/scenario.h"

#include <jansson.h>

struct replies {
  struct scenario scenario;
  bool has;
};

/* Takes a scenario; `changed` gets the member `scenario`. */
bool replies_take(struct replies *r, const char *path, json_t *changed, struct err *err) MUST_CHECK;
/* Returns false if the scenario is gone or has changed. */
bool replies_find(struct replies *r, const json_t *config, struct err *err) MUST_CHECK;
const struct scenario *replies_scenario(const struct replies *r); /* NULL: there is none */
void replies_deinit(struct replies *r);

#endif
