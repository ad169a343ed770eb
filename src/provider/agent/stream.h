/* stream.h - the exec driver, which reads a run by its profile's rules, and the parts of it that
 * the drivers of protocols use: values to news, pieces of messages, the result of the run. */
#ifndef SEGUE_PROVIDER_AGENT_STREAM_H
#define SEGUE_PROVIDER_AGENT_STREAM_H

#include "base/head_tail.h"
#include "provider/agent/driver.h"
#include "provider/agent/tool_summary.h"
#include "provider/redact.h"

struct trouble { /* the last event that reported an error */
  bool there;
  int status;
  enum error_class class; /* found from its kinds; or CLASS_NONE */
  int64_t retry_after_ms;
  struct buf kinds, message;
  struct buf log; /* a word by which stderr tells more */
};

/* An agent's question is told together with the answer it got. Live, the answer is ours and is told
 * at once. In a replay it is the recorded client's, which comes later in the recording: the
 * question waits for it, and if none comes, our own answer is told. */
struct question {
  struct str tool, title; /* borrowed for the call */
  bool allowed;           /* our answer */
  const char *reason;     /* why not; static, or NULL */
};

struct questions {
  bool recorded; /* a replay that shows what was sent */
  struct {
    json_t *id, *what; /* what: {"tool", "title", "reason", "allowed"} */
  } open[8];
  size_t count;
};

struct driver {
  const struct profile *profile;
  const struct agent_call *call; /* borrowed */
  struct driver_host host;
  /* handles a value: stream_event, or a protocol's own function */
  void (*value)(struct driver *d, const json_t *value);
  void *own; /* memory of a driver that speaks a protocol; NULL: the exec driver */
  bool is_text, ends_by_exit, text_of_all; /* from the profile, unless the protocol decides */
  long client_retries;                     /* likewise; -1: as often as it likes */
  bool schema_asked, resumed;              /* resumed: it continues a conversation */
  struct buf line, err_line;               /* unfinished lines */
  size_t skipped; /* bytes so far of a line that is too long to be kept; 0: this one is not */
  size_t skipped_count;
  struct buf skipped_type;
  bool reply_lost;      /* the line may have been a reply that the protocol waits for */
  bool text_told;       /* at least a piece was reported */
  bool thought;         /* reasoning was reported */
  size_t request_count; /* requests to the model, if each is reported */
  struct buf whole;     /* lines that are not JSON, until a value comes: perhaps one document */
  size_t event_count;   /* values read */
  size_t garbage_count; /* lines that are not JSON, after the first value */
  char session[128];
  const struct secrets *secrets;        /* the host's */
  struct redactor of_text, of_thinking; /* a value may come in pieces, over two events */
  struct head_tail printed;             /* all output, with is_text */
  struct buf told; /* reported of the message being received, without what of_text holds back */
  struct buf last; /* the last whole message */
  struct buf all;  /* all whole messages */
  struct buf last_id;
  bool has_text; /* an event said the final text: */
  struct buf text;
  json_t *structured, *usage;
  const json_t *before; /* tokens of the conversation before this call; NULL: not known */
  /* its background tasks that run, and all whose end it has not told: id -> what; NULL: none yet */
  json_t *tasks, *known;
  json_t *unfinished;     /* what those do that were stopped: texts; or NULL */
  const json_t *outlived; /* what those do that are not waited for any more; or NULL */
  size_t unread;     /* what a person said to it, and what it has not read yet and goes on for */
  bool steered;      /* there was such a thing */
  bool works_on;     /* it has begun another turn after its final event */
  bool awaited;      /* the host was told so */
  bool over;         /* its final event came while nothing ran in the background */
  struct buf retry;  /* the last retry notice, until something else comes: why it is silent */
  int retry_status;  /* HTTP status in that notice; 0: none */
  long retry_count;  /* notices since something else came */
  struct buf denied; /* the same for permissions */
  struct questions questions;
  struct buf tool_id, tool_name; /* those of the tool started last */
  struct trouble trouble;
  enum profile_end end;
  struct pattern_scratch scratch;
};

struct driver *stream_open(const struct profile *profile, const struct agent_call *call,
                           const struct driver_host *host);
void stream_output(struct driver *d, int fd, struct str bytes);
void stream_close(struct driver *d);

/* Handles one value of the output, by the rules. */
void stream_event(struct driver *d, const json_t *value);
/* Reads a whole JSON value as clients write it: half characters become U+FFFD. Returns a new
 * reference, or NULL. */
json_t *stream_read_json(struct str text);
/* Reports news; takes the reference of `data`. */
void stream_tell(struct driver *d, enum provider_news_kind kind, struct str text, json_t *data);
/* Reports a piece of the message being received. */
void stream_tell_piece(struct driver *d, struct str piece);
void stream_tell_thinking(struct driver *d, struct str piece);
/* Reports the part of the message so far that was not reported yet. */
void stream_tell_rest(struct driver *d, struct str whole);
/* Completes the message. Messages with one id (n 0: none) are one text. */
void stream_end_message(struct driver *d, struct str id);
void stream_session(struct driver *d, struct str id);
void stream_usage(struct driver *d, json_t *data); /* takes it */
/* Takes the total use of the conversation, of which this call's share is the rest. */
void stream_usage_total(struct driver *d, json_t *total);
/* Returns a + sign * b of each count; NULL: one would be below zero. A new reference. */
json_t *stream_usage_added(const json_t *a, const json_t *b, int sign);
/* Returns the call's use with one more turn of it, and with the call's share of the cost that was
 * told with that. Takes `all`, the tokens that the cost covers as far as they are told, and `data`,
 * the turn's. */
json_t *stream_usage_turn(const struct driver *d, json_t *all, json_t *data);
void stream_retry(struct driver *d, json_t *data, struct str reason); /* takes it */
/* Returns the class of the fault in the last notice; CLASS_NONE: the notice does not say. */
enum error_class stream_retry_class(struct driver *d);
void stream_tool(struct driver *d, const struct tool_summary *tool);
/* Notes a question. `id`: by which its answer will come. */
void question_ask(struct driver *d, const json_t *id, const struct question *question);
/* Takes the recorded answer to `id`. */
void question_answered(struct driver *d, const json_t *id, bool allowed);
/* Notes what went wrong: a status (0: unknown), words for people, words that `classes` may know.
 * The last message counts. */
void stream_trouble(struct driver *d, int status, struct str message);
void stream_kind(struct driver *d, struct str word);
/* Ends the run, or a turn of it if the client works on. */
void stream_finish(struct driver *d, enum profile_end end);
/* Does so and closes stdin: nothing more will be asked. */
void stream_over(struct driver *d, enum profile_end end);
/* Ends the run as failed, in words of ours. */
void stream_fail(struct driver *d, enum error_class class, const char *message);
/* Reports that the agent has read what came with this key. */
void stream_read_steer(struct driver *d, uint64_t key);
/* Notes that a task of the client runs ("start"), under the words that were told of it first, or
 * that it is over ("end", or "stopped" before its end). */
void stream_task(struct driver *d, struct str id, struct str what, struct str state);
void stream_note(struct driver *d, struct str text); /* what an auditor should know */
/* Takes the rest of stdout, without an end of line, or over several lines. */
void stream_take_rest(struct driver *d);
/* Takes that rest, tells the questions without an answer, and fills the result. */
void stream_end(struct driver *d, const struct process_result *process, struct call_result *result);

#endif
