/* preflight.h - checks what can be checked before a session starts: the workflow's file and its
 * facets, and that every provider its rules can lead to can do what will be asked of it.
 *
 *   wf = preflight_load(source, cwd, config, registry, &errors, &warnings, &marks)
 *   preflight_check(&(struct preflight){.workflow = wf, ...}, &errors, &warnings)
 *   errors.count == 0: it may start
 *
 * All problems are found in one go. What must fail is an error: none of a list of providers can
 * answer, a command's bare name is not in PATH. What may still come right is a warning: one of
 * several cannot answer, a program below the working directory is missing (an earlier movement may
 * build it), there is no sign of a login. No program is started for it. */
#ifndef SEGUE_HOST_PREFLIGHT_H
#define SEGUE_HOST_PREFLIGHT_H

#include "core/workflow.h"
#include "provider/registry.h"
#include "workflow/load.h"
#include "workflow/source_map.h"

enum reachable_role {
  REACHABLE_WORK,
  REACHABLE_JUDGE,
  REACHABLE_VOTE, /* a panel's members: all are asked */
  REACHABLE_CORRECT,
  REACHABLE_ROLE_COUNT
};

enum { REACHABLE_WHO_COUNT = 16 }; /* the first, and those after it; any more are left out */

struct reachable_who {
  struct str provider; /* empty: nobody is chosen */
  struct str model;    /* may be empty */
};

struct reachable_part { /* everything is borrowed from the workflow and the configuration */
  size_t movement;
  enum reachable_role role;
  struct reachable_who
      who[REACHABLE_WHO_COUNT]; /* the first, then who takes over; or a panel's voters */
  size_t count;
  size_t needed;         /* how many of them must be able to answer */
  const json_t *options; /* options of their calls, by the movement; or NULL */
  const char *section;   /* where they are named: "", "judge." or "structured_output.reask." */
  bool chosen;           /* by a flag or the user's default, not by the file */
};

/* Visits each part. config: as session_start records it. reachable: see workflow_reachable.
 * Commands have no work part. */
void reachable_each(const struct workflow *workflow, const json_t *config, const bool *reachable,
                    void (*fn)(void *ctx, const struct reachable_part *part), void *ctx);

/* Loads, lints and builds; facets also come from the project around cwd and from the user's folder.
 * source: path, text and inline facets; the rest is filled in. A workflow may be returned with
 * errors, so that preflight_check can find the rest of them; it must not run. marks: the places of
 * its parts (workflow_marks_free), or NULL. */
struct workflow *preflight_load(struct workflow_source source, const char *cwd,
                                const json_t *config, const struct provider_registry *registry,
                                struct err_list *errors, struct err_list *warnings,
                                struct workflow_marks **marks);

/* Warns also those who do not want all of lint: of project facets that replace the user's own, and
 * of a .segue that was passed over. files: as source.facet_files. */
void preflight_warn(const json_t *files, const char *cwd, struct err_list *warnings);

struct preflight {
  const struct workflow *workflow;
  const json_t *config; /* as session_start records it: with cwd and the user's defaults */
  const struct provider_registry *registry;
  const struct workflow_marks *marks; /* or NULL: no places are given */
  bool has_scenario, has_task;
  /* also checks programs, keys, logins and the task; otherwise only what each provider can do */
  bool looks;
  bool answered; /* the work is done and is only judged: looks at judges alone */
  bool by_api;   /* messages name members of a request, not options of the command line */
};

/* Adds to the lists what they lack. */
void preflight_check(const struct preflight *p, struct err_list *errors, struct err_list *warnings);
/* Does the same for a single error: for a session that is continued or forked, or a single call.
 * False: err is the first. */
bool preflight_passes(const struct preflight *p, struct err *err) MUST_CHECK;

#endif
