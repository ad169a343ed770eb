/* confine.h - holds this process, and all that it will start, to what it may touch: by Landlock's
 * rulesets, which segue made, and by a small filter of system calls. Neither can be taken off. */
#ifndef SEGUE_SHIM_CONFINE_H
#define SEGUE_SHIM_CONFINE_H

#include <stdbool.h>

/* `held`: a sum of enum shim_held. Needs no_new_privs. False: errno says why; it may be held in
 * part then, and must not go on. */
bool confine(unsigned held);

#endif
