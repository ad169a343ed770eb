/* workflow.h - the immutable workflow: what a session executes.
 *
 * Built from the resolved document: a JSON object with the keys of a workflow file, aliases
 * replaced, facets resolved to their texts (lists joined with a rule). The same document stands in
 * a session's first record, so a session goes on after the file changed. The workflow room makes
 * the document from files (and reports errors with places); workflow_build only has to be safe on
 * any document. One arena holds everything; sessions share a workflow by reference count.
 *
 *   {"name", "description", "language", "schema_as", "initial_movement",
 *    "max_movements": n | "infinite", "budget", "guards",
 *    "provider", "fallback": [..], "model", "options", "judge",
 *    "inputs": {NAME: text}, "outputs": {NAME: text},
 *    "movements": [{"name", "description", "provider", "fallback", "model", "options",
 *      "command": [..], "gate", "evidence", "check_files", "together", "tests", "timeout",
 *      "stall", "cwd", "budget", "guards", "persona", "policy",
 *      "knowledge", "instruction", "bare_prompt", "edit", "permission", "run", "secrets",
 *      "sandbox", "network", "limits", "image",
 *      "required_permission_mode", "session", "session_key", "pass_previous_response",
 *      "structured_output", "report", "output_contracts", "judge",
 *      "rules": [{"condition", "next", "appendix", "interactive_only"}],
 *      "on_error": [{"class", "to"}]}]}
 * A group has "name", "description", "parallel": [movements, whose rules have no next],
 * "concurrency", "for_each", "stop_on", "judge" and "rules". In `movements` children follow all
 * others.
 *   budget: {"tokens", "cost", "time", "calls", "movements", "call": {"tokens", "cost", "time"},
 *      "on_exceed"}
 *   judge: {"stages": [..], "provider", "fallback", "model", "options", "effort", "timeout_ms",
 *      "panel", "agree", "order", "else", "max_reasks"}
 *   output_contracts: {"report": [{"name", "label", "format", "order", "use_judge"}]}
 *   structured_output: {"schema": {..}, "invariants": [..], "on_failure", "max_reasks", "repair",
 *      "assert_format", "keep_valid", "reask": {"provider", "model"}, "token_budget",
 *      "time_budget_ms"} */
#ifndef SEGUE_CORE_WORKFLOW_H
#define SEGUE_CORE_WORKFLOW_H

#include "base/arena.h"
#include "base/err.h"
#include "base/sha256.h"
#include "core/call.h"
#include "judge/rule.h"
#include "judge/stage.h"
#include "schema/schema.h"
#include "structured/invariant.h"

#include <jansson.h>
#include <stdatomic.h>

enum { NEXT_COMPLETE = -1, NEXT_ABORT = -2 }; /* else an index into movements */
enum { MOVEMENTS_INFINITE = -1 };
enum { NO_GROUP = -1 };

enum workspace_mode { WORKSPACE_UNSET, WORKSPACE_HERE, WORKSPACE_WORKTREE };
enum commit_when { COMMIT_UNSET, COMMIT_OFF, COMMIT_MOVEMENT, COMMIT_END };

struct judge_config {
  enum judge_stage stages[STAGE_COUNT];
  size_t stage_count;
  struct str provider, model; /* empty: the movement's */
  const json_t *fallback;     /* names of providers, of `provider` here; or NULL */
  const json_t *options;      /* NULL: none; borrowed from the document */
  /* a word; null: none is sent; NULL: that of options, else the backend's */
  const json_t *effort;
  long timeout_ms; /* of one judge call */
  int max_reasks;
  bool reasks_said;    /* somebody named that number */
  bool own_tag;        /* fallback: own_tag: the agent's own tag decides if no judge can be read */
  const json_t *panel; /* names of providers that vote, borrowed; NULL: one judge */
  int agree;           /* votes that must agree */
  bool rotates;        /* each vote is asked with the rules in another order */
  bool split_asks;     /* too few agree: a person decides; otherwise the next stage is tried */
};

struct contract {           /* a movement's report; texts borrowed from its document */
  struct str name;          /* name of the file */
  struct str label;         /* its title; or empty */
  struct str format, order; /* its required form, and instructions for it; or empty */
  bool is_answer;           /* it holds the movement's answer itself: nothing is asked */
  bool judged;              /* the judge reads it beside the answer */
};

enum on_failure {
  ON_FAILURE_ERROR,    /* the session fails */
  ON_FAILURE_ESCALATE, /* the session stops resumably, with a question for a person */
  ON_FAILURE_SENTINEL, /* the value is a sentinel, and the session goes on */
  ON_FAILURE_COUNT
};

