/* Holds the table of dialects: what each provider takes of JSON Schema. */
#include "adapt/internal.h"

/* The rules come from the providers' documentation of structured outputs, and from the schema
 * transformers of their SDKs. */

#define NUMBERS                                                                                    \
  (KEEP(K_MINIMUM) | KEEP(K_MAXIMUM) | KEEP(K_EXCLUSIVE_MINIMUM) | KEEP(K_EXCLUSIVE_MAXIMUM))
#define LENGTHS (KEEP(K_MIN_LENGTH) | KEEP(K_MAX_LENGTH))
#define COUNTS  (KEEP(K_MIN_ITEMS) | KEEP(K_MAX_ITEMS))

static const char *const formats_openai[] = {"date-time", "time", "date", "duration", "email",
                                             "hostname",  "ipv4", "ipv6", "uuid",     NULL};
static const char *const formats_anthropic[] = {"date-time", "time",     "date", "duration",
                                                "email",     "hostname", "uri",  "ipv4",
                                                "ipv6",      "uuid",     NULL};
static const char *const formats_gemini[] = {"date-time", "date", "time", NULL};
static const char *const formats_llamacpp[] = {"date", "time", "date-time", "uuid", NULL};
static const char *const formats_vllm[] = {"email",
                                           "date",
                                           "time",
                                           "date-time",
                                           "duration",
                                           "ipv4",
                                           "ipv6",
                                           "hostname",
                                           "uuid",
                                           "uri",
                                           "uri-reference",
                                           "uri-template",
                                           "json-pointer",
                                           "relative-json-pointer",
                                           NULL};
static const char *const formats_none[] = {NULL};

#define OPENAI                                                                                     \
  .flags = ADAPT_ALL_REQUIRED | ADAPT_CLOSED | ADAPT_ROOT_OBJECT | ADAPT_TYPE_LIST,                \
  .keeps =                                                                                         \
      NUMBERS | COUNTS | KEEP(K_MULTIPLE_OF) | KEEP(K_PATTERN) | KEEP(K_FORMAT) | KEEP(K_CONST),   \
  .recursion = RECURSION_ANY, .formats = formats_openai,                                           \
  .limits = {.nesting = 10,                                                                        \
             .properties = 5000,                                                                   \
             .enum_values = 1000,                                                                  \
             .name_characters = 120000,                                                            \
             .long_enum_values = 250,                                                              \
             .long_enum_characters = 15000,                                                        \
             .schema_name = 64}

#define LLAMACPP                                                                                   \
  .flags = ADAPT_TYPE_LIST | ADAPT_FREE | ADAPT_GRAMMAR,                                           \
  .keeps = NUMBERS | LENGTHS | COUNTS | KEEP(K_PATTERN) | KEEP(K_FORMAT) | KEEP(K_CONST) |         \
           KEEP(K_ADDITIONAL_PROPERTIES) | KEEP(K_PREFIX_ITEMS),                                   \
  .recursion = RECURSION_ANY, .formats = formats_llamacpp, .limits = {.repetitions = 1999}

#define WHOLE                                                                                      \
  .flags = ADAPT_WHOLE | ADAPT_ROOT_OBJECT | ADAPT_TYPE_LIST | ADAPT_FREE, .keeps = ~(uint64_t)0,  \
  .recursion = RECURSION_ANY, .formats = formats_none

static const struct adapt_dialect dialects[] = {
    {.name = "openai", OPENAI},
    {.name = "openai-chat", OPENAI},
    {.name = "codex", OPENAI}, /* hands its schema to OpenAI as it is */
    {.name = "openrouter", OPENAI},
    {.name = "anthropic",
     .flags = ADAPT_CLOSED | ADAPT_ROOT_OBJECT | ADAPT_ITEMS_0_1,
     .keeps = KEEP(K_MIN_ITEMS) | KEEP(K_FORMAT) | KEEP(K_CONST),
     .recursion = RECURSION_NONE,
     .formats = formats_anthropic,
     .limits = {.optional_properties = 24, .unions = 16}},
    {.name = "gemini",
     .flags = ADAPT_TYPE_LIST | ADAPT_ORDERING | ADAPT_ENUM_TEXTS,
     .keeps = KEEP(K_MINIMUM) | KEEP(K_MAXIMUM) | COUNTS | KEEP(K_FORMAT) |
              KEEP(K_ADDITIONAL_PROPERTIES),
     .recursion = RECURSION_OPTIONAL,
     .formats = formats_gemini},
    {.name = "ollama", LLAMACPP}, /* has llama.cpp's converter inside */
    {.name = "llamacpp", LLAMACPP},
    {.name = "lmstudio", LLAMACPP},
    {.name = "vllm",
     .flags = ADAPT_TYPE_LIST | ADAPT_FREE,
     .keeps = NUMBERS | LENGTHS | COUNTS | KEEP(K_PATTERN) | KEEP(K_FORMAT) | KEEP(K_CONST) |
              KEEP(K_ADDITIONAL_PROPERTIES) | KEEP(K_PREFIX_ITEMS),
     .recursion = RECURSION_ANY,
     .formats = formats_vllm},
    {.name = "claude", WHOLE}, /* these three make it the input of a tool: an object */
    {.name = "qwen", WHOLE},
    {.name = "opencode", WHOLE},
};

const struct adapt_dialect *adapt_dialect_at(size_t index) {
  return index < sizeof dialects / sizeof *dialects ? &dialects[index] : NULL;
}

const struct adapt_dialect *adapt_dialect_find(const char *name) {
  for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
    if (!strcmp(dialects[i].name, name))
      return &dialects[i];
  return NULL;
}
