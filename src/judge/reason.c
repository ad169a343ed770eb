/* Reads the start of a judge's reason, in its usual English forms. */
#include "judge/reason.h"

#include "extract/tag_line.h"

#include <string.h>

static const char *const none_holds[] = {
    "no rule ",      "no condition ",     "none of the rules", "none of the conditions",
    "I cannot tell", "I cannot decide",   "I can't tell",      "I can't decide",
    "cannot tell",   "cannot be decided", "undecided",         NULL};

/* Takes the first of `words` that `s` begins with, and the spaces behind it. */
static bool take_one_of(struct str *s, const char *const *words) {
  for (size_t i = 0; words[i]; i++) {
    size_t n = strlen(words[i]);
    if (!str_starts_fold(*s, words[i]))
      continue;
    *s = str_trim((struct str){s->p + n, s->n - n});
    return true;
  }
  return false;
}

/* Returns the number in words such as "I choose rule 2" or "Condition 2 holds"; 0 if there is
 * none. */
static long number_chosen(struct str reason) {
  static const char *const chooses[] = {"I choose ", "I chose ", "I select ", "I pick ", NULL};
  static const char *const nouns[] = {"rule ", "condition ", "step ", "option ", "number ", NULL};
  static const char *const holds[] = {"holds", "applies", "matches", "is met", "is right", NULL};
  static const char *const because[] = {"because", "since", "as ", NULL};
  struct str rest = str_trim(reason);
  bool chosen = take_one_of(&rest, chooses), noun = take_one_of(&rest, nouns);
  size_t digits = 0;
  while (digits < rest.n && rest.p[digits] >= '0' && rest.p[digits] <= '9')
    digits++;
  long number = 0;
  if ((!chosen && !noun) || !str_to_long((struct str){rest.p, digits}, &number))
    return 0;
  rest = str_trim((struct str){rest.p + digits, rest.n - digits});
  if (!chosen && !take_one_of(&rest, holds) && rest.n > 0)
    return 0;
  bool ends = rest.n == 0 || memchr(".,:;(", rest.p[0], 5) != NULL || take_one_of(&rest, because);
  return ends ? number : 0;
}

/* Returns the rule whose tag, number or words are all that the reason says; 0 if there is none. */
static long number_alone(struct str reason, const struct tag_query *query) {
  struct tag_place place;
  struct str words = str_trim(reason);
  if (tag_line_read(words, query, true, &place) || tag_line_number(words, query, false, &place))
    return place.number;
  while (words.n > 0 && memchr(".!", words.p[words.n - 1], 2) != NULL)
    words.n--;
  for (size_t i = 0; i < query->word_count; i++)
    if (words.n > 0 && tag_folded_equal(words, query->words[i].words))
      return query->words[i].number;
  return 0;
}

bool reason_contradicts(struct str reason, long number, const struct tag_query *query) {
  struct str rest = str_trim(reason);
  if (number != 0 && take_one_of(&rest, none_holds))
    return true;
  long other = number_chosen(reason);
  if (other == 0)
    other = number_alone(reason, query);
  return other != 0 && other != number && tag_is_offered(query, other);
}
