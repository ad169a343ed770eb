/* Numbers the words of logs. */
#include "audit/dictionary.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdlib.h>

static const struct str dictionary_other = STR_INIT("(others)");

uint32_t dictionary_add(struct name_list *names, struct str word) {
  uint32_t number = names->count + 2;
  if (word.n == 0)
    return DICTIONARY_NONE;
  if (word.n > LIMIT_AUDIT_NAME_BYTES)
    word.n = utf8_floor(word.p, LIMIT_AUDIT_NAME_BYTES);
  if (names->count >= LIMIT_AUDIT_NAME_COUNT)
    return map_get(&names->map, word, &number) ? number : DICTIONARY_OTHER;
  if (!map_add(&names->map, &names->arena, word, &number))
    return number;
  if (names->count % 64 == 0)
    names->words = xrealloc(names->words, (names->count + 64) * sizeof *names->words);
  names->words[names->count++] = arena_str(&names->arena, word);
  return number;
}

struct str dictionary_text(const struct name_list *names, uint32_t number) {
  if (number == DICTIONARY_NONE)
    return (struct str){NULL, 0};
  if (number == DICTIONARY_OTHER)
    return dictionary_other;
  assert(number - 2 < names->count);
  return names->words[number - 2];
}

void dictionary_deinit(struct name_list *names) {
  map_deinit(&names->map);
  arena_deinit(&names->arena);
  free(names->words);
  *names = (struct name_list){0};
}
