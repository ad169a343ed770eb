/* reports.h - internal to the host: writes a session's reports as files, from its state, once the
 * records that hold them are durable.
 *
 *   config = reports_config(host, workflow, id, config)   new session: its prompts can name the
 *                                                         folder
 *   reports_recover(s)     after reading back: writes what the log has and no file shows
 *   reports_write(s)       EFFECT_REPORTS
 *
 * A file that was missing when the session was killed is written again. One that somebody has
 * changed is left alone, with a warning; {report:...} shows what the log has. A report that cannot
 * be written gives a warning and stops nothing. Without a store there are no files. */
#ifndef SEGUE_HOST_REPORTS_H
#define SEGUE_HOST_REPORTS_H

#include "host/session.h"

/* Returns the configuration of a session with that id: a new reference, with `report_dir` if its
 * workflow makes reports. */
json_t *reports_config(const struct host *host, const struct workflow *workflow, const char *id,
                       json_t *config);
void reports_recover(struct session *s);
void reports_write(struct session *s);

#endif
