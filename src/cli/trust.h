/* trust.h - which workflows may have more than a sandbox gives: by a person's word.
 *
 * What it asks for, and what of it is remembered, is said in host/trust.h.
 *
 * A path on the command line is consent the first time. A project's name, and what asks for more
 * than when it last ran, are asked for. What ships, what is beside config.yaml and what segue init
 * wrote are trusted. A program that a session runs can trust nothing. */
#ifndef SEGUE_CLI_TRUST_H
#define SEGUE_CLI_TRUST_H

#include "cli/setup.h"

/* Returns whether a session of the workflow at setup->workflow_path, the first of the words, may
 * begin, and remembers it. By what word it may is noted as `trust` in the configuration. Errors in
 * the file are left to others. */
bool trust_asked(struct setup *setup, const struct cli_args *args, struct err *err) MUST_CHECK;
/* Does the same for the body of a session that is submitted. */
bool trust_submit(const struct cli_args *args, json_t *body, struct err *err) MUST_CHECK;

/* Puts the workflow that segue init writes under this name (cmd/init.c). */
void init_starter(const char *name, struct buf *out);
/* Makes a folder, or takes one that is there, but no link to one. */
bool init_make_folder(const char *parent, const char *name, struct err *err) MUST_CHECK;
bool init_write_all(int fd, struct str text) MUST_CHECK; /* false: errno */

#endif
