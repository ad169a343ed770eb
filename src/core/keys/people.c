/* Lists the keys of what people are asked: a question, and an approval. */
#include "core/keys.h"

#include "base/limits.h"
#include "core/limits.h"

#include <stddef.h>

static const char *const verdict_words[] = {"approve", "reject", NULL};

static const struct key ask_list[] = {
    {.name = "question",
     .type = KEY_TEXT,
     .required = true,
     .description = "What a person is asked; the variables of an instruction can be used."},
    {.name = "choices",
     .type = KEY_CHOICES,
     .max = LIMIT_CHOICE_COUNT,
     .description = "The answers that a person can choose from (default: any text is an answer). A "
                    "rule whose condition is the chosen answer holds without a judge."},
    {.name = "schema",
     .type = KEY_SCHEMA,
     .description = "JSON Schema of the answer: the name of a ready one, a path relative to this "
                    "file, or the schema itself."},
    {.name = "default", .type = KEY_TEXT, .description = "The answer when the deadline passes."},
    {.name = "deadline",
     .type = KEY_LINE,
     .check = limits_check_deadline,
     .description =
         "How long a person has to answer, such as 30m, 8h or 3d; then the default is taken."},
    {0},
};
const struct key_set ask_keys = {"ask", "ask", ask_list};

static const struct key approve_list[] = {
    {.name = "question",
     .type = KEY_TEXT,
     .description = "What a person is asked, in addition to being shown what would be run."},
    {.name = "deadline",
     .type = KEY_LINE,
     .check = limits_check_deadline,
     .description =
         "How long a person has to answer, such as 30m, 8h or 3d; then the default is taken."},
    {.name = "default",
     .type = KEY_CHOICE,
     .words = verdict_words,
     .description = "What counts when the deadline passes (default reject)."},
    {.name = "on_reject",
     .type = KEY_NAME,
     .description = "Where a rejection leads: a movement's name, COMPLETE or ABORT (default "
                    "ABORT). The reason is then this movement's answer."},
    {0},
};
const struct key_set approve_keys = {"approve", "approve", approve_list};
