/* child.h - what all backends that run programs share: the variables of a program, the part of
 * its output that is kept, and how a call failed whose program never ran or was ended.
 *
 * `env` of the user's configuration goes to every program. Of `secrets` a program gets those that
 * its movement names, and only when it does the movement's work: no judge, no check, no other
 * movement. Their values are hidden in the output of every program, even one that never got them:
 * an agent may have written one to a file. */
#ifndef SEGUE_PROVIDER_CHILD_H
#define SEGUE_PROVIDER_CHILD_H

#include "base/arena.h"
#include "base/head_tail.h"
#include "os/process.h"
#include "provider/provider.h"
#include "provider/redact.h"

/* Returns the names of the further variables, NULL-terminated, in `a`. */
const char *const *call_env_names(struct arena *a, const struct provider_env *env,
                                  const struct call_request *request);
/* Returns what tells a program which call it is, as "NAME=value", NULL-terminated, with `more` at
 * its end (or NULL), and git where to trace. tmpdir: the call's private folder, or NULL. The key
 * lets what the program does outside be idempotent: a repeat of the call has the same one. */
const char *const *call_env_own(struct arena *a, const struct call_request *request,
                                const char *tmpdir, const char *more);
void call_env_hide(struct secrets *secrets, const struct provider_env *env);

/* The part of a program's stdout or stderr that is kept: without secrets, and within a bound, both
 * ends kept (base/head_tail.h). Secrets are removed before anything is cut, so that none is cut in
 * two.
 *
 *   kept_init, kept_push for each piece, kept_take at the end; kept_deinit */
struct kept {
  struct redactor redactor;
  struct buf piece; /* without secrets, on its way */
  struct head_tail bytes;
};

void kept_init(struct kept *k, const struct secrets *secrets, size_t max); /* secrets: borrowed */
/* Returns the piece without secrets, valid until the next one. */
struct str kept_push(struct kept *k, struct str piece);
/* Into an empty text; *dropped is how many bytes were cut out. k is empty afterwards, as after
 * kept_init. */
void kept_take(struct kept *k, struct text *text, uint64_t *dropped);
void kept_deinit(struct kept *k); /* accepts a zeroed one */

/* Fails a call whose program was never started, or was ended by somebody else, in the same words
 * for every backend. p->why must be SPAWN_FAILED, CANCELLED or SHIM_LOST. */
void ended_fail(struct call_result *r, const struct process_result *p);
/* Notes what a program lost or left at its end, unless there is another note. */
void ended_note(struct call_result *r, const struct process_result *p);

/* Finds a program: a name without a slash is looked up in PATH, as the shim does. Returns false if
 * it is nowhere. */
bool program_find(const char *name, char *out, size_t size);

/* Calls done(ctx) once, from the loop: a start must not report its own end. */
struct soon {
  uv_timer_t timer;
  void (*done)(void *ctx);
  void *ctx;
};
void soon_start(struct soon *soon, uv_loop_t *loop, void (*done)(void *ctx), void *ctx);

#endif
