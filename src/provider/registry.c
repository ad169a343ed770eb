/* Keeps the backends by name and checks the options given to them. */
#include "provider/registry.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"

#include <assert.h>
#include <stdlib.h>

struct registry_kept {
  void *owned;
  void (*release)(void *owned);
};

struct provider_registry {
  struct provider providers[LIMIT_PROVIDER_COUNT];
  struct capability capabilities[LIMIT_PROVIDER_COUNT + 1]; /* the same order, NULL-ended */
  size_t count;
  json_t *settings;
  struct registry_kept *kept;
  size_t kept_count, kept_room;
};

static const struct provider *const built_in[] = {&provider_script, &provider_command};

static void registry_put(struct provider_registry *reg, const struct provider *provider) {
  struct provider *p = &reg->providers[reg->count];
  *p = *provider;
  p->settings = json_object_get(reg->settings, p->capability.name);
  reg->capabilities[reg->count++] = p->capability;
}

struct provider_registry *registry_new(const json_t *settings) {
  struct provider_registry *reg = xcalloc(1, sizeof *reg);
  reg->settings = json_incref((json_t *)settings);
  for (size_t i = 0; i < ARRAY_LEN(built_in); i++)
    registry_put(reg, built_in[i]);
  return reg;
}

void registry_free(struct provider_registry *reg) {
  if (reg == NULL)
    return;
  for (size_t i = reg->kept_count; i > 0; i--)
    reg->kept[i - 1].release(reg->kept[i - 1].owned);
  free(reg->kept);
  json_decref(reg->settings);
  free(reg);
}

void registry_keep(struct provider_registry *reg, void *owned, void (*release)(void *owned)) {
  assert(release != NULL);
  reg->kept = xgrow(reg->kept, &reg->kept_room, reg->kept_count + 1, sizeof *reg->kept);
  reg->kept[reg->kept_count++] = (struct registry_kept){owned, release};
}

void *registry_kept(const struct provider_registry *reg, void (*release)(void *owned)) {
  for (size_t i = 0; i < reg->kept_count; i++)
    if (reg->kept[i].release == release)
      return reg->kept[i].owned;
  return NULL;
}

bool registry_add(struct provider_registry *reg, const struct provider *provider, struct err *err) {
  assert(provider->capability.name != NULL);
  assert(provider->ops != NULL);
  const char *name = provider->capability.name;
  if (registry_find(reg, str_from(name)) != NULL)
    return err_set(err, ERR_INVALID, "there are two providers named %s", name);
  if (reg->count == LIMIT_PROVIDER_COUNT)
    return err_set(err, ERR_INVALID, "provider %s is one too many: the limit is %u", name,
                   LIMIT_PROVIDER_COUNT);
  registry_put(reg, provider);
  return true;
}

const struct provider *registry_find(const struct provider_registry *reg, struct str name) {
  for (size_t i = 0; i < reg->count; i++)
    if (str_eq_c(name, reg->providers[i].capability.name))
      return &reg->providers[i];
  return NULL;
}

const struct provider *registry_at(const struct provider_registry *reg, size_t i) {
  return i < reg->count ? &reg->providers[i] : NULL;
}

const struct capability *registry_capabilities(const struct provider_registry *reg) {
  return reg->capabilities;
}

void registry_names(const struct provider_registry *reg, struct buf *out) {
  for (size_t i = 0; i < reg->count; i++)
    buf_printf(out, "%s%s", i ? ", " : "", reg->providers[i].capability.name);
}

bool registry_unknown(const struct provider_registry *reg, struct str name, struct err *err) {
  const char **names = xcalloc(reg->count + 1, sizeof *names);
  buf_auto_t all = {0};
  for (size_t i = 0; i < reg->count; i++)
    names[i] = reg->providers[i].capability.name;
  const char *near = str_nearest(name, names);
  if (near == NULL)
    registry_names(reg, &all);
  err_set(err, ERR_USAGE, "there is no provider \"%.*s\": %s%s%s", name.n > 80 ? 80 : (int)name.n,
          name.n ? name.p : "", near ? "did you mean " : "use one of ", near ? near : buf_c(&all),
          near ? "?" : "");
  free(names);
  return false;
}

const char *provider_news_name(enum provider_news_kind kind) {
  static const char *const names[] = {"text",  "thinking",   "session", "tool", "usage",
                                      "retry", "permission", "note",    "steer"};
  return names[kind];
}

void provider_tell(const struct provider_sink *sink, enum provider_news_kind kind, struct str text,
                   json_t *owned_data) {
  const struct provider_news news = {.kind = kind, .text = text, .data = owned_data};
  if (sink->news != NULL)
    sink->news(sink->ctx, &news);
  json_decref(owned_data);
}

static const char *bad_value(const char *name, const json_t *value) {
  if (json_is_null(value)) /* this removes what was written elsewhere */
    return NULL;
  json_int_t n = json_integer_value(value);
  double x = json_number_value(value);
  if (str_eq_c(str_from(name), "temperature"))
    return json_is_number(value) && x >= 0 && x <= 2 ? NULL : "a number from 0 to 2";
  if (str_eq_c(str_from(name), "seed"))
    return json_is_integer(value) ? NULL : "an integer";
  bool in_range = json_is_integer(value) && n > 0 && n <= LIMIT_OPTION_TOKENS;
  if (str_eq_c(str_from(name), "max_tokens"))
    return in_range ? NULL : "an integer from 1 to 1000000000";
  return json_is_string(value) && json_string_length(value) > 0 ? NULL : "a word, such as high";
}

bool provider_check_options(const struct capability *capability, const json_t *options,
                            struct err *err) {
  JSON_MEMBERS(options, name, value) {
    int bit = str_index(str_from(name), option_names, str_count(option_names));
    if (bit < 0) {
      const char *near = str_nearest(str_from(name), option_names);
      return err_set(err, ERR_USAGE, "there is no option \"%s\": %s%s%s", name,
                     near ? "did you mean \"" : "use temperature, seed, max_tokens or effort",
                     near ? near : "", near ? "\"?" : "");
    }
    if ((capability->options & (1u << bit)) == 0)
      return err_set(err, ERR_USAGE, "provider %s takes no %s: remove it", capability->name, name);
    const char *wanted = bad_value(name, value);
    if (wanted != NULL)
      return err_set(err, ERR_USAGE, "option %s must be %s", name, wanted);
  }
  return true;
}
