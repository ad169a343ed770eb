/* recent_failures.h - calls that failed during the last hour, by provider, which is what a person
 * looks at first.
 *
 *   recent_failures_add(&ts, provider, class, message, now_ms)     real time
 *   recent_failures_tell(&ts, provider, now_ms, object)  puts "errors" and "last_error" into it
 *   recent_failures_deinit(&ts)
 * Keeps the last LIMIT_TROUBLE_COUNT; allocates nothing before the first. */
#ifndef SEGUE_DAEMON_RECENT_FAILURES_H
#define SEGUE_DAEMON_RECENT_FAILURES_H

#include "base/str.h"

#include <jansson.h>
#include <stdint.h>

struct failed_call;
struct recent_failures {
  struct failed_call *ring;
  size_t count; /* ever */
};

void recent_failures_add(struct recent_failures *ts, struct str provider, struct str class,
                         struct str message, int64_t now_ms);
void recent_failures_tell(const struct recent_failures *ts, struct str provider, int64_t now_ms,
                          json_t *object);
void recent_failures_deinit(struct recent_failures *ts);

#endif
