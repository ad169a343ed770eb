/* state.h - holds all that is known of a session: the fold of its records, and nothing else.
 *
 * Only core_apply changes it. Open turns are a list, each with its own calls; there is no "current"
 * turn. The state owns all texts and values. */
#ifndef SEGUE_CORE_STATE_H
#define SEGUE_CORE_STATE_H

#include "base/err.h"
#include "base/limits.h"
#include "core/call.h"
#include "core/interning.h"
#include "core/spend.h"
#include "core/workflow.h"
#include "core/worktree.h"
#include "extract/tag.h"
#include "judge/stage.h"

#include <jansson.h>
#include <stdint.h>

enum call_state {               /* RUNNING -> WAITING -> RUNNING ...; RUNNING -> DONE | FAILED */
                  CALL_RUNNING, /* its call_start is recorded, its call_end is not */
                  CALL_WAITING, /* a passing failure: the next attempt starts at wait_until_ms */
                  CALL_DONE,    /* answered */
                  CALL_FAILED   /* failed for good */
};

enum { GUARD_SIGN = 17 }; /* bytes of the signs that guards compare */

struct call {
  struct call *next; /* next call of the turn, oldest first */
  long id;
  int attempt, failures;
  enum call_state state;
  enum call_purpose purpose;
  enum judge_stage stage; /* STAGE_COUNT unless it judges */
  int vote;               /* number in a panel, from 1; else 0 */
  int report;             /* report's number in the movement's list, from 1; else 0 */
  int invariant;          /* checked invariant's number in the movement's list, from 1; else 0 */
  enum error_class class; /* class of the last failure */
  int64_t wait_until_ms;  /* wall clock */
  struct {                /* it waits for a provider that is away; 0 tries: it does not */
    int tries;            /* failed attempts since then, which are none of its `failures` */
    int64_t since_ms;     /* the first one, later by all times in which nobody waited */
    int64_t began_ms;     /* the same, of this call alone: others may have met it before */
    int64_t until_ms;     /* the last one; 0: it waits for a person's login */
    int64_t from_ms;      /* when the wait began, or the last attempt started */
    int64_t at_ms;        /* until when the wait is counted in core.away */
  } outage;
  struct {           /* attempts that were ended because they said nothing: "stalls" */
    int count;       /* of them, which are none of its `failures` */
    int64_t last_ms; /* how long the last attempt had said nothing; 0: it ended otherwise */
  } stalls;
  int64_t duration_ms, tokens; /* sums over all attempts */
  struct {                     /* the same since a person last dealt with the call's budget */
    int64_t tokens, cost_nano, ms;
  } spent;
  struct { /* reported so far by the running attempt */
    int64_t tokens, cost_nano;
    json_t *usage; /* or NULL */
  } told;
  json_t *usage;                  /* a judge call's usage, with its cost; or NULL */
  char prompt_sha256[SHA256_HEX]; /* for a judge call; "" in logs that lack it */
  char *provider, *model;         /* model may be NULL */
  char *provider_session;         /* the provider's own conversation, once known; or NULL */
  unsigned event_count;           /* number of call_event records */
  struct buf tool;                /* the last tool with an argument; see guard.h */
  char tool_sign[GUARD_SIGN];     /* the same, as a hash; "" */
  long tool_count;                /* its uses in a row */
  bool resumed;                   /* this attempt continues provider_session */
  /* continues a copy of another's conversation, whose id is not known yet */
  bool forks;
  bool session_lost; /* the conversation no longer existed */
  char *cwd;         /* below the session's folder; or NULL */
  char *fallback;    /* the next attempt's provider; NULL: the same one */
  /* options of the first attempt, kept when another provider takes over; or NULL */
  json_t *wanted;
  json_t *options, *token, *schema; /* each may be NULL */
  json_t *sandbox;                  /* confines its program; or NULL */
  uint64_t timeout_ms;
  struct buf prompt;   /* kept live until the call is done; empty after recovery */
  uint64_t prompt_seq; /* record that holds its prompt */
  struct buf text;     /* the answer, or the error's text after a failure */
  uint64_t text_seq;   /* record that holds the answer */
  json_t *structured;
  bool enforced; /* by the backend, in whatever way */
  bool has_exit; /* for a check */
  int exit;
  struct buf error_text; /* for a check: what the command wrote to stderr */
};

struct guard_failure {
  char sign[GUARD_SIGN]; /* sign of its last failing output */
  long count;            /* failures in a row, with no file changed; 0: it did not fail */
};

enum session_status { SESSION_NEW, SESSION_RUNNING, SESSION_STOPPED, SESSION_ENDED };

/* in session_end; RULE_NO_MATCH, MAX_MOVEMENTS and FAILED are reasons of session_stop, and ends
 * only in older logs */
