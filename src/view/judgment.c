/* Gathers what an explanation says. */
#include "view/judgment.h"

#include "audit/explain.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>
#include <stdlib.h>

static void judgment_keep(struct view_judgment *told, enum view_piece_kind kind, int depth,
                          struct str origin, struct str text) {
  struct view_piece piece = {.kind = kind, .depth = depth, .reading = told->reading};
  told->pieces = xgrow(told->pieces, &told->room, told->count + 1, sizeof *told->pieces);
  size_t max = origin.n > 0 ? told->referred_max : told->text_max;
  if (text.n > max) {
    size_t kept = utf8_floor(text.p, max);
    piece.more_bytes = text.n - kept;
    text.n = kept;
  }
  piece.origin = arena_str(&told->arena, origin);
  piece.text = arena_str(&told->arena, text);
  told->pieces[told->count++] = piece;
}

static void judgment_title(void *ctx, struct str text) {
  judgment_keep(ctx, VIEW_TITLE, 0, STR(""), text);
}

static void judgment_line(void *ctx, int depth, struct str text) {
  judgment_keep(ctx, VIEW_LINE, depth, STR(""), text);
}

static void judgment_text(void *ctx, struct str origin, struct str text) {
  struct view_judgment *told = ctx;
  judgment_keep(told, VIEW_TEXT, 0, origin, text);
  if (told->parts > 0)
    told->pieces[told->count - 1].part = told->parts++;
}

static void judgment_parts(void *ctx, bool begin) {
  struct view_judgment *told = ctx;
  told->parts = begin;
}

static void judgment_reading(void *ctx, bool begin) {
  struct view_judgment *told = ctx;
  told->reading = begin;
}

/* Finds the last text that was these bytes, as far as it was kept. */
static struct view_piece *judgment_find(struct view_judgment *told, struct str text) {
  for (size_t i = told->count; i-- > 0;) {
    struct view_piece *p = &told->pieces[i];
    if (p->kind == VIEW_TEXT && p->part == 0 && p->text.n + p->more_bytes == text.n &&
        str_eq(p->text, (struct str){text.p, p->text.n}))
      return p;
  }
  return NULL;
}

/* Marks a piece, once for each reason: several stages may read the same reply. */
static void judgment_mark(void *ctx, struct str text, size_t offset, size_t length,
                          enum text_writer_mark what) {
  struct view_judgment *told = ctx;
  struct view_piece *p = judgment_find(told, text);
  if (p == NULL || offset >= p->text.n)
    return;
  if (length > p->text.n - offset)
    length = p->text.n - offset;
  for (const struct view_mark *m = p->marks; m != NULL; m = m->next)
    if (m->offset == offset && m->length == length && m->what == what)
      return;
  struct view_mark *mark = arena_array(&told->arena, 1, sizeof *mark);
  *mark = (struct view_mark){offset, length, what, p->marks};
  p->marks = mark;
}

bool view_judgment_read(struct view_judgment *told, const struct verified_reader *book, long turn,
                        size_t text_max, size_t referred_max, struct err *err) {
  assert(told != NULL && book != NULL);
  *told = (struct view_judgment){.text_max = text_max, .referred_max = referred_max};
  const struct text_writer_sink sink = {.title = judgment_title,
                                        .line = judgment_line,
                                        .text = judgment_text,
                                        .parts = judgment_parts,
                                        .reading = judgment_reading,
                                        .mark = judgment_mark,
                                        .ctx = told};
  const struct explain_opts opts = {.full = true, .sink = &sink};
  buf_auto_t unused = {0};
  bool ok = explain_turn(book, turn, &opts, &unused, err);
  for (size_t i = 0; ok && i < book->place_count; i++) {
    if (book->places[i].kind != VERIFIED_JUDGMENT || book->places[i].turn != turn)
      continue;
    json_decref(told->judgment);
    told->judgment = verified_get(book, book->places[i].seq, err);
  }
  if (!ok)
    view_judgment_deinit(told);
  return ok;
}

bool view_judgment_is_cut(const struct view_judgment *told) {
  for (size_t i = 0; i < told->count; i++)
    if (told->pieces[i].more_bytes > 0)
      return true;
  return false;
}

static json_t *piece_json(const struct view_piece *p) {
  json_t *out = json_object();
  if (p->kind == VIEW_LINE) {
    json_put(out, "depth", json_integer(p->depth));
    json_put(out, "line", json_text(p->text));
    return out;
  }
  json_put(out, "text", json_text(p->text));
  json_put_text(out, "origin", p->origin);
  json_put_count(out, "more_bytes", (json_int_t)p->more_bytes);
  json_put_count(out, "part", p->part);
  json_t *marks = p->marks != NULL ? json_array() : NULL;
  for (const struct view_mark *m = p->marks; m != NULL; m = m->next)
    json_array_append_new(marks,
                          json_pack("{sI sI ss}", "offset", (json_int_t)m->offset, "length",
                                    (json_int_t)m->length, "what", writer_mark_name(m->what)));
  if (marks != NULL)
    json_put(out, "marks", marks);
  return out;
}

json_t *view_judgment_json(const struct view_judgment *told) {
  json_t *out = json_object(), *sections = json_array(), *pieces = NULL;
  json_put(out, "judgment", told->judgment ? json_incref(told->judgment) : json_null());
  for (size_t i = 0; i < told->count; i++) {
    const struct view_piece *p = &told->pieces[i];
    if (p->kind == VIEW_TITLE || pieces == NULL) {
      json_t *section = json_object();
      pieces = json_array();
      json_put(section, "title", json_text(p->kind == VIEW_TITLE ? p->text : STR("")));
      json_put(section, "pieces", pieces);
      json_array_append_new(sections, section);
    }
    if (p->kind != VIEW_TITLE)
      json_array_append_new(pieces, piece_json(p));
  }
  json_put(out, "told", sections);
  return out;
}

void view_judgment_deinit(struct view_judgment *told) {
  free(told->pieces);
  json_decref(told->judgment);
  arena_deinit(&told->arena);
  *told = (struct view_judgment){0};
}
