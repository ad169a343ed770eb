/* Warns about values, schemas and references of a workflow that cannot work. */
#include "workflow/dialect.h"
#include "workflow/lint/part.h"
#include "workflow/scope.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "core/prompt.h"
#include "core/ref.h"
#include "extract/schema_check.h"
#include "format/template.h"
#include "schema/lint.h"
#include "structured/reask.h"

#include <assert.h>
#include <string.h>

static const json_t *structured_of(const struct lint *l, size_t movement) {
  return json_object_get(l->movements[movement].object, "structured_output");
}

/* Returns a piece of the file for a message, NUL-terminated. */
static const char *shown(struct lint *l, struct str s) {
  size_t n = s.n > LIMIT_NAME_BYTES ? LIMIT_NAME_BYTES : s.n;
  return arena_strndup(&l->arena, s.p, utf8_floor(s.p, n));
}

/* --- members of values --- */

/* Returns a schema's properties if they are all there is to know about an object: nothing elsewhere
 * adds to them. */
static const json_t *plain_properties(const json_t *schema) {
  static const char *const others[] = {"allOf",
                                       "anyOf",
                                       "oneOf",
                                       "if",
                                       "$ref",
                                       "$dynamicRef",
                                       "$recursiveRef",
                                       "patternProperties",
                                       "dependentSchemas"};
  for (size_t i = 0; i < ARRAY_LEN(others); i++)
    if (json_object_get(schema, others[i]) != NULL)
      return NULL;
  return json_object_get(schema, "properties");
}

static void unknown_member(struct lint *l, const char *place, size_t movement, struct str name,
                           const json_t *properties, bool closed) {
  const char *names[LIMIT_RULE_COUNT + 1], *key;
  size_t n = 0;
  json_t *value;
  json_object_foreach((json_t *)properties, key, value) {
    if (n < LIMIT_RULE_COUNT)
      names[n++] = key;
  }
  names[n] = NULL;
  struct buf all = {.max = 200};
  for (size_t i = 0; i < n; i++)
    buf_printf(&all, "%s%s", i ? ", " : "it has ", names[i]);
  const char *word = shown(l, name);
  lint_report(
      l, closed ? l->errors : l->warnings, place, "the schema of %s has no member %s: %s",
      l->names[movement], word,
      lint_suggestion(l, word, names,
                      arena_strndup(&l->arena, buf_c(&all), utf8_floor(buf_c(&all), all.n))));
  buf_deinit(&all);
}

/* Follows names as far as the schema knows them. Below an array a name means a member of its
 * items. */
void lint_member(struct lint *l, const char *place, size_t movement, const struct str *names,
                 size_t count) {
  const json_t *so = structured_of(l, movement), *doc = json_object_get(so, "schema");
  const json_t *schema = extract_schema_root(doc);
  if (so == NULL || (count > 0 && str_eq_c(names[0], "sentinel")))
    return;
  for (size_t i = 0; i < count; i++) {
    if (str_eq_c(names[i], "length"))
      return;
    long index;
    bool is_index = str_to_long(names[i], &index);
    while (json_is_object(json_object_get(schema, "items")))
      schema = json_object_get(schema, "items");
    if (is_index)
      continue;
    const json_t *properties = plain_properties(schema);
    if (properties == NULL)
      return;
    const json_t *member = json_object_getn(properties, names[i].p, names[i].n);
    if (member == NULL) {
      unknown_member(l, place, movement, names[i], properties,
                     json_is_false(json_object_get(schema, "additionalProperties")));
      return;
    }
    schema = member;
  }
}

/* --- {structured:...} --- */

struct names {
  struct lint *l;
  size_t movement;
};

