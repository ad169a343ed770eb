/* call.h - defines one request to a provider and its result: the words that both sides share.
 *
 * A call has an id that is unique in its session; a repeat is the same call with the next
 * attempt. */
#ifndef SEGUE_CORE_CALL_H
#define SEGUE_CORE_CALL_H

#include "base/buf.h"
#include "base/sha256.h"
#include "base/str.h"
#include "judge/stage.h"
#include "render/describe.h"

#include <jansson.h>
#include <stdint.h>

enum call_purpose {
  PURPOSE_EXECUTE,
  PURPOSE_REPORT,
  PURPOSE_JUDGE,
  PURPOSE_REASK,
  PURPOSE_CHECK, /* checks an invariant: a command, or a question to a model */
  PURPOSE_SELECT,
  PURPOSE_LOOP,
  PURPOSE_DECOMPOSE,
  PURPOSE_COUNT
};

enum error_class {
  CLASS_NONE, /* no error */
  CLASS_AUTH,
  CLASS_QUOTA, /* out of money: never retried */
  CLASS_RATE_LIMIT,
  CLASS_OVERLOADED,
  CLASS_NETWORK,
  CLASS_TIMEOUT,
  CLASS_REFUSED,
  CLASS_LENGTH, /* cut by a token limit */
  CLASS_BAD_REQUEST,
  CLASS_NOT_FOUND, /* program, model, provider session or scripted reply missing */
  CLASS_CRASHED,
  CLASS_PROTOCOL,
  CLASS_CANCELLED,
  CLASS_LOOPING, /* ended because it went in circles, see guard.h */
  CLASS_BUDGET,  /* ended because a budget was used up, see budget.h */
  CLASS_DENIED,  /* a command that failed because of its sandbox, as far as can be told */
  CLASS_COUNT
};

/* readonly: may read, and runs nothing that writes. edit: may change files below the working
 * directory and run the programs that its movement names (`run`), but no others. full: anything. */
enum permission { PERMISSION_READONLY, PERMISSION_EDIT, PERMISSION_FULL, PERMISSION_COUNT };
extern const char *const permission_names[], *const sandbox_level_names[],
                                                 *const sandbox_network_names[]; /* NULL-ended */
const char *permission_name(enum permission permission);
bool permission_from_name(struct str name, enum permission *out);

const char *call_purpose_name(enum call_purpose purpose);
bool call_purpose_from_name(struct str name, enum call_purpose *out);
const char *error_class_name(enum error_class class);
bool error_class_from_name(struct str name, enum error_class *out);
/* Returns true for auth, quota, budget, denied and cancelled: nothing but a person changes that. */
bool error_class_is_for_person(enum error_class class);
/* Returns true for network, overloaded and rate_limit: another attempt after a wait may succeed. */
bool error_class_is_transient(enum error_class class);
/* Returns true if another provider may do better: for every class except those that the request
 * itself caused (refused, length, bad_request) and a cancel. */
bool error_class_falls_back(enum error_class class);

/* off: no restrictions. guard: reads everything but secrets and writes its workspace, its own state
 * and caches. strict: sees nothing of the home folder but its workspace and its own state.
 * container: sees nothing of the machine but these; the system is an image's. */
enum sandbox_level {
  SANDBOX_OFF,
  SANDBOX_GUARD,
  SANDBOX_STRICT,
  SANDBOX_CONTAINER,
  SANDBOX_LEVEL_COUNT
};
enum sandbox_network { NETWORK_OPEN, NETWORK_API, NETWORK_NONE, SANDBOX_NETWORK_COUNT };
const char *sandbox_level_name(enum sandbox_level level); /* off, guard, strict, container */
bool sandbox_level_from_name(struct str name, enum sandbox_level *out);
const char *sandbox_network_name(enum sandbox_network network); /* open, api, none */
bool sandbox_network_from_name(struct str name, enum sandbox_network *out);

/* The host answers a call that wants to go to its provider. */
enum admission_answer { ADMISSION_WAIT, ADMISSION_ADMITTED, ADMISSION_FALLBACK, ADMISSION_COUNT };
const char *admission_name(enum admission_answer admission); /* wait, admitted, use_fallback */
bool admission_from_name(struct str name, enum admission_answer *out);

/* This is given to a provider. `prepare` borrows it; `start` keeps nothing beyond the end of the
 * call. */
