/* sandbox_rules.h - fills the two rulesets of a sandbox from a plan, and notes what they depend on,
 * so that the ruleset of what may be read can be used by later calls (sandbox.c).
 *
 * --- mounts ---
 *
 * Finds other names of folders: places where the same folder is mounted a second
 * time. */
#ifndef SEGUE_OS_SANDBOX_RULES_H
#define SEGUE_OS_SANDBOX_RULES_H

#include "os/sandbox.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A folder that was listed, or a path that was allowed by its name: as it was then. */
struct sandbox_stamp {
  char *path;
  bool listed; /* its times count, too: a child came or went */
  bool missing;
  dev_t device;
  ino_t inode;
  struct timespec modified, changed;
};

struct sandbox_stamps {
  struct sandbox_stamp *items;
  size_t n, room;
  bool unsure; /* a folder was changed so lately that its times cannot tell what came after */
};

/* The version of what Landlock holds here; 0: nothing. */
int sandbox_version(void);

/* New rulesets, close-on-exec, with numbers above the shim's; -1: errno. `stamps`: NULL, or what
 * is filled. */
int sandbox_rules_reads(const struct sandbox_plan *plan, struct sandbox_stamps *stamps);
int sandbox_rules_writes(const struct sandbox_plan *plan);
/* The ruleset of writes in two steps. spare: all but the call's own folder; -1 also if a path is
 * not what its stamp says. complete: adds that folder, and closes the ruleset where it fails. */
int sandbox_rules_spare(const struct sandbox_plan *plan, struct sandbox_stamps *stamps);
int sandbox_rules_complete(int owned_spare, const char *own);

/* Takes out what follows from others: a path that was missing in a folder that was listed cannot
 * come without a change of that folder's times. */
void sandbox_stamps_settle(struct sandbox_stamps *stamps);
bool sandbox_stamps_missed(const struct sandbox_stamps *stamps, const char *path);
bool sandbox_stamps_hold(const struct sandbox_stamps *stamps); /* all is as it was */
void sandbox_stamps_deinit(struct sandbox_stamps *stamps);

/* --- mounts --- */

/* Landlock's rules apply to folders, not to their names: a rule for a second name is a rule for the
 * folder. So every other name under which a hidden path, a folder above one or a part of one can be
 * reached must be hidden too; what is not secret there is reached by its first name. Calls `each`
 * once with the absolute path of every such name. */
void sandbox_other_names(const char *const *hides, void (*each)(void *ctx, const char *path),
                         void *ctx);

#endif
