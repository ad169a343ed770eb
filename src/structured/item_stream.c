#include "structured/item_stream.h"

#include "structured/extract_internal.h"
#include "structured/jscan.h"

#include <stdint.h>
#include <string.h>

enum { TAG_LOOK_BYTES = 24 }; /* the longest marker of a reasoning section fits */

void item_stream_init(struct item_stream *s, size_t max_item_bytes) {
  *s = (struct item_stream){.max = max_item_bytes, .item = SIZE_MAX, .line_start = true};
}

void item_stream_deinit(struct item_stream *s) {
  jscan_free(s->text);
  *s = (struct item_stream){0};
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Forgets what is decided. */
static void drop(struct item_stream *s) {
  size_t keep = s->item != SIZE_MAX ? s->item : s->state == ITEM_STREAM_REASONING ? 0 : s->at;
  if (keep == 0)
    return;
  memmove(s->text, s->text + keep, s->n - keep);
  s->n -= keep;
  s->at -= keep;
  if (s->item != SIZE_MAX)
    s->item -= keep;
}

static bool take(struct item_stream *s, const char *p, size_t n) {
  if (s->n + n > s->cap) {
    size_t cap = s->cap ? s->cap : 256;
    while (cap < s->n + n)
      cap *= 2;
    char *text = jscan_realloc(s->text, cap);
    if (text == NULL)
      return false;
    s->text = text;
    s->cap = cap;
  }
  memcpy(s->text + s->n, p, n);
  s->n += n;
  return true;
}

/* --- before the array --- */

static void pass_byte(struct item_stream *s) {
  char c = s->text[s->at++];
  if (c == '\n' || c == '\r')
    s->line_start = true;
  else if (!is_space(c) && c != '\xEF' && c != '\xBB' && c != '\xBF') /* a byte order mark */
    s->line_start = false;
}

/* Enough bytes to tell a marker from what only begins like one? */
static bool can_tell(const struct item_stream *s, bool ended) {
  return ended || s->n - s->at >= TAG_LOOK_BYTES;
}

static void enter_reasoning(struct item_stream *s) {
  s->state = ITEM_STREAM_REASONING;
  drop(s);
  memmove(s->text, s->text + s->at, s->n - s->at);
  s->n -= s->at;
  s->at = 0;
  s->look_again = 0;
}

/* Returns false when it must wait for more bytes. */
static bool in_text(struct item_stream *s, bool ended) {
  char c = s->text[s->at];
  size_t closed;
  if (c == '<' || c == '[' || c == (char)0xE2) {
    char next = s->at + 1 < s->n ? s->text[s->at + 1] : '\0';
    bool marker = c != '[' || next == 't' || next == 'T' || next == '/';
    if (c == '[' && s->at + 1 >= s->n && !ended)
      return false;
    if (marker && !can_tell(s, ended))
      return false;
    enum extract_tag tag = marker ? extract_tag_at(s->text, s->n, s->at, &closed) : EXTRACT_TAG_NO;
    if (tag == EXTRACT_TAG_OPENER) {
      enter_reasoning(s);
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

/* The section is searched again when it grew by an eighth: work stays linear, pieces of one byte or
 * not. */
static bool in_reasoning(struct item_stream *s, bool ended) {
  size_t closed = SIZE_MAX;
  if (s->n < s->look_again && !ended)
    return false;
  s->look_again = s->n + s->n / 8 + 1;
  if (extract_tag_at(s->text, s->n, 0, &closed) != EXTRACT_TAG_OPENER || closed == SIZE_MAX)
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

/* The bytes [item, at) are one item. False: out of memory. */
static bool finish_item(struct item_stream *s, item_stream_fn fn, void *ctx) {
  struct jscan js;
  struct jscan_result r = {0};
  jscan_init(&js, s->text, s->at);
  enum jscan_code code = jscan_value(&js, s->item, &r);
  jscan_deinit(&js);
  if (code == JSCAN_OUT_OF_MEMORY)
    return false;
  bool taken = code == JSCAN_OK && r.end == s->at && fn(ctx, r.value);
  json_decref(r.value);
  if (!taken) {
    leave(s);
    return true;
  }
  s->count++;
  s->item = SIZE_MAX;
  s->state = ITEM_STREAM_COMMA;
  return true;
}

static void begin_item(struct item_stream *s) {
  char c = s->text[s->at];
  s->item = s->at;
  s->depth = c == '{' || c == '[';
  s->in_string = c == '"';
  s->escaped = false;
  s->at++;
}

/* One byte of an open item; *over when the byte before `at` was its last. */
static void item_byte(struct item_stream *s, bool *over) {
  char c = s->text[s->at];
  bool container = s->text[s->item] == '{' || s->text[s->item] == '[';
  bool text = s->text[s->item] == '"';
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
    *over = is_space(c) || c == ',' || c == ']' || c == '}';
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

/* False: out of memory. */
static bool in_array(struct item_stream *s, item_stream_fn fn, void *ctx) {
  bool over;
  if (s->item != SIZE_MAX) {
    item_byte(s, &over);
    if (s->max > 0 && s->at - s->item > s->max) {
      leave(s);
      s->state = ITEM_STREAM_BROKEN;
      return true;
    }
    return !over || finish_item(s, fn, ctx);
  }
  char c = s->text[s->at];
  if (is_space(c)) {
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
  return true;
}

static bool run(struct item_stream *s, bool ended, item_stream_fn fn, void *ctx) {
  bool more = true;
  while (more && s->at < s->n && !s->failed)
    switch (s->state) {
    case ITEM_STREAM_TEXT:
      more = in_text(s, ended);
      break;
    case ITEM_STREAM_REASONING:
      more = in_reasoning(s, ended);
      break;
    case ITEM_STREAM_ITEM:
    case ITEM_STREAM_COMMA:
      s->failed = !in_array(s, fn, ctx);
      break;
    case ITEM_STREAM_DONE:
    case ITEM_STREAM_BROKEN:
      s->at = s->n;
      break;
    }
  drop(s);
  return !s->failed;
}

bool item_stream_feed(struct item_stream *s, const char *p, size_t n, item_stream_fn fn,
                      void *ctx) {
  if (s->failed || s->state == ITEM_STREAM_DONE || s->state == ITEM_STREAM_BROKEN || n == 0)
    return !s->failed;
  if (!take(s, p, n)) {
    s->failed = true;
    return false;
  }
  return run(s, false, fn, ctx);
}

bool item_stream_end(struct item_stream *s, item_stream_fn fn, void *ctx) {
  return !s->failed && run(s, true, fn, ctx);
}
