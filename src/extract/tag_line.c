/* Parses one line by the form of a verdict; anything the form does not name makes it fail. */
#include "extract/tag_line.h"

#include <limits.h>
#include <string.h>

/* A gap is the space people leave between words, not one that pushes a tag out of sight. */
enum { MAX_INDENT = 3, MAX_GAP = 4, MAX_OPEN_MARKS = 6, MAX_LIST_DIGITS = 3, MAX_HEADING = 6 };

bool tag_folded_equal(struct str a, struct str b) {
  if (a.n != b.n)
    return false;
  for (size_t i = 0; i < a.n; i++)
    if (tag_fold(a.p[i]) != tag_fold(b.p[i]))
      return false;
  return true;
}

size_t tag_match(struct str text, struct str name, long *number) {
  size_t i = name.n + 2;
  if (text.n < name.n + 4 || text.p[0] != '[' || text.p[name.n + 1] != ':' ||
      !tag_folded_equal((struct str){text.p + 1, name.n}, name))
    return 0;
  i += text.p[i] == ' ';
  size_t digits = i;
  long value = 0;
  while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9') {
    value = value > (LONG_MAX - 9) / 10 ? LONG_MAX : value * 10 + (text.p[i] - '0');
    i++;
  }
  if (i == digits || i >= text.n || text.p[i] != ']')
    return 0;
  *number = value;
  return i + 1;
}

/* Holds the line as far as it is parsed, and the marks of bold, italic and code that are open: each
 * a character and how many of it are still to be closed. */
struct form {
  struct str rest;
  struct {
    char mark;
    size_t run;
  } open[MAX_OPEN_MARKS];
  size_t open_count;
  bool bad; /* marks cross or nest too deep */
};

static void form_skip(struct form *f, size_t n) {
  f->rest.p += n;
  f->rest.n -= n;
}

static bool form_take(struct form *f, const char *text) {
  if (!str_starts(f->rest, text))
    return false;
  form_skip(f, strlen(text));
  return true;
}

static bool form_take_any(struct form *f, const char *const *texts) {
  for (size_t i = 0; texts[i]; i++)
    if (form_take(f, texts[i]))
      return true;
  return false;
}

/* Takes a run of one mark, which closes open ones of the same kind and opens the rest. */
static bool form_mark(struct form *f) {
  char mark = f->rest.n > 0 ? f->rest.p[0] : '\0';
  size_t run = 0;
  if (mark != '*' && mark != '_' && mark != '`')
    return false;
  while (run < f->rest.n && f->rest.p[run] == mark)
    run++;
  form_skip(f, run);
  while (run > 0 && f->open_count > 0 && f->open[f->open_count - 1].mark == mark) {
    size_t *open = &f->open[f->open_count - 1].run;
    size_t closed = run < *open ? run : *open;
    run -= closed;
    *open -= closed;
    if (*open == 0)
      f->open_count--;
    else
      break;
  }
  if (run > 0 && f->open_count < MAX_OPEN_MARKS) {
    f->open[f->open_count].mark = mark;
    f->open[f->open_count++].run = run;
  } else if (run > 0) {
    f->bad = true;
  }
  return true;
}

/* Takes marks and a gap of visible spaces, in any order. */
static void form_gap(struct form *f) {
  static const char *const spaces[] = {" ", "\t", "\xC2\xA0", "\xE2\x80\xAF", "\xE3\x80\x80", NULL};
  size_t gap = 0;
  while (!f->bad) {
    if (form_take_any(f, spaces))
      f->bad = ++gap > MAX_GAP;
    else if (!form_mark(f))
      return;
  }
}

static const char *const dashes[] = {"-", "\xE2\x80\x93", "\xE2\x80\x94", NULL};
static const char *const arrows[] = {"\xE2\x86\x92", "\xE2\x87\x92", "\xE2\x9E\x9C",
                                     "\xE2\x9E\x94", "->",           NULL};

static bool form_list_mark(struct form *f) {
  static const char *const bullets[] = {"-", "*", "+", "\xE2\x80\xA2", NULL};
  struct form tried = *f;
  size_t digits = 0;
  if (!form_take_any(&tried, bullets)) {
    while (digits < tried.rest.n && digits < MAX_LIST_DIGITS && tried.rest.p[digits] >= '0' &&
           tried.rest.p[digits] <= '9')
      digits++;
    form_skip(&tried, digits);
    if (digits == 0 || (!form_take(&tried, ".") && !form_take(&tried, ")")))
      return false;
  }
  if (!form_take(&tried, " ") && !form_take(&tried, "\t"))
    return false;
  *f = tried;
  return true;
}

