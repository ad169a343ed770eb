/* replay_recording.h - reads a recorded run again through a profile's driver: the same news and the
 * same result as live, without starting anything. */
#ifndef SEGUE_PROVIDER_AGENT_REPLAY_RECORDING_H
#define SEGUE_PROVIDER_AGENT_REPLAY_RECORDING_H

#include "provider/agent/driver.h"
#include "provider/agent/transcript.h"

/* Replays a recording. False: the profile has no such transport, or the recording is of another
 * kind. The result is the caller's: call_result_deinit. */
bool replay(const struct transcript *t, const struct profile *profile, enum transport transport,
            void (*news)(void *ctx, const struct provider_news *news), void *ctx,
            struct call_result *result, struct err *err) MUST_CHECK;

/* Returns one line of `segue providers test`: a new object. */
json_t *replay_news_json(const struct provider_news *news);
json_t *replay_end_json(const struct call_result *result);

#endif
