/* search.h - finds a text in a session: in every text of every record, and in its blobs.
 *
 *   view_search_read(&found, &book, needle, max, &err); view_search_json(&found);
 *   view_search_deinit(&found)
 * Letters of ASCII are found in either case. The book was read to its end, with places; this reads
 * the whole log once more. Texts are raw and live in the arena. */
#ifndef SEGUE_VIEW_SEARCH_H
#define SEGUE_VIEW_SEARCH_H

#include "audit/verified_reader.h"
#include "base/arena.h"

struct view_hit {
  uint64_t seq;
  long turn;
  struct str type;                /* type of the record */
  struct str place;               /* JSON Pointer of the text: "/text" */
  size_t offset;                  /* byte in that text */
  struct str before, that, after; /* the line around it, cut */
  bool more;                      /* the last that is listed of a text in which there are more */
};

struct view_search {
  struct arena arena;
  struct view_hit *hits;
  size_t count, max;
  bool more; /* there are more than max: these are the first */
};

bool view_search_read(struct view_search *found, const struct verified_reader *book,
                      struct str needle, size_t max, struct err *err) MUST_CHECK;
json_t *view_search_json(const struct view_search *found);
void view_search_deinit(struct view_search *found);

#endif
