/* sandbox_mounts.h - other names of folders: where the same folder is mounted a second time. */
#ifndef SEGUE_OS_SANDBOX_MOUNTS_H
#define SEGUE_OS_SANDBOX_MOUNTS_H

#include <stddef.h>

/* Landlock's rules are of folders, not of their names: a rule for a second name of a folder is one
 * for it. So those under which a hidden path, or a folder above one, can be reached again must be
 * hidden as well; what is not secret there is reached by its first name. Calls `each` with the
 * absolute path of every one. Of a mount below a hidden path itself nothing is known. */
void sandbox_other_names(const char *const *hides, void (*each)(void *ctx, const char *path),
                         void *ctx);

#endif
