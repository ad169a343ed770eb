/* json_write.h - a JSON value as compact text, appended to a buffer.
 *
 * The same bytes as jansson's JSON_COMPACT (members in order of insertion, UTF-8 as it is), some
 * ten times as fast on long texts: the log writes every text that passes through a session. */
#ifndef SEGUE_FORMAT_JSON_WRITE_H
#define SEGUE_FORMAT_JSON_WRITE_H

#include "base/buf.h"

#include <jansson.h>

void json_write(const json_t *value, struct buf *out);

#endif
