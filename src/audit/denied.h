/* denied.h - finds in a program's own output which paths it was denied.
 *
 * Landlock and seccomp report a refusal only to the program itself, which usually prints it: "cat:
 * /home/x/.ssh/id: Permission denied", "EACCES: permission denied, open '/x'". Ordinary file
 * permissions read the same, so this is a hint, never proof. Pure. */
#ifndef SEGUE_AUDIT_DENIED_H
#define SEGUE_AUDIT_DENIED_H

#include "base/str.h"

#include <stdbool.h>

enum denied_kind {
  DENIED_ACCESS, /* read or write: the message does not say which */
  DENIED_WRITE,
  DENIED_NETWORK, /* a socket or an address; has no path */
  DENIED_HIDDEN,  /* not found, in a home folder: some sandboxes hide those */
};

/* Finds the next refusal in `rest` and moves `rest` past it. False: there is none. `path` is
 * borrowed: as it was written, absolute, or with ~/ or ../ before it; may be empty. */
bool denied_next(struct str *rest, struct str *path, enum denied_kind *kind);

#endif
