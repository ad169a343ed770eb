/* prompt.h - what a provider is sent, rendered from templates to parts.
 *
 * Templates are files: prompts/<language>/<name>.md, compiled in; `overrides` (an object
 * "<language>/<name>.md" -> text, from the user's folder) wins. A prompt remembers where its parts
 * end, so that the log can refer to texts it already holds. Pure. */
#ifndef SEGUE_CORE_PROMPT_H
#define SEGUE_CORE_PROMPT_H

#include "base/buf.h"
#include "core/record.h"
#include "core/texts.h"
#include "core/workflow.h"
#include "judge/chain.h"

#include <jansson.h>

struct prompt {
  struct buf bytes;
  struct prompt_part {
    size_t end;      /* offset in bytes */
    uint64_t seq;    /* record that holds this text already; 0: not known */
    const char *key; /* its member there: "task" or "text" */
    bool stable;     /* the same each time this is asked: the next prompt can refer to it */
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

/* Everything a prompt can show; all borrowed. */
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
  /* if those are joined from several; or NULL */
  const struct joined *previous_joined, *answer_joined;
  bool has_previous;
  long max_movements;
  long iteration, movement_iteration;
  const json_t *item; /* of a for_each, for {item} and {item.FIELD}; or NULL */
  long index;         /* its number, from 1 */
  struct str answer;  /* judge prompts: the agent's text */
  struct str check;   /* the last command movement before this turn; empty: there was none */
  long check_turn;
  int check_exit;
  struct str checks;   /* other checks so far, one per line; or empty */
  struct str tests;    /* of this turn's command: "3 passed, 0 failed"; or empty */
  bool no_pass;        /* and it is not a pass */
  const json_t *files; /* changed in this turn, as call_end has them; NULL: not known */
  int64_t files_more;  /* and this many more, not named */
  bool files_lost;     /* the changes of an interrupted attempt are missing */
  bool has_exit;
  int exit;
  const char *nonce;      /* judge prompts: the random fence around it */
  struct str user_inputs; /* what people answered this movement; or empty */
  const json_t *values;   /* movement -> value, for {structured:MOVEMENT.FIELD}; or NULL */
  bool shows_schema;      /* the backend does not enforce the schema that the answer must fit */
  const struct kept_text *own_reports, *reports; /* of this turn so far, and of earlier turns */
  const struct kept_text *responses; /* last answers of the movements that prompts name */
  const struct worktree *worktrees;  /* of children, newest first; or NULL */
  long cycle_count;                  /* of the judge of a loop; else 0 */
  struct str report_dir;             /* where reports are kept as files; empty: nowhere */
  const struct held *held; /* what its backend can enforce of its permission; NULL: all of it */
  bool by_tool; /* the judge has a tool for its value: mentioning tags makes models skip the tool */
};

/* The movement's own prompt. A command movement's is its instruction alone (its stdin). */
void prompt_execute(const struct prompt_view *view, struct prompt *out);

/* A template with the variables of an instruction. */
void prompt_fill(const struct prompt_view *view, struct str text, struct prompt *out);

/* The question of a judge stage (structured_output, phase3_tag, ai_judge). */
void prompt_judge(const struct prompt_view *view, const struct chain_spec *spec,
                  enum judge_stage stage, struct prompt *out);

/* A correction: the schema, what was asked, the bad output, and the errors last. */
struct prompt_correction { /* all borrowed */
  const json_t *schema;
  struct str output;             /* shown in full up to LIMIT_REASK_OUTPUT_BYTES, then its end */
  const json_t *errors;          /* array of lines */
  size_t more;                   /* further errors */
  const struct chain_spec *spec; /* a judge's question was asked; NULL: the movement's prompt */
  enum judge_stage stage;
};
void prompt_reask(const struct prompt_view *view, const struct prompt_correction *correction,
                  struct prompt *out);

/* Asks for the report of a movement whose work is done. alone: in a conversation that does not
 * contain the work, so the prompt says what came of it. */
void prompt_report(const struct prompt_view *view, const struct contract *contract, bool alone,
                   struct prompt *out);

/* The question whether an invariant holds of a value. */
void prompt_invariant(const struct prompt_view *view, struct str question, const json_t *value,
                      struct prompt *out);
/* Just the value, as the input of a command that checks it. */
void prompt_value(const json_t *value, struct prompt *out);

/* The parts as a log has them: texts, borrowed from the prompt, and the places of those already
 * logged. */
struct prompt_log {
  struct record_part *parts;
  size_t count;
  json_t **rendered; /* of parts that are not UTF-8 */
  size_t rendered_count;
};
void prompt_log_init(struct prompt_log *log, const struct prompt *p, struct texts *texts);
void prompt_log_deinit(struct prompt_log *log);

/* The variables of an instruction, NULL-ended; there are also {structured:...} and, with for_each,
 * {item}, {index} and {item.FIELD}. */
extern const char *const prompt_variable_names[];

/* Names of the templates ("execute.md", ...), NULL-ended: what a user can override. */
extern const char *const prompt_template_names[];

#endif
