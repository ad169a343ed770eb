/* keys.h - the one table of the keys of a workflow: schemas/workflow.json, compiled in.
 *
 * The parser's checks, the "did you mean" of its messages, the help of a key and the check of a
 * document that came from a log are all derived from it: a new key is a property there and, if it
 * means something, a use in core/workflow.c. A new type is a definition there, a name here and its
 * checks; in the list below, a type is named as its definition is. */
#ifndef SEGUE_CORE_KEYS_H
#define SEGUE_CORE_KEYS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>

enum facet_kind {
  FACET_PERSONA,
  FACET_POLICY,
  FACET_KNOWLEDGE,
  FACET_INSTRUCTION,
  FACET_OUTPUT_CONTRACT,
  FACET_KIND_COUNT
};

enum key_type {
  KEY_NAME, /* 1 to LIMIT_NAME_BYTES bytes, no control characters */
  KEY_LINE, /* a text of one line, not empty */
  KEY_TEXT, /* any text */
  KEY_BOOL,
  KEY_INTEGER,   /* min to max */
  KEY_NUMBER,    /* min to max */
  KEY_CHOICE,    /* one of words */
  KEY_COUNT,     /* an integer from min to max, or one of words */
  KEY_CONDITION, /* judge/rule.h */
  KEY_FACET,     /* a reference or text, or a list of them; resolved to its text */
  KEY_SECTION,   /* map name -> path or text; gone from the resolved document */
  /* a backend, or a list: the first, then fallbacks, which the resolved document has beside it as
   * `fallback` */
  KEY_PROVIDERS,
  KEY_ARGV,      /* list of texts: a program and its arguments */
  KEY_CHOICES,   /* list of 2 to max lines, each once: what a person can choose */
  KEY_NAMES,     /* list of min to max names */
  KEY_TEXTS,     /* list of 1 to max texts */
  KEY_VARIABLES, /* list of names of environment variables */
  KEY_PANEL,     /* list of 2 to max backends, or one of words */
  KEY_RUN,       /* list of programs that an agent may run: see core/run.h */
  KEY_STAGES,    /* list of judge stages from words, each at most once */
  KEY_SCHEMA,    /* a JSON Schema: a preset's name, a path, or a map; see schemas.h */
  KEY_ITEMS, /* a list of 1 to max values of any kind, or a text MOVEMENT.FIELD: core/value_ref.h */
  KEY_INVARIANTS, /* list of invariants, see structured/invariant.h */
  KEY_PARAMS,     /* map name -> default or {description, default}; gone when it is loaded */
  KEY_ARGS,       /* map name -> text; gone when it is loaded */
  KEY_LABELS,     /* list of labels; gone when it is loaded */
  KEY_OUTPUTS,    /* map name -> template of that output: see step.c */
  /* Anything: accepted with one warning that says what to do instead, and left out. */
  KEY_NOTED,
  KEY_REPORTS,  /* list of 1 to max maps of `set`; also of `LABEL: FILE` and of names alone */
  KEY_SET,      /* a map with the keys of `set` */
  KEY_SET_LIST, /* a list of 1 to max such maps */
};

struct key_set;

struct key {
  const char *name;
  enum key_type type;
  const char *alias; /* another name for it, NULL = none */
  const char *older; /* one more, which is noted; NULL = none */
  bool required;
  bool or_null; /* null removes a value that was set elsewhere */
  bool or_true; /* for a set: true stands for an empty one */
  /* for a set or a list of them: what else the value of this key may be stands for one with only
   * it, such as a text; NULL: nothing does */
  const char *or_member;
  double min, max;
  const char *const *words; /* NULL-ended */
  const struct key_set *set;
  enum facet_kind facet;
  /* checks a line; err says what it must be; or NULL */
  bool (*check)(struct str text, struct err *err);
  const char *value;       /* what its type takes, for help; NULL: as the type says */
  const char *example;     /* its value as YAML, on one line */
  const char *description; /* one or two sentences, for help and for editors */
};

struct key_set {
  const char *what;       /* "a movement": for messages */
  const struct key *keys; /* ends with a NULL name */
};

extern const struct key_set workflow_keys, movement_keys, rule_keys, judge_keys, options_keys,
    structured_output_keys, reask_keys, ask_keys, approve_keys, budget_keys, budget_call_keys,
    guards_keys, gate_keys, error_keys, integrate_keys, limits_keys, contracts_keys, contract_keys,
    monitor_keys, loop_judge_keys, setup_keys, check_files_keys, ask_above_keys;

bool key_is(const struct key *k, struct str name);
/* Finds a key by name or alias; NULL if there is none. */
const struct key *key_find(const struct key_set *set, struct str name);
/* Returns the known name nearest to a misspelt one, NULL if none is near. */
const char *key_nearest(const struct key_set *set, struct str name);

/* These check a text; err says what it must be: the name of a report's file (one that every file
 * system takes, without a folder: the reports of a session lie side by side), and a worktree's
 * branch, in which {id} and {workflow} are filled in. */
bool key_check_file(struct str name, struct err *err);
bool key_check_branch(struct str text, struct err *err);
/* Checks a `setup` beyond the table: its keys are known, and what it keeps is below the top. */
bool key_check_setup(const json_t *setup, struct err *err);

/* Appends "a, b or c". */
void key_words(const struct key *k, struct buf *out);

/* Checks the values of a resolved document, in which facets are texts and a list of providers is
 * split into the first and `fallback`. Whatever depends on use (a rule's condition, a movement's
 * name, a schema's keywords) is checked in core/workflow.c; keys outside the table are ignored. */
bool key_set_check(const struct key_set *set, const json_t *object, struct err *err) MUST_CHECK;

#endif
