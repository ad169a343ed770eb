/* Explains what the children of a group's turn found, one line each. */
#include "audit/explain_internal.h"

#include "base/log.h"

#include <stdlib.h>

enum { SHOWN_CHILDREN = 40 }; /* without --full */

struct told_child {
  long turn;
  uint64_t start, judged, last; /* places of records; judged: 0, none */
};

struct told_children {
  struct told_child *items;
  size_t count;
};

static bool is_child_of(const struct story *s, uint64_t seq) {
  struct err err;
  json_t *start = book_get(s->book, seq, &err);
  bool is_child = start != NULL && explain_number(start, "parent_turn") == s->turn;
  json_decref(start);
  return is_child;
}

static struct told_child *child_of_turn(const struct told_children *c, long turn) {
  size_t low = 0, high = c->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (c->items[middle].turn < turn)
      low = middle + 1;
    else
      high = middle;
  }
  return low < c->count && c->items[low].turn == turn ? &c->items[low] : NULL;
}

/* Finds the children. Turns are numbered as they begin, so the list is in order. */
static void find_children(const struct story *s, struct told_children *c) {
  for (size_t i = 0; i < s->book->place_count; i++) {
    const struct book_place *place = &s->book->places[i];
    struct told_child *child = child_of_turn(c, place->turn);
    bool starts = place->kind == BOOK_TURN_START && place->turn > s->turn;
    if (starts && child == NULL && is_child_of(s, place->seq)) {
      if (c->count % 64 == 0)
        c->items = xrealloc(c->items, (c->count + 64) * sizeof *c->items);
      child = &c->items[c->count++];
      *child = (struct told_child){.turn = place->turn, .start = place->seq};
    }
    if (child != NULL)
      child->last = place->seq;
    if (child != NULL && place->kind == BOOK_JUDGMENT)
      child->judged = place->seq;
  }
}

static void put_child(struct story *s, const struct told_child *child) {
  struct err err;
  json_t *start = book_get(s->book, child->start, &err);
  json_t *judged = child->judged > 0 ? book_get(s->book, child->judged, &err) : NULL;
  json_t *last = book_get(s->book, child->last, &err);
  struct buf name = {0};
  buf_puts(&name, explain_word(start, "movement"));
  if (explain_number(start, "item") > 0)
    buf_printf(&name, " %" JSON_INTEGER_FORMAT, explain_number(start, "item"));
  if (explain_word(last, "outcome")[0] != '\0')
    pen_line(&s->pen, 1, "turn %ld  %s  %s: %s", child->turn, buf_c(&name),
             explain_word(last, "outcome"), explain_word(last, "message"));
  else if (judged != NULL)
    pen_line(&s->pen, 1, "turn %ld  %s  %s  (%s)", child->turn, buf_c(&name),
             explain_word(judged, "condition"), explain_word(judged, "match_method"));
  else
    pen_line(&s->pen, 1, "turn %ld  %s  is at work", child->turn, buf_c(&name));
  buf_deinit(&name);
  json_decref(start);
  json_decref(judged);
  json_decref(last);
}

void explain_children(struct story *s) {
  struct told_children c = {0};
  if (s->movement == NULL || s->movement->child_count == 0)
    return;
  find_children(s, &c);
  pen_title(&s->pen, "children");
  for (size_t i = 0; i < c.count && (s->pen.full || i < SHOWN_CHILDREN); i++)
    put_child(s, &c.items[i]);
  if (!s->pen.full && c.count > SHOWN_CHILDREN)
    pen_line(&s->pen, 1, "and %zu more (--full shows them)", c.count - SHOWN_CHILDREN);
  if (c.count == 0)
    pen_line(&s->pen, 1, "none began");
  free(c.items);
}
