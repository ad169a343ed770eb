/* Sums up what the calls of a session have used. */
#include "core/spend.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <assert.h>
#include <stdlib.h>

enum { NANO = 1000000000, PRICE_TOKENS = 1000000 };
static const int64_t most = (int64_t)1 << 40;

void spends_deinit(struct spends *spends) {
  struct spend_list *lists[] = {&spends->movements, &spends->providers};
  for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
    for (size_t k = 0; k < lists[i]->count; k++)
      free(lists[i]->entries[k].name);
    free(lists[i]->entries);
  }
  *spends = (struct spends){0};
}

/* Returns the number, or 0 if it is out of range: a log may hold any. */
static int64_t bounded(const json_t *n) {
  json_int_t value = json_integer_value(n);
  return value < 0 || value > most ? 0 : value;
}

struct spend spend_of(const json_t *usage, int64_t duration_ms) {
  const json_t *cost = json_at(usage, "cost_usd");
  double usd = json_number_value(cost);
  struct spend one = {.calls = 1,
                      .duration_ms = duration_ms,
                      .input = bounded(json_at(usage, "input")),
                      .output = bounded(json_at(usage, "output")),
                      .cached = bounded(json_at(usage, "cached")),
                      .reasoning = bounded(json_at(usage, "reasoning"))};
  if (usage == NULL)
    return one;
  one.uncounted = json_at(usage, "told") != NULL;
  if (json_is_number(cost) && usd >= 0 && usd <= LIMIT_COST_USD) {
    one.cost_nano = (int64_t)(usd * NANO + 0.5);
    one.priced = 1;
  } else {
    one.unpriced = 1;
  }
  return one;
}

static void spend_add(struct spend *sum, const struct spend *one) {
  sum->calls += one->calls;
  sum->duration_ms += one->duration_ms;
  sum->input += one->input;
  sum->output += one->output;
  sum->cached += one->cached;
  sum->reasoning += one->reasoning;
  sum->cost_nano += one->cost_nano;
  sum->priced += one->priced;
  sum->uncounted += one->uncounted;
  sum->unpriced += one->unpriced;
}

static struct spend *spend_of_name(struct spend_list *list, struct str name) {
  for (size_t i = 0; i < list->count; i++)
    if (str_eq_c(name, list->entries[i].name))
      return &list->entries[i].spend;
  list->entries = xrealloc(list->entries, (list->count + 1) * sizeof *list->entries);
  list->entries[list->count] = (struct spend_entry){.name = xstrndup(name.p, name.n)};
  return &list->entries[list->count++].spend;
}

void spends_add(struct spends *spends, enum call_purpose purpose, struct str movement,
                struct str provider, const json_t *usage, int64_t duration_ms) {
  struct spend one = spend_of(usage, duration_ms);
  enum spend_kind kind = SPEND_JUDGING;
  if (purpose == PURPOSE_EXECUTE || purpose == PURPOSE_REPORT)
    kind = SPEND_WORK;
  else if (purpose == PURPOSE_REASK)
    kind = SPEND_CORRECTIONS;
  assert(duration_ms >= 0);
  spend_add(&spends->all, &one);
  spend_add(&spends->kinds[kind], &one);
  spend_add(spend_of_name(&spends->movements, movement), &one);
  spend_add(spend_of_name(&spends->providers, provider), &one);
}

void spends_begin(struct spends *spends, struct str movement, struct str provider) {
  spends->all.begun++;
  spend_of_name(&spends->movements, movement)->begun++;
  spend_of_name(&spends->providers, provider)->begun++;
}

void spends_silent(struct spends *spends, struct str provider) {
  spend_of_name(&spends->providers, provider)->silent++;
}

struct spend spends_of(const struct spend_list *list, struct str name) {
  for (size_t i = 0; i < list->count; i++)
    if (str_eq_c(name, list->entries[i].name))
      return list->entries[i].spend;
  return (struct spend){0};
}

/* A sum may be larger than what one call can cost. */
static int64_t spend_nano(const json_t *spent) {
  double usd = json_number_value(json_at(spent, "cost_usd"));
  return usd >= 0 && usd * NANO < (double)((int64_t)1 << 62) ? (int64_t)(usd * NANO + 0.5) : 0;
}

static json_t *spend_json(const struct spend *s) {
  const struct {
    const char *name;
    int64_t n;
  } counts[] = {{"input", s->input},         {"output", s->output},
                {"cached", s->cached},       {"reasoning", s->reasoning},
                {"uncounted", s->uncounted}, {"unpriced", s->unpriced}};
  json_t *out = json_object();
  json_object_set_new(out, "calls", json_integer(s->calls));
  json_object_set_new(out, "duration_ms", json_integer(s->duration_ms));
  for (size_t i = 0; i < ARRAY_LEN(counts); i++)
    if (counts[i].n > 0)
      json_object_set_new(out, counts[i].name, json_integer(counts[i].n));
  if (s->priced > 0)
    json_object_set_new(out, "cost_usd", json_real((double)s->cost_nano / NANO));
  return out;
}

