/* dictionary.h - turns words into numbers: each distinct word is kept once. Bounded, since words
 * come from logs.
 *
 * `struct name_list n = {0};` then dictionary_add; 0 stands for "none", and 1 for each word beyond
 * the bound (LIMIT_AUDIT_NAME_COUNT). A word longer than LIMIT_AUDIT_NAME_BYTES is cut. Texts are
 * raw and live until dictionary_deinit. */
#ifndef SEGUE_AUDIT_DICTIONARY_H
#define SEGUE_AUDIT_DICTIONARY_H

#include "base/map.h"

enum { DICTIONARY_NONE = 0, DICTIONARY_OTHER = 1 };

struct name_list {
  struct arena arena;
  struct map map;
  struct str *words;
  uint32_t count;
};

uint32_t dictionary_add(struct name_list *names,
                        struct str word); /* an empty word is DICTIONARY_NONE */
struct str dictionary_text(const struct name_list *names,
                           uint32_t number); /* p NULL for DICTIONARY_NONE */
void dictionary_deinit(struct name_list *names);

#endif
