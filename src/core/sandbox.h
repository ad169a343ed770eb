/* sandbox.h - the words that say what a program of a call may touch, and which of them counts.
 *
 * A level says what is held, not how: docs/sandbox.md has the table. The host finds out what the
 * machine can hold and writes it beside the user's words into the configuration of a session
 * (`sandbox`, see host/sandbox.h); from that, the movement and the provider follows what a call is
 * held by, and its call_start says it. A configuration without `sandbox` (an older log's) holds
 * nothing. Pure. */
#ifndef SEGUE_CORE_SANDBOX_H
#define SEGUE_CORE_SANDBOX_H

#include "core/capability.h"
#include "core/workflow.h"

#include <jansson.h>
#include <stdbool.h>

const char *sandbox_level_name(enum sandbox_level level); /* off, guard, strict, container */
bool sandbox_level_from_name(struct str name, enum sandbox_level *out);
const char *sandbox_network_name(enum sandbox_network network); /* open, api, none */
bool sandbox_network_from_name(struct str name, enum sandbox_network *out);

/* How one call's program is held. */
struct sandbox_choice {
  enum sandbox_level level;
  enum sandbox_network network;
  const char *mechanism; /* that holds this level here; NULL: none does. Borrowed from config */
  struct str image;      /* of container; empty: nobody named one */
  int64_t memory_bytes;  /* 0: no limit; nor are those below */
  int64_t pids;
  double cpus;
  const char *limits_by; /* cgroup, rlimits or docker; of an older configuration NULL */
  bool asked;            /* somebody wrote it; else it is the default */
};

/* Chooses for a call of this movement by this provider; `command`: a program of the workflow's own.
 * The movement's word counts before the provider's, that before the user's. False: such a call
 * starts no program, or the configuration says nothing of sandboxes. */
bool sandbox_choose(const json_t *config, const struct movement *m, const struct capability *c,
                    bool command, struct sandbox_choice *out);

/* As a call_start tells it: {"level", "mechanism"?, "image"?, "network"?, "limits"?: {"memory"?,
 * "cpus"?, "pids"?, "by"}}; NULL for a command that nothing holds, and where sandbox_choose says
 * false. */
json_t *sandbox_of_call(const json_t *config, const struct movement *m, const struct capability *c,
                        bool command);

#endif
