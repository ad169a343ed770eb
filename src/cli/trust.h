/* trust.h - which workflows may have more than a sandbox gives: by a person's word.
 *
 * A workflow asks for more by a command or an agent that nothing confines, by a lower level or a
 * wider network than is usual for it here, and by secrets. The state folder has a file for each
 * workflow that was run: its resolved document as the file alone says it, and what it asked for.
 * It counts for a main checkout and all its worktrees.
 *
 * A path on the command line is consent the first time. A project's name, and whatever asks for
 * more than when it last ran, are asked for. What is shipped, what is beside config.yaml and what
 * segue init wrote are trusted. A program that a session runs can trust nothing. */
#ifndef SEGUE_CLI_TRUST_H
#define SEGUE_CLI_TRUST_H

#include "cli/setup.h"

/* Returns whether a session of the workflow that was loaded, the first of the words, may begin, and
 * remembers it. What a person's word was needed for is noted as `trust` in the configuration. */
bool trust_asked(struct setup *setup, const struct cli_args *args, struct err *err) MUST_CHECK;
/* Does the same for a session that is submitted, and notes it in the request's body. Errors of the
 * workflow are left to whoever runs it. */
bool trust_submit(const struct cli_args *args, json_t *body, struct err *err) MUST_CHECK;

/* Returns the workflow that segue init writes under this name (cmd/init.c). */
void init_starter(const char *name, struct buf *out);

#endif
