/* Finds the line of a text that names a rule, and judges whose words stand above it. */
#include "extract/tag.h"

#include "extract/internal.h"
#include "extract/tag_line.h"

#include <assert.h>
#include <string.h>

/* --- what stands above a tag or a value: whose words they are, as far as form tells --- */

static bool alpha(char c) {
  return str_is_letter(c) || (c & 0x80);
}

static struct str above_skip(struct str s, size_t n) {
  return (struct str){s.p + n, s.n - n};
}

/* Returns the text without the space and the marks of bold, italic and code at both ends. */
static struct str above_bare(struct str s) {
  while (s.n > 0 && memchr(" \t\r*_`", s.p[0], 6) != NULL)
    s = above_skip(s, 1);
  while (s.n > 0 && memchr(" \t\r*_`", s.p[s.n - 1], 6) != NULL)
    s.n--;
  return s;
}

/* Returns the length of the first of `marks` that `s` begins with (`at_end`: ends with), 0 for
 * none. */
static size_t above_one_of(struct str s, const char *const *marks, bool at_end) {
  for (size_t i = 0; marks[i]; i++)
    if (at_end ? str_ends(s, marks[i]) : str_starts(s, marks[i]))
      return strlen(marks[i]);
  return 0;
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

static bool has_word_of(struct str s, const char *const *words) {
  while (s.n > 0) {
    size_t n = word_length(s);
    if (n > 0 && str_is_one_fold((struct str){s.p, n}, words))
      return true;
    s = above_skip(s, n > 0 ? n : 1);
  }
  return false;
}

/* --- a line that hands over the writer's own verdict --- */

/* With these words writers speak for themselves. */
static const char *const self_words[] = {
    "judging",      "sure",       "certainly", "gladly",    "ok",    "okay",  "course",
    "absolutely",   "understood", "so",        "therefore", "thus",  "hence", "accordingly",
    "consequently", "finally",    "my",        "I",         "I'd",   "I'll",  "we",
    "our",          "here",       "here's",    "also",      "again", "means", "conclude",
    "daher",        "deshalb",    "somit",     "mein",      "meine", "ich",   "hier",
    "voici",        "donc",       "ainsi",     "mon",       "ma",    "je",    "mi",
    "entonces",     NULL};
/* These words name a verdict, besides a lead-in. */
static const char *const noun_words[] = {"summary",    "results",        "findings", "verification",
                                         "analysis",   "recommendation", "changes",  "review",
                                         "evaluation", "requested",      "ask",      "asked",
                                         "final",      "condition",      "tests",    "bilan",
                                         "step",       "classification", "outcome",  NULL};
/* These words name a value. */
static const char *const value_words[] = {"JSON", "object", "output", "response", "reply", NULL};
/* These are in order only beside a word of the writer's own: "I would say". */
static const char *const needy_words[] = {"required", "format", "would", "report", NULL};
static const char *const filler_words[] = {
    "a",       "an",           "the",        "it",       "this",      "that",
    "these",   "is",           "are",        "be",       "as",        "overall",
    "all",     "in",           "on",         "of",       "for",       "with",
    "to",      "and",          "will",       "shall",    "can",       "should",
    "say",     "judge",        "decide",     "choose",   "give",      "go",
    "assign",  "end",          "ending",     "select",   "pick",      "vote",
    "mark",    "based",        "above",      "evidence", "single",    "one",
    "first",   "second",       "third",      "tag",      "number",    "holds",
    "applies", "which",        "matches",    "matching", "chosen",    "follows",
    "now",     "then",         "you",        "test",     "done",      "change",
    "work",    "task",         "code",       "patch",    "following", "below",
    "per",     "instructions", "structured", "selected", "classify",  "by",
    "JSON",    "object",       "output",     "response", "reply",     "sage",
    "ist",     "lautet",       "der",        "des",      "meiner",    "Prüfung",
    "est",     "le",           "la",         "de",       "revue",     "el",
    "es",      "por",          "lo",         "tanto",    "que",       NULL};
/* These are pieces of sentences in languages without spaces, tried in this order. */
static const char *const joined_words[] = {
    "以下が",       "以上より",   "よって",   "従って", "したがって", "ゆえに", "以下の通り",
    "以下のとおり", "次のとおり", "次の通り", "です",   "とします",   "します", "レビュー",
    "総合",         "は",         "を",       "の",     "的",         "如下",   "因此",
    "所以",         "审查",       "따라서",   NULL};
/* A line with one of these is no verdict of now: it is a condition, or somebody else's words. */
static const char *const other_words[] = {
    "if",    "unless", "once",     "assuming", "suppose",  "supposing", "had",    "were",   "wenn",
    "falls", "sobald", "si",       "says",     "said",     "wrote",     "writes", "should", "quote",
    "reads", "claims", "contains", "sagt",     "schreibt", "dit",       "dice",   NULL};

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
      s = above_skip(s, 1);
    } else if ((n = above_one_of(s, marks, false)) > 0 || (n = tag_emoji(s)) > 0) {
      s = above_skip(s, n);
    } else if ((n = tag_lead_in(s)) > 0 && ends_name(s, n)) {
      out.noun = true;
      out.self |= str_is_one_fold((struct str){s.p, word_length(s)}, self_words);
      s = above_skip(s, n);
    } else if (query && (n = tag_rule_words(s, query)) > 0) {
      out.noun = true;
      s = above_skip(s, n);
    } else if ((n = above_one_of(s, joined_words, false)) > 0 ||
               (str_starts_fold(s, "based on the report") && (n = strlen("based on the report")))) {
      out.self = true;
      s = above_skip(s, n);
    } else {
      struct str word = {s.p, word_length(s)};
      if (word.n == 0)
        return (struct speaks){0};
      bool self = str_is_one_fold(word, self_words);
      bool value = !query && str_is_one_fold(word, value_words);
      bool noun = value || str_is_one_fold(word, noun_words) ||
                  (query && word.n == query->name.n && tag_folded_equal(word, query->name));
      bool needy = !value && str_is_one_fold(word, needy_words);
      if (!self && !noun && !needy && !above_is_number(word) &&
          !str_is_one_fold(word, filler_words))
        return (struct speaks){0};
      out.self |= self;
      out.noun |= noun;
      out.needy |= needy;
      s = above_skip(s, word.n);
    }
  }
  return out;
}

