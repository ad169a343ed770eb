/* Decides whether a reply is one answer, and which. */
#include "extract/whole_reply.h"

#include "base/buf.h"
#include "extract/internal.h"
#include "extract/tag.h"
#include "schema/support.h"

#include <assert.h>
#include <string.h>

enum { EXTRACT_ECHO_WORK = 1 << 20 }; /* steps that comparing two values may take */

/* --- a reply that is one value alone --- */

/* Returns what follows the reasoning section that s begins with, s itself if it begins with
 * none. */
static struct str skip_reasoning(struct str s) {
  size_t closed;
  if (s.n == 0 || !(s.p[0] == '<' || s.p[0] == '[' || s.p[0] == '\xE2') ||
      extract_tag_at(s.p, s.n, 0, &closed) == EXTRACT_TAG_NO || closed >= s.n)
    return s;
  return extract_trim((struct str){s.p + closed, s.n - closed});
}

/* Returns true if the name is of what a fence around JSON may say that it holds. */
static bool is_json_kind(struct str name) {
  return name.n == 0 || str_among_fold(name, "json jsonc json5 text txt");
}

/* Takes the fence off s. Returns false if there is none. */
static bool unwrap_fence(struct str *s, bool *foreign) {
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
  *foreign |= !is_json_kind((struct str){s->p + ticks, start - ticks});
  *s = extract_trim((struct str){s->p + start, end - start});
  return true;
}

/* Lists the elements that answers come in. */
static const char *const element_names[] = {"tool_call", "function_call", "answer", "json",
                                            "output",    "result",        "final",  "verdict"};
enum { ELEMENT_NAMES = sizeof element_names / sizeof *element_names };

/* Returns the length of the start tag of such an element at the start of s, 0 if there is none. */
static size_t answer_element(struct str s) {
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
  for (size_t i = 0; i < ELEMENT_NAMES; i++) {
    const char *name = element_names[i];
    size_t n = strlen(name);
    if (s->n < 2 * n + 5 || s->p[0] != '<' || memcmp(s->p + 1, name, n) != 0 ||
        s->p[n + 1] != '>' || memcmp(s->p + s->n - n - 3, LIT("</")) != 0 ||
        memcmp(s->p + s->n - n - 1, name, n) != 0 || s->p[s->n - 1] != '>')
      continue;
    *s = extract_trim((struct str){s->p + n + 2, s->n - (2 * n + 5)});
    return true;
  }
  return false;
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
    if (s.n == 0 ||
        (s.p[0] == '<' && s.p[s.n - 1] == '>' && memchr(s.p + 1, '<', s.n - 1) == NULL) ||
        str_eq_c(s, "...") || str_eq_c(s, "\xE2\x80\xA6") || str_eq_c(s, "string"))
      return true;
  }
  return false;
}

