/* sandbox_settings.h - decides what a call's program may touch: the words for it, and which of them
 * counts.
 *
 * A level says what is confined, not how: docs/sandbox.md has the table. The host finds out what
 * the machine can enforce and writes it, beside the user's words, into a session's configuration
 * (`sandbox`, see host/sandbox_config.h). That, the movement and the provider determine what
 * confines a call, and its call_start says so. A configuration without `sandbox` (in older logs)
 * confines nothing. Pure. */
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
  const char *limits_by; /* cgroup, rlimits or docker; NULL in an older configuration */
  bool asked;            /* somebody asked for it; otherwise it is the default */
};

/* Chooses for a call of this movement by this provider; `command`: a program of the workflow's own.
 * The movement's word overrides the provider's, which overrides the user's. False: such a call
 * starts no program, or the configuration does not mention sandboxes. */
bool sandbox_choose(const json_t *config, const struct movement *m, const struct capability *c,
                    bool command, struct sandbox_choice *out);

/* Returns what a call_start says of it: {"level", "mechanism"?, "image"?, "network"?, "limits"?:
 * {"memory"?, "cpus"?, "pids"?, "by"}}; NULL for a command that nothing confines, and where
 * sandbox_choose returns false. */
json_t *sandbox_of_call(const json_t *config, const struct movement *m, const struct capability *c,
                        bool command);

#endif
