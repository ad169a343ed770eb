/* Passes on pieces of a message as they come, without secrets that span two of them. */
#include "provider/agent/stream_internal.h"

#include <string.h>

static void retry_over(struct driver *d) {
  buf_clear(&d->retry);
  d->retry_count = 0;
}

static void stream_event_tell(struct driver *d, enum provider_news_kind kind, struct str text,
                              json_t *data) {
  const struct provider_news news = {.kind = kind, .text = text, .data = data};
  d->text_told = d->text_told || kind == NEWS_TEXT;
  d->thought = d->thought || kind == NEWS_THINKING;
  if (d->host.news != NULL)
    d->host.news(d->host.ctx, &news);
  json_decref(data);
}

void stream_tell(struct driver *d, enum provider_news_kind kind, struct str text, json_t *data) {
  if (kind == NEWS_TEXT || kind == NEWS_THINKING || kind == NEWS_TOOL) /* the try succeeded */
    retry_over(d);
  stream_event_tell(d, kind, text, data);
}

static void keep_piece(struct driver *d, struct str piece) {
  if (d->is_text)
    head_tail_append(&d->printed, piece);
  else
    buf_str(&d->told, piece);
}

void stream_tell_piece(struct driver *d, struct str piece) {
  struct buf clean = {0};
  if (!secrets_are_empty(d->secrets)) {
    redactor_push(&d->of_text, piece, &clean);
    piece = buf_view(&clean);
  }
  keep_piece(d, piece);
  if (piece.n > 0)
    stream_tell(d, NEWS_TEXT, piece, NULL);
  buf_deinit(&clean);
}

void stream_tell_thinking(struct driver *d, struct str piece) {
  struct buf clean = {0};
  redactor_push(&d->of_thinking, piece, &clean);
  if (clean.n > 0)
    stream_tell(d, NEWS_THINKING, buf_view(&clean), NULL);
  buf_deinit(&clean);
}

/* Reports what was held back: it came before the last notice of a try, if there was one. */
void stream_tell_held(struct driver *d) {
  struct buf clean = {0};
  redactor_flush(&d->of_thinking, &clean);
  if (clean.n > 0)
    stream_event_tell(d, NEWS_THINKING, buf_view(&clean), NULL);
  buf_clear(&clean);
  redactor_flush(&d->of_text, &clean);
  keep_piece(d, buf_view(&clean));
  if (clean.n > 0)
    stream_event_tell(d, NEWS_TEXT, buf_view(&clean), NULL);
  buf_deinit(&clean);
}

/* Reports a message as far as it has come: only what is new is passed on, and nothing if it
 * contradicts what was passed on before. */
void stream_tell_rest(struct driver *d, struct str whole) {
  struct str told = buf_view(&d->told);
  buf_clear(&d->of_text.held); /* the whole contains it */
  bool grows = whole.n >= told.n && (told.n == 0 || memcmp(whole.p, told.p, told.n) == 0);
  if (grows && whole.n > told.n)
    stream_tell(d, NEWS_TEXT, (struct str){whole.p + told.n, whole.n - told.n}, NULL);
  buf_clear(&d->told);
  buf_str(&d->told, whole);
}

void stream_add_message(struct buf *to, const struct buf *told) {
  buf_str(to, buf_view(told));
  to->cut |= told->cut;
  to->dropped += told->dropped;
}

void stream_end_message(struct driver *d, struct str id) {
  bool same = id.n > 0 && str_eq(id, buf_view(&d->last_id));
  if (d->told.n > 0) {
    if (d->all.n > 0 && !same && id.n > 0)
      buf_puts(&d->all, "\n\n");
    stream_add_message(&d->all, &d->told);
    if (!same)
      buf_clear(&d->last);
    stream_add_message(&d->last, &d->told);
  }
  buf_clear(&d->last_id);
  buf_str(&d->last_id, id);
  buf_clear(&d->told);
}
