/* Reads arrays, tuples and sets, whatever closes them. */
#include "extract/repair_internal.h"

#include <string.h>

/* Returns true if the brace at r->i, met inside an array that is a member, was meant to be the
 * array's bracket. It was if another member follows and the object around has no object around it
 * to take it. */
static bool brace_for_bracket(struct repair *r) {
  if (r->depth < 2 || r->stack[r->depth - 2] != '{')
    return false;
  size_t next = repair_junk(r, r->i + 1, false);
  if (next >= r->n || r->t[next] != ',')
    return false;
  next = repair_junk(r, next + 1, false);
  return repair_key_at(r, next) && (r->depth < 3 || r->stack[r->depth - 3] != '{');
}

static char closer_of(char kind) {
  if (kind == '[')
    return ']';
  return kind == '(' ? ')' : '}';
}

/* Reads the array's closer at r->i, or one that was meant to be it or closes something around it.
 * Returns true if the array ended. */
static bool array_closes(struct repair *r, char kind, char c) {
  char own = closer_of(kind);
  size_t at = r->i;
  if (c == own) {
    r->i++;
    return true;
  }
  if (c == '}' && brace_for_bracket(r)) {
    repair_note(r, "wrong_bracket", at);
    r->i++;
    return true;
  }
  static const char openers[] = "][)(}{";
  if (repair_in(r, strchr(openers, c)[1])) {
    repair_note(r, "missing_bracket", at);
    return true;
  }
  repair_extra_bracket(r, at);
  return false;
}

/* Returns the first closer from i on that nothing opened after i, 0 if it is far away or
 * missing. */
static char next_closer(struct repair *r, size_t i) {
  size_t depth = 0, k = i, end = r->n - i > 4096 ? i + 4096 : r->n;
  char found = '\0';
  for (; k < end && !found; k++) {
    char c = r->t[k];
    if (c == '"') {
      for (k++; k < end && r->t[k] != '"'; k++)
        if (r->t[k] == '\\')
          k++;
    } else if (c == '{' || c == '[') {
      depth++;
    } else if ((c == '}' || c == ']') && depth-- == 0) {
      found = c;
    }
  }
  repair_spend(r, (k < end ? k : end) - i);
  return found;
}

/* Holds the progress in reading an array. */
struct array_reading {
  json_t *array; /* owned by the caller */
  char kind;
  bool comma;  /* a comma was just read, or nothing yet */
  bool any;    /* an item was read */
  bool commas; /* some commas were read */
  bool closed;
};

/* Deals with a mark between items at r->i; returns true if it was one. */
static bool array_mark(struct repair *r, struct array_reading *a) {
  char c = r->t[r->i];
  size_t at = r->i;
  a->commas |= c == ',';
  if (c != ']' && c != '}' && c != ')')
    return repair_between(r, &a->comma);
  a->closed = array_closes(r, a->kind, c);
  if (a->closed && a->any && a->comma && a->kind == '[')
    repair_note(r, "extra_comma", at);
  return true;
}

/* Deals with "key": value at r->i, without braces; returns true if it was that. */
static bool array_member(struct repair *r, struct array_reading *a) {
  size_t at = r->i;
  if (a->kind != '[' || !repair_key_at(r, at))
    return false;
  if (a->any && r->depth > 1 && r->stack[r->depth - 2] == '{' && next_closer(r, at) == '}') {
    repair_note(r, "missing_bracket", at); /* the object around it continues */
    a->closed = true;
    return true;
  }
  repair_note(r, "implicit_object", at);
  json_t *object = jscan_made(json_object());
  repair_add(a->array, object);
  repair_members(r, object, true);
  a->any = true;
  a->comma = false;
  return true;
}

/* Returns true if v, read from `at`, says nothing: a lone quote, or an object whose only member was
 * cut. */
static bool says_nothing(struct repair *r, const json_t *v, size_t at) {
  size_t len;
  if (r->i < r->n)
    return false;
  if (json_is_string(v))
    return json_string_length(v) == 0 && repair_quote_at(r, at, &len) != QUOTE_NONE &&
           r->n - at <= len;
  bool cut = json_is_object(v) && json_object_size(v) == 0 && r->dropped;
  if (cut)
    repair_note(r, "dropped_item", at);
  return cut;
}

static void array_item(struct repair *r, struct array_reading *a) {
  size_t at = r->i, have = json_array_size(a->array);
  const json_t *last = have ? json_array_get(a->array, have - 1) : NULL;
  json_t *v = repair_read(r, REPAIR_ITEM);
  if (r->failed) {
    json_decref(v);
    return;
  }
  /* Words after a container, without a comma between, are talk and not an item. */
  if (v && !a->comma && json_is_string(v) && repair_word_byte(r->t[at]) &&
      (json_is_object(last) || json_is_array(last))) {
    repair_note(r, "stray_text", at);
    json_decref(v);
    return;
  }
  if (v && says_nothing(r, v, at)) {
    json_decref(v);
    v = NULL;
  }
  if (v)
    repair_add(a->array, v);
  else if (r->i == at)
    r->i++;
  a->any = a->any || v;
  a->comma = false;
}

json_t *repair_array(struct repair *r, char kind) {
  if (!repair_push(r, kind))
    return NULL;
  size_t open = r->i++;
  struct array_reading a = {.array = jscan_made(json_array()), .kind = kind, .comma = true};
  while (!a.closed && repair_more(r)) {
    if (array_mark(r, &a))
      continue;
    if (a.any && !a.comma)
      repair_note(r, "missing_comma", r->i);
    if (!array_member(r, &a))
      array_item(r, &a);
  }
  if (!a.closed && !r->failed)
    repair_cut_off(r, "missing_bracket");
  r->depth--;
  if (kind != '(' || r->failed)
    return a.array;
  repair_note(r, "tuple", open);
  if (json_array_size(a.array) != 1 || a.commas)
    return a.array;
  json_t *only = json_incref(json_array_get(a.array, 0)); /* (1) is 1, (1,) is a tuple */
  json_decref(a.array);
  return only;
}
