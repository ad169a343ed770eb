/* denied.h - which paths a program was denied, by its own words.
 *
 * Neither Landlock nor seccomp tells anybody of a refusal but the program, which mostly says so:
 * "cat: /home/x/.ssh/id: Permission denied", "EACCES: permission denied, open '/x'". A system's own
 * permissions read the same, so this is a hint, never a proof. Pure. */
#ifndef SEGUE_AUDIT_DENIED_H
#define SEGUE_AUDIT_DENIED_H

#include "base/str.h"

#include <stdbool.h>

enum denied_kind {
  DENIED_ACCESS, /* read or written: the words do not say */
  DENIED_WRITE,
  DENIED_NETWORK, /* a socket, or what it was to reach; has no path */
  DENIED_HIDDEN,  /* not there, and of a home folder: some sandboxes hide that */
};

/* Looks for the next refusal in `rest` and takes what it looked at off. False: there is none.
 * `path` is borrowed: as it was written, absolute, or with ~/ or ../ before it; may be empty. */
bool denied_next(struct str *rest, struct str *path, enum denied_kind *kind);

#endif