/* Takes the marks of a heading. Returns their number, 0 for none. */
static size_t form_heading(struct form *f) {
  size_t n = 0;
  while (n < f->rest.n && f->rest.p[n] == '#')
    n++;
  if (n == 0 || n > MAX_HEADING || n == f->rest.n || f->rest.p[n] != ' ')
    return 0;
  form_skip(f, n + 1);
  return n;
}

/* Takes "Final verdict:", its marks and the gap after it. */
static bool form_lead_in(struct form *f) {
  struct form tried = *f;
  size_t n = tag_lead_in(tried.rest);
  form_skip(&tried, n);
  form_gap(&tried);
  if (n == 0 || (!form_take(&tried, ":") && !form_take(&tried, "\xEF\xBC\x9A") &&
                 !form_take_any(&tried, arrows) && !form_take_any(&tried, dashes)))
    return false;
  form_gap(&tried);
  *f = tried;
  return true;
}

/* Takes the cells of a row before the one of the tag: "| Verdict |". */
static bool form_cell(struct form *f) {
  form_gap(f);
  size_t n = tag_lead_in(f->rest);
  form_skip(f, n);
  form_gap(f);
  (void)form_take(f, ":");
  form_gap(f);
  bool cell = n > 0 && form_take(f, "|");
  form_gap(f);
  return cell;
}

static void form_stop(struct form *f) {
  static const char *const stops[] = {".", "!", "\xE3\x80\x82", "\xEF\xBC\x81", NULL};
  (void)form_take_any(f, stops);
  form_gap(f);
}

size_t tag_rule_words(struct str text, const struct tag_query *query) {
  size_t longest = 0;
  for (size_t i = 0; i < query->word_count; i++) {
    struct str words = query->words[i].words;
    if (words.n > longest && words.n <= text.n &&
        tag_folded_equal((struct str){text.p, words.n}, words))
      longest = words.n;
  }
  return longest;
}

static bool take_words(struct form *f, const struct tag_query *query, long number) {
  for (size_t i = 0; i < query->word_count; i++) {
    struct str words = query->words[i].words;
    if (query->words[i].number == number && words.n > 0 && words.n <= f->rest.n &&
        tag_folded_equal((struct str){f->rest.p, words.n}, words)) {
      form_skip(f, words.n);
      return true;
    }
  }
  return false;
}

/* Takes the words of rule `number`: bare, in parentheses or after a dash. Takes nothing if they are
 * not there. */
static void form_own_words(struct form *f, const struct tag_query *query, long number) {
  static const char *const openers[] = {"(", "\xEF\xBC\x88", NULL};
  static const char *const closers[] = {")", "\xEF\xBC\x89", NULL};
  struct form tried = *f;
  bool wrapped = form_take_any(&tried, openers);
  if (!wrapped)
    (void)form_take_any(&tried, dashes);
  form_gap(&tried);
  if (!take_words(&tried, query, number))
    return;
  form_gap(&tried);
  if (wrapped && !form_take_any(&tried, closers))
    return;
  form_gap(&tried);
  form_stop(&tried);
  *f = tried;
}

bool tag_line_read(struct str line, const struct tag_query *query, bool verdict,
                   struct tag_place *tag) {
  struct form f = {.rest = line};
  size_t indent = 0;
  while (indent < line.n && line.p[indent] == ' ')
    indent++;
  if (indent > MAX_INDENT || (indent < line.n && line.p[indent] == '\t'))
    return false;
  form_skip(&f, indent);
  bool row = form_take(&f, "|");
  size_t heading = form_heading(&f);
  if (heading == 0 && !row)
    (void)form_list_mark(&f);
  form_gap(&f);
  form_skip(&f, tag_emoji(f.rest));
  form_gap(&f);
  if (row ? !form_cell(&f) : (!form_lead_in(&f) && heading == 1)) /* # may begin a comment */
    return false;
  (void)form_take_any(&f, arrows);
  form_gap(&f);
  tag->length = tag_match(f.rest, query->name, &tag->number);
  if (tag->length == 0)
    return false;
  tag->offset = (size_t)(f.rest.p - line.p);
  form_skip(&f, tag->length);
  form_gap(&f);
  form_stop(&f);
  form_skip(&f, tag_emoji(f.rest));
  form_gap(&f);
  form_own_words(&f, query, tag->number);
  form_skip(&f, tag_emoji(f.rest));
  form_gap(&f);
  if (row)
    (void)form_take(&f, "|");
  for (size_t n; (n = tag_token(f.rest)) > 0; form_gap(&f))
    form_skip(&f, n);
  return f.rest.n == 0 && !f.bad && (f.open_count == 0 || !verdict);
}

