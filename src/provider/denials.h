/* denials.h - finds in a program's own output which paths it was denied.
 *
 * Landlock and seccomp report a refusal only to the program itself, which usually prints it: "cat:
 * /home/x/.ssh/id: Permission denied", "EACCES: permission denied, open '/x'". Ordinary file
 * permissions read the same, so this is a hint, never proof. Pure. */
#ifndef SEGUE_PROVIDER_DENIALS_H
#define SEGUE_PROVIDER_DENIALS_H

#include "base/str.h"

#include <stdbool.h>

enum denial_kind {
  DENIAL_ACCESS, /* read or write: the message does not say which */
  DENIAL_WRITE,
  DENIAL_NETWORK, /* a socket or an address; has no path */
  DENIAL_HIDDEN,  /* not found, in a home folder: some sandboxes hide those */
};

/* Finds the next refusal in `rest` and moves `rest` past it. False: there is none. `path` is
 * borrowed: as it was written, absolute, or with ~/ or ../ before it; may be empty. */
bool denial_next(struct str *rest, struct str *path, enum denial_kind *kind);

#endif
