/* Weighs candidates: which value of a text is the answer. */
#include "extract/internal.h"

#include "format/json_value.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

void extract_slot_drop(struct extract_slot *slot) {
  json_decref(slot->value);
  *slot = (struct extract_slot){.note = SIZE_MAX};
}

bool extract_root_ok(enum extract_want want, const json_t *v) {
  switch (want) {
  case EXTRACT_WANT_ANY:
    return true;
  case EXTRACT_WANT_OBJECT:
    return json_is_object(v);
  case EXTRACT_WANT_ARRAY:
    return json_is_array(v);
  }
  return false;
}

enum extract_stage extract_stage_of(const struct extract_pass *p, size_t start, size_t end,
                                    bool fenced) {
  if (start <= p->trim_start && end >= p->trim_end)
    return EXTRACT_DIRECT;
  return fenced ? EXTRACT_CODE_BLOCK : EXTRACT_BRACE;
}

size_t extract_note_add(struct extract_pass *p, size_t start, size_t end, enum extract_stage stage,
                        const char *outcome, size_t error_offset) {
  struct extract_result *out = p->out;
  if (!p->opts->explain)
    return SIZE_MAX;
  if (out->note_count == EXTRACT_NOTES_MAX) {
    out->notes_dropped++;
    return SIZE_MAX;
  }
  if (!out->notes)
    out->notes = xcalloc(EXTRACT_NOTES_MAX, sizeof *out->notes);
  out->notes[out->note_count] = (struct extract_note){.offset = start,
                                                      .length = end > start ? end - start : 0,
                                                      .stage = stage,
                                                      .outcome = outcome,
                                                      .error_offset = error_offset};
  return out->note_count++;
}

static void note_set(struct extract_pass *p, size_t note, const char *outcome) {
  if (note < p->out->note_count)
    p->out->notes[note].outcome = outcome;
}

/* Returns true if v holds a key of the answer itself. The name of a tool call is that of the tool,
 * and an object of nothing but null says nothing. */
static bool holds_key(const struct extract_pass *p, const json_t *v) {
  const struct extract_check *check = p->opts->check;
  bool call = json_object_get(v, "arguments") != NULL || json_object_get(v, "parameters") != NULL;
  bool holds = false, says = false;
  const char *key;
  size_t n;
  json_t *member;
  if (check->is_key == NULL)
    return false;
  json_object_keylen_foreach((json_t *)v, key, n, member) {
    holds = holds || (check->is_key(check->ctx, key, n) && !(call && strcmp(key, "name") == 0));
    says = says || !json_is_null(member);
  }
  return holds && says;
}

static enum extract_within unwrap_at(struct extract_pass *p, json_t *v, int depth,
                                     json_t **owned_found);

static enum extract_within unwrap_string(struct extract_pass *p, const json_t *v, int depth,
                                         json_t **owned_found) {
  struct str s = str_trim((struct str){json_string_value(v), json_string_length(v)});
  struct jscan_result r;
  if (s.n == 0 || (s.p[0] != '{' && s.p[0] != '['))
    return EXTRACT_WITHIN_NOTHING;
  enum extract_within found = EXTRACT_WITHIN_NOTHING;
  if (jscan_whole(s, &r) == JSCAN_OK)
    found = unwrap_at(p, r.value, depth, owned_found);
  json_decref(r.value);
  return found;
}

/* Keeps the later of two findings: what `next` found, if anything. */
static void unwrap_later(enum extract_within *found, json_t **owned_found, enum extract_within next,
                         json_t *owned_next) {
  if (next == EXTRACT_WITHIN_NOTHING)
    return;
  json_decref(*owned_found);
  *owned_found = owned_next;
  *found = next;
}

static enum extract_within unwrap_at(struct extract_pass *p, json_t *v, int depth,
                                     json_t **owned_found) {
  enum extract_within found = EXTRACT_WITHIN_NOTHING;
  *owned_found = NULL;
  if (extract_root_ok(p->opts->want, v) && p->opts->check->valid(p->opts->check->ctx, v)) {
    *owned_found = json_incref(v);
    return EXTRACT_WITHIN_VALID;
  }
  if (json_is_object(v) && holds_key(p, v))
    return EXTRACT_WITHIN_REFUSED; /* it is an answer, and was refused: nothing in it is another */
  if (depth >= EXTRACT_UNWRAP_DEPTH)
    return EXTRACT_WITHIN_NOTHING;
  json_t *inner;
  if (json_is_object(v)) {
    const char *key;
    json_t *member;
    json_object_foreach(v, key, member) {
      enum extract_within next = unwrap_at(p, member, depth + 1, &inner);
      unwrap_later(&found, owned_found, next, inner);
    }
  } else if (json_is_array(v)) {
    for (size_t i = 0; i < json_array_size(v); i++) {
      enum extract_within next = unwrap_at(p, json_array_get(v, i), depth + 1, &inner);
      unwrap_later(&found, owned_found, next, inner);
    }
  } else if (json_is_string(v)) {
    found = unwrap_string(p, v, depth + 1, owned_found);
  }
  return found;
}

