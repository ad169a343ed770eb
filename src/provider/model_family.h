/* model_family.h - tells which models are of one family, so that a judge's preference for work of
 * its own kind can be counted.
 *
 * A maker's own programs and APIs are one family whatever the model (claude and anthropic; codex,
 * openai and openai-chat). Elsewhere the model's name decides, by the letters that it begins with:
 * anthropic/claude-opus-4.5 is a claude, qwen2.5-coder a qwen. Where no model is named, a provider
 * is its own family. */
#ifndef SEGUE_PROVIDER_MODEL_FAMILY_H
#define SEGUE_PROVIDER_MODEL_FAMILY_H

#include "base/str.h"

#include <stdbool.h>

/* Returns whether they are; model empty: not known. False if a provider is not known. */
bool model_family_is_same(struct str provider, struct str model, struct str other_provider,
                          struct str other_model);

#endif
