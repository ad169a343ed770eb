/* tails.h - the end of what each running call has said, for a page that is opened in the middle of
 * it.
 *
 *   tail = tails_add(&tails, id, turn, call, thinking, text)   a piece of an answer came
 *   tails_end(&tails, id, call)          it is over, or starts again; 0: all of the session
 *   tails_of(&tails, id, &list)          copies for a page: free() each text and the list
 *   tails_deinit(&tails)
 *
 * At most LIMIT_TAIL_TEXT_BYTES and LIMIT_TAIL_THINKING_BYTES are kept for a call, and
 * LIMIT_TAIL_ALL_BYTES in all; beyond that, the call that was quiet longest is dropped. Places are
 * bytes since the call began. */
#ifndef SEGUE_DAEMON_TAILS_H
#define SEGUE_DAEMON_TAILS_H

#include "base/buf.h"
#include "base/list.h"
#include "store/store.h"
#include "web/pages.h"

struct tail_said {
  struct buf text;
  uint64_t end; /* bytes so far */
};

struct tail {
  struct list_node in_tails;
  char id[STORE_ID_BYTES];
  long turn, call;
  struct tail_said text, thinking;
};

struct tails {
  struct list all; /* the last to speak comes first */
  size_t bytes;
};

struct tail *tails_add(struct tails *ts, const char *id, long turn, long call, bool thinking,
                       struct str text);
void tails_end(struct tails *ts, const char *id, long call);
size_t tails_of(const struct tails *ts, const char *id, struct page_said **list);
void tails_deinit(struct tails *ts);

#endif
