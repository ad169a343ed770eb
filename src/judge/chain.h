/* chain.h - the judge chain: which rule, and why. Pure: no clock, no I/O, no memory between calls.
 *
 * The chain of one turn depends only on what has been recorded: the stage objects so far (bodies of
 * `stage` records, in order) and the replies of the judge calls. Call it repeatedly:
 *
 *   chain_next(&spec, stages, replies, n, &step)
 *     CHAIN_CALL         start a judge call for step.stage (a reask when step.reask), come back
 *                        with its reply appended to `replies`
 *     CHAIN_STAGE        append step.object (owned by you) to `stages`, record it, come back
 *     CHAIN_VERDICT      step.rule was chosen by the last matched stage
 *     CHAIN_NO_MATCH     answers were readable (or none was asked for) but none named a rule
 *     CHAIN_UNAVAILABLE  calls were made and no stage got a readable answer: never a verdict
 *     CHAIN_FAILED       a when() expression cannot be evaluated; step.reason says why
 *     CHAIN_SPLIT        a panel is split and a person must decide; step.reason says how
 *   chain_step_deinit(&step)
 *
 * Order: when() rules that stand before the first label; auto_select when one label is left; then
 * the configured stages. After a label is chosen, the rules are walked in file order with that
 * label fixed: its guard must hold, and an earlier when() that is true wins.
 *
 * A stage whose evidence names two rules is ambiguous: it decides nothing, and the next is tried.
 * After a judge found that no rule holds ("none"), an agent's own tag is ambiguous at best. That
 * tag decides only with its mark (extract/tag.h), and where phase1_tag comes first or spec.own_tag
 * is set.
 *
 * A panel judges each stage that calls by votes: each vote is a stage object with "vote", and the
 * last object, without it, is their decision. Too few that agree is ambiguous.
 *
 * A stage object: {"stage", "outcome", "class"?, "calls": [call ids], "extract_stage"?, "errors":
 * [..], "rule"?, "tag"?, "none"?, "vote"?, "candidates"?, "mentions"?, "reason"?, "provider"?,
 * "model"?, "prompt_sha256"?, "usage"?, "duration_ms"}. Provider and model are those that answered
 * last, or were asked last when none did; usage is that of all its calls. Candidates and mentions
 * are {"rule"?, "text"?, "line"?, "stage"?}: conflicting answers, and tags in places where they
 * decide nothing. */
#ifndef SEGUE_JUDGE_CHAIN_H
#define SEGUE_JUDGE_CHAIN_H

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "extract/tag.h"
#include "judge/rule.h"
#include "judge/stage.h"
#include "schema/schema.h"

#include <jansson.h>
#include <stdint.h>

enum { CHAIN_READER = 3 }; /* version of the readers; judgments that name none are of the first */

struct chain_schemas { /* compiled once, shared by all chains; see chain_schemas_init */
  struct schema *judgment, *evaluation, *invariant; /* the last: of a question about a value */
  json_t *judgment_doc, *evaluation_doc, *invariant_doc;
  json_t *narrowed; /* schemas made so far, by stage and offered numbers: sessions share them */
};
bool chain_schemas_init(struct chain_schemas *schemas, struct err *err) MUST_CHECK;
void chain_schemas_deinit(struct chain_schemas *schemas);

struct chain_spec { /* all borrowed */
  const struct chain_schemas *schemas;
  const struct rule *rules;
  size_t rule_count;
  bool interactive;    /* false: interactive_only rules are hidden: never offered, never accepted */
  struct str movement; /* the tag's name */
  const enum judge_stage *stages;
  size_t stage_count;
  int max_reasks;   /* per stage that calls, and per vote */
  bool reasks_said; /* also after a value from the backend's own schema mode */
  int panel, agree; /* judges of each stage that calls, and how many must agree; 0: one judge */
  bool split_asks;  /* a panel that is split ends the chain: CHAIN_SPLIT */
  int rotation;     /* index of the offered rule that a question begins with */
  struct str agent_text;    /* the agent's own last message: for phase1_tag */
  struct str mark;          /* the word that it was asked for; empty: none was */
  enum tag_scope own_scope; /* TAG_AGENT, or TAG_COMMAND for a text without a prompt of ours */
  bool own_tag;             /* the agent's own tag may decide where no judge could be read */
  /* that text is a group's children's: its last line would decide for all of them */
  bool joined;
  const json_t *env;  /* object: roots of when() expressions */
  bool deterministic; /* no label can be chosen: there is no answer to judge */
};

