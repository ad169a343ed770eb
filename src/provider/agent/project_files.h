/* project_files.h - finds, before each call, files by which a project would steer an agent.
 *
 * Some clients obey files of the folder that they work in: they run hooks and servers, send the
 * user's key to other addresses, or do more than they were allowed. Only the user's own
 * configuration may say such things. If a client can be told to ignore a project's settings, its
 * profile does so. For the others, `project_files` of the profile names the files, and while one
 * exists a call is refused with class auth, unless the user trusts the project: `trust_project` in
 * the provider's settings is true, or a list of folders, each with everything below.
 *
 * Reads the file system, at most a few small files. The user's own home folder does not count as a
 * project. */
#ifndef SEGUE_PROVIDER_AGENT_PROJECT_FILES_H
#define SEGUE_PROVIDER_AGENT_PROJECT_FILES_H

#include "provider/profile/profile.h"

/* Returns false if a file would steer the agent; err names the file, what it sets, and what to do.
 * cwd: where the client would work; if it is gone, returns true, since starting the client will say
 * so. */
bool project_files_check(const struct profile *profile, enum transport transport,
                         const json_t *settings, const char *cwd, struct err *err) MUST_CHECK;

#endif
