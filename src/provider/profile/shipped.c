/* Holds what is known about a shipped profile before it is read: a start reads none of them. */
#include "provider/profile/profile.h"

#include "base/log.h"
#include "base/resource.h"
#include "json/scan.h"

#include <stddef.h>
#include <stdio.h>

static const struct {
  const char *key;
  size_t offset;
} abilities[] = {
    {"can_judge", offsetof(struct capability, can_judge)},
    {"takes_model", offsetof(struct capability, takes_model)},
    {"sessions", offsetof(struct capability, sessions)},
    {"forks", offsetof(struct capability, forks)},
};

json_t *profile_about(const struct profile *p) {
  const struct capability *c = &p->capability;
  json_t *about = json_pack("{ss}", "summary", c->summary), *options = json_array();
  if (p->program != NULL)
    json_object_set_new(about, "program", json_string(p->program));
  for (unsigned bit = 0; option_names[bit] != NULL; bit++)
    if (c->options & (1u << bit))
      json_array_append_new(options, json_string(option_names[bit]));
  json_object_set_new(about, "options", options);
  for (size_t i = 0; i < ARRAY_LEN(abilities); i++)
    json_object_set_new(about, abilities[i].key,
                        json_boolean(*(const bool *)((const char *)c + abilities[i].offset)));
  json_object_set_new(about, "structured", json_string(c->structured));
  profile_tell_held(p, about);
  if (c->judge_effort != NULL)
    json_object_set_new(about, "judge_effort", json_string(c->judge_effort));
  return about;
}

struct profile *profile_shipped(const char *name, const json_t *about) {
  struct profile *p = xcalloc(1, sizeof *p);
  p->file = "built in";
  p->capability.name = name;
  p->capability.summary = json_string_value(json_object_get(about, "summary"));
  p->capability.structured = json_string_value(json_object_get(about, "structured"));
  p->capability.options = profile_options_of(json_object_get(about, "options"));
  p->capability.judge_effort = json_string_value(json_object_get(about, "judge_effort"));
  p->capability.touches_files = true;
  profile_read_told(p, about);
  for (size_t i = 0; i < ARRAY_LEN(abilities); i++)
    *(bool *)((char *)&p->capability + abilities[i].offset) =
        json_is_true(json_object_get(about, abilities[i].key));
  p->program = json_string_value(json_object_get(about, "program"));
  p->pending = true;
  return p;
}

struct str profile_shipped_text(const char *name, const char *form) {
  char path[128];
  (void)snprintf(path, sizeof path, "provider/profiles/%s.%s", name, form);
  const struct resource *r = resource_find(path);
  if (r == NULL)
    BUG("%s is not there", path);
  return (struct str){r->p, r->n};
}

/* Reads a shipped document with our own scanner: jansson's takes four times as long, at every
 * start. */
json_t *profile_document(const char *name) {
  struct str json = profile_shipped_text(name, "json");
  struct jscan scan;
  struct jscan_result result;
  jscan_init(&scan, json.p, json.n);
  if (jscan_value(&scan, 0, &result) != JSCAN_OK)
    BUG("what is compiled in is no JSON");
  jscan_deinit(&scan);
  return result.value;
}
