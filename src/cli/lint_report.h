/* lint_report.h - prints lint's findings in the formats of others: workflow commands of GitHub
 * Actions (docs.github.com, "Workflow commands": ::error file=,line=,col=::message, a line each)
 * and SARIF 2.1.0 (OASIS), which code scanning and editors read: one document for all files.
 *
 *   lint_report_github(path, &errors, &warnings)               a file's lines, at once
 *   lint_report_sarif(results, path, &errors, &warnings)       adds to a JSON array
 *   lint_report_sarif_end(results)                             prints the document
 *
 * A problem without a place in the file is put on the first line, because both formats need one. */
#ifndef SEGUE_CLI_LINT_REPORT_H
#define SEGUE_CLI_LINT_REPORT_H

#include "base/err.h"

#include <jansson.h>

void lint_report_github(const char *path, const struct err_list *errors,
                        const struct err_list *warnings);
void lint_report_sarif(json_t *results, const char *path, const struct err_list *errors,
                       const struct err_list *warnings);
/* Prints the document; takes the array. */
void lint_report_sarif_end(json_t *results);

#endif
