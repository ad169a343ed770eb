/* audit_show.h - shows an aggregate on a terminal, as one screen or a table of groups, and as
 * CSV. */
#ifndef SEGUE_CLI_AUDIT_SHOW_H
#define SEGUE_CLI_AUDIT_SHOW_H

#include "audit/aggregate.h"
#include "audit/format_errors.h"

#include <stdio.h>

void audit_show_screen(const struct aggregate *c);
/* Prints how many logs are not sound, and the first few with the reason; nothing if all are. */
void audit_show_apart(const struct aggregate *c, FILE *to);
void audit_show_groups(const struct aggregate *c);
/* Prints RFC 4180, with a first line of names. */
void audit_show_csv(const struct aggregate *c);

void audit_show_flaws(const struct format_errors *f);

#endif
