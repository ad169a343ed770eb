/* head_watch.h - where HEAD is before and after a call: of the working tree that it works in, and
 * of the repository's own tree if that is another one.
 *
 *   w = head_watch_begin(loop, folder, on_ready, ctx)   start the call once on_ready came
 *   head_watch_end(w, &core, turn, seen, on_done)       after its end, what it changed included
 *   head_watch_take(w)      then: `head` of its call_end, new; NULL: there is no repository
 *   head_watch_free(w)      not between begin and on_ready, or end and on_done; accepts NULL
 *
 * An agent can change HEAD, branches and another tree's index like any file: so they are measured,
 * and never assumed. What git programs of the call did (`seen`, provider/git_trace.h) tells whether
 * the repository's own tree was changed by the call, or by its user, who works there meanwhile.
 * Files are read in the loop's pool, where git is asked, too (git/work.h), if HEAD is not on the
 * session's branch or moved. Callbacks come from the loop. */
#ifndef SEGUE_HOST_HEAD_WATCH_H
#define SEGUE_HOST_HEAD_WATCH_H

#include <jansson.h>
#include <uv.h>

struct core;
struct head_watch;
struct turn;

struct head_watch *head_watch_begin(uv_loop_t *loop, const char *folder,
                                    void (*on_ready)(void *ctx), void *ctx);
/* cwd: where the session was started. What it needs of them is copied. */
void head_watch_end(struct head_watch *w, const struct core *core, const struct turn *turn,
                    const char *cwd, const json_t *seen, void (*on_done)(void *ctx));
json_t *head_watch_take(struct head_watch *w);
void head_watch_free(struct head_watch *w);

#endif
