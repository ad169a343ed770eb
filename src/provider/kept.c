/* Keeps a bounded part of a program's output, without secrets. */
#include "provider/kept.h"

void kept_init(struct kept *k, const struct secrets *secrets, size_t max) {
  *k = (struct kept){0};
  redactor_init(&k->redactor, secrets);
  head_tail_init(&k->bytes, max);
}

void kept_push(struct kept *k, struct str piece) {
  if (secrets_are_empty(k->redactor.secrets)) {
    head_tail_append(&k->bytes, piece);
    return;
  }
  redactor_push(&k->redactor, piece, &k->piece);
  head_tail_append(&k->bytes, buf_view(&k->piece));
  buf_clear(&k->piece);
}

void kept_take(struct kept *k, struct text *text, uint64_t *dropped) {
  redactor_flush(&k->redactor, &k->piece);
  head_tail_append(&k->bytes, buf_view(&k->piece));
  buf_clear(&k->piece);
  text->bytes = head_tail_finish(&k->bytes);
  *dropped = text->bytes.dropped;
}

void kept_deinit(struct kept *k) {
  redactor_deinit(&k->redactor);
  buf_deinit(&k->piece);
  head_tail_deinit(&k->bytes);
}
