/* Decides whether a reply is one answer, and which. */
#include "extract/whole_reply.h"

#include "base/buf.h"
#include "extract/internal.h"
#include "schema/support.h"

#include <assert.h>
#include <string.h>

/* Returns the length of the white space at i, with what copying adds to it: BOM, ZWSP, NBSP; 0 for
 * none. */
static size_t extract_space(const char *text, size_t n, size_t i) {
  if (str_is_space(text[i]))
    return 1;
  if (n - i >= 2 && memcmp(text + i, LIT("\xC2\xA0")) == 0) /* NBSP */
    return 2;
  if (n - i >= 3 && (memcmp(text + i, LIT("\xEF\xBB\xBF")) == 0 || /* BOM */
                     memcmp(text + i, LIT("\xE2\x80\x8B")) == 0))  /* ZWSP */
    return 3;
  return 0;
}

struct str extract_trim(struct str s) {
  size_t len;
  while (s.n > 0 && (len = extract_space(s.p, s.n, 0)) > 0)
    s = (struct str){s.p + len, s.n - len};
  for (bool again = true; again;) {
    again = false;
    for (size_t k = 1; k <= 3 && k <= s.n && !again; k++)
      if (extract_space(s.p, s.n, s.n - k) == k) {
        s.n -= k;
        again = true;
      }
  }
  return s;
}

enum { EXTRACT_ECHO_WORK = 1 << 20 }; /* steps that comparing two values may take */

/* --- a reply that is one value alone --- */

struct str extract_behind_reasoning(struct str text) {
  struct str s = extract_trim(text);
  size_t closed;
  while (s.n > 0 && (s.p[0] == '<' || s.p[0] == '[' || s.p[0] == '\xE2') &&
         extract_tag_at(s.p, s.n, 0, &closed) != EXTRACT_TAG_NO) {
    closed = closed < s.n ? closed : s.n; /* it may never end */
    s = extract_trim((struct str){s.p + closed, s.n - closed});
  }
  return s;
}

/* Takes the fence off s. Returns false if there is none. */
static bool unwrap_fence(struct str *s) {
  size_t ticks = 0, end = s->n, start;
  while (ticks < s->n && s->p[ticks] == s->p[0] && jscan_one_of("`~", s->p[0]))
    ticks++;
  if (ticks < 3 || s->n < 2 * ticks)
    return false;
  while (end > ticks && s->p[end - 1] == s->p[0])
    end--;
  if (s->n - end != ticks)
    return false;
  for (start = ticks; start < end && !jscan_one_of(" \t\r\n{[(\"", s->p[start]);)
    start++; /* the name of its language */
  *s = extract_trim((struct str){s->p + start, end - start});
  return true;
}

/* These are the elements that answers come in. */
static const char *const element_names[] = {"tool_call", "function_call", "answer", "json",
                                            "output",    "result",        "final",  "verdict"};
enum { ELEMENT_NAMES = sizeof element_names / sizeof *element_names };

size_t extract_element(struct str s) {
  for (size_t i = 0; i < ELEMENT_NAMES; i++) {
    size_t n = strlen(element_names[i]);
    if (s.n >= n + 2 && s.p[0] == '<' && memcmp(s.p + 1, element_names[i], n) == 0 &&
        s.p[n + 1] == '>')
      return n + 2;
  }
  return 0;
}

/* Takes an element that answers come in off s. Returns false if there is none. */
static bool unwrap_element(struct str *s) {
  size_t n = extract_element(*s);
  if (n == 0 || s->n < 2 * n + 1 || memcmp(s->p + s->n - n - 1, LIT("</")) != 0 ||
      memcmp(s->p + s->n - n + 1, s->p + 1, n - 1) != 0)
    return false;
  *s = extract_trim((struct str){s->p + n, s->n - 2 * n - 1});
  return true;
}

/* Returns the one value that s is, or NULL. */
static json_t *value_alone(struct str s, bool *duplicate) {
  struct jscan_result r;
  if (jscan_whole(s, &r) == JSCAN_OK)
    *duplicate = *duplicate || r.duplicate_key;
  return r.value;
}

