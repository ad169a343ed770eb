/* Finds the tag with which a text names a rule, by its form and by the mark behind it. */
#include "extract/tag.h"

#include "base/utf8.h"
#include "extract/internal.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* --- signs and letters --- */

/* Lists the blocks of Unicode that hold signs: punctuation, arrows, boxes, emoji, marks of
 * direction and the like. All else that is not ASCII is a letter or a digit. */
static const struct sign_block {
  uint32_t first, last;
} sign_blocks[] = {
    {0x0080, 0x00A9}, {0x00AB, 0x00B4}, {0x00B6, 0x00B9}, {0x00BB, 0x00BF},   {0x00D7, 0x00D7},
    {0x00F7, 0x00F7}, {0x2000, 0x206F}, {0x20A0, 0x20CF}, {0x2100, 0x2BFF},   {0x2E00, 0x2E7F},
    {0x3000, 0x3004}, {0x3008, 0x3030}, {0xFE00, 0xFE6F}, {0xFEFF, 0xFF0F},   {0xFF1A, 0xFF20},
    {0xFF3B, 0xFF40}, {0xFF5B, 0xFF65}, {0xFFE0, 0xFFFF}, {0x1F000, 0x1FAFF}, {0xE0000, 0xE01EF},
};

/* Length of the character at the start of `s`, which is not empty; *letter: it is a letter, a digit
 * or no character at all. */
static size_t character(struct str s, bool *letter) {
  uint32_t cp;
  *letter = str_is_letter(s.p[0]) || str_is_digit(s.p[0]);
  if (!(s.p[0] & 0x80))
    return 1;
  size_t n = utf8_decode(s.p, s.n, &cp);
  size_t from = 0, end = n > 0 ? ARRAY_LEN(sign_blocks) : 0;
  while (from < end) { /* the first block that ends at or behind it */
    size_t middle = (from + end) / 2;
    if (sign_blocks[middle].last < cp)
      from = middle + 1;
    else
      end = middle;
  }
  *letter = n == 0 || from == ARRAY_LEN(sign_blocks) || cp < sign_blocks[from].first;
  return n > 0 ? n : 1;
}

size_t tag_letter(struct str s) {
  bool letter = false;
  size_t n = s.n > 0 ? character(s, &letter) : 0;
  return letter ? n : 0;
}

static struct str tag_skip(struct str s, size_t n) {
  return (struct str){s.p + n, s.n - n};
}

/* Returns how many bytes of signs `s` begins with. */
static size_t signs_at(struct str s) {
  size_t at = 0;
  while (at < s.n) {
    bool letter;
    size_t n = character(tag_skip(s, at), &letter);
    if (letter)
      break;
    at += n;
  }
  return at;
}

static bool says_something(struct str s) {
  return signs_at(s) < s.n;
}

struct str tag_without_signs(struct str s) {
  size_t end = 0;
  s = tag_skip(s, signs_at(s));
  for (size_t at = 0; at < s.n;) {
    bool letter;
    at += character(tag_skip(s, at), &letter);
    end = letter ? at : end;
  }
  return (struct str){s.p, end};
}

/* Returns the length of the first of `marks` that `s` begins with (`at_end`: ends with), 0 for
 * none. */
static size_t tag_one_of(struct str s, const char *const *marks, bool at_end) {
  for (size_t i = 0; marks[i] && s.n > 0; i++)
    if (at_end ? str_ends(s, marks[i]) : str_starts(s, marks[i]))
      return strlen(marks[i]);
  return 0;
}

static bool tag_holds_one_of(struct str s, const char *const *marks) {
  for (; s.n > 0; s = tag_skip(s, 1))
    if (tag_one_of(s, marks, false) > 0)
      return true;
  return false;
}

/* Returns the text without white space and end-of-turn tokens at its end. */
static struct str without_tokens(struct str s) {
  static const char *const tokens[] = {
      "</s>",    "<|im_end|>",      "<|eot_id|>",      "<|eom_id|>",
      "<|end|>", "<|endoftext|>",   "<|return|>",      "<end_of_turn>",
      "<eos>",   "<|end_of_turn|>", "<|end_of_text|>", NULL};
  size_t n;
  while ((s = str_trim(s)).n > 0 && s.p[s.n - 1] == '>' && (n = tag_one_of(s, tokens, true)) > 0)
    s.n -= n;
  return s;
}

