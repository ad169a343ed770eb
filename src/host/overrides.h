/* overrides.h - finds the user's prompt templates that replace nothing.
 *
 * A file prompts/<language>/<name>.md beside config.yaml stands in for the built-in template of
 * that name (config.h reads them). Files with other names would never be read, so they are
 * reported. Hidden files, editors' copies (*~) and README files are ignored. */
#ifndef SEGUE_HOST_OVERRIDES_H
#define SEGUE_HOST_OVERRIDES_H

#include "base/err.h"

/* Adds a warning for each file, with the name that was probably meant. */
void overrides_check(struct err_list *warnings);
/* Prints the same as warnings of the program. */
void overrides_warn(void);

#endif
