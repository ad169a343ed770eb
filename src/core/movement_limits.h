/* movement_limits.h - reads the keys that bound one movement's calls: tests, timeout, stall, cwd,
 * memory.
 *
 * Pure. A duration is a number with ms, s, m or h ("90s"; "1.5h" is not one), from 1 ms to
 * LIMIT_DURATION_MS. A cwd is a path below the session's folder: never absolute and never with
 * "..", before and after its variables are filled in. An amount of memory is a whole number with M,
 * G or T (of 1,024), from 16M to 1,024T. */
#ifndef SEGUE_CORE_MOVEMENT_LIMITS_H
#define SEGUE_CORE_MOVEMENT_LIMITS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "core/workflow.h"

/* These check texts for keys.h: err says what the text must be, in words that follow the key's
 * name. */
bool limits_check_duration(struct str text, struct err *err);
bool limits_check_wait(struct str text, struct err *err);
bool limits_check_deadline(struct str text, struct err *err);
bool limits_check_tests(struct str text, struct err *err);
bool limits_check_cwd(struct str text, struct err *err);

bool limits_check_memory(struct str text, struct err *err);

/* Returns bytes; 0: it is not an amount. */
int64_t limits_memory_bytes(struct str text);
/* Returns milliseconds, or `otherwise` if the text is empty or not a duration. */
long limits_duration_ms(struct str text, long otherwise);
/* Returns how long a person may take; 0: the text is empty, so there is no deadline. */
long limits_deadline_ms(struct str text);

/* Gives the movement's folder with the values of earlier movements filled in; empty: the session's
 * own. */
void limits_cwd(const struct workflow *wf, const struct movement *m, const json_t *values,
                struct buf *out);

enum { BUDGET_NANO = 1000000000 }; /* of these make a US dollar */

const char *budget_unit_name(enum budget_unit unit); /* tokens, cost, ... */
enum budget_unit budget_unit_of(struct str name);    /* BUDGET_UNITS: no unit has that name */
int64_t budget_amount(const json_t *value, enum budget_unit unit); /* as written; -1: none */
/* Reads the key `budget` of a checked document; NULL: no limit. */
void budget_read(const json_t *object, struct budget *out);

#endif
