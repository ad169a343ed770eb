/* compare.h - compares two sessions: aligns their turns by movement and finds where they part.
 *
 *   compare_log(&a, &ref, &err) and compare_log(&b, ...)     one log each, as far as it can be read
 *   compare_sound(&a, &err)                                  unless a damaged log may be shown too
 *   rows = compare_align(&a, &b, &count)                        free() it
 *   compare_side_deinit(&a) ...
 *
 * For a fork and its parent, the turns that the fork took over come first and count as shared
 * (COMPARE_SHARED), provided the parent's log still holds the exact record after which it was
 * forked. The other turns are aligned by the longest common subsequence of their movements (up to
 * COMPARE_ALIGN_COUNT turns each; beyond that, one by one). Texts are raw. */
#ifndef SEGUE_AUDIT_COMPARE_H
#define SEGUE_AUDIT_COMPARE_H

#include "audit/verified_reader.h"

#include <jansson.h>

enum { COMPARE_ALIGN_COUNT = 1000 };

struct compare_turn {
  long turn;
  long rule;                                         /* 0: none, or not judged */
  json_t *movement, *next, *method, *judge, *worker; /* texts, or NULL; owned */
  bool judged;
  bool unproven;                /* came after a damaged record: nothing vouches for it */
  char text_sha256[SHA256_HEX]; /* hash of the agent's answer; "" before there is one */
  uint64_t text_seq;            /* the record that holds it; 0: there is none */
  int64_t ms, tokens, cost_nano;
  json_t *files; /* {path: [added, removed]}; owned */
};

struct compare_fork { /* origin of a forked session; session "": it was not forked */
  char session[40], hash[SHA256_HEX];
  uint64_t seq; /* seq of the last record that it took over */
  long turns;   /* last turn that it took over */
};

struct compare_side {
  struct verified_reader book; /* stays open, for texts */
  char session[40];
  struct compare_fork fork;
  uint64_t *heads; /* the first 64 bits of each record's hash, by seq from 1 */
  size_t head_count, head_room;
  json_t *workflow; /* its name; owned, as is outcome */
  json_t *outcome;  /* NULL: open */
  char workflow_sha256[SHA256_HEX];
  struct compare_turn *turns;
  size_t count, room;
  int64_t ms, tokens, cost_nano;
  uint64_t newer; /* first record of a version that is not known; 0: none */
};

enum compare_difference {                       /* bits */
                          COMPARE_ONLY_ONE = 1, /* the other session has no such turn */
                          COMPARE_VERDICT =
                              2, /* another rule or next movement, or only one has any */
                          COMPARE_METHOD = 4,
                          COMPARE_TEXT = 8, /* the agent said something else */
                          COMPARE_FILES = 16,
                          COMPARE_SHARED = 32 /* not a difference: a fork took it over */
};

struct compare_row {
  const struct compare_turn *a, *b; /* one may be NULL */
  unsigned differs;
};

bool compare_log(struct compare_side *side, const struct store_ref *ref,
                 struct err *err) MUST_CHECK;
/* Returns false if its log is damaged; side.book says how. */
bool compare_sound(const struct compare_side *side, struct err *err) MUST_CHECK;
/* Appends the agent's answer, raw; nothing if there is none yet. */
bool compare_text(const struct compare_side *side, const struct compare_turn *turn, struct buf *out,
                  struct err *err) MUST_CHECK;
void compare_side_deinit(struct compare_side *side);
struct compare_row *compare_align(const struct compare_side *a, const struct compare_side *b,
                                  size_t *count);
/* Returns the side that the other was forked from, or NULL; *turns: how many of its turns they
 * share; *proven is false if its log lacks the record that the fork names. */
const struct compare_side *compare_shared(const struct compare_side *a,
                                          const struct compare_side *b, size_t *turns,
                                          bool *proven);
/* Returns the first row in which the sessions part: a turn that one lacks, or another verdict.
 * NULL: they do not part. */
const struct compare_row *compare_parting(const struct compare_row *rows, size_t count);
/* Counts the rows whose turns have a verdict, or the other ones. */
size_t compare_judged(const struct compare_row *rows, size_t count, bool judged);
/* Returns {"a", "b", "same_workflow", "shared", "parting", "turns"}, a new reference. */
json_t *compare_json(const struct compare_side *a, const struct compare_side *b,
                     const struct compare_row *rows, size_t count);

#endif