struct call_request {
  const char *session;
  long turn, call;
  int attempt;
  enum call_purpose purpose;
  enum judge_stage stage; /* STAGE_COUNT unless purpose is judge or reask */
  struct str movement;
  struct str provider, model; /* model may be empty */
  const json_t *options;      /* object or NULL */
  const char *const *argv;    /* a command's arguments, NULL-terminated; else NULL */
  struct str prompt;
  struct str mark;              /* the word that it asks for behind a tag; or empty */
  const json_t *schema;         /* schema of the reply, or NULL */
  enum describe_form schema_as; /* tells a schema to a backend without such an option */
  enum describe_language language;
  const json_t *token;         /* what `prepare` returned, or NULL */
  bool edit;                   /* may change files */
  enum permission permission;  /* limits what its agent may do */
  const json_t *run;           /* programs that its agent may run with edit: see run.h; or NULL */
  struct str provider_session; /* the backend's conversation to continue; empty: a new one */
  bool forks;                  /* continues a copy of it, so that others find it unchanged */
  uint64_t timeout_ms;
  uint64_t stall_ms; /* 0: the backend's own */
  struct str tests;  /* how a command reports its tests, or empty */
  /* The command is a gate: its stderr is part of its text, and a timeout is a failure like any
   * other (exit 124). */
  bool gates;
  const char *cwd; /* below the session's folder; NULL: that folder itself */
  /* Last report ({"input", ..., "cost_usd"}) of the conversation that it continues or, as a repeat
   * of a call that was cut off, may find begun; NULL: not known. */
  const json_t *conversation;
  const json_t *secrets; /* names of variables that its program receives; or NULL */
  const json_t *sandbox; /* confines its program, see core/sandbox_settings.h; NULL: nothing does */
  uint64_t background_ms; /* limit of its background tasks; 0: the backend's own */
  const json_t *outlived; /* of those, what is not waited for again (texts); or NULL */
  const json_t *refused;  /* names of parameters that this model refused; or NULL */
};

/* Holds a text as it came in, whole in memory. If it exceeds LIMIT_INLINE_TEXT_BYTES or is not
 * UTF-8, its exact bytes are in blobs/<sha256>, and the log has a readable rendering. */
struct text {
  struct buf bytes;
  char blob[SHA256_HEX]; /* "": the log itself has the whole text */
};
void text_deinit(struct text *text);
/* Returns true if it must go to a blob. */
bool text_needs_blob(struct str s);
/* Renders a text for the log: UTF-8, at most LIMIT_RENDER_BYTES of head and tail. New json
 * string. */
json_t *text_render(struct str s);

/* A provider returns this. Whoever holds it owns it: call_result_deinit. */
struct call_result {
  enum error_class class; /* CLASS_NONE: answered */
  char message[512];      /* error for people, without secrets */
  int64_t retry_after_ms; /* 0: the provider named none */
  int64_t silent_ms;      /* with timeout: it was ended because it said nothing for so long */
  bool elsewhere;         /* with bad_request: another backend may accept the request */
  bool by_model;          /* the model itself wrote the text: none of it is the client's report */
  struct text text;
  struct text error_text; /* stderr, bounded; may be empty */
  json_t *structured;     /* or NULL */
  const char *enforced;   /* native, grammar, tool, json, prompt; NULL: no schema was asked for */
  /* result of a command's tests, or NULL: {"format","passed","failed","skipped","problem"?} */
  json_t *tests;
  bool has_exit;
  int exit;                /* a command's status; 128 + signal if it was killed */
  int signal;              /* signal that killed it; 0: none, whatever its status */
  json_t *files;           /* changed files: [{"path","added"?,"removed"?}], or NULL: not known */
  size_t files_more;       /* number of further files, if there are very many */
  bool files_shared;       /* another call worked there meanwhile: some changes may be its own */
  json_t *files_between;   /* what something else changed since the session's last call; or NULL */
  bool protected_seen;     /* though not all changes are known, those of protected files are */
  char files_unknown[160]; /* why some changes, or without `files` all, are not known; or "" */
  json_t *head;            /* where HEAD is, see core/head.h; or NULL: not known */
  json_t *git_seen;   /* [working tree, command] of its git programs; NULL: too many, unknown */
  json_t *usage;      /* tokens and money, as in a log's call_end; or NULL */
  json_t *unfinished; /* texts: what its background tasks do that were stopped; or NULL */
  json_t *outlived;   /* those that were ended because they were waited for in vain; or NULL */
  /* Lists in order the requests of a call that needed several, with their answers, or is NULL:
   * {"asked": "think" or "answer", "appended"? (after the call's prompt), "text", "reasoning"?,
   * "enforced"?, "usage"?, "error"?}. */
  json_t *requests;
  char provider_session[128];
  uint64_t dropped_bytes;       /* cut out of the text; a line in it says where */
  uint64_t error_dropped_bytes; /* cut out of stderr */
  char note[160]; /* anything else that an auditor should know: "pipes held open", ... */
  int64_t duration_ms;
};
void call_result_deinit(struct call_result *result);
/* Marks the call as failed, with a class and a message for people, cut at a whole character. */
void call_result_fail(struct call_result *result, enum error_class class, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

#endif
