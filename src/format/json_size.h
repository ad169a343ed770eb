/* json_size.h - how much a JSON text would be, before memory and time are spent on reading it.
 *
 * Nothing is checked: of a text that is no JSON the numbers say only where reading it would have
 * stopped at the latest. One pass, about a nanosecond a byte, and no further than to where a
 * limit is passed. */
#ifndef SEGUE_FORMAT_JSON_SIZE_H
#define SEGUE_FORMAT_JSON_SIZE_H

#include "base/str.h"

struct json_size {
  size_t depth; /* levels of arrays and objects */
  size_t
      values; /* of all kinds, names of members not counted; an empty array or object may be two */
};

struct json_size json_size(struct str text, size_t max_depth, size_t max_values);

#endif