bool tag_folded_equal(struct str a, struct str b) {
  if (a.n != b.n)
    return false;
  for (size_t i = 0; i < a.n; i++)
    if (str_lower(a.p[i]) != str_lower(b.p[i]))
      return false;
  return true;
}

/* --- the mark --- */

static const char mark_letters[] = "bcdfghjkmnpqrstvwxz",
                  mark_rest[] = "bcdfghjkmnpqrstvwxz23456789";

uint32_t tag_mark_letter(struct str mark) {
  const char *first = NULL;
  if (mark.n == TAG_MARK_BYTES)
    first = memchr(mark_letters, str_lower(mark.p[0]), sizeof mark_letters - 1);
  for (size_t i = 1; first != NULL && i < TAG_MARK_BYTES; i++)
    if (memchr(mark_rest, str_lower(mark.p[i]), sizeof mark_rest - 1) == NULL)
      first = NULL;
  return first ? (uint32_t)1 << (first - mark_letters) : 0;
}

void tag_mark_make(const unsigned char random[TAG_MARK_BYTES], uint32_t used,
                   char out[TAG_MARK_BYTES + 1]) {
  enum { LETTERS = sizeof mark_letters - 1 };
  size_t first = random[0] % LETTERS, tried = 0;
  while (tried++ < LETTERS && (used >> first & 1) != 0)
    first = (first + 1) % LETTERS;
  out[0] = mark_letters[first];
  for (size_t i = 1; i < TAG_MARK_BYTES; i++)
    out[i] = mark_rest[random[i] % (sizeof mark_rest - 1)];
  out[TAG_MARK_BYTES] = '\0';
}

const char *tag_mark_name(enum tag_mark mark) {
  static const char *const names[TAG_MARK_COUNT] = {NULL, "present", "elsewhere", "wrong",
                                                    "missing"};
  return names[mark];
}

/* --- a tag and what is behind it --- */

static const char *const openers[] = {"[", "［", "【", NULL}, *const closers[] = {"]", "］", "】",
                                                                                  NULL};
static const char *const colons[] = {":", "：", NULL};

/* Takes at most TAG_MARK_BYTES spaces. */
static void skip_tag_spaces(struct str *s) {
  static const char *const spaces[] = {" ", "\xC2\xA0", "\xE2\x80\xAF", "\xE3\x80\x80", NULL};
  size_t n = 1;
  for (size_t i = 0; i < TAG_MARK_BYTES && n > 0 && s->n > 0; i++) {
    n = s->p[0] == ' ' || s->p[0] & 0x80 ? tag_one_of(*s, spaces, false) : 0;
    *s = tag_skip(*s, n);
  }
}

static bool take_tag_sign(struct str *s, const char *const *marks) {
  size_t n = tag_one_of(*s, marks, false);
  *s = tag_skip(*s, n);
  skip_tag_spaces(s);
  return n > 0;
}

/* Takes a digit, wide or not. Returns it, -1 if there is none. */
static int take_digit(struct str *s) {
  bool wide = s->n >= 3 && s->p[0] == '\xEF' && s->p[1] == '\xBC' && (s->p[2] & 0xF0) == 0x90;
  int digit = -1;
  if (s->n > 0 && str_is_digit(s->p[0]))
    digit = s->p[0] - '0';
  else if (wide && (s->p[2] & 0x0F) <= 9)
    digit = s->p[2] & 0x0F;
  if (digit >= 0)
    *s = tag_skip(*s, wide ? 3 : 1);
  return digit;
}

/* Returns the offset, from `from` on, of a byte that may begin a tag, or the text's length. */
static size_t may_begin(struct str text, size_t from) {
  while (from < text.n && text.p[from] != '[' && text.p[from] != '\xEF' && text.p[from] != '\xE3')
    from++;
  return from;
}

