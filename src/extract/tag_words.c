/* Holds the words and signs that may stand beside a tag: lead-ins, a list a language, and emoji. */
#include "extract/tag_line.h"

#include "base/utf8.h"

#include <string.h>

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
  char first = text.n > 0 ? tag_fold(text.p[0]) : '\0';
  for (size_t i = 0; i < LANGUAGE_WORDS && words[i]; i++) {
    size_t n = 0;
    if (tag_fold(words[i][0]) != first) /* most differ here */
      continue;
    while (words[i][n] && n < text.n && tag_fold(text.p[n]) == tag_fold(words[i][n]))
      n++;
    if (words[i][n] == '\0' && n > longest)
      longest = n;
  }
  return longest;
}

static bool ends_word(struct str text, size_t at) {
  char c = at < text.n ? tag_fold(text.p[at]) : ' ';
  return !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9');
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
  char first = text.n > 0 ? tag_fold(text.p[0]) : ' ';
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

size_t tag_token(struct str text) {
  static const char *const tokens[] = {
      "</s>",    "<|im_end|>",      "<|eot_id|>",     "<|eom_id|>",
      "<|end|>", "<|endoftext|>",   "<|return|>",     "<end_of_turn>",
      "<eos>",   "<|end_of_turn|>", "<|end_of_text|>"};
  for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
    if (str_starts(text, tokens[i]))
      return strlen(tokens[i]);
  return 0;
}
