/* agent_question.h - reports an agent's question together with the answer it got.
 *
 * Live, the answer is ours and is reported at once. In a replay the answer is the recorded
 * client's, which comes later in the recording: the question waits for it, and if none comes, our
 * own answer is reported. */
#ifndef SEGUE_PROVIDER_AGENT_AGENT_QUESTION_H
#define SEGUE_PROVIDER_AGENT_AGENT_QUESTION_H

#include "provider/agent/stream.h"

struct question {
  struct str tool, title; /* borrowed for the call */
  bool allowed;           /* our answer */
  const char *reason;     /* why not; static, or NULL */
};

struct questions {
  struct driver *d;
  bool recorded; /* a replay that shows what was sent */
  struct {
    json_t *id, *what; /* what: {"tool", "title", "reason", "allowed"} */
  } open[8];
  size_t count;
};

/* Notes a question. `id`: by which its answer will come. */
void question_ask(struct questions *q, const json_t *id, const struct question *question);
/* Takes the recorded answer to `id`. */
void question_answered(struct questions *q, const json_t *id, bool allowed);
/* Reports, at the end, the questions without an answer. */
void question_end(struct questions *q);
void questions_deinit(struct questions *q);

#endif
