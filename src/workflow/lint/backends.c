/* Checks who works and who judges: backends that do not exist, cannot judge, or take no such
 * option. */
#include "workflow/lint/part.h"

#include "base/buf.h"

#include <assert.h>
#include <string.h>

const struct capability *lint_provider(struct lint *l, const char *path, const char *name) {
  const char *names[65];
  size_t n = 0;
  const struct capability *found = capability_find(l->env->providers, str_from(name));
  if (found != NULL)
    return found;
  for (const struct capability *c = l->env->providers; c->name && n < ARRAY_LEN(names) - 1; c++)
    names[n++] = c->name;
  names[n] = NULL;
  struct buf all = {0};
  for (size_t i = 0; i < n; i++)
    buf_printf(&all, "%s%s", i ? ", " : "use one of ", names[i]);
  const char *list = arena_strdup(&l->arena, buf_c(&all));
  buf_deinit(&all);
  lint_report(l, l->errors, path, "there is no provider %s: %s", name,
              lint_suggestion(l, name, names, list));
  return NULL;
}

/* Holds a value that may be inherited: its text, and the path of its key. */
struct setting {
  const char *text; /* NULL: nowhere in the file */
  char path[DOC_PATH_BYTES];
};

static void check_options(struct lint *l, const json_t *options, const char *path,
                          const char *provider) {
  const struct capability *c = capability_find(l->env->providers, str_from(provider));
  for (size_t i = 0; c && option_names[i]; i++) {
    char option_path[DOC_PATH_BYTES];
    if (json_object_get(options, option_names[i]) == NULL || (c->options & (1u << i)) != 0)
      continue;
    doc_path_member(option_path, path, option_names[i]);
    lint_report(l, l->errors, option_path, "provider %s takes no %s: remove it", c->name,
                option_names[i]);
  }
}

/* Returns the movement's own `section.key`, else the workflow's; section may be empty. */
static struct setting setting_of(struct lint *l, size_t movement, const char *section,
                                 const char *key) {
  struct setting s = {0};
  const json_t *holders[] = {l->movements[movement].object, l->doc};
  for (size_t i = 0; i < 2; i++) {
    const json_t *holder = *section ? json_object_get(holders[i], section) : holders[i];
    if ((s.text = lint_text(holder, key, NULL)) == NULL)
      continue;
    doc_path_member(s.path, i == 0 ? lint_path(l, s.path, movement, "") : "", section);
    doc_path_member(s.path, s.path, key);
    return s;
  }
  return s;
}

static const json_t *lint_options_of(struct lint *l, size_t movement, const char *section,
                                     char path[DOC_PATH_BYTES]) {
  const struct lint_movement *m = &l->movements[movement];
  const json_t *own = *section ? json_object_get(m->object, section) : m->object;
  const json_t *all = *section ? json_object_get(l->doc, section) : l->doc;
  const json_t *options = json_object_get(own, "options");
  doc_path_member(path, options ? lint_path(l, path, movement, "") : "", section);
  doc_path_member(path, path, "options");
  return options ? options : json_object_get(all, "options");
}

/* Checks the agent's side. Returns who works on the movement, "" if the file does not say. */
static const char *check_worker(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  char path[DOC_PATH_BYTES];
  const json_t *options = lint_options_of(l, movement, "", path);
  if (m->is_command) { /* the workflow's options are for agents: only its own count */
    if (json_object_get(m->object, "options") != NULL)
      check_options(l, options, path, "command");
    return "command";
  }
  struct setting provider = setting_of(l, movement, "", "provider");
  if (l->env->chosen.n > 0)
    provider.text = arena_strndup(&l->arena, l->env->chosen.p, l->env->chosen.n);
  else if (provider.text == NULL)
    provider.text = arena_strndup(&l->arena, l->env->provider.n > 0 ? l->env->provider.p : "",
                                  l->env->provider.n);
  else if (strcmp(provider.text, "command") == 0)
    lint_report(
        l, l->errors, provider.path,
        "provider command runs what a movement's command names, and movement %s has none: write "
        "command: [program, argument, ...] in it, or another provider",
        l->names[movement]);
  else
    (void)lint_provider(l, provider.path, provider.text);
  check_options(l, options, path, provider.text);
  return provider.text;
}

/* Checks the providers to fall back to. `path` is the place of the provider key beside them. */
static void check_fallback(struct lint *l, const json_t *holder, const char *path, bool judges) {
  size_t i;
  json_t *name;
  json_array_foreach(json_object_get(holder, "fallback"), i, name) {
    const char *word = json_string_value(name);
    const struct capability *c = strcmp(word, "command") == 0 ? NULL : lint_provider(l, path, word);
    if (strcmp(word, "command") == 0)
      lint_report(
          l, l->errors, path,
          "provider command runs a movement's own program: it cannot take over from another");
    else if (c != NULL && judges && !c->can_judge)
      lint_report(l, l->errors, path, "provider %s cannot judge: leave it out of judge.provider",
                  c->name);
  }
}

