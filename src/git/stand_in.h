/* stand_in.h - what git sees in place of a repository's own settings.
 *
 *   s = stand_in_take(folder, changes, &err)   for the repository around `folder`
 *   git, with s->env in its environment
 *   stand_in_unmask(s, &text)                  whatever git says names the repository itself
 *   stand_in_give(s)
 *   stand_in_drop()                            before the program ends: removes those that are kept
 *
 * It is a private folder that git takes for the repository's common one (GIT_COMMON_DIR). There
 * git looks for settings, hooks, remotes and attributes, and finds a `config` that segue wrote, and
 * nothing that runs a program or leads elsewhere. HEAD, the index, branches and their logs are the
 * repository's own, with git's own locks; GIT_DIR and GIT_WORK_TREE are given, so that no setting
 * chooses them. The user's own configuration counts as always.
 *
 * Of the repository's `config` (and `config.worktree`) the keys of a list are copied, which say how
 * files are written, who commits, and the addresses of remotes and submodules: data, not deeds.
 * info/exclude and info/attributes count: an attribute can name a filter, but only the user's own
 * configuration can say what it runs.
 *
 * git would write through links that somebody put into the repository's folder (its logs are
 * appended to), so a repository with such a link is refused, and so is a working tree whose `.git`
 * leads to a repository that does not know it.
 *
 * The folder is kept for the next run of git in the same working tree, as long as the repository's
 * configuration is the same and nothing in the stand-in has changed. What a killed program left is
 * removed by the next one. Blocking; for the loop's thread alone. */
#ifndef SEGUE_GIT_STAND_IN_H
#define SEGUE_GIT_STAND_IN_H

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"

#include <sys/stat.h>

struct stand_in {
  struct list_node in_kept;
  char *folder;       /* NULL: there is no repository, and git finds none */
  struct buf real;    /* the name of what stands behind it */
  struct buf names;   /* of `env` */
  const char *env[4]; /* NULL-terminated */
  struct buf files[3];
  struct stat seen[3]; /* of its own config and the two that it was made from */
  unsigned users;
};

/* folder: absolute. changes: git will write more than the index. NULL: git must not run there. */
struct stand_in *stand_in_take(const char *folder, bool changes, struct err *err) MUST_CHECK;
void stand_in_unmask(const struct stand_in *s, struct buf *text);
void stand_in_give(struct stand_in *s);
void stand_in_drop(void);

#endif
