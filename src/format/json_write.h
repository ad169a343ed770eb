/* json_write.h - a JSON value as compact text, appended to a buffer.
 *
 * It writes what jansson's JSON_COMPACT does, except that reals get the fewest digits that read
 * back as the same number, and is about ten times as fast on long texts: the log writes every text
 * that passes through a session. Whatever could steer a terminal is escaped (DEL, C1 and bidi
 * controls, line separators), so a log can be printed as it is; readers get the same value. */
#ifndef SEGUE_FORMAT_JSON_WRITE_H
#define SEGUE_FORMAT_JSON_WRITE_H

#include "base/buf.h"
#include "base/str.h"

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

/* Set a member that says something: a text that is not empty, a count above 0, what is true. */
void json_put_text(json_t *object, const char *key, struct str text);
void json_put_count(json_t *object, const char *key, json_int_t count);
void json_put_true(json_t *object, const char *key, bool value);

/* Levels of arrays and objects in it, up to `max` + 1; it looks no deeper. */
size_t json_depth(const json_t *value, size_t max);

/* --- the size of a text before it is read --- */

struct json_size {
  size_t depth; /* levels of arrays and objects */
  size_t
      values; /* of all kinds, names of members not counted; an empty array or object may be two */
};

struct json_size json_size(struct str text, size_t max_depth, size_t max_values);

#endif