/* Length of the tag at the start of `text`, 0 when there is none. */
static size_t tag_match(struct str text, struct str name, long *number) {
  struct str s = text;
  if (!take_tag_sign(&s, openers) || s.n < name.n ||
      !tag_folded_equal((struct str){s.p, name.n}, name))
    return 0;
  s = tag_skip(s, name.n);
  skip_tag_spaces(&s);
  if (!take_tag_sign(&s, colons))
    return 0;
  int digit = take_digit(&s);
  if (digit < 0)
    return 0;
  for (*number = 0; digit >= 0; digit = take_digit(&s))
    *number = *number > (LONG_MAX - 9) / 10 ? LONG_MAX : *number * 10 + digit;
  skip_tag_spaces(&s);
  size_t n = tag_one_of(s, closers, false);
  return n > 0 ? (size_t)(s.p - text.p) + n : 0;
}

/* Length of signs and a word of a mark's form at the start of `s`, 0 if there is none. */
static size_t word_behind(struct str s) {
  size_t gap = signs_at(s);
  const char *nl = memchr(s.p, '\n', gap);
  struct str word = {s.p + gap, s.n - gap < TAG_MARK_BYTES ? s.n - gap : TAG_MARK_BYTES};
  bool ends = s.n == gap + word.n || tag_letter(tag_skip(s, gap + word.n)) != 1;
  bool fine = nl == NULL && gap <= TAG_GAP_BYTES && ends && tag_mark_letter(word) != 0;
  return fine ? gap + word.n : 0;
}

/* A tag on a line: where it is, and the word behind it. */
struct tag_here {
  size_t at, n, word; /* offset, its length, the length of what leads to the word's end; or 0 */
  long number;
};

/* Finds the first tag at or behind `from`. */
static bool next_tag(struct str line, size_t from, const struct tag_query *q,
                     struct tag_here *out) {
  for (size_t i = may_begin(line, from); i < line.n; i = may_begin(line, i + 1)) {
    out->n = tag_match(tag_skip(line, i), q->name, &out->number);
    if (out->n == 0)
      continue;
    out->at = i;
    out->word = q->mark.n > 0 ? word_behind(tag_skip(line, i + out->n)) : 0;
    return true;
  }
  return false;
}

static bool has_mark(struct str line, const struct tag_query *q, const struct tag_here *tag) {
  size_t end = tag->at + tag->n + tag->word;
  return tag->word > 0 &&
         tag_folded_equal((struct str){line.p + end - TAG_MARK_BYTES, TAG_MARK_BYTES}, q->mark);
}

/* --- the line of a verdict --- */

static const char *const quotes[] = {"\"", "'", "“", "”",  "„",  "‘",  "’",  "«",
                                     "»",  "‹", "›", "「", "」", "『", "』", NULL};
static const char *const lead_ends[] = {":", "：", "-", "–", "—",  "→",
                                        "⇒", "➜",  "➔", "➡", "=>", NULL};

/* More bytes than that, with a rule's words, are no line of a verdict. */
enum { MAX_SIGNS = 1024 };

/* Returns true if a sign among these takes a verdict away. */
static bool takes_away(struct str signs) {
  static const char *const marks[] = {"?", "？", "...", "…", "~~", "<", "[ ]", "[]", NULL};
  return tag_holds_one_of(signs, marks);
}

/* Takes the mark of a list: "- ", "3. ", "- [x] ". */
static struct str without_list_mark(struct str s) {
  size_t digits = 0;
  s = str_trim(s);
  while (digits < 3 && digits < s.n && str_is_digit(s.p[digits]))
    digits++;
  size_t n = 0;
  if (digits > 0 && digits + 1 < s.n && (s.p[digits] == '.' || s.p[digits] == ')') &&
      s.p[digits + 1] == ' ')
    n = digits + 2;
  else if (s.n > 2 && memchr("-*+", s.p[0], 3) != NULL && s.p[1] == ' ')
    n = 2;
  else if (str_starts(s, "• "))
    n = strlen("• ");
  s = tag_skip(s, n);
  if (n > 0 && (str_starts(s, "[x] ") || str_starts(s, "[X] ")))
    s = tag_skip(s, 4);
  return s;
}

