/* sandbox.h - what a program and all that it starts may touch, held by the kernel: Landlock for
 * files, TCP, signals and abstract sockets, and the shim's filter of system calls.
 *
 *   s = sandbox_again(kept, key, own, session)   NULL: nothing that was kept of `key` holds
 *   s = sandbox_new(kept, key, &plan, &err)   NULL: the kernel cannot hold what it asks for
 *   process_start with spec.sandbox = s; sandbox_free(s) when it has returned
 *
 * Landlock can only allow, and what it allows for a folder it allows for everything below. So a
 * folder with a part that must not be read is opened up: its present children are listed, and each
 * that is not hidden is allowed (what is made in that folder later is not readable, except what the
 * plan names). Reading and writing have a ruleset each, and both must agree.
 *
 * Blocks while a few folders are listed (some ms for a home folder of 1,000 entries), unless the
 * rules of an earlier call can be used again (sandbox.c). `key` names everything that a plan
 * was made from except `own`; kept is the cache, or NULL. If `own` is empty, a shim that stands by
 * for the session (process_internal.h) may put another folder in its place. */
#ifndef SEGUE_OS_SANDBOX_H
#define SEGUE_OS_SANDBOX_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct sandbox_plan {
  const char *const *reads;  /* folders and files, absolute; NULL-ended; a missing one is ignored */
  const char *const *hides;  /* not read although below one of `reads`; a path of `reads` that is
                                itself below one is allowed all the same */
  const char *const *wholes; /* read, hides or not: the workspace, the call's own folder */
  const char *const *writes; /* read and written, hides or not */
  const char *const *caches; /* written; read but for the hides that are there */
  const char *const *kept;   /* below `writes`; read-only with bwrap */
  const char *own;           /* the call's own folder: read and written; or NULL */
  const char *home;          /* hidden, and with bwrap read-only but for what is named; or NULL */
  bool lists;                /* names in any folder may be listed, hidden ones' too */
  bool no_internet;          /* no socket that leads out of the machine, or to its ports */
  bool no_sockets;           /* none to a named socket within the machine either */
  const char *way_out; /* bwrap, with no_internet: a Unix socket, a proxy that is the one way to
                          the network (shim/port_forward.h); NULL: there is none */
  const char *bypass;  /* with it: NO_PROXY */
  bool namespaces;     /* the program may make namespaces, for a sandbox of its own */
};

#define SANDBOX_LANDLOCK "landlock" /* the mechanisms' names in configurations and logs */
#define SANDBOX_BWRAP    "bwrap"    /* sandbox_bwrap.h */

/* True when the shim has a filter for this kind of machine and the kernel takes filters. */
bool sandbox_filters(void);

/* The folders that a program reads of a machine, and the devices that any may use. */
extern const char *const sandbox_folders[], *const sandbox_devices[];

struct sandbox;
struct ruleset_cache;
struct sandbox *sandbox_new(struct ruleset_cache *kept, struct str key,
                            const struct sandbox_plan *plan, struct err *err) MUST_CHECK;
struct sandbox *sandbox_again(struct ruleset_cache *kept, struct str key, const char *own,
                              const char *session) MUST_CHECK;
void sandbox_free(struct sandbox *s); /* NULL is fine */

/* Keeps rulesets of what may be read, for later calls that ask for the same. Its owner frees it
 * before the process table; its memory goes with the next turn of the loop. forget: a session needs
 * nothing to stand by any more. */
struct process_table;
struct ruleset_cache *ruleset_cache_new(struct process_table *table);
void ruleset_cache_free(struct ruleset_cache *k); /* NULL is fine */
void ruleset_cache_forget(struct ruleset_cache *k, const char *session);

#endif
