/* doctor.h - findings of segue doctor, and what it says of backends. */
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

/* Notes it, and prints it unless all is printed as JSON. remedy: what to do, or NULL. */
void doctor_find(struct doctor_report *r, enum finding_kind kind, const char *what,
                 const char *text, const char *remedy);

/* Those in the words of `args` alone, else all: what is here, what the user's configuration names,
 * and what can be mended each by itself; what is just not here in a line of names, unless --all or
 * JSON is wanted. False: there is no such backend, which was printed. */
bool doctor_providers(struct doctor_report *r, const struct provider_registry *registry,
                      const struct config *user, const struct cli_args *args) MUST_CHECK;

#endif