enum session_outcome {
  END_NONE,
  END_COMPLETE,
  END_ABORT,
  END_RULE_NO_MATCH,
  END_MAX_MOVEMENTS,
  END_CANCELLED,
  END_FAILED,
  END_COUNT
};
const char *session_outcome_name(enum session_outcome outcome);
bool session_outcome_from_name(struct str name, enum session_outcome *out);
/* Returns the status of a session that stopped for this reason, with this class of error or "":
 *   needs_input                            somebody must choose or act before it goes on: question,
 *                                          escalated, judge_split, protected, head_moved, denied,
 *                                          budget, after, folder; provider_error or
 *                                          judge_unavailable of class auth
 *   rule_no_match, max_movements, failed   the reason itself
 *   stopped                                it broke, or was interrupted: all others */
const char *session_stop_status(struct str reason, struct str class);
/* Returns true if only a person's resume continues the session, not the start of a daemon. */
bool session_stop_is_for_person(struct str reason);
/* Reasons that are no question, but a resume by a person accepts what is. */
#define SESSION_STOPS_TO_ACCEPT "protected hidden_tests"
/* With structured_output, EXECUTING lasts until there is a value, or it is clear that none will
 * come. */
enum turn_phase { TURN_EXECUTING, TURN_REPORTING, TURN_JUDGING, TURN_JUDGED };

/* Holds a report, or an answer, that later prompts can show. */
struct kept_text {
  struct kept_text *next; /* next in the list, oldest first; each name occurs once */
  char *name;             /* name of the report's file, or of the movement */
  struct buf text;
  struct joined joined; /* how the text was joined */
  uint64_t seq;         /* record that holds exactly this text; 0: none */
  bool judged;          /* a report that is judged beside the answer */
  uint64_t since;       /* record that keeps the report; 0: it was taken over */
  /* For a report: the hashes of its file's bytes and of those before them; "": there were none. */
  char sha256[SHA256_HEX], before[SHA256_HEX];
};

/* These limit the judge calls for one vote in a stage and in one turn, reasks included. */
enum {
  STAGE_JUDGE_CALLS = LIMIT_REASK_COUNT + 1,
  TURN_JUDGE_CALLS = STAGE_COUNT * STAGE_JUDGE_CALLS * LIMIT_PANEL_COUNT
};

/* This limits the generations of one value: the first, its corrections, and one with a raised
 * limit. */
enum { TURN_GENERATIONS = LIMIT_REASK_COUNT + 2 };

enum part_state { PART_PENDING, PART_OPEN, PART_DONE };

struct group_part { /* a child's results, kept by its group */
  enum part_state state;
  bool failed;      /* its label is `error` */
  bool skipped;     /* cancelled or never begun, because a sibling failed */
  struct str label; /* borrowed from the workflow, or static */
  struct buf text;
  uint64_t text_seq;          /* record that holds it; 0: none does */
  json_t *structured, *tests; /* those of its turn */
  bool has_exit;
  int exit;
  struct kept_text *reports;
  long turn;
};

struct turn {
  struct turn *next;
  long id;
  long group;               /* a child's group (its turn); else 0 */
  struct group_part *parts; /* a group's children, in the workflow's order; else NULL */
  size_t part_count, part_open, part_done, part_failed;
  size_t part_next;     /* all before it have begun */
  json_t *items;        /* items of a group with for_each; or NULL */
  long item;            /* such a child's item, from 1; else 0 */
  struct joined joined; /* how its text was joined */
  size_t movement;
  long iteration, movement_iteration;
  enum turn_phase phase;
  struct call *calls;
  struct kept_text *reports;     /* this turn's so far */
  json_t *stages;                /* array: bodies of the stage records */
  json_t *checks;                /* array: bodies of this round's check records */
  bool escalated;                /* a person is now asked for the value */
  char mark[TAG_MARK_BYTES + 1]; /* the word that its work was asked for; "": none was */
  struct buf text;               /* the agent's answer */
  uint64_t text_seq;             /* record that holds it */
  bool has_exit;
  int exit;
  json_t *tests;      /* a command's counted tests, as in call_end; or NULL */
  json_t *unfinished; /* background tasks that were stopped, as there; or NULL */
  json_t *structured;
  json_t *files;      /* files that its work changed, by path; NULL: not known */
  int64_t files_more; /* number of further changed files, if very many */
  char *unseen;       /* why some of its changes are not known; NULL: all are */
  bool blind;         /* and protected files may be among those */
  json_t *head;       /* where its last call left HEAD, as in call_end; or NULL */
  bool shared;        /* some of `files` may be the work of others at the same time */
  struct {            /* of a check, see core/evidence.h */
    bool asked;
    json_t *found;  /* what its runs show; or NULL */
    json_t *judged; /* what a judge of the task said about that; or NULL */
    long judged_to; /* that judge's last call */
    long answer;    /* a person's choice; 0: none yet */
  } evidence;
  bool let_be;           /* a person accepted its changes to protected paths */
  bool head_let_be;      /* a person accepted where it left HEAD */
  json_t *plan;          /* a group's, that is asked about before it begins, see group.h; or NULL */
  json_t *question;      /* open question to a person, as in its record; or NULL */
  uint64_t question_seq; /* seq of that record */
  int64_t asked_ms, until_ms; /* time of the question; its deadline, 0: none */
  /* the question was answered: approved, or with what the movement wanted; or it was rejected */
  bool answered, rejected;
  /* a person's verdict {rule, why, by}, until the judgment; or NULL */
  json_t *verdict;
  int rule;                     /* number, once judged; 0 before, and if no rule was found */
  enum session_outcome failure; /* judged without a rule: why the session stops */
  char *reason;                 /* details of the failure */
  json_t *error;                /* its error, if that is typed; or NULL */
};

