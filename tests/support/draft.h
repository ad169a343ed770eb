/* draft.h - the address of the dialect that a folder of the JSON Schema test suite is for. */
#ifndef SEGUE_TESTS_DRAFT_H
#define SEGUE_TESTS_DRAFT_H

#include <stddef.h>
#include <string.h>

/* NULL: the newest, which needs no word. */
static inline const char *draft_uri(const char *folder) {
  if (strcmp(folder, "draft7") == 0)
    return "http://json-schema.org/draft-07/schema#";
  if (strcmp(folder, "draft2019-09") == 0)
    return "https://json-schema.org/draft/2019-09/schema";
  return NULL;
}

#endif
