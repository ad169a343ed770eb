/* segue prices: what models cost, by which list, and a newer list. */
#include "host/prices.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/backends.h"
#include "host/config.h"
#include "host/resume_options.h"

#include <stdlib.h>
#include <string.h>

/* Puts the words of a line, "input 4 output 20 above 200000 input 8", into an object. */
static void put_price_row(json_t *out, struct str row) {
  json_t *into = json_object(), *tiers = json_array();
  json_object_set_new(out, "prices", into);
  (void)str_cut(&row, ' ');
  (void)str_cut(&row, ' ');
  while (row.n > 0) {
    struct str word = str_cut(&row, ' '), value = str_cut(&row, ' ');
    char number[32];
    print_into(number, sizeof number, STR_FMT, STR_ARG(value));
    if (str_eq_c(word, "above")) {
      into = json_pack("{sf}", "tokens", strtod(number, NULL));
      json_array_append_new(tiers, into);
    } else {
      json_object_setn_new(into, word.p, word.n, json_real(strtod(number, NULL)));
    }
  }
  if (json_array_size(tiers) > 0)
    json_object_set_new(out, "above", tiers);
  else
    json_decref(tiers);
}

static bool is_price_wanted(const struct cli_args *args, struct str row) {
  bool wanted = args->word_count == 0;
  for (size_t i = 0; i < args->word_count; i++)
    wanted |= str_has(row, args->words[i]);
  return wanted;
}

static void print_prices(const struct cli_args *args, struct str list) {
  struct str rest = list, maker, model, row, name = price_list_name(list);
  bool json = cli_flag(args, "json");
  if (!json)
    cli_say(stdout, "list " STR_FMT "\n", STR_ARG(name));
  while (price_list_next(&rest, &maker, &model, &row)) {
    if (!is_price_wanted(args, row))
      continue;
    if (!json) {
      cli_say(stdout, STR_FMT "\n", STR_ARG(row));
      continue;
    }
    json_t *one = json_pack("{so so so}", "list", json_text(name), "maker", json_text(maker),
                            "model", json_text(model));
    put_price_row(one, row);
    json_io_put(one);
  }
}

/* Prints the user's own prices, in the same form. */
static void print_own(const struct cli_args *args, const json_t *prices) {
  JSON_MEMBERS(prices, model, price) {
    buf_auto_t row = buf_of("- %s", model);
    for (size_t i = 0; price_names[i] != NULL; i++)
      if (json_object_get(price, price_names[i]) != NULL)
        buf_printf(&row, " %s %.15g", price_names[i],
                   json_number_value(json_object_get(price, price_names[i])));
    if (is_price_wanted(args, buf_view(&row)) && cli_flag(args, "json"))
      json_io_put(json_pack("{ss ss sO}", "list", "config.yaml", "model", model, "prices", price));
    else if (is_price_wanted(args, buf_view(&row)))
      cli_say(stdout, "%s\n", buf_c(&row));
  }
}

static int prices_show(const struct cli_args *args) {
  AUTO(config_deinit) struct config config = {0};
  struct err err = {0};
  struct str lists[2];
  if (!config_load(&config, &err))
    return cli_fail("prices", &err);
  struct provider_registry *registry = backends_new(&config, &err);
  if (registry == NULL)
    return cli_fail("prices", &err);
  if (config.prices != NULL && !cli_flag(args, "json"))
    cli_say(stdout, "# config.yaml\n");
  print_own(args, config.prices);
  price_lists_of(registry, lists);
  for (size_t i = 0; i < 2; i++)
    if (lists[i].n > 0)
      print_prices(args, lists[i]);
  registry_free(registry);
  return STATUS_COMPLETE;
}

static int prices_run(const struct cli_args *args) {
  struct err err = {0};
  size_t count = 0;
  char list[64], path[PRICES_PATH_BYTES];
  if (args->word_count == 0 || strcmp(args->words[0], "update") != 0)
    return prices_show(args);
  if (args->word_count != 2) {
    fprintf(stderr, "segue prices: write segue prices update FILE|URL, such as "
                    "https://models.dev/api.json or https://openrouter.ai/api/v1/models\n");
    return STATUS_USAGE;
  }
  if (!resume_options_by_person("prices update", "", &err) ||
      !prices_update(args->words[1], &count, list, &err))
    return cli_fail("prices", &err);
  (void)prices_path(path);
  if (cli_flag(args, "json"))
    json_io_put(json_pack("{ss sI ss}", "list", list, "models", (json_int_t)count, "file", path));
  else
    cli_say(stdout, "%zu models of %s: %s\n", count, list, path);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_prices = {COMMAND_PRICES, .run = prices_run};
