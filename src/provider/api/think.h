/* think.h - splits <think>...</think> (or <thinking>) off the head of a text that comes in pieces.
 * White space before and after the block goes with it. Pure. */
#ifndef SEGUE_PROVIDER_API_THINK_H
#define SEGUE_PROVIDER_API_THINK_H

#include "base/str.h"

enum think_state { THINK_START, THINK_INSIDE, THINK_AFTER, THINK_OUTSIDE };

struct think { /* zeroed: at the start */
  enum think_state state;
  char held[24]; /* what may still become a tag */
  size_t held_n;
};

typedef void (*think_fn)(void *ctx, bool thinking, struct str piece);

void think_push(struct think *t, struct str piece, think_fn out, void *ctx);
void think_flush(struct think *t, think_fn out, void *ctx); /* at the end */

/* Models whose template opens the block by itself write its end only. The offset after such an end
 * and the white space behind it, or 0. */
size_t think_bare_end(struct str text);

#endif
