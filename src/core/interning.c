/* Remembers by hash where each text was first logged. */
#include "core/interning.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/sha256.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct texts_entry {
  uint64_t key[2];
  uint64_t seq; /* 0: the slot is free */
  uint32_t field, index;
};

enum { RECENT_COUNT = 16, RECENT_BYTES = 1024 }; /* at most 16 KiB a session, seldom more than 2 */

struct texts_recent {
  struct recent_text {
    char *text;
    size_t n;
    struct texts_entry entry;
  } texts[RECENT_COUNT];
  size_t next; /* the one to be replaced next */
};

static const char *const movement_fields[] = {
    [TEXT_PART] = "",
    [TEXT_PERSONA] = "/persona",
    [TEXT_POLICY] = "/policy",
    [TEXT_KNOWLEDGE] = "/knowledge",
    [TEXT_INSTRUCTION] = "/instruction",
};

/* The movement's place in the list is in the low bits; a child's place in its group, from 1, is
 * above them. */
enum { CHILD_SHIFT = 16 };

uint32_t texts_child_index(size_t group, size_t child) {
  assert(group >> CHILD_SHIFT == 0 && (child + 1) >> CHILD_SHIFT == 0);
  return (uint32_t)(group | (child + 1) << CHILD_SHIFT);
}

static void texts_key_of(struct str text, uint64_t key[2]) {
  unsigned char raw[32];
  sha256_raw(text.p, text.n, NULL, 0, raw);
  memcpy(key, raw, 16);
}

static struct texts_entry *slot(struct texts_entry *slots, uint32_t cap, const uint64_t key[2]) {
  uint32_t i = (uint32_t)key[0] & (cap - 1);
  while (slots[i].seq != 0 && (slots[i].key[0] != key[0] || slots[i].key[1] != key[1]))
    i = (i + 1) & (cap - 1);
  return &slots[i];
}

void texts_add(struct texts *t, struct str text, uint64_t seq, enum text_field field,
               uint32_t index) {
  uint64_t key[2];
  if (text.n < LIMIT_REF_TEXT_BYTES || t->count >= LIMIT_TEXTS_COUNT)
    return; /* an unknown text is simply written again */
  if (t->count * 4 >= t->cap * 3) {
    uint32_t cap = t->cap ? t->cap * 2 : 16;
    struct texts_entry *slots = xcalloc(cap, sizeof *slots);
    for (uint32_t i = 0; i < t->cap; i++)
      if (t->slots[i].seq != 0)
        *slot(slots, cap, t->slots[i].key) = t->slots[i];
    free(t->slots);
    t->slots = slots;
    t->cap = cap;
  }
  texts_key_of(text, key);
  struct texts_entry *e = slot(t->slots, t->cap, key);
  if (e->seq != 0)
    return;
  *e = (struct texts_entry){{key[0], key[1]}, seq, (uint32_t)field, index};
  t->count++;
}

/* Copies a text and returns its end. A turn writes some twenty places: snprintf would be too
 * slow. */
static char *texts_put_text(char *at, const char *text) {
  size_t n = strlen(text);
  memcpy(at, text, n + 1);
  return at + n;
}

void texts_place(uint64_t seq, const char *member, char place[TEXTS_PLACE_BYTES]) {
  char *at = place + str_from_number(place, (int64_t)seq);
  (void)texts_put_text(texts_put_text(at, "#/"), member);
}

/* Finds a text that was logged before: a movement that is asked again gets the same words. */
static const struct texts_entry *texts_seen(struct texts *t, struct str text) {
  uint64_t key[2];
  for (size_t i = 0; t->recent != NULL && i < RECENT_COUNT; i++) {
    const struct recent_text *r = &t->recent->texts[i];
    if (r->n == text.n && memcmp(r->text, text.p, text.n) == 0)
      return &r->entry;
  }
  texts_key_of(text, key);
  const struct texts_entry *e = slot(t->slots, t->cap, key);
  if (e->seq == 0 || text.n > RECENT_BYTES)
    return e;
  if (t->recent == NULL)
    t->recent = xcalloc(1, sizeof *t->recent);
  struct recent_text *r = &t->recent->texts[t->recent->next++ % RECENT_COUNT];
  free(r->text);
  *r = (struct recent_text){xstrndup(text.p, text.n), text.n, *e};
  return e;
}

bool texts_find(struct texts *t, struct str text, char place[TEXTS_PLACE_BYTES]) {
  if (text.n < LIMIT_REF_TEXT_BYTES || t->cap == 0)
    return false;
  const struct texts_entry *e = texts_seen(t, text);
  if (e->seq == 0)
    return false;
  bool in_prompt = e->field == TEXT_PART;
  uint32_t child = in_prompt ? 0 : e->index >> CHILD_SHIFT;
  char *at = place + str_from_number(place, (int64_t)e->seq);
  at = texts_put_text(at, in_prompt ? "#/prompt/" : "#/workflow/movements/");
  at += str_from_number(at, in_prompt ? e->index : e->index & ((1u << CHILD_SHIFT) - 1));
  if (child > 0) {
    at = texts_put_text(at, "/parallel/");
    at += str_from_number(at, child - 1);
  }
  (void)texts_put_text(at, movement_fields[e->field]);
  return true;
}

void texts_deinit(struct texts *t) {
  for (size_t i = 0; t->recent != NULL && i < RECENT_COUNT; i++)
    free(t->recent->texts[i].text);
  free(t->recent);
  free(t->slots);
  *t = (struct texts){0};
}
