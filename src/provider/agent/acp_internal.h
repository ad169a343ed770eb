/* acp_internal.h - the parts of the ACP driver: acp.c (the conversation), acp_update.c
 * (what the agent tells while it works, and what it asks). */
#ifndef SEGUE_PROVIDER_AGENT_ACP_INTERNAL_H
#define SEGUE_PROVIDER_AGENT_ACP_INTERNAL_H

#include "provider/agent/question.h"
#include "provider/agent/rpc.h"
#include "provider/agent/stream_internal.h"

/* These are in the order of a call; each step follows from the answer to the last one. */
enum acp_method {
  ACP_INITIALIZE,
  ACP_AUTHENTICATE, /* only after the agent said that it needs that */
  ACP_NEW,
  ACP_LOAD,
  ACP_RESUME,
  ACP_SET_MODE,
  ACP_SET_OPTION, /* sets the model, if the agent has it as an option ... */
  ACP_SET_MODEL,  /* ... or by a request of its own */
  ACP_PROMPT,
  ACP_METHOD_COUNT
};

struct acp {
  struct driver *d;
  const struct agent_call *call;
  struct rpc rpc;
  char session[128];   /* the conversation; "": none yet */
  json_t *initialized; /* the agent's answer to initialize */
  json_t *opened;      /* answer to session/new, load or resume */
  bool authenticated, prompting;
  bool denied;       /* refused something, and has neither said nor begun anything since */
  bool interrupted;  /* we interrupted it */
  unsigned gone_on;  /* how often it was told to continue after that */
  json_t *used;      /* tokens of the earlier prompts; or NULL */
  bool failed;       /* its last words were the client's own for an error */
  bool replayed;     /* it repeats the history of a conversation: this is not new */
  bool ids;          /* messages carry ids: those without one are asides */
  json_t *inputs;    /* tools' inputs by id; true: already reported; or NULL */
  json_t *own_usage; /* {"input", "output", "cached"}, reported before the end */
  struct questions questions;
  json_t *allowing; /* in a replay: ids of options that allow something, as the agent named them */
};

void acp_update(struct acp *acp, const json_t *params);
void acp_ask_permission(struct acp *acp, const json_t *id, const json_t *params);
/* Takes, in a replay, the answer of the recorded client. */
void acp_recorded_answer(struct acp *acp, const json_t *id, const json_t *result);
/* Returns the tokens in an answer to session/prompt, or in a chunk's _meta. */
json_t *acp_usage(const json_t *usage);

#endif