struct structured_config {       /* what a movement's answer must be, and how it gets there */
  const json_t *document;        /* the schema; borrowed from the document */
  struct schema *schema;         /* owned */
  bool assert_format;            /* `format` is checked, not just noted */
  struct invariants *invariants; /* owned; NULL: none */
  enum on_failure on_failure;
  int max_reasks;
  bool repair;
  bool keep_valid;            /* a correction changes only the items of lists that errors name */
  bool example;               /* the prompt shows one, made from the schema */
  struct str provider, model; /* of corrections; empty: the movement's */
  long token_budget, time_budget_ms; /* of all calls for one value together; 0: none */
};

enum budget_unit {
  BUDGET_TOKENS,
  BUDGET_COST, /* US dollars / 1e9 */
  BUDGET_TIME, /* ms */
  BUDGET_CALLS,
  BUDGET_MOVEMENTS,
  BUDGET_UNITS
};

struct budget {                /* see budget.h */
  int64_t limit[BUDGET_UNITS]; /* -1: none */
  int64_t call[BUDGET_UNITS];  /* of one call with its attempts; the same */
  bool stops;                  /* running calls are ended too */
};

enum guard { GUARD_TOOL, GUARD_FAILURE, GUARD_MOVEMENT, GUARD_COUNT };
enum guard_action { GUARD_IGNORE, GUARD_WARN, GUARD_STOP };

struct guards {            /* see guard.h */
  long times[GUARD_COUNT]; /* 0: without it */
  enum guard_action on[GUARD_COUNT];
};

struct ask_config {      /* a question to a person, instead of an agent or before it */
  struct str question;   /* a template; of `approve` perhaps empty */
  const json_t *choices; /* borrowed from the document, as all here; NULL: any answer */
  const json_t *document;
  struct schema *schema; /* owned; of document; NULL: any answer */
  struct str otherwise;  /* the answer when the deadline passes */
  long deadline_ms;      /* 0: none */
  bool approves;         /* of `approve`: whether that is an approval */
  int on_reject;         /* of `approve`: index, NEXT_COMPLETE or NEXT_ABORT */
};

struct error_way {        /* where a call's error leads */
  enum error_class class; /* CLASS_NONE: any */
  struct str to;
  int next; /* index or NEXT_ABORT */
};

struct monitor {        /* a cycle that is watched: see monitor.h */
  const size_t *cycle;  /* movements, each once */
  const size_t *ignore; /* those that do not break it */
  size_t cycle_count, ignore_count;
  long threshold;  /* rounds in a row */
  size_t movement; /* judges then */
};

enum touches { TOUCHES_ANY, TOUCHES_CHECK, TOUCHES_WORK };

struct movement {
  struct str name, description;    /* of a child: GROUP.NAME */
  struct str own_name;             /* without its group's: what its tag says */
  long group;                      /* of a child: the movement it belongs to; else NO_GROUP */
  size_t first_child, child_count; /* of a group: its children stand together in the list */
  long concurrency;                /* of a group: how many of them run at once */
  const json_t *for_each;     /* of a group: items, or MOVEMENT.FIELD where they are; or NULL */
  bool stops_on_error;        /* of a group: a child that failed ends its siblings */
  bool shares_conversation;   /* a sibling has the same session key, so each gets its own */
  struct str provider, model; /* empty: the workflow's, then the user's default */
  const json_t *fallback;     /* providers to ask when `provider` fails; or NULL */
  const json_t *options;      /* own, else the workflow's; may be NULL */
  const char *const *argv;    /* NULL-ended; NULL unless a command movement */
  struct str tests; /* how the command reports its tests, see movement_limits.h; or empty */
  long timeout_ms, stall_ms; /* of one call; stall_ms 0: the backend's own */
  long stall_retries;        /* attempts after one that said nothing for that long */
  struct str cwd;            /* below the session's, a template; or empty */
  struct str persona, policy, knowledge, instruction;
  const struct budget *budget;   /* of its turns; or NULL */
  struct guards guards;          /* the workflow's, overridden by its own */
  bool own_worktree;             /* of a child: it works in a worktree of its own */
  bool evidence, together;       /* its passes are looked at, see evidence.h; beside other runs */
  enum touches touches;          /* what its turns may change of a check's files and others */
  const json_t *check_files;     /* {"add", "not"}: patterns; or NULL; borrowed */
  bool gate;                     /* a command that proves something: see keys.c */
  bool bare_prompt;              /* the prompt is the instruction alone, as a command gets it */
  bool edit;                     /* may change files: its permission is edit or full */
  bool writes;                   /* its program may: also a command that is not told readonly */
  enum permission permission;    /* from permission, edit and required_permission_mode */
  const json_t *run;             /* programs that edit may run: see run.h; borrowed; or NULL */
  bool has_sandbox, has_network; /* it sets them itself */
  enum sandbox_level sandbox;    /* what holds the programs of its calls */
  enum sandbox_network network;
  struct str image;            /* of sandbox: container; empty: the user's */
  const json_t *limits;        /* as the file has it; NULL: none */
  const json_t *secrets;       /* names of variables that its work gets; or NULL; borrowed */
  bool fresh_session;          /* session: refresh */
  struct str session_key;      /* empty: the persona's, else the movement's own */
  bool pass_previous_response; /* default true */
  struct judge_config judge;   /* the workflow's, overridden by the movement's keys */
  struct structured_config *structured; /* NULL: any answer will do */
  const struct monitor *monitor;        /* whose judge it is; or NULL */
  struct contract *contracts;           /* its reports, in the order in which they are made */
  size_t contract_count;
  bool answers_later;               /* an instruction refers to its answer: {response:MOVEMENT} */
  struct ask_config *ask, *approve; /* NULL: nobody is asked */
  struct rule *rules;
  int *rule_next; /* per rule: index, NEXT_COMPLETE or NEXT_ABORT */
  size_t rule_count;
  struct error_way *on_error; /* the first that fits counts */
  size_t on_error_count;
};