static bool is_list_item(struct str line) {
  line = str_trim(line);
  return without_list_mark(line).n < line.n;
}

/* Returns true if the signs that end the words hand over what comes next. */
static bool leads_on(struct str before) {
  while (before.n > 0 && memchr(" \t*_`", before.p[before.n - 1], 5) != NULL)
    before.n--;
  if (before.n > 1 && str_ends(before, "->"))
    return true;
  return tag_one_of(before, lead_ends, true) > 0;
}

/* Returns the signs at the end of the words. */
static struct str last_signs(struct str s) {
  struct str bare = tag_without_signs(s);
  return bare.n > 0 ? tag_skip(s, (size_t)(bare.p - s.p) + bare.n) : s;
}

/* Returns true if behind the mark stand signs, or the rule's own words. */
static bool ends_well(struct str after, const struct tag_query *q, long number, bool quoted) {
  size_t n = signs_at(after);
  struct str signs = {after.p, n}, words = tag_skip(after, n);
  if (words.n > 0) {
    struct str own = {0};
    for (size_t i = 0; i < q->word_count; i++)
      if (q->words[i].number == number)
        own = tag_without_signs(q->words[i].words);
    if (own.n == 0 || own.n > words.n || !tag_folded_equal((struct str){words.p, own.n}, own))
      return false;
    words = tag_skip(words, own.n);
  }
  return !says_something(words) && !takes_away(words) && !takes_away(signs) &&
         (quoted || (!tag_holds_one_of(signs, quotes) && !tag_holds_one_of(words, quotes)));
}

/* Takes an element that stands around the tag alone off both. */
static void without_element(struct str *before, struct str *after) {
  struct str name = str_trim(*before);
  size_t n = extract_element(name);
  if (n == 0 || n != name.n || after->n < n + 1 || !str_starts(*after, "</") ||
      memcmp(after->p + 2, name.p + 1, n - 1) != 0)
    return;
  *before = (struct str){before->p, 0};
  *after = tag_skip(*after, n + 1);
}

/* Returns true if the line has the form of a verdict by its tag, which is marked. */
static bool is_verdict(struct str line, const struct tag_query *q, const struct tag_here *tag) {
  size_t list = line.n - without_list_mark(line).n;
  struct str before = tag_skip((struct str){line.p, tag->at}, list < tag->at ? list : tag->at);
  struct str gap = {line.p + tag->at + tag->n, tag->word - TAG_MARK_BYTES};
  struct str after = tag_skip(line, tag->at + tag->n + tag->word);
  without_element(&before, &after);
  bool alone = !says_something(before), in_gap = tag_holds_one_of(gap, quotes);
  struct str beside = last_signs(before);
  if (beside.n > MAX_SIGNS || after.n > MAX_SIGNS)
    return false;
  if (takes_away(beside) || takes_away(gap))
    return false;
  if (!alone && (!leads_on(before) || tag_holds_one_of(beside, quotes)))
    return false;
  return ends_well(after, q, tag->number, alone || in_gap);
}

/* --- the lines of a text --- */

/* Returns true if a line is closed: what stands below it is no part of its sentence. */
static bool tag_line_closes(struct str line, const struct tag_query *q) {
  static const char *const ends[] = {".", "!", "。", "！", "…", "．", "｡", "।", "॥", "։",
                                     "۔", "።", "။",  "།",  "។", "៕",  "᠃", "᙮", NULL};
  static const char *const behind[] = {" ", "*", "_",  "`",  "\"", "'",  ")",  "]",  "}",  "”", "’",
                                       "»", "›", "」", "』", "）", "】", "）", "］", "\t", NULL};
  struct tag_here tag = {0};
  size_t n;
  line = str_trim(line);
  if (line.p[0] == '#' || line.p[0] == '|' || is_list_item(line))
    return true;
  while (next_tag(line, tag.at + tag.n, q, &tag)) /* one that ends in a tag */
    if (tag.at + tag.n == line.n || tag.at + tag.n + tag.word == line.n)
      return true;
  while ((n = tag_one_of(line, behind, true)) > 0)
    line.n -= n;
  return tag_one_of(line, ends, true) > 0;
}

