/* sandbox_bwrap.h - enforces the same plan with bubblewrap: its own namespaces for mounts,
 * processes and IPC. Hidden files do not exist there, and kept ones cannot be written although the
 * folder around them can.
 *
 *   why = sandbox_bwrap_why_not(path, sizeof path)     NULL: it is at `path`, and may be used
 *   s = sandbox_bwrap_new(path, &plan, cwd, &err)      sandbox.h: as of sandbox_new
 *
 * bwrap (Debian: bubblewrap) is looked for only in the system's own folders: Ubuntu's AppArmor lets
 * only /usr/bin/bwrap make user namespaces. */
#ifndef SEGUE_OS_SANDBOX_BWRAP_H
#define SEGUE_OS_SANDBOX_BWRAP_H

#include "os/sandbox.h"

#include <stddef.h>

/* Why it cannot hold anything here: a static text. Starts nothing. Each thread looks again after
 * LIMIT_LOOK_UP_MS: it is asked for each session. */
const char *sandbox_bwrap_why_not(char *path, size_t size);

/* True if AppArmor allows user namespaces only to programs that it knows (Ubuntu 24.04). */
bool sandbox_bwrap_alone(void);

struct sandbox *sandbox_bwrap_new(const char *bwrap, const struct sandbox_plan *plan,
                                  const char *cwd, struct err *err) MUST_CHECK;

#endif
