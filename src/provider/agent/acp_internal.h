/* acp_internal.h - the parts of the ACP driver: acp.c (the conversation), acp_update.c
 * (what the agent tells while it works, and what it asks). */
#ifndef SEGUE_PROVIDER_AGENT_ACP_INTERNAL_H
#define SEGUE_PROVIDER_AGENT_ACP_INTERNAL_H

#include "provider/agent/question.h"
#include "provider/agent/rpc.h"
#include "provider/agent/stream_internal.h"

/* In the order of a call; each step follows from the answer to the last one. */
enum acp_method {
  ACP_INITIALIZE,
  ACP_AUTHENTICATE, /* only after the agent said that it needs that */
  ACP_NEW,
  ACP_LOAD,
  ACP_RESUME,
  ACP_SET_MODE,
  ACP_SET_OPTION, /* the model, where the agent has it as an option ... */
  ACP_SET_MODEL,  /* ... or as a thing of its own */
  ACP_PROMPT,
  ACP_METHOD_COUNT
};

struct acp {
  struct driver *d;
  const struct agent_call *call;
  struct rpc rpc;
  char session[128];   /* the conversation; "" = there is none yet */
  json_t *initialized; /* the agent's answer to initialize */
  json_t *opened;      /* to session/new, load or resume */
  bool authenticated, prompting;
  bool denied;       /* it was told no, and has neither said nor begun anything since */
  bool interrupted;  /* by us */
  unsigned gone_on;  /* how often it was told to go on after that */
  json_t *used;      /* tokens of the prompts before; or NULL */
  bool failed;       /* the last thing said was the client's own word for an error */
  bool replayed;     /* the history of a conversation is being told: it is not new */
  bool ids;          /* messages carry ids: those without one are asides */
  json_t *inputs;    /* of tools, by id: what they are used for; true: that is told; or NULL */
  json_t *own_usage; /* {"input", "output", "cached"}: told before the end */
  struct questions questions;
  json_t *allowing; /* of a replay: ids of options that allow something, as the agent named them */
};

void acp_update(struct acp *acp, const json_t *params);
void acp_ask_permission(struct acp *acp, const json_t *id, const json_t *params);
/* A replay: this is how the recorded client answered. */
void acp_recorded_answer(struct acp *acp, const json_t *id, const json_t *result);
/* The tokens of an answer to session/prompt, or of a chunk's _meta. */
json_t *acp_usage(const json_t *usage);

#endif