/* Checks each judge that votes as if it judged alone. */
static void check_panel(struct lint *l, const json_t *judge, const char *path) {
  const json_t *panel = json_object_get(judge, "panel");
  size_t i;
  json_t *name;
  json_array_foreach((json_t *)panel, i, name) {
    const struct capability *c = lint_provider(l, path, json_string_value(name));
    if (c != NULL && !c->can_judge)
      lint_report(l, l->errors, path, "provider %s cannot judge: leave it out of judge.panel",
                  c->name);
  }
  if (json_is_array(panel) &&
      json_integer_value(json_object_get(judge, "agree")) > (json_int_t)json_array_size(panel))
    lint_report(l, l->errors, path, "agree is more than the number of judges on the panel: %zu",
                json_array_size(panel));
}

static bool calls_no_model(struct lint *l, size_t movement) {
  const json_t *stages =
      json_object_get(json_object_get(l->movements[movement].object, "judge"), "stages");
  if (stages == NULL)
    stages = json_object_get(json_object_get(l->doc, "judge"), "stages");
  const char *only = json_string_value(json_array_get(stages, 0));
  return json_array_size(stages) == 1 && only && strcmp(only, "phase1_tag") == 0;
}

static size_t visible_labels(const struct lint_movement *m) {
  size_t count = 0;
  for (size_t i = 0; i < m->rule_count; i++) {
    const struct rule *rule = &m->rules[i].rule;
    bool fresh = rule->label.n > 0 && !rule->interactive_only;
    for (size_t k = 0; k < i && fresh; k++)
      fresh = m->rules[k].rule.interactive_only || !str_eq(m->rules[k].rule.label, rule->label);
    count += fresh;
  }
  return count;
}

static bool has_panel(const struct lint *l, size_t movement) {
  const json_t *own = json_object_get(l->movements[movement].object, "judge");
  const json_t *panel = json_object_get(own, "panel");
  if (panel == NULL)
    panel = json_object_get(json_object_get(l->doc, "judge"), "panel");
  return json_is_array(panel);
}

static void check_judge(struct lint *l, size_t movement, const char *worker) {
  const struct lint_movement *m = &l->movements[movement];
  struct setting judge = setting_of(l, movement, "judge", "provider");
  bool needed = visible_labels(m) >= 2 && !calls_no_model(l, movement);
  const char *name = judge.text ? judge.text : worker;
  char path[DOC_PATH_BYTES];
  if (judge.text == NULL && has_panel(l, movement))
    return; /* checked in its own place */
  if (judge.text == NULL && m->is_command) {
    if (needed)
      lint_report(
          l, l->errors, lint_path(l, path, movement, "rules"),
          "movement %s runs a command, which cannot judge its labels: write when(exit == 0) "
          "rules, or set judge.provider",
          m->name);
    return;
  }
  const struct capability *c;
  if (judge.text)
    c = lint_provider(l, judge.path, judge.text);
  else
    c = capability_find(l->env->providers, str_from(name));
  if (c != NULL && !c->can_judge && (judge.text || needed))
    lint_report(l, l->errors, judge.text ? judge.path : lint_path(l, path, movement, "rules"),
                "provider %s cannot judge: name another in judge.provider", c->name);
  const json_t *options = lint_options_of(l, movement, "judge", path);
  check_options(l, options, path, name);
  struct setting effort = setting_of(l, movement, "judge", "effort");
  c = capability_find(l->env->providers, str_from(name));
  if (effort.text != NULL && c != NULL && (c->options & OPTION_EFFORT) == 0)
    lint_report(l, l->errors, effort.path, "provider %s takes no effort: remove it", name);
}

void lint_backends(struct lint *l) {
  const char *provider = lint_text(l->doc, "provider", NULL);
  const json_t *judge = json_object_get(l->doc, "judge");
  if (provider != NULL && l->env->chosen.n == 0)
    (void)lint_provider(l, "provider", provider);
  check_fallback(l, l->doc, "provider", false);
  check_fallback(l, judge, "judge.provider", true);
  check_panel(l, judge, "judge.panel");
}

void lint_backends_of(struct lint *l, size_t movement) {
  assert(movement < l->count);
  const json_t *own = l->movements[movement].object, *judge = json_object_get(own, "judge");
  char path[DOC_PATH_BYTES];
  check_fallback(l, own, lint_path(l, path, movement, "provider"), false);
  check_fallback(l, judge, lint_path(l, path, movement, "judge.provider"), true);
  check_panel(l, judge, lint_path(l, path, movement, "judge.panel"));
  check_judge(l, movement, check_worker(l, movement));
}