static bool read_alone(struct whole_reply *s, struct str reply, const struct extract_check *check) {
  struct str rest = extract_trim(reply), was;
  do {
    was = rest;
    rest = skip_reasoning(rest);
  } while (rest.n < was.n);
  bool whole = rest.n == extract_trim(reply).n;
  size_t wrappers = 0;
  while (wrappers < WHOLE_REPLY_WRAPPERS &&
         (unwrap_fence(&rest, &s->foreign) || unwrap_element(&rest)))
    wrappers++;
  bool duplicate = false;
  json_t *value = value_alone(rest, &duplicate);
  if (value == NULL)
    return false;
  bool fenced = wrappers > 0;
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

/* --- a reply of words --- */

/* Returns true if there are letters of words in [from, to), apart from reasoning sections, elements
 * and the names of fences. */
static bool has_words(struct str reply, size_t from, size_t to) {
  for (size_t i = from; i < to;) {
    char c = reply.p[i];
    size_t closed = 0;
    if ((c == '<' || c == '[' || c == '\xE2') &&
        extract_tag_at(reply.p, to, i, &closed) != EXTRACT_TAG_NO) {
      i = closed < to ? closed : to;
    } else if (c == '<') {
      const char *end = memchr(reply.p + i, '>', to - i);
      i = end ? (size_t)(end - reply.p) + 1 : i + 1;
    } else if (c == '`' || c == '~') {
      while (i < to && reply.p[i] == c)
        i++;
      while (i < to && str_is_letter(reply.p[i]))
        i++;
    } else if (extract_space(reply.p, to, i) > 0) {
      i += extract_space(reply.p, to, i);
    } else if (str_is_letter(c) || (c & 0x80)) {
      return true;
    } else {
      i++;
    }
  }
  return false;
}

/* Takes what may stand before a value on its line: blanks, a list mark, bold and code, an
 * element that answers come in, the end of a reasoning section. */
static struct str value_lead(struct str s) {
  for (bool again = true; again && s.n > 0;) {
    size_t closed = 0, skip = 0;
    if (memchr(" \t*_`\r", s.p[0], 6) != NULL)
      skip = 1;
    else if (str_starts(s, "->") || str_starts(s, "\xE2\x86\x92")) /* an arrow */
      skip = s.p[0] == '-' ? 2 : 3;
    else if (s.n >= 2 && memchr("-+", s.p[0], 2) != NULL && s.p[1] == ' ')
      skip = 2;
    else if (extract_tag_at(s.p, s.n, 0, &closed) != EXTRACT_TAG_NO && closed <= s.n)
      skip = closed;
    else
      skip = answer_element(s);
    again = skip > 0;
    s = (struct str){s.p + skip, s.n - skip};
  }
  return s;
}

/* Returns true if a value is handed over. Words that run up to it make it a part of their sentence
 * ("I cannot say {...}"); a colon ends the sentence and hands the value over. */
static bool hands_over(struct str reply, size_t line, size_t from) {
  while (from > line && memchr(" \t\"'`*", reply.p[from - 1], 6) != NULL)
    from--;
  struct str before = {reply.p + line, from - line};
  return str_ends(before, ":") || str_ends(before, "\xEF\xBC\x9A"); /* full-width */
}

/* Returns true for the line of a fence around something other than JSON, or one that makes the next
 * line somebody else's words: a quotation, markup, a comment. */
static bool line_is_foreign(struct str line) {
  static const char *const marks[] = {">", ":::", ".. ", "/*", "<!"};
  line = extract_trim(line);
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    if (str_starts(line, marks[i]))
      return true;
  if (str_starts(line, "<"))
    return value_lead(line).n > 0;
  if (str_starts(line, "//")) /* a comment of the value, unless it calls it a sample */
    return tag_takes_back(line);
  if (!str_starts(line, "```") && !str_starts(line, "~~~"))
    return false;
  char mark = line.p[0];
  while (line.n > 0 && line.p[0] == mark)
    line = (struct str){line.p + 1, line.n - 1};
  return !is_json_kind(extract_trim(line));
}

/* Returns the line that ends before `end`, and sets *start to where it begins. */
static struct str line_before(struct str reply, size_t end, size_t *start) {
  size_t at = end > 0 ? end - 1 : 0; /* its newline */
  for (*start = at; *start > 0 && reply.p[*start - 1] != '\n';)
    --*start;
  return (struct str){reply.p + *start, at - *start};
}

/* Returns true if the line above, blank ones apart, shows or announces what is somebody else's.
 * Fences around JSON do not part the two. */
static bool is_below_foreign(struct str reply, size_t line) {
  bool near = true;
  for (size_t start; line > 0; line = start) {
    struct str text = extract_trim(line_before(reply, line, &start));
    bool fence = str_starts(text, "```") || str_starts(text, "~~~");
    if (fence && line_is_foreign(text))
      return true;
    near = near && text.n > 0;
    if (fence || tag_line_is_empty(text))
      continue;
    if (str_starts(text, "//") || str_starts(text, "<")) /* see line_is_foreign */
      return false;
    return tag_shows_output(text) || tag_points_below(text, NULL) ||
           (near && tag_begins_foreign(text));
  }
  return false;
}

/* Returns true if a quotation, an element or a here-document is open where the line `line`
 * begins. */
static bool is_in_block(struct str reply, size_t line) {
  struct tag_blocks blocks = {0};
  struct str rest = {reply.p, line};
  for (struct str s = str_next_line(&rest); s.p != NULL; s = str_next_line(&rest))
    if (!answer_element(extract_trim(s)))
      tag_blocks_line(&blocks, s);
  return tag_blocks_open(&blocks);
}

/* Returns what stands before the value on its line, which begins at *line. */
static struct str before_value(struct str reply, size_t from, size_t *line) {
  for (*line = from; *line > 0 && reply.p[*line - 1] != '\n';)
    --*line;
  return value_lead((struct str){reply.p + *line, from - *line});
}

/* Returns true if the words before the value, on its line or above, make it somebody else's. */
static bool is_foreign_value(struct str reply, size_t from) {
  size_t line;
  struct str before = before_value(reply, from, &line);
  if (before.n > 0 && has_words(reply, line, from) && !tag_hands_over(before, NULL))
    return true;
  return is_below_foreign(reply, line) || is_in_block(reply, line);
}

/* Returns true if a value among words counts. It does so by its form, as a tag does: nothing but a
 * lead-in before it on its line, and no line of quotation or markup above. */
static bool stands_alone(struct str reply, size_t from) {
  size_t line;
  struct str before = before_value(reply, from, &line);
  if (before.n > 0 &&
      (!has_words(reply, line, from) || !hands_over(reply, line, from) || line_is_foreign(before)))
    return false;
  size_t above;
  return line == 0 || !line_is_foreign(line_before(reply, line, &above));
}

/* Returns true for a lead-in: "Verdict:" hands a value over and says nothing about it. */
static bool is_lead_in(struct str before) {
  before = value_lead(before);
  size_t n = tag_lead_in(before);
  if (n == 0)
    return false;
  before = (struct str){before.p + n, before.n - n};
  const struct str wide = STR("\xEF\xBC\x9A"); /* the full-width colon */
  if (before.n >= wide.n && memcmp(before.p, wide.p, wide.n) == 0)
    before = (struct str){before.p + wide.n, before.n - wide.n};
  while (before.n > 0 && memchr(" \t:*_`", before.p[0], 6) != NULL)
    before = (struct str){before.p + 1, before.n - 1};
  return before.n == 0;
}

/* Returns true if words after the value share its line, or take it back. */
static bool is_doubted(struct str reply, size_t to) {
  struct str rest = {reply.p + to, reply.n - to};
  const char *nl = memchr(rest.p, '\n', rest.n);
  size_t end = nl ? to + (size_t)(nl - rest.p) : reply.n;
  const char *tag = memchr(rest.p, '[', end - to); /* one beside it is weighed as a tag */
  if (memchr(rest.p, '?', end - to) != NULL)
    return true;
  return has_words(reply, to, tag ? (size_t)(tag - reply.p) : end) || tag_takes_back(rest);
}

static bool is_mention(struct str reply, size_t from, size_t to) {
  size_t line = from, end = to;
  while (line > 0 && reply.p[line - 1] != '\n')
    line--;
  while (end < reply.n && reply.p[end] != '\n')
    end++;
  line = from - value_lead((struct str){reply.p + line, from - line}).n;
  if (has_words(reply, line, from) && !hands_over(reply, line, from))
    return true;
  bool words =
      has_words(reply, line, from) && !is_lead_in((struct str){reply.p + line, from - line});
  return (words || has_words(reply, to, end)) && has_words(reply, 0, from) &&
         has_words(reply, to, reply.n);
}

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

static bool stands_in_report(const struct extract_check *check, const json_t *value,
                             struct str piece, struct str report) {
  struct extract_answers answers = {0};
  const struct extract_opts opts = {.check = check, .answers = &answers, .repair = true};
  struct extract_result r;
  if (report.p == NULL || report.n == 0)
    return false;
  struct buf needle = {0}, hay = {0};
  put_bare(&needle, piece);
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

static void read_words(struct whole_reply *s, struct str reply, const struct extract_check *check,
                       struct str report) {
  AUTO(extract_answers_deinit) struct extract_answers answers = {0};
  const struct extract_opts opts = {
      .want = EXTRACT_WANT_OBJECT, .check = check, .whole = true, .answers = &answers};
  AUTO(extract_result_deinit) struct extract_result r;
  (void)extract(reply.p ? reply.p : "", reply.n, &opts, &r);
  s->code = r.error.code;
  if (differing(s, &answers)) {
    s->outcome = WHOLE_REPLY_AMBIGUOUS;
  } else if (r.value != NULL) {
    struct str piece = {reply.p + r.offset, r.length};
    add_place(s, r.value, r.offset, r.length);
    s->duplicate_key = r.duplicate_key;
    s->stage = r.stage;
    s->outcome = r.valid ? WHOLE_REPLY_VALID : WHOLE_REPLY_REFUSED;
    if (is_mention(reply, r.offset, r.offset + r.length) || !stands_alone(reply, r.offset))
      s->outcome = WHOLE_REPLY_MENTION;
    else if (stands_in_report(check, r.value, piece, report))
      s->outcome = WHOLE_REPLY_ECHO;
    else
      s->value = json_incref(r.value);
    s->foreign = is_foreign_value(reply, r.offset);
    s->doubted = is_doubted(reply, r.offset + r.length);
  } else if (r.error.code == EXTRACT_ERR_NO_JSON || r.error.code == EXTRACT_ERR_WRONG_ROOT ||
             r.error.code == EXTRACT_ERR_REASONING) {
    s->outcome = WHOLE_REPLY_NOTHING;
  } else {
    s->outcome = WHOLE_REPLY_BROKEN;
  }
}

void whole_reply_read(struct whole_reply *s, struct str reply, const struct extract_check *check,
                      struct str report) {
  assert(s != NULL && check != NULL && check->valid != NULL && check->is_key != NULL);
  *s = (struct whole_reply){.outcome = WHOLE_REPLY_NOTHING, .code = EXTRACT_ERR_NO_JSON};
  if (!read_alone(s, reply, check))
    read_words(s, reply, check, report);
  if (s->duplicate_key && s->value != NULL)
    s->outcome = WHOLE_REPLY_AMBIGUOUS;
  else if (s->outcome == WHOLE_REPLY_VALID && whole_reply_placeholder(s->value))
    s->outcome = WHOLE_REPLY_PLACEHOLDER;
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
  for (size_t i = behind_stray_closer(text); i < text.n;) {
    struct str rest = str_trim((struct str){text.p + i, text.n - i});
    size_t closed = 0;
    if (rest.n == 0)
      return true;
    i = (size_t)(rest.p - text.p);
    if ((*rest.p != '<' && *rest.p != '[' && *rest.p != '\xE2') ||
        extract_tag_at(text.p, text.n, i, &closed) == EXTRACT_TAG_NO)
      return false;
    i = closed < text.n ? closed : text.n;
  }
  return true;
}