struct fence {
  char mark; /* '`' or '~', 0: none */
  size_t run;
};

static struct fence fence_at(struct str line) {
  line = str_trim(line);
  struct fence f = {.mark =
                        line.n > 2 && (line.p[0] == '`' || line.p[0] == '~') ? line.p[0] : '\0'};
  while (f.mark != '\0' && f.run < line.n && line.p[f.run] == f.mark)
    f.run++;
  if (f.run < 3 || (f.mark == '`' && memchr(line.p + f.run, '`', line.n - f.run) != NULL))
    f = (struct fence){0};
  return f;
}

struct pass {
  const struct tag_query *query;
  struct str text;
  struct fence fence; /* that is open */
  bool closed;        /* what stands above the next line that says something */
  struct {
    struct str line; /* the last one that says something; empty: none does */
    bool closed;     /* what stands above it */
    bool fenced;
  } last;
  /* Two places that name different numbers, as another rule's own words or a marked tag. */
  struct tag_place doubts[2];
  size_t doubt_count;
};

static void doubt(struct pass *pass, struct str at, long number) {
  struct tag_place place = {number, (size_t)(at.p - pass->text.p), at.n, 0};
  if (pass->doubt_count == 0 || (pass->doubt_count == 1 && pass->doubts[0].number != number))
    pass->doubts[pass->doubt_count++] = place;
}

/* Notes what may contradict the last line. */
static void note_doubts(struct pass *pass, struct str line) {
  const struct tag_query *q = pass->query;
  struct tag_here tag;
  struct str said = str_trim(line);
  if (q->mark.n == 0) { /* a line that begins with a tag */
    while (said.n > 0 && memchr("*_`", said.p[0], 3) != NULL)
      said = tag_skip(said, 1);
    said = without_list_mark(said);
    if (next_tag((struct str){said.p, said.n}, 0, q, &tag) && tag.at == 0)
      doubt(pass, (struct str){said.p, tag.n}, tag.number);
    return;
  }
  for (size_t at = 0; next_tag(line, at, q, &tag); at = tag.at + tag.n)
    if (has_mark(line, q, &tag))
      doubt(pass, (struct str){line.p + tag.at, tag.n}, tag.number);
  said = tag_without_signs(line);
  for (size_t i = 0; i < q->word_count && said.n > 0; i++)
    if (tag_folded_equal(said, tag_without_signs(q->words[i].words)))
      doubt(pass, said, q->words[i].number);
}

static void pass_line(struct pass *pass, struct str line) {
  struct fence fence = fence_at(line);
  struct str said = without_tokens(line);
  bool says = says_something(said);
  if (fence.mark != '\0') {
    bool closes = !says && fence.mark == pass->fence.mark && fence.run >= pass->fence.run;
    if (closes || pass->fence.mark == '\0')
      pass->fence = closes ? (struct fence){0} : fence;
  }
  if (says) {
    pass->last.line = said;
    pass->last.closed = pass->closed;
    pass->last.fenced = pass->fence.mark != '\0';
    note_doubts(pass, said);
    pass->closed = fence.mark != '\0' || tag_line_closes(said, pass->query);
  } else if (said.n > 2 && memchr("-*_`~=", said.p[0], 6) != NULL) { /* a rule, a fence */
    pass->closed = true;
  }
}

/* Returns how many bytes of the line and what follows a reasoning section takes away, SIZE_MAX if
 * it never ends, 0 for none. An opener counts at the start of its line; what stands before a closer
 * without one was reasoning too. */