void spend_sum(json_t *sum, const json_t *spent) {
  static const char *const keys[] = {"calls",  "duration_ms", "input",     "output",
                                     "cached", "reasoning",   "uncounted", "unpriced"};
  for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
    json_int_t more = bounded(json_object_get(spent, keys[i]));
    if (more > 0)
      json_object_set_new(sum, keys[i],
                          json_integer(json_integer_value(json_object_get(sum, keys[i])) + more));
  }
  if (json_at(spent, "cost_usd") != NULL)
    json_object_set_new(sum, "cost_usd",
                        json_real((double)(spend_nano(sum) + spend_nano(spent)) / NANO));
}

static json_t *list_json(const struct spend_list *list) {
  json_t *out = json_object();
  for (size_t i = 0; i < list->count; i++)
    json_object_set_new(out, list->entries[i].name, spend_json(&list->entries[i].spend));
  return out;
}

json_t *spends_json(const struct spends *spends) {
  static const char *const names[] = {"work", "judging", "corrections"};
  json_t *out = spend_json(&spends->all), *kinds = json_object();
  for (size_t i = 0; i < SPEND_KINDS; i++)
    if (spends->kinds[i].calls > 0)
      json_object_set_new(kinds, names[i], spend_json(&spends->kinds[i]));
  json_object_set_new(out, "purposes", kinds);
  json_object_set_new(out, "movements", list_json(&spends->movements));
  json_object_set_new(out, "providers", list_json(&spends->providers));
  return out;
}

const char *const price_names[] = {"input", "output", "cached", "cache_write", "reasoning", NULL};

bool spend_lacks_cost(const json_t *usage) {
  return usage != NULL && json_at(usage, "cost_usd") == NULL &&
         (json_at(usage, "input") != NULL || json_at(usage, "output") != NULL);
}

static double price_or(const struct price *price, enum price_kind kind, enum price_kind otherwise) {
  double known = price->of[kind] >= 0 ? price->of[kind] : price->of[otherwise];
  return known > 0 ? known : 0;
}

json_t *spend_at_price(const json_t *usage, const struct price *price, const char *from,
                       const char *list) {
  double input = (double)bounded(json_at(usage, "input"));
  double output = (double)bounded(json_at(usage, "output"));
  double cached = (double)bounded(json_at(usage, "cached"));
  double written = (double)bounded(json_at(usage, "cache_write"));
  double reasoning = (double)bounded(json_at(usage, "reasoning"));
  double fresh = input - cached - written, said = output - reasoning;
  double cost = (fresh > 0 ? fresh : 0) * price_or(price, PRICE_INPUT, PRICE_INPUT) +
                cached * price_or(price, PRICE_CACHED, PRICE_INPUT) +
                written * price_or(price, PRICE_CACHE_WRITE, PRICE_INPUT) +
                (said > 0 ? said : 0) * price_or(price, PRICE_OUTPUT, PRICE_OUTPUT) +
                (said > 0 ? reasoning : output) * price_or(price, PRICE_REASONING, PRICE_OUTPUT);
  json_t *priced = json_clone_top(usage);
  json_object_set_new(priced, "cost_usd",
                      json_real((double)(int64_t)(cost * NANO / PRICE_TOKENS + 0.5) / NANO));
  json_object_set_new(priced, "cost_from", json_string(from));
  if (list != NULL)
    json_object_set_new(priced, "cost_list", json_string(list));
  return priced;
}

json_t *spend_priced(const json_t *usage, const json_t *prices, struct str model) {
  const json_t *own = json_object_getn(prices, model.p ? model.p : "", model.n);
  struct price price;
  if (own == NULL || !spend_lacks_cost(usage))
    return json_incref((json_t *)usage);
  for (size_t i = 0; i < PRICE_KINDS; i++) {
    const json_t *usd = json_object_get(own, price_names[i]);
    price.of[i] = json_is_number(usd) ? json_number_value(usd) : -1;
  }
  return spend_at_price(usage, &price, "prices", NULL);
}

void spend_print(const json_t *spent, struct buf *out) {
  json_int_t tokens = bounded(json_at(spent, "input")) + bounded(json_at(spent, "output"));
  json_int_t calls = bounded(json_at(spent, "calls"));
  json_int_t unpriced = bounded(json_at(spent, "unpriced"));
  json_int_t uncounted = bounded(json_at(spent, "uncounted"));
  const json_t *cost = json_at(spent, "cost_usd");
  if (tokens == 0 && cost == NULL && uncounted == 0)
    return;
  buf_printf(out, "%" JSON_INTEGER_FORMAT " tokens", tokens);
  if (uncounted > 0)
    buf_printf(out,
               " (%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " calls did not tell all)",
               uncounted, calls);
  if (cost == NULL)
    buf_puts(out, ", cost unknown");
  else
    buf_printf(out, ", $%.4f", json_number_value(cost));
  if (cost != NULL && unpriced > 0)
    buf_printf(out, " and that of %" JSON_INTEGER_FORMAT " calls, unknown", unpriced);
}
