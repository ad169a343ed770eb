/* think.h - splits <think>...</think> (or <thinking>) off the head of a text that comes in pieces.
 * White space before and after the block goes with it. Pure. */
#ifndef SEGUE_PROVIDER_API_THINK_H
#define SEGUE_PROVIDER_API_THINK_H

#include "base/str.h"

enum think_state { THINK_START, THINK_INSIDE, THINK_AFTER, THINK_OUTSIDE };

struct think { /* zeroed: at the start */
  enum think_state state;
  char held[24]; /* bytes that may still become a tag */
  size_t held_n;
};

typedef void (*think_fn)(void *ctx, bool thinking, struct str piece);

void think_push(struct think *t, struct str piece, think_fn out, void *ctx);
void think_flush(struct think *t, think_fn out, void *ctx); /* at the end */

/* Returns the offset after the block's end and the white space that follows, for models whose
 * template opens the block, so that they write only its end; or 0. */
size_t think_bare_end(struct str text);

#endif