void lint_reference(struct lint *l, const char *place, struct str path, const char *before,
                    const char *after) {
  enum { PARTS_MAX = 16 };
  struct str parts[PARTS_MAX], rest;
  struct prompt_ref ref;
  bool is_index, found;
  size_t count = 0, target = 0;
  l->names[l->count] = NULL; /* the ends make no values */
  found = prompt_ref_split(path, l->names, &ref);
  if (!found) {
    size_t n = strcspn(shown(l, path), ".[");
    const char *word = shown(l, (struct str){path.p, n});
    struct buf form = {0};
    buf_printf(&form, "write %sMOVEMENT.FIELD%s", before, after);
    lint_report(l, l->errors, place, "%s%s%s: there is no movement %s: %s", before, shown(l, path),
                after, word, lint_suggestion(l, word, l->names, buf_c(&form)));
    buf_deinit(&form);
  }
  l->names[l->count] = "COMPLETE";
  if (!found)
    return;
  while (target < l->count && !str_eq_c(ref.movement, l->names[target]))
    target++;
  rest = ref.rest;
  while (rest.n > 0 && count < PARTS_MAX) {
    if (!prompt_ref_next(&rest, &parts[count++], &is_index)) {
      lint_report(l, l->errors, place, "%s%s%s: write members as .name and items as [0]", before,
                  shown(l, path), after);
      return;
    }
  }
  if (structured_of(l, target) != NULL)
    lint_member(l, place, target, parts, count);
  else if (!l->movements[target].is_command &&
           json_object_get(l->movements[target].object, "ask") == NULL)
    lint_report(l, l->warnings, place,
                "%s%s%s: movement %s has no structured_output, so there may be no value", before,
                shown(l, path), after, l->names[target]);
}

static void lint_structured_check_name(void *ctx, struct str name) {
  const struct names *names = ctx;
  char place[DOC_PATH_BYTES];
  const size_t n = strlen(PROMPT_STRUCTURED);
  lint_path(names->l, place, names->movement, "instruction");
  lint_reference(names->l, place, (struct str){name.p + n, name.n - n}, "{" PROMPT_STRUCTURED, "}");
}

/* --- structured_output --- */

static bool asks_a_model(const json_t *invariants) {
  size_t i;
  json_t *item;
  json_array_foreach(invariants, i, item) {
    if (json_object_get(item, "ai") != NULL)
      return true;
  }
  return false;
}

static void check_reask(struct lint *l, size_t movement, const json_t *so) {
  const struct lint_movement *m = &l->movements[movement];
  const json_t *reasks = json_object_get(so, "max_reasks");
  const char *provider = lint_text(json_object_get(so, "reask"), "provider", NULL);
  char path[DOC_PATH_BYTES];
  if (json_integer_value(reasks) > REASK_WARN_COUNT)
    lint_report(l, l->warnings, lint_path(l, path, movement, "structured_output.max_reasks"),
                "each correction is another call, and what %d of them did not fix, more of them "
                "rarely do: improve the prompt or the schema",
                REASK_WARN_COUNT);
  if (m->is_command && provider == NULL && json_integer_value(reasks) > 0)
    lint_report(l, l->errors, lint_path(l, path, movement, "structured_output.max_reasks"),
                "movement %s runs a command, which cannot correct its output: set reask.provider, "
                "or max_reasks: 0",
                m->name);
  if (provider == NULL)
    return;
  lint_path(l, path, movement, "structured_output.reask.provider");
  const struct capability *cap = lint_provider(l, path, provider);
  if (cap != NULL && !cap->can_judge)
    lint_report(l, l->errors, path, "provider %s cannot correct an answer: name another", provider);
}

/* Checks who is asked about invariants: the judge. */
static void check_questions(struct lint *l, size_t movement, const json_t *so) {
  const struct lint_movement *m = &l->movements[movement];
  const char *judge = lint_text(json_object_get(m->object, "judge"), "provider",
                                lint_text(json_object_get(l->doc, "judge"), "provider", NULL));
  char path[DOC_PATH_BYTES];
  if (asks_a_model(json_object_get(so, "invariants")) && m->is_command && judge == NULL)
    lint_report(l, l->errors, lint_path(l, path, movement, "structured_output.invariants"),
                "movement %s runs a command, which cannot answer a question: set judge.provider",
                m->name);
}

