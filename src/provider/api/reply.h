/* reply.h - reads a model API's reply, as its bytes come, into what the model said.
 *
 *   reply_init(&r, dialect, wall_ms, watch, ctx)
 *   reply_header(&r, name, value) ...; reply_head(&r, status)
 *   reply_body(&r, bytes) ...                pieces of any length
 *   reply_end(&r, whole)                     whole: the connection did not break
 *   ... read its members ...
 *   reply_deinit(&r)
 *
 * Pure: the same bytes give the same reply, however they are cut. Text, thinking and a tool's
 * arguments are kept apart; <think>...</think> at the head of the text is thinking too. What is
 * kept is bounded by LIMIT_OUTPUT_BYTES, one event by LIMIT_HTTP_EVENT_BYTES. The form (events,
 * lines, one document) is recognized by the first byte, since servers mislabel it; any other bytes
 * are an error of class protocol. Every piece passes through `redact` before it is kept or told. */
#ifndef SEGUE_PROVIDER_API_REPLY_H
#define SEGUE_PROVIDER_API_REPLY_H

#include "core/call.h"
#include "format/sse.h"
#include "provider/api/dialect.h"
#include "provider/api/think.h"
#include "provider/redact.h"

enum reply_form { REPLY_UNKNOWN, REPLY_EVENTS, REPLY_LINES, REPLY_DOCUMENT, REPLY_UNREADABLE };

/* Receives a piece of the answer or of its reasoning, as it comes; UTF-8 unless cut between two
 * pieces. */
typedef void (*reply_watch_fn)(void *ctx, bool thinking, struct str piece);

enum reply_limit { LIMIT_OF_REQUESTS, LIMIT_OF_TOKENS, LIMIT_OF_PLAN, LIMIT_OF_COUNT };

/* Holds what headers said about when to come back. */
struct reply_wait {
  int64_t retry_after_ms;            /* -1: not said */
  unsigned used_up;                  /* bits of limits with nothing remaining */
  bool told_left;                    /* what remains of a limit was said */
  int64_t resets_ms[LIMIT_OF_COUNT]; /* time until each of them resets */
  int should_retry;                  /* 1 yes, 0 no, -1 not said */
};

struct reply {
  const struct dialect *dialect;
  reply_watch_fn watch; /* or NULL */
  void *ctx;
  int64_t wall_ms; /* time of the request: headers may name a time of day */
  int status;
  char content_type[64], location[160];
  struct reply_wait wait;
  enum reply_form form;
  struct sse sse;
  struct ndjson lines;
  struct buf document;
  struct think think;
  struct redactor of_text, of_thinking, of_tool;

  struct buf text, tool, refusal; /* the answer; a tool's arguments; the reason of a refusal */
  bool has_tool, thought, mended; /* mended: it had bytes that are not UTF-8 */
  int64_t input, output, cached;  /* tokens; -1: not said */
  int64_t reasoning;              /* part of the output; -1: not said */
  int64_t cache_write;            /* part of the input; -1: not said */
  double cost_usd;                /* below 0: not said */
  char stop[48];                  /* the backend's own word for why it ended */
  bool over;                      /* the event that ends a reply was seen */
  bool closed;                    /* nothing that comes now belongs to it */
  bool ending;                    /* no more bytes come */
  enum error_class class;         /* CLASS_NONE: answered */
  bool elsewhere;                 /* with bad_request: another backend may take the request */
  bool passes;                    /* its own fields say when */
  bool lasts;                     /* no time that headers tell makes it pass */
  char message[480];              /* an error's message */
  char param[64];                 /* the parameter that an error names in a field of its own */
  int64_t retry_after_ms;         /* 0: not said */
};

void reply_init(struct reply *r, const struct dialect *dialect, int64_t wall_ms,
                reply_watch_fn watch, void *ctx);
void reply_deinit(struct reply *r);
/* Keeps the values of these secrets out; borrowed until reply_deinit. Call it before the first
 * byte. */
void reply_redact(struct reply *r, const struct secrets *secrets);
void reply_header(struct reply *r, struct str name, struct str value);
void reply_head(struct reply *r, int status);
/* Takes bytes. False: enough was read. */
bool reply_body(struct reply *r, struct str bytes) MUST_CHECK;
void reply_end(struct reply *r, bool whole);
/* Returns {"input", "output", "cached", "reasoning", "cache_write", "cost_usd"} as far as known, a
 * new reference; NULL: nothing is known. */
json_t *reply_usage_json(const struct reply *r);

/* --- for the dialects --- */

void reply_text(struct reply *r, const json_t *piece); /* a string, or nothing happens */
void reply_thinking(struct reply *r, const json_t *piece);
void reply_tool(struct reply *r, const json_t *piece);       /* piece of the arguments' text */
void reply_tool_value(struct reply *r, const json_t *value); /* the arguments as a value */
void reply_refusal(struct reply *r, const json_t *piece);
/* Returns the sum of several counts, any of which may be NULL or null, as a new reference. NULL:
 * there is none, or one cannot be a true count. */
json_t *reply_sum(const json_t *const *counts, size_t n);
/* Sets the counts that are not NULL. */
void reply_usage(struct reply *r, const json_t *input, const json_t *output, const json_t *cached,
                 const json_t *reasoning, const json_t *cache_write);
void reply_cost(struct reply *r, const json_t *usd);
/* Returns the class of a backend's word for why an answer ended, however it spells it: CLASS_NONE
 * for a whole answer and for no word at all, CLASS_PROTOCOL for a word that is not known. */
enum error_class reply_end_class(struct str word);
/* Ends the reply with the word, or with the class, where that is not CLASS_NONE. */
void reply_stop(struct reply *r, const json_t *word, enum error_class class);
/* Closes the reply if the dialect has no event after this: a second answer is not read. */
void reply_close(struct reply *r);
/* Takes an error document or event, whose `error` member (or itself) says what is wrong. */
void reply_error(struct reply *r, const json_t *doc);

/* Fails the reply. */
void reply_fail(struct reply *r, enum error_class class, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Words of one meaning, a space apart; a table of them ends with NULL. */
struct reply_word {
  const char *word;
  enum error_class class;
};

#endif
