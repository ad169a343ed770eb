/* terminal_ask.h - asks the person at the terminal a session's questions, while it runs.
 *
 *   terminal_ask_init(&a, &solo, &live)       before the session: it does not stop for questions
 *   terminal_ask_look(&a, seq)                records up to seq are durable: is something asked?
 *   terminal_ask_close(&a)                    the session is over; accepts a zeroed one
 *
 * One question at a time, a line each. End of input leaves the rest for segue inbox. */
#ifndef SEGUE_CLI_TERMINAL_ASK_H
#define SEGUE_CLI_TERMINAL_ASK_H

#include "cli/live.h"
#include "host/input.h"

struct terminal_ask {
  struct solo *solo;
  struct live *live;
  struct input input;
  uint64_t question; /* the question shown; 0: none */
  uint64_t seen_seq; /* the last durable record */
  struct buf typed;
};

/* Returns true if a person is at both ends of the terminal. */
bool terminal_ask_can(void);
void terminal_ask_init(struct terminal_ask *a, struct solo *solo, struct live *live);
void terminal_ask_look(struct terminal_ask *a, uint64_t seq);
/* Returns true if a question is shown: nothing else is drawn meanwhile. */
bool terminal_ask_shows(const struct terminal_ask *a);
void terminal_ask_close(struct terminal_ask *a);

#endif
