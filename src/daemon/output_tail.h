/* output_tail.h - the end of what each running call has said, for a page that is opened in the
 * middle of it.
 *
 *   tail = output_tails_add(&tails, id, turn, call, thinking, text)   a piece of an answer came
 *   output_tails_end(&tails, id, call)          it is over, or starts again; 0: all of the session
 *   output_tails_of(&tails, id, &list)          copies for a page: free() each text and the list
 *   output_tails_deinit(&tails)
 *
 * At most LIMIT_TAIL_TEXT_BYTES and LIMIT_TAIL_THINKING_BYTES are kept for a call, and
 * LIMIT_TAIL_ALL_BYTES in all; beyond that, the call that was quiet longest is dropped. Places are
 * bytes since the call began. */
#ifndef SEGUE_DAEMON_OUTPUT_TAIL_H
#define SEGUE_DAEMON_OUTPUT_TAIL_H

#include "base/buf.h"
#include "base/list.h"
#include "store/store.h"
#include "web/pages.h"

struct output_tail_said {
  struct buf text;
  uint64_t end; /* bytes so far */
};

struct output_tail {
  struct list_node in_tails;
  char id[STORE_ID_BYTES];
  long turn, call;
  struct output_tail_said text, thinking;
};

struct output_tails {
  struct list all; /* the last to speak comes first */
  size_t bytes;
};

struct output_tail *output_tails_add(struct output_tails *ts, const char *id, long turn, long call,
                                     bool thinking, struct str text);
void output_tails_end(struct output_tails *ts, const char *id, long call);
size_t output_tails_of(const struct output_tails *ts, const char *id, struct page_said **list);
void output_tails_deinit(struct output_tails *ts);

#endif
