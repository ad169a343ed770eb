/* Lists the keys that bound a session and check its work: budgets, guards, gates. */
#include "core/keys.h"

#include "base/limits.h"
#include "core/limits.h"

static const char *const on_exceed[] = {"finish", "stop", NULL};

#define BUDGET_AMOUNTS                                                                             \
  {.name = "tokens",                                                                               \
   .type = KEY_INTEGER,                                                                            \
   .min = 1,                                                                                       \
   .max = LIMIT_BUDGET_TOKENS,                                                                     \
   .description = "The most tokens, input and output together."},                                  \
      {.name = "cost",                                                                             \
       .type = KEY_NUMBER,                                                                         \
       .max = LIMIT_COST_USD,                                                                      \
       .description = "The most US dollars."},                                                     \
  {                                                                                                \
    .name = "time", .type = KEY_LINE, .check = limits_check_duration,                              \
    .description = "The longest time that all calls together may take, such as 90m; waiting for "  \
                   "limits or people does not count."                                              \
  }

static const struct key call_list[] = {BUDGET_AMOUNTS, {0}};
const struct key_set budget_call_keys = {"a budget's call", "budget_call", call_list};

static const struct key budget_list[] = {
    BUDGET_AMOUNTS,
    {.name = "calls",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_BUDGET_CALLS,
     .description = "The most calls, including those to judges and for corrections; a repeated "
                    "call counts once."},
    {.name = "movements",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_MOVEMENTS,
     .description = "The most turns; in a movement, how often it may be entered."},
    {.name = "call",
     .type = KEY_SET,
     .set = &budget_call_keys,
     .description = "What one call may use at most, with all its attempts."},
    {.name = "on_exceed",
     .type = KEY_CHOICE,
     .words = on_exceed,
     .description = "finish (default): a call that is running when the limit is reached may "
                    "finish. stop: it is ended once its usage exceeds the limit."},
    {0},
};
const struct key_set budget_keys = {"a budget", "budget", budget_list};

/* --- what a program may take of the machine --- */

static const struct key limits_list[] = {
    {.name = "memory",
     .type = KEY_LINE,
     .check = limits_check_memory,
     .description = "The most memory, such as 4G."},
    {.name = "cpus",
     .type = KEY_NUMBER,
     .min = 0.1,
     .max = LIMIT_CALL_CPUS,
     .description = "The most processors at once, such as 2 or 0.5."},
    {.name = "pids",
     .type = KEY_INTEGER,
     .min = 8,
     .max = LIMIT_CALL_PIDS,
     .description = "The most processes and threads at once."},
    {0},
};
const struct key_set limits_keys = {"limits", "limits", limits_list};

/* --- guards --- */

static const char *const actions[] = {"stop", "warn", "ignore", NULL};

static const struct key guards_list[] = {
    {.name = "same_tool",
     .type = KEY_INTEGER,
     .min = 2,
     .max = LIMIT_GUARD_TIMES,
     .description = "If an agent uses one tool this many times in a row with the same argument, "
                    "its call is ended (class looping)."},
    {.name = "on_same_tool",
     .type = KEY_CHOICE,
     .words = actions,
     .description = "What happens then: stop (default), warn (a note in the log) or ignore."},
    {.name = "same_failure",
     .type = KEY_INTEGER,
     .min = 2,
     .max = LIMIT_GUARD_TIMES,
     .description = "If a command's movement fails this many times with the same output (digits "
                    "aside) and no file has changed meanwhile, the session stops."},
    {.name = "on_same_failure",
     .type = KEY_CHOICE,
     .words = actions,
     .description = "What happens then: stop (default), warn or ignore."},
    {.name = "same_movement",
     .type = KEY_INTEGER,
     .min = 2,
     .max = LIMIT_GUARD_TIMES,
     .description = "If a movement has been entered this many times in a row, the session stops "
                    "before it is entered again."},
    {.name = "on_same_movement",
     .type = KEY_CHOICE,
     .words = actions,
     .description = "What happens then: stop (default), warn or ignore."},
    {0},
};
const struct key_set guards_keys = {"guards", "guards", guards_list};

static const struct key gate_list[] = {
    {.name = "name",
     .type = KEY_NAME,
     .description = "The gate's name (default: gate1, gate2, ...)."},
    {.name = "command",
     .type = KEY_ARGV,
     .required = true,
     .description = "The program and its arguments (no shell); exit status 0 is a pass."},
    {.name = "tests",
     .type = KEY_LINE,
     .check = limits_check_tests,
     .description = "How it reports its tests, as in a movement: exit status 0 without a passed "
                    "test is not a pass."},
    {.name = "timeout",
     .type = KEY_LINE,
     .check = limits_check_duration,
     .description = "The longest time that one run may take, such as 10m (default 1h)."},
    {.name = "cwd",
     .type = KEY_LINE,
     .check = limits_check_cwd,
     .description = "The folder, below the session's, that it runs in."},
    {0},
};
const struct key_set gate_keys = {"a gate", "gate", gate_list};
