/* Looks up what models cost in dated lists, and reads public ones. */
#include "provider/price_list.h"

#include "base/limits.h"
#include "base/memory.h"
#include "base/resource.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_BYTES = 160, DATE_DIGITS = 8 };

/* --- lines --- */

static double read_number(struct str word) {
  char text[32], *end;
  if (word.n == 0 || word.n >= sizeof text)
    return -1;
  print_into(text, sizeof text, STR_FMT, STR_ARG(word));
  double value = strtod(text, &end);
  return *end == '\0' && value >= 0 && value <= LIMIT_COST_USD ? value : -1;
}

bool price_list_next(struct str *rest, struct str *maker, struct str *model, struct str *row) {
  while (rest->n > 0) {
    struct str line = str_trim(str_next_line(rest)), words = line;
    *row = line;
    *maker = str_cut(&words, ' ');
    *model = str_cut(&words, ' ');
    if (words.n > 0 && line.p[0] != '#' && !str_eq_c(*maker, "list") && !str_eq_c(*maker, "by"))
      return true;
  }
  return false;
}

/* Reads the prices that hold for a request of so many tokens. */
static void read_price(struct str row, int64_t input, struct price *price) {
  long above;
  for (size_t i = 0; i < PRICE_KINDS; i++)
    price->of[i] = -1;
  (void)str_cut(&row, ' ');
  (void)str_cut(&row, ' ');
  while (row.n > 0) {
    struct str word = str_cut(&row, ' '), value = str_cut(&row, ' ');
    if (str_eq_c(word, "above") && (!str_to_long(value, &above) || input <= above))
      return;
    int kind = str_index(word, price_names, PRICE_KINDS);
    if (kind >= 0)
      price->of[kind] = read_number(value);
  }
}

struct str price_list_name(struct str list) {
  while (list.n > 0) {
    struct str line = str_trim(str_next_line(&list));
    if (str_drop(&line, "list "))
      return line;
  }
  return STR("");
}

/* --- names --- */

/* Writes a model's name as it is compared. */
static void compared_name(struct str model, char out[MODEL_BYTES]) {
  static const char *const regions[] = {"us.", "eu.", "apac.", "jp.", "global."};
  size_t n = 0, digits = 0;
  for (size_t i = 0; i < ARRAY_LEN(regions); i++)
    if (str_drop(&model, regions[i]))
      break;
  bool bedrock = str_drop(&model, "anthropic.");
  (void)str_drop(&model, "models/");
  while (n < model.n && n + 1 < MODEL_BYTES && strchr("@:[", model.p[n]) == NULL) {
    out[n] = model.p[n] == '.' || model.p[n] == '_' ? '-' : str_lower(model.p[n]);
    n++;
  }
  if (bedrock && n > 3 && out[n - 3] == '-' && out[n - 2] == 'v' && str_is_digit(out[n - 1]))
    n -= 3;
  size_t end = n; /* -20251101, -2025-11-01 */
  while (end > 0 && digits < DATE_DIGITS && (str_is_digit(out[end - 1]) || out[end - 1] == '-'))
    digits += str_is_digit(out[--end]);
  if (digits == DATE_DIGITS && end > 1 && out[end - 1] == '-' &&
      (n - end == DATE_DIGITS || (n - end == DATE_DIGITS + 2 && out[end + 4] == '-')))
    n = end - 1;
  out[n] = '\0';
}

/* Returns who makes what a provider, or a prefix, of this name serves; itself, if it is a maker;
 * empty: not known. */
static struct str maker_of(const struct str lists[2], struct str name) {
  for (size_t i = 0; i < 2; i++) {
    struct str rest = lists[i], maker, model, row;
    while (rest.n > 0) {
      struct str line = str_next_line(&rest);
      if (str_drop(&line, "by ") && str_eq(str_cut(&line, ' '), name))
        return line;
    }
    rest = lists[i];
    while (price_list_next(&rest, &maker, &model, &row))
      if (str_eq(maker, name))
        return maker;
  }
  return STR("");
}

