/* Hands out records as they are in the log. */
#include "view/raw.h"

#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { TAIL_BYTES = 80 }; /* of a line: its hash stands there */

/* Returns the text of a member near the beginning of a line, as segue writes it. */
static struct str near_begin(struct str line, const char *key) {
  size_t n = strlen(key);
  struct str head = {line.p, line.n < 240 ? line.n : 240};
  const char *at = memmem(head.p, head.n, key, n);
  if (at == NULL)
    return STR("");
  const char *from = at + n, *end = memchr(from, '"', (size_t)(head.p + head.n - from));
  return end != NULL ? (struct str){from, (size_t)(end - from)} : STR("");
}

static struct str hash_of(struct str tail) {
  static const char key[] = "\"hash\":\"";
  const char *at = memmem(tail.p, tail.n, key, sizeof key - 1);
  if (at == NULL || (size_t)(tail.p + tail.n - at) < sizeof key - 1 + SHA256_HEX - 1)
    return STR("");
  return (struct str){at + sizeof key - 1, SHA256_HEX - 1};
}

static bool raw_read(struct view_raws *raws, const struct verified_reader *book,
                     const struct verified_reader_place *place, size_t text_max, struct err *err) {
  struct view_raw *raw = &raws->items[raws->count++];
  char tail[TAIL_BYTES];
  size_t tail_n = place->bytes < TAIL_BYTES ? place->bytes : TAIL_BYTES;
  size_t n = place->bytes < text_max ? place->bytes : text_max;
  char *line = arena_alloc(&raws->arena, n + 1);
  if (!reader_read_all(&book->reader, place->offset, line, n) ||
      !reader_read_all(&book->reader, place->offset + place->bytes - tail_n, tail, tail_n))
    return err_set(err, ERR_CORRUPT, "record %llu cannot be read again",
                   (unsigned long long)place->seq);
  size_t kept = n < place->bytes ? utf8_floor(line, n) : n;
  *raw = (struct view_raw){.seq = place->seq,
                           .turn = place->turn,
                           .line = {line, kept},
                           .more_bytes = place->bytes - kept,
                           .unproven = place->seq > book->records};
  raw->type = near_begin(raw->line, "\"type\":\"");
  raw->ts = near_begin(raw->line, "\"ts\":\"");
  raw->hash = arena_str(&raws->arena, hash_of((struct str){tail, tail_n}));
  return true;
}

