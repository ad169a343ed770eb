/* profile.h - an agent as data: how to call its program, and what its output means.
 *
 * A profile is a YAML file. The shipped ones are src/provider/profiles/NAME.yaml; the user's are
 * providers/NAME.yaml in the configuration folder: a new agent, or a change of a shipped one
 * (`extends: NAME` keeps all top-level keys of NAME that the file does not write itself). No
 * project's file is ever read. provider/profile/profile_keys.c is the one table of the keys: the
 * parser's checks and schemas/provider-profile.json come from it.
 *
 *   profile_load(name, file, text, base, &errors)    NULL: each error has file, line and column
 *   profile_command(profile, call, &arena, &out, &err)   what to run
 *   provider/agent/stream.h                          what it prints, to news and a result
 *   profile_free(profile)
 *
 * Values in `events` are JSON Pointers into one line of output (they begin with /; a list of them
 * means the first that is there) or, as any other text, the text itself. A profile is immutable
 * once loaded and may be shared by any number of calls. */
#ifndef SEGUE_PROVIDER_PROFILE_PROFILE_H
#define SEGUE_PROVIDER_PROFILE_PROFILE_H

#include "base/arena.h"
#include "base/err.h"
#include "core/call.h"
#include "core/capability.h"
#include "schema/pattern.h"

#include <jansson.h>

/* How an agent is spoken to: a program that answers once, its own protocol, or ACP. */
enum transport { TRANSPORT_EXEC, TRANSPORT_NATIVE, TRANSPORT_ACP, TRANSPORT_COUNT };
const char *transport_name(enum transport transport);
bool transport_from_name(struct str name, enum transport *out); /* not "auto" */

enum profile_dialect { DIALECT_JSON_LINES, DIALECT_JSON, DIALECT_TEXT, DIALECT_ACP };
enum profile_schema_by { SCHEMA_BY_NONE, SCHEMA_BY_TEXT, SCHEMA_BY_FILE };
enum profile_end {
  STREAM_END_NONE,
  STREAM_END_OK,
  STREAM_END_ERROR
}; /* what a rule says about the whole run */

struct profile_value { /* the first that is there; no items: nothing */
  struct str *items;   /* pointers, or one literal text */
  size_t count;
};

struct profile_match { /* one condition on one place */
  struct str pointer;
  enum { MATCH_VALUES, MATCH_PATTERN, MATCH_PRESENT } kind;
  const json_t *values;    /* array: equal to one of them; null also fits what is not there */
  struct pattern *pattern; /* on a text */
};
struct profile_matches {
  struct profile_match *items;
  size_t count;
};

enum tool_field {
  TOOL_NAME,
  TOOL_ID,
  TOOL_STATE,
  TOOL_FAILED,
  TOOL_INPUT,
  TOOL_OUTPUT,
  TOOL_EXIT,
  TOOL_FIELDS
};
enum usage_field {
  USAGE_INPUT,
  USAGE_OUTPUT,
  USAGE_CACHED,
  USAGE_REASONING,
  USAGE_CACHE_WRITE,
  USAGE_COST,
  USAGE_ALL_INPUT, /* tokens that the cost covers, if those are more */
  USAGE_ALL_OUTPUT,
  USAGE_FIELDS
};
/* Whose tokens an event tells. */
enum usage_scope { USAGE_OF_CALL, USAGE_OF_REQUEST, USAGE_OF_CONVERSATION, USAGE_OF_TURN };
enum retry_field {
  RETRY_ATTEMPT,
  RETRY_OF,
  RETRY_DELAY_MS,
  RETRY_STATUS,
  RETRY_REASON,
  RETRY_FIELDS
};
enum task_field { TASK_ID, TASK_WHAT, TASK_STATE, TASK_ALL, TASK_FIELDS };
enum permission_field { ASKED_TOOL, ASKED_ANSWER, ASKED_MESSAGE, ASKED_FIELDS };
enum error_field {
  ERROR_STATUS,
  ERROR_KIND,
  ERROR_MESSAGE,
  ERROR_RETRY_AFTER_MS,
  ERROR_LOG,
  ERROR_FIELDS
};

