#include "repair.h"
#include "repair_internal.h"

#include <string.h>

void repair_note(struct repair *r, const char *name, size_t offset) {
  struct repair_result *out = r->out;
  if (out->repair_count < EXTRACT_REPAIRS_MAX && !r->oom) {
    if ((out->repairs_listed & (out->repairs_listed - 1)) == 0) { /* grow at powers of two */
      size_t size = out->repairs_listed ? out->repairs_listed * 2 : 8;
      if (out->repairs_listed == 0 || out->repairs_listed >= 8) {
        struct extract_repair *grown = jscan_realloc(out->repairs, size * sizeof *grown);
        if (!grown) {
          r->oom = true;
          return;
        }
        out->repairs = grown;
      }
    }
    out->repairs[out->repairs_listed++] = (struct extract_repair){name, offset};
  }
  out->repair_count++;
}

bool repair_spend(struct repair *r, size_t bytes) {
  if (r->work_left < bytes) {
    r->work_left = 0;
    r->failed = true;
    return false;
  }
  r->work_left -= bytes;
  return true;
}

bool repair_stopped(const struct repair *r) {
  return r->oom || r->failed;
}

bool repair_push(struct repair *r, char kind) {
  if (r->depth >= JSCAN_DEPTH_MAX) {
    r->failed = true;
    return false;
  }
  r->stack[r->depth++] = kind;
  return true;
}

/* moves to the next byte that means something; false at the end, which a fence that closes the
 * block is too */
bool repair_more(struct repair *r) {
  r->i = repair_junk(r, r->i, true);
  if (repair_fence_at(r, r->i))
    r->n = r->i;
  return r->i < r->n && !repair_stopped(r);
}

void repair_cut_off(struct repair *r, const char *name) {
  repair_note(r, name, r->n);
  r->out->truncated = true;
}

static bool set(struct repair *r, json_t *object, const char *key, size_t len,
                json_t *owned_value) {
  if (!owned_value || json_object_setn_new_nocheck(object, key, len, owned_value) != 0)
    r->oom = true;
  else
    r->out->key_count++;
  return !r->oom;
}

bool repair_add(struct repair *r, json_t *array, json_t *owned_value) {
  if (json_array_append_new(array, owned_value) != 0)
    r->oom = true;
  return !r->oom;
}

/* a copy of r->buf, which reading the value will overwrite */
static char *take_key(struct repair *r, size_t *len) {
  char *key = r->buf;
  *len = r->buf_len;
  r->buf = NULL;
  r->buf_size = r->buf_len = 0;
  return key;
}

static bool read_key(struct repair *r) {
  size_t len, from = r->i;
  if (r->t[from] == '\\' || repair_quote_at(r, from, &len) != QUOTE_NONE)
    return repair_string(r, REPAIR_KEY);
  size_t end = from;
  while (end < r->n && end - from < REPAIR_KEY_MAX && !jscan_one_of(":=,{}[]\"'\n", r->t[end]))
    end++;
  size_t stop = end;
  while (stop > from && repair_space(r, stop - 1) == 1)
    stop--;
  if (end - from >= REPAIR_KEY_MAX || stop == from) {
    r->failed = true;
    return false;
  }
  repair_note(r, "unquoted_key", from);
  r->buf_len = 0;
  repair_append(r, r->t + from, stop - from);
  r->i = end;
  if (end < r->n && (r->t[end] == '"' || r->t[end] == '\''))
    r->i++;
  for (size_t k = 0; k < r->buf_len;) { /* a key is text too */
    size_t ok = jscan_utf8(r->buf, r->buf_len, k);
    if (!ok) {
      r->failed = true;
      return false;
    }
    k += ok;
  }
  return !repair_stopped(r);
}

enum member { MEMBER_READ, MEMBER_NONE, MEMBER_STOP };

