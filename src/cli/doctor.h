/* doctor.h - collects the findings of segue doctor, and its report on backends. */
#ifndef SEGUE_CLI_DOCTOR_H
#define SEGUE_CLI_DOCTOR_H

#include "cli/cli.h"
#include "host/config.h"
#include "provider/registry.h"

enum finding_kind { FINDING_OK, FINDING_NOTE, FINDING_PROBLEM };

struct doctor_report {
  json_t *findings;
  bool json, colours;
  size_t problems;
};

/* Adds a finding and prints it, unless everything is printed as JSON. remedy: what to do, or
 * NULL. */
void doctor_find(struct doctor_report *r, enum finding_kind kind, const char *what,
                 const char *text, const char *remedy);

/* Reports the backends named in `args`, or all of them. Backends that are here, that the user's
 * configuration names, or that can be repaired get a section each; the absent ones share a line of
 * names, unless --all or JSON is wanted. False: there is no such backend, and a message was
 * printed. */
bool doctor_providers(struct doctor_report *r, const struct provider_registry *registry,
                      const struct config *user, const struct cli_args *args) MUST_CHECK;

#endif
