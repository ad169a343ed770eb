/* sandbox_settings.h - decides what a call's program may touch: the words for it, and which of them
 * counts.
 *
 * A level says what is confined, not how: docs/sandbox.md has the table. The host finds out what
 * the machine can enforce and writes it, beside the user's words, into a session's configuration
 * (`sandbox`, see host/sandbox_config.h). That, the movement and the provider determine what
 * confines a call, and its call_start says so. A configuration without `sandbox` (in older logs)
 * confines nothing. Pure.
 *
 * A command runs what agents may have written, so it inherits what confines them: sandbox_inherit
 * writes that into the configuration when a session is made, and sandbox_choose goes by it. Only
 * the user's `commands` lifts it: a level is taken as it is, and a map ({network, read, write,
 * limits}) widens it. A movement may narrow it. A configuration without `inherited` (an older log,
 * no agent that edits in a sandbox) gives a command only what its movement and `commands` say. */
#ifndef SEGUE_CORE_SANDBOX_SETTINGS_H
#define SEGUE_CORE_SANDBOX_SETTINGS_H

#include "core/capability.h"
#include "core/workflow.h"

#include <jansson.h>
#include <stdbool.h>

/* Says how one call's program is confined. */
struct sandbox_choice {
  enum sandbox_level level;
  enum sandbox_network network;
  const char *mechanism; /* enforces this level here; NULL: nothing does. Borrowed from config */
  struct str image;      /* for container; empty: nobody named one */
  int64_t memory_bytes;  /* 0: no limit; the same below */
  int64_t pids;
  double cpus;
  const char *home;      /* open or closed; NULL: as the user's settings say. Borrowed */
  const char *limits_by; /* cgroup, rlimits or docker; NULL in an older configuration */
  bool asked;            /* somebody asked for it; otherwise it is the default */
  struct str from;       /* the agent whose sandbox a command inherits; empty: none */
  bool widened;          /* its movement asked for less than it inherits, in vain */
};

/* Writes into `sandbox` of a new session's configuration what its commands inherit, of the
 * narrowest agents that may edit: {"from", "level", "network"?, "image"?, "home"?, "limits"?};
 * nothing if there are none. */
void sandbox_inherit(json_t *config, const struct workflow *wf, const struct capability *providers);

/* Chooses for a call of this movement by this provider; `command`: a program of the workflow's own.
 * The movement's word overrides the provider's, which overrides the user's; a command keeps to what
 * it inherits. m: NULL for setup and for checks of merges. False: such a call starts no program, or
 * the configuration does not mention sandboxes. */
bool sandbox_choose(const json_t *config, const struct movement *m, const struct capability *c,
                    bool command, struct sandbox_choice *out);

/* Returns what a call_start says of it: {"level", "mechanism"?, "image"?, "network"?, "home"?,
 * "from"?, "limits"?: {"memory"?, "cpus"?, "pids"?, "by"}}; NULL for a command that nothing
 * confines, and where sandbox_choose returns false. */
json_t *sandbox_of_call(const json_t *config, const struct movement *m, const struct capability *c,
                        bool command);

#endif
