/* report_files.h - a session's reports as files in its store, beside its log.
 *
 * They are written from the session's state, once the records that hold them are durable. A file
 * that was missing when the session was killed is written again. One that somebody has changed is
 * left alone, with a warning; {report:...} shows what the log has. A report that cannot be written
 * gives a warning and stops nothing. Without a store there are no files. Blocking. */
#ifndef SEGUE_HOST_REPORT_FILES_H
#define SEGUE_HOST_REPORT_FILES_H

#include <jansson.h>

struct host;
struct session;
struct workflow;

/* Returns the configuration of a new session with that id: a new reference, with `report_dir` if
 * its workflow makes reports, so that its prompts can name the folder. */
json_t *reports_config(const struct host *host, const struct workflow *workflow, const char *id,
                       json_t *config);
/* After reading back: writes the reports that the log has and no file shows. */
void reports_recover(struct session *s);
/* Writes those whose records are durable now. */
void reports_write(struct session *s);

#endif
