/* Renders templates to pieces, and finds the place that holds each in the log. */
#include "core/prompt/internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "core/kept.h"
#include "core/ref.h"
#include "format/json_object.h"
#include "format/template.h"

#include <stdlib.h>
#include <string.h>

static const struct str template_folder = STR_INIT("prompts/");

const char *const prompt_template_names[] = {
    "execute.md", "judge_structured.md", "judge_tag.md", "judge_ai.md", "reask.md",
    "schema.md",  "invariant.md",        "report.md",    "loop.md",     NULL};

struct prompt_templates {
  struct {
    const struct resource *resource; /* it never moves */
    struct template *parsed;
  } items[16];
  size_t count;
};

struct prompt_templates *prompt_templates_new(void) {
  return xcalloc(1, sizeof(struct prompt_templates));
}

void prompt_templates_free(struct prompt_templates *t) {
  for (size_t i = 0; t != NULL && i < t->count; i++)
    template_free(t->items[i].parsed);
  free(t);
}

/* Returns the shipped template, which is parsed once, when it is first rendered; NULL if there is
 * no room to keep it. */
static const struct template *parsed_template(struct prompt_templates *t, const struct resource *r,
                                              const struct template_var *vars) {
  size_t i = 0;
  while (i < t->count && t->items[i].resource != r)
    i++;
  if (i == ARRAY_LEN(t->items))
    return NULL;
  if (i == t->count) {
    t->items[i].resource = r;
    t->items[i].parsed = template_parse((struct str){r->p, r->n}, vars);
    t->count++;
  }
  return t->items[i].parsed;
}

void prompt_init(struct prompt *out, size_t n) {
  enum { TEMPLATE_BYTES = 2048 };
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  buf_reserve(&out->bytes, TEMPLATE_BYTES + (n < LIMIT_INLINE_TEXT_BYTES ? n : 0));
}

static bool is_whole(struct str piece, struct str text) {
  return piece.p == text.p && piece.n == text.n;
}

const struct kept_text *prompt_kept(const struct prompt_view *v, struct str name) {
  static const size_t report = sizeof PROMPT_REPORT - 1, response = sizeof PROMPT_RESPONSE - 1;
  if (str_starts(name, PROMPT_RESPONSE))
    return kept_find(v->responses, (struct str){name.p + response, name.n - response});
  if (!str_starts(name, PROMPT_REPORT))
    return NULL;
  struct str file = {name.p + report, name.n - report};
  const struct kept_text *own = kept_find(v->own_reports, file);
  return own ? own : kept_find(v->reports, file);
}

/* Returns the record that holds this variable's whole text, 0 if there is none, and sets the
 * member's name. */
static uint64_t prompt_place_of(const struct prompt_view *v, struct str piece, struct str name,
                                const char **key) {
  *key = "text";
  if (is_whole(piece, v->answer) && str_eq(name, STR("report")))
    return v->answer_seq;
  const struct kept_text *kept = prompt_kept(v, name);
  if (kept != NULL)
    return kept->joined.count == 0 ? kept->seq : 0;
  if (is_whole(piece, v->previous) && str_eq(name, STR("previous_response")))
    return v->previous_seq;
  if (v->bad_seq != 0 && str_eq(name, STR("bad_output")))
    return v->bad_seq;
  *key = "task";
  return is_whole(piece, v->task) && str_eq(name, STR("task")) ? v->task_seq : 0;
}

static enum piece_kind prompt_kind_of(const struct prompt_view *v, struct str piece,
                                      const struct template_var *var) {
  static const struct str stable[] = {
      STR_INIT("workflow"), STR_INIT("movement"),      STR_INIT("description"),
      STR_INIT("criteria"), STR_INIT("tags"),          STR_INIT("task"),
      STR_INIT("none"),     STR_INIT("max_movements"), STR_INIT("max_steps"),
      STR_INIT("request"),  STR_INIT("order"),         STR_INIT("format")};
  const struct movement *m = v->movement;
  if (is_whole(piece, m->instruction) || is_whole(piece, m->persona) ||
      is_whole(piece, m->policy) || is_whole(piece, m->knowledge))
    return PIECE_OWN;
  if (var == NULL)
    return PIECE_STABLE;
  for (size_t i = 0; i < ARRAY_LEN(stable); i++)
    if (str_eq(var->name, stable[i])) /* a long one recurs in other questions */
      return piece.n < LIMIT_OWN_PART_BYTES ? PIECE_STABLE : PIECE_OWN;
  return PIECE_CHANGES;
}

