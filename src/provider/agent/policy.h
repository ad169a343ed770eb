/* policy.h - the answer to an agent that asks whether it may do something.
 *
 * Pure: the answer follows from the step's permission and from what is asked. Whatever is not known
 * to be harmless is denied, and silence allows nothing.
 *
 *   readonly   reading within the working directory
 *   edit       that, and changing files within it, but not in a .git folder (hooks would be run),
 *              and running the programs that the movement names, each as a command of its own
 *   full       everything
 *
 * A tool that the step's list of tools names is allowed in any case. Paths are compared as texts,
 * with `..` and `.` resolved: links are left to the agent's sandbox. */
#ifndef SEGUE_PROVIDER_AGENT_POLICY_H
#define SEGUE_PROVIDER_AGENT_POLICY_H

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

struct policy_ask {
  enum ask_kind kind;
  struct str tool;     /* its name; may be empty */
  const json_t *paths; /* array of texts: the files that it is about, as far as they are known */
  struct str command;  /* of execute: the command line, where it is known */
};

struct policy { /* of a call; borrowed */
  enum permission permission;
  const char *cwd;
  const json_t *tools, *run; /* names of tools; programs, see core/run.h; or NULL */
};

/* *reason: why not, in a few words (static); NULL when it is allowed. */
bool policy_allows(const struct policy_ask *ask, const struct policy *policy, const char **reason);

/* Is `path` (absolute, or relative to it) `cwd` itself or below it? */
bool policy_inside(const char *cwd, struct str path);

/* Adds the texts under the usual names (path, file_path, ...) in a tool's input to `paths`. */
void policy_add_paths(json_t *paths, const json_t *input);

#endif
