/* dialects.h - finds the dialects of model APIs by name; the product goes by presets instead. */
#ifndef SEGUE_TESTS_DIALECTS_H
#define SEGUE_TESTS_DIALECTS_H

#include "provider/api/dialect.h"

#include <string.h>

static const struct dialect *const dialects[] = {
    &dialect_anthropic, &dialect_openai_responses, &dialect_openai_chat,
    &dialect_gemini,    &dialect_ollama,           &dialect_llamacpp,
};

/* NULL: no dialect has that name. */
static inline const struct dialect *dialect_named(const char *name) {
  for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
    if (strcmp(dialects[i]->name, name) == 0)
      return dialects[i];
  return NULL;
}

#endif
