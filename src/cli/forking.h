/* forking.h - runs a session that begins where another one was, in this process; for fork and merge
 * --resolve.
 *
 *   struct fork_wish w = {.command = "fork", .ref = &ref, .from = "fix", .body = body, ...};
 *   status = forking_run(&w);      runs it to its end; the status is the session's */
#ifndef SEGUE_CLI_FORKING_H
#define SEGUE_CLI_FORKING_H

#include "base/str.h"
#include "cli/session_ui.h"
#include "store/store.h"

#include <jansson.h>

struct fork_wish {     /* all borrowed */
  const char *command; /* for messages */
  const struct store_ref *ref;
  const char *from;     /* MOVEMENT[#N] */
  bool at_end;          /* with the state at the session's end; from: any movement */
  json_t *body;         /* members of POST .../fork */
  const char *scenario; /* or NULL: the session's own */
  enum ui_mode mode;
  struct str more;       /* appended to its task; may be empty */
  json_t *source;        /* config.source; or NULL: the session's */
  const char *base;      /* what its worktree begins at; or NULL: where the session's branch is */
  const char *merge;     /* a commit that is merged into it before it begins; or NULL */
  struct store_ref made; /* set once it has begun: its log; else its name is "" */
};

int forking_run(struct fork_wish *w);

#endif
