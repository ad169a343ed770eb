/* opencode_internal.h - the parts of the driver of `opencode serve`: opencode.c (turns its output
 * into news and a result), opencode_ask.c (its questions), opencode_serve.c (one call with a
 * running server, and the driver itself). The first two serve recordings just as well. */
#ifndef SEGUE_PROVIDER_AGENT_OPENCODE_INTERNAL_H
#define SEGUE_PROVIDER_AGENT_OPENCODE_INTERNAL_H

#include "provider/agent/question.h"
#include "provider/agent/stream_internal.h"

/* A call with a live server has these steps. Each waits for one thing, most for a limited time. */
enum opencode_step {
  OPENCODE_STARTING,   /* for the line that says where it listens */
  OPENCODE_CONNECTING, /* for its stream of events */
  OPENCODE_OPENING,    /* for the conversation: a new one, or the known one if it still exists */
  OPENCODE_WORKING,    /* for the answer to the prompt */
  OPENCODE_ANSWERED,   /* for the events that belong to the answer */
  OPENCODE_STOPPING,   /* for the end of the work that was aborted */
  OPENCODE_LOST,       /* the connection broke: is the program dead, too? */
  OPENCODE_OVER
};

struct opencode {
  const struct agent_call *call;
  char session[128];
  json_t *assistant;  /* ids of the model's messages: the prompt is a message too */
  json_t *parts;      /* what was reported of each part: id -> bytes, or a tool's state */
  json_t *thoughts;   /* ids of reasoning parts, since their pieces do not say so */
  json_t *tokens;     /* usage of the model's messages, by id */
  struct buf talking; /* the message being received */
  struct questions questions;
  bool aborted; /* a request of ours aborted it */
  bool idle;    /* it says that the conversation is idle */
  /* A live server has these: */
  bool live;
  enum opencode_step step;
  struct buf line;   /* a line of its stdout; or why a connection broke */
  struct buf answer; /* the reply to the prompt, and its status */
  int answer_status;
  unsigned answering; /* questions of which it has not taken our answer yet */
};

static inline struct opencode *opencode_of(const struct driver *d) {
  return d->own;
}
struct str opencode_text(const json_t *object, const char *name); /* p NULL: there is none */

/* --- opencode.c --- */

/* Takes an event ({"type", "properties"}) or an answer ({"info", "parts"}); skips other values. */
void opencode_value(struct driver *d, const json_t *value);
/* Notes the id of the conversation. */
void opencode_enter(struct driver *d, struct str session);
void opencode_note_error(struct driver *d, const json_t *error);

/* --- opencode_ask.c --- */

void opencode_on_permission(struct driver *d, const json_t *asked);
void opencode_on_question(struct driver *d, const json_t *asked);
/* Takes the answer of a recorded client: "/permission/ID/reply {...}". */
void opencode_replied(struct driver *d, struct str line);

/* --- opencode_serve.c: nothing of it does anything in a replay --- */

/* Returns true if the id may be part of a path. */
bool opencode_is_id(struct str id);
/* Sends a POST; takes the body. */
void opencode_post(struct driver *d, int id, const char *path, json_t *body);
/* Notes that it retries by itself: how many times so far, and when next. */
void opencode_on_retry(struct driver *d, json_int_t attempt, int64_t delay_ms, struct str reason);
void opencode_on_idle(struct driver *d);

/* Says which request a reply belongs to. */
enum opencode_request {
  OPENCODE_EVENTS,
  OPENCODE_SESSION,
  OPENCODE_PROMPT,
  OPENCODE_ABORT,
  OPENCODE_REPLY /* our answer to a question */
};

#endif
