/* compare_page.h - two sessions side by side, in the window: where they part on top, each turn with
 * both verdicts, each side leading to its own judgment. */
#ifndef SEGUE_WEB_COMPARE_PAGE_H
#define SEGUE_WEB_COMPARE_PAGE_H

#include "audit/compare.h"
#include "web/html.h"

enum { LIMIT_COMPARE_ROWS = 1000 };

void compare_page(struct html *h, const struct compare_side *a, const struct compare_side *b);

#endif
