/* trust.h - what a workflow asks for that a sandbox does not give, and which of it is remembered.
 *
 *   trust_read(&t, &file)            what the file asks for
 *   trust_recall(&t, path, &err)     what it asked for when it last ran, in the user's state folder
 *   trust_keep(&t, &err)             remembers it
 *   trust_deinit(&t)
 *
 * A workflow asks for more by a command or an agent that nothing confines, by a lower level or a
 * wider network than is usual here, and by secrets. What is remembered counts for a main checkout
 * and all its worktrees. Who is asked, and when: cli/trust.h; what a daemon takes: launch.c. */
#ifndef SEGUE_HOST_TRUST_H
#define SEGUE_HOST_TRUST_H

#include "base/buf.h"
#include "base/sha256.h"
#include "core/workflow.h"
#include "host/paths.h"
#include "provider/registry.h"

struct trust_file {
  const char *path, *cwd;
  const json_t *config; /* as session_start records it */
  const struct provider_registry *registry;
  const json_t *inputs;  /* or NULL */
  const json_t *replace; /* keys that were given beside the file, see workflow/load.h; or NULL */
};

struct trust {
  const struct capability *providers;
  const struct workflow *workflow; /* only while it is looked at */
  struct buf text;                 /* the file's */
  json_t *config, *asks, *last;    /* last: the entry of the last run; or NULL */
  char sha256[SHA256_HEX];         /* of the resolved document without inputs, where it has one */
  char given[SHA256_HEX];          /* with them: of the session's first record */
  char entry[PATHS_BYTES + 8];     /* the file that remembers it */
  char project[PATHS_BYTES];       /* the main checkout, or "" */
  const char *file;                /* below it; or absolute */
};

/* Returns false if the file has errors, with inputs and without. */
bool trust_read(struct trust *t, const struct trust_file *f) MUST_CHECK;
/* path: absolute, without links; borrowed. */
bool trust_recall(struct trust *t, const char *path, struct err *err) MUST_CHECK;
/* Does nothing if a program of a session asks for it. */
bool trust_keep(const struct trust *t, struct err *err) MUST_CHECK;
void trust_deinit(struct trust *t);

/* Returns what it asks for now and did not when it last ran: a new array. */
json_t *trust_more(const struct trust *t);
/* Returns true for a file that ships, or is the user's own beside config.yaml. */
bool trust_has_place(const char *path);
/* Returns the same for what was loaded from the file, with its inputs; path NULL: from a text. */
json_t *trust_of_loaded(struct workflow *wf, const struct trust_file *f);

#endif
