/* digest.h - what a row of a list says of a session by its log alone, valid until the log changes.
 * The caller has to say how the session stands: who owns the log, what a daemon knows.
 *
 *   d = digest_new(&ref)       both ends of the log; NULL: brief_read cannot read it
 *   digest_skim(d, &ref)       what is between them, once (view/skim.h)
 *   digest_free(d)             NULL is fine */
#ifndef SEGUE_VIEW_DIGEST_H
#define SEGUE_VIEW_DIGEST_H

#include "store/brief.h"
#include "view/row.h"

struct digest {
  struct view_row row; /* without log, status, class and proof; each text is malloc'd */
  struct brief brief;  /* only the name of its workflow and when it began, for select_wants_brief */
  char status[24];     /* brief_status */
  bool unfinished;     /* neither stopped nor ended: it runs if somebody owns the log */
  bool skimmed;
};

/* Makes a digest of what brief_unread says. */
struct digest *digest_of(struct brief *owned_b, const struct store_ref *ref);
struct digest *digest_new(const struct store_ref *ref);
void digest_skim(struct digest *d, const struct store_ref *ref);
void digest_clear(struct digest *d); /* frees what it holds */
void digest_free(struct digest *d);

#endif
