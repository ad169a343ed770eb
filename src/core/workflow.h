/* workflow.h - the immutable workflow: what a session executes.
 *
 * Built from the resolved document: a JSON object with the keys of a workflow file, aliases
 * replaced, facets resolved to their texts (lists joined with a rule). The same document stands in
 * a session's first record, so a session goes on after the file changed. The workflow room makes
 * the document from files (and reports errors with places); workflow_build only has to be safe on
 * any document. One arena holds all; shared by sessions through a count of references.
 *
 *   {"name", "description", "language", "schema_as", "initial_movement",
 *    "max_movements": n | "infinite",
 *    "provider", "fallback": [..], "model", "options", "judge",
 *    "movements": [{"name", "description", "provider", "fallback", "model", "options",
 *      "command": [..], "tests", "timeout", "stall", "cwd", "persona", "policy", "knowledge",
 *      "instruction", "bare_prompt", "edit", "permission", "run", "secrets",
 *      "required_permission_mode", "session", "session_key", "pass_previous_response",
 *      "structured_output", "judge",
 *      "rules": [{"condition", "next", "appendix", "interactive_only"}]}]}
 * A group has "name", "description", "parallel": [movements, whose rules have no next],
 * "concurrency", "judge" and "rules". Children stand behind all others in `movements` here.
 *   judge: {"stages": [..], "provider", "fallback", "model", "options", "effort", "timeout_ms",
 *      "panel", "agree", "order", "else", "max_reasks"}
 *   structured_output: {"schema": {..}, "invariants": [..], "on_failure", "max_reasks", "repair",
 *      "assert_format", "reask": {"provider", "model"}, "token_budget", "time_budget_ms"} */
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

struct judge_config {
  enum judge_stage stages[STAGE_COUNT];
  size_t stage_count;
  struct str provider, model; /* empty: the movement's */
  const json_t *fallback;     /* names of providers, of `provider` here; or NULL */
  const json_t *options;      /* NULL: none; borrowed from the document */
  const json_t *effort;       /* a word, null: none is sent; NULL: options', else the backend's */
  long timeout_ms;            /* of one judge call */
  int max_reasks;
  const json_t *panel; /* names of providers that vote, borrowed; NULL: one judge */
  int agree;           /* votes that must say the same */
  bool rotates;        /* each vote is asked with the rules in another order */
  bool split_asks;     /* not enough agree: a person is to say, else the next stage is tried */
};

enum on_failure {
  ON_FAILURE_ERROR,    /* the session fails */
  ON_FAILURE_ESCALATE, /* the session stops resumably, with a question for a person */
  ON_FAILURE_SENTINEL, /* the value says that there is none, and the session goes on */
  ON_FAILURE_COUNT
};

struct structured_config { /* what a movement's answer must be, and what is done until it is */
  const json_t *document;  /* the schema; borrowed from the document */
  struct schema *schema;   /* owned */
  bool assert_format;      /* `format` is checked, not only noted */
  struct invariants *invariants; /* owned; NULL: none */
  enum on_failure on_failure;
  int max_reasks;
  bool repair;
  bool example;                      /* the prompt shows one, made from the schema */
  struct str provider, model;        /* of corrections; empty: the movement's */
  long token_budget, time_budget_ms; /* of all calls for one value together; 0: none */
};

struct movement {
  struct str name, description;    /* of a child: GROUP.NAME */
  struct str own_name;             /* without its group's: what its tag says */
  long group;                      /* of a child: the movement it belongs to; else NO_GROUP */
  size_t first_child, child_count; /* of a group: its children stand together in the list */
  long concurrency;                /* of a group: how many of them run at once */
  bool shares_conversation;        /* a sibling has the same session key: it gets one of its own */
  struct str provider, model;      /* empty: the workflow's, then the user's default */
  const json_t *fallback;          /* of `provider` here: whom to ask when it fails; or NULL */
  const json_t *options;           /* own, else the workflow's; may be NULL */
  const char *const *argv;         /* NULL-ended; NULL unless a command movement */
  struct str tests;                /* how the command tells its tests, see limits.h; or empty */
  long timeout_ms, stall_ms;       /* of one call; the second 0: as its backend has it */
  struct str cwd;                  /* below the session's, a template; or empty */
  struct str persona, policy, knowledge, instruction;
  bool bare_prompt;            /* the prompt is the instruction alone, as a command gets it */
  bool edit;                   /* may change files: its permission is edit or full */
  enum permission permission;  /* from permission, edit and required_permission_mode */
  const json_t *run;           /* programs that edit may run: see run.h; borrowed; or NULL */
  const json_t *secrets;       /* names of variables that its work gets; or NULL; borrowed */
  bool fresh_session;          /* session: refresh */
  struct str session_key;      /* empty: the persona's, else the movement's own */
  bool pass_previous_response; /* default true */
  struct judge_config judge;   /* the workflow's with the movement's keys on top */
  struct structured_config *structured; /* NULL: any answer will do */
  struct rule *rules;
  int *rule_next; /* per rule: index, NEXT_COMPLETE or NEXT_ABORT */
  size_t rule_count;
};

struct workflow {
  struct str name, description, language; /* language: "en" or "ja" */
  enum describe_form schema_as; /* how schemas are told where a backend has no option for them */
  struct movement *movements;
  size_t movement_count, initial; /* with the children; */
  size_t top_count;               /* without them */
  long max_movements;             /* MOVEMENTS_INFINITE or > 0 */
  struct str provider, model;
  const json_t *fallback; /* of provider; or NULL */
  json_t *doc;            /* the resolved document, owned */
  struct arena arena;
  atomic_uint references;
  char sha256[SHA256_HEX]; /* of doc, once it was asked for; or "" */
};

/* Takes a reference to doc. NULL with err set when the document cannot be a workflow. */
struct workflow *workflow_build(json_t *doc, struct err *err);
struct workflow *workflow_ref(struct workflow *wf);
void workflow_unref(struct workflow *wf); /* NULL is fine */

/* SHA-256 of the document's compact dump with sorted keys. Made when it is asked for: OpenSSL's
 * start costs more than all of lint. */
void workflow_hash(struct workflow *wf, char out[SHA256_HEX]);

/* `language`, for the renderings. */
enum describe_language workflow_language(const struct workflow *wf);

/* Index of a movement by name, -1 when there is none. */
long workflow_find(const struct workflow *wf, struct str name);

#endif
