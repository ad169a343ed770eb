/* lookup.h - one session as a program wants it: GET .../view, .../turns/N, .../integrity.
 *
 * The answers are those of `segue show ID --as view`, `segue show ID MOVEMENT#N --as view` and
 * `segue verify --json`, read in the pool. */
#ifndef SEGUE_DAEMON_LOOKUP_H
#define SEGUE_DAEMON_LOOKUP_H

#include "daemon/reading.h"
#include "store/store.h"

enum lookup { LOOKUP_VIEW, LOOKUP_TURN, LOOKUP_INTEGRITY };

/* turn: as it was given; "" but for LOOKUP_TURN. */
void lookup_take(struct readings *rs, struct server_request *r, const struct store_ref *ref,
                 enum lookup what, const char *turn);

#endif
