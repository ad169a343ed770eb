/* list_row.h - what a row of a list says of a session by its log alone, valid until the log
 * changes. The caller has to say how the session stands: who owns the log, what a daemon knows.
 *
 *   d = list_row_new(&ref)       both ends of the log; NULL: summary_read cannot read it
 *   list_row_skim(d, &ref)       what is between them, once (view/list_row.h)
 *   list_row_free(d)             NULL is fine */
#ifndef SEGUE_VIEW_LIST_ROW_H
#define SEGUE_VIEW_LIST_ROW_H

#include "store/summary.h"
#include "view/row.h"

struct list_row {
  struct view_row row; /* without log, status, class and proof; each text is malloc'd */
  struct summary
      summary;     /* only the name of its workflow and when it began, for filter_wants_summary */
  char status[24]; /* summary_status */
  bool unfinished; /* neither stopped nor ended: it runs if somebody owns the log */
  bool skimmed;
};

/* Makes a digest of what summary_unread says. */
struct list_row *list_row_of(struct summary *owned_b, const struct store_ref *ref);
struct list_row *list_row_new(const struct store_ref *ref);
void list_row_skim(struct list_row *d, const struct store_ref *ref);
void list_row_clear(struct list_row *d); /* frees what it holds */
void list_row_free(struct list_row *d);

#endif