static size_t reasoning_at(struct pass *pass, size_t at, struct str line) {
  size_t indent = 0, closed = 0;
  while (indent < line.n && line.p[indent] == ' ')
    indent++;
  for (size_t i = 0; i < line.n; i++) {
    size_t after = i + (line.p[i] == '\xE2' ? 3 : 1);
    if ((line.p[i] != '<' && line.p[i] != '[' && line.p[i] != '\xE2') ||
        (i != indent && (after >= line.n || (line.p[after] != '/' && line.p[after] != '|'))))
      continue;
    enum extract_tag kind = extract_tag_at(pass->text.p, pass->text.n, at + i, &closed);
    if (kind == EXTRACT_TAG_NO || (kind == EXTRACT_TAG_OPENER && i != indent))
      continue;
    *pass = (struct pass){.query = pass->query, .text = pass->text, .closed = true};
    return closed == SIZE_MAX ? SIZE_MAX : closed - at;
  }
  return 0;
}

static void pass_lines(struct pass *pass) {
  const struct str text = pass->text;
  for (size_t at = 0; at < text.n;) {
    const char *nl = memchr(text.p + at, '\n', text.n - at);
    struct str line = {text.p + at, nl ? (size_t)(nl - text.p) - at : text.n - at};
    size_t reasoning = reasoning_at(pass, at, line);
    if (reasoning == SIZE_MAX)
      return;
    if (reasoning == 0)
      pass_line(pass, line);
    at += reasoning > 0 ? reasoning : line.n + 1;
  }
}

/* --- who is read how --- */

/* Reads a tag that is a whole reply or line, bold, code and a full stop apart. `text` holds it. */
static bool is_tag_alone(struct str text, struct str s, const struct tag_query *q,
                         struct tag_place *place) {
  *place = (struct tag_place){0};
  while (s.n > 0 && memchr(" \t*_`", s.p[0], 5) != NULL)
    s = tag_skip(s, 1);
  place->length = tag_match(s, q->name, &place->number);
  if (place->length == 0)
    return false;
  struct str rest = tag_skip(s, place->length);
  size_t word = q->mark.n > 0 ? word_behind(rest) : 0;
  const struct tag_here here = {0, place->length, word, place->number};
  if (word > 0 && has_mark(s, q, &here))
    rest = tag_skip(rest, word);
  size_t stops = 0, n;
  while ((n = tag_one_of(rest, (const char *const[]){".", "。", NULL}, false)) > 0 ||
         (rest.n > 0 && memchr(" \t*_`", rest.p[0], 5) != NULL)) {
    stops += n > 0;
    rest = tag_skip(rest, n > 0 ? n : 1);
  }
  place->offset = (size_t)(s.p - text.p);
  return rest.n == 0 && stops <= 1;
}

/* Reads a judge's reply: the tag is all of it. */
static bool read_reply(struct str text, const struct tag_query *q, struct tag_place *place) {
  struct str said = without_tokens(extract_behind_reasoning(text));
  const char *nl = said.n > 0 ? memchr(said.p, '\n', said.n) : NULL;
  struct fence fence = fence_at((struct str){said.p, nl ? (size_t)(nl - said.p) : 0});
  if (fence.mark != '\0' && nl != NULL && said.p[said.n - 1] == fence.mark) {
    struct str inner = {nl + 1, said.n - (size_t)(nl + 1 - said.p)};
    while (inner.n > 0 && inner.p[inner.n - 1] == fence.mark)
      inner.n--;
    said = str_trim(inner);
  }
  said = without_list_mark(said);
  return is_tag_alone(text, said, q, place);
}

/* Sets the result by the last line, if that has the form. */
static void read_last(const struct pass *pass, const struct tag_query *q, struct tag_result *out) {
  struct str line = pass->last.line;
  struct tag_here tag = {0};
  if (q->mark.n == 0)
    out->found = !pass->last.fenced && is_tag_alone(pass->text, line, q, &out->tag);
  size_t at = 0;
  while (q->mark.n > 0 && next_tag(line, at, q, &tag) && !has_mark(line, q, &tag)) {
    out->mark = tag.word > 0 ? TAG_WRONG : out->mark;
    at = tag.at + tag.n;
    tag.n = 0;
  }
  if (q->mark.n > 0 && tag.n > 0 && is_verdict(line, q, &tag) &&
      (q->scope == TAG_COMMAND || pass->last.closed)) {
    out->found = out->marked = true;
    out->mark = TAG_PRESENT;
    out->tag.number = tag.number;
    out->tag.offset = (size_t)(line.p - pass->text.p) + tag.at;
    out->tag.length = tag.n;
  }
  for (size_t i = 0; i < pass->doubt_count && out->found && !out->ambiguous; i++)
    if (pass->doubts[i].number != out->tag.number) {
      out->ambiguous = true;
      out->other = pass->doubts[i];
    }
}

