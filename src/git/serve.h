/* serve.h - lets code that waits for git (git_now, git/work.h) run in a pool thread of a program
 * whose children belong to its loop.
 *
 *   git_serve_begin(loop, processes)     once the loop may start programs
 *   git_serve_do(sandbox, run, done, ctx)   from the loop: run(ctx) in the pool, where git_now may
 *                                           be called; then done(ctx) from the loop
 *   git_serve_end()                      nothing of it runs
 *
 * git_now in such a thread hands its question to the loop and sleeps until the answer is there.
 * Only one `run` at a time, so that the pool always has threads for what the loop needs. */
#ifndef SEGUE_GIT_SERVE_H
#define SEGUE_GIT_SERVE_H

#include <jansson.h>
#include <uv.h>

struct process_table;

void git_serve_begin(uv_loop_t *loop, struct process_table *processes);
void git_serve_end(void);
/* sandbox: what holds filters meanwhile (git.h), a session's; or NULL. */
void git_serve_do(const json_t *sandbox, void (*run)(void *ctx), void (*done)(void *ctx),
                  void *ctx);

#endif
