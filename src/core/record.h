/* record.h - the records of a session log, as the program makes, folds and shows them.
 *
 * Every record: v, seq (from 1, no gaps), ts (RFC 3339, UTC, ms), type, then its own members; the
 * store adds `hash` last. schemas/session-log.json describes them all.
 *
 *   struct record_draft d;
 *   record_begin(&d, seq, ts, RECORD_TURN_END);      to make one: borrows texts until it is kept
 *   record_put_number(&d, MEMBER_TURN, 3); ...          members stand in this order
 *   struct record *r = record_keep(&d);              one block with all its texts; record_free(r)
 *
 *   record_read(&d, json) -> d.record -> record_drop(&d)     to read one back; borrows json
 *
 * A turn takes about a hundred members, most of them read once, so they are a flat list by number
 * and not a tree. Schemas, values and a stage's body stay trees. */
#ifndef SEGUE_CORE_RECORD_H
#define SEGUE_CORE_RECORD_H

#include "base/buf.h"
#include "base/str.h"

#include <jansson.h>
#include <stdint.h>

enum { RECORD_VERSION = 1, RECORD_TIME_BYTES = 32 };

#define RECORD_TYPES(TYPE)                                                                         \
  TYPE(SESSION_START, "session_start")                                                             \
  TYPE(CARRIED, "carried")                                                                         \
  TYPE(TURN_START, "turn_start")                                                                   \
  TYPE(CALL_START, "call_start")                                                                   \
  TYPE(ADMISSION, "admission")                                                                     \
  TYPE(CALL_EVENT, "call_event")                                                                   \
  TYPE(CALL_END, "call_end")                                                                       \
  TYPE(CHECK, "check")                                                                             \
  TYPE(STRUCTURED, "structured")                                                                   \
  TYPE(REPORT, "report")                                                                           \
  TYPE(STAGE, "stage")                                                                             \
  TYPE(JUDGMENT, "judgment")                                                                       \
  TYPE(QUESTION, "question")                                                                       \
  TYPE(ANSWER, "answer")                                                                           \
  TYPE(STEER, "steer")                                                                             \
  TYPE(TURN_END, "turn_end")                                                                       \
  TYPE(WORKSPACE, "workspace")                                                                     \
  TYPE(EVIDENCE, "evidence")                                                                       \
  TYPE(SESSION_STOP, "session_stop")                                                               \
  TYPE(SESSION_RESUME, "session_resume")                                                           \
  TYPE(SESSION_END, "session_end")

enum record_type {
#define RECORD_TYPE(id, name) RECORD_##id,
  RECORD_TYPES(RECORD_TYPE)
#undef RECORD_TYPE
      RECORD_TYPE_COUNT /* an unknown type */
};

/* Members by name; PLAIN ones are numbers, texts, booleans or null, TREE ones any JSON. A text that
 * can be in a blob is followed by its two others, in this order. */
