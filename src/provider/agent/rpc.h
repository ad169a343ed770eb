/* rpc.h - is the client side of JSON-RPC over lines: it numbers requests, matches answers to them,
 * and answers the other side's requests.
 *
 * A protocol numbers its methods (`methods`: names by number, NULL-terminated). In a replay nothing
 * is written: rpc_sent is given what the recorded client wrote, and answers belong to that. An
 * answer to a request that was not recorded has method -1; its shape may still tell. */
#ifndef SEGUE_PROVIDER_AGENT_RPC_H
#define SEGUE_PROVIDER_AGENT_RPC_H

#include "provider/agent/driver.h"

enum rpc_kind {
  RPC_ANSWER, /* to a request of ours */
  RPC_ASK,    /* a request of theirs: an answer is due */
  RPC_TELL,   /* a notification */
  RPC_NOISE,  /* not a message */
};

struct rpc {
  const struct driver_host *host;
  const char *const *methods;
  bool versioned; /* messages carry "jsonrpc": "2.0" */
  json_int_t last_id;
  struct {
    json_int_t id;
    int method;
  } open[16]; /* requests without an answer yet; a protocol has a handful */
  size_t open_count;
};

struct rpc_message {
  enum rpc_kind kind;
  int method;           /* an answer's request; -1: unknown */
  const char *name;     /* set for asks and tells; else NULL */
  const json_t *id;     /* set for asks and answers */
  const json_t *params; /* set for asks and tells; may be NULL */
  const json_t *result; /* set for a good answer; may be NULL */
  const json_t *error;  /* set for an error; else NULL */
};

/* Returns true in a replay, where nothing can be written. */
bool rpc_replays(const struct rpc *rpc);

/* Take `params` or `result` and send it. False: it could not be written. In a replay nothing
 * happens. */
bool rpc_request(struct rpc *rpc, int method, json_t *params);
bool rpc_notify(struct rpc *rpc, const char *method, json_t *params);
bool rpc_reply(struct rpc *rpc, const json_t *id, json_t *result);
bool rpc_refuse(struct rpc *rpc, const json_t *id, int code, const char *message);

/* Reads a message, borrowing everything from `value`. An answer closes its request. */
struct rpc_message rpc_read(struct rpc *rpc, const json_t *value);
/* Reads a line that the recorded client wrote; returns its value as a new reference, or NULL. */
json_t *rpc_sent(struct rpc *rpc, struct str line);

/* Writes any value as a line; takes it. False: it could not be written. */
bool rpc_write_line(const struct driver_host *host, json_t *value);

#endif
