/* Parses one line by the form of a verdict; anything the form does not name makes it fail. Finds
 * the line of a text that names a rule, and judges whose words stand above it. */
#include "extract/tag.h"

#include "base/utf8.h"
#include "extract/internal.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* --- the words and signs that may stand beside a tag --- */

enum { LEAD_WORDS = 5, LANGUAGE_WORDS = 24 };

/* A lead-in is a run of words of one language, one of them a noun: "my final verdict", "verdict
 * final", "最終判定". ASCII letters fold their case. */
static const struct language {
  bool spaced; /* words are parted by spaces; else a space is optional */
  const char *nouns[LANGUAGE_WORDS], *others[LANGUAGE_WORDS];
} languages[] = {
    {true, /* English */
     {"status", "verdict", "result", "decision", "conclusion", "judgment", "judgement", "outcome",
      "answer", "assessment", "tag", "rule", "next"},
     {"final", "overall", "my", "the"}},
    {false, /* Japanese and Chinese */
     {"判定", "結果", "結論", "结论", "结果", "状態", "状态", "判断", "ステータス"},
     {"最終", "最终"}},
    {true, /* German */
     {"Status", "Urteil", "Ergebnis", "Entscheidung", "Fazit", "Schlussfolgerung", "Bewertung",
      "Beurteilung", "Antwort", "Regel", "Endergebnis", "Gesamtergebnis", "Gesamturteil",
      "Gesamtbewertung"},
     {"das", "der", "die", "mein", "meine", "endgültiges", "endgültige", "endgültiger",
      "abschließendes", "abschließende", "finales", "finale", "finaler"}},
    {true, /* French */
     {"statut", "verdict", "résultat", "décision", "conclusion", "jugement", "réponse",
      "évaluation", "Évaluation", "étiquette", "Étiquette", "règle", "bilan"},
     {"final", "finale", "global", "globale", "mon", "ma", "le", "la"}},
    {true, /* Spanish */
     {"estado", "veredicto", "resultado", "decisión", "conclusión", "juicio", "respuesta",
      "evaluación", "dictamen", "etiqueta", "regla"},
     {"final", "general", "mi", "el", "la"}},
    {false, /* Korean */
     {"판정", "결과", "결론", "상태", "판단", "결정", "평가"},
     {"최종"}},
};

static size_t tag_word_at(struct str text, const char *const *words) {
  size_t longest = 0;
  char first = text.n > 0 ? str_lower(text.p[0]) : '\0';
  for (size_t i = 0; i < LANGUAGE_WORDS && words[i]; i++) {
    size_t n = 0;
    if (str_lower(words[i][0]) != first) /* most differ here */
      continue;
    while (words[i][n] && n < text.n && str_lower(text.p[n]) == str_lower(words[i][n]))
      n++;
    if (words[i][n] == '\0' && n > longest)
      longest = n;
  }
  return longest;
}

static bool ends_word(struct str text, size_t at) {
  return at >= text.n || (!str_is_letter(text.p[at]) && !str_is_digit(text.p[at]));
}

static size_t lead_in_of(const struct language *language, struct str text) {
  size_t at = 0, end = 0;
  bool noun = false;
  for (int i = 0; i < LEAD_WORDS; i++) {
    struct str rest = {text.p + at, text.n - at};
    size_t n = tag_word_at(rest, language->nouns), other = tag_word_at(rest, language->others);
    if (other > n)
      n = other;
    else
      noun |= n > 0;
    if (n == 0 || (language->spaced && !ends_word(rest, n)))
      break;
    end = at += n;
    if (at < text.n && text.p[at] == ' ')
      at++;
    else if (language->spaced)
      break;
  }
  return noun ? end : 0;
}

size_t tag_lead_in(struct str text) {
  size_t longest = 0;
  char first = text.n > 0 ? str_lower(text.p[0]) : ' ';
  if (!(first & 0x80) && (first < 'a' || first > 'z')) /* no word begins so */
    return 0;
  for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++) {
    size_t n = lead_in_of(&languages[i], text);
    if (n > longest)
      longest = n;
  }
  return longest;
}

/* Lists the emoji of Unicode 15, without the quotation marks, brackets and digits of the same
 * blocks. */
static const struct range {
  uint32_t first, last;
} emoji[] = {
    {0x203C, 0x203C},   {0x2049, 0x2049},   {0x2139, 0x2139},   {0x231A, 0x231B},
    {0x23E9, 0x23F3},   {0x23F8, 0x23FA},   {0x25AA, 0x25AB},   {0x25B6, 0x25B6},
    {0x25C0, 0x25C0},   {0x25FB, 0x25FE},   {0x2600, 0x275A},   {0x2763, 0x2764},
    {0x2795, 0x2797},   {0x27B0, 0x27B0},   {0x27A1, 0x27A1},   {0x2B05, 0x2B07},
    {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},   {0x1F1E6, 0x1F1FF},
    {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7EB}, {0x1F900, 0x1F9FF},
    {0x1FA70, 0x1FAFF},
};

static bool is_emoji(uint32_t cp) {
  for (size_t i = 0; i < sizeof emoji / sizeof emoji[0]; i++)
    if (cp >= emoji[i].first && cp <= emoji[i].last)
      return true;
  return false;
}

/* Length of the emoji at the start of `text`, with their joiners and variants. */
static size_t tag_emoji(struct str text) {
  const uint32_t joiner = 0x200D, variant = 0xFE0F;
  size_t at = 0;
  if (text.n == 0 || !(text.p[0] & 0x80))
    return 0;
  for (;;) {
    uint32_t cp;
    size_t n = utf8_decode(text.p + at, text.n - at, &cp);
    if (n == 0 || !is_emoji(cp))
      return at;
    at += n;
    n = utf8_decode(text.p + at, text.n - at, &cp);
    if (n > 0 && cp == variant) {
      at += n;
      n = utf8_decode(text.p + at, text.n - at, &cp);
    }
    uint32_t next;
    if (n > 0 && cp == joiner && utf8_decode(text.p + at + n, text.n - at - n, &next) > 0 &&
        is_emoji(next))
      at += n;
  }
}

