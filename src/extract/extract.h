/* extract.h - finds the JSON value in what a language model said.
 *
 *   struct extract_result r;
 *   enum extract_status st = extract(text, n, &opts, &r);   fills r in every case
 *   ... r.value is borrowed; json_incref it to keep it ...
 *   extract_result_deinit(&r);
 *
 * No I/O, no assert on data. The text is borrowed for the call, may hold any bytes and need not end
 * in NUL. Offsets and lengths are bytes. Work is linear in the length of the text. opts may be NULL
 * (any root, no check, no repair).
 *
 * The rules, in order:
 *  1. White space, BOM, ZWSP and NBSP around the text do not matter. Text that is one value:
 *     stage direct.
 *  2. One pass from left to right tries a strict value (json/scan.h) at each bracket. Reasoning
 *     sections (<think> and its relatives, see extract/extract.c) count only outside a value: an
 *     opener skips to its closer, a closer without an opener drops everything before it, and an
 *     opener without a closer ends the text.
 *  3. A value that fails after it looked like JSON is broken: nothing inside it is ever a
 *     candidate.
 *  4. With a check, the last candidate that passes wins, looking into members, items and strings
 *     that hold JSON (EXTRACT_UNWRAP_DEPTH levels). If none passes it is the nearest one, with
 *     valid = false, but never the schema itself. Without a check it is the last non-empty
 *     candidate with the wanted root, or else the last empty one.
 *  5. With check.is_key, drafts differ from final answers: a candidate is refused if a broken, cut
 *     or refused piece that holds a key of the answer encloses or follows it, and nothing is taken
 *     out of an object that holds such a key itself. The end of a broken piece is known only where
 *     every way to count its brackets agrees and its line ends there.
 *  6. Repair (opts.repair) is tried only if nothing strict was found; its result must pass the
 *     check, and every change is listed. With a check, a member without a value is left out, never
 *     null. See repair.h for its rules.
 *  7. Code fences rank and name the stage; they never cut, because strings hold fences.
 */
#ifndef SEGUE_EXTRACT_EXTRACT_H
#define SEGUE_EXTRACT_EXTRACT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define EXTRACT_UNWRAP_DEPTH  6  /* levels of members, items and strings that a check looks into */
#define EXTRACT_NOTES_MAX     64 /* candidates explained; notes_dropped counts the rest */
#define EXTRACT_REPAIRS_MAX   1000 /* repairs listed; repair_count counts all */
#define EXTRACT_REGIONS_MAX   32   /* broken places remembered for repair, the last ones */
#define EXTRACT_MESSAGE_BYTES 160

enum extract_want { EXTRACT_WANT_ANY, EXTRACT_WANT_OBJECT, EXTRACT_WANT_ARRAY };

/* where the value was found */
enum extract_stage { EXTRACT_NONE, EXTRACT_DIRECT, EXTRACT_CODE_BLOCK, EXTRACT_BRACE };

enum extract_status { EXTRACT_OK, EXTRACT_NOT_FOUND };

enum extract_code {
  EXTRACT_ERR_NONE,
  EXTRACT_ERR_NO_JSON,      /* nothing in the text looks like JSON */
  EXTRACT_ERR_SYNTAX,       /* something does, but is broken */
  EXTRACT_ERR_TRUNCATED,    /* the text ends inside a value */
  EXTRACT_ERR_DEPTH_LIMIT,  /* nested deeper than JSCAN_DEPTH_MAX */
  EXTRACT_ERR_NUMBER_RANGE, /* a number beyond a double, such as 1e400 */
  EXTRACT_ERR_WRONG_ROOT,   /* a value is there, but its root is not the wanted type */
  EXTRACT_ERR_NOT_VALID,    /* no value passes the caller's check */
  EXTRACT_ERR_REASONING,    /* the text ends inside a reasoning section */
  EXTRACT_ERR_DRAFT         /* the valid value is followed by a broken or refused piece */
};

/* A caller's check: does this value satisfy the caller's schema? All members but valid may be NULL.
 * nearness: number of required keys the value shares with the schema, to choose which failed value
 * is returned. is_schema_echo: the value is the schema itself, which is never an answer. is_key: an
 * answer holds this key, so that a broken piece with it may be the answer. */
struct extract_check {
  void *ctx;
  bool (*valid)(void *ctx, const json_t *v);
  int (*nearness)(void *ctx, const json_t *v);
  bool (*is_schema_echo)(void *ctx, const json_t *v);
  bool (*is_key)(void *ctx, const char *key, size_t n);
};

/* Sound values that pass, or hold a key of the answer, in order of the text. */
enum { EXTRACT_ANSWERS_MAX = 64 }; /* kept; `dropped` counts the rest */
struct extract_answers {
  struct extract_answer {
    json_t *value; /* owned */
    size_t offset, length;
  } * items; /* owned */
  size_t count, dropped;
};

struct extract_opts {
  enum extract_want want;
  const struct extract_check *check; /* NULL: no schema */
  bool repair;
  bool explain; /* fill notes */
  bool whole;   /* the value itself must pass the check: nothing inside it is looked at */
  struct extract_answers *answers; /* NULL, or zeroed, to be filled; only with a check */
};

/* one change that repair made */
struct extract_repair {
  const char *name; /* static, see repair.h */
  size_t offset;    /* in the text */
};

/* one candidate and what became of it */
struct extract_note {
  size_t offset, length; /* length 0: its end is not known */
  enum extract_stage stage;
  bool repaired, duplicate_key;
  const char *outcome; /* static: "chosen", "superseded", "not_valid", "wrong_root", "empty",
                          "inside_broken", ... */
  size_t error_offset; /* where it broke, or 0 */
};

struct extract_result {
  json_t *value; /* owned by the result; NULL unless EXTRACT_OK */
  enum extract_stage stage;
  bool valid;            /* the check passed; true without a check */
  bool repaired;         /* value differs from the text: see repairs */
  bool truncated;        /* the text ended inside the value */
  bool duplicate_key;    /* a key was given twice: the last one counts */
  bool ambiguous;        /* another value that passes the check came before it */
  bool unwrapped;        /* value was a member, item or string of what stood there */
  size_t offset, length; /* range in the text it came from, its wrapping included */
  struct extract_repair *repairs;
  size_t repairs_listed, repair_count;
  struct {
    enum extract_code code; /* also set with EXTRACT_OK and !valid */
    size_t offset;
    char message[EXTRACT_MESSAGE_BYTES];
  } error;
  struct extract_note *notes; /* opts.explain, in order of the text */
  size_t note_count, notes_dropped;
};

enum extract_status extract(const char *text, size_t n, const struct extract_opts *opts,
                            struct extract_result *out);
void extract_result_deinit(struct extract_result *);
void extract_answers_deinit(struct extract_answers *);

const char *extract_stage_name(enum extract_stage); /* "none" "direct" "code_block" "brace" */
const char *extract_code_name(enum extract_code);   /* "no_json" "syntax" "depth_limit" ... */
/* "any" "object" "array"; false when it is none of them */
bool extract_want_parse(const char *name, enum extract_want *want);

#endif