/* Returns what v wraps, or v itself. Takes v over. */
static json_t *unwrap_value(json_t *v, bool *duplicate) {
  json_t *inner = NULL;
  if (json_is_array(v) && json_array_size(v) == 1) {
    inner = json_incref(json_array_get(v, 0));
  } else if (json_is_object(v) && json_is_string(json_object_get(v, "name"))) {
    inner = json_object_get(v, "arguments");
    if (inner == NULL)
      inner = json_object_get(v, "parameters");
    json_incref(inner);
  } else if (json_is_string(v)) {
    struct str s = {json_string_value(v), json_string_length(v)};
    inner = value_alone(extract_trim(s), duplicate);
  }
  if (inner == NULL)
    return v;
  json_decref(v);
  return inner;
}

static bool fits_check(const struct extract_check *check, const json_t *v) {
  return json_is_object(v) && check->valid(check->ctx, v);
}

static void add_place(struct whole_reply *s, json_t *value, size_t offset, size_t length) {
  assert(s->place_count < 2);
  s->places[s->place_count++] = (struct whole_reply_place){json_incref(value), offset, length};
}

bool whole_reply_placeholder(const json_t *value) {
  const char *key;
  json_t *member;
  json_object_foreach((json_t *)value, key, member) {
    if (!json_is_string(member))
      continue;
    struct str s =
        extract_trim((struct str){json_string_value(member), json_string_length(member)});
    if ((s.n == 0 && strcmp(key, "rule") != 0) ||
        (s.p[0] == '<' && s.p[s.n - 1] == '>' && memchr(s.p + 1, '<', s.n - 1) == NULL) ||
        str_eq_c(s, "...") || str_eq_c(s, "\xE2\x80\xA6") || str_eq_c(s, "string"))
      return true;
  }
  return false;
}

static bool read_alone(struct whole_reply *s, struct str reply, const struct extract_check *check) {
  struct str rest = extract_behind_reasoning(reply);
  bool whole = rest.n == extract_trim(reply).n;
  bool fenced = unwrap_fence(&rest), element = unwrap_element(&rest);
  fenced = fenced || (element && unwrap_fence(&rest));
  size_t wrappers = fenced + element;
  bool duplicate = false;
  json_t *value = value_alone(rest, &duplicate);
  if (value == NULL)
    return false;
  fenced = fenced || element;
  while (wrappers < WHOLE_REPLY_WRAPPERS && !fits_check(check, value)) {
    json_t *inner = unwrap_value(value, &duplicate);
    wrappers++;
    if (inner == value)
      break;
    value = inner;
  }
  if (!json_is_object(value)) {
    json_decref(value);
    s->outcome = WHOLE_REPLY_NOTHING;
    s->code = EXTRACT_ERR_WRONG_ROOT;
    return true;
  }
  add_place(s, value, (size_t)(rest.p - reply.p), rest.n);
  s->duplicate_key = duplicate;
  s->alone = true;
  s->stage = whole && !fenced ? EXTRACT_DIRECT : EXTRACT_BRACE;
  if (fenced)
    s->stage = EXTRACT_CODE_BLOCK;
  s->value = value;
  s->outcome = fits_check(check, value) ? WHOLE_REPLY_VALID : WHOLE_REPLY_REFUSED;
  return true;
}

/* --- a reply that is not one value alone --- */

/* Puts text without white space and without the backslashes of an escape. */
static void put_bare(struct buf *out, struct str text) {
  for (size_t i = 0; i < text.n; i++)
    if (text.p[i] != '\\' && extract_space(text.p, text.n, i) == 0)
      buf_putc(out, text.p[i]);
}

/* Compares two values as JSON does: 1 and 1.0 are one number. */
static bool same_value(const json_t *a, const json_t *b) {
  int64_t work = EXTRACT_ECHO_WORK;
  return schema_value_equal(a, b, &work);
}

static bool stands_in_report(const struct extract_check *check,
                             const struct whole_reply_place *place, struct str reply,
                             struct str report) {
  const json_t *value = place->value;
  struct extract_answers answers = {0};
  const struct extract_opts opts = {.check = check, .answers = &answers, .repair = true};
  struct extract_result r;
  if (report.p == NULL || report.n == 0)
    return false;
  struct buf needle = {0}, hay = {0};
  put_bare(&needle, (struct str){reply.p + place->offset, place->length});
  put_bare(&hay, report);
  bool found = needle.n > 0 && hay.n >= needle.n && memmem(hay.p, hay.n, needle.p, needle.n);
  buf_deinit(&needle);
  buf_deinit(&hay);
  if (!found) { /* mended too: an echo may be better JSON than what it echoes */
    (void)extract(report.p, report.n, &opts, &r);
    found = r.value != NULL && same_value(r.value, value);
    extract_result_deinit(&r);
  }
  for (size_t i = 0; i < answers.count && !found; i++)
    found = same_value(answers.items[i].value, value);
  extract_answers_deinit(&answers);
  return found;
}