/* Finds a model of a maker, or of any, if that is empty: by its exact name first. */
static bool find_row(struct str list, struct str maker, struct str model, struct str *found) {
  char wanted[MODEL_BYTES], plain[MODEL_BYTES];
  struct str rest = list, by, name, row;
  bool any = false;
  compared_name(model, wanted);
  while (price_list_next(&rest, &by, &name, &row)) {
    if (maker.n > 0 && !str_eq(by, maker))
      continue;
    if (str_eq(name, model)) {
      *found = row;
      return true;
    }
    compared_name(name, plain);
    if (!any && strcmp(plain, wanted) == 0) {
      *found = row;
      any = true;
    }
  }
  return any;
}

/* --- the lists of a registry --- */

static void release_text(void *owned) {
  free(owned);
}

void price_lists_keep(struct provider_registry *registry, struct str text) {
  if (text.n > 0)
    registry_keep(registry, xstrndup(text.p, text.n), release_text);
}

void price_lists_of(const struct provider_registry *registry, struct str lists[2]) {
  const struct resource *shipped = resource_find("provider/prices.txt");
  const char *own = registry_kept(registry, release_text);
  size_t n = 0;
  lists[1] = STR("");
  if (own != NULL)
    lists[n++] = str_from(own);
  lists[n] = (struct str){shipped->p, shipped->n};
}

bool price_lists_find(const struct provider_registry *registry, struct str provider,
                      struct str model, int64_t input, struct price_found *found) {
  const struct provider *p = registry_find(registry, provider);
  const json_t *type = json_at(p != NULL ? p->settings : NULL, "type");
  struct str lists[2], row, prefix = model, bare = model;
  price_lists_of(registry, lists);
  for (size_t i = 0; i < model.n; i++)
    if (model.p[i] == '/') {
      prefix = (struct str){model.p, i};
      bare = (struct str){model.p + i + 1, model.n - i - 1};
    }
  bool has_prefix = bare.n < model.n;
  struct str by = maker_of(lists, provider), kind = maker_of(lists, json_view(type));
  if (by.n == 0 || str_eq_c(kind, "-"))
    by = kind;
  struct str of = has_prefix ? maker_of(lists, prefix) : STR("");
  if (model.n == 0 || str_eq_c(by, "-"))
    return false;
  /* A request of an agent's is smaller than the call that it is part of. */
  if (p != NULL && p->capability.touches_files)
    input = 0;
  for (size_t i = 0; i < 2; i++) {
    bool is = by.n > 0 && find_row(lists[i], by, model, &row);
    if (!is && has_prefix)
      is = of.n > 0 && find_row(lists[i], of, bare, &row);
    else if (!is && by.n == 0)
      is = find_row(lists[i], by, model, &row);
    if (!is)
      continue;
    struct str name = price_list_name(lists[i]);
    read_price(row, input, &found->price);
    print_into(found->list, sizeof found->list, STR_FMT, STR_ARG(name));
    return true;
  }
  return false;
}

/* --- public lists --- */

struct importing {
  struct str shipped[2];
  struct buf *out;
  size_t count;
};

static bool is_name(struct str word) {
  bool fine = word.n > 0 && word.n < MODEL_BYTES && word.p[0] != '#' && !str_has_control(word);
  return fine && memchr(word.p, ' ', word.n) == NULL && !str_eq_c(word, "list") &&
         !str_eq_c(word, "by");
}

static bool put_prices(struct importing *import, const json_t *from, const char *const *keys,
                       double scale) {
  bool any = false;
  for (size_t i = 0; i < PRICE_KINDS; i++) {
    const json_t *value = json_object_get(from, keys[i]);
    char number[STR_REAL_BYTES];
    double usd = json_is_string(value) ? read_number(json_view(value)) : json_number_value(value);
    if (value == NULL || json_is_null(value) || usd < 0 || usd * scale > LIMIT_COST_USD)
      continue;
    str_from_real(number, round(usd * scale * 1e9) / 1e9);
    buf_printf(import->out, " %s %s", price_names[i], number);
    any |= usd > 0;
  }
  return any;
}