/* One entry of `events`: if it matches, everything it says is done, in the order of this struct. */
struct profile_rule {
  struct profile_matches when, unless; /* on the line */
  struct str each;                     /* empty: the line itself; else each value at this pointer */
  struct profile_matches where;        /* on that value; the pointers below start there too */
  struct profile_value session;
  struct profile_value delta;      /* a piece of the answer */
  struct profile_value cumulative; /* the message as far as it has come */
  struct profile_value thinking;
  struct profile_value message;    /* a whole message (its pieces may have been told before) */
  struct profile_value message_id; /* messages of one id are one text */
  bool has_tool, has_background, has_usage, has_retry, has_permission, has_error;
  enum usage_scope usage_of;
  struct profile_value tool[TOOL_FIELDS];
  struct profile_value background[TASK_FIELDS]; /* the client's own tasks */
  struct profile_value usage[USAGE_FIELDS];     /* all that are there are added up */
  struct profile_value retry[RETRY_FIELDS], permission[ASKED_FIELDS];
  struct profile_value error[ERROR_FIELDS]; /* of kind: every one that is there counts */
  struct profile_value note;
  struct profile_value text;       /* the final text */
  struct profile_value structured; /* the value that the client claims */
  enum profile_end end;            /* the final event */
};

struct profile_pattern { /* of a message or of stderr */
  struct pattern *pattern;
  enum error_class class;
};

struct profile_stderr { /* of one line of stderr */
  struct pattern *pattern;
  enum { STDERR_RETRY, STDERR_PERMISSION, STDERR_NOTE } kind;
  const char *after; /* the words begin after it; NULL: the whole line */
};

/* With ACP the client itself says this in the place of the model: a piece without a message's
 * id. */
struct profile_notice {
  struct pattern *pattern;
  enum { NOTICE_RETRY, NOTICE_NOTE, NOTICE_ERROR } kind;
};

/* A file of a project that would steer the client: see project_files.h. */
struct profile_project_file {
  const char *path;    /* below the working directory */
  unsigned transports; /* which it steers: a bit each, 1 << enum transport */
  enum { PROJECT_ABOVE_NONE, PROJECT_ABOVE_REPOSITORY, PROJECT_ABOVE_ROOT } above; /* there, too */
  const json_t *allowed;     /* JSON that sets only what is at these pointers is fine; or NULL */
  const json_t *refused;     /* JSON that sets nothing at these is fine; or NULL */
  struct pattern *variables; /* NAME=value lines of which no name fits are fine; or NULL */
  const char *does;          /* what the client would do: "run its hooks" */
};

struct profile {
  struct arena arena;
  struct capability capability; /* name, summary: the profile's own */
  const char *file;             /* where it comes from: a path, or "built in" */
  struct str source;            /* its text */
  json_t *keys;                 /* the checked document, `extends` filled in */
  const struct err *broken;     /* the file's first mistake: it cannot be used; else NULL */
  bool pending;                 /* compiled in and not made yet, see profile_ready */

  const char *program;      /* looked up in PATH; NULL: the user's settings must say */
  const json_t *argv;       /* words of TRANSPORT_EXEC: see profile_command */
  const json_t *native;     /* {"driver", "argv"} or NULL */
  const json_t *acp;        /* {"argv"} or NULL */
  enum transport preferred; /* what `auto` means */
  bool prompt_on_stdin;
  long prompt_max_chars; /* 0: no limit of its own */

  enum profile_schema_by schema_by;
  const char *schema_dialect; /* adapt/adapt.h; NULL: as it is */
  bool structured_is_text;    /* with a schema, the final text is the value */

  bool chooses_session; /* takes an id of ours for a new conversation */
  long max_turns;       /* 0: it has no such limit */
  long max_requests;    /* of one call, where it tells each; 0: no limit */
  /* Notices of retries in a row that are tolerated; the next one ends the call; -1: all. */
  long client_retries;
  uint64_t stall_ms, judge_stall_ms;
  struct held holds[TRANSPORT_COUNT]; /* how its permissions are held over each */
  struct held about;                  /* of one that is compiled in: over the preferred one */

  enum profile_dialect dialect;
  bool text_of_all;       /* the final text is all messages, not the last one */
  bool ends_by_exit;      /* it has no final event: its exit is the end */
  enum error_class empty; /* the class of an answer without text and value; protocol by default */
  struct profile_rule *rules;
  size_t rule_count;
  struct profile_pattern *patterns;
  size_t pattern_count;
  struct profile_stderr *stderr_rules;
  size_t stderr_rule_count;
  struct profile_notice *notices;
  size_t notice_count;
  struct profile_project_file *project_files;
  size_t project_file_count;
  struct pattern **compiled; /* all patterns of the above */
  size_t compiled_count, compiled_room;
};

/* `base` is the profile that `extends` may name (found by the caller through `find`), or NULL.
 * `text` must be UTF-8; errors are added to `errors`. */
