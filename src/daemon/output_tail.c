/* Keeps the end of what running calls have said. */
#include "daemon/output_tail.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static void output_tail_drop(struct output_tails *ts, struct output_tail *t) {
  list_remove(&ts->all, &t->in_tails);
  ts->bytes -= t->text.text.cap + t->thinking.text.cap;
  buf_deinit(&t->text.text);
  buf_deinit(&t->thinking.text);
  free(t);
}

static struct output_tail *output_tail_find(const struct output_tails *ts, const char *id,
                                            long call) {
  LIST_EACH(struct output_tail, t, in_tails, (struct list *)&ts->all)
    if (t->call == call && strcmp(t->id, id) == 0)
      return t;
  return NULL;
}

/* Gathers twice the bound before it drops the first half, so that little is moved. */
static void said_add(struct output_tail_said *said, struct str text, size_t max) {
  said->end += text.n;
  if (text.n > max) {
    size_t from = utf8_ceil(text.p, text.n, text.n - max);
    buf_clear(&said->text);
    text = (struct str){text.p + from, text.n - from};
  }
  buf_str(&said->text, text);
  if (said->text.n <= 2 * max)
    return;
  size_t from = utf8_ceil(said->text.p, said->text.n, said->text.n - max);
  memmove(said->text.p, said->text.p + from, said->text.n - from);
  said->text.n -= from;
  said->text.p[said->text.n] = '\0';
}

struct output_tail *output_tails_add(struct output_tails *ts, const char *id, long turn, long call,
                                     bool thinking, struct str text) {
  struct output_tail *t = output_tail_find(ts, id, call);
  if (t == NULL) {
    t = xcalloc(1, sizeof *t);
    memcpy(t->id, id, sizeof t->id);
    t->turn = turn;
    t->call = call;
  } else {
    list_remove(&ts->all, &t->in_tails);
  }
  list_push_front(&ts->all, &t->in_tails);
  struct output_tail_said *said = thinking ? &t->thinking : &t->text;
  size_t before = said->text.cap;
  said_add(said, text, thinking ? LIMIT_TAIL_THINKING_BYTES / 2 : LIMIT_TAIL_TEXT_BYTES / 2);
  ts->bytes += said->text.cap - before;
  while (ts->bytes > LIMIT_TAIL_ALL_BYTES && ts->all.count > 1)
    output_tail_drop(ts, LIST_ITEM(ts->all.last, struct output_tail, in_tails));
  return t;
}

void output_tails_end(struct output_tails *ts, const char *id, long call) {
  LIST_EACH(struct output_tail, t, in_tails, &ts->all)
    if ((call == 0 || t->call == call) && strcmp(t->id, id) == 0)
      output_tail_drop(ts, t);
}

size_t output_tails_of(const struct output_tails *ts, const char *id, struct page_said **list) {
  size_t n = 0;
  *list = NULL;
  LIST_EACH(struct output_tail, t, in_tails, (struct list *)&ts->all) {
    if (strcmp(t->id, id) != 0)
      continue;
    *list = xrealloc(*list, (n + 1) * sizeof **list);
    (*list)[n++] = (struct page_said){.turn = t->turn,
                                      .call = t->call,
                                      .text = xstrdup(buf_c(&t->text.text)),
                                      .thinking = xstrdup(buf_c(&t->thinking.text)),
                                      .text_end = t->text.end,
                                      .thinking_end = t->thinking.end};
  }
  return n;
}

void output_tails_deinit(struct output_tails *ts) {
  LIST_EACH(struct output_tail, t, in_tails, &ts->all)
    output_tail_drop(ts, t);
}