/* Adds a model; one without any price, or that costs nothing, is left out. */
static void import_model(struct importing *import, struct str maker, struct str model,
                         const json_t *prices, const char *const *keys, double scale) {
  size_t before = import->out->n;
  if (!is_name(maker) || !is_name(model))
    return;
  buf_printf(import->out, STR_FMT " " STR_FMT, STR_ARG(maker), STR_ARG(model));
  if (!put_prices(import, prices, keys, scale)) {
    import->out->p[import->out->n = before] = '\0';
    return;
  }
  const json_t *over = json_at(prices, "context_over_200k"), *tiers = json_at(prices, "tiers");
  JSON_EACH(tiers, i, tier) {
    json_int_t above = json_int_at(json_at(tier, "tier"), "size");
    if (above > 0) {
      buf_printf(import->out, " above %lld", (long long)above);
      (void)put_prices(import, tier, keys, scale);
      over = NULL;
    }
  }
  if (over != NULL) {
    buf_puts(import->out, " above 200000");
    (void)put_prices(import, over, keys, scale);
  }
  buf_puts(import->out, "\n");
  import->count++;
}

/* {"anthropic": {"models": {"claude-opus-5-5": {"cost": {"input": 4, ...}}}}}: makers first. */
static void import_models_dev(struct importing *import, const json_t *doc) {
  static const char *const keys[] = {"input", "output", "cache_read", "cache_write", "reasoning"};
  for (int makers = 1; makers >= 0; makers--) {
    JSON_MEMBERS(doc, host, value) {
      bool is_maker = maker_of(import->shipped, str_from(host)).n > 0;
      JSON_MEMBERS(json_at(value, "models"), id, model) {
        if (is_maker == makers)
          import_model(import, str_from(host), str_from(id), json_at(model, "cost"), keys, 1);
      }
    }
  }
}

/* {"data": [{"id": "anthropic/claude-opus-5.5", "pricing": {"prompt": "0.000004", ...}}]} */
static void import_openrouter(struct importing *import, const json_t *list) {
  static const char *const keys[] = {"prompt", "completion", "input_cache_read",
                                     "input_cache_write", "internal_reasoning"};
  JSON_EACH(list, i, model) {
    struct str id = json_view_at(model, "id"), maker = str_cut(&id, '/');
    struct str known = maker_of(import->shipped, maker);
    if (id.n > 0 && memchr(id.p, ':', id.n) == NULL)
      import_model(import, known.n > 1 ? known : maker, id, json_at(model, "pricing"), keys, 1e6);
  }
}

static bool import_lines(struct importing *import, struct str bytes) {
  struct str rest = bytes, maker, model, row, name = price_list_name(bytes);
  struct price price;
  while (price_list_next(&rest, &maker, &model, &row)) {
    read_price(row, 0, &price);
    if (price.of[PRICE_INPUT] < 0 && price.of[PRICE_OUTPUT] < 0)
      return false;
    import->count++;
  }
  buf_str(import->out, bytes);
  return name.n > 0;
}

bool price_list_import(struct str bytes, const char *day, struct buf *out, size_t *count,
                       struct err *err) {
  const struct resource *shipped = resource_find("provider/prices.txt");
  struct importing import = {.shipped = {{shipped->p, shipped->n}, {0}}, .out = out};
  json_auto_t *doc = json_loadb(bytes.p, bytes.n, 0, NULL);
  if (doc != NULL) {
    bool routed = json_is_array(json_at(doc, "data"));
    buf_printf(out, "list %s %s\n", routed ? "openrouter" : "models.dev", day);
    if (routed)
      import_openrouter(&import, json_at(doc, "data"));
    else
      import_models_dev(&import, doc);
  } else if (!import_lines(&import, bytes)) {
    import.count = 0;
  }
  *count = import.count;
  return import.count > 0 ||
         err_set(err, ERR_INVALID,
                 "it is no list of prices: OpenRouter's (https://openrouter.ai/api/v1/models), "
                 "models.dev's (https://models.dev/api.json) and what segue prices prints are "
                 "read");
}