typedef const struct profile *(*profile_find_fn)(void *ctx, struct str name);
struct profile *profile_load(const char *name, const char *file, struct str text,
                             profile_find_fn find, void *ctx, struct err_list *errors);
/* Completes a pending profile at once; from any thread. Results of profiles_find and
 * provider_profile are ready. */
const struct profile *profile_ready(const struct profile *profile);
/* Tells what index.json says of a profile: a new reference. */
json_t *profile_about(const struct profile *profile);
void profile_free(struct profile *profile); /* NULL is fine */

/* The error class that the profile gives a word, an HTTP status or an exit status; CLASS_NONE. */
enum error_class profile_class(const struct profile *profile, struct str word);
enum error_class profile_status_class(const struct profile *profile, int status);
enum error_class profile_exit_class(const struct profile *profile, int exit);

/* schemas/provider-profile.json: a new reference. */
json_t *profile_schema(void);

/* --- all profiles of this run: the shipped ones and those in the user's folder ---
 *
 * A file NAME.yaml in that folder is the provider NAME, and replaces a shipped one of that name.
 * Names are a letter, then letters, digits, - and _. */

struct profiles;

/* `folder` may be NULL or not exist. A file with a mistake is in the list as a `broken` profile; so
 * is a file whose name cannot be a provider's, under its file name. NULL: the folder cannot be
 * read; errors were added, each with its place. */
struct profiles *profiles_load(const char *folder, struct err_list *errors);
void profiles_free(struct profiles *profiles); /* NULL is fine */

/* In the order of the names, the shipped ones first; NULL after the last. It is perhaps not made
 * yet (profile_ready), but its capability, program, file and broken are there. */
const struct profile *profiles_peek(const struct profiles *profiles, size_t i);
const struct profile *profiles_find(const struct profiles *profiles, struct str name);

/* --- a call --- */

/* A call in the words of profiles and drivers. Everything is borrowed; texts may be empty. */
struct agent_call {
  const struct call_request *request;
  const char *cwd;         /* absolute */
  const char *tmpdir;      /* of this call alone; files go there */
  const char *session;     /* the provider session to go on with, "" = a new one */
  const char *new_session; /* the id chosen for a new one, "" = the agent's choice */
  const json_t *schema;    /* as this backend takes it; NULL: none, or it stands in the prompt */
  struct str prompt;       /* with the schema's words, where it stands there */
  enum permission permission;
  bool held;           /* by a sandbox of ours: see profile_told */
  const json_t *tools; /* array of names that may be used, or NULL: as the mode says */
  long max_turns;
  const json_t *settings; /* of the user for this provider, or NULL */
};

struct agent_command {
  const char *const *argv;        /* NULL-ended */
  const char *const *pass_env;    /* names */
  const char *const *assignments; /* "NAME=value" */
  struct str stdin_bytes;
  struct {
    const char *path; /* absolute, below tmpdir */
    struct str content;
  } files[8]; /* to be written before the start, mode 0600 */
  size_t file_count;
};

/* Builds the command for this call over this transport; all in `a`. False: the class and err say
 * why. */
bool profile_command(const struct profile *profile, enum transport transport,
                     const struct agent_call *call, struct arena *a, struct agent_command *out,
                     enum error_class *class, struct err *err) MUST_CHECK;

/* Expands ~ and $NAME in front of a path to folders, as they are for the profile's program. Returns
 * false if that folder is unknown. */
bool profile_expand(const struct profile *profile, const json_t *settings, const char *path,
                    char *out, size_t size);

/* Returns where the profile has the keys of one transport (argv, permission, holds): in itself,
 * below native or below acp; NULL if it lacks that transport. */
const json_t *profile_keys_of(const struct profile *profile, enum transport transport);
/* True if the client can continue a copy of a conversation over this transport. */
bool profile_forks(const struct profile *profile, enum transport transport);
/* Returns the permission that the client is started with. If its own sandbox cannot run within
 * ours, that is full, since ours confines it. */
enum permission profile_told(const struct profile *profile, const struct agent_call *call);

/* Says how to install the program of a transport; NULL: unknown. */
const char *profile_install(const struct profile *profile, enum transport transport);
/* Returns the program that would be run with the user's settings: a name or a path, or NULL. */
const char *profile_program(const struct profile *profile, enum transport transport,
                            const json_t *settings);

/* Are these a provider's settings? False: err names the key. */
bool profile_check_settings(const struct profile *profile, const json_t *settings,
                            struct err *err) MUST_CHECK;

#endif
