/* permission_policy.h - answers an agent that asks whether it may do something.
 *
 * Pure: the answer follows from the movement's permission and from the question. Whatever is not
 * known to be harmless is denied, and silence allows nothing.
 *
 *   readonly   reading within the working directory
 *   edit       that, and changing files within it, but not in a .git folder (hooks would be run),
 *              and running the programs that the movement names, each as a command of its own
 *   full       everything
 *
 * A tool in the movement's list of tools is always allowed. Paths are compared as texts, with `..`
 * and `.` resolved: links are left to the agent's sandbox. */
#ifndef SEGUE_PROVIDER_AGENT_PERMISSION_POLICY_H
#define SEGUE_PROVIDER_AGENT_PERMISSION_POLICY_H

#include "base/str.h"
#include "core/call.h"

#include <jansson.h>

enum ask_kind {
  ASK_READ, /* look at files, search, think, plan */
  ASK_EDIT, /* create, change, move, delete files */
  ASK_EXECUTE,
  ASK_FETCH, /* over the network */
  ASK_OTHER,
};

/* Tools or kinds as one agent names them, a space apart; a table of them ends with NULL. */
struct ask_words {
  const char *words;
  enum ask_kind kind;
};
enum ask_kind ask_kind_of(const struct ask_words *table, struct str word);

struct permission_policy_ask {
  enum ask_kind kind;
  struct str tool;     /* its name; may be empty */
  const json_t *paths; /* array of texts: the files concerned, as far as known */
  struct str command;  /* the command line to execute, if known */
};

struct permission_policy { /* limits of one call; borrowed */
  enum permission permission;
  const char *cwd;
  const json_t *tools, *run; /* names of tools; programs, see core/run.h; or NULL */
};

/* Returns whether the tool may be used. *reason: why not, in a few words (static); NULL if allowed.
 */
bool permission_policy_allows(const struct permission_policy_ask *ask,
                              const struct permission_policy *policy, const char **reason);

/* Returns whether `path` (absolute, or relative to `cwd`) is `cwd` itself or below it. */
bool permission_policy_inside(const char *cwd, struct str path);

/* Adds the texts under the usual names (path, file_path, ...) in a tool's input to `paths`. */
void permission_policy_add_paths(json_t *paths, const json_t *input);

#endif
