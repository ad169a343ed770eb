/* confine.h - confines this process, and everything it will start, by Landlock rulesets that segue
 * made and by a small filter of system calls. Neither can be removed. */
#ifndef SEGUE_SHIM_CONFINE_H
#define SEGUE_SHIM_CONFINE_H

#include <stdbool.h>

/* `held` is a sum of enum shim_held. no_new_privs must be set before. On false errno says why; the
 * process may then be partly confined and must not continue. */
bool confine(unsigned held);

#endif
