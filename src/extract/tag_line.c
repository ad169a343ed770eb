/* Parses one line by the form of a verdict; anything the form does not name makes it fail. */
#include "extract/tag_line.h"

#include "base/utf8.h"

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
  char c = at < text.n ? str_lower(text.p[at]) : ' ';
  return !(c >= 'a' && c <= 'z') && !str_is_digit(c);
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

size_t tag_emoji(struct str text) {
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

/* Length of the end-of-turn token at the start of `text` (</s>, <|im_end|>). */
static size_t tag_token(struct str text) {
  static const char *const tokens[] = {
      "</s>",    "<|im_end|>",      "<|eot_id|>",     "<|eom_id|>",
      "<|end|>", "<|endoftext|>",   "<|return|>",     "<end_of_turn>",
      "<eos>",   "<|end_of_turn|>", "<|end_of_text|>"};
  for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
    if (str_starts(text, tokens[i]))
      return strlen(tokens[i]);
  return 0;
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

size_t tag_match(struct str text, struct str name, long *number) {
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

static struct str blocks_skip(struct str s, size_t n) {
  return (struct str){s.p + n, s.n - n};
}

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
  static const char *const single[] = {"br", "hr", "img", "input", "p",    "li",
                                       "td", "tr", "th",  "link",  "meta", NULL};
  return str_is_one_fold(name, single);
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
  for (; line.n > name.n + 2; line = blocks_skip(line, 1))
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
  struct str rest = blocks_skip(line, (size_t)(at - line.p) + 2);
  while (rest.n > 0 && memchr("-~'\"", rest.p[0], 4) != NULL)
    rest = blocks_skip(rest, 1);
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
    line = blocks_skip(line, (size_t)(at - line.p) + (b->comment ? 3 : 4));
    b->comment = !b->comment;
  }
}

/* Tracks quotation marks: „ opens what “ closes; else “ opens. */
static void track_quotes(struct tag_blocks *b, struct str line) {
  for (; line.n > 0; line = blocks_skip(line, 1)) {
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
