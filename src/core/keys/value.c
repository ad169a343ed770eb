/* Lists the keys of what a movement hands over: a checked value, and reports. */
#include "core/keys.h"

#include "base/limits.h"
#include "core/contract.h"

#include <stddef.h>

static const char *const on_failures[] = {"error", "escalate", "sentinel", NULL};

static const struct key reask_list[] = {
    {.name = "provider",
     .type = KEY_LINE,
     .description = "The provider that corrects (default: the movement's provider)."},
    {.name = "model", .type = KEY_LINE, .description = "The model that corrects."},
    {0},
};
const struct key_set reask_keys = {"reask", "reask", reask_list};

static const struct key structured_list[] = {
    {.name = "schema",
     .type = KEY_SCHEMA,
     .required = true,
     .description = "The JSON Schema of the value: the name of a built-in one, a path relative to "
                    "this file, or the schema itself."},
    {.name = "invariants",
     .type = KEY_INVARIANTS,
     .description = "What must hold beyond the schema: expressions such as sum(items[].price) == "
                    "total, {command: [..]} with the value on standard input, or {ai: question}."},
    {.name = "on_failure",
     .type = KEY_CHOICE,
     .required = true,
     .words = on_failures,
     .description =
         "What happens without a valid value: error fails the session; escalate stops it resumably "
         "with a question; sentinel continues with {sentinel: {reason, attempts, errors}} as the "
         "value, which when(structured.MOVEMENT.sentinel) detects."},
    {.name = "max_reasks",
     .type = KEY_INTEGER,
     .max = LIMIT_REASK_COUNT,
     .description = "How many corrections are asked for at most (default 2; for a command 0)."},
    {.name = "example",
     .type = KEY_BOOL,
     .description = "Whether the prompt shows an example of the schema's shape, with placeholders "
                    "(default false)."},
    {.name = "assert_format",
     .type = KEY_BOOL,
     .description = "Whether format (date, email, uri, ...) is checked in the value, not only "
                    "noted (default false)."},
    {.name = "repair",
     .type = KEY_BOOL,
     .description = "Whether broken JSON may be repaired (default false)."},
    {.name = "reask",
     .type = KEY_SET,
     .set = &reask_keys,
     .description = "Who corrects, if not the one who answered."},
    {.name = "token_budget",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_TOKEN_BUDGET,
     .description = "No further correction is asked for once all calls for the value have used "
                    "this many tokens."},
    {.name = "time_budget_ms",
     .type = KEY_INTEGER,
     .min = 1,
     .max = LIMIT_CALL_WALL_MS,
     .description = "The most milliseconds that all calls for the value may take together."},
    {0},
};
const struct key_set structured_keys = {"structured_output", "structured_output", structured_list};

static const struct key contract_list[] = {
    {.name = "name",
     .type = KEY_NAME,
     .required = true,
     .check = contract_check_name,
     .description = "The file's name, such as plan.md, without a folder."},
    {.name = "label", .type = KEY_LINE, .description = "What the report is called."},
    {.name = "format",
     .type = KEY_FACET,
     .facet = FACET_OUTPUT_CONTRACT,
     .description = "What the report must look like: the name of an output contract, a path, or "
                    "the text itself. The variables of an instruction are filled in."},
    {.name = "order",
     .type = KEY_FACET,
     .facet = FACET_OUTPUT_CONTRACT,
     .description = "How to write the report, placed before the format: a name, a path or a text."},
    {.name = "use_judge",
     .type = KEY_BOOL,
     .description =
         "Whether the judge reads the report as well as the agent's answer (default true)."},
    {0},
};
const struct key_set contract_keys = {"a report", "contract", contract_list};

static const struct key contracts_list[] = {
    {.name = "report",
     .type = KEY_REPORTS,
     .required = true,
     .set = &contract_keys,
     .max = LIMIT_CONTRACT_COUNT,
     .description = "The reports, in this order: {name, format, ...}, or LABEL: FILE."},
    {0},
};
const struct key_set contracts_keys = {"output_contracts", "contracts", contracts_list};