/* Returns what follows the last mark that ends a clause, with a space after it. */
static struct str last_clause(struct str s) {
  static const char *const wide[] = {"、", "。", "，", "— ", "– ", NULL};
  for (size_t i = s.n; i-- > 0;) {
    struct str rest = above_skip(s, i);
    size_t n = above_one_of(rest, wide, false);
    if (n == 0 && rest.n > 1 && memchr(",;.!?", rest.p[0], 5) != NULL && rest.p[1] == ' ')
      n = 1;
    if (n > 0 && n < rest.n)
      return above_skip(rest, n);
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
static const char *const pointers[] = {"next line",
                                       "following line",
                                       "line below",
                                       "tag below",
                                       "verdict below",
                                       "text below",
                                       "what follows",
                                       "following is",
                                       "below is",
                                       "this is what",
                                       "see below", /* English */
                                       "次の行",
                                       "以下の行",
                                       "下一行", /* Japanese, Chinese */
                                       "nächste Zeile",
                                       "nächsten Zeile",
                                       "folgende Zeile", /* German */
                                       "ligne suivante",
                                       "línea siguiente",
                                       "siguiente línea",
                                       "다음 줄", /* French, Spanish, Korean */
                                       NULL};
/* These do the same, unless the line names a verdict as well. */
static const char *const loose_pointers[] = {"次のよう", "以下のよう", "以下の内容", NULL};

/* A sentence that ends in one of these goes on below. */
static const char *const open_words[] = {
    "with",   "say",     "says",      "said", "write",    "writes",  "wrote",   "give",
    "gives",  "be",      "is",        "was",  "are",      "reads",   "prints",  "printed",
    "claims", "claimed", "contains",  "like", "as",       "the",     "to",      "of",
    "by",     "or",      "and",       "than", "either",   "neither", "without", "named",
    "namely", "follows", "following", "sagt", "schreibt", "lautet",  "dit",     "écrit",
    "dice",   "escribe", NULL};
/* So does a sentence that ends in one of these after "the". */
static const char *const open_nouns[] = {"line",   "tag",     "text", "string",
                                         "marker", "content", "word", NULL};
static const char *const open_marks[] = {":", "：", ",", "、", "，", "(",   "[",   "{",
                                         "=", "-",  "–", "—",  "\\", ": |", ": >", NULL};

static size_t heading_marks(struct str line) {
  size_t n = 0;
  while (n < line.n && line.p[n] == '#')
    n++;
  return n > 0 && n <= 6 && n < line.n && line.p[n] == ' ' ? n : 0;
}

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
  static const char *const pronouns[] = {"it", "this", "that", NULL};
  return str_is_one_fold(text, pronouns);
}

/* Returns true for "blue it", but not for "an example of it" or "they say it". */
static bool ends_in_it(struct str text) {
  struct str word = last_word(text);
  struct str before = above_bare((struct str){text.p, text.n - word.n});
  return str_eq_fold(word, "it") && !str_is_one_fold(last_word(before), open_words);
}

/* Returns true if the line leaves its sentence open, so that what is below ends it. */
static bool leaves_open(struct str line) {
  static const char *const closed[] = {"follows", "following", NULL};
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
    return word.n > 0 && str_is_one_fold(word, closed) && !is_pronoun(before);
  return (str_is_one_fold(word, open_words) && !ends_in_it(before)) ||
         (str_is_one_fold(word, open_nouns) && str_eq_fold(last_word(before), "the"));
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
  for (; line.n > 0; line = above_skip(line, 1))
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
  for (size_t i = 0; loose_pointers[i]; i++)
    if (str_has(line, loose_pointers[i]) && !names_verdict(line))
      return true;
  if (names_source(line))
    return true;
  struct str text = banner_text(line);
  if (text.n == 0 && heading_marks(line) > 0)
    text = above_skip(line, heading_marks(line));
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
    if (str_starts(above_skip(line, i), "❯ "))
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
static const char *const speakers[] = {
    "user", "human", "assistant", "system", "tool", "agent", "bot", "observation", "Q", "A", NULL};
/* These name what the following text is out of: "File: ...". */
static const char *const sources[] = {"file",   "from",   "subject", "command", "source",
                                      "stdout", "stderr", "quote",   "prompt",  NULL};

static bool above_is_labelled(struct str line, const char *const *names) {
  struct str rest = above_bare(line);
  size_t n = word_length(rest);
  struct str name = {rest.p, n};
  rest = above_bare(above_skip(rest, n));
  return str_is_one_fold(name, names) && rest.n > 0 && rest.p[0] == ':';
}

static struct str without_bullet(struct str line) {
  line = str_trim(line);
  if (str_starts(line, "- ") || str_starts(line, "* "))
    line = above_skip(line, 2);
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
    line = above_skip(line, 1);
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
  static const char *const words[] = {
      "not",     "no",       "none",       "never",      "cannot",    "but",        "however",
      "wait",    "scratch",  "retract",    "withdraw",   "disregard", "ignore",     "ignored",
      "wrong",   "mistake",  "mistaken",   "actually",   "instead",   "correction", "unless",
      "example", "sample",   "template",   "forged",     "quoted",    "quote",      "says",
      "said",    "wrote",    "written",    "pretend",    "void",      "false",      "unable",
      "unsure",  "unclear",  "decline",    "refuse",     "doubt",     "sorry",      "kidding",
      "thought", "thoughts", "reflection", "reconsider", "revised",   "revoked",    "edit",
      "oops",    "hm",       "hmm",        "abstain",    "uncertain", "undecided",  "claim",
      "above",   "back",     "contains",   "claims",     "claimed",   "asks",       "demands",
      "wants",   "copied",   "theirs",     "nicht",      "kein",      "keine",      "aber",
      "doch",    "falsch",   "zurück",     "Beispiel",   "sondern",   "pas",        "non",
      "mais",    "faux",     "exemple",    "annule",     "pero",      "falso",      "ejemplo",
      NULL};
  static const char *const parts[] = {
      "would be", "^ ",     "↑",    "n't",  "n’t",  "ない", "ません", "しかし", "ただし",
      "例",       "取り消", "撤回", "間違", "引用", "訂正", "無視",   "不",     "没",
      "但",       "错",     "아니", "않",   "못",   "없",   "하지만", NULL};
  for (size_t i = 0; parts[i]; i++)
    if (str_has(text, parts[i]))
      return true;
  return has_word_of(text, words);
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
  struct str dashes = trim_end((struct str){mark + 1, (size_t)(nl - mark - 1)});
  if (!str_eq_c(dashes, "--"))
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
