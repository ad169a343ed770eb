/* invariant.h - conditions on a value beyond its schema, declared as a list beside it.
 *
 * The list (JSON, or YAML read to JSON) holds texts and objects:
 *   "sum(items[].price) == total"                                 an expression, see expr.h
 *   {"expr": "end > start", "message": "...", "path": "/end"}     the same with words of its own
 *   {"command": ["./check.sh", "--strict"], "message"?, "path"?}  a program: the value on stdin
 *   {"ai": "Does the summary name every person?", ...}            a question to a model
 *
 * Calling order: invariants_compile; for each value invariants_check, which checks the expressions,
 * then for each of the others (invariants_get) run it and hand over the answer with
 * invariant_command_result or invariant_report; invariants_free. No I/O here: the caller runs
 * commands and asks models.
 *
 * Failures enter the validator's list of errors (schema.h) with the keyword "invariant" and the
 * schema path "/invariants/INDEX", worded for a model to act on with the values that were found:
 *   $.total: invariant sum(items[].price) == total does not hold: 30 is not 25
 * with a message of its own: $.end: the end comes first (end > start: "2024-01-01" is not after
 * "2024-02-01"). An expression that cannot be evaluated (a missing member, a text where a number is
 * needed) does not hold either, and the error says so.
 *
 * Ownership: the compiled list copies what it needs, never changes and may be shared between
 * threads. */
#ifndef SEGUE_STRUCTURED_INVARIANT_H
#define SEGUE_STRUCTURED_INVARIANT_H

#include "schema/schema.h"

enum {
  INVARIANTS_MAX = 256,                /* in one list */
  INVARIANT_TEXT_MAX = 8 * 1024,       /* bytes of a question, a message or one argument */
  INVARIANT_ARGV_MAX = 256,            /* words of a command */
  INVARIANT_OUTPUT_MESSAGE_BYTES = 500 /* limit of a command's output in one message */
};

enum invariant_kind { INVARIANT_EXPR, INVARIANT_COMMAND, INVARIANT_AI };

/* Borrowed from the compiled list, as long as that lives. */
struct invariant {
  enum invariant_kind kind;
  size_t index;     /* in the list, from 0 */
  const char *text; /* the expression, the command's words with blanks between, the question */
  const char *const *argv; /* INVARIANT_COMMAND: NULL-ended; else NULL */
  const char *message;     /* NULL: none given */
  const char *pointer;     /* JSON Pointer from "path"; NULL: none given */
};

struct invariants;

/* `list`: as above. NULL: no list of invariants: *status is SCHEMA_INVALID_SCHEMA, and `errs` say
 * why; their paths are places in the list ("$[2].expr"), their messages name the byte offset in an
 * expression. `errs` and `status` may be NULL. */
struct invariants *invariants_compile(const json_t *list, struct schema_errors *errs,
                                      enum schema_status *status)
    __attribute__((warn_unused_result));
void invariants_free(struct invariants *invariants); /* NULL is fine */

size_t invariants_count(const struct invariants *invariants); /* 0 for NULL */
const struct invariant *invariants_get(const struct invariants *invariants, size_t index);
bool invariants_need(const struct invariants *invariants, enum invariant_kind kind);

/* Checks the expressions; commands and questions are left to the caller. SCHEMA_OK, SCHEMA_INVALID
 * (errors were added) or SCHEMA_TOO_COMPLEX (a bound was hit: no verdict; the last error says
 * which). NULL invariants hold. `errs` may be NULL. */
enum schema_status invariants_check(const struct invariants *invariants, const json_t *value,
                                    struct schema_errors *errs);

/* Turns what a command printed and how it ended into errors. Exit 0 holds, whatever it printed.
 * Else each line of stdout that is {"path" or "pointer", "message"} becomes one error there; when
 * there is none, all that was printed (stdout, or stderr when stdout is empty) becomes one bounded
 * message. `exit_status` as a shell has it: 128 + signal. SCHEMA_OK or SCHEMA_INVALID. */
struct invariant_output {
  int exit_status;
  const char *out, *err; /* bytes, not NUL-terminated; may be NULL when their length is 0 */
  size_t out_n, err_n;
};
/* Returns false if it was killed (129 to 159) or did not run (126, 127): then nothing is known of
 * the value. */
bool invariant_command_told(int exit_status);
enum schema_status invariant_command_result(const struct invariant *invariant, const json_t *value,
                                            const struct invariant_output *output,
                                            struct schema_errors *errs);

/* Adds one error in words of the caller, any bytes: a model's reason, or why a command could not
 * run. `reason` may be empty. */
void invariant_report(const struct invariant *invariant, const json_t *value, const char *reason,
                      size_t n, struct schema_errors *errs);

/* Turns a place given as a JSON Pointer ("/items/0/price", "") or as a path ("$.items[0].price",
 * "items[0].price") into both forms, to be freed; `value` decides which numbers are indices (NULL:
 * all are). Anything else gives "$" and "". */
void invariant_place(const char *text, size_t n, const json_t *value, char **path, char **pointer);

#endif