struct workflow {
  struct str name, description, language; /* language: "en" or "ja" */
  enum describe_form schema_as; /* how schemas are shown to backends without an option for them */
  struct movement *movements;
  size_t movement_count, initial; /* with the children; */
  size_t top_count;               /* without them */
  struct monitor *monitors;       /* their judges stand behind all other movements */
  size_t monitor_count;
  long max_movements;          /* MOVEMENTS_INFINITE or > 0 */
  const struct budget *budget; /* of the session; or NULL */
  struct budget ask_above;     /* a group whose plan exceeds it asks first */
  const json_t *may_change;    /* patterns of a check's files that may change; or NULL; borrowed */
  const json_t *protect;       /* patterns of paths that nobody changes; or NULL; borrowed */
  struct str provider, model;
  const json_t *fallback; /* of provider; or NULL */
  const json_t *inputs;   /* name -> text: {input:NAME} in instructions; or NULL */
  const json_t *outputs;  /* name -> template: what a complete session returns; or NULL */
  enum workspace_mode workspace;
  enum commit_when commit;
  struct str branch;   /* a template; or empty */
  const json_t *setup; /* of its worktrees; or NULL */
  bool has_reports;    /* some movement brings one */
  json_t *doc;         /* the resolved document, owned */
  struct arena arena;
  atomic_uint references;
  char sha256[SHA256_HEX]; /* of doc, once it was asked for; or "" */
};

/* Takes a reference to doc. NULL with err set if the document cannot be a workflow. */
struct workflow *workflow_build(json_t *doc, struct err *err);
struct workflow *workflow_ref(struct workflow *wf);
void workflow_unref(struct workflow *wf); /* NULL is fine */

/* SHA-256 of the document's compact dump with sorted keys. It is computed on demand: most readers
 * of a workflow need none. */
void workflow_hash(struct workflow *wf, char out[SHA256_HEX]);

/* False: it is not a word for one (it may be empty), and `out` is unchanged. */
bool workspace_mode_from_name(struct str name, enum workspace_mode *out);
bool commit_when_from_name(struct str name, enum commit_when *out);

/* `language`, for the renderings. */
enum describe_language workflow_language(const struct workflow *wf);

/* Returns the number of the choice that a text names, from 1; 0: none. */
long ask_choice(const json_t *choices, struct str text);
/* Returns the rule that a choice means: the first whose condition is a label of the same words. 0:
 * none. */
int ask_rule(const struct movement *m, struct str text);
/* Returns true if every possible choice means a rule, so that nothing is left to judge. */
bool ask_needs_no_judge(const struct movement *m);
/* Returns the value of an answer that fits the schema: the text as JSON, or else the text itself. A
 * new reference, or NULL with the first error. */
json_t *ask_read(const struct schema *schema, const json_t *document, struct str text,
                 struct err *err);

/* Count the ways out of a movement, its rules and then the entries of on_error, and return where
 * one of them leads. */
static inline size_t movement_ways(const struct movement *m) {
  return m->rule_count + m->on_error_count;
}
static inline int movement_leads_to(const struct movement *m, size_t way) {
  return way < m->rule_count ? m->rule_next[way] : m->on_error[way - m->rule_count].next;
}
/* Returns where an error of that class leads; NULL: the session stops. */
const struct error_way *movement_on_error(const struct movement *m, enum error_class class);

/* Index of a movement by name, -1 when there is none. */
long workflow_find(const struct workflow *wf, struct str name);

#endif
