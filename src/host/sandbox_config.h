/* sandbox_config.h - the user's settings for sandboxes, and which of them this machine can enforce.
 *
 *   sandbox: strict            the level of agents; or a map:
 *   sandbox:
 *     level: guard             of agents (default: guard where the kernel can hold it, else off)
 *     commands: off            of a workflow's own programs (default: what they inherit of the
 *                              agents that may edit); or {network: WORD, read: [...], write: [...],
 *                              limits: {...}} beyond that
 *     least: guard             no agent is started with less, whatever a workflow says
 *     mechanism: landlock      or bwrap, or for containers podman or docker: what enforces it
 *                              (default: the first that can)
 *     image: NAME              of sandbox: container, where nobody else names one
 *     network: open            of agents: open, api or none
 *     hosts: [NAME, *.NAME, NAME:PORT]     let out to with network: api, beside the backend's
 *     limits: {memory: 4G, cpus: 2, pids: 512}     of agents: all of a call together
 *     namespaces: false        whether programs may make namespaces, for sandboxes of their own
 *     home: closed             or open: guard hides of the home folder only what is known as secret
 *     read, write, secret: [~/PATH, ...]   added to the table of provider/home.txt
 *
 * providers: {NAME: {sandbox: LEVEL, network: WORD, home: WORD}} says it of one backend. */
#ifndef SEGUE_HOST_SANDBOX_CONFIG_H
#define SEGUE_HOST_SANDBOX_CONFIG_H

#include "base/err.h"
#include "core/capability.h"
#include "core/workflow.h"
#include "format/yaml.h"

#include <jansson.h>

/* Reads `sandbox` of config.yaml; NULL: err says where the mistake is. */
json_t *sandbox_read(const char *path, const struct yaml_node *node, struct err *err) MUST_CHECK;

/* Makes what a session_start records: the user's settings (NULL: none) with `mechanisms` (level ->
 * what enforces it here), the version of Landlock, `providers`, and `fell_back` if the default is
 * unavailable. `providers` is the user's settings of backends, or NULL. It only looks: for limits,
 * it names what could enforce them. A new reference. */
json_t *sandbox_resolve(const json_t *words, const json_t *providers);

/* Takes what commands inherit from the configuration that a session had before. */
void sandbox_keep_inherited(const json_t *before, json_t *config);

/* For the config of a session that is about to run: delegates controllers to control groups if
 * possible, and writes down what enforces limits then. */
void sandbox_make_ready(json_t *config);

/* The first returns the program that runs containers: podman or docker. The second returns the
 * mechanism that enforces guard and strict here under the user's settings (NULL: none). NULL: there
 * is none, and `why`, a static text, says why. */
const char *sandbox_engine(const json_t *words, const char **why);
const char *sandbox_mechanism(const json_t *words, const char **why);

/* Checks what would confine calls of this movement by this backend (command: its own program).
 * False: err says what is impossible or not allowed. Otherwise `note` is what a person should know,
 * or "". */
bool sandbox_check(const json_t *config, const struct movement *m, const struct capability *c,
                   bool command, const char **note, struct err *err) MUST_CHECK;

#endif