/* Puts the first two answers that differ into s->places. Returns false if all are the same and
 * none was dropped. */
static bool differing(struct whole_reply *s, const struct extract_answers *answers) {
  for (size_t i = 1; i < answers->count; i++)
    if (!same_value(answers->items[0].value, answers->items[i].value)) {
      add_place(s, answers->items[0].value, answers->items[0].offset, answers->items[0].length);
      add_place(s, answers->items[i].value, answers->items[i].offset, answers->items[i].length);
      return true;
    }
  return answers->dropped > 0;
}

/* Finds what could be the answer among words. None of it is taken. */
static void read_words(struct whole_reply *s, struct str reply, const struct extract_check *check) {
  AUTO(extract_answers_deinit) struct extract_answers answers = {0};
  const struct extract_opts opts = {
      .want = EXTRACT_WANT_OBJECT, .check = check, .whole = true, .answers = &answers};
  AUTO(extract_result_deinit) struct extract_result r;
  (void)extract(reply.p ? reply.p : "", reply.n, &opts, &r);
  s->code = r.error.code;
  s->outcome = WHOLE_REPLY_BROKEN;
  if (differing(s, &answers)) {
    s->outcome = WHOLE_REPLY_AMBIGUOUS;
  } else if (r.value != NULL) {
    add_place(s, r.value, r.offset, r.length);
    s->stage = r.stage;
    s->outcome = WHOLE_REPLY_WORDS;
  } else if (r.error.code == EXTRACT_ERR_NO_JSON || r.error.code == EXTRACT_ERR_WRONG_ROOT ||
             r.error.code == EXTRACT_ERR_REASONING) {
    s->outcome = WHOLE_REPLY_NOTHING;
  }
}

void whole_reply_read(struct whole_reply *s, struct str reply, const struct extract_check *check,
                      struct str report) {
  assert(s != NULL && check != NULL && check->valid != NULL && check->is_key != NULL);
  *s = (struct whole_reply){.outcome = WHOLE_REPLY_NOTHING, .code = EXTRACT_ERR_NO_JSON};
  if (!read_alone(s, reply, check))
    read_words(s, reply, check);
  if (s->duplicate_key && s->value != NULL)
    s->outcome = WHOLE_REPLY_AMBIGUOUS;
  else if (s->outcome == WHOLE_REPLY_VALID && whole_reply_placeholder(s->value))
    s->outcome = WHOLE_REPLY_PLACEHOLDER;
  else if (s->outcome == WHOLE_REPLY_VALID && stands_in_report(check, &s->places[0], reply, report))
    s->outcome = WHOLE_REPLY_ECHO;
  if (s->outcome != WHOLE_REPLY_VALID && s->outcome != WHOLE_REPLY_REFUSED) {
    json_decref(s->value);
    s->value = NULL;
  }
}

void whole_reply_deinit(struct whole_reply *s) {
  for (size_t i = 0; i < s->place_count; i++)
    json_decref(s->places[i].value);
  json_decref(s->value);
  *s = (struct whole_reply){0};
}

/* --- a reply that says nothing --- */

/* Returns where what the text says begins, after a closer of reasoning that was not opened. */
static size_t behind_stray_closer(struct str text) {
  size_t begin = 0;
  for (size_t i = 0; i < text.n; i++) {
    size_t closed = 0;
    bool mark = text.p[i] == '<' || text.p[i] == '[' || text.p[i] == '\xE2';
    size_t after = i + (mark && text.p[i] == '\xE2' ? 3 : 1);
    if (mark && after < text.n && (text.p[after] == '/' || text.p[after] == '|') &&
        extract_tag_at(text.p, text.n, i, &closed) == EXTRACT_TAG_CLOSER)
      begin = closed;
  }
  return begin;
}

bool extract_says_nothing(struct str text) {
  size_t begin = behind_stray_closer(text);
  if (begin > 0)
    text = (struct str){text.p + begin, text.n - begin};
  return extract_behind_reasoning(text).n == 0;
}
