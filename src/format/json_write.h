/* json_write.h - a JSON value as compact text, appended to a buffer.
 *
 * It writes what jansson's JSON_COMPACT does, except that reals get the fewest digits that read
 * back as the same number, and is about ten times as fast on long texts: the log writes every text
 * that passes through a session. Whatever could steer a terminal is escaped (DEL, C1 and bidi
 * controls, line separators), so a log can be printed as it is; readers get the same value. */
#ifndef SEGUE_FORMAT_JSON_WRITE_H
#define SEGUE_FORMAT_JSON_WRITE_H

#include "base/buf.h"

#include <jansson.h>

void json_write(const json_t *value, struct buf *out);
/* Appends the members of an object after others, each with a comma in front. */
void json_write_members(const json_t *object, struct buf *out);
/* Writes a string; text is UTF-8. */
void json_write_string(struct str text, struct buf *out);
/* Appends a single real: 0.9, 1.0, 1e+300. */
void json_write_real(double value, struct buf *out);

/* json_dumps with a result for free(); `flags` are jansson's. NULL: it cannot be written. The
 * original is not used in this program, because its result belongs to jansson's allocator. */
char *json_dump_text(const json_t *value, size_t flags);

/* Makes a JSON string from any bytes: a last character that was cut off is dropped, other bytes
 * that are not UTF-8 become \\xNN. Never NULL, so that no member vanishes because of its
 * content. */
json_t *json_text(struct str text);

/* Levels of arrays and objects in it, up to `max` + 1; it looks no deeper. */
size_t json_depth(const json_t *value, size_t max);

#endif