static struct str tag_skip(struct str s, size_t n) {
  return (struct str){s.p + n, s.n - n};
}

/* Returns the length of the first of `marks` that `s` begins with (`at_end`: ends with), 0 for
 * none. */
static size_t above_one_of(struct str s, const char *const *marks, bool at_end) {
  for (size_t i = 0; marks[i]; i++)
    if (at_end ? str_ends(s, marks[i]) : str_starts(s, marks[i]))
      return strlen(marks[i]);
  return 0;
}

/* Length of the end-of-turn token at the start of `text` (</s>, <|im_end|>). */
static size_t tag_token(struct str text) {
  static const char *const tokens[] = {
      "</s>",    "<|im_end|>",      "<|eot_id|>",      "<|eom_id|>",
      "<|end|>", "<|endoftext|>",   "<|return|>",      "<end_of_turn>",
      "<eos>",   "<|end_of_turn|>", "<|end_of_text|>", NULL};
  return above_one_of(text, tokens, false);
}

/* --- one line --- */

/* A gap is the space people leave between words, not one that pushes a tag out of sight. */
enum { MAX_INDENT = 3, MAX_GAP = 4, MAX_OPEN_MARKS = 6, MAX_LIST_DIGITS = 3, MAX_HEADING = 6 };

bool tag_folded_equal(struct str a, struct str b) {
  if (a.n != b.n)
    return false;
  for (size_t i = 0; i < a.n; i++)
    if (str_lower(a.p[i]) != str_lower(b.p[i]))
      return false;
  return true;
}

