/* words.h - what vendors' and clients' words for a failure mean: the table words.yaml, and
 * before it the lines of the user's own.
 *
 * The table is read at the first failure. Not for threads: a call ends on the loop. */
#ifndef SEGUE_PROVIDER_WORDS_H
#define SEGUE_PROVIDER_WORDS_H

#include "base/err.h"
#include "core/call.h"

struct words_row {
  enum error_class class;
  bool weak, alone, lasts; /* as the head of words.yaml says */
  const char *until;       /* or NULL */
  const json_t *codes;     /* NULL: the pattern counts */
  struct pattern *pattern;
};

/* Returns the first row of this strength that fits the codes (one a line) or, if none does, the
 * text; NULL: none. skip: bits of classes (1 << class) that are not looked for. */
const struct words_row *words_find(struct str codes, struct str text, bool weak, unsigned skip);
/* Returns the row by which an answer of one line is the client's own report; NULL: it is none. */
const struct words_row *words_report(struct str answer);

/* Puts the user's rows (a list of maps like those of words.yaml) before the shipped ones; NULL:
 * none. False: err says what is wrong with the row `*at`. */
bool words_take(const json_t *rows, size_t *at, struct err *err) MUST_CHECK;

#endif
