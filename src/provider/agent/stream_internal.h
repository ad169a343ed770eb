/* stream_internal.h - the parts of the exec driver: stream.c (bytes to values), stream_event.c
 * (values to news), stream_tell.c (pieces of messages), stream_end.c (the result of the run). */
#ifndef SEGUE_PROVIDER_AGENT_STREAM_INTERNAL_H
#define SEGUE_PROVIDER_AGENT_STREAM_INTERNAL_H

#include "base/head_tail.h"
#include "provider/agent/driver.h"
#include "provider/agent/tool_told.h"
#include "provider/redact.h"

struct trouble { /* the last event that reported an error */
  bool there;
  int status;
  enum error_class class; /* found from its kinds; or CLASS_NONE */
  int64_t retry_after_ms;
  struct buf kinds, message;
  struct buf log; /* a word by which stderr tells more */
};

struct driver {
  const struct profile *profile;
  struct driver_host host;
  /* handles a value: stream_event, or a protocol's own function */
  void (*value)(struct driver *d, const json_t *value);
  void *own; /* memory of a driver that speaks a protocol; NULL: the exec driver */
  bool is_text, ends_by_exit, text_of_all; /* from the profile, unless the protocol decides */
  long client_retries;                     /* likewise; -1: as often as it likes */
  bool schema_asked, resumed;              /* resumed: it continues a conversation */
  struct buf line, err_line;               /* unfinished lines */
  bool line_too_long;
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
  json_t *structured;
  json_t *usage;
  const json_t *before; /* tokens of the conversation before this call; NULL: not known */
  struct buf retry;     /* the last retry notice, until something else comes: why it is silent */
  int retry_status;     /* HTTP status in that notice; 0: none */
  long retry_count;     /* notices since something else came */
  struct buf denied;    /* the same for permissions */
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
/* Reads a line or document with one value, or an array of them; false: it is not JSON. */
bool stream_read_value(struct driver *d, struct str text);
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
/* Appends a message after others, without what did not fit into it. */
void stream_add_message(struct buf *to, const struct buf *message);
/* Completes the message. Messages with one id (n 0: none) are one text. */
void stream_end_message(struct driver *d, struct str id);
void stream_session(struct driver *d, struct str id);
void stream_usage(struct driver *d, json_t *data); /* takes it */
/* Takes the total use of the conversation, of which this call's share is the rest. */
void stream_usage_total(struct driver *d, json_t *total);
/* Returns a + sign * b of each count; NULL: one would be below zero. A new reference. */
json_t *stream_usage_added(const json_t *a, const json_t *b, int sign);
void stream_retry(struct driver *d, json_t *data, struct str reason); /* takes it */
/* Returns the class of the fault in the last notice; CLASS_NONE: the notice does not say. */
enum error_class stream_retry_class(struct driver *d);
/* Keeps the last notice and counts; gives up if client_retries are used up and the reason is known.
 * */
void stream_retry_noted(struct driver *d, int status, struct str reason);
void stream_tool(struct driver *d, const struct tool_told *tool);
/* Notes that it asked for permission, and the answer. */
void stream_permission(struct driver *d, struct str tool, bool allowed, struct str message);
/* Notes what went wrong: a status (0: unknown), words for people, words that `classes` may know.
 * The last message counts. */
void stream_trouble(struct driver *d, int status, struct str message);
void stream_kind(struct driver *d, struct str word);
/* Ends the run. */
void stream_finish(struct driver *d, enum profile_end end);
/* Reports what was held back, since nothing more will come. */
void stream_tell_held(struct driver *d);
/* Puts a text into a record: at most LIMIT_ERROR_TEXT_BYTES; nothing if it is empty. */
void stream_put_text(json_t *object, const char *name, struct str text);
/* Takes the rest of stdout, without an end of line, or over several lines. */
void stream_take_rest(struct driver *d);
void stream_end(struct driver *d, const struct process_result *process, struct call_result *result);

#endif