struct chain_reply { /* one finished judge call of this turn, in order; borrowed */
  enum judge_stage stage;
  int vote; /* number in a panel, from 1; else 0 */
  long call;
  const char *error_class; /* NULL: it was answered */
  struct str error_text, text;
  const json_t *structured;                  /* value from the backend's own schema mode, or NULL */
  struct str provider, model, prompt_sha256; /* may be empty */
  const json_t *usage;                       /* sum over all its attempts, or NULL */
  int64_t duration_ms;
};

enum chain_action {
  CHAIN_CALL,
  CHAIN_STAGE,
  CHAIN_VERDICT,
  CHAIN_NO_MATCH,
  CHAIN_UNAVAILABLE,
  CHAIN_FAILED,
  CHAIN_SPLIT
};

struct chain_step {
  enum chain_action action;
  enum judge_stage stage; /* CALL: for which; VERDICT: which decided (the method) */
  int vote;               /* CALL and STAGE of a panel: whose, from 1; else 0 */
  bool reask;
  json_t *errors;                      /* reask: array of the messages to correct; owned */
  json_t *object;                      /* STAGE: owned */
  const struct rule *rule;             /* VERDICT */
  char reason[LIMIT_ERROR_TEXT_BYTES]; /* NO_MATCH, UNAVAILABLE, FAILED: one sentence */
};

void chain_next(const struct chain_spec *spec, const json_t *stages,
                const struct chain_reply *replies, size_t reply_count, struct chain_step *step);
void chain_step_deinit(struct chain_step *step);

/* The rules a model is offered: first rule of each distinct label, hidden ones left out, file
 * order. `out` holds rule_count entries; returns how many were set. */
size_t chain_offered(const struct chain_spec *spec, const struct rule **out);

/* Gives the same in the order of a question: rotated by spec->rotation, each with its own
 * number. */
size_t chain_shown(const struct chain_spec *spec, const struct rule **out);

/* The schema sent with a call of `stage` (structured_output, ai_judge), its number narrowed to 0
 * and the offered ones; NULL for the others. New reference to a shared value: never change it. */
json_t *chain_call_schema(const struct chain_spec *spec, enum judge_stage stage);

/* Finds the tag that names a rule in `text`, read as that stage reads it. False: there is none, but
 * tag->mentions may hold some. */
bool chain_find_tag(const struct chain_spec *spec, struct str text, enum judge_stage stage,
                    struct tag_result *tag);

/* True when judging this movement can need a model: two or more distinct visible labels and a stage
 * that calls. For lint. */
bool chain_needs_judge(const struct chain_spec *spec);

/* Stages of a judged turn: did one name a rule, or find that none holds? True also when no model
 * was asked. False: there is no verdict, whatever ended the turn. */
bool chain_was_decided(const json_t *stages);

/* --- words that contradict a number --- */

/* Returns true if `words` are not those of rule `number`; its number and signs may stand around
 * them. With 0 any but a rule's words will do. */
bool rule_words_differ(struct str words, long number, const struct tag_query *query);

/* Returns true if the reason holds another rule's exact words (not inside its own rule's) or
 * another offered number that stands alone, in no code or quotation. query->words: the rules
 * offered. */
bool reason_contradicts(struct str reason, long number, const struct tag_query *query);

#endif