/* one member at r->i into object; `first` tells that it has none yet */
static enum member read_member(struct repair *r, json_t *object) {
  size_t at = r->i;
  bool first = json_object_size(object) == 0;
  size_t quote;
  bool bare = repair_quote_at(r, at, &quote) == QUOTE_NONE;
  if (!read_key(r))
    return MEMBER_STOP;
  size_t len;
  char *key = take_key(r, &len);
  enum member done = MEMBER_STOP;
  bool colon = false, here = repair_more(r);
  if (repair_stopped(r))
    goto out;
  bool word = len == 0;
  for (size_t k = 0; k < len; k++)
    word = word || repair_word_byte(key[k]);
  if (!word && memchr(key, '"', len)) {
    r->failed = true; /* nothing but punctuation: the quotes are out of step */
    goto out;
  }
  if (here && r->t[r->i] == ':') {
    colon = true;
    r->i++;
  } else if (here && r->t[r->i] == '=') {
    repair_note(r, "missing_colon", r->i);
    colon = true;
    r->i++;
    if (r->i < r->n && r->t[r->i] == '>')
      r->i++;
  }
  here = here && repair_more(r);
  if (repair_stopped(r))
    goto out;
  if (!here) {
    /* the text ends before the value: the member says nothing yet, but a lone one tells at least
     * its key */
    first = first && r->depth == 1 && !r->said_only;
    repair_cut_off(r, first ? "missing_value" : "dropped_member");
    r->dropped = r->dropped || !first;
    while (len && key[len - 1] == ' ')
      len--;
    done = MEMBER_READ;
    if (first)
      set(r, object, key ? key : "", len, json_null());
    goto out;
  }
  if (jscan_one_of(",}]", r->t[r->i])) {
    done = MEMBER_READ;
    if (!colon && bare) {
      repair_note(r, "stray_text", at);
    } else if (r->said_only) {
      repair_note(r, "dropped_member", r->i);
      r->dropped = true;
    } else {
      repair_note(r, "missing_value", r->i);
      set(r, object, key ? key : "", len, json_null());
    }
    goto out;
  }
  if (!colon)
    repair_note(r, "missing_colon", r->i);
  json_t *v = repair_read(r, REPAIR_MEMBER);
  if (repair_stopped(r)) {
    json_decref(v);
    goto out;
  }
  if (!v) {
    done = MEMBER_NONE;
    goto out;
  }
  set(r, object, key ? key : "", len, v);
  done = MEMBER_READ;
out:
  jscan_free(key);
  return repair_stopped(r) ? MEMBER_STOP : done;
}

/* {1, 2} and {'a', 'b'}: does the brace open a set? Looks at the first thing in it. */
static bool set_at(struct repair *r) {
  size_t len, i = repair_junk(r, r->i + 1, false);
  if (i >= r->n || repair_key_at(r, i))
    return false;
  if (r->t[i] >= '0' && r->t[i] <= '9') {
    while (i < r->n && ((r->t[i] >= '0' && r->t[i] <= '9') || r->t[i] == '.'))
      i++;
  } else {
    enum repair_quote open = repair_quote_at(r, i, &len);
    if (open == QUOTE_NONE)
      return false;
    for (i += len; i < r->n; i++)
      if (repair_closes(open, repair_quote_at(r, i, &len)) || r->t[i] == '\n')
        break;
    repair_spend(r, i - r->i);
    if (i >= r->n || r->t[i] == '\n')
      return false;
    i += len;
  }
  i = repair_junk(r, i, false);
  return i < r->n && (r->t[i] == ',' || r->t[i] == '}');
}

/* members up to the closing brace, which is consumed; without_brace: up to what closes the array
 * around them */
json_t *repair_members(struct repair *r, json_t *object, bool without_brace) {
  bool after_member = false, comma = true;
  while (repair_more(r)) {
    char c = r->t[r->i];
    size_t len, at = r->i;
    if (c == '}') {
      r->i++;
      if (after_member && comma)
        repair_note(r, "extra_comma", at);
      if (without_brace)
        repair_note(r, "extra_bracket", at);
      return object;
    }
    if (c == ']' || c == ')') {
      if (without_brace || repair_in(r, c == ']' ? '[' : '(')) {
        if (!without_brace)
          repair_note(r, "missing_bracket", at);
        return object;
      }
      r->i++;
      if (!repair_more(r) &&
          !repair_stopped(r)) { /* the last byte there is: it was meant to be the brace */
        repair_note(r, "wrong_bracket", at);
        return object;
      }
      repair_note(r, "extra_bracket", at);
      continue;
    }
    if (c == ',') {
      if (comma)
        repair_note(r, "extra_comma", at);
      comma = true;
      r->i++;
      continue;
    }
    if (repair_ellipsis_at(r, at, &len)) {
      repair_note(r, "ellipsis", at);
      r->i += len;
      comma = true;
      continue;
    }
    if (c == '{') {
      if (after_member && (without_brace || (r->depth > 1 && r->stack[r->depth - 2] == '['))) {
        repair_note(r, "missing_bracket", at);
        return object; /* the next item has begun */
      }
      repair_note(r, "merged_object", at);
      json_t *inner = repair_read(r, REPAIR_MEMBER);
      if (!repair_stopped(r) && json_is_object(inner) && json_object_update(object, inner) != 0)
        r->oom = true;
      json_decref(inner);
      after_member = true;
      comma = false;
      continue;
    }
    if (c == '[' || c == '(') {
      r->failed = true; /* no reading of this is near enough to be trusted */
      break;
    }
    if (c == ':' || c == ';' || c == '=') {
      repair_note(r, "stray_text", at);
      r->i++;
      continue;
    }
    if (after_member && without_brace && !repair_key_at(r, at))
      return object; /* the array goes on with items */
    if (after_member && !comma)
      repair_note(r, "missing_comma", at);
    if (read_member(r, object) != MEMBER_READ && repair_stopped(r))
      break;
    after_member = true;
    comma = false;
    if (r->i == at)
      r->failed = true;
  }
  if (!repair_stopped(r) && !without_brace)
    repair_cut_off(r, "missing_bracket");
  return object;
}

