/* compare_page.h - writes the window's page of two sessions side by side: first where they part,
 * then each turn with both verdicts, each side leading to its own judgment, and the lines in which
 * answers differ.
 *
 * The sides are still open: texts are read while the page is written. */
#ifndef SEGUE_WEB_COMPARE_PAGE_H
#define SEGUE_WEB_COMPARE_PAGE_H

#include "audit/compare.h"
#include "web/html.h"

enum {
  LIMIT_COMPARE_ROWS = 1000,
  LIMIT_COMPARE_TEXTS = 20,                  /* turns whose answers are shown line by line */
  LIMIT_COMPARE_TEXT_BYTES = 256 * 1024,     /* largest such answer */
  LIMIT_COMPARE_LINES = 200,                 /* lines of one answer on the page */
  LIMIT_COMPARE_PAGE_BYTES = 8 * 1024 * 1024 /* with `all`: no text begins on a page this long */
};

/* Writes the page. all: every row and line, as far as that fits. */
void compare_page(struct html *h, const struct compare_side *a, const struct compare_side *b,
                  bool all);

#endif
