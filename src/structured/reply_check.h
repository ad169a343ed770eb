/* reply_check.h - reads one reply of a model: does it hold the requested value, and if not, what is
 * wrong, in words that a model can act on.
 *
 *   struct answer a;
 *   answer_read(&a, &spec, structured, text, n)
 *   ... a.outcome, a.value, a.errors ...
 *   answer_deinit(&a)                 in every case
 *
 * A value that the backend gave separately (`structured`) counts if it passes the schema, whatever
 * the backend claims to have enforced. Otherwise the text is searched (extract.h), strictly unless
 * `repair` is set, and a value must pass as a whole: nothing inside another value is ever the
 * answer. If neither passes, the errors are those of the backend's value if there is one, otherwise
 * of the nearest value in the text.
 *
 * No I/O. Bytes of the text may be anything. */
#ifndef SEGUE_STRUCTURED_REPLY_CHECK_H
#define SEGUE_STRUCTURED_REPLY_CHECK_H

#include "schema/schema.h"

enum {
  ANSWER_ERRORS_MAX = 20, /* errors kept of one reply; the rest is counted */
  ANSWER_TEXT_MAX = 512   /* bytes of a path or a message in an error */
};

enum answer_outcome {
  ANSWER_VALID,
  ANSWER_PARSE, /* no value in it, or a broken one */
  ANSWER_SCHEMA /* a value that the schema refuses */
};

struct answer_spec {           /* all borrowed */
  const struct schema *schema; /* compiled from document */
  const json_t *document;
  bool repair;
  size_t max_bytes, max_depth; /* limits of a value, as compact JSON; 0: no limit */
};

struct answer {
  enum answer_outcome outcome;
  json_t *value;     /* owned; the valid one, or the refused one; NULL with ANSWER_PARSE */
  const char *where; /* native, direct, code_block, brace; NULL without a value */
  bool repaired, truncated;
  bool ambiguous;  /* another value that passes, before it in the text, is not the same */
  json_t *repairs; /* owned array of names, or NULL */
  /* Owned array, sorted by place in the value; empty when valid. Each is {"path", "pointer",
   * "keyword", "message"}; of ANSWER_PARSE the keyword is what is wrong (syntax, truncated,
   * no_json, ...), and where there is a place in the text "offset" (bytes from 0), "line" and
   * "column" (from 1, in characters) say it. */
  json_t *errors;
  size_t dropped; /* errors beyond ANSWER_ERRORS_MAX */
};

/* `structured` may be NULL. */
void answer_read(struct answer *a, const struct answer_spec *spec, const json_t *structured,
                 const char *text, size_t n);
void answer_deinit(struct answer *a);

/* For other checks of a value that lead to the same list: the errors in the form above, sorted, at
 * most ANSWER_ERRORS_MAX of them. */
json_t *answer_errors(const struct schema_errors *errors, size_t *dropped)
    __attribute__((warn_unused_result));
/* Sorts such a list by place; the sort is stable. */
void answer_errors_sort(json_t *errors);

#endif