static json_t *read_object(struct repair *r) {
  if (set_at(r)) {
    repair_note(r, "set", r->i);
    return repair_array(r, 's');
  }
  if (!repair_push(r, '{'))
    return NULL;
  r->i++;
  json_t *object = json_object();
  if (object)
    repair_members(r, object, false);
  else
    r->oom = true;
  r->depth--;
  return object;
}

/* strings joined by +, after the first one has been read into r->buf */
static bool read_joined(struct repair *r, enum repair_place place) {
  for (;;) {
    size_t len, plus = repair_junk(r, r->i, false);
    if (plus >= r->n || r->t[plus] != '+')
      return !repair_stopped(r);
    repair_note(r, "concatenation", plus);
    size_t next = repair_junk(r, plus + 1, false);
    r->i = next;
    if (next >= r->n || repair_quote_at(r, next, &len) == QUOTE_NONE)
      return !repair_stopped(r);
    size_t first_len;
    char *first = take_key(r, &first_len);
    bool ok = repair_string(r, place);
    if (ok) {
      size_t second_len;
      char *second = take_key(r, &second_len);
      ok = repair_append(r, first ? first : "", first_len) &&
           repair_append(r, second ? second : "", second_len);
      jscan_free(second);
    }
    jscan_free(first);
    if (!ok)
      return false;
  }
}

json_t *repair_read(struct repair *r, enum repair_place place) {
  if (!repair_more(r))
    return NULL;
  char c = r->t[r->i];
  size_t len, at = r->i;
  switch (c) {
  case '{':
    return read_object(r);
  case '[':
    return repair_array(r, '[');
  case '(':
    return repair_array(r, '(');
  case ',':
  case ']':
  case '}':
  case ')':
  case ':':
    return NULL;
  default:
    break;
  }
  /* u"x", b'x': Python's prefixes */
  if (jscan_one_of("urbfURBF", c) && (at + 1 < r->n) &&
      (r->t[at + 1] == '"' || r->t[at + 1] == '\'')) {
    repair_note(r, "quote_style", at);
    c = r->t[at = ++r->i];
  }
  bool escaped = c == '\\' && repair_quote_at(r, at + 1, &len) != QUOTE_NONE;
  if (escaped || repair_quote_at(r, at, &len) != QUOTE_NONE) {
    if (!repair_string(r, place) || !read_joined(r, place))
      return NULL;
    json_t *v = json_stringn_nocheck(r->buf ? r->buf : "", r->buf_len);
    r->oom = r->oom || !v;
    return v;
  }
  if ((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.') {
    json_t *v = repair_number(r, place);
    if (v || repair_stopped(r) || r->i != at)
      return v;
  }
  return repair_bare(r, place);
}

/* values separated by commas or lines, up to the end: {"a":1}\n{"a":2} or 1, 2, 3 */
static json_t *read_sequence(struct repair *r) {
  json_t *array = json_array();
  if (!array)
    r->oom = true;
  while (array && repair_more(r)) {
    size_t at = r->i;
    if (r->t[at] == ',') {
      r->i++;
      continue;
    }
    json_t *v = repair_read(r, REPAIR_ITEM);
    if (!v || repair_stopped(r)) {
      json_decref(v);
      r->failed = true;
      break;
    }
    if (!json_is_object(v) && !json_is_array(v) &&
        (repair_word_byte(r->t[at]) && !json_is_number(v)))
      r->failed = true; /* words in a row are prose */
    repair_add(r, array, v);
  }
  repair_note(r, "sequence", 0);
  return array;
}

static void repair_drop(struct repair_result *out) {
  size_t used = out->work_used;
  repair_result_deinit(out);
  out->work_used = used;
}

enum repair_status repair_value(const struct repair_job *job, size_t work_max,
                                struct repair_result *out) {
  *out = (struct repair_result){0};
  struct repair r = {.t = job->text,
                     .n = job->limit,
                     .i = job->from,
                     .out = out,
                     .zeros = job->zeros,
                     .said_only = job->said_only};
  r.work_left = work_max;
  json_t *v = NULL;
  if (job->sequence) {
    v = read_sequence(&r);
  } else if (job->members) {
    repair_note(&r, "missing_bracket", job->from);
    r.stack[r.depth++] = '{';
    v = json_object();
    if (v)
      repair_members(&r, v, false);
    else
      r.oom = true;
  } else {
    v = repair_read(&r, REPAIR_ITEM);
  }
  jscan_free(r.buf);
  out->work_used = work_max - r.work_left;
  out->end = r.i < r.n ? r.i : r.n;
  bool nothing = r.said_only && r.dropped && json_is_object(v) && json_object_size(v) == 0;
  if (!v || nothing || repair_stopped(&r)) {
    json_decref(v);
    if (r.oom) {
      repair_drop(out);
      return REPAIR_OUT_OF_MEMORY;
    }
    return REPAIR_FAILED;
  }
  out->value = v;
  return REPAIR_OK;
}

void repair_result_deinit(struct repair_result *r) {
  json_decref(r->value);
  jscan_free(r->repairs);
  *r = (struct repair_result){0};
}
