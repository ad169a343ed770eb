/* opencode_internal.h - the parts of the driver of `opencode serve`: opencode.c (what it
 * says, to news and a result), opencode_ask.c (its questions), opencode_serve.c (one call with a
 * server that runs, and the driver itself). The first two serve recordings just as well. */
#ifndef SEGUE_PROVIDER_AGENT_OPENCODE_INTERNAL_H
#define SEGUE_PROVIDER_AGENT_OPENCODE_INTERNAL_H

#include "provider/agent/question.h"
#include "provider/agent/stream_internal.h"

/* The steps of a call with a live server. Each waits for one thing, most of them for a limited
 * time. */
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
  json_t *assistant;  /* ids of the model's messages: the prompt is a message, too */
  json_t *parts;      /* what was told of each part: id -> bytes, or a tool's state */
  json_t *thoughts;   /* ids of the parts that are reasoning: a piece of one does not say so */
  json_t *tokens;     /* of each of the model's messages: id -> its usage */
  struct buf talking; /* the message that is coming */
  struct questions questions;
  bool aborted; /* by a request that was sent */
  bool idle;    /* it says that the conversation rests */
  /* A live server has these: */
  bool live;
  enum opencode_step step;
  struct buf line;   /* a line of its stdout; or why a connection broke */
  struct buf answer; /* the reply to the prompt, and its status */
  int answer_status;
  unsigned answering; /* questions whose answers it has not taken yet */
};

static inline struct opencode *opencode_of(const struct driver *d) {
  return d->own;
}
struct str opencode_text(const json_t *object, const char *name); /* p NULL: there is none */

/* --- opencode.c --- */

/* An event ({"type", "properties"}) or an answer ({"info", "parts"}); others are passed over. */
void opencode_value(struct driver *d, const json_t *value);
/* The conversation has this id. */
void opencode_enter(struct driver *d, struct str session);
void opencode_note_error(struct driver *d, const json_t *error);

/* --- opencode_ask.c --- */

void opencode_on_permission(struct driver *d, const json_t *asked);
void opencode_on_question(struct driver *d, const json_t *asked);
/* "/permission/ID/reply {...}": the answer of a recorded client. */
void opencode_replied(struct driver *d, struct str line);

/* --- opencode_serve.c: nothing of it does anything in a replay --- */

/* True if the id may be part of a path. */
bool opencode_is_id(struct str id);
/* POST, with a body that is taken. */
void opencode_post(struct driver *d, int id, const char *path, json_t *body);
/* It retries by itself: how many times so far, and when next. */
void opencode_on_retry(struct driver *d, json_int_t attempt, int64_t delay_ms, struct str reason);
void opencode_on_idle(struct driver *d);

/* Which request a reply belongs to. */
enum opencode_request {
  OPENCODE_EVENTS,
  OPENCODE_SESSION,
  OPENCODE_PROMPT,
  OPENCODE_ABORT,
  OPENCODE_REPLY /* to a question */
};

#endif
