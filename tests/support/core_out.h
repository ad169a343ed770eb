/* core_out.h - frees what a decision gave, which the host takes over record by record. */
#ifndef SEGUE_TESTS_CORE_OUT_H
#define SEGUE_TESTS_CORE_OUT_H

#include "core/decide.h"

#include <stdlib.h>

static void core_out_deinit(struct core_out *out) {
  for (size_t i = 0; i < out->record_count; i++)
    record_free(out->records[i]);
  free(out->records);
  free(out->effects);
  *out = (struct core_out){0};
}

#endif
