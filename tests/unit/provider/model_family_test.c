/* Which models are of one family. */
#include "provider/model_family.h"

#include "base/err.h"
#include "support/test.h"

static const struct {
  const char *provider, *model, *other_provider, *other_model;
  bool same;
} pairs[] = {
    {"claude", "", "claude", "", true},
    {"claude", "sonnet", "anthropic", "claude-opus-4-5", true},
    {"codex", "", "openai", "gpt-6.1-sol", true},
    {"codex", "gpt-6.1-sol", "openai-chat", "o5-mini", true},
    {"claude", "sonnet", "codex", "", false},
    {"anthropic", "claude-opus-4-5", "openai", "gpt-6.1-sol", false},
    {"openrouter", "anthropic/claude-opus-4.5", "claude", "", true},
    {"openrouter", "openai/o5", "codex", "", true},
    {"openrouter", "openai/gpt-6.1", "anthropic", "claude-opus-4-5", false},
    {"opencode", "mine/sonnet", "anthropic", "", true},
    {"ollama", "llama3.1:8b", "vllm", "meta-llama/Llama-3.1-70B", true},
    {"ollama", "llama3.1:8b", "ollama", "qwen2.5-coder", false},
    {"ollama", "qwen2.5-coder", "qwen", "", true},
    {"ollama", "", "ollama", "qwen2.5-coder", true}, /* the same server's own */
    {"ollama", "", "llamacpp", "", false},
    {"script", "", "script", "", true},
    {"script", "small", "script", "large", false},
    {"mine", "7b", "mine", "8b", true},
    {"mine", "", "", "", false},
    {"", "gpt-6.1", "", "gpt-6.1", false},
};

TEST(models_of_one_maker_are_a_family) {
  for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
    struct str a = str_from(pairs[i].provider), am = str_from(pairs[i].model);
    struct str b = str_from(pairs[i].other_provider), bm = str_from(pairs[i].other_model);
    if (model_family_is_same(a, am, b, bm) != pairs[i].same ||
        model_family_is_same(b, bm, a, am) != pairs[i].same)
      fail_msg("%s %s and %s %s", pairs[i].provider, pairs[i].model, pairs[i].other_provider,
               pairs[i].other_model);
  }
}
