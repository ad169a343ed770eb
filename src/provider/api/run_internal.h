/* run_internal.h - defines one running call of a model API: run.c makes its requests,
 * run_otherwise.c makes them again if a server refused one. */
#ifndef SEGUE_PROVIDER_API_RUN_INTERNAL_H
#define SEGUE_PROVIDER_API_RUN_INTERNAL_H

#include "provider/api/key_command.h"
#include "provider/api/reply.h"

/* A call has this life; X(state, the states it may move to). */
#define RUN_STATES(X)                                                                              \
  /* nothing was sent */                                                                           \
  X(NEW, RS(KEY) | RS(REFUSED) | RS(VERSION) | RS(THINK) | RS(ANSWER))                             \
  /* a program is asked for the key */                                                             \
  X(KEY, RS(REFUSED) | RS(VERSION) | RS(THINK) | RS(ANSWER) | RS(ENDED))                           \
  /* no request can be made: the loop tells why, start must not */                                 \
  X(REFUSED, RS(ENDED))                                                                            \
  /* the server is asked for its version */                                                        \
  X(VERSION, RS(THINK) | RS(ANSWER) | RS(ENDED))                                                   \
  /* the model is asked to think, without any form */                                              \
  X(THINK, RS(KEY) | RS(THINK) | RS(ANSWER) | RS(REFUSED) | RS(ENDED))                             \
  /* the model is asked for the answer; the next rung begins anew */                               \
  X(ANSWER, RS(KEY) | RS(VERSION) | RS(THINK) | RS(ANSWER) | RS(REFUSED) | RS(ENDED))              \
  X(ENDED, 0)

enum run_state {
#define RS_ENUM(name, next) RUN_STATE_##name,
  RUN_STATES(RS_ENUM)
#undef RS_ENUM
};

/* Says how thinking is combined with the form of an answer. */
enum run_thinking {
  RUN_THINKING_PLAIN,  /* not needed, or thinking was asked for separately and none came */
  RUN_THINKING_SERVER, /* the server does both by itself */
  RUN_THINKING_CAME    /* RUN_STATE_THINK brought some */
};

struct api_run {
  struct provider_run base;
  struct api *api;
  const struct api_config *config;
  const struct call_request *request;
  struct provider_sink sink;
  struct http_exchange *exchange; /* under way, or NULL */
  uv_timer_t soon;                /* reports what could not even be sent */
  enum run_state state;
  struct buf key, prompt;
  struct key_waiter waiter; /* for KEY */
  bool key_was_kept;        /* a program printed it before this call */
  char *model;
  struct secrets *secrets;
  struct wire wire;
  struct reply reply;   /* for THINK and ANSWER; without a dialect: none is read */
  struct buf version;   /* reply of VERSION */
  struct buf thoughts;  /* text of THINK */
  struct buf reasoning; /* reasoning of the present reply, as far as a log keeps it */
  json_t *requests;     /* requests and answers so far, see call_result */
  struct api_schema *schema;
  unsigned rungs;
  enum rung first_rung, rung;
  enum run_thinking thinking;
  bool remember;   /* remember the present rung, once the server takes it */
  bool cancelled;  /* no further request may begin */
  json_t *without; /* names of parameters that are left out; or NULL */
  json_t *notes;   /* reported with the first callback: start reports nothing */
  json_t *usage;   /* sum over its requests so far; or NULL */
  uint64_t started_ms;
  uint64_t content_ms; /* time of the present reply's last content */
  struct call_result result;
};

/* --- run_key.c --- */

/* Makes the first request, with its key; false: the result says why there is none. */
bool run_with_key(struct api_run *run);
/* A server refused a kept key: asks the program for another one. False: the key was not a kept
 * one. */
bool run_ask_key_again(struct api_run *run);

/* --- run.c --- */

void run_set_state(struct api_run *run, enum run_state state);

void run_note(struct api_run *run, const char *fmt, ...) PRINTF_LIKE(2, 3);
void run_fail(struct api_run *run, enum error_class class, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Frees what belongs to one request. */
void run_end_request(struct api_run *run);
/* Gives the result to the caller; the run is gone. */
void run_finish(struct api_run *run);
/* Makes a request. False: it cannot be made; the result says why. */
bool run_ask(struct api_run *run, enum run_state state);
/* Makes the first request that this call needs. */
bool run_ask_first(struct api_run *run);
bool run_wants_thinking(const struct api_run *run);

/* --- run_otherwise.c --- */

/* Chooses the rung to begin with; false: the result says why there is none. */
bool run_choose_rung(struct api_run *run);
/* Returns the name under which facts about a model are remembered. */
const char *run_model_key(const struct api_run *run);
/* Adds names of parameters that requests leave out. */
void run_leave_out(struct api_run *run, const json_t *names);
/* Steps down one rung, and from there to the last one: each costs a request. False: there is
 * none. */
bool run_step_down(struct api_run *run, const char *why);
/* Repeats a refused request without a parameter, or on the next rung. False: it stays refused. */
bool run_ask_otherwise(struct api_run *run);

#endif