static void check_tag_stage(struct lint *l, size_t movement) {
  const struct lint_movement *m = &l->movements[movement];
  const json_t *stages = json_object_get(json_object_get(m->object, "judge"), "stages"), *stage;
  char path[DOC_PATH_BYTES];
  size_t i;
  json_array_foreach(stages, i, stage) {
    const char *name = json_string_value(stage);
    if (name != NULL && strcmp(name, "phase1_tag") == 0)
      lint_report(l, l->warnings, lint_path(l, path, movement, "judge.stages"),
                  "phase1_tag looks for a tag in the agent's answer, which is JSON alone here: use "
                  "when(structured.%s...) rules, or another stage",
                  m->name);
  }
}

/* Reports what is sound but asks for trouble when a model has to fill it. */
static void lint_structured_check_schema(struct lint *l, size_t movement, const json_t *so) {
  struct schema_errors found = {0};
  char path[DOC_PATH_BYTES];
  lint_path(l, path, movement, "structured_output.schema");
  schema_lint(json_object_get(so, "schema"), json_object_get(so, "invariants") != NULL, &found);
  for (size_t i = 0; i < found.count; i++)
    lint_report(l, l->warnings, path, "%s: %s", found.items[i].path, found.items[i].message);
  schema_errors_deinit(&found);
}

static bool is_of_item(struct str name) {
  return str_eq_c(name, "item") || str_eq_c(name, "index") || str_starts(name, "item.") ||
         str_starts(name, "item[");
}

static bool runs_for_items(const struct lint *l, size_t movement) {
  size_t group = l->movements[movement].group;
  return group != LINT_NO_GROUP && json_object_get(l->movements[group].object, "for_each") != NULL;
}

/* Reports {input:NAME} of a workflow that declares no such param. */
static void check_input(void *ctx, struct str name) {
  const struct names *names = ctx;
  char place[DOC_PATH_BYTES];
  struct str own = {name.p + strlen(PROMPT_INPUT), name.n - strlen(PROMPT_INPUT)};
  if (scope_is_param(own) &&
      json_object_getn(json_object_get(names->l->doc, "inputs"), own.p, own.n) == NULL)
    lint_report(
        names->l, names->l->warnings, lint_path(names->l, place, names->movement, "instruction"),
        "{%s} names no param and stays as it is: declare it below params:", shown(names->l, name));
}

/* Reports a typo such as {previous_respons}, which would reach the prompt as it is. */
static void check_variable(void *ctx, struct str name) {
  const struct names *names = ctx;
  char place[DOC_PATH_BYTES];
  const char *foreign = dialect_variable(name);
  if (is_of_item(name) && !runs_for_items(names->l, names->movement))
    lint_report(
        names->l, names->l->warnings, lint_path(names->l, place, names->movement, "instruction"),
        "{%s} stays as it is: only the child of a for_each has items", shown(names->l, name));
  if (foreign != NULL)
    lint_report(names->l, names->l->warnings,
                lint_path(names->l, place, names->movement, "instruction"),
                "{%s} is not filled in and stays as it is: %s", shown(names->l, name), foreign);
  if (is_of_item(name))
    return;
  for (size_t i = 0; prompt_variable_names[i]; i++)
    if (str_eq_c(name, prompt_variable_names[i]))
      return;
  const char *near = str_nearest(name, prompt_variable_names);
  if (near == NULL)
    return;
  lint_report(
      names->l, names->l->warnings, lint_path(names->l, place, names->movement, "instruction"),
      "{%s} is no variable and stays as it is: did you mean {%s}?", shown(names->l, name), near);
}

void lint_structured(struct lint *l, size_t movement) {
  assert(movement < l->count);
  const struct lint_movement *m = &l->movements[movement];
  const json_t *so = structured_of(l, movement);
  const char *instruction = lint_text(m->object, "instruction", "");
  struct names names = {l, movement};
  template_names(str_from(instruction), PROMPT_STRUCTURED, lint_structured_check_name, &names);
  template_names(str_from(instruction), PROMPT_INPUT, check_input, &names);
  template_names(str_from(instruction), "", check_variable, &names);
  lint_reports(l, movement);
  if (so == NULL)
    return;
  lint_structured_check_schema(l, movement, so);
  check_reask(l, movement, so);
  check_questions(l, movement, so);
  check_tag_stage(l, movement);
}
