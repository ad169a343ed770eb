/* signed.h - checks a signature over a file with ssh-keygen: no key is handled here. */
#ifndef SEGUE_CLI_SIGNED_H
#define SEGUE_CLI_SIGNED_H

#include "base/err.h"

/* Checks that PATH.sig is a signature over the file by one of the signers (a file as ssh-keygen
 * takes it, see ALLOWED SIGNERS in its manual), made for the namespace segue-heads. */
bool signed_check(const char *path, const char *signers, struct err *err) MUST_CHECK;

#endif
