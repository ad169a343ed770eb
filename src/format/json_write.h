/* json_write.h - a JSON value as compact text, appended to a buffer.
 *
 * The values, the order of members and the form of jansson's JSON_COMPACT, some ten times as fast on
 * long texts: the log writes every text that passes through a session. What could steer a terminal
 * is escaped (DEL, C1 and bidi controls, line separators), so a log can be printed as it is; the
 * value that a reader gets is the same. */
#ifndef SEGUE_FORMAT_JSON_WRITE_H
#define SEGUE_FORMAT_JSON_WRITE_H

#include "base/buf.h"

#include <jansson.h>

void json_write(const json_t *value, struct buf *out);

#endif