static bool holds_word(struct str text, struct str word) {
  for (size_t i = 0; i + word.n <= text.n; i++)
    if (str_lower(text.p[i]) == str_lower(word.p[0]) &&
        tag_folded_equal((struct str){text.p + i, word.n}, word) &&
        (i == 0 || (!str_is_letter(text.p[i - 1]) && !str_is_digit(text.p[i - 1]))) &&
        tag_letter(tag_skip(text, i + word.n)) != 1)
      return true;
  return false;
}

static bool same_place(const struct tag_place *a, const struct tag_place *b) {
  return a->length > 0 && a->offset == b->offset;
}

/* Names what is only mentioned, and the lines of all. */
static void find_mentions(struct str text, struct str name, struct tag_result *out) {
  struct tag_place place = {.line = 1};
  for (size_t i = 0; i < text.n; i++) {
    place.line += text.p[i] == '\n';
    if (i == out->other.offset)
      out->other.line = place.line;
    place.length = tag_match(tag_skip(text, i), name, &place.number);
    if (place.length == 0)
      continue;
    place.offset = i;
    if (same_place(&out->tag, &place))
      out->tag = place;
    else if (same_place(&out->other, &place))
      out->other = place;
    else if (out->mention_count < LIMIT_TAG_MENTION_COUNT)
      out->mentions[out->mention_count++] = place;
    else
      out->mentions_dropped++;
    i += place.length - 1;
  }
}

void tag_read(struct str text, const struct tag_query *query, struct tag_result *out) {
  struct tag_query q = *query;
  assert(q.name.n == 0 || q.name.p != NULL);
  if (q.mark.n != TAG_MARK_BYTES) /* in a log that others have written */
    q.mark.n = 0;
  *out = (struct tag_result){0};
  if (q.name.n == 0)
    return;
  out->mark = q.mark.n > 0 && q.scope != TAG_REPLY ? TAG_MISSING : TAG_UNASKED;
  if (q.scope == TAG_REPLY) {
    out->found = read_reply(text, &q, &out->tag);
  } else {
    struct pass pass = {.query = &q, .text = text, .closed = true};
    pass_lines(&pass);
    read_last(&pass, &q, out);
    if (out->mark == TAG_MISSING && holds_word(text, q.mark))
      out->mark = TAG_ELSEWHERE;
    if (q.scope == TAG_COMMAND && out->mark == TAG_MISSING) { /* it knows of no mark */
      q.mark.n = 0;
      pass = (struct pass){.query = &q, .text = text, .closed = true};
      pass_lines(&pass);
      read_last(&pass, &q, out);
    }
  }
  if (!out->found)
    out->tag = (struct tag_place){0};
  find_mentions(text, q.name, out);
}

bool tag_cut_marked(struct str *text, struct str name, struct str mark) {
  const struct tag_query q = {.name = name, .mark = mark};
  struct str rest = *text;
  while (mark.n > 0 && rest.n > 0) {
    const char *nl = memrchr(rest.p, '\n', rest.n);
    size_t start = nl ? (size_t)(nl - rest.p) + 1 : 0;
    struct str line = without_tokens(tag_skip(rest, start));
    struct tag_here tag;
    for (size_t at = 0; next_tag(line, at, &q, &tag); at = tag.at + tag.n)
      if (has_mark(line, &q, &tag)) {
        text->n = start;
        return true;
      }
    if (says_something(line))
      return false;
    rest.n = nl ? start - 1 : 0;
  }
  return false;
}
