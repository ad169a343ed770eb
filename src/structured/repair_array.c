#include "repair_internal.h"

#include <string.h>

/* the brace at r->i, met inside an array that is a member: was it meant to be the array's bracket?
 * It was when what follows is another member and the object around has no object around it to take
 * it. */
static bool brace_for_bracket(struct repair *r) {
  if (r->depth < 2 || r->stack[r->depth - 2] != '{')
    return false;
  size_t next = repair_junk(r, r->i + 1, false);
  if (next >= r->n || r->t[next] != ',')
    return false;
  next = repair_junk(r, next + 1, false);
  return repair_key_at(r, next) && (r->depth < 3 || r->stack[r->depth - 3] != '{');
}

/* the array's closer at r->i, or one that was meant to be it or closes something around it; true
 * when it ended */
static bool array_closes(struct repair *r, char kind, char c) {
  char own = kind == '[' ? ']' : kind == '(' ? ')' : '}';
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
  char opener = c == ']' ? '[' : c == ')' ? '(' : '{';
  if (repair_in(r, opener)) {
    repair_note(r, "missing_bracket", at);
    return true;
  }
  repair_note(r, "extra_bracket", at);
  r->i++;
  return false;
}

/* the first closer from i on that nothing opened after i; 0 when it is far away or missing */
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

json_t *repair_array(struct repair *r, char kind) {
  if (!repair_push(r, kind))
    return NULL;
  size_t open = r->i++;
  json_t *array = json_array();
  bool comma = true, any = false, closed = false, commas = false;
  if (!array)
    r->oom = true;
  while (array && repair_more(r)) {
    char c = r->t[r->i];
    size_t len, at = r->i;
    if (c == ']' || c == '}' || c == ')') {
      if (array_closes(r, kind, c)) {
        if (any && comma && kind == '[')
          repair_note(r, "extra_comma", at);
        closed = true;
        break;
      }
      continue;
    }
    if (c == ',') {
      if (comma)
        repair_note(r, "extra_comma", at);
      commas = comma = true;
      r->i++;
      continue;
    }
    if (repair_ellipsis_at(r, at, &len)) {
      repair_note(r, "ellipsis", at);
      r->i += len;
      comma = true;
      continue;
    }
    if (c == ':' || c == ';' || c == '=') {
      repair_note(r, "stray_text", at);
      r->i++;
      continue;
    }
    if (any && !comma)
      repair_note(r, "missing_comma", at);
    bool quote = repair_quote_at(r, at, &len) != QUOTE_NONE;
    if (kind == '[' && any && r->depth > 1 && r->stack[r->depth - 2] == '{' &&
        repair_key_at(r, at) && next_closer(r, at) == '}') {
      repair_note(r, "missing_bracket", at); /* the object around it goes on */
      closed = true;
      break;
    }
    if (kind == '[' && repair_key_at(r, at)) { /* "key": value without braces */
      repair_note(r, "implicit_object", at);
      json_t *object = json_object();
      if (!object)
        r->oom = true;
      else if (repair_add(r, array, object))
        repair_members(r, object, true);
      any = true;
      comma = false;
      continue;
    }
    json_t *v = repair_read(r, REPAIR_ITEM);
    if (repair_stopped(r)) {
      json_decref(v);
      break;
    }
    /* words after a container, with no comma between, are talk and not an item */
    size_t have = json_array_size(array);
    json_t *last = have ? json_array_get(array, have - 1) : NULL;
    if (v && !comma && json_is_string(v) && repair_word_byte(r->t[at]) &&
        (json_is_object(last) || json_is_array(last))) {
      repair_note(r, "stray_text", at);
      json_decref(v);
      continue;
    }
    /* a string of which only the opening quote is there says nothing */
    if (v && quote && r->i >= r->n && json_is_string(v) && json_string_length(v) == 0 &&
        r->n - at <= len + 1) {
      json_decref(v);
      v = NULL;
    }
    if (v)
      repair_add(r, array, v);
    else if (r->i == at)
      r->i++;
    any = any || v;
    comma = false;
  }
  if (!closed && !repair_stopped(r))
    repair_cut_off(r, "missing_bracket");
  r->depth--;
  if (kind == '(' && array && !repair_stopped(r)) {
    repair_note(r, "tuple", open);
    if (json_array_size(array) == 1 && !commas) { /* (1) is 1, (1,) is a tuple */
      json_t *only = json_incref(json_array_get(array, 0));
      json_decref(array);
      return only;
    }
  }
  return array;
}
