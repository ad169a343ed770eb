/* input.h - reads what a person types on standard input, while the loop runs.
 *
 *   input_init(&in, &solo, typed, ctx)       false: it cannot be listened to
 *   input_forget()                           discards what was typed at a terminal so far
 *   input_listen(&in) / input_pause(&in)     typed(ctx, bytes, n); n 0: the end
 *   input_close(&in)                         accepts a zeroed one; then let the loop run on */
#ifndef SEGUE_HOST_INPUT_H
#define SEGUE_HOST_INPUT_H

#include "host/solo.h"

struct input {
  uv_poll_t poll;
  bool is_open;
  void (*typed)(void *ctx, const char *bytes, size_t n);
  void *ctx;
};

bool input_init(struct input *in, struct solo *solo,
                void (*typed)(void *ctx, const char *bytes, size_t n), void *ctx);
void input_forget(void);
void input_listen(struct input *in);
void input_pause(struct input *in);
void input_close(struct input *in);

#endif