#define RECORD_MEMBERS(PLAIN, TREE)                                                                \
  PLAIN(TURN, "turn")                                                                              \
  PLAIN(CALL, "call")                                                                              \
  PLAIN(ATTEMPT, "attempt")                                                                        \
  PLAIN(MOVEMENT, "movement")                                                                      \
  PLAIN(PARENT_TURN, "parent_turn")                                                                \
  PLAIN(ITEM, "item")                                                                              \
  PLAIN(ITERATION, "iteration")                                                                    \
  PLAIN(MOVEMENT_ITERATION, "movement_iteration")                                                  \
  TREE(SESSION, "session")                                                                         \
  TREE(VERSIONS, "versions")                                                                       \
  PLAIN(TASK, "task")                                                                              \
  PLAIN(TASK_BLOB, "task_blob")                                                                    \
  PLAIN(TASK_BYTES, "task_bytes")                                                                  \
  PLAIN(WORKFLOW_PATH, "workflow_path")                                                            \
  TREE(FACETS, "facets")                                                                           \
  PLAIN(WORKFLOW_SHA256, "workflow_sha256")                                                        \
  TREE(WORKFLOW, "workflow")                                                                       \
  TREE(CONFIG, "config")                                                                           \
  PLAIN(PURPOSE, "purpose")                                                                        \
  PLAIN(STAGE, "stage")                                                                            \
  PLAIN(VOTE, "vote")                                                                              \
  PLAIN(INVARIANT, "invariant")                                                                    \
  PLAIN(PROVIDER, "provider")                                                                      \
  PLAIN(MODEL, "model")                                                                            \
  TREE(OPTIONS, "options")                                                                         \
  TREE(SCHEMA, "schema")                                                                           \
  PLAIN(FILE, "file")                                                                              \
  PLAIN(SHA256, "sha256")                                                                          \
  PLAIN(CWD, "cwd")                                                                                \
  TREE(SANDBOX, "sandbox")                                                                         \
  PLAIN(TIMEOUT_MS, "timeout_ms")                                                                  \
  TREE(TOKEN, "token")                                                                             \
  TREE(PROMPT, "prompt")                                                                           \
  PLAIN(PROMPT_OF, "prompt_of")                                                                    \
  PLAIN(MARK, "mark")                                                                              \
  PLAIN(PROMPT_SHA256, "prompt_sha256")                                                            \
  PLAIN(KEY, "key")                                                                                \
  TREE(SAID, "said")                                                                               \
  PLAIN(REPEATS, "repeats")                                                                        \
  PLAIN(ANSWER, "answer")                                                                          \
  PLAIN(UNTIL, "until")                                                                            \
  PLAIN(FALLBACK, "fallback")                                                                      \
  PLAIN(EVENT, "event")                                                                            \
  TREE(DATA, "data")                                                                               \
  PLAIN(TEXT, "text")                                                                              \
  PLAIN(TEXT_BLOB, "text_blob")                                                                    \
  PLAIN(TEXT_BYTES, "text_bytes")                                                                  \
  TREE(STRUCTURED, "structured")                                                                   \
  PLAIN(ENFORCED, "enforced")                                                                      \
  TREE(ERROR, "error")                                                                             \
  PLAIN(RETRY_IN_MS, "retry_in_ms")                                                                \
  TREE(OUTAGE, "outage")                                                                           \
  PLAIN(EXIT, "exit")                                                                              \
  TREE(TESTS, "tests")                                                                             \
  PLAIN(SIGNAL, "signal")                                                                          \
  PLAIN(STDERR, "stderr")                                                                          \
  PLAIN(STDERR_BLOB, "stderr_blob")                                                                \
  PLAIN(STDERR_BYTES, "stderr_bytes")                                                              \
  PLAIN(DROPPED_BYTES, "dropped_bytes")                                                            \
  PLAIN(STDERR_DROPPED_BYTES, "stderr_dropped_bytes")                                              \
  TREE(FILES, "files")                                                                             \
  PLAIN(FILES_MORE, "files_more")                                                                  \
  PLAIN(FILES_SHARED, "files_shared")                                                              \
  PLAIN(FILES_UNKNOWN, "files_unknown")                                                            \
  PLAIN(PROTECTED_SEEN, "protected_seen")                                                          \
  TREE(FILES_BETWEEN, "files_between")                                                             \
  TREE(HEAD, "head")                                                                               \
  TREE(UNFINISHED, "unfinished")                                                                   \
  TREE(OUTLIVED, "outlived")                                                                       \
  TREE(REQUESTS, "requests")                                                                       \
  TREE(USAGE, "usage")                                                                             \
  PLAIN(PROVIDER_SESSION, "provider_session")                                                      \
  PLAIN(NOTE, "note")                                                                              \
  PLAIN(DURATION_MS, "duration_ms")                                                                \
  PLAIN(OUTCOME, "outcome")                                                                        \
  PLAIN(ATTEMPTS, "attempts")                                                                      \
  PLAIN(FIRST_PASS, "first_pass")                                                                  \
  TREE(FAILURES, "failures")                                                                       \
  PLAIN(REASON, "reason")                                                                          \
  PLAIN(MESSAGE, "message")                                                                        \
  TREE(ERRORS, "errors")                                                                           \
  TREE(VALUE, "value")                                                                             \
  PLAIN(RULE, "rule")                                                                              \
  PLAIN(CONDITION, "condition")                                                                    \
  PLAIN(NEXT, "next")                                                                              \
  PLAIN(TAG, "tag")                                                                                \
  PLAIN(METHOD, "method")                                                                          \
  PLAIN(MATCH_METHOD, "match_method")                                                              \
  PLAIN(AMBIGUOUS, "ambiguous")                                                                    \
  PLAIN(READER, "reader")                                                                          \
  PLAIN(FAILURE, "failure")                                                                        \
  TREE(STAGES, "stages")                                                                           \
  PLAIN(CLASS, "class")                                                                            \
  TREE(QUESTION, "question")                                                                       \
  TREE(QUESTIONS, "questions")                                                                     \
  PLAIN(CHOICE, "choice")                                                                          \
  PLAIN(RESUMABLE, "resumable")                                                                    \
  PLAIN(TURNS, "turns")                                                                            \
  TREE(METHODS, "methods")                                                                         \
  TREE(WORKER, "worker")                                                                           \
  TREE(CUT, "cut")                                                                                 \
  TREE(BY, "by")                                                                                   \
  PLAIN(CARRIES, "carries")                                                                        \
  TREE(PARENT, "parent")                                                                           \
  TREE(STATE, "state")                                                                             \
  TREE(VERDICT, "verdict")                                                                         \
  TREE(CHANGED, "changed")                                                                         \
  TREE(SPENT, "spent")                                                                             \
  TREE(BUDGET, "budget")                                                                           \
  TREE(OUTPUTS, "outputs")                                                                         \
  PLAIN(BASIS, "basis")

