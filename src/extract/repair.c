/* Reads objects, members and values that were meant to be JSON. */
#include "base/log.h"
#include "base/utf8.h"
#include "extract/repair_internal.h"
#include "format/json_value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void repair_note(struct repair *r, const char *name, size_t offset) {
  struct repair_result *out = r->out;
  if (out->repair_count < EXTRACT_REPAIRS_MAX) {
    if (out->repairs_listed == out->repairs_room) {
      out->repairs_room = out->repairs_room ? out->repairs_room * 2 : 8;
      out->repairs = xrealloc(out->repairs, out->repairs_room * sizeof *out->repairs);
    }
    out->repairs[out->repairs_listed++] = (struct extract_repair){name, offset};
  }
  out->repair_count++;
}

void repair_keep(struct repair *r, size_t from, size_t to) {
  if (from >= to)
    return;
  if (r->span_count == r->span_room) {
    r->span_room = r->span_room ? 2 * r->span_room : 16;
    r->spans = xrealloc(r->spans, r->span_room * sizeof *r->spans);
  }
  r->spans[r->span_count++] = (struct repair_span){from, to};
}

/* Returns the length of the character at i if it can be part of a word, 0 if it is punctuation or
 * space. */
static size_t word_at(const struct repair *r, size_t i, size_t to) {
  const unsigned char *s = (const unsigned char *)r->t + i;
  uint32_t cp;
  size_t len = utf8_decode(r->t + i, to - i, &cp);
  if (s[0] < 0x80)
    return (s[0] >= '0' && s[0] <= '9') || ((s[0] | 0x20) >= 'a' && (s[0] | 0x20) <= 'z');
  if (len == 0)
    return 1;
  bool mark = cp < 0xC0 || (cp >= 0x2000 && cp < 0x2070) || (cp >= 0x3000 && cp < 0x3004) ||
              cp == 0xFEFF || (cp >= 0xFF00 && cp < 0xFF10) || (cp >= 0xFF1A && cp < 0xFF21) ||
              (cp >= 0xFF3B && cp < 0xFF41) || (cp >= 0xFF5B && cp < 0xFF66);
  return mark ? 0 : len;
}

/* Returns true if a word in [from, to) is neither in the value nor reported as noise: this is the
 * last gate. */
