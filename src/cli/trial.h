/* trial.h - makes one judgment of a case, as `segue judge` does, without keeping or logging
 * anything.
 *
 *   trial_case_read(&c, line, &err)     a line of NDJSON: {"id"?, "text" or "report", "rules":
 *                                       ["approved", {"condition": ...}], "expected"?: 0 to n,
 *                                       "movement"?}; "report" comes before "text". An answer from
 *                                       `segue audit --errors --export` that is no judge's has
 *                                       "errors" and no "rules": it is read as no judgment, and
 *                                       cannot be run
 *   trial_run(&c, &setup, provider, model, &got, &err)
 *   trial_got_deinit(&got), trial_case_deinit(&c) */
#ifndef SEGUE_CLI_TRIAL_H
#define SEGUE_CLI_TRIAL_H

#include "cli/setup.h"

struct trial_case {
  json_t *line; /* the texts below are borrowed from it; owned */
  const char *id, *movement;
  struct str text;
  json_t *rules;    /* conditions; owned */
  bool no_judgment; /* an exported answer that should have given a movement's value */
  bool expects;
  long expected; /* 0: none of the rules */
};

struct trial_got {
  bool readable; /* false: no judge could be read or asked; `why` says more */
  bool stopped;  /* a signal ended it */
  long rule;     /* 0: none */
  char method[32];
  struct buf reply, why; /* a judge's last reply, as it came */
};

bool trial_case_read(struct trial_case *c, struct str line, struct err *err) MUST_CHECK;
void trial_case_deinit(struct trial_case *c);

/* Says what would keep a case from being run: its rules, the provider. Arguments as below. */
bool trial_check(const struct trial_case *c, struct setup *setup, const char *provider,
                 const char *model, const json_t *stages, struct err *err) MUST_CHECK;
/* Makes the judgment. provider, model and stages (an array) may be NULL. Takes provider and model
 * out of the config of the setup. */
bool trial_run(const struct trial_case *c, struct setup *setup, const char *provider,
               const char *model, const json_t *stages, struct trial_got *got,
               struct err *err) MUST_CHECK;
void trial_got_deinit(struct trial_got *got);

#endif
