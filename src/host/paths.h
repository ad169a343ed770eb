/* paths.h - finds the user's things, by the XDG base directory specification.
 *
 * logs: --logs (or the address of a shared store, as it is), else $SEGUE_LOGS, else
 *   $XDG_STATE_HOME/segue/logs (~/.local/state/segue/logs).
 * config: $XDG_CONFIG_HOME/segue (~/.config/segue): config.yaml, facets/, prompts/. */
#ifndef SEGUE_HOST_PATHS_H
#define SEGUE_HOST_PATHS_H

#include "base/err.h"

enum { PATHS_BYTES = 1024, PATHS_USER_BYTES = 64 };

/* Gives the name of the system's user, or "uid N". */
void paths_user(char out[PATHS_USER_BYTES]);

/* Returns false if there is no home to derive it from. */
bool paths_logs(const char *option, char out[PATHS_BYTES], struct err *err) MUST_CHECK;
bool paths_config(char out[PATHS_BYTES], struct err *err) MUST_CHECK;
/* Finds PROJECT/.segue/facets of the nearest folder at or above dir that has .segue; "" if none
 * has. It looks at dir itself and, if the root of a repository (.git) or $HOME is above it, at the
 * folders up to that, on one file system. A .segue counts if this user owns it and not everybody
 * may write to it; the first one passed over goes to `foreign` ("": none). */
void paths_project_facets(const char *dir, char out[PATHS_BYTES], char foreign[PATHS_BYTES]);
/* Returns the file of a workflow: `word` itself if it is a path, which has a slash or a dot; for a
 * name NAME.yaml in .segue/workflows of the project around cwd, in workflows/ of the user's
 * configuration, or among those that come with segue, in this order. A name is never a file of the
 * current folder, which a repository could have. NULL: there is none of that name, as err says.
 * Otherwise err says which next file of that name is hidden; ERR_NONE: none is. */
const char *paths_workflow(const char *word, const char *cwd, char out[PATHS_BYTES],
                           struct err *err) MUST_CHECK;

/* Reports the name and folder of each such workflow, in that order. cwd NULL: the process's. */
typedef void paths_tell(void *ctx, const char *name, const char *folder);
void paths_workflows(const char *cwd, paths_tell *tell, void *ctx);

/* Gives a folder of this name in the user's state folder, made if missing. */
bool paths_state(const char *name, char out[PATHS_BYTES], struct err *err) MUST_CHECK;
/* Makes the folders above a file of the user's. Returns false if they cannot be there. */
bool paths_make_folders_of(char *path);
/* Gives the folders that are searched when one workflow calls another by name: the user's and
 * segue's own; "" for a missing one. The project's is not searched: a user's workflow must not run
 * programs of a project's choice. */
void paths_called(char user[PATHS_BYTES], char shipped[PATHS_BYTES]);

/* Gives the folders that hold, for each language, the facets of an installed takt (its builtins: of
 * the project's node_modules, else where its program is) and segue's own; "" for a missing one. */
void paths_facets_of_takt(const char *cwd, char out[PATHS_BYTES]);
void paths_shipped_facets(char out[PATHS_BYTES]);

/* Gives HOME/.segue/facets; "" without a home. */
void paths_home_facets(char out[PATHS_BYTES]);

/* Gives the project that a folder is in: the top of its git repository, also for a worktree, else
 * the folder itself; without links. Returns how many bytes of the folder's real path name the top
 * of its own working tree; 0: it is in none. */
size_t paths_project(const char *folder, char out[PATHS_BYTES]);

/* Notes the session that was started last, for `last` without --logs and $SEGUE_LOGS: of all, of
 * the project where it was started, and of that of `folder` (the session's; or NULL), in files of
 * the state folder, best effort, used for nothing else. */
void paths_note_last(const char *log_name, const char *folder);
/* project: from paths_project; NULL: of all. */
bool paths_read_last(const char *project, char out[PATHS_BYTES]);

#endif