static size_t first_behind(const struct verified_reader *book, uint64_t after) {
  size_t low = 0, high = book->place_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (book->places[middle].seq <= after)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool view_raws_read(struct view_raws *raws, const struct verified_reader *book, uint64_t after,
                    size_t max, size_t text_max, struct err *err) {
  assert(raws != NULL && book != NULL);
  *raws = (struct view_raws){0};
  size_t i = first_behind(book, after);
  raws->items = arena_array(&raws->arena, max + 1, sizeof *raws->items);
  bool ok = true;
  for (; ok && i < book->place_count && raws->count < max; i++)
    ok = raw_read(raws, book, &book->places[i], text_max, err);
  if (ok && i < book->place_count)
    raws->next = book->places[i - 1].seq;
  if (!ok)
    view_raws_deinit(raws);
  return ok;
}

void view_raws_deinit(struct view_raws *raws) {
  arena_deinit(&raws->arena);
  *raws = (struct view_raws){0};
}

/* --- as JSON --- */

json_t *view_raws_json(const struct verified_reader *book, uint64_t after, size_t max,
                       size_t max_bytes, struct err *err) {
  size_t bytes = 0, i = first_behind(book, after);
  json_t *list = json_array(), *out = json_object();
  json_put(out, "records", list);
  for (; i < book->place_count && json_array_size(list) < max; i++) {
    bytes += book->places[i].bytes;
    if (bytes > max_bytes && json_array_size(list) > 0)
      break;
    json_t *record = verified_get(book, book->places[i].seq, err);
    if (record == NULL) {
      json_decref(out);
      return NULL;
    }
    json_array_append_new(list, record);
  }
  bool more = i > 0 && i < book->place_count;
  json_put(out, "next", more ? json_integer((json_int_t)book->places[i - 1].seq) : json_null());
  return out;
}

json_t *view_call_json(const struct verified_reader *book, long call, size_t max_bytes,
                       struct err *err) {
  json_t *list = json_array();
  size_t bytes = 0;
  for (size_t i = 0; i < book->place_count && bytes < max_bytes; i++) {
    /* The beginning of a line names its call: other calls' lines need not be read whole. */
    char head[240], word[40];
    size_t n = book->places[i].bytes < sizeof head ? book->places[i].bytes : sizeof head;
    int word_n = snprintf(word, sizeof word, "\"call\":%ld", call);
    if (book->places[i].turn == 0 ||
        !reader_read_all(&book->reader, book->places[i].offset, head, n) ||
        memmem(head, n, word, (size_t)word_n) == NULL)
      continue;
    json_auto_t *record = verified_get(book, book->places[i].seq, err);
    if (record != NULL && json_int_at(record, "call") == call) {
      bytes += book->places[i].bytes;
      json_array_append(list, record);
    }
  }
  if (json_array_size(list) == 0) {
    json_decref(list);
    err_set(err, ERR_NOT_FOUND, "there is no call %ld in this session", call);
    return NULL;
  }
  return json_pack("{sI so}", "call", (json_int_t)call, "records", list);
}

/* --- single texts --- */

static bool excerpt_line(struct view_excerpt *e, const struct verified_reader *book, uint64_t seq,
                         size_t offset, size_t max, struct err *err) {
  size_t i = first_behind(book, seq - 1);
  if (seq == 0 || i == book->place_count || book->places[i].seq != seq)
    return err_set(err, ERR_NOT_FOUND, "there is no record %llu", (unsigned long long)seq);
  const struct verified_reader_place *place = &book->places[i];
  e->bytes = place->bytes;
  e->offset = offset < e->bytes ? offset : e->bytes;
  size_t back = e->offset < 3 ? e->offset : 3; /* a character may begin there */
  size_t left = e->bytes - e->offset, n = back + (left < max ? left : max);
  char_auto_t *piece = xmalloc(n + 1);
  bool ok = reader_read_all(&book->reader, place->offset + e->offset - back, piece, n) ||
            err_set(err, ERR_CORRUPT, "record %llu cannot be read again", (unsigned long long)seq);
  size_t from = ok ? utf8_floor(piece, back) : 0, to = n - back < left ? utf8_floor(piece, n) : n;
  if (ok)
    buf_append(&e->buf, piece + from, to - from);
  e->offset -= back - from;
  e->text = buf_view(&e->buf);
  return ok;
}

bool view_excerpt_read(struct view_excerpt *e, const struct verified_reader *book, const char *ref,
                       size_t offset, size_t max, struct err *err) {
  struct resolve recall = verified_recall(book);
  long seq;
  *e = (struct view_excerpt){0};
  if (str_to_long(str_from(ref), &seq) && seq > 0)
    return excerpt_line(e, book, (uint64_t)seq, offset, max, err);
  json_auto_t *parts = json_pack("[{ss}]", "ref", ref);
  if (parts == NULL || !resolve_parts(&recall, parts, &e->buf, err)) {
    view_excerpt_deinit(e);
    err->code = ERR_NOT_FOUND;
    return false;
  }
  struct str all = buf_view(&e->buf);
  size_t from = offset < all.n ? utf8_floor(all.p, offset) : all.n;
  size_t n = all.n - from < max ? all.n - from : utf8_floor(all.p + from, max);
  e->text = (struct str){buf_c(&e->buf) + from, n};
  e->offset = from;
  e->bytes = all.n;
  return true;
}

void view_excerpt_deinit(struct view_excerpt *e) {
  buf_deinit(&e->buf);
  *e = (struct view_excerpt){0};
}

json_t *view_text_json(const struct verified_reader *book, const char *ref, size_t offset,
                       size_t max, struct err *err) {
  AUTO(view_excerpt_deinit) struct view_excerpt e = {0};
  if (!view_excerpt_read(&e, book, ref, offset, max, err))
    return NULL;
  size_t next = e.offset + e.text.n;
  json_t *out = json_object();
  json_put(out, "ref", json_text(str_from(ref)));
  json_put(out, "offset", json_integer((json_int_t)e.offset));
  json_put(out, "bytes", json_integer((json_int_t)e.bytes));
  json_put(out, "text", json_text(e.text));
  json_put(out, "next", next < e.bytes ? json_integer((json_int_t)next) : json_null());
  return out;
}