enum member {
#define RECORD_MEMBER(id, name) MEMBER_##id,
  RECORD_MEMBERS(RECORD_MEMBER, RECORD_MEMBER)
#undef RECORD_MEMBER
      MEMBER_COUNT
};

enum record_kind {
  RECORD_NUMBER,
  RECORD_TEXT, /* UTF-8 */
  RECORD_WORD, /* a static text: never copied, with nothing to escape */
  RECORD_TRUE,
  RECORD_FALSE,
  RECORD_NULL,
  RECORD_TREE,
  RECORD_REF,   /* {"ref": text} */
  RECORD_PARTS, /* parts of a prompt */
};

struct record_part {
  struct str text; /* the text itself, or the place where it was logged first */
  bool is_ref;
};

struct record_member {
  uint8_t key, kind;
  union {
    int64_t number;
    struct str text; /* TEXT, WORD, REF */
    json_t *tree;
    struct {
      const struct record_part *parts;
      size_t n;
    } prompt;
  } is;
};

struct record {
  int64_t version;
  uint64_t seq;
  struct str ts;
  enum record_type type;
  struct str type_name;
  json_t *body; /* for stage and check the object with their own members; else NULL */
  size_t count;
  const struct record_member *members;
};

struct record_draft {
  struct record record; /* its members are those below */
  struct record_member members[MEMBER_COUNT];
};

/* --- making --- */

void record_begin(struct record_draft *d, uint64_t seq, struct str ts, enum record_type type);
void record_put_number(struct record_draft *d, enum member key, int64_t number);
void record_put_bool(struct record_draft *d, enum member key, bool value);
void record_put_null(struct record_draft *d, enum member key);
/* Puts a word, which is static plain ASCII. */
void record_put_word(struct record_draft *d, enum member key, const char *word);
/* Puts UTF-8 that lives until the record is kept. */
void record_put_text(struct record_draft *d, enum member key, struct str text);
/* Does the same for bytes of any kind, see json_text; an empty text is left out. */
void record_put_bytes(struct record_draft *d, enum member key, struct str bytes);
void record_put_ref(struct record_draft *d, enum member key, const char *place);
/* Puts parts that live until the record is kept. */
void record_put_parts(struct record_draft *d, enum member key, const struct record_part *parts,
                      size_t n);
/* Puts a value and takes it. */
void record_put_tree(struct record_draft *d, enum member key, json_t *value); /* NULL: nothing */
/* Puts those members of the object that a record can have, in the record's order. */
void record_put_members(struct record_draft *d, const json_t *object);
/* Puts an object, which it takes, after the members above. */
void record_put_body(struct record_draft *d, json_t *object);

struct record *record_keep(struct record_draft *d); /* takes what the draft owns */
void record_free(struct record *record);            /* accepts NULL */

/* --- reading --- */

/* Reads a record back. Unknown members are left out; a PLAIN member that is a list, an object or a
 * real becomes a tree. The draft borrows its texts from json; call record_drop. */
void record_read(struct record_draft *d, const json_t *json);
void record_drop(struct record_draft *d);

static inline const struct record_member *record_get(const struct record *r, enum member key) {
  for (size_t i = 0; i < r->count; i++)
    if (r->members[i].key == key)
      return &r->members[i];
  return NULL;
}

/* For a missing member, or one of another kind, these return 0, the empty text, false or NULL.
 * Everything is borrowed; texts end with NUL in records that were kept or read. */
int64_t record_number(const struct record *r, enum member key);
struct str record_text(const struct record *r, enum member key);
const char *record_text_c(const struct record *r, enum member key);
bool record_is_number(const struct record *r, enum member key);
bool record_is_true(const struct record *r, enum member key);
json_t *record_tree(const struct record *r, enum member key);
/* Gives the place that a member refers to. False: it is not a reference, and `place` is empty. */
bool record_ref(const struct record *r, enum member key, struct str *place);
/* Gives the k-th part of the record's prompt, "" for a reference. False: there are fewer. */
bool record_part(const struct record *r, size_t k, struct str *text);

/* Calls `fn` for each element of a list that refers to a place, until it returns false. Returns
 * false if it did. */
typedef bool (*record_ref_fn)(void *ctx, size_t element, const char *place);
bool record_each_ref(const struct record *r, enum member key, record_ref_fn fn, void *ctx);

/* --- as JSON --- */

/* Appends the record as compact JSON, without hash; see format/json_write.h. `out` has no
 * maximum. */
void record_write(const struct record *r, struct buf *out);
json_t *record_json(const struct record *r); /* new */

/* Writes "2026-11-21T01:02:03.456Z" from milliseconds since 1970, UTC. */
void record_time(int64_t time_ms, char out[RECORD_TIME_BYTES]);
bool record_time_parse(const char *text, int64_t *time_ms);

const char *record_type_name(enum record_type type);
const char *record_member_name(enum member key);
/* Returns the type of that name; RECORD_TYPE_COUNT: unknown. */
enum record_type record_type_named(struct str name);

#endif
