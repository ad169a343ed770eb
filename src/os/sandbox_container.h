/* sandbox_container.h - enforces the same plan with a podman or docker container: the system is an
 * image, and of this machine it has only what the plan lets it read or write.
 *
 *   ok = sandbox_find_engine("podman", path, sizeof path)
 *   s = sandbox_container_new(&spec, &err)         sandbox.h: as of sandbox_new
 *   process_start as with others; its variables are the program's with the engine's own
 *
 * podman's processes are children of the call's shim, in its control group, so they end with it.
 * docker's belong to its daemon; the shim has the container removed when it ends the call. The
 * image must exist: nothing is downloaded. Programs in the plan's `reads`, and what it hides, do
 * not matter: nothing of the machine's system is there. */
#ifndef SEGUE_OS_SANDBOX_CONTAINER_H
#define SEGUE_OS_SANDBOX_CONTAINER_H

#include "os/process.h"
#include "os/sandbox.h"

#define SANDBOX_PODMAN "podman" /* the mechanisms' names */
#define SANDBOX_DOCKER "docker"
extern const char *const sandbox_engines[]; /* in the order in which they are looked for; NULL */

/* In the system's own folders. Starts nothing. */
bool sandbox_find_engine(const char *name, char *path, size_t size);
/* The last line of what an engine wrote to stderr, which says why it failed; at most 300 bytes. */
struct str sandbox_engine_words(struct str errors);

struct sandbox_container {
  const struct sandbox_plan *plan;
  const char *engine, *image; /* a name of sandbox_engines */
  const char *cwd;
  const char *const *envp;      /* of the program: all but PATH, SHELL and the like go in */
  struct process_limits limits; /* of docker: what it is to hold */
};

struct sandbox *sandbox_container_new(const struct sandbox_container *spec,
                                      struct err *err) MUST_CHECK;

#endif
