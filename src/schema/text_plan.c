/* Remembers what a schema's program asked about objects, and finds it again by their keys. */
#include "schema/text_plan.h"

#include <stdlib.h>
#include <string.h>

/* --- what was asked --- */

void text_trace_begin(struct text_trace *t) {
  t->step_count = t->word_count = 0;
  t->over = false;
}

void text_trace_value(struct text_trace *t, size_t member, uint32_t node, bool yes) {
  for (size_t i = 0; i < t->step_count; i++)
    if (t->steps[i].node == node && t->steps[i].member == member)
      return;
  if (t->step_count == PLAN_STEPS_MAX)
    t->over = true;
  else
    t->steps[t->step_count++] = (struct plan_step){node, (uint8_t)member, yes};
}

static bool is_settled(const struct text_trace *t, size_t member) {
  for (size_t i = 0; i < t->word_count; i++)
    if (t->words[i].same && t->words[i].member == member)
      return true;
  return false;
}

/* A text that is one word is no other, so nothing else need be known about it. */
void text_trace_word(struct text_trace *t, size_t member, struct str word, bool same) {
  size_t kept = 0;
  if (is_settled(t, member))
    return;
  for (size_t i = 0; same && i < t->word_count; i++)
    if (t->words[i].member != member)
      t->words[kept++] = t->words[i];
  if (same)
    t->word_count = kept;
  if (t->word_count == PLAN_WORDS_MAX)
    t->over = true;
  else
    t->words[t->word_count++] = (struct plan_word){word, (uint8_t)member, same};
}

/* --- keeping --- */

static struct plan_place *place_behind(struct text_plans *p, struct plan_place *parent,
                                       struct str key) {
  struct plan_place **at = &parent->first;
  for (; *at != NULL; at = &(*at)->sibling)
    if ((*at)->key.n == key.n + 3 && memcmp((*at)->key.p + 1, key.p, key.n) == 0)
      return *at;
  if (p->place_count == PLAN_PLACES_MAX)
    return NULL;
  p->place_count++;
  struct plan_place *made = arena_alloc(&p->arena, sizeof *made);
  char *text = arena_alloc(&p->arena, key.n + 3);
  text[0] = '"';
  memcpy(text + 1, key.p, key.n);
  memcpy(text + 1 + key.n, "\":", 2);
  made->key = (struct str){text, key.n + 3};
  *at = made;
  return made;
}

static void *plan_copy(struct arena *arena, const void *from, size_t bytes) {
  void *copy = arena_alloc(arena, bytes + 1);
  if (bytes > 0)
    memcpy(copy, from, bytes);
  return copy;
}

void text_plans_add(struct text_plans *p, const struct text_object *object,
                    const struct text_trace *t) {
  struct plan_place *place = &p->root;
  if (t->over || object->count == 0)
    return;
  for (size_t i = 0; place != NULL && i < object->count; i++)
    place = place_behind(p, place, object->keys[i]);
  if (place == NULL || place->plan_count == PLAN_KINDS_MAX)
    return;
  for (const struct text_plan *plan = place->plans; plan != NULL; plan = plan->next)
    if (text_plan_fits(plan, object))
      return; /* the text has white space, or an asked value is missing */
  struct text_plan *plan = arena_alloc(&p->arena, sizeof *plan);
  *plan = (struct text_plan){
      .next = place->plans,
      .steps = plan_copy(&p->arena, t->steps, t->step_count * sizeof *t->steps),
      .words = plan_copy(&p->arena, t->words, t->word_count * sizeof *t->words),
      .step_count = t->step_count,
      .word_count = t->word_count,
  };
  place->plans = plan;
  place->plan_count++;
}

/* --- finding again --- */

static struct plan_place *place_at(const struct plan_place *parent, const char *text, size_t n) {
  for (struct plan_place *at = parent->first; at != NULL; at = at->sibling)
    if (n > at->key.n && text[1] == at->key.p[1] && memcmp(text, at->key.p, at->key.n) == 0)
      return at;
  return NULL;
}

void text_plan_take(struct text_plans *p, const struct text_value *v, uint32_t node) {
  struct plan_place *place = v->place;
  if (v->taken != NULL || v->type != JSON_OBJECT || v->text.n < PLAN_TAKEN_LEAST ||
      v->text.n > PLAN_TAKEN_MOST)
    return;
  if (place->taken == NULL)
    place->taken = xcalloc(PLAN_TAKEN_COUNT, sizeof *place->taken);
  struct plan_taken *taken = &place->taken[place->oldest % PLAN_TAKEN_COUNT];
  size_t others = p->taken_bytes - taken->text.cap;
  if (others + v->text.n > PLAN_TAKEN_ALL)
    return;
  place->oldest++;
  taken->node = node;
  buf_deinit(&taken->text);
  buf_str(&taken->text, v->text);
  p->taken_bytes = others + taken->text.cap;
}

static const struct plan_taken *taken_at(const struct plan_place *place, const char *at, size_t n) {
  for (size_t i = 0; place->taken != NULL && i < PLAN_TAKEN_COUNT; i++) {
    struct str text = buf_view(&place->taken[i].text);
    if (text.n > 0 && n >= text.n && memcmp(at, text.p, text.n) == 0)
      return &place->taken[i];
  }
  return NULL;
}

/* Finds a value as text_find_value does. One that was taken before is neither crossed nor read. */
static size_t find_taken(struct plan_place *place, const struct jscan *js, size_t at,
                         struct text_value *v) {
  v->place = place;
  v->taken = taken_at(place, js->text + at, js->n - at);
  if (v->taken == NULL)
    return text_find_value(js, at, v);
  v->text = (struct str){js->text + at, v->taken->text.n};
  v->type = JSON_OBJECT;
  v->escaped = false;
  v->read = true;
  return at + v->text.n;
}

const struct plan_place *text_plans_find(struct text_plans *p, const struct jscan *js,
                                         struct text_object *object, size_t *end) {
  struct plan_place *place = &p->root;
  size_t at = 1;
  object->count = 0;
  object->bits = 0;
  object->kind_key = NULL;
  for (;;) {
    if (js->n - at < 2)
      return NULL;
    place = place_at(place, js->text + at, js->n - at);
    if (place == NULL)
      return NULL;
    object->keys[object->count] = (struct str){js->text + at + 1, place->key.n - 3};
    at = find_taken(place, js, at + place->key.n, &object->values[object->count++]);
    if (at == 0 || at >= js->n)
      return NULL;
    if (js->text[at] == '}')
      break;
    if (js->text[at++] != ',')
      return NULL;
  }
  *end = at + 1;
  return place;
}

bool text_plan_fits(const struct text_plan *plan, const struct text_object *object) {
  for (size_t i = 0; i < plan->word_count; i++) {
    const struct plan_word *word = &plan->words[i];
    const struct text_value *v = &object->values[word->member];
    if (v->type != JSON_STRING || v->escaped || str_eq(v->text, word->word) != word->same)
      return false;
  }
  return true;
}

static void forget_taken(struct plan_place *place) {
  for (; place != NULL; place = place->sibling) {
    for (size_t i = 0; place->taken != NULL && i < PLAN_TAKEN_COUNT; i++)
      buf_deinit(&place->taken[i].text);
    free(place->taken);
    forget_taken(place->first);
  }
}

void text_plans_deinit(struct text_plans *p) {
  forget_taken(&p->root);
  arena_deinit(&p->arena);
  *p = (struct text_plans){0};
}
