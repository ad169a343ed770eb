/* json_object.h - members of JSON objects by literal keys. Their length is known when this is
 * compiled: records are made of some hundred members a turn, and measuring each key is seen. */
#ifndef SEGUE_FORMAT_JSON_OBJECT_H
#define SEGUE_FORMAT_JSON_OBJECT_H

#include <jansson.h>

/* json_object_set_new_nocheck: takes `value`, whose texts are UTF-8. */
#define json_put(object, key, value)                                                               \
  json_object_setn_new_nocheck((object), "" key, sizeof(key) - 1, (value))
/* json_object_get: borrowed, or NULL. */
#define json_at(object, key) json_object_getn((object), "" key, sizeof(key) - 1)

#endif
