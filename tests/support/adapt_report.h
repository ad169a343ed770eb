/* adapt_report.h - tells the changes of an adapted schema as JSON, as data of tests holds them. */
#ifndef SEGUE_TESTS_ADAPT_REPORT_H
#define SEGUE_TESTS_ADAPT_REPORT_H

#include "adapt/internal.h"

/* A new reference. */
static json_t *adapted_report(const struct adapted *adapted) {
  json_t *report = json_array();
  for (size_t i = 0; i < adapted->change_count; i++) {
    const struct adapt_change *change = &adapted->changes[i];
    json_t *one =
        json_pack("{s:s, s:s, s:s, s:s}", "pointer", change->pointer, "keyword", change->keyword,
                  "effect", adapt_effect_name(change->effect), "why", change->why);
    json_array_append_new(report, one);
  }
  return report;
}

#endif
