/* Tells which models are of one family. */
#include "provider/model_family.h"

#include "base/buf.h"

struct model_family_word {
  const char *word, *family;
};

/* Providers behind which there is one maker. */
static const struct model_family_word makers[] = {
    {"claude", "claude"}, {"anthropic", "claude"},  {"codex", "gpt"},
    {"openai", "gpt"},    {"openai-chat", "gpt"},   {"gemini", "gemini"},
    {"qwen", "qwen"},     {"deepseek", "deepseek"}, {"mistral", "mistral"},
};

/* Models whose name does not begin with their family's. */
static const struct model_family_word models[] = {
    {"opus", "claude"}, {"sonnet", "claude"}, {"haiku", "claude"},
    {"o", "gpt"},       {"chatgpt", "gpt"},   {"codex", "gpt"},
};

static struct str model_family_in(const struct model_family_word *words, size_t n,
                                  struct str word) {
  for (size_t i = 0; i < n; i++)
    if (str_eq_c(word, words[i].word))
      return str_from(words[i].family);
  return (struct str){NULL, 0};
}

/* Puts the letters that a model's name begins with, behind the maker's: "meta/Llama-3" is llama. */
static void put_model_word(struct str model, struct buf *out) {
  size_t from = model.n;
  while (from > 0 && model.p[from - 1] != '/')
    from--;
  for (; from < model.n; from++) {
    char c = model.p[from];
    if (c >= 'A' && c <= 'Z')
      c = (char)(c - 'A' + 'a');
    if (c < 'a' || c > 'z')
      return;
    buf_putc(out, c);
  }
}

static void put_family(struct str provider, struct str model, struct buf *out) {
  struct str known = model_family_in(makers, ARRAY_LEN(makers), provider);
  if (known.n == 0) {
    put_model_word(model, out);
    known = model_family_in(models, ARRAY_LEN(models), buf_view(out));
  }
  if (known.n > 0) {
    buf_set(out, known);
  }
  if (out->n == 0)
    buf_str(out, provider);
}

bool model_family_is_same(struct str provider, struct str model, struct str other_provider,
                          struct str other_model) {
  buf_auto_t one = {0}, other = {0};
  if (provider.n == 0 || other_provider.n == 0)
    return false;
  if (str_eq(provider, other_provider) && (model.n == 0 || other_model.n == 0))
    return true;
  put_family(provider, model, &one);
  put_family(other_provider, other_model, &other);
  return str_eq(buf_view(&one), buf_view(&other));
}
