/* yaml_write.h - a JSON value as YAML that a person can go on with.
 *
 * Objects keep their order. A text of several lines is a block, a plain word stands without quotes,
 * short lists of words stand on one line. yaml_parse gives the same value back. */
#ifndef SEGUE_FORMAT_YAML_WRITE_H
#define SEGUE_FORMAT_YAML_WRITE_H

#include "base/buf.h"

#include <jansson.h>

/* Appends the text of an object or a list, in UTF-8, with a line end at its end. */
void yaml_write(const json_t *value, struct buf *out);

#endif
