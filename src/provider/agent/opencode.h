/* opencode.h - the requests that the driver of `opencode serve` makes. */
#ifndef SEGUE_PROVIDER_AGENT_OPENCODE_H
#define SEGUE_PROVIDER_AGENT_OPENCODE_H

/* Says which request a reply belongs to. */
enum opencode_request {
  OPENCODE_EVENTS,
  OPENCODE_SESSION,
  OPENCODE_PROMPT,
  OPENCODE_ABORT,
  OPENCODE_REPLY /* our answer to a question */
};

#endif
