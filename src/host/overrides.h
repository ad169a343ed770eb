/* overrides.h - the user's prompt templates as files: which of them replace nothing.
 *
 * A file prompts/<language>/<name>.md beside config.yaml stands in for the built-in template of
 * that name (config.h reads them). A file with any other name would never be read, so it is told.
 * Hidden files, copies of editors (*~) and README files are let be. */
#ifndef SEGUE_HOST_OVERRIDES_H
#define SEGUE_HOST_OVERRIDES_H

#include "base/err.h"

/* Adds one warning a file, by name, with the name that was probably meant. */
void overrides_check(struct err_list *warnings);
/* The same, as warnings of the program. */
void overrides_warn(void);

#endif
