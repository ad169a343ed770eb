/* program_version.h - asks a program for its version, and reads the answer.
 *
 *   words = version_words(profile, program, settings, &arena)     what to run
 *   version_read(&result, version, size)                          what it said
 *   version_older(version, minimum) */
#ifndef SEGUE_PROVIDER_AGENT_PROGRAM_VERSION_H
#define SEGUE_PROVIDER_AGENT_PROGRAM_VERSION_H

#include "os/process.h"
#include "provider/profile/profile.h"

/* Returns the words to run, NULL-ended: the program, what the user's settings add, and the
 * profile's own (default --version). */
const char *const *version_words(const struct profile *profile, const char *program,
                                 const json_t *settings, struct arena *a);
/* Reads "codex-cli 0.169.0" as 0.169.0. False, and out is "": it failed, or named no version. */
bool version_read(const struct process_result *result, char *out, size_t size);
/* Returns whether `version` ("2.1.329 (Claude Code)") is older than `minimum`. Numbers between dots
 * count. */
bool version_older(const char *version, const char *minimum);
/* Returns the oldest version that the profile fits, or NULL. */
const char *version_minimum(const struct profile *profile);

#endif
