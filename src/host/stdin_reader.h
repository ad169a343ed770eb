/* stdin_reader.h - reads what a person types on standard input, while the loop runs.
 *
 *   stdin_reader_init(&in, &solo, typed, ctx)       false: it cannot be listened to
 *   stdin_reader_forget()                           discards what was typed at a terminal so far
 *   stdin_reader_listen(&in) / stdin_reader_pause(&in)     typed(ctx, bytes, n); n 0: the end
 *   stdin_reader_close(&in)  accepts a zeroed one; then let the loop run on */
#ifndef SEGUE_HOST_STDIN_READER_H
#define SEGUE_HOST_STDIN_READER_H

#include "host/single_session.h"

struct stdin_reader {
  uv_poll_t poll;
  bool is_open;
  void (*typed)(void *ctx, const char *bytes, size_t n);
  void *ctx;
};

bool stdin_reader_init(struct stdin_reader *in, struct single_session *solo,
                       void (*typed)(void *ctx, const char *bytes, size_t n), void *ctx);
void stdin_reader_forget(void);
void stdin_reader_listen(struct stdin_reader *in);
void stdin_reader_pause(struct stdin_reader *in);
void stdin_reader_close(struct stdin_reader *in);

#endif
