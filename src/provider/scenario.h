/* scenario.h - the file behind the script provider: which calls get which replies.
 *
 *   replies:
 *     - {movement: fix, purpose: execute, contains: "2 of 5", times: 1,
 *        text: "...", structured: {...}, write: {src/queue.c: "..."}, delay_ms: 10}
 *     - {stage: phase3_tag, error: {class: rate_limit, retry_after_ms: 50}}
 *
 *     - {chunks: ["[1,", "2]"]}          a text that comes piece by piece
 *
 *     - {text: done, usage: {input: 900, output: 20, cached: 0, reasoning: 5}, cost: 0.01,
 *        tools: [Read, Bash]}               tokens, US dollars, and tools that it says it used
 *     - {text: done, provider_session: abc}   the conversation's id, as an agent would tell it
 *
 * Each call takes the first reply whose matchers (movement, purpose, stage, contains) all fit and
 * which has uses left (times, default 1; 0 = without end). Absent matchers fit. */
#ifndef SEGUE_PROVIDER_SCENARIO_H
#define SEGUE_PROVIDER_SCENARIO_H

#include "base/err.h"
#include "base/sha256.h"
#include "core/call.h"

#include <jansson.h>

struct scenario_matcher {        /* of one reply; texts are borrowed from `replies` */
  struct str movement, contains; /* p NULL: fits all */
  enum call_purpose purpose;     /* PURPOSE_COUNT: fits all */
  enum judge_stage stage;        /* STAGE_COUNT: fits all */
  json_int_t times;              /* 0: without end */
};

struct scenario {
  json_t *replies;                   /* array, checked */
  struct scenario_matcher *matchers; /* one a reply */
  char sha256[SHA256_HEX];           /* of the file's bytes */
};

/* YAML or JSON; every error has its place. */
bool scenario_load(struct scenario *scenario, const char *path, struct err *err) MUST_CHECK;
bool scenario_parse(struct scenario *scenario, const char *path, struct str text,
                    struct err *err) MUST_CHECK;
void scenario_deinit(struct scenario *scenario);

/* Index of the reply for this call, -1 if the scenario has run out. uses: how often each index was
 * taken in this session (an array), or NULL. used: 0 at first, then kept by this function for the
 * session: the replies before it have no uses left and are not looked at again; or NULL. */
long scenario_pick(const struct scenario *scenario, const struct call_request *request,
                   const json_t *uses, size_t *used);

#endif