enum extract_within extract_unwrap(struct extract_pass *p, json_t *v, json_t **owned_found) {
  enum extract_within found = unwrap_at(p, v, 0, owned_found);
  if (found == EXTRACT_WITHIN_VALID && p->opts->whole && *owned_found != v) {
    json_decref(*owned_found);
    *owned_found = NULL;
    found = p->opts->check->is_key ? EXTRACT_WITHIN_REFUSED : EXTRACT_WITHIN_NOTHING;
  }
  return found;
}

static void pick_keep(struct extract_pass *p, struct extract_slot *slot, struct extract_slot next) {
  note_set(p, slot->note, "superseded");
  extract_slot_drop(slot);
  *slot = next;
}

void extract_refuse_drafts(struct extract_pass *p, const char *why) {
  if (p->valid.value) {
    p->draft_seen = true;
    p->draft_offset = p->valid.offset;
    note_set(p, p->valid.note, why);
    extract_slot_drop(&p->valid);
  }
}

static void keep_answer(struct extract_pass *p, const struct extract_slot *s) {
  struct extract_answers *a = p->opts->answers;
  if (a == NULL)
    return;
  if (a->count == EXTRACT_ANSWERS_MAX) {
    a->dropped++;
    return;
  }
  if (a->items == NULL)
    a->items = xcalloc(EXTRACT_ANSWERS_MAX, sizeof *a->items);
  a->items[a->count++] = (struct extract_answer){json_incref(s->value), s->offset, s->length};
}

static void weigh_checked(struct extract_pass *p, struct extract_slot s) {
  const struct extract_check *check = p->opts->check;
  if (check->is_schema_echo && check->is_schema_echo(check->ctx, s.value)) {
    p->echo_seen = true;
    note_set(p, s.note, "schema_echo");
    extract_slot_drop(&s);
    return;
  }
  json_t *found;
  enum extract_within within = extract_unwrap(p, s.value, &found);
  if (within != EXTRACT_WITHIN_NOTHING)
    keep_answer(p, &s);
  if (within == EXTRACT_WITHIN_VALID) {
    s.unwrapped = found != s.value;
    json_decref(s.value);
    s.value = found;
    note_set(p, s.note, s.unwrapped ? "valid_inside" : "valid");
    p->other_seen = p->other_seen || (p->valid.value && !json_same(p->valid.value, s.value));
    pick_keep(p, &p->valid, s);
    return;
  }
  if (within == EXTRACT_WITHIN_REFUSED) {
    p->other_seen = true;
    extract_refuse_drafts(p, "before_refused");
  }
  if (!extract_root_ok(p->opts->want, s.value)) {
    p->wrong_root_seen = true;
    p->wrong_root_offset = s.offset;
    note_set(p, s.note, "wrong_root");
    extract_slot_drop(&s);
    return;
  }
  note_set(p, s.note, "not_valid");
  s.nearness = check->nearness ? check->nearness(check->ctx, s.value) : 0;
  /* A value without any required key is an answer only if it is the whole text or stands in a
   * fence. */
  if (s.nearness <= 0 && s.stage == EXTRACT_BRACE) {
    p->empty_refused =
        p->empty_refused || (json_is_object(s.value) && json_object_size(s.value) == 0);
    extract_slot_drop(&s);
    return;
  }
  if (p->near.value && s.nearness < p->near.nearness)
    extract_slot_drop(&s);
  else
    pick_keep(p, &p->near, s);
}

static bool is_empty(const json_t *v) {
  return (json_is_object(v) && json_object_size(v) == 0) ||
         (json_is_array(v) && json_array_size(v) == 0);
}

void extract_candidate(struct extract_pass *p, size_t start, const struct jscan_result *read,
                       bool inside) {
  size_t end = read->end;
  struct extract_slot s = {.value = read->value,
                           .offset = start,
                           .length = end - start,
                           .duplicate_key = read->duplicate_key};
  s.stage = extract_stage_of(p, start, end, p->fence_open);
  s.note = extract_note_add(p, start, end, s.stage, inside ? "inside_broken" : "candidate", 0);
  if (s.note < p->out->note_count)
    p->out->notes[s.note].duplicate_key = read->duplicate_key;
  if (inside) {
    extract_slot_drop(&s);
    return;
  }
  if (p->opts->check) {
    weigh_checked(p, s);
    return;
  }
  if (!extract_root_ok(p->opts->want, s.value)) {
    p->wrong_root_seen = true;
    p->wrong_root_offset = start;
    note_set(p, s.note, "wrong_root");
    extract_slot_drop(&s);
  } else if (is_empty(s.value)) {
    note_set(p, s.note, "empty");
    pick_keep(p, &p->empty, s);
  } else {
    pick_keep(p, &p->plain, s);
  }
}