struct core {
  char session[40];
  struct workflow *workflow; /* a reference */
  json_t *config;            /* resolved, from session_start or the last resume */
  struct buf task;
  uint64_t seq; /* seq of the last record applied */
  enum session_status status;
  /* Set after core_init: the log is only proved, so nothing keeps what later calls would send. */
  bool proves;
  bool resumed;        /* the last record was session_resume: nothing was done since */
  bool awaits_carried; /* forked: the other session's state is the next record */
  bool carried;        /* that record has come */
  enum session_outcome outcome;
  struct buf stop_reason, stop_message; /* from the last session_stop or session_end */
  enum error_class stop_class;
  struct turn *turns; /* open, oldest first */
  long turn_count, call_count;
  uint32_t mark_letters; /* the first letters of the marks so far, as tag_mark_letter has them */
  long iteration_count;  /* turns except children's, which max_movements bounds */
  long *movement_counts;
  struct {     /* last finished turn of a command movement */
    long turn; /* 0: there is none */
    size_t movement;
    int exit;
  } check;
  struct guard_failure *failures; /* one for each movement; or NULL */
  size_t failed;                  /* movement whose command ended last */
  struct {
    size_t movement;
    long count;     /* 0: none */
  } streak;         /* turns of one movement in a row */
  struct {          /* the tests that only segue reads, see hidden_tests.h */
    long turn;      /* the last turn that they were run after; 0: none */
    bool passed;    /* they passed then, or a person let that be */
    json_t *result; /* what they said then; or NULL */
    json_t *worker; /* {provider, model?} of the last call that may have edited; or NULL */
  } hidden;
  json_t *gates; /* command movement -> its last turn, see core/checks.h; or NULL */
  struct {       /* last finished turn that is not a child's; turn 0: none */
    long turn;
    size_t movement;
  } ended;
  struct worktree worktree;   /* the session's; also commits made without a worktree */
  struct worktree *worktrees; /* children's, newest first */
  bool edits;                 /* a movement that may change files has been entered */
  bool has_next;              /* a movement, or an end, is to be entered next */
  int next;                   /* index, NEXT_COMPLETE, NEXT_ABORT */
  struct buf last_text;       /* answer of the last finished turn: {previous_response} */
  uint64_t last_text_seq;     /* record that holds it */
  struct joined last_joined;  /* how last_text was joined */
  bool has_last_text;
  struct {           /* how the last finished turn failed: what {error} is */
    struct buf text; /* "MOVEMENT (CLASS): message"; empty: it did not */
    long count;      /* turns in a row that did, since the session last stopped */
  } error;
  struct loop_count { /* one for each of the workflow's monitors: see monitor.h */
    long times;       /* completed cycles */
    size_t at;        /* next place in the cycle */
  } * loops;
  struct kept_text *reports;   /* finished turns' */
  struct kept_text *responses; /* last answers of movements that prompts name */
  json_t *structured;          /* movement -> value */
  json_t *sessions;     /* key of a conversation -> its provider's id, see core_session_key */
  json_t *token_counts; /* provider -> times used, by number (array) or by text (object) */
  /* provider -> true: it has answered, false: it was waited for in vain since; or NULL */
  json_t *reached;
  struct { /* what all outages have made the session wait, since a person last dealt with it */
    int64_t ms, until_ms; /* waits that overlap count once: until when it is counted */
  } away;
  json_t *outlived; /* what background tasks do that were waited for in vain (texts); or NULL */
  json_t *behind;   /* replaced provider -> until when it is skipped (ms); or NULL */
  json_t *totals;   /* provider's conversation -> what was told of it last, if so; or NULL */
  struct spends spends;
  /* added to budgets: the session's, then each movement's; or NULL */
  int64_t (*added)[BUDGET_UNITS];
  json_t *stop_budget; /* budget of the last session_stop that was used up; or NULL */
  json_t *refused;     /* "PROVIDER\nMODEL" -> names of parameters that it refused; or NULL */
  long method_counts[STAGE_COUNT];
  json_t *inputs;  /* movement -> people's answers to it, as its prompt shows them; or NULL */
  json_t *answers; /* all of them, in order: {turn, movement, answer, text, by, at}; or NULL */
  /* what people said to it while it worked, see core/steer.h: {said, text, key?, call?, and once an
   * agent has it: given (its turn), given_call, read?}; or NULL */
  json_t *said;
  json_t *touched; /* what calls changed so far, see checks.h; or NULL */
  bool answered;   /* stopped, and an answer has come since */
  struct {         /* see core/evidence.h */
    bool asked, off;
    char *tree, *origin; /* the base, "": it is lost, and the session that took it; or NULL */
    long run;            /* 1 + the movement whose check is run on the base; 0: none */
    json_t *before;      /* the result; or NULL */
    json_t *last;        /* what was found last; or NULL */
    long last_turn;
    size_t last_movement;
    long last_answer; /* a person's, to that */
    json_t *allowed;  /* contents -> true: a person allowed them, false: a judge did; or NULL */
    bool went_back;
    int said;  /* what the last verdict of a model or a person rests on: enum basis */
    int basis; /* what the end rests on: the same */
  } evidence;
  json_t *schemas; /* place of a call_start's schema -> the schema; each is logged once */
  struct texts texts;
};

