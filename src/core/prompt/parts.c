/* Joins pieces of text into the parts of a prompt, and parts into what a log says of them. */
#include "core/prompt/internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"

#include <stdlib.h>

void prompt_deinit(struct prompt *p) {
  buf_deinit(&p->bytes);
  free(p->parts);
  *p = (struct prompt){0};
}

static size_t part_start(const struct prompt *p, size_t i) {
  return i == 0 ? 0 : p->parts[i - 1].end;
}

static bool joins(const struct prompt *out, struct str piece, uint64_t seq, enum piece_kind kind) {
  if (out->count == 0 || seq != 0)
    return false;
  const struct prompt_part *last = &out->parts[out->count - 1];
  size_t last_n = last->end - part_start(out, out->count - 1);
  bool is_short = piece.n < LIMIT_REF_TEXT_BYTES;
  if (last->seq != 0 || last->own)
    return false;
  if (last->stable && (kind == PIECE_STABLE || (kind == PIECE_OWN && is_short)))
    return true;
  return is_short && last_n < LIMIT_REF_TEXT_BYTES;
}

void prompt_put(struct prompt *out, struct str piece, uint64_t seq, const char *key,
                enum piece_kind kind) {
  if (piece.n == 0)
    return;
  bool is_short = piece.n < LIMIT_REF_TEXT_BYTES;
  if (seq != 0 && is_short && utf8_valid(piece.p, piece.n))
    seq = 0; /* it is shorter than a reference; only a reference keeps other bytes exact */
  bool join = joins(out, piece, seq, kind);
  buf_str(&out->bytes, piece);
  if (!join) {
    if (out->count % 16 == 0)
      out->parts = xrealloc(out->parts, (out->count + 16) * sizeof *out->parts);
    out->parts[out->count++] = (struct prompt_part){.seq = seq,
                                                    .key = key,
                                                    .stable = kind != PIECE_CHANGES,
                                                    .own = kind == PIECE_OWN && !is_short};
  }
  out->parts[out->count - 1].end = out->bytes.n;
  out->parts[out->count - 1].stable &= kind != PIECE_CHANGES;
}

void prompt_log_init(struct prompt_log *log, const struct prompt *p, struct texts *texts) {
  *log = (struct prompt_log){
      .parts = xmalloc(p->count * (sizeof *log->parts + TEXTS_PLACE_BYTES) + 1), .count = p->count};
  char *place = (char *)(log->parts + p->count);
  for (size_t i = 0; i < p->count; i++, place += TEXTS_PLACE_BYTES) {
    struct str part = {p->bytes.p + part_start(p, i), p->parts[i].end - part_start(p, i)};
    bool found = p->parts[i].seq != 0;
    bool again = p->parts[i].stable || part.n >= LIMIT_OWN_PART_BYTES; /* worth looking up */
    if (found)
      texts_place(p->parts[i].seq, p->parts[i].key, place);
    else if (again)
      found = texts_find(texts, part, place);
    log->parts[i] = (struct record_part){found ? str_from(place) : part, found};
    if (found || utf8_valid(part.p, part.n))
      continue;
    json_t *shown = text_render(part); /* a text from outside: the log does not hold it whole */
    log->rendered = xrealloc(log->rendered, (log->rendered_count + 1) * sizeof *log->rendered);
    log->rendered[log->rendered_count++] = shown;
    log->parts[i].text = (struct str){json_string_value(shown), json_string_length(shown)};
  }
}

void prompt_log_deinit(struct prompt_log *log) {
  for (size_t i = 0; i < log->rendered_count; i++)
    json_decref(log->rendered[i]);
  free(log->rendered);
  free(log->parts);
}
