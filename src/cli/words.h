/* words.h - shows the agents' words in a session that another process runs, for show --follow -v:
 * as they come if a daemon runs it, otherwise each answer once it is complete.
 *
 *   words_init(&w, socket, &summary, &live)     all borrowed; socket: --socket or NULL
 *   words_hear(&w, seen_seq)                    what came; seen_seq: seq of the record read last
 *   words_note(&w, record, seen_seq)            it was read
 *   words_deinit(&w) */
#ifndef SEGUE_CLI_WORDS_H
#define SEGUE_CLI_WORDS_H

#include "audit/summary.h"
#include "cli/live.h"
#include "daemon/listen.h"

enum { WORDS_CALLS = 64 };

struct spoken {
  struct listening from;
  struct summary *summary;
  struct live *live;
  bool begun; /* earlier words are not shown */
  long heard; /* the last call that was heard */
  /* These hold calls by number (0: a free place; the oldest is replaced next): finished ones, whose
   * late words are no news, and those that are not the work itself. */
  long ended[WORDS_CALLS], asides[WORDS_CALLS];
  unsigned next_ended, next_aside;
};

void words_init(struct spoken *w, const char *socket, struct summary *summary, struct live *live);
void words_hear(struct spoken *w, uint64_t seen_seq);
void words_note(struct spoken *w, const json_t *record, uint64_t seen_seq);
void words_deinit(struct spoken *w);

#endif
