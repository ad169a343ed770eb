/* paths.h - where the user's things are, by the XDG base directory specification.
 *
 * logs: --logs (or the address of a shared store, as it is), else $SEGUE_LOGS, else
 *   $XDG_STATE_HOME/segue/logs (~/.local/state/segue/logs).
 * config: $XDG_CONFIG_HOME/segue (~/.config/segue): config.yaml, facets/, prompts/. */
#ifndef SEGUE_HOST_PATHS_H
#define SEGUE_HOST_PATHS_H

#include "base/err.h"

enum { PATHS_BYTES = 1024 };

/* False if there is no home to derive it from. */
bool paths_logs(const char *option, char out[PATHS_BYTES], struct err *err) MUST_CHECK;
bool paths_config(char out[PATHS_BYTES], struct err *err) MUST_CHECK;
/* PROJECT/.segue/facets of the nearest folder at or above dir that has .segue; "" when none has. It
 * looks at dir itself and, if the root of a repository (.git) or $HOME is above it, at the folders
 * up to that, on one file system. A .segue counts if this user owns it and not everybody may write
 * to it; the first one passed over goes to `foreign` ("": none). */
void paths_project_facets(const char *dir, char out[PATHS_BYTES], char foreign[PATHS_BYTES]);
/* Finds the file of a workflow that is given by name only: NAME.yaml in .segue/workflows of the
 * project around cwd, in workflows/ of the user's configuration, or among those that come with
 * segue, in this order. False: it is a path, or there is none. */
bool paths_workflow(const char *word, const char *cwd, char out[PATHS_BYTES]);

/* Tells the name and the folder of each workflow there, in that order. cwd NULL: the process's. */
typedef void paths_tell(void *ctx, const char *name, const char *folder);
void paths_workflows(const char *cwd, paths_tell *tell, void *ctx);

/* A folder of this name in the user's state folder, made if it is missing. */
bool paths_state(const char *name, char out[PATHS_BYTES], struct err *err) MUST_CHECK;
/* Returns the folders in which a workflow called by name from another one is looked for: the user's
 * and segue's own; "" for a missing one. The project's is not among them: a user's workflow must
 * not run programs of a project's choice. */
void paths_called(char user[PATHS_BYTES], char shipped[PATHS_BYTES]);

/* HOME/.segue/facets; "" without a home. */
void paths_home_facets(char out[PATHS_BYTES]);

/* Notes the session that was started last, in any folder, for `last` without --logs and
 * $SEGUE_LOGS: in a file of the state folder, best effort, used for nothing else. */
void paths_note_last(const char *log_name);
bool paths_read_last(char out[PATHS_BYTES]);

#endif
