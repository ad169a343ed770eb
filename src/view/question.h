/* question.h - adds what a person wants to see beside a question: the form of the answer, and the
 * last words before it.
 *
 *   list = inbox_list(...); view_asked_add(&store, list)
 * Sets `task` (its first line) and `workflow` of the session, `schema` of each question that has
 * one, as its workflow says, and `words` with their `words_turn`: it looks
 * at the first record and the last 64 KiB of the session, and keeps LIMIT_ASKED_WORDS bytes of each
 * text. */
#ifndef SEGUE_VIEW_QUESTION_H
#define SEGUE_VIEW_QUESTION_H

#include "store/store.h"

#include <jansson.h>

enum { LIMIT_ASKED_WORDS = 1200 };

void view_asked_add(const struct store *store, json_t *list);

#endif
