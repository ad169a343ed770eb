/* troubles.h - calls that failed during the last hour, by provider, which is what a person looks at
 * first.
 *
 *   troubles_add(&ts, provider, class, message, now_ms)     real time
 *   troubles_tell(&ts, provider, now_ms, object)            puts "errors" and "last_error" into it
 *   troubles_deinit(&ts)
 * Keeps the last LIMIT_TROUBLE_COUNT; allocates nothing before the first. */
#ifndef SEGUE_DAEMON_TROUBLES_H
#define SEGUE_DAEMON_TROUBLES_H

#include "base/str.h"

#include <jansson.h>
#include <stdint.h>

struct failed_call;
struct troubles {
  struct failed_call *ring;
  size_t count; /* ever */
};

void troubles_add(struct troubles *ts, struct str provider, struct str class, struct str message,
                  int64_t now_ms);
void troubles_tell(const struct troubles *ts, struct str provider, int64_t now_ms, json_t *object);
void troubles_deinit(struct troubles *ts);

#endif
