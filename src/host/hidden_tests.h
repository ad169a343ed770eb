/* hidden_tests.h - tests that only segue reads, for work that its agents call done.
 *
 *   hidden_tests:                     in the user's config.yaml; a list of such maps for several
 *     folder: ~/src/shop              the project; without it each one
 *     dir: ~/hidden/shop              denied to every sandbox, $HIDDEN of the command
 *     command: pytest -q "$HIDDEN"    a line for sh
 *     tests: pytest                   how they are counted (default with passed: auto)
 *     passed: 12                      so many must pass; any other number is no pass. Without both
 *                                     the exit status alone counts, which code can fake
 *     timeout: 10m
 *
 *   hidden_tests_start(s, over)     EFFECT_HIDDEN; `over` comes with EVENT_HIDDEN
 *   hidden_tests_cancel(s)          the session is over
 *
 * They run in a copy of the work (evidence/base.h) in the user's state folder, in a sandbox without
 * network that writes only there, and the copy goes at once: what the work under test might tell
 * of them stays nowhere. Of what they print segue keeps the exit status and the counts, in the log.
 * So a session with hidden tests runs no program without a sandbox, and its log and the tests must
 * lie where sandboxes do not look (provider/sandbox_policy.h refuses the call otherwise). */
#ifndef SEGUE_HOST_HIDDEN_TESTS_H
#define SEGUE_HOST_HIDDEN_TESTS_H

#include "base/err.h"
#include "format/yaml.h"

#include <jansson.h>

struct event;
struct session;

/* Reads `hidden_tests` of config.yaml: an array of objects. NULL: err. */
json_t *hidden_tests_read(const char *path, const struct yaml_node *node,
                          struct err *err) MUST_CHECK;
/* Puts the first that is for the session's folder into its configuration, and has its sandbox keep
 * from programs what all of them name. sets NULL: there are none. */
void hidden_tests_resolve(const json_t *sets, json_t *session_config);

/* ev: borrowed; NULL: it was cancelled. Starts nothing if they run already. */
void hidden_tests_start(struct session *s, void (*over)(struct session *s, struct event *ev));
void hidden_tests_cancel(struct session *s);

#endif
