/* Lists the keys of judging: sampling options, the judge and the panel, and rules. */
#include "core/keys.h"

#include "base/limits.h"

#include <stddef.h>

const char *const stage_words[] = {"structured_output", "phase3_tag", "phase1_tag", "ai_judge",
                                   NULL};

static const struct key option_list[] = {
    {.name = "temperature",
     .or_null = true,
     .type = KEY_NUMBER,
     .max = 2,
     .description = "The sampling temperature, 0 to 2; sent only if it is set. null removes an "
                    "inherited one."},
    {.name = "seed",
     .or_null = true,
     .type = KEY_INTEGER,
     .min = -1e15,
     .max = 1e15,
     .description = "The sampling seed, if the backend takes one."},
    {.name = "max_tokens",
     .or_null = true,
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_OPTION_TOKENS,
     .description = "The most tokens in one answer."},
    {.name = "effort",
     .or_null = true,
     .type = KEY_LINE,
     .description = "How hard the model thinks: low, medium, high, or the backend's own word."},
    {0},
};
const struct key_set options_keys = {"options", "options", option_list};

static const char *const no_words[] = {"none", NULL};
static const char *const order_words[] = {"rotate", "fixed", NULL};
static const char *const split_words[] = {"next", "ask", NULL};

static const struct key judge_list[] = {
    {.name = "stages",
     .type = KEY_STAGES,
     .words = stage_words,
     .description = "The ways to judge, in order; the next one is tried when one yields no rule. "
                    "[phase1_tag] alone calls no model."},
    {.name = "provider",
     .type = KEY_PROVIDERS,
     .description = "The provider that judges (default: the movement's provider). In a list, the "
                    "others are fallbacks."},
    {.name = "model", .type = KEY_LINE, .description = "The judge's model."},
    {.name = "options",
     .type = KEY_SET,
     .set = &options_keys,
     .description = "Sampling options for the judge's calls."},
    {.name = "effort",
     .or_null = true,
     .type = KEY_LINE,
     .description = "How hard judges think (default low, for models known to take an effort); "
                    "null: the backend's default."},
    {.name = "timeout_ms",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_CALL_WALL_MS,
     .description = "The most milliseconds that one judge call may take (default 600000)."},
    {.name = "max_reasks",
     .type = KEY_INTEGER,
     .max = LIMIT_REASK_COUNT,
     .description =
         "How often a stage asks again after an answer that does not fit the schema (default 0)."},
    {.name = "panel",
     .type = KEY_PANEL,
     .max = LIMIT_PANEL_COUNT,
     .words = no_words,
     .description = "Two to seven providers that vote in each stage that calls a model; the same "
                    "one may be listed several times. none removes the workflow's panel."},
    {.name = "agree",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_PANEL_COUNT,
     .description = "How many votes must agree (default: more than half)."},
    {.name = "order",
     .type = KEY_CHOICE,
     .words = order_words,
     .description = "rotate (default): each voter gets the rules in a different order, with their "
                    "numbers kept. fixed: all get them in the file's order."},
    {.name = "else",
     .type = KEY_CHOICE,
     .words = split_words,
     .description = "What happens when too few agree: next (default) tries the next stage; ask "
                    "asks a person which rule holds, see segue inbox."},
    {0},
};
const struct key_set judge_keys = {"judge", "judge", judge_list};

static const struct key rule_list[] = {
    {.name = "condition",
     .type = KEY_CONDITION,
     .required = true,
     .description = "When the rule holds: a label for a judge, when(EXPR) on exit, last_exit, "
                    "iteration, movement_iteration, changed, files, tests, checks and "
                    "structured.MOVEMENT.FIELD, or label && when(EXPR)."},
    {.name = "next",
     .type = KEY_NAME,
     .description = "Where the rule leads: a movement's name, COMPLETE or ABORT. Every rule needs "
                    "it, except those of a child in parallel, which cannot have it."},
    {.name = "return",
     .type = KEY_LINE,
     .description =
         "Used instead of next in a workflow that others call: the label from `returns` that it "
         "ends with. If the workflow is run by itself, the session is complete."},
    {.name = "appendix", .type = KEY_TEXT, .description = "A text shown together with the rule."},
    {.name = "interactive_only",
     .type = KEY_BOOL,
     .description = "The rule exists only while a person takes part in the session "
                    "(default false)."},
    {.name = "requires_user_input",
     .type = KEY_BOOL,
     .description =
         "When the rule holds, a person is asked what the answer asks, and the same movement runs "
         "again with the person's reply; next is not followed (default false)."},
    {0},
};
const struct key_set rule_keys = {"a rule", "rule", rule_list};
