/* Follows the bytes of an array as they arrive. */
#include "extract/items.h"

#include "extract/internal.h"
#include "json/scan.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { TAG_LOOK_BYTES = 24 }; /* room for the longest marker of a reasoning section */

void item_stream_init(struct item_stream *s, size_t max_item_bytes) {
  *s = (struct item_stream){.max = max_item_bytes, .item = SIZE_MAX, .line_start = true};
}

void item_stream_deinit(struct item_stream *s) {
  buf_deinit(&s->text);
  *s = (struct item_stream){0};
}

static bool items_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Forgets the first n bytes. */
static void items_forget(struct item_stream *s, size_t n) {
  if (n == 0)
    return;
  assert(n <= s->at);
  memmove(s->text.p, s->text.p + n, s->text.n - n);
  s->text.n -= n;
  s->at -= n;
  if (s->item != SIZE_MAX)
    s->item -= n;
}

/* --- before the array --- */

static void pass_byte(struct item_stream *s) {
  char c = s->text.p[s->at++];
  if (c == '\n' || c == '\r')
    s->line_start = true;
  else if (!items_space(c) && c != '\xEF' && c != '\xBB' && c != '\xBF') /* a byte order mark */
    s->line_start = false;
}

/* Returns false when it must wait for more bytes. */
static bool in_text(struct item_stream *s, bool ended) {
  char c = s->text.p[s->at];
  size_t closed;
  if (c == '<' || c == '[' || c == (char)0xE2) {
    char next = s->at + 1 < s->text.n ? s->text.p[s->at + 1] : '\0';
    bool marker = c != '[' || next == 't' || next == 'T' || next == '/';
    if (c == '[' && s->at + 1 >= s->text.n && !ended)
      return false;
    if (marker && !(ended || s->text.n - s->at >= TAG_LOOK_BYTES))
      return false;
    enum extract_tag tag =
        marker ? extract_tag_at(s->text.p, s->text.n, s->at, &closed) : EXTRACT_TAG_NO;
    if (tag == EXTRACT_TAG_OPENER) {
      s->state = ITEM_STREAM_REASONING;
      items_forget(s, s->at);
      s->look_again = 0;
      return true;
    }
    if (tag == EXTRACT_TAG_CLOSER) {
      s->at = closed;
      s->line_start = true;
      return true;
    }
  }
  if (c == '[' && s->line_start) {
    s->state = ITEM_STREAM_ITEM;
    s->at++;
    return true;
  }
  pass_byte(s);
  return true;
}

/* Returns true within a reasoning section. It is searched again once it has grown by an eighth:
 * work stays linear even with pieces of one byte. */
static bool in_reasoning(struct item_stream *s, bool ended) {
  size_t closed = SIZE_MAX;
  if (s->text.n < s->look_again && !ended)
    return false;
  s->look_again = s->text.n + s->text.n / 8 + 1;
  if (extract_tag_at(s->text.p, s->text.n, 0, &closed) != EXTRACT_TAG_OPENER || closed == SIZE_MAX)
    return false;
  s->state = ITEM_STREAM_TEXT;
  s->at = closed;
  s->line_start = true;
  return true;
}

/* --- inside the array --- */

static void leave(struct item_stream *s) {
  s->item = SIZE_MAX;
  s->state = s->count > 0 ? ITEM_STREAM_BROKEN : ITEM_STREAM_TEXT;
  s->line_start = false;
}

/* Finishes an item, the bytes [item, at). */
static void finish_item(struct item_stream *s, item_stream_fn fn, void *ctx) {
  struct jscan js;
  struct jscan_result r = {0};
  jscan_init(&js, s->text.p, s->at);
  enum jscan_code code = jscan_value(&js, s->item, &r);
  jscan_deinit(&js);
  bool taken = code == JSCAN_OK && r.end == s->at && fn(ctx, r.value);
  json_decref(r.value);
  if (!taken) {
    leave(s);
    return;
  }
  s->count++;
  s->item = SIZE_MAX;
  s->state = ITEM_STREAM_COMMA;
}

static void begin_item(struct item_stream *s) {
  char c = s->text.p[s->at];
  s->item = s->at;
  s->depth = c == '{' || c == '[';
  s->in_string = c == '"';
  s->escaped = false;
  s->at++;
}

/* Takes one byte of an open item; sets *over if the byte before `at` was its last. */
static void item_byte(struct item_stream *s, bool *over) {
  char c = s->text.p[s->at];
  bool container = s->text.p[s->item] == '{' || s->text.p[s->item] == '[';
  bool text = s->text.p[s->item] == '"';
  *over = false;
  if (s->in_string) {
    s->at++;
    if (s->escaped)
      s->escaped = false;
    else if (c == '\\')
      s->escaped = true;
    else if (c == '"') {
      s->in_string = false;
      *over = text;
    }
    return;
  }
  if (!container) { /* a number or a literal ends before what cannot be part of it */
    *over = items_space(c) || c == ',' || c == ']' || c == '}';
    s->at += !*over;
    return;
  }
  s->at++;
  if (c == '"')
    s->in_string = true;
  else if (c == '{' || c == '[')
    s->depth++;
  else if (c == '}' || c == ']')
    *over = --s->depth == 0;
}

static void in_array(struct item_stream *s, item_stream_fn fn, void *ctx) {
  bool over;
  if (s->item != SIZE_MAX) {
    item_byte(s, &over);
    if (s->max > 0 && s->at - s->item > s->max) {
      leave(s);
      s->state = ITEM_STREAM_BROKEN;
    } else if (over) {
      finish_item(s, fn, ctx);
    }
    return;
  }
  char c = s->text.p[s->at];
  if (items_space(c)) {
    s->at++;
  } else if (c == ']') {
    s->at++;
    s->state = s->count > 0 ? ITEM_STREAM_DONE : ITEM_STREAM_TEXT;
    s->line_start = false;
  } else if (s->state == ITEM_STREAM_COMMA) {
    if (c == ',')
      s->state = ITEM_STREAM_ITEM;
    else
      leave(s);
    s->at++;
  } else if (c == ',' || c == '}') {
    leave(s);
  } else {
    begin_item(s);
  }
}

static void items_run(struct item_stream *s, bool ended, item_stream_fn fn, void *ctx) {
  bool more = true;
  while (more && s->at < s->text.n)
    switch (s->state) {
    case ITEM_STREAM_TEXT:
      more = in_text(s, ended);
      break;
    case ITEM_STREAM_REASONING:
      more = in_reasoning(s, ended);
      break;
    case ITEM_STREAM_ITEM:
    case ITEM_STREAM_COMMA:
      in_array(s, fn, ctx);
      break;
    case ITEM_STREAM_DONE:
    case ITEM_STREAM_BROKEN:
      s->at = s->text.n;
      break;
    }
  if (s->item != SIZE_MAX)
    items_forget(s, s->item);
  else if (s->state != ITEM_STREAM_REASONING)
    items_forget(s, s->at);
}

void item_stream_feed(struct item_stream *s, const char *p, size_t n, item_stream_fn fn,
                      void *ctx) {
  assert(fn != NULL);
  if (s->state == ITEM_STREAM_DONE || s->state == ITEM_STREAM_BROKEN || n == 0)
    return;
  buf_append(&s->text, p, n);
  items_run(s, false, fn, ctx);
}

void item_stream_end(struct item_stream *s, item_stream_fn fn, void *ctx) {
  assert(fn != NULL);
  items_run(s, true, fn, ctx);
}
