/* spans.h - tells what a turn's time was spent on, gathered while its records are read.
 *
 *   spans_feed(&s, record, &turn)    each record of a call of that turn, or of its question
 *   spans_close(&s, turn, at_ms)     the turn is over (0: all turns are)
 *   spans_deinit(&s)
 * A turn has at most LIMIT_VIEW_SPAN_COUNT of them; beyond that the last one is extended. */
#ifndef SEGUE_VIEW_SPANS_H
#define SEGUE_VIEW_SPANS_H

#include "view/session.h"

struct spans_call;
struct spans {
  struct spans_call *calls; /* calls under way */
  size_t count, room;
};

/* Takes a record of that time. `turn` owns a pointer to its spans (malloc), which may change. */
void spans_feed(struct spans *s, const json_t *record, int64_t at_ms, struct view_turn *turn);
/* Ends the open spans of `turn`. stays: except those that wait for a person. */
void spans_close(struct spans *s, int64_t at_ms, struct view_turn *turn, bool stays);
/* Sets all of turn->doing except its tokens. The text is valid until the next feed. */
void spans_tell(const struct spans *s, struct view_turn *turn);
/* Copies what is under way into `out`, a zeroed one. */
void spans_copy(struct spans *out, const struct spans *s);
void spans_deinit(struct spans *s);

#endif
