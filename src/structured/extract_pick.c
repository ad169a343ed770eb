#include "extract_internal.h"

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
  if (!p->opts->explain || p->oom)
    return SIZE_MAX;
  if (out->note_count == EXTRACT_NOTES_MAX) {
    out->notes_dropped++;
    return SIZE_MAX;
  }
  if (!out->notes) {
    out->notes = jscan_realloc(NULL, EXTRACT_NOTES_MAX * sizeof *out->notes);
    if (!out->notes) {
      p->oom = true;
      return SIZE_MAX;
    }
  }
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

static bool fits(const struct extract_pass *p, const json_t *v) {
  return extract_root_ok(p->opts->want, v) && p->opts->check->valid(p->opts->check->ctx, v);
}

static json_t *unwrap_string(struct extract_pass *p, const json_t *v, int depth) {
  const char *s = json_string_value(v);
  size_t n = json_string_length(v), i = 0;
  while (n && jscan_one_of(" \t\r\n", s[n - 1]) && s[n - 1])
    n--;
  while (i < n && jscan_one_of(" \t\r\n", s[i]) && s[i])
    i++;
  if (i >= n || (s[i] != '{' && s[i] != '['))
    return NULL;
  struct jscan js;
  struct jscan_result r;
  jscan_init(&js, s, n);
  enum jscan_code code = jscan_value(&js, i, &r);
  jscan_deinit(&js);
  if (code == JSCAN_OUT_OF_MEMORY)
    p->oom = true;
  if (code != JSCAN_OK)
    return NULL;
  json_t *found = r.end == n ? extract_unwrap(p, r.value, depth) : NULL;
  json_decref(r.value);
  return found;
}

json_t *extract_unwrap(struct extract_pass *p, json_t *v, int depth) {
  if (p->oom)
    return NULL;
  if (fits(p, v))
    return json_incref(v);
  if (p->opts->whole || depth >= EXTRACT_UNWRAP_DEPTH)
    return NULL;
  json_t *found = NULL;
  if (json_is_object(v)) {
    const char *key;
    json_t *member;
    json_object_foreach(v, key, member) {
      json_t *inner = extract_unwrap(p, member, depth + 1);
      if (inner) {
        json_decref(found);
        found = inner;
      }
    }
  } else if (json_is_array(v)) {
    for (size_t i = json_array_size(v); i-- > 0 && !found;)
      found = extract_unwrap(p, json_array_get(v, i), depth + 1);
  } else if (json_is_string(v)) {
    found = unwrap_string(p, v, depth + 1);
  }
  return found;
}

static void keep(struct extract_pass *p, struct extract_slot *slot, struct extract_slot next) {
  note_set(p, slot->note, "superseded");
  extract_slot_drop(slot);
  *slot = next;
}

static void weigh_checked(struct extract_pass *p, struct extract_slot s) {
  const struct extract_check *check = p->opts->check;
  if (check->is_schema_echo && check->is_schema_echo(check->ctx, s.value)) {
    p->echo_seen = true;
    note_set(p, s.note, "schema_echo");
    extract_slot_drop(&s);
    return;
  }
  json_t *found = extract_unwrap(p, s.value, 0);
  if (found) {
    s.unwrapped = found != s.value;
    json_decref(s.value);
    s.value = found;
    note_set(p, s.note, s.unwrapped ? "valid_inside" : "valid");
    keep(p, &p->valid, s);
    return;
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
  /* a value without any required key is an answer only when the whole text or a fence says so */
  if (s.nearness <= 0 && s.stage == EXTRACT_BRACE) {
    p->empty_refused =
        p->empty_refused || (json_is_object(s.value) && json_object_size(s.value) == 0);
    extract_slot_drop(&s);
    return;
  }
  if (p->near.value && s.nearness < p->near.nearness)
    extract_slot_drop(&s);
  else
    keep(p, &p->near, s);
}

static bool is_empty(const json_t *v) {
  return (json_is_object(v) && json_object_size(v) == 0) ||
         (json_is_array(v) && json_array_size(v) == 0);
}

void extract_candidate(struct extract_pass *p, size_t start, size_t end, json_t *owned_value,
                       bool inside) {
  struct extract_slot s = {.value = owned_value, .offset = start, .length = end - start};
  s.stage = extract_stage_of(p, start, end, p->fence_open);
  s.note = extract_note_add(p, start, end, s.stage, inside ? "inside_broken" : "candidate", 0);
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
    keep(p, &p->empty, s);
  } else {
    keep(p, &p->plain, s);
  }
}