/* Length of the tag at the start of `text`, 0 when there is none. */
static size_t tag_match(struct str text, struct str name, long *number) {
  size_t i = name.n + 2;
  if (text.n < name.n + 4 || text.p[0] != '[' || text.p[name.n + 1] != ':' ||
      !tag_folded_equal((struct str){text.p + 1, name.n}, name))
    return 0;
  i += text.p[i] == ' ';
  size_t digits = i;
  long value = 0;
  while (i < text.n && str_is_digit(text.p[i])) {
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
  f->rest = tag_skip(f->rest, n);
}

static bool form_take(struct form *f, const char *text) {
  return str_drop(&f->rest, text);
}

static bool form_take_any(struct form *f, const char *const *texts) {
  size_t n = above_one_of(f->rest, texts, false);
  form_skip(f, n);
  return n > 0;
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
    while (digits < tried.rest.n && digits < MAX_LIST_DIGITS && str_is_digit(tried.rest.p[digits]))
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

static size_t heading_marks(struct str line) {
  size_t n = 0;
  while (n < line.n && line.p[n] == '#')
    n++;
  return n > 0 && n <= MAX_HEADING && n < line.n && line.p[n] == ' ' ? n : 0;
}

/* Takes the marks of a heading. Returns their number, 0 for none. */
static size_t form_heading(struct form *f) {
  size_t n = heading_marks(f->rest);
  form_skip(f, n > 0 ? n + 1 : 0);
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

/* Returns the length of a rule's words at the start of `text`, 0 if there are none. */
static size_t tag_rule_words(struct str text, const struct tag_query *query) {
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
  for (place->number = 0; f.rest.n > 0 && str_is_digit(f.rest.p[0]);) {
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

/* --- what a line opens and another closes: quotations, elements, here-documents --- */

static bool in_name(char c) {
  return str_is_letter(c) || str_is_digit(c);
}

static size_t marks_in(struct str s, const char *part) {
  size_t n = strlen(part), count = 0;
  for (size_t i = 0; i + n <= s.n; i++)
    if (s.p[i] == part[0] && memcmp(s.p + i, part, n) == 0) {
      count += i == 0 || s.p[i - 1] != '`'; /* a code span names it */
      i += n - 1;
    }
  return count;
}

static bool needs_no_end(struct str name) {
  static const char single[] = "br hr img input p li td tr th link meta";
  return str_among_fold(name, single);
}

/* Returns the name of the element that the line opens and does not close ("<name ..."), empty if
 * there is none. */
static struct str element_opened(struct str line) {
  line = str_trim(line);
  size_t n = 0;
  while (1 + n < line.n && line.p[0] == '<' &&
         (in_name(line.p[1 + n]) || (n > 0 && memchr("_-", line.p[1 + n], 2) != NULL)))
    n++;
  struct str name = {line.p + 1, n};
  const char *end = n > 0 && line.p[line.n - 1] == '>' ? memchr(line.p, '>', line.n) : NULL;
  if (end == NULL || (line.p[1 + n] != '>' && line.p[1 + n] != ' ') || end[-1] == '/' ||
      tag_token(line) > 0 || needs_no_end(name))
    return (struct str){0};
  return name;
}

static bool element_closed(struct str line, struct str name) {
  for (; line.n > name.n + 2; line = tag_skip(line, 1))
    if (str_starts(line, "</") && memcmp(line.p + 2, name.p, name.n) == 0)
      return true;
  return false;
}

/* Returns the word that ends a here-document which the line opens, empty if there is none. */
static struct str heredoc_opened(struct str line) {
  const char *at = memmem(line.p, line.n, LIT("<<"));
  size_t ticks = 0;
  for (const char *p = line.p; at != NULL && p < at; p++)
    ticks += *p == '`';
  if (at == NULL || ticks % 2 != 0) /* a code span names it */
    return (struct str){0};
  struct str rest = tag_skip(line, (size_t)(at - line.p) + 2);
  while (rest.n > 0 && memchr("-~'\"", rest.p[0], 4) != NULL)
    rest = tag_skip(rest, 1);
  size_t n = 0;
  while (n < rest.n && ((rest.p[n] >= 'A' && rest.p[n] <= 'Z') || rest.p[n] == '_'))
    n++;
  return (struct str){rest.p, n};
}

static void track_comment(struct tag_blocks *b, struct str line) {
  while (line.n > 0) {
    const char *at =
        b->comment ? memmem(line.p, line.n, LIT("-->")) : memmem(line.p, line.n, LIT("<!--"));
    if (at == NULL)
      return;
    line = tag_skip(line, (size_t)(at - line.p) + (b->comment ? 3 : 4));
    b->comment = !b->comment;
  }
}

/* Tracks quotation marks: „ opens what “ closes; else “ opens. */
static void track_quotes(struct tag_blocks *b, struct str line) {
  for (; line.n > 0; line = tag_skip(line, 1)) {
    if (line.p[0] == '"')
      b->straight = !b->straight;
    else if (!(line.p[0] & 0x80))
      continue;
    else if (str_starts(line, "„"))
      b->low = b->curly = true;
    else if (str_starts(line, "“"))
      b->curly = !b->low, b->low = false;
    else if (str_starts(line, "”"))
      b->curly = b->low = false;
    else if (str_starts(line, "‘") || str_starts(line, "‚"))
      b->single = !b->single;
    else if (str_starts(line, "’"))
      b->single = false;
    else if (str_starts(line, "《"))
      b->corner = true;
    else if (str_starts(line, "》"))
      b->corner = false;
    else if (str_starts(line, "「") || str_starts(line, "『"))
      b->corner = true;
    else if (str_starts(line, "」") || str_starts(line, "』"))
      b->corner = false;
    else if (str_starts(line, "«") || str_starts(line, "»"))
      b->angle = !b->angle;
  }
}

void tag_blocks_line(struct tag_blocks *b, struct str line) {
  line = str_trim(line);
  if (line.n == 0) {
    b->straight = false; /* one that stays open is a slip, or a sign of inches */
    return;
  }
  if (b->word.n > 0) {
    if (str_eq(line, b->word))
      b->word.n = 0;
    return;
  }
  size_t triple = marks_in(line, "\"\"\"");
  b->triple ^= triple % 2 != 0;
  b->triple_single ^= marks_in(line, "'''") % 2 != 0;
  track_comment(b, line);
  if (b->element.n == 0)
    b->element = element_opened(line);
  if (b->element.n > 0 && element_closed(line, b->element))
    b->element.n = 0;
  b->word = heredoc_opened(line);
  if (triple == 0)
    track_quotes(b, line);
}

bool tag_blocks_open(const struct tag_blocks *b) {
  return b->word.n > 0 || b->triple || b->triple_single || b->comment || b->element.n > 0 ||
         b->straight || b->single || b->curly || b->corner || b->angle;
}

/* --- what stands above a tag or a value: whose words they are, as far as form tells --- */

static bool alpha(char c) {
  return str_is_letter(c) || (c & 0x80);
}

/* Returns the text without the space and the marks of bold, italic and code at both ends. */
static struct str above_bare(struct str s) {
  while (s.n > 0 && memchr(" \t\r*_`", s.p[0], 6) != NULL)
    s = tag_skip(s, 1);
  while (s.n > 0 && memchr(" \t\r*_`", s.p[s.n - 1], 6) != NULL)
    s.n--;
  return s;
}

/* Returns true if the text holds the part, which begins with the byte `first`. The case of ASCII
 * letters does not count. */
static bool has_fold_from(struct str s, char first, const char *part) {
  const char *end = s.p + s.n, *at = s.p;
  for (; at < end && (at = memchr(at, first, (size_t)(end - at))) != NULL; at++)
    if (str_starts_fold((struct str){at, (size_t)(end - at)}, part))
      return true;
  return false;
}

static bool has_fold(struct str s, const char *part) {
  char small = str_lower(part[0]), large = small;
  if (small >= 'a' && small <= 'z')
    large = (char)(small - 'a' + 'A');
  return has_fold_from(s, small, part) || (large != small && has_fold_from(s, large, part));
}

/* --- words --- */

/* Returns the length of the word at the start of `s`: letters, digits and apostrophes within. */
static size_t word_length(struct str s) {
  size_t n = 0;
  while (n < s.n && (alpha(s.p[n]) || str_is_digit(s.p[n]) || (n > 0 && s.p[n] == '\'')))
    n++;
  return n;
}

static bool above_is_number(struct str word) {
  size_t n = 0;
  while (n < word.n && str_is_digit(word.p[n]))
    n++;
  return n == word.n;
}

static bool has_word_of(struct str s, const char *words) {
  while (s.n > 0) {
    size_t n = word_length(s);
    if (n > 0 && str_among_fold((struct str){s.p, n}, words))
      return true;
    s = tag_skip(s, n > 0 ? n : 1);
  }
  return false;
}

/* --- a line that hands over the writer's own verdict --- */

/* With these words writers speak for themselves. */
static const char self_words[] =
    "judging sure certainly gladly ok okay course absolutely understood so therefore thus hence "
    "accordingly consequently finally my I I'd I'll we our here here's also again means conclude "
    "daher deshalb somit mein meine ich hier voici donc ainsi mon ma je mi entonces";
/* These words name a verdict, besides a lead-in. */
static const char noun_words[] =
    "summary results findings verification analysis recommendation changes review evaluation "
    "requested ask asked final condition tests bilan step classification outcome";
/* These words name a value. */
static const char value_words[] = "JSON object output response reply";
/* These are in order only beside a word of the writer's own: "I would say". */
static const char needy_words[] = "required format would report";
static const char filler_words[] =
    "a an the it this that these is are be as overall all in on of for with to and will shall "
    "can should say judge decide choose give go assign end ending select pick vote mark based "
    "above evidence single one first second third tag number holds applies which matches "
    "matching chosen follows now then you test done change work task code patch following below "
    "per instructions structured selected classify by JSON object output response reply sage ist "
    "lautet der des meiner Prüfung est le la de revue el es por lo tanto que";
/* These are pieces of sentences in languages without spaces, tried in this order. */
static const char *const joined_words[] = {
    "以下が",       "以上より",   "よって",   "従って", "したがって", "ゆえに", "以下の通り",
    "以下のとおり", "次のとおり", "次の通り", "です",   "とします",   "します", "レビュー",
    "総合",         "は",         "を",       "の",     "的",         "如下",   "因此",
    "所以",         "审查",       "따라서",   NULL};
/* A line with one of these is no verdict of now: it is a condition, or somebody else's words. */
static const char other_words[] =
    "if unless once assuming suppose supposing had were wenn falls sobald si says said wrote "
    "writes should quote reads claims contains sagt schreibt dit dice";

struct speaks {
  bool known, self, noun, needy;
};

/* Returns true if `n` is the end of a word, and not of a part of a file's name ("verdict.json"). */
static bool ends_name(struct str s, size_t n) {
  if (n == s.n || (s.p[0] & 0x80))
    return true;
  return !alpha(s.p[n]) && !(s.p[n] == '.' && n + 1 < s.n && alpha(s.p[n + 1]));
}

/* Tells whether each word of `s` is one with which a writer hands over a verdict or, if `query` is
 * NULL, a value. */
static struct speaks speaks_of(struct str s, const struct tag_query *query) {
  static const char *const marks[] = {"、", "。", "，", "：", "“", "”", NULL};
  struct speaks out = {.known = true};
  while (s.n > 0) {
    size_t n;
    if (memchr(" \t*_`,.;!-#:\"()", s.p[0], 15) != NULL) {
      s = tag_skip(s, 1);
    } else if ((n = above_one_of(s, marks, false)) > 0 || (n = tag_emoji(s)) > 0) {
      s = tag_skip(s, n);
    } else if ((n = tag_lead_in(s)) > 0 && ends_name(s, n)) {
      out.noun = true;
      out.self |= str_among_fold((struct str){s.p, word_length(s)}, self_words);
      s = tag_skip(s, n);
    } else if (query && (n = tag_rule_words(s, query)) > 0) {
      out.noun = true;
      s = tag_skip(s, n);
    } else if ((n = above_one_of(s, joined_words, false)) > 0 ||
               (str_starts_fold(s, "based on the report") && (n = strlen("based on the report")))) {
      out.self = true;
      s = tag_skip(s, n);
    } else {
      struct str word = {s.p, word_length(s)};
      if (word.n == 0)
        return (struct speaks){0};
      bool self = str_among_fold(word, self_words);
      bool value = !query && str_among_fold(word, value_words);
      bool noun = value || str_among_fold(word, noun_words) ||
                  (query && word.n == query->name.n && tag_folded_equal(word, query->name));
      bool needy = !value && str_among_fold(word, needy_words);
      if (!self && !noun && !needy && !above_is_number(word) && !str_among_fold(word, filler_words))
        return (struct speaks){0};
      out.self |= self;
      out.noun |= noun;
      out.needy |= needy;
      s = tag_skip(s, word.n);
    }
  }
  return out;
}

/* Returns what follows the last mark that ends a clause, with a space after it. */
static struct str last_clause(struct str s) {
  static const char *const wide[] = {"、", "。", "，", "— ", "– ", NULL};
  for (size_t i = s.n; i-- > 0;) {
    struct str rest = tag_skip(s, i);
    size_t n = above_one_of(rest, wide, false);
    if (n == 0 && rest.n > 1 && memchr(",;.!?", rest.p[0], 5) != NULL && rest.p[1] == ' ')
      n = 1;
    if (n > 0 && n < rest.n)
      return tag_skip(rest, n);
  }
  return s;
}

bool tag_hands_over(struct str line, const struct tag_query *query) {
  struct speaks whole = speaks_of(line, query);
  if (whole.known)
    return whole.self || (whole.noun && !whole.needy);
  if (has_word_of(line, other_words))
    return false;
  struct str clause = last_clause(line);
  struct speaks end = speaks_of(clause, query);
  return clause.n < line.n && end.known && end.self;
}

/* --- lines that speak of what is below --- */

/* With these words a line speaks of the line below it: what stands there is then its subject
 * ("Ignore the next line"), and whether it is meant is for a judge to say. */
static const char *const pointers[] = {"next line",       "following line",
                                       "line below",      "tag below",
                                       "verdict below",   "text below",
                                       "what follows",    "following is",
                                       "below is",        "this is what",
                                       "see below",       "次の行",
                                       "以下の行",        "下一行",
                                       "nächste Zeile",   "nächsten Zeile",
                                       "folgende Zeile",  "ligne suivante",
                                       "línea siguiente", "siguiente línea",
                                       "다음 줄",         NULL};
/* These do the same, unless the line names a verdict as well. */
static const char loose_pointers[] = "次のよう|以下のよう|以下の内容";

/* A sentence that ends in one of these goes on below. */
static const char open_words[] =
    "with say says said write writes wrote give gives be is was are reads prints printed claims "
    "claimed contains like as the to of by or and than either neither without named namely "
    "follows following sagt schreibt lautet dit écrit dice escribe";
/* So does a sentence that ends in one of these after "the". */
static const char open_nouns[] = "line tag text string marker content word";
static const char *const open_marks[] = {":", "：", ",", "、", "，", "(",   "[",   "{",
                                         "=", "-",  "–", "—",  "\\", ": |", ": >", NULL};

/* Returns a text between two runs of a mark: "=== README.md ===". */
static struct str banner_text(struct str line) {
  char mark = line.n > 0 ? line.p[0] : '\0';
  size_t from = 0, to = line.n;
  if (mark == '\0' || memchr("=-~*", mark, 4) == NULL)
    return (struct str){0};
  while (from < line.n && line.p[from] == mark)
    from++;
  while (to > from && line.p[to - 1] == mark)
    to--;
  bool banner = from >= 3 && line.n - to >= 3 && to > from && (mark != '*' || line.p[from] == ' ');
  return banner ? (struct str){line.p + from, to - from} : (struct str){0};
}

static bool has_letters(struct str line) {
  for (size_t i = 0; i < line.n; i++)
    if (alpha(line.p[i]))
      return true;
  return false;
}

/* Returns the word at the end of `s`. */
static struct str last_word(struct str s) {
  size_t n = 0;
  while (n < s.n && (alpha(s.p[s.n - n - 1]) || s.p[s.n - n - 1] == '\''))
    n++;
  return (struct str){s.p + s.n - n, n};
}

/* Returns true for a pronoun: "It follows." is whole, but "The output follows." speaks of what is
 * below. */
static bool is_pronoun(struct str text) {
  static const char pronouns[] = "it this that";
  return str_among_fold(text, pronouns);
}

/* Returns true for "blue it", but not for "an example of it" or "they say it". */
static bool ends_in_it(struct str text) {
  struct str word = last_word(text);
  struct str before = above_bare((struct str){text.p, text.n - word.n});
  return str_eq_fold(word, "it") && !str_among_fold(last_word(before), open_words);
}

/* Returns true if the line leaves its sentence open, so that what is below ends it. */
static bool leaves_open(struct str line) {
  static const char closed[] = "follows following";
  static const char *const phrases[] = {"e.g.", "i.e.", "for example", "for instance", NULL};
  line = above_bare(line);
  if (!has_letters(line))
    return line.n > 0 && memchr("([{", line.p[line.n - 1], 3) != NULL;
  if (above_one_of(line, phrases, true) > 0 || above_one_of(line, open_marks, true) > 0)
    return true;
  bool stop = line.p[line.n - 1] == '.';
  line.n -= stop;
  struct str word = last_word(line), before = {line.p, line.n - word.n};
  before = above_bare(before);
  if (before.n == 0 || stop)
    return word.n > 0 && str_among_fold(word, closed) && !is_pronoun(before);
  return (str_among_fold(word, open_words) && !ends_in_it(before)) ||
         (str_among_fold(word, open_nouns) && str_eq_fold(last_word(before), "the"));
}

/* Returns true if the line only names where the next one is from: "README.md", "`make test`",
 * "(from README.md)". */
static bool names_source(struct str line) {
  bool inner = false, span = line.n > 2 && line.p[0] == '`' && line.p[line.n - 1] == '`';
  if (span)
    return memchr(line.p + 1, '`', line.n - 2) == NULL && line.p[1] != '[';
  if (line.n > 2 && line.p[0] == '(' && line.p[line.n - 1] == ')')
    return true;
  for (size_t i = 0; i < line.n; i++) {
    if (line.p[i] == ' ' || (line.p[i] & 0x80) || memchr("[]():*_|", line.p[i], 8) != NULL)
      return false;
    inner |=
        i > 0 && i + 1 < line.n && line.p[i] == '.' && alpha(line.p[i - 1]) && alpha(line.p[i + 1]);
  }
  return inner;
}

static bool names_verdict(struct str line) {
  for (; line.n > 0; line = tag_skip(line, 1))
    if ((line.p[0] & 0xC0) == 0xC0 && tag_lead_in(line) > 0)
      return true;
  return false;
}

/* Returns whether it ends in a colon, or is a banner: then its paragraph is a text of its own. */
static bool tag_opens_text(struct str line) {
  struct str text = above_bare(line);
  return str_ends(text, ":") || str_ends(text, "：") || banner_text(str_trim(line)).n > 0;
}

bool tag_points_below(struct str line, const struct tag_query *query) {
  line = str_trim(line);
  for (size_t i = 0; pointers[i]; i++)
    if (has_fold(line, pointers[i])) { /* "Below is my verdict:" is one's own */
      struct speaks speaks = speaks_of(above_bare(line), query);
      return !speaks.known || !speaks.self;
    }
  if ((str_has_any(line, loose_pointers) && !names_verdict(line)) || names_source(line))
    return true;
  struct str text = banner_text(line);
  if (text.n == 0 && heading_marks(line) > 0)
    text = tag_skip(line, heading_marks(line));
  if (text.n == 0 && !leaves_open(line))
    return false;
  return !tag_hands_over(above_bare(text.n > 0 ? text : line), query);
}

/* --- output of programs, other speakers --- */

static bool is_prompt(struct str line) {
  static const char *const starts[] = {"$ ",   "% ",     "❯",       "➜ ",     "λ ", "... ",
                                       "In [", "(gdb) ", "(lldb) ", "(Pdb) ", NULL};
  enum { PROMPT_BYTES = 80 };
  size_t spaces = 0;
  bool host = false, path = false;
  if (above_one_of(line, starts, false) > 0)
    return true;
  for (size_t i = 0; i < line.n && i < PROMPT_BYTES && spaces <= 2; i++) {
    char c = line.p[i], next = i + 1 < line.n ? line.p[i + 1] : ' ';
    if (c == '<' || c == '"')
      return false;
    if (str_starts(tag_skip(line, i), "❯ "))
      return true;
    if (i > 0 && memchr("$#%>", c, 4) != NULL && (next == ' ' || c == '>')) {
      char before = line.p[i - 1];
      if (host && next == ' ')
        return true;
      bool ends_name = alpha(before) || str_is_digit(before) || memchr("\\)=", before, 3) != NULL;
      if (c == '>' && spaces == 0 && alpha(line.p[0]) && ends_name && (next == ' ' || path))
        return true;
      bool shell = c == '#' && before == '=';
      shell |= spaces <= 1 && before != ' ' && path;
      if (c == '>')
        shell = str_starts(line, "PS ");
      if (shell)
        return true;
    }
    spaces += c == ' ';
    host |= c == '@';
    path |= (c == '\\' && i > 1 && line.p[i - 1] == ':') || c == '~';
    path |= c == '-' && str_is_digit(next);
  }
  return false;
}

/* Returns true for an opener of markup, such as "{quote}", "[code]", "\\begin{quote}" or
 * "#+BEGIN_SRC", that is no tag, no JSON and no mark of what was left out. */
static bool above_is_markup(struct str line) {
  char first = line.n > 3 ? line.p[0] : '\0', last = line.n > 0 ? line.p[line.n - 1] : '\0';
  if (str_starts(line, "\\begin") || str_starts(line, "#+"))
    return true;
  if (str_starts(line, "[...")) /* something was left out here */
    return false;
  return ((first == '{' && last == '}') || (first == '[' && last == ']')) &&
         memchr(line.p, ':', line.n) == NULL && memchr(line.p, '"', line.n) == NULL;
}

/* These begin a line of a conversation: "User: ...". */
static const char speakers[] = "user human assistant system tool agent bot observation Q A";
/* These name what the following text is out of: "File: ...". */
static const char sources[] = "file from subject command source stdout stderr quote prompt";

static bool above_is_labelled(struct str line, const char *names) {
  struct str rest = above_bare(line);
  size_t n = word_length(rest);
  struct str name = {rest.p, n};
  rest = above_bare(tag_skip(rest, n));
  return str_among_fold(name, names) && rest.n > 0 && rest.p[0] == ':';
}

static struct str without_bullet(struct str line) {
  line = str_trim(line);
  if (str_starts(line, "- ") || str_starts(line, "* "))
    line = tag_skip(line, 2);
  return above_bare(line);
}

bool tag_shows_output(struct str line) {
  struct str text = without_bullet(line);
  return is_prompt(text) || above_is_labelled(text, speakers) || above_is_markup(str_trim(line));
}

/* Returns true for the mark of a list: "- ", "12. ". */
static bool is_list_mark(struct str s) {
  size_t n = 0;
  s = str_trim(s);
  while (n < s.n && str_is_digit(s.p[n]))
    n++;
  return n + 1 == s.n && memchr(n > 0 ? ".).)" : "-*+-", s.p[n], 4) != NULL;
}

bool tag_begins_foreign(struct str line) {
  static const char *const marks[] = {
      ">",  "<",   ".. ", ":::",   "@@ ", "diff --git", "+++ ",   "+ ", "++ ", "//",
      "/*", "-- ", "--[", "8<---", "%%",  "; ",         "=begin", "{-", "(*",  "│",
      "┃",  "└",   "┌",   "├",     "╰",   "╭",          "»",      "›",  NULL};
  while (line.n > 0 && line.p[0] == ' ')
    line = tag_skip(line, 1);
  while (line.n > 0 && memchr(" \t\r", line.p[line.n - 1], 3) != NULL)
    line.n--;
  if (above_one_of(line, marks, false) > 0 || tag_shows_output(line) ||
      above_is_labelled(line, sources))
    return true;
  if (line.n > 1 && line.p[0] == '[' && str_is_digit(line.p[1])) /* the time of a log */
    return true;
  const char *quote = memchr(line.p, '>', line.n);
  if (quote != NULL && quote > line.p &&
      is_list_mark((struct str){line.p, (size_t)(quote - line.p)}))
    return true;
  if (line.n > 0 && line.p[0] == '|' && line.p[line.n - 1] != '|') /* no row of a table */
    return true;
  return str_starts(line, "--- ") && banner_text(line).n == 0 && !tag_line_is_empty(line);
}

/* --- words behind --- */

bool tag_takes_back(struct str text) {
  static const char words[] =
      "not no none never cannot but however wait scratch retract withdraw disregard ignore "
      "ignored wrong mistake mistaken actually instead correction unless example sample template "
      "forged quoted quote says said wrote written pretend void false unable unsure unclear "
      "decline refuse doubt sorry kidding thought thoughts reflection reconsider revised revoked "
      "edit oops hm hmm abstain uncertain undecided claim above back contains claims claimed "
      "asks demands wants copied theirs nicht kein keine aber doch falsch zurück Beispiel "
      "sondern pas non mais faux exemple annule pero falso ejemplo";
  static const char parts[] = "would be|^ |↑|n't|n’t|ない|ません|しかし|ただし|例|取り消|撤回|"
                              "間違|引用|訂正|無視|不|没|但|错|아니|않|못|없|하지만";
  return str_has_any(text, parts) || has_word_of(text, words);
}

/* --- the line that names a rule: which lines may, and what else mentions one --- */

static size_t run_length(const char *p, size_t n, char c) {
  size_t i = 0;
  while (i < n && p[i] == c)
    i++;
  return i;
}

static bool is_blank(const char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
      return false;
  return true;
}

static struct str line_at(const char *p, size_t n) {
  const char *nl = memchr(p, '\n', n);
  return (struct str){p, nl ? (size_t)(nl - p) : n};
}

/* --- fences --- */

/* Returns the length of the list markers that a line begins with, and of the spaces around them (" 
 * - 1. "); 0 if there are none. */
static size_t list_markers(const char *p, size_t n) {
  size_t length = 0;
  for (;;) {
    size_t i = length, digits = 0;
    while (i < n && (p[i] == ' ' || p[i] == '\t'))
      i++;
    while (i + digits < n && str_is_digit(p[i + digits]))
      digits++;
    i += digits;
    if (i + 1 >= n || memchr(digits > 0 ? ".)." : "-*+", p[i], 3) == NULL ||
        (p[i + 1] != ' ' && p[i + 1] != '\t'))
      return length;
    for (i++; i < n && (p[i] == ' ' || p[i] == '\t');)
      i++;
    length = i;
  }
}

static size_t columns(const char *p, size_t n) {
  size_t column = 0;
  for (size_t i = 0; i < n; i++)
    column += p[i] == '\t' ? 4 - column % 4 : 1;
  return column;
}

struct fence {
  char mark; /* '`' or '~', 0: none */
  size_t run;
  size_t column; /* where what belongs to its list item begins, 0 outside of lists */
};

static struct fence fence_opened(struct str line) {
  size_t markers = list_markers(line.p, line.n);
  size_t at = markers + run_length(line.p + markers, line.n - markers, ' ');
  char mark = at < line.n ? line.p[at] : '\0';
  size_t run = mark == '`' || mark == '~' ? run_length(line.p + at, line.n - at, mark) : 0;
  if (run < 3 || (markers == 0 && at >= 4) ||
      (mark == '`' && memchr(line.p + at + run, '`', line.n - at - run)))
    return (struct fence){0};
  return (struct fence){.mark = mark, .run = run, .column = columns(line.p, markers)};
}

static bool fence_closed(const struct fence *fence, struct str line) {
  size_t at = 0;
  while (at < line.n && (line.p[at] == ' ' || line.p[at] == '\t'))
    at++;
  size_t run = run_length(line.p + at, line.n - at, fence->mark);
  return columns(line.p, at) < fence->column + 4 && run >= fence->run &&
         is_blank(line.p + at + run, line.n - at - run);
}

/* Returns what stands in a reply that is one fence as a whole, any other reply as it is. */
static struct str without_fence(struct str text) {
  struct str first = line_at(text.p, text.n), rest;
  struct fence fence = fence_opened(first);
  if (fence.mark == 0 || first.n == text.n)
    return text;
  size_t start = first.n + 1;
  for (size_t i = start; i < text.n; i += rest.n + 1) {
    rest = line_at(text.p + i, text.n - i);
    if (fence_closed(&fence, rest))
      return i + rest.n < text.n ? text : (struct str){text.p + start, i - start};
  }
  return text;
}

/* --- which line is the last --- */

static struct str trim_end(struct str s) {
  while (s.n > 0 && memchr(" \t\r\n", s.p[s.n - 1], 4) != NULL)
    s.n--;
  return s;
}

/* Returns the text up to the end of the last line that says something. */
static struct str up_to_last_line(struct str text) {
  text = trim_end(text);
  while (text.n > 0) {
    const char *nl = memrchr(text.p, '\n', text.n);
    size_t start = nl ? (size_t)(nl - text.p) + 1 : 0;
    if (!tag_line_is_empty((struct str){text.p + start, text.n - start}))
      break;
    text.n = start;
    text = trim_end(text);
  }
  return text;
}

static bool has_byte_of(struct str s, const char *bytes) {
  for (size_t i = 0; i < s.n; i++)
    if (s.p[i] != '\0' && strchr(bytes, s.p[i]) != NULL)
      return true;
  return false;
}

/* Returns the text without a signature: the line "-- " and one of a few words that take nothing
 * back. */
static struct str without_signature(struct str text) {
  enum { SIGNATURE_BYTES = 40 };
  const char *nl = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;
  if (nl == NULL)
    return text;
  struct str above = {text.p, (size_t)(nl - text.p)}, line = {nl + 1, text.n - above.n - 1};
  const char *mark = memrchr(above.p, '\n', above.n);
  if (mark == NULL || line.n > SIGNATURE_BYTES || has_byte_of(line, ".,;:!?[]") ||
      tag_takes_back(line))
    return text;
  struct str row = trim_end((struct str){mark + 1, (size_t)(nl - mark - 1)});
  if (!str_eq_c(row, "--"))
    return text;
  return up_to_last_line((struct str){text.p, (size_t)(mark - text.p)});
}

/* --- the pass --- */

struct pass {
  const struct tag_query *query;
  struct str text; /* up to the end of its last line */
  struct fence fence;
  /* The last line that says something, unless what it speaks of is over; whether it speaks of the
   * next one is asked only where that counts. */
  struct str said;
  bool said_foreign; /* it begins with the mark of foreign text */
  bool announced; /* a line of this paragraph speaks of the next ones, no list or table between */
  size_t lines;   /* those of this paragraph, so far */
  char above;     /* what the line above begins with; NUL: none, or it is blank */
  struct tag_blocks blocks;
  bool foreign;       /* a line of this paragraph begins with the mark of foreign text */
  bool foreign_above; /* so did the paragraph before the blank line */
  /* The last two lines of the form, before the last line, that differ in their number: whatever
   * that names, one of them names another. */
  struct tag_place before[2];
  size_t before_count;
  struct tag_result *out;
};

bool tag_is_offered(const struct tag_query *query, long number) {
  for (size_t i = 0; i < query->word_count; i++)
    if (query->words[i].number == number)
      return true;
  return false;
}

/* Returns true if the last line that says something speaks of the next one. */
static bool is_pointed(const struct pass *pass) {
  return pass->said.n > 0 && (tag_points_below(pass->said, pass->query) ||
                              (pass->said_foreign && tag_shows_output(pass->said)));
}

static void take_line(struct pass *pass, size_t at, struct str line) {
  struct tag_place place = {0};
  bool last = at + line.n == pass->text.n;
  const char *cr = last ? NULL : memchr(line.p, '\r', line.n);
  if (cr != NULL) /* the end of a line to those who use it so */
    line.n = (size_t)(cr - line.p);
  bool tag = memchr(line.p, '[', line.n) != NULL &&
             tag_line_read(trim_end(line), pass->query, last, &place) &&
             (line.p[0] != '|' || pass->above == '|') && (line.p[0] != '+' || pass->above != '-');
  if (!tag && (last || !tag_line_number(line, pass->query, false, &place) ||
               !tag_is_offered(pass->query, place.number)))
    return;
  place.offset += at;
  if (!last) {
    if (pass->before_count > 0 && pass->before[0].number != place.number) {
      pass->before[1] = pass->before[0];
      pass->before_count = 2;
    }
    pass->before_count += pass->before_count == 0;
    pass->before[0] = place;
  } else if (!pass->foreign && !pass->foreign_above && !pass->announced &&
             !tag_blocks_open(&pass->blocks) && !is_pointed(pass)) {
    pass->out->found = true;
    pass->out->tag = place;
  }
}

/* Returns true if the mark at text[i] may close a reasoning section: only the byte after it can
 * make it a closer. */
static bool may_close(struct str text, size_t i) {
  size_t after = i + (text.p[i] == '\xE2' ? 3 : 1);
  return after < text.n && (text.p[after] == '/' || text.p[after] == '|');
}

/* Returns how many bytes of what stands at `at` a reasoning section takes away, SIZE_MAX if it
 * never ends. An opener counts at the start of its line. What stands before a closer without one
 * was reasoning too, but a line of the form in it still makes the last one doubtful: anybody can
 * write a closer. */
static size_t reasoning_at(struct pass *pass, size_t at, struct str line) {
  size_t indent = run_length(line.p, line.n, ' '), closed = 0;
  for (size_t i = 0; i < line.n; i++) {
    if ((line.p[i] != '<' && line.p[i] != '[' && line.p[i] != '\xE2') ||
        (i != indent && !may_close(pass->text, at + i)))
      continue;
    enum extract_tag kind = extract_tag_at(pass->text.p, pass->text.n, at + i, &closed);
    if (kind == EXTRACT_TAG_NO || (kind == EXTRACT_TAG_OPENER && i != indent))
      continue;
    if (i > 0) /* before a closer */
      take_line(pass, at, (struct str){line.p, i});
    pass->foreign = pass->foreign_above = pass->announced = false;
    pass->said = (struct str){0};
    pass->blocks = (struct tag_blocks){0};
    return closed == SIZE_MAX ? SIZE_MAX : closed - at;
  }
  return 0;
}

static void look_at_line(struct pass *pass, size_t at, struct str line) {
  if (pass->fence.mark) {
    if (fence_closed(&pass->fence, line))
      pass->fence.mark = 0;
    return;
  }
  pass->fence = fence_opened(line);
  if (pass->fence.mark) {
    pass->announced = false; /* the fence holds what was announced */
    pass->said = (struct str){0};
    return;
  }
  if (is_blank(line.p, line.n)) {
    pass->foreign_above |= pass->foreign;
    pass->foreign = pass->announced = false;
    pass->above = '\0';
    pass->lines = 0;
    tag_blocks_line(&pass->blocks, line);
    return;
  }
  if (line.p[0] != ' ')
    pass->foreign_above = false;
  take_line(pass, at, line);
  if (at + line.n == pass->text.n)
    return;
  tag_blocks_line(&pass->blocks, line);
  pass->above = line.p[0];
  if (tag_line_is_empty(line))
    return;
  pass->said = line;
  pass->said_foreign = tag_begins_foreign(line);
  pass->foreign |= pass->said_foreign;
  bool starts = pass->lines++ == 0; /* its paragraph */
  if (starts)
    pass->announced = tag_opens_text(line) && is_pointed(pass);
  else
    pass->announced &= line.p[0] != '|' && list_markers(line.p, line.n) == 0;
}

static void look_at_lines(struct pass *pass) {
  const struct str text = pass->text;
  for (size_t at = 0; at < text.n;) {
    struct str line = line_at(text.p + at, text.n - at);
    size_t reasoning = pass->fence.mark ? 0 : reasoning_at(pass, at, line);
    if (reasoning == SIZE_MAX)
      return;
    if (reasoning == 0)
      look_at_line(pass, at, line);
    at += reasoning > 0 ? reasoning : line.n + 1;
  }
}

/* --- all the others --- */

static bool same_place(const struct tag_place *a, const struct tag_place *b) {
  return a->length > 0 && a->offset == b->offset;
}

/* Names what is only mentioned, and the lines of all. */
static void find_mentions(struct str text, struct str name, struct tag_result *out) {
  struct tag_place place = {.line = 1};
  for (size_t i = 0; i < text.n; i++) {
    place.line += text.p[i] == '\n';
    place.length =
        text.p[i] == '[' ? tag_match((struct str){text.p + i, text.n - i}, name, &place.number) : 0;
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
  assert(query->name.n == 0 || query->name.p != NULL);
  *out = (struct tag_result){0};
  if (query->name.n == 0 || text.n == 0)
    return;
  size_t mark = str_starts(text, "\xEF\xBB\xBF") ? 3 : 0; /* a byte order mark */
  struct str said = {text.p + mark, text.n - mark};
  struct pass pass = {.query = query, .text = without_signature(up_to_last_line(said)), .out = out};
  size_t start = (size_t)(said.p - text.p);
  if (query->scope == TAG_REPLY) {
    struct str trimmed = str_trim(pass.text), inner = without_fence(trimmed);
    if (inner.p != trimmed.p) {
      pass.text = up_to_last_line(inner);
      start = (size_t)(inner.p - text.p);
    }
  }
  look_at_lines(&pass);
  for (size_t i = 0; out->found && !out->ambiguous && i < pass.before_count; i++)
    if (pass.before[i].number != out->tag.number) {
      out->ambiguous = true;
      out->other = pass.before[i];
      out->other.offset += start;
    }
  out->tag.offset += start;
  find_mentions(text, query->name, out);
}

/* Returns the line that ends at `to`, or the last one above it that says something. */
static struct str line_above(struct str text, size_t to) {
  struct str above = up_to_last_line((struct str){text.p, to});
  const char *nl = above.n > 0 ? memrchr(above.p, '\n', above.n) : NULL;
  size_t start = nl ? (size_t)(nl - above.p) + 1 : 0;
  return (struct str){above.p + start, above.n - start};
}

bool tag_number_beside(struct str text, size_t from, size_t to, long number,
                       const struct tag_query *query, struct tag_place *place) {
  assert(from <= to && to <= text.n);
  struct str whole = up_to_last_line(text), line = line_above(text, from);
  if (fence_opened(line).mark)
    line = line_above(text, (size_t)(line.p - text.p));
  bool found = tag_line_number(line, query, false, place) && place->number != number;
  for (size_t at = to; at < whole.n && !found; at += line.n + 1) {
    line = line_at(whole.p + at, whole.n - at);
    found = tag_line_number(line, query, at + line.n == whole.n, place) && place->number != number;
  }
  if (!found)
    return false;
  place->offset += (size_t)(line.p - text.p);
  place->line = 1;
  for (size_t i = 0; i < place->offset; i++)
    place->line += text.p[i] == '\n';
  return true;
}