/* Takes "step" or "Rule", and the gap after it. */
static void form_noun(struct form *f) {
  static const char *const nouns[] = {"step", "condition", "option", "number"};
  size_t n = tag_lead_in(f->rest);
  for (size_t i = 0; i < sizeof nouns / sizeof *nouns && n == 0; i++)
    if (str_starts_fold(f->rest, nouns[i]))
      n = strlen(nouns[i]);
  form_skip(f, n);
  form_gap(f);
}

/* Takes all up to the last colon of the line. */
static bool form_any_words(struct form *f) {
  const struct str wide = STR("\xEF\xBC\x9A");
  for (size_t i = f->rest.n; i-- > 0;) {
    struct str rest = {f->rest.p + i, f->rest.n - i};
    if (rest.p[0] != ':' && !str_starts(rest, wide.p))
      continue;
    form_skip(f, i + (rest.p[0] == ':' ? 1 : wide.n));
    form_gap(f);
    return true;
  }
  return false;
}

/* Returns true if the line has any of the signs that end a lead-in: a colon, a dash, an arrow.
 * Other languages have their own, so a byte that is not ASCII counts. */
static bool can_lead_in(struct str line) {
  for (size_t i = 0; i < line.n; i++)
    if (line.p[i] == ':' || line.p[i] == '-' || (line.p[i] & 0x80))
      return true;
  return false;
}

bool tag_line_number(struct str line, const struct tag_query *query, bool any_words,
                     struct tag_place *place) {
  struct form f = {.rest = str_trim(line)};
  const char *start = line.p;
  if (!can_lead_in(line)) /* most lines of an answer */
    return false;
  (void)(form_heading(&f) || form_list_mark(&f));
  form_gap(&f);
  form_skip(&f, tag_emoji(f.rest));
  form_gap(&f);
  struct form tried = f;
  form_noun(&tried);
  bool named = tried.rest.p > f.rest.p && form_take(&tried, ":"); /* "Step: 2" */
  if (named)
    f = tried;
  else if (!form_lead_in(&f) && !(any_words && form_any_words(&f)))
    return false;
  form_gap(&f);
  form_noun(&f);
  const char *digits = f.rest.p;
  for (place->number = 0; f.rest.n > 0 && f.rest.p[0] >= '0' && f.rest.p[0] <= '9';) {
    place->number = place->number > LONG_MAX / 10 - 1 ? LONG_MAX / 10 - 1 : place->number * 10;
    place->number += f.rest.p[0] - '0';
    form_skip(&f, 1);
  }
  for (size_t i = 0; i < query->word_count && f.rest.p == digits; i++)
    if (take_words(&f, query, query->words[i].number)) /* "Verdict: needs fix" */
      place->number = query->words[i].number;
  place->offset = (size_t)(digits - start);
  place->length = (size_t)(f.rest.p - digits);
  form_gap(&f);
  form_stop(&f);
  form_own_words(&f, query, place->number);
  form_skip(&f, tag_emoji(f.rest));
  form_gap(&f);
  return place->length > 0 && f.rest.n == 0;
}

bool tag_line_is_empty(struct str line) {
  struct str rest = str_trim(line);
  size_t n, marks = 0;
  if (rest.n == 0)
    return true;
  if (!(rest.p[0] & 0x80) && memchr("-*_<", rest.p[0], 4) == NULL) /* no emoji, no token either */
    return false;
  for (size_t i = 0; i < rest.n; i++)
    if (rest.p[i] == rest.p[0])
      marks++;
    else if (rest.p[i] != ' ')
      marks = rest.n + 1;
  if (marks >= 3 && marks <= rest.n && memchr("-*_", rest.p[0], 3) != NULL)
    return true;
  while ((n = tag_emoji(rest)) > 0 || (n = tag_token(rest)) > 0)
    rest = str_trim((struct str){rest.p + n, rest.n - n});
  return rest.n == 0;
}
