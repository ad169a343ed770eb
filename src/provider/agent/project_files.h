/* project_files.h - the files by which a project would steer an agent, looked for before each
 * call.
 *
 * Some clients obey files of the folder that they work in: they run hooks and servers, send the
 * user's key to other addresses, or do more than they were allowed. Only the user's own
 * configuration may say such things. A client that can be told to leave a project's settings
 * alone is told so by its profile's words; where one cannot, `project_files` of the profile names
 * the files, and a call is refused while one is there, with class auth: the project has not been
 * trusted. `trust_project` in the user's settings of the provider says otherwise: true, or a list
 * of folders, each with what is below it.
 *
 * Reads the file system, a few small files at most. Not found is what cannot be: the user's own
 * home folder is no project. */
#ifndef SEGUE_PROVIDER_AGENT_PROJECT_FILES_H
#define SEGUE_PROVIDER_AGENT_PROJECT_FILES_H

#include "provider/profile/profile.h"

/* False: err names the file, what it sets, and what to do. cwd: where the client would work; one
 * that is gone is true, starting it will say so. */
bool project_files_check(const struct profile *profile, enum transport transport,
                         const json_t *settings, const char *cwd, struct err *err) MUST_CHECK;

#endif
