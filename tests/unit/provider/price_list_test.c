/* Prices of models by the spellings that providers use, and public lists read. */
#include "provider/price_list.h"

#include "support/test.h"

#include <math.h>
#include <string.h>

static void finds(const struct provider_registry *registry, const char *provider, const char *model,
                  int64_t input, double input_usd, double output_usd) {
  struct price_found found;
  bool is = price_lists_find(registry, str_from(provider), str_from(model), input, &found);
  if (input_usd < 0) {
    if (is)
      fail_msg("%s %s has a price by %s", provider, model, found.list);
    return;
  }
  if (!is)
    fail_msg("%s %s has no price", provider, model);
  if (fabs(found.price.of[PRICE_INPUT] - input_usd) > 1e-12 ||
      fabs(found.price.of[PRICE_OUTPUT] - output_usd) > 1e-12)
    fail_msg("%s %s costs %g and %g", provider, model, found.price.of[PRICE_INPUT],
             found.price.of[PRICE_OUTPUT]);
}

TEST(a_model_is_found_however_it_is_spelt) {
  static const struct {
    const char *provider, *model;
    double input, output; /* input below 0: no price */
  } cases[] = {{"anthropic", "claude-opus-5-5", 4, 20},
               {"anthropic", "claude-opus-5-5-20260922", 4, 20},
               {"work", "claude-opus-5.5", 4, 20},
               {"openrouter", "anthropic/claude-opus-5.5", 4, 20},
               {"opencode", "anthropic/claude-sonnet-5-5", 2, 10},
               {"claude", "claude-opus-5-5[1m]", 4, 20},
               {"vertex", "claude-opus-4-5@20251101", 5, 25},
               {"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3, 15},
               {"bedrock", "anthropic.claude-opus-4-7-v1", 5, 25},
               {"openai", "gpt-6.2-sol", 2, 10},
               {"codex", "gpt-6.2-sol", 2, 10},
               {"openai", "gpt-4o-mini-2024-07-18", 0.15, 0.6},
               {"openai-chat", "gpt-5-2025-08-07", 1.25, 10},
               {"gemini", "models/gemini-4-argon", 2, 10},
               {"gemini", "gemini-4-argon", 2, 10},
               {"openrouter", "x-ai/grok-4.7", 2, 6},
               {"openrouter", "mistralai/mistral-large-2512:nitro", 0.5, 1.5},
               {"xai", "grok-4.7", 2, 6},
               {"deepseek", "deepseek-v4-pro", 1.32, 3.96},
               {"groq", "openai/gpt-oss-120b", 0.15, 0.6},
               /* Whose price would it be? */
               {"ollama", "gpt-oss-120b", -1, 0},
               {"llamacpp", "claude-opus-5-5", -1, 0},
               {"groq", "claude-opus-5-5", -1, 0},
               {"opencode", "m/claude-opus-5-5", -1, 0},
               {"anthropic", "claude-opus-5-5-fast", -1, 0},
               {"anthropic", "claude-opus-5-50", -1, 0},
               {"anthropic", "claude", -1, 0},
               {"openai", "20260922", -1, 0},
               {"openai", "-", -1, 0},
               {"openai", "", -1, 0}};
  struct provider_registry *registry = registry_new(NULL);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    finds(registry, cases[i].provider, cases[i].model, 10, cases[i].input, cases[i].output);
  registry_free(registry);
}

TEST(a_long_request_costs_what_its_step_says) {
  struct provider_registry *registry = registry_new(NULL);
  finds(registry, "openai", "gpt-6.2-sol", 272000, 2, 10);
  finds(registry, "openai", "gpt-6.2-sol", 272001, 4, 15);
  finds(registry, "xai", "grok-4.7", 900000, 4, 12);
  registry_free(registry);
}

static struct price priced_by(const char *text, struct str list) {
  struct provider_registry *registry = registry_new(NULL);
  struct price_found found = {.list = ""};
  price_lists_keep(registry, list);
  if (!price_lists_find(registry, STR("work"), str_from(text), 10, &found))
    found.price.of[PRICE_INPUT] = -2;
  registry_free(registry);
  return found.price;
}

TEST(public_lists_are_read) {
  static const char *const bodies[] = {
      "{\"data\": [{\"id\": \"anthropic/claude-next.1\", \"pricing\": {\"prompt\": \"0.000004\", "
      "\"completion\": \"0.00002\", \"input_cache_read\": \"0.0000002\", \"input_cache_write\": "
      "\"0.000005\", \"image\": \"1\"}}, {\"id\": \"some/thing:free\", \"pricing\": {\"prompt\": "
      "\"0\"}}, {\"id\": \"openrouter/auto\", \"pricing\": {\"prompt\": \"-1\", \"completion\": "
      "\"-1\"}}]}",
      "{\"somehost\": {\"models\": {\"claude-next-1\": {\"cost\": {\"input\": 9, \"output\": "
      "9}}}}, "
      "\"anthropic\": {\"id\": \"anthropic\", \"models\": {\"claude-next-1\": {\"cost\": "
      "{\"input\": 4, \"output\": 20, \"cache_read\": 0.2, \"cache_write\": 5, "
      "\"context_over_200k\": {\"input\": 8, \"output\": 30}}}, \"a b\": {\"cost\": {\"input\": "
      "1}}}}}"};
  static const size_t counts[] = {1, 2};
  for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
    buf_auto_t out = {0};
    struct err err = {0};
    size_t count = 0;
    assert_true(price_list_import(str_from(bodies[i]), "2026-12-01", &out, &count, &err));
    assert_int_equal(count, counts[i]);
    struct price price = priced_by("claude-next-1", buf_view(&out));
    assert_true(price.of[PRICE_INPUT] == 4 && price.of[PRICE_OUTPUT] == 20);
    assert_true(price.of[PRICE_CACHED] == 0.2 && price.of[PRICE_CACHE_WRITE] == 5);
    assert_true(str_ends(price_list_name(buf_view(&out)), " 2026-12-01"));
    /* The shipped one has what it lacks. */
    assert_true(priced_by("gpt-6.2-sol", buf_view(&out)).of[PRICE_INPUT] == 2);
    /* It is read again as it was written. */
    buf_auto_t again = {0};
    assert_true(price_list_import(buf_view(&out), "2027-01-01", &again, &count, &err));
    assert_string_equal(buf_c(&again), buf_c(&out));
  }
}

TEST(what_is_no_list_is_refused) {
  static const char *const bodies[] = {
      "",
      "<html>no</html>",
      "[]",
      "{}",
      "{\"data\": []}",
      "{\"data\": [{\"id\": 1}]}",
      "{\"a\": {\"models\": {\"m\": {\"cost\": {\"input\": -1}}}}}",
      "list x 2026-01-01\n",
      "a b input x output y\n",
      "list x 2026-01-01\na b input -4\n"};
  for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
    buf_auto_t out = {0};
    struct err err = {0};
    size_t count = 0;
    if (price_list_import(str_from(bodies[i]), "2026-12-01", &out, &count, &err))
      fail_msg("taken for a list: %s", bodies[i]);
  }
}