void core_init(struct core *core);
void core_deinit(struct core *core);

struct turn *core_turn(const struct core *core, long id);
struct call *turn_call(const struct turn *turn, long id);
struct call *turn_execute_call(const struct turn *turn); /* the last execute call or NULL */
/* Returns the turn whose rule a person can name: one being judged, judged without a rule, or with
 * its value asked of a person. NULL: there is none. */
struct turn *core_unjudged_turn(const struct core *core);
/* Returns the limit of turns, from a resume or the workflow; or MOVEMENTS_INFINITE. */
long core_max_movements(const struct core *core);
/* Returns true if the next movement has no turn left. */
bool core_is_at_max(const struct core *core);
/* Returns true if it has only its first record, which says that it begins after other sessions. */
bool core_waits(const struct core *core);
/* Finds an open call by id in any open turn. */
struct call *core_call(const struct core *core, long id, struct turn **turn);

/* Returns true unless it is a judge's: for the movement's own call, a correction of its value, or
 * the check of an invariant. */
bool call_is_own(const struct call *call);
/* Returns true for calls made to get the answer or its value. */
bool call_generates(const struct call *call);
/* Returns true if a call of the turn runs or waits to run again. */
bool turn_is_calling(const struct turn *turn);
/* Returns the last call that is no judge's, NULL if there is none. */
struct call *turn_last_own_call(const struct turn *turn);
/* Returns the last finished call that brought a value's text, NULL if there is none. */
struct call *turn_last_answer(const struct turn *turn);

/* These drop a turn that ended; a call that must be made again; the judge calls of a turn whose
 * judging starts again. Only for core_apply. */
void core_drop_turn(struct core *core, struct turn *turn);
void core_drop_call(struct turn *turn, struct call *call);
void core_drop_judging(struct turn *turn);

/* Empties what a group keeps of a child, which may then begin again. */
void group_part_clear(struct group_part *part);

/* Returns the worktree of a child's turn, or with 0 the session's. NULL: that turn has none. */
struct worktree *core_worktree(const struct core *core, long turn);
/* Returns where the calls of a turn work; NULL: in the session's own folder. */
const char *core_turn_folder(const struct core *core, const struct turn *turn);
/* Returns true while git is at work for the session. */
bool core_worktree_busy(const struct core *core);

/* Returns true if the turn's open question is of that kind (ask, approve, input, value, judge). */
bool turn_asks(const struct turn *turn, const char *kind);
/* Returns whether something of this kind is to be asked about the turn. */
bool turn_may_ask(const struct core *core, const struct turn *turn, struct str kind);

/* Appends the key, in core.sessions, of a movement's conversation with a provider. */
void core_session_key(const struct movement *m, struct str provider, bool common, struct buf *out);
/* The first returns the names of parameters that this model refused in the session so far, or NULL;
 * the second adds one. */
const json_t *core_refused(const struct core *core, struct str provider, struct str model);
void core_refuse(struct core *core, const struct call *call, const json_t *name);

/* Returns the movement that the turn executes. */
static inline const struct movement *core_movement(const struct core *core,
                                                   const struct turn *turn) {
  return &core->workflow->movements[turn->movement];
}

#endif
