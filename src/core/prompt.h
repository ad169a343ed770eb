/* prompt.h - renders from templates the prompts that providers are sent, as lists of parts.
 *
 * Templates are files: prompts/<language>/<name>.md, compiled in; `overrides` (an object
 * "<language>/<name>.md" -> text, from the user's folder) wins. A prompt remembers where its parts
 * end, so that the log can refer to texts it already holds. Pure. */
#ifndef SEGUE_CORE_PROMPT_H
#define SEGUE_CORE_PROMPT_H

#include "base/buf.h"
#include "core/interning.h"
#include "core/record.h"
#include "core/workflow.h"
#include "judge/chain.h"

#include <jansson.h>

struct prompt {
  struct buf bytes;
  struct prompt_part {
    size_t end;      /* offset in bytes */
    uint64_t seq;    /* record that already holds this text; 0: not known */
    const char *key; /* its member there: "task" or "text" */
    bool stable;     /* the same each time this is asked, so the next prompt can refer to it */
    bool own;        /* never joined with others */
  } * parts;
  size_t count;
};
void prompt_deinit(struct prompt *p);

/* The shipped templates, parsed when first rendered; one per host, shared by its sessions. A view
 * without them parses at each rendering. */
struct prompt_templates;
struct prompt_templates *prompt_templates_new(void);
void prompt_templates_free(struct prompt_templates *templates); /* accepts NULL */

/* Holds everything that a prompt can show; all borrowed. */
struct kept_text;
struct worktree;
struct prompt_view {
  const struct workflow *workflow;
  struct prompt_templates *templates; /* or NULL */
  const struct movement *movement;
  const json_t *overrides; /* or NULL */
  struct str task, previous;
  /* The records that hold these texts, and the output that a reask corrects; 0: none. */
  uint64_t task_seq, previous_seq, answer_seq, bad_seq;
  /* How they were joined, if from several texts; or NULL. */
  const struct joined *previous_joined, *answer_joined;
  bool has_previous;
  struct str error; /* how the turn before failed; empty: it did not */
  long max_movements;
  long iteration, movement_iteration;
  const json_t *item; /* with for_each, for {item} and {item.FIELD}; or NULL */
  long index;         /* its number, from 1 */
  struct str answer;  /* judge prompts: the agent's text */
  struct str changed; /* a judge of the task: files of the check that changed; else empty */
  struct str check;   /* the last command movement before this turn; empty: there was none */
  long check_turn;
  int check_exit;
  struct str evidence;   /* judge prompts: what the last check shows, lines; or empty */
  struct str checks;     /* other checks so far, one per line; or empty */
  struct str tests;      /* result of this turn's command: "3 passed, 0 failed"; or empty */
  bool no_pass;          /* those tests are not a pass */
  const json_t *files;   /* files changed in this turn, as in call_end; NULL: not known */
  int64_t files_more;    /* number of further files, not named */
  const char *unseen;    /* why some of its changes are not known; NULL: all are, or it made none */
  const json_t *head;    /* where it left HEAD, as in call_end; or NULL */
  const json_t *touched; /* files of the session so far, see checks.h; or NULL */
  const struct movement *checks_by; /* the movement `check`; or NULL */
  const json_t *check_first;        /* gate of its first run; or NULL */
  const json_t *said;               /* what people said while it ran, as in the state; or NULL */
  const json_t *unfinished;         /* what background tasks do that were stopped; or NULL */
  bool interactive;                 /* interactive_only rules are shown */
  bool has_exit;
  int exit;
  struct str mark;        /* the word that the agent is to write behind its tag; or empty */
  const char *nonce;      /* judge prompts: the random fence around it */
  struct str user_inputs; /* what people answered this movement; or empty */
  const json_t *values;   /* movement -> value, for {structured:MOVEMENT.FIELD}; or NULL */
  bool shows_schema;      /* the backend does not enforce the answer's schema */
  const struct kept_text *own_reports, *reports; /* this turn's so far, and earlier turns' */
  const struct kept_text *responses; /* last answers of the movements that prompts name */
  const struct worktree *worktrees;  /* children's, newest first; or NULL */
  long cycle_count;                  /* for a loop's judge; else 0 */
  struct str report_dir;             /* folder of the reports' files; empty: there is none */
  const struct held *held; /* says how far the backend enforces its permission; NULL: fully */
  /* A judge that is asked again for its tag is told what was wrong with the reply. */
  struct str again;
  bool by_tool; /* the judge has a tool for its value: mentioning tags makes models skip the tool */
};

/* Renders the movement's own prompt. A command movement's is only its instruction (its stdin). */
void prompt_execute(const struct prompt_view *view, struct prompt *out);

/* Returns whether the movement's work is asked to end with a tag of its own. */
bool prompt_asks_for_tag(const struct movement *m, bool interactive);
/* Returns whether the prompt shows the mark: a user's own template may not. */
bool prompt_shows(const struct prompt *prompt, struct str mark);

/* Puts in front of it what people said while the work went on: objects as the state has them,
 * oldest first. */
void prompt_said(const json_t *said, enum describe_language language, struct prompt *prompt);

/* Puts the text in front of it. */
void prompt_put_first(struct str text, struct prompt *prompt);

/* Lists the last of their texts, cut, as a judge is told. A new array; NULL: there are none. */
json_t *prompt_said_texts(const json_t *said);

/* Renders a template with the variables of an instruction. */
void prompt_fill(const struct prompt_view *view, struct str text, struct prompt *out);

/* Renders the question of a judge stage (structured_output, phase3_tag, ai_judge). */
void prompt_judge(const struct prompt_view *view, const struct chain_spec *spec,
                  enum judge_stage stage, struct prompt *out);

/* A correction shows the schema, the request, the bad output, and last the errors. */
struct prompt_correction { /* all borrowed */
  const json_t *schema;
  struct str output;    /* shown in full up to LIMIT_REASK_OUTPUT_BYTES, then its end */
  const json_t *errors; /* array of lines */
  size_t more;          /* number of further errors */
  bool keep_valid;      /* items of lists that no error names stay */
  /* set if the request was a judge's question; NULL: it was the movement's prompt */
  const struct chain_spec *spec;
  enum judge_stage stage;
};
void prompt_reask(const struct prompt_view *view, const struct prompt_correction *correction,
                  struct prompt *out);

/* Asks for a report of a movement whose work is done. alone: in a conversation that does not
 * contain the work, so the prompt describes its result. */
void prompt_report(const struct prompt_view *view, const struct contract *contract, bool alone,
                   struct prompt *out);

/* Asks whether an invariant holds for a value. */
void prompt_invariant(const struct prompt_view *view, struct str question, const json_t *value,
                      struct prompt *out);
/* Renders just the value, as input for a command that checks it. */
void prompt_value(const json_t *value, struct prompt *out);

/* Holds the parts as a log has them: texts, borrowed from the prompt, and the places of those
 * already logged. */
struct prompt_log {
  struct record_part *parts;
  size_t count;
  json_t **rendered; /* renderings of parts that are not UTF-8 */
  size_t rendered_count;
};
void prompt_log_init(struct prompt_log *log, const struct prompt *p, struct texts *texts);
void prompt_log_deinit(struct prompt_log *log);

/* Lists the variables of an instruction, NULL-terminated; there are also {structured:...} and, with
 * for_each, {item}, {index} and {item.FIELD}. */
extern const char *const prompt_variable_names[];

/* Lists the templates that a user can override ("execute.md", ...), NULL-terminated. */
extern const char *const prompt_template_names[];

#endif
