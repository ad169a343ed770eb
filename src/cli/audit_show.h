/* audit_show.h - a census on a terminal: one screen, or a table of the groups; and as CSV. */
#ifndef SEGUE_CLI_AUDIT_SHOW_H
#define SEGUE_CLI_AUDIT_SHOW_H

#include "audit/census.h"
#include "audit/flaws.h"

void audit_show_screen(const struct census *c);
void audit_show_groups(const struct census *c);
/* RFC 4180, with a first line of names. */
void audit_show_csv(const struct census *c);

void audit_show_flaws(const struct flaws *f);

#endif
