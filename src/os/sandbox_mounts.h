/* sandbox_mounts.h - finds other names of folders: places where the same folder is mounted a second
 * time. */
#ifndef SEGUE_OS_SANDBOX_MOUNTS_H
#define SEGUE_OS_SANDBOX_MOUNTS_H

#include <stddef.h>

/* Landlock's rules apply to folders, not to their names: a rule for a second name is a rule for the
 * folder. So every other name under which a hidden path, a folder above one or a part of one can be
 * reached must be hidden too; what is not secret there is reached by its first name. Calls `each`
 * once with the absolute path of every such name. */
void sandbox_other_names(const char *const *hides, void (*each)(void *ctx, const char *path),
                         void *ctx);

#endif
