/* probe.h - is a backend there, and could it be used?
 *
 * For an agent: its program, its `--version`, and signs of a key or a login, which is not read. For
 * a model API: one short request (api.h), or none if its key is missing. All at once, within
 * LIMIT_PROBE_WALL_MS, on a loop of its own: for commands, not for a session. */
#ifndef SEGUE_PROVIDER_PROBE_H
#define SEGUE_PROVIDER_PROBE_H

#include "provider/registry.h"

enum probe_state {
  PROBE_OK,      /* nothing stands in the way */
  PROBE_UNKNOWN, /* nothing is known against it */
  PROBE_NO,      /* `problem` says what, `remedy` what to do */
};

/* A backend that is simply absent is no news to somebody who never wanted it; others may need
 * repair. */
enum probe_absence {
  ABSENCE_NONE,
  ABSENCE_PROGRAM, /* it is not installed */
  ABSENCE_SETTING, /* no program is set */
  ABSENCE_KEY,     /* a model API that has no key */
  ABSENCE_SERVER,  /* nothing answers at its address */
};

struct backend_probe {
  const char *kind;      /* agent, http, built-in; static */
  const char *transport; /* exec, native, acp, http; static, "" when none */
  const char *schema;    /* how one is enforced over that transport; static */
  bool has_program;      /* it is a program at all */
  bool installed;        /* it was found; of others: true */
  char program[256];     /* where */
  char version[64];      /* "" = not asked, or no answer */
  char minimum[64];
  bool version_old;
  bool broken;     /* its profile has a mistake */
  char login[160]; /* what was found: "ANTHROPIC_API_KEY is set", "~/.codex/auth.json"; or "" */
  enum probe_state state;
  enum probe_absence absence;
  char problem[1100], remedy[512];
};

/* One for each of the registry, in its order: free() it. Without `ask` nothing is started. */
struct backend_probe *probe_all(const struct provider_registry *registry, bool ask);

/* Asks only those that are `wanted`, a flag for each. */
struct backend_probe *probe_some(const struct provider_registry *registry, const bool *wanted);
/* Looks at one provider, and asks it nothing. */
void probe_look(const struct provider *provider, struct backend_probe *out);

/* Notes the version that an agent's program printed; it may be too old. */
void probe_put_version(struct backend_probe *probe, const struct provider *provider,
                       const char *version);

/* Returns a new object: name, kind, summary, installed, program, version, minimum, usable (true,
 * false, null), login, schema, transport, problem, remedy. */
json_t *probe_json(const struct backend_probe *probe, const struct provider *provider);

#endif