static bool repair_lost(const struct repair *r, size_t from, size_t to) {
  size_t next = 0;
  for (size_t i = from; i < to;) {
    while (next < r->span_count && r->spans[next].to <= i)
      next++;
    if (next < r->span_count && r->spans[next].from <= i) {
      i = r->spans[next].to;
    } else if (r->t[i] == '\\' && i + 1 < to && jscan_one_of("ntr", r->t[i + 1])) {
      i += 2;
    } else if (word_at(r, i, to) > 0) {
      return true;
    } else {
      i++;
      while (i < to && utf8_is_tail(r->t[i]))
        i++;
    }
  }
  return false;
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

bool repair_push(struct repair *r, char kind) {
  if (r->depth >= JSCAN_DEPTH_MAX) {
    r->failed = true;
    return false;
  }
  r->stack[r->depth++] = kind;
  return true;
}

/* Moves to the next byte that means something. Returns false at the end; a fence that closes the
 * block is one, too. */
bool repair_more(struct repair *r) {
  r->i = repair_junk(r, r->i, true);
  if (repair_fence_at(r, r->i))
    r->n = r->i;
  return r->i < r->n && !r->failed;
}

void repair_cut_off(struct repair *r, const char *name) {
  repair_note(r, name, r->n);
  r->out->truncated = true;
}

/* Sets a member. If a key is given twice with two values, the last one counts without a schema, and
 * this is reported. Where an answer is asked for, nobody knows which one is meant. */
static void repair_set(struct repair *r, json_t *object, struct str key, json_t *owned_value) {
  const json_t *before = json_object_getn(object, key.p, key.n);
  if (before != NULL && !json_same(before, owned_value)) {
    repair_note(r, "duplicate_key", r->i);
    r->failed = r->failed || r->said_only;
  }
  if (json_object_setn_new_nocheck(object, key.p, key.n, owned_value) != 0)
    BUG("out of memory");
  r->out->key_count++;
}

static void repair_merge(struct repair *r, json_t *object, const json_t *from) {
  const char *key;
  size_t n;
  json_t *member;
  if (json_is_object(from))
    json_object_keylen_foreach((json_t *)from, key, n, member)
        repair_set(r, object, (struct str){key, n}, json_incref(member));
}

void repair_add(json_t *array, json_t *owned_value) {
  if (json_array_append_new(array, owned_value) != 0)
    BUG("out of memory");
}

/* Takes r->buf itself: reading the value begins another. */
static struct buf take_key(struct repair *r) {
  struct buf key = r->buf;
  r->buf = (struct buf){0};
  return key;
}

static bool repair_read_key(struct repair *r) {
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
  buf_clear(&r->buf);
  buf_append(&r->buf, r->t + from, stop - from);
  repair_keep(r, from, stop);
  r->i = end;
  if (end == stop && end < r->n && (r->t[end] == '"' || r->t[end] == '\''))
    r->i++;                                                 /* its first quote is missing */
  r->failed = r->failed || !utf8_valid(r->buf.p, r->buf.n); /* a key is text too */
  return !r->failed;
}

/* Reads the colon at r->i, or what stands for it. Returns false if there is none. */
static bool repair_colon(struct repair *r) {
  char c = r->t[r->i];
  if (c != ':' && c != '=')
    return false;
  if (c == '=')
    repair_note(r, "missing_colon", r->i);
  r->i++;
  if (c == '=' && r->i < r->n && r->t[r->i] == '>')
    r->i++;
  return true;
}

/* Returns true if the key has more than punctuation; otherwise the quotes are out of step. */
static bool is_key(struct str key) {
  bool word = key.n == 0 || memchr(key.p, '"', key.n) == NULL;
  for (size_t k = 0; k < key.n; k++)
    word = word || repair_word_byte(key.p[k]);
  return word;
}

/* Returns true for a word that is no number or literal, which would be an item that lost its
 * array. */
static bool is_word(struct str key) {
  static const char *const literals[] = {"true", "false", "null"};
  for (size_t i = 0; i < sizeof literals / sizeof *literals; i++)
    if (str_eq_c(key, literals[i]))
      return false;
  return key.n > 0 && !jscan_one_of("-0123456789", key.p[0]);
}

static void drop_member(struct repair *r, size_t at) {
  repair_note(r, "dropped_member", at);
  r->dropped = true;
}

/* Reads what comes behind a key, which began at `at`, into object. A member without a value is left
 * out where the text is cut, or a schema decides what may be missing; elsewhere the repair fails,
 * for the value would have to be made up. */
static void read_value_of(struct repair *r, json_t *object, struct str key, size_t at, bool bare) {
  size_t quote;
  bool here = repair_more(r);
  r->failed = r->failed || !is_key(key);
  if (r->failed)
    return;
  if (here && bare && repair_quote_at(r, r->i, &quote) != QUOTE_NONE && repair_key_at(r, r->i)) {
    repair_note(r, "stray_text", at); /* words before the next key */
    return;
  }
  bool colon = here && repair_colon(r);
  here = here && repair_more(r);
  if (r->failed)
    return;
  if (!here) {
    repair_cut_off(r, "dropped_member");
    r->dropped = true;
    return;
  }
  if (jscan_one_of(",}]", r->t[r->i])) {
    if (!colon && bare && is_word(key))
      repair_note(r, "stray_text", at);
    else if (r->said_only)
      drop_member(r, r->i);
    else
      r->failed = true;
    return;
  }
  if (!colon)
    repair_note(r, "missing_colon", r->i);
  json_t *v = repair_read(r, REPAIR_MEMBER);
  if (r->failed)
    json_decref(v);
  else if (v)
    repair_set(r, object, key, v);
  else if (r->i >= r->n)
    drop_member(r, at);
  else
    r->failed = true;
}

/* Reads one member at r->i into the object. */
static void repair_read_member(struct repair *r, json_t *object) {
  size_t at = r->i, quote;
  bool bare = r->t[at] != '\\' && repair_quote_at(r, at, &quote) == QUOTE_NONE;
  if (!repair_read_key(r))
    return;
  struct buf key = take_key(r);
  read_value_of(r, object, (struct str){buf_c(&key), key.n}, at, bare);
  buf_deinit(&key);
}

/* Returns true if the brace opens a set, such as {1, 2} or {'a', 'b'}, by the first thing in it. */
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

/* Leaves out an unmatched closer if only closers follow. In the middle it shows that the brackets
 * are out of step, and the repair fails. */
void repair_extra_bracket(struct repair *r, size_t at) {
  repair_note(r, "extra_bracket", at);
  r->i = at + 1;
  size_t next = at;
  while (next < r->n && (jscan_one_of("]})", r->t[next]) || repair_space(r, next) > 0))
    next++;
  r->failed = r->failed || !(next >= r->n || repair_fence_at(r, next));
}

/* Holds the progress in reading an object's members. */
struct members_reading {
  json_t *object;     /* borrowed */
  bool without_brace; /* it ends where the array around it does */
  bool after_member, comma;
  bool closed;
};

/* Reads the closer c at r->i. */
static void members_closer(struct repair *r, struct members_reading *m, char c) {
  size_t at = r->i;
  if (c == '}') {
    r->i++;
    m->closed = true;
    if (m->after_member && m->comma)
      repair_note(r, "extra_comma", at);
    if (m->without_brace)
      repair_note(r, "extra_bracket", at);
    return;
  }
  if (m->without_brace || repair_in(r, c == ']' ? '[' : '(')) {
    m->closed = true;
    if (!m->without_brace)
      repair_note(r, "missing_bracket", at);
    return;
  }
  r->i++;
  if (!repair_more(r) && !r->failed) { /* the last byte, so it was meant to be the brace */
    m->closed = true;
    repair_note(r, "wrong_bracket", at);
    return;
  }
  repair_extra_bracket(r, at);
}

bool repair_between(struct repair *r, bool *comma) {
  char c = r->t[r->i];
  size_t len, at = r->i;
  if (c == ',') {
    if (*comma)
      repair_note(r, "extra_comma", at);
    *comma = true;
    r->i++;
  } else if (repair_ellipsis_at(r, at, &len)) {
    repair_note(r, "ellipsis", at);
    r->i += len;
    *comma = true;
  } else if (c == ':' || c == ';' || c == '=') {
    repair_note(r, "stray_text", at);
    r->i++;
  } else {
    return false;
  }
  return true;
}

/* Deals with a mark between members at r->i; returns true if it was one. */
static bool members_mark(struct repair *r, struct members_reading *m) {
  char c = r->t[r->i];
  if (c == '}' || c == ']' || c == ')')
    members_closer(r, m, c);
  else if (repair_between(r, &m->comma))
    return true;
  else if (c == '[' || c == '(')
    r->failed = true; /* no reading of this is near enough to be trusted */
  else
    return false;
  return true;
}

/* Reads an object at r->i where a member should be. */
static void members_object(struct repair *r, struct members_reading *m) {
  size_t at = r->i;
  if (m->after_member && (m->without_brace || (r->depth > 1 && r->stack[r->depth - 2] == '['))) {
    repair_note(r, "missing_bracket", at);
    m->closed = true; /* the next item has begun */
    return;
  }
  repair_note(r, "merged_object", at);
  json_t *inner = repair_read(r, REPAIR_MEMBER);
  repair_merge(r, m->object, inner);
  json_decref(inner);
  m->after_member = true;
  m->comma = false;
}

static void members_member(struct repair *r, struct members_reading *m) {
  size_t at = r->i;
  if (m->after_member && m->without_brace && !repair_key_at(r, at)) {
    m->closed = true; /* the array continues with items */
    return;
  }
  if (m->after_member && !m->comma)
    repair_note(r, "missing_comma", at);
  repair_read_member(r, m->object);
  m->after_member = true;
  m->comma = false;
  r->failed = r->failed || r->i == at;
}

/* Reads members up to the closing brace, which is consumed, or, with `without_brace`, up to what
 * closes the array around them. */
void repair_members(struct repair *r, json_t *object, bool without_brace) {
  struct members_reading m = {.object = object, .without_brace = without_brace, .comma = true};
  while (!m.closed && repair_more(r)) {
    if (members_mark(r, &m))
      continue;
    if (r->t[r->i] == '{')
      members_object(r, &m);
    else
      members_member(r, &m);
  }
  if (!m.closed && !r->failed && !without_brace)
    repair_cut_off(r, "missing_bracket");
}

static json_t *read_object(struct repair *r) {
  if (set_at(r)) {
    repair_note(r, "set", r->i);
    return repair_array(r, 's');
  }
  if (!repair_push(r, '{'))
    return NULL;
  r->i++;
  json_t *object = jscan_made(json_object());
  repair_members(r, object, false);
  r->depth--;
  return object;
}

/* Reads strings joined by +, after the first one has been read into r->buf. */
static bool read_joined(struct repair *r, enum repair_place place) {
  for (;;) {
    size_t len, plus = repair_junk(r, r->i, false);
    if (plus >= r->n || r->t[plus] != '+')
      return !r->failed;
    (void)repair_junk(r, r->i, true);
    repair_note(r, "concatenation", plus);
    size_t next = repair_junk(r, plus + 1, true);
    r->i = next;
    if (next >= r->n || repair_quote_at(r, next, &len) == QUOTE_NONE)
      return !r->failed;
    struct buf first = take_key(r);
    bool ok = repair_string(r, place);
    if (ok) {
      buf_str(&first, buf_view(&r->buf));
      buf_deinit(&r->buf);
      r->buf = first;
    } else {
      buf_deinit(&first);
      return false;
    }
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
  /* Python has prefixes: u"x", b'x'. */
  if (jscan_one_of("urbfURBF", c) && at + 2 < r->n && jscan_one_of("\"'", r->t[at + 1]) &&
      !jscan_one_of(",:]}", r->t[at + 2])) {
    repair_note(r, "quote_style", at);
    repair_keep(r, at, at + 1);
    c = r->t[at = ++r->i];
  }
  bool escaped = c == '\\' && repair_quote_at(r, at + 1, &len) != QUOTE_NONE;
  if (escaped || repair_quote_at(r, at, &len) != QUOTE_NONE) {
    if (!repair_string(r, place) || !read_joined(r, place))
      return NULL;
    return jscan_made(json_stringn_nocheck(buf_c(&r->buf), r->buf.n));
  }
  if ((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.') {
    json_t *v = repair_number(r, place);
    if (v || r->failed || r->i != at)
      return v;
  }
  return repair_bare(r, place);
}

/* Reads values separated by commas or lines, up to the end: {"a":1}\n{"a":2} or 1, 2, 3. */
static json_t *read_sequence(struct repair *r) {
  json_t *array = jscan_made(json_array());
  while (repair_more(r)) {
    size_t at = r->i;
    if (r->t[at] == ',') {
      r->i++;
      continue;
    }
    json_t *v = repair_read(r, REPAIR_ITEM);
    if (!v || r->failed) {
      json_decref(v);
      r->failed = true;
      break;
    }
    if (!json_is_object(v) && !json_is_array(v) &&
        (repair_word_byte(r->t[at]) && !json_is_number(v)))
      r->failed = true; /* words in a row are prose */
    repair_add(array, v);
  }
  repair_note(r, "sequence", 0);
  return array;
}

bool repair_value(const struct repair_job *job, size_t work_max, struct repair_result *out) {
  assert(job->from <= job->limit);
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
    v = jscan_made(json_object());
    repair_members(&r, v, false);
  } else {
    v = repair_read(&r, REPAIR_ITEM);
  }
  buf_deinit(&r.buf);
  if (v != NULL && !r.failed)
    r.failed = repair_lost(&r, job->from, r.i < r.n ? r.i : r.n);
  free(r.spans);
  out->work_used = work_max - r.work_left;
  out->end = r.i < r.n ? r.i : r.n;
  bool nothing = r.dropped && ((json_is_object(v) && json_object_size(v) == 0) ||
                               (json_is_array(v) && json_array_size(v) == 0));
  if (!v || nothing || r.failed) {
    json_decref(v);
    return false;
  }
  out->value = v;
  return true;
}

void repair_result_deinit(struct repair_result *r) {
  json_decref(r->value);
  free(r->repairs);
  *r = (struct repair_result){0};
}