/* Returns the texts that make up the variable's text if the log holds each of them, else NULL. */
static const struct joined *joined_of(const struct prompt_view *v, struct str piece,
                                      struct str name) {
  const struct joined *joined = NULL;
  if (is_whole(piece, v->answer) && str_eq(name, STR("report")))
    joined = v->answer_joined;
  else if (is_whole(piece, v->previous) && str_eq(name, STR("previous_response")))
    joined = v->previous_joined;
  else if (prompt_kept(v, name) != NULL)
    joined = &prompt_kept(v, name)->joined;
  return joined != NULL && joined->count > 0 ? joined : NULL;
}

static void add_joined(struct prompt *out, struct str text, const struct joined *joined) {
  size_t at = 0;
  for (size_t i = 0; i < joined->count; at = joined->joints[i++].end)
    prompt_put(out, (struct str){text.p + at, joined->joints[i].end - at}, joined->joints[i].seq,
               "text", PIECE_CHANGES);
}

void prompt_on_piece(void *ctx, struct str piece, const struct template_var *var) {
  const struct prompt_sink *sink = ctx;
  const char *key = NULL;
  const struct joined *joined = var != NULL ? joined_of(sink->view, piece, var->name) : NULL;
  if (joined != NULL) {
    add_joined(sink->out, piece, joined);
    return;
  }
  if (var != NULL && sink->nested != NULL && str_eq(var->name, sink->nested->name)) {
    sink->nested->render(sink->nested, sink->out);
    return;
  }
  uint64_t seq = var != NULL ? prompt_place_of(sink->view, piece, var->name, &key) : 0;
  prompt_put(sink->out, piece, seq, key, prompt_kind_of(sink->view, piece, var));
}

/* Returns true if the resource is "prompts/LANGUAGE/NAME". */
static bool is_template(const struct resource *r, struct str language, const char *name) {
  const char *rest = r->name + template_folder.n;
  return strncmp(rest, language.p, language.n) == 0 && rest[language.n] == '/' &&
         strcmp(rest + language.n + 1, name) == 0;
}

/* Returns the shipped template. Looks first among those that were rendered before. */
static const struct resource *shipped_template(const struct prompt_view *view, const char *name) {
  const struct prompt_templates *t = view->templates;
  struct str language = view->workflow->language;
  for (size_t i = 0; t != NULL && i < t->count; i++)
    if (is_template(t->items[i].resource, language, name))
      return t->items[i].resource;
  struct buf key = {0};
  buf_printf(&key, "%s" STR_FMT "/%s", template_folder.p, STR_ARG(language), name);
  const struct resource *r = resource_find(key.p);
  if (r == NULL)
    BUG("no template %s", key.p);
  buf_deinit(&key);
  return r;
}

/* Returns a template's text: the project's or the user's, else the shipped one. */
static struct str find_template(const struct prompt_view *view, const struct resource *shipped,
                                bool *own) {
  const json_t *override = json_object_get(view->overrides, shipped->name + template_folder.n);
  *own = json_is_string(override);
  return *own ? json_view(override) : (struct str){shipped->p, shipped->n};
}

void prompt_render(const char *name, const struct template_var *vars, struct prompt_sink *sink) {
  const struct prompt_view *view = sink->view;
  const struct template *parsed = NULL;
  const struct resource *shipped = shipped_template(view, name);
  bool own;
  struct str text = find_template(view, shipped, &own);
  if (!own && view->templates != NULL)
    parsed = parsed_template(view->templates, shipped, vars);
  if (parsed != NULL)
    template_put(parsed, vars, prompt_on_piece, sink);
  else
    template_render(text, vars, prompt_on_piece, sink);
}

struct str prompt_template_text(const struct prompt_view *view, const char *name) {
  bool own;
  return str_trim(find_template(view, shipped_template(view, name), &own));
}

struct str prompt_digits(char buffer[STR_NUMBER_BYTES], long value) {
  return (struct str){buffer, str_from_number(buffer, value)};
}
