/* json_size.h - how large a JSON text would become, before memory and time are spent on reading it.
 *
 * Nothing is checked: for text that is not JSON, the numbers only bound where reading would have
 * stopped. One pass, about a nanosecond per byte, ending where a limit is exceeded. */
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
