/* Fills templates into prompts and keeps each part with the place that first held it. */
#include "core/prompt.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "base/utf8.h"
#include "core/call.h"
#include "core/capability.h"
#include "core/kept.h"
#include "core/ref.h"
#include "extract/schema_check.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "format/template.h"
#include "render/describe.h"
#include "render/example.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const prompt_template_names[] = {
    "execute.md", "judge_structured.md", "judge_tag.md", "judge_ai.md", "reask.md",
    "schema.md",  "invariant.md",        "report.md",    "loop.md",     NULL};

const char *const prompt_variable_names[] = {"task",
                                             "iteration",
                                             "max_movements",
                                             "max_steps",
                                             "movement_iteration",
                                             "step_iteration",
                                             "previous_response",
                                             "user_inputs",
                                             "item",
                                             "index",
                                             "report_dir",
                                             "cycle",
                                             "cycle_count",
                                             NULL};

void prompt_deinit(struct prompt *p) {
  buf_deinit(&p->bytes);
  free(p->parts);
  *p = (struct prompt){0};
}

struct prompt_templates {
  struct {
    const char *text; /* a resource's: it stays where it is */
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

/* The shipped template of a name, as it was parsed when it was rendered first. */
static const struct template *parsed_template(struct prompt_templates *t, struct str text,
                                              const struct template_var *vars) {
  size_t i = 0;
  while (i < t->count && t->items[i].text != text.p)
    i++;
  if (i == ARRAY_LEN(t->items))
    return NULL;
  if (i == t->count) {
    t->items[i].text = text.p;
    t->items[i].parsed = template_parse(text, vars);
    t->count++;
  }
  return t->items[i].parsed;
}

/* At once for most prompts: templates and names, and a text of n bytes. */
static void prompt_make_room(struct prompt *out, size_t n) {
  enum { TEMPLATE_BYTES = 2048 };
  buf_reserve(&out->bytes, TEMPLATE_BYTES + (n < LIMIT_INLINE_TEXT_BYTES ? n : 0));
}

/* A variable whose value is itself rendered when it is met. */
struct nested {
  struct str name;
  void (*render)(const struct nested *nested, struct prompt *out);
  const struct prompt_view *view;
  const struct chain_spec *spec; /* of a judge's question */
  enum judge_stage stage;
};

struct sink {
  struct prompt *out;
  const struct nested *nested; /* or NULL */
  const struct prompt_view *view;
};

static size_t part_start(const struct prompt *p, size_t i) {
  return i == 0 ? 0 : p->parts[i - 1].end;
}

/* How pieces become parts: what is the same whenever this movement is asked this makes one part, so
 * that the next prompt needs one reference for it; so do short pieces between. */
enum piece_kind {
  PIECE_CHANGES, /* from turn to turn */
  PIECE_STABLE,
  PIECE_OWN /* the log has it by itself, such as a persona in session_start, or will */
};

static bool joins(const struct prompt *out, struct str piece, uint64_t seq, enum piece_kind kind) {
  if (out->count == 0 || seq != 0)
    return false;
  const struct prompt_part *last = &out->parts[out->count - 1];
  size_t last_n = last->end - part_start(out, out->count - 1);
  bool is_short = piece.n < LIMIT_REF_TEXT_BYTES;
  if (last->seq != 0 || last->own)
    return false;
  if (last->stable && (kind == PIECE_STABLE || (kind == PIECE_OWN && is_short)))
    return true;
  return is_short && last_n < LIMIT_REF_TEXT_BYTES;
}

static void add_piece(struct prompt *out, struct str piece, uint64_t seq, const char *key,
                      enum piece_kind kind) {
  if (piece.n == 0)
    return;
  bool is_short = piece.n < LIMIT_REF_TEXT_BYTES;
  if (seq != 0 && is_short && utf8_valid(piece.p, piece.n))
    seq = 0; /* shorter than a reference; other bytes only a reference keeps exact */
  bool join = joins(out, piece, seq, kind);
  buf_str(&out->bytes, piece);
  if (!join) {
    if (out->count % 16 == 0)
      out->parts = xrealloc(out->parts, (out->count + 16) * sizeof *out->parts);
    out->parts[out->count++] = (struct prompt_part){.seq = seq,
                                                    .key = key,
                                                    .stable = kind != PIECE_CHANGES,
                                                    .own = kind == PIECE_OWN && !is_short};
  }
  out->parts[out->count - 1].end = out->bytes.n;
  out->parts[out->count - 1].stable &= kind != PIECE_CHANGES;
}

static bool is_whole(struct str piece, struct str text) {
  return piece.p == text.p && piece.n == text.n;
}

/* The report or the answer that a variable names: {report:FILE}, {response:MOVEMENT}. */
static const struct kept_text *kept_of(const struct prompt_view *v, struct str name) {
  static const size_t report = sizeof PROMPT_REPORT - 1, response = sizeof PROMPT_RESPONSE - 1;
  if (str_starts(name, PROMPT_RESPONSE))
    return kept_find(v->responses, (struct str){name.p + response, name.n - response});
  if (!str_starts(name, PROMPT_REPORT))
    return NULL;
  struct str file = {name.p + report, name.n - report};
  const struct kept_text *own = kept_find(v->own_reports, file);
  return own ? own : kept_find(v->reports, file);
}

/* Where the log holds this variable's whole text, if it does. */
static uint64_t prompt_place_of(const struct prompt_view *v, struct str piece, struct str name,
                                const char **key) {
  *key = "text";
  if (is_whole(piece, v->answer) && str_eq(name, STR("report")))
    return v->answer_seq;
  const struct kept_text *kept = kept_of(v, name);
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
  static const char *const stable[] = {"workflow",  "movement", "description", "criteria",
                                       "tags",      "task",     "none",        "max_movements",
                                       "max_steps", "request",  "order",       "format"};
  const struct movement *m = v->movement;
  if (is_whole(piece, m->instruction) || is_whole(piece, m->persona) ||
      is_whole(piece, m->policy) || is_whole(piece, m->knowledge))
    return PIECE_OWN;
  if (var == NULL)
    return PIECE_STABLE;
  for (size_t i = 0; i < ARRAY_LEN(stable); i++)
    if (str_eq_c(var->name, stable[i])) /* a long one stands in other questions too */
      return piece.n < LIMIT_OWN_PART_BYTES ? PIECE_STABLE : PIECE_OWN;
  return PIECE_CHANGES;
}

/* Where the variable's text is one of several, each of which the log holds; else NULL. */
static const struct joined *joined_of(const struct prompt_view *v, struct str piece,
                                      struct str name) {
  const struct joined *joined = NULL;
  if (is_whole(piece, v->answer) && str_eq(name, STR("report")))
    joined = v->answer_joined;
  else if (is_whole(piece, v->previous) && str_eq(name, STR("previous_response")))
    joined = v->previous_joined;
  else if (kept_of(v, name) != NULL)
    joined = &kept_of(v, name)->joined;
  return joined != NULL && joined->count > 0 ? joined : NULL;
}

static void add_joined(struct prompt *out, struct str text, const struct joined *joined) {
  size_t at = 0;
  for (size_t i = 0; i < joined->count; at = joined->joints[i++].end)
    add_piece(out, (struct str){text.p + at, joined->joints[i].end - at}, joined->joints[i].seq,
              "text", PIECE_CHANGES);
}

static void on_piece(void *ctx, struct str piece, const struct template_var *var) {
  const struct sink *sink = ctx;
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
  add_piece(sink->out, piece, seq, key, prompt_kind_of(sink->view, piece, var));
}

/* Renders the template of that name: the project's or the user's, else the shipped one. */
static void render_template(const char *name, const struct template_var *vars, struct sink *sink) {
  const struct prompt_view *view = sink->view;
  const struct template *parsed = NULL;
  struct buf key = {0};
  buf_puts(&key, "prompts/");
  buf_str(&key, view->workflow->language);
  buf_putc(&key, '/');
  buf_puts(&key, name);
  const json_t *override = json_object_get(view->overrides, key.p + strlen("prompts/"));
  if (json_is_string(override)) {
    struct str text = {json_string_value(override), json_string_length(override)};
    template_render(text, vars, on_piece, sink);
  } else {
    const struct resource *r = resource_find(key.p);
    if (r == NULL)
      BUG("no template %s", key.p);
    struct str text = {r->p, r->n};
    if (view->templates != NULL)
      parsed = parsed_template(view->templates, text, vars);
    if (parsed != NULL)
      template_put(parsed, vars, on_piece, sink);
    else
      template_render(text, vars, on_piece, sink);
  }
  buf_deinit(&key);
}

static struct str prompt_number_text(char buffer[STR_NUMBER_BYTES], long value) {
  return (struct str){buffer, str_from_number(buffer, value)};
}

/* ---- the movement's own prompt ------------------------------------------------------------------
 */

/* The project's or the user's text of a template, else the shipped one. */
static struct str template_text(const struct prompt_view *view, const char *name) {
  struct buf key = {0};
  buf_printf(&key, "prompts/%s/%s", view->workflow->language.p, name);
  const json_t *override = json_object_get(view->overrides, key.p + strlen("prompts/"));
  const struct resource *r = resource_find(key.p);
  if (r == NULL)
    BUG("no template %s", key.p);
  buf_deinit(&key);
  return str_trim(json_is_string(override) ? json_view(override) : (struct str){r->p, r->n});
}

static struct str effective_instruction(const struct prompt_view *view) {
  const struct movement *m = view->movement;
  if (m->monitor != NULL && m->instruction.n == 0)
    return template_text(view, "loop.md");
  return m->instruction.n > 0 || m->argv != NULL ? m->instruction : STR("{task}");
}

/* The variables of an instruction: fixed ones, then a {structured:...} each. */
struct variables {
  struct template_var *items; /* ends with a NULL name */
  size_t count;
  struct arena arena;
  const struct prompt_view *view;
};

static void add_variable(struct variables *v, struct str name, struct str value) {
  if (v->count % 16 == 0)
    v->items = xrealloc(v->items, (v->count + 17) * sizeof *v->items);
  v->items[v->count++] = (struct template_var){name, value};
  v->items[v->count] = (struct template_var){{NULL, 0}, {NULL, 0}};
}

/* A text as it is; any other value as compact JSON; what is not there and null as nothing. */
static struct str value_text(struct arena *arena, const json_t *value) {
  struct buf text = {0};
  if (value == NULL || json_is_null(value))
    return STR("");
  if (json_is_string(value))
    return (struct str){json_string_value(value), json_string_length(value)};
  json_write(value, &text);
  struct str copy = {arena_strndup(arena, text.p, text.n), text.n};
  buf_deinit(&text);
  return copy;
}

static void on_name(void *ctx, struct str name) {
  struct variables *v = ctx;
  struct str path = {name.p + strlen(PROMPT_STRUCTURED), name.n - strlen(PROMPT_STRUCTURED)};
  for (size_t i = 0; i < v->count; i++)
    if (str_eq(name, v->items[i].name))
      return;
  struct prompt_ref ref;
  const json_t *value = NULL;
  if (prompt_ref_parse(path, v->view->workflow, &ref))
    value =
        prompt_ref_value(&ref, json_object_getn(v->view->values, ref.movement.p, ref.movement.n));
  add_variable(v, name, value_text(&v->arena, value));
}

/* {item.FIELD}, {item[0].FIELD}: a part of the item. */
static void on_item_name(void *ctx, struct str name) {
  struct variables *v = ctx;
  const struct prompt_ref ref = {STR("item"), {name.p + 4, name.n - 4}};
  for (size_t i = 0; i < v->count; i++)
    if (str_eq(name, v->items[i].name))
      return;
  add_variable(v, name, value_text(&v->arena, prompt_ref_value(&ref, v->view->item)));
}

/* A report or an answer that is not there yet is said to be none: an empty line would mislead. */
static void on_kept_name(void *ctx, struct str name) {
  struct variables *v = ctx;
  const struct kept_text *kept = kept_of(v->view, name);
  bool ja = workflow_language(v->view->workflow) == DESCRIBE_JAPANESE;
  for (size_t i = 0; i < v->count; i++)
    if (str_eq(name, v->items[i].name))
      return;
  struct str none = ja ? STR("（まだありません）") : STR("(there is none yet)");
  add_variable(v, name, kept ? buf_view(&kept->text) : none);
}

/* An input came from outside and is data: it is never read as a template. */
static void add_inputs(struct variables *v) {
  const char *name;
  const json_t *value;
  json_object_foreach((json_t *)v->view->workflow->inputs, name, value) {
    struct str own = str_from(name);
    char *var = arena_alloc(&v->arena, strlen(PROMPT_INPUT) + own.n);
    memcpy(var, PROMPT_INPUT, strlen(PROMPT_INPUT));
    memcpy(var + strlen(PROMPT_INPUT), own.p, own.n);
    add_variable(v, (struct str){var, strlen(PROMPT_INPUT) + own.n}, json_view(value));
  }
}

/* A loop's judge is told the loop: "review -> fix", 3. */
static void add_cycle(struct variables *v) {
  const struct workflow *wf = v->view->workflow;
  const struct monitor *m = v->view->movement->monitor;
  char count[STR_NUMBER_BYTES];
  struct buf text = {0};
  for (size_t i = 0; i < m->cycle_count; i++) {
    struct str name = wf->movements[m->cycle[i]].name;
    buf_printf(&text, "%s" STR_FMT, i > 0 ? " -> " : "", STR_ARG(name));
  }
  add_variable(v, STR("cycle"), arena_str(&v->arena, buf_view(&text)));
  add_variable(v, STR("cycle_count"),
               arena_str(&v->arena, prompt_number_text(count, v->view->cycle_count)));
  buf_deinit(&text);
}

void prompt_fill(const struct prompt_view *v, struct str text, struct prompt *out) {
  char iteration[STR_NUMBER_BYTES], maximum[STR_NUMBER_BYTES], own[STR_NUMBER_BYTES],
      index[STR_NUMBER_BYTES];
  struct str max_text = STR("infinite");
  if (v->max_movements != MOVEMENTS_INFINITE)
    max_text = prompt_number_text(maximum, v->max_movements);
  struct str own_text = prompt_number_text(own, v->movement_iteration);
  struct variables vars = {.view = v};
  add_variable(&vars, STR("task"), v->task);
  add_variable(&vars, STR("iteration"), prompt_number_text(iteration, v->iteration));
  add_variable(&vars, STR("max_movements"), max_text);
  add_variable(&vars, STR("max_steps"), max_text);
  add_variable(&vars, STR("movement_iteration"), own_text);
  add_variable(&vars, STR("step_iteration"), own_text);
  add_variable(&vars, STR("previous_response"), v->has_previous ? v->previous : STR(""));
  add_inputs(&vars);
  add_variable(&vars, STR("report_dir"), v->report_dir);
  add_variable(&vars, STR("user_inputs"), v->user_inputs);
  if (v->movement->monitor != NULL)
    add_cycle(&vars);
  template_names(text, PROMPT_STRUCTURED, on_name, &vars);
  if (v->item != NULL) {
    add_variable(&vars, STR("item"), value_text(&vars.arena, v->item));
    add_variable(&vars, STR("index"), prompt_number_text(index, v->index));
    template_names(text, "item.", on_item_name, &vars);
    template_names(text, "item[", on_item_name, &vars);
  }
  template_names(text, PROMPT_REPORT, on_kept_name, &vars);
  template_names(text, PROMPT_RESPONSE, on_kept_name, &vars);
  struct sink sink = {out, NULL, v};
  template_render(text, vars.items, on_piece, &sink);
  free(vars.items);
  arena_deinit(&vars.arena);
}

static void render_instruction(const struct nested *nested, struct prompt *out) {
  prompt_fill(nested->view, effective_instruction(nested->view), out);
}

static void append_condition(struct buf *b, const struct rule *rule) {
  buf_str(b, rule->label);
  if (rule->appendix.n > 0) {
    buf_puts(b, "\n   ");
    struct str rest = str_trim(rule->appendix);
    while (rest.p != NULL) {
      buf_str(b, str_next_line(&rest));
      if (rest.p != NULL)
        buf_puts(b, "\n   ");
    }
  }
  buf_putc(b, '\n');
}

/* "1. approved" a line, or "[REVIEW:1] approved". */
static void append_criteria(struct buf *b, const struct chain_spec *spec, struct str tag_name,
                            bool tags) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_shown(spec, offered);
  for (size_t i = 0; i < n; i++) {
    if (tags) {
      rule_tag(tag_name, offered[i]->number, b);
      buf_putc(b, ' ');
    } else {
      char number[STR_NUMBER_BYTES];
      buf_str(b, prompt_number_text(number, offered[i]->number));
      buf_puts(b, ". ");
    }
    append_condition(b, offered[i]);
  }
}

static struct chain_spec own_spec(const struct movement *m) {
  return (struct chain_spec){.rules = m->rules,
                             .rule_count = m->rule_count,
                             .movement = m->own_name,
                             .stages = m->judge.stages,
                             .stage_count = m->judge.stage_count};
}

static bool asks_for_tag(const struct movement *m) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  struct chain_spec spec = own_spec(m);
  bool listed = false;
  for (size_t i = 0; i < m->judge.stage_count; i++)
    listed |= m->judge.stages[i] == STAGE_PHASE1_TAG;
  return listed && m->structured == NULL && chain_offered(&spec, offered) > 1;
}

/* The variables of a template that tells a schema: `request` is the whole of it, `schema` and
 * `root` are for templates of a user's own. */
enum { SCHEMA_VARS = 3 };
struct schema_told {
  struct buf request, json;
};

static void tell_schema(const struct prompt_view *v, const struct schema *schema,
                        const json_t *document, struct schema_told *told,
                        struct template_var vars[SCHEMA_VARS]) {
  enum extract_want want = extract_schema_want(document);
  struct str root = STR("value");
  if (want == EXTRACT_WANT_OBJECT)
    root = STR("object");
  else if (want == EXTRACT_WANT_ARRAY)
    root = STR("array");
  *told = (struct schema_told){0};
  describe_request(schema, v->workflow->schema_as, workflow_language(v->workflow), &told->request);
  json_write(document, &told->json);
  vars[0] = (struct template_var){STR("request"), str_trim(buf_view(&told->request))};
  vars[1] = (struct template_var){STR("schema"), buf_view(&told->json)};
  vars[2] = (struct template_var){STR("root"), root};
}

static void schema_told_deinit(struct schema_told *told) {
  buf_deinit(&told->request);
  buf_deinit(&told->json);
}

/* Says what the answer must be, where the backend does not see to it. */
static void render_schema(const struct prompt_view *v, struct prompt *out) {
  const struct structured_config *so = v->movement->structured;
  struct schema_told told;
  struct template_var vars[SCHEMA_VARS + 1] = {{{NULL, 0}, {NULL, 0}}};
  tell_schema(v, so->schema, so->document, &told, vars);
  struct sink sink = {out, NULL, v};
  render_template("schema.md", vars, &sink);
  schema_told_deinit(&told);
}

/* An example of the schema's shape, where the movement wants one and one can be made. */
static void render_example(const struct prompt_view *v, struct prompt *out) {
  const struct structured_config *so = v->movement->structured;
  enum describe_language language = DESCRIBE_ENGLISH;
  char *text = NULL;
  if (so == NULL || !so->example)
    return;
  (void)describe_language_find(v->workflow->language.p, &language);
  if (example_anchor(so->schema, language, &text) == EXAMPLE_OK) {
    struct str lines = STR("\n\n"); /* one blank line between, or none before the first */
    size_t n = out->bytes.n, there = 0;
    while (there < lines.n && there < n && out->bytes.p[n - 1 - there] == '\n')
      there++;
    if (n > 0)
      add_piece(out, (struct str){lines.p + there, lines.n - there}, 0, NULL, PIECE_STABLE);
    add_piece(out, str_from(text), 0, NULL, PIECE_STABLE);
  }
  describe_free(text);
}

/* The agent is told this of its permission: no more than its backend can hold. */
struct told_permission {
  bool full, edit, edits, looks;
  struct buf run; /* "make, npm test" */
};

static struct told_permission permission_told(const struct prompt_view *v) {
  const struct movement *m = v->movement;
  const struct held *held = v->held;
  struct told_permission told = {.full = m->permission == PERMISSION_FULL,
                                 .edit = m->edit,
                                 .edits = held == NULL || held->edits,
                                 .looks = held == NULL || held->looks};
  bool runs = m->permission == PERMISSION_EDIT && (held == NULL || held->run != HELD_RUN_NONE);
  for (size_t i = 0; runs && i < json_array_size(m->run); i++)
    buf_printf(&told.run, "%s`%s`", i ? ", " : "", json_string_value(json_array_get(m->run, i)));
  return told;
}

static struct str yes_if(bool is) {
  return is ? STR("yes") : STR("");
}

static void render_execute(const struct nested *nested, struct prompt *out) {
  const struct prompt_view *v = nested->view;
  const struct movement *m = v->movement;
  struct nested inner = {.name = STR("instruction"), .render = render_instruction, .view = v};
  if (m->argv != NULL || m->bare_prompt) {
    render_instruction(&inner, out);
    return;
  }
  struct str instruction = effective_instruction(v);
  char iteration[STR_NUMBER_BYTES], maximum[STR_NUMBER_BYTES], own[STR_NUMBER_BYTES];
  struct buf tags = {0};
  struct told_permission told = permission_told(v);
  if (asks_for_tag(m)) {
    struct chain_spec spec = own_spec(m);
    append_criteria(&tags, &spec, m->own_name, true);
  }
  bool show_task = v->task.n > 0 && !template_uses(instruction, "task");
  bool show_previous = m->pass_previous_response && v->has_previous && v->previous.n > 0 &&
                       !template_uses(instruction, "previous_response");
  bool bounded = v->max_movements != MOVEMENTS_INFINITE;
  const struct template_var vars[] = {
      {STR("persona"), m->persona},
      {STR("policy"), m->policy},
      {STR("knowledge"), m->knowledge},
      {STR("workflow"), v->workflow->name},
      {STR("movement"), m->name},
      {STR("description"), m->description},
      {STR("iteration"), prompt_number_text(iteration, v->iteration)},
      {STR("max_movements"), bounded ? prompt_number_text(maximum, v->max_movements) : STR("")},
      {STR("movement_iteration"), prompt_number_text(own, v->movement_iteration)},
      {STR("full"), yes_if(told.full)},
      {STR("edit"), yes_if(told.edit)},
      {STR("edits"), yes_if(told.edits)},
      {STR("looks"), yes_if(told.looks)},
      {STR("run"), buf_view(&told.run)},
      {STR("task"), show_task ? v->task : STR("")},
      {STR("previous_response"), show_previous ? v->previous : STR("")},
      {STR("user_inputs"), template_uses(instruction, "user_inputs") ? STR("") : v->user_inputs},
      {STR("instruction"), instruction},
      {STR("tags"), buf_view(&tags)},
      {{NULL, 0}, {NULL, 0}},
  };
  struct sink sink = {out, &inner, v};
  render_template("execute.md", vars, &sink);
  buf_deinit(&tags);
  buf_deinit(&told.run);
}

void prompt_execute(const struct prompt_view *v, struct prompt *out) {
  const struct nested nested = {.view = v};
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  prompt_make_room(out, v->previous.n);
  render_execute(&nested, out);
  if (v->shows_schema)
    render_schema(v, out);
  render_example(v, out);
}

/* --- judge prompts --- */

/* At most `max` bytes of a text: its end, from a whole character on. */
static struct str end_of_text(struct str text, size_t max, bool *cut) {
  *cut = text.n > max;
  if (!*cut)
    return text;
  size_t from = utf8_ceil(text.p, text.n, text.n - max);
  return (struct str){text.p + from, text.n - from};
}

static const char *judge_template(enum judge_stage stage) {
  if (stage == STAGE_STRUCTURED_OUTPUT)
    return "judge_structured.md";
  return stage == STAGE_PHASE3_TAG ? "judge_tag.md" : "judge_ai.md";
}

/* "src/a.c +1 -1, logo.png": one without numbers has no lines, or they are not known. */
static void append_files(struct buf *b, const json_t *files, int64_t more) {
  size_t i;
  const json_t *file;
  json_array_foreach((json_t *)files, i, file) {
    const json_t *added = json_at(file, "added");
    if (i == LIMIT_PROMPT_FILE_COUNT)
      break;
    buf_puts(b, i ? ", " : "");
    buf_safe(b, json_view(json_at(file, "path")), false);
    if (added != NULL)
      buf_printf(b, " +%" JSON_INTEGER_FORMAT " -%" JSON_INTEGER_FORMAT, json_integer_value(added),
                 json_integer_value(json_at(file, "removed")));
  }
  if (i < json_array_size(files) || more > 0)
    buf_printf(b, ", ... (%" PRId64 ")", (int64_t)json_array_size(files) + more);
}

static void render_question(const struct nested *nested, struct prompt *out) {
  const struct prompt_view *v = nested->view;
  struct buf criteria = {0}, tags = {0}, none = {0};
  char exit_status[STR_NUMBER_BYTES], check_turn[STR_NUMBER_BYTES], check_exit[STR_NUMBER_BYTES];
  struct buf files = {0};
  bool unchanged = v->files != NULL && json_array_size(v->files) == 0 && !v->files_lost;
  bool measured =
      v->has_exit || v->check.n > 0 || v->checks.n > 0 || v->files != NULL || v->files_lost;
  append_files(&files, v->files, v->files_more);
  bool ai = nested->stage == STAGE_AI_JUDGE;
  append_criteria(&criteria, nested->spec, v->movement->own_name, false);
  rule_tag(ai ? STR("judge") : v->movement->own_name, 0, &none);
  if (nested->stage == STAGE_PHASE3_TAG || !v->by_tool)
    append_criteria(&tags, nested->spec, ai ? STR("judge") : v->movement->own_name, true);
  struct buf readable = {0};
  bool cut; /* the end of a report is where its outcome stands */
  struct str answer = end_of_text(v->answer, LIMIT_JUDGE_TEXT_BYTES, &cut);
  if (!utf8_valid(answer.p, answer.n)) {
    buf_safe(&readable, answer, true);
    answer = buf_view(&readable);
  }
  const struct template_var vars[] = {
      {STR("workflow"), v->workflow->name},
      {STR("movement"), v->movement->name},
      {STR("description"), v->movement->description},
      {STR("criteria"), buf_view(&criteria)},
      {STR("tags"), buf_view(&tags)},
      {STR("none"), buf_view(&none)},
      {STR("tool"), v->by_tool ? STR("yes") : STR("")},
      {STR("report"), answer},
      {STR("cut"), cut ? STR("yes") : STR("")},
      {STR("measured"), measured ? STR("yes") : STR("")},
      {STR("exit"), v->has_exit ? prompt_number_text(exit_status, v->exit) : STR("")},
      {STR("check"), v->check},
      {STR("check_turn"), prompt_number_text(check_turn, v->check_turn)},
      {STR("check_exit"), prompt_number_text(check_exit, v->check_exit)},
      {STR("checks"), v->checks},
      {STR("tests"), v->tests},
      {STR("no_pass"), v->no_pass ? STR("yes") : STR("")},
      {STR("files"), buf_view(&files)},
      {STR("unchanged"), unchanged ? STR("yes") : STR("")},
      {STR("lost"), v->files_lost ? STR("yes") : STR("")},
      {STR("fence"), str_from(v->nonce)},
      {{NULL, 0}, {NULL, 0}},
  };
  struct sink sink = {out, NULL, v};
  render_template(judge_template(nested->stage), vars, &sink);
  buf_deinit(&readable);
  buf_deinit(&files);
  buf_deinit(&criteria);
  buf_deinit(&none);
  buf_deinit(&tags);
}

void prompt_judge(const struct prompt_view *v, const struct chain_spec *spec,
                  enum judge_stage stage, struct prompt *out) {
  struct nested nested = {.view = v, .spec = spec, .stage = stage};
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  prompt_make_room(out, v->answer.n);
  render_question(&nested, out);
}

void prompt_reask(const struct prompt_view *view, const struct prompt_correction *c,
                  struct prompt *out) {
  struct prompt_view shown = *view;
  struct nested nested = {.name = STR("question"),
                          .render = c->spec ? render_question : render_execute,
                          .view = &shown,
                          .spec = c->spec,
                          .stage = c->stage};
  const struct structured_config *so = view->movement->structured;
  struct schema *judged = c->spec ? schema_compile(c->schema, NULL, NULL, NULL) : NULL;
  struct schema_told told;
  struct buf list = {0}, readable = {0};
  char more[STR_NUMBER_BYTES];
  size_t i;
  json_t *error;
  bool cut;
  json_array_foreach(c->errors, i, error) {
    buf_printf(&list, "- %s\n", json_string_value(error));
  }
  struct str output = end_of_text(c->output, LIMIT_REASK_OUTPUT_BYTES, &cut);
  if (cut) /* the log holds the whole text there */
    shown.bad_seq = 0;
  if (shown.bad_seq == 0 && !utf8_valid(output.p, output.n)) {
    buf_safe(&readable, output, true);
    output = buf_view(&readable);
  }
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  struct template_var vars[SCHEMA_VARS + 8] = {
      {STR("question"), STR("nested")},
      {STR("bad_output"), output},
      {STR("cut"), cut ? STR("yes") : STR("")},
      {STR("errors"), buf_view(&list)},
      {STR("more"), c->more > 0 ? prompt_number_text(more, (long)c->more) : STR("")},
      {STR("fence"), str_from(view->nonce)},
  };
  tell_schema(view, c->spec ? judged : so->schema, c->schema, &told, vars + 6);
  struct sink sink = {out, &nested, &shown};
  render_template("reask.md", vars, &sink);
  schema_told_deinit(&told);
  schema_free(judged);
  buf_deinit(&list);
  buf_deinit(&readable);
}

/* --- reports --- */

/* Fills in a contract's text; NULL: it has none. Its parts are the log's by themselves. */
static void contract_text(const struct prompt_view *view, struct str text, struct buf *out) {
  struct prompt own = {.bytes = {.max = LIMIT_PROMPT_BYTES}};
  prompt_fill(view, text, &own);
  buf_str(out, str_trim(buf_view(&own.bytes)));
  prompt_deinit(&own);
}

void prompt_report(const struct prompt_view *view, const struct contract *contract, bool alone,
                   struct prompt *out) {
  struct buf order = {0}, format = {0};
  contract_text(view, contract->order, &order);
  contract_text(view, contract->format, &format);
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  const struct template_var vars[] = {
      {STR("file"), contract->name},
      {STR("label"), contract->label},
      {STR("workflow"), view->workflow->name},
      {STR("movement"), view->movement->name},
      {STR("order"), buf_view(&order)},
      {STR("format"), buf_view(&format)},
      {STR("task"), alone ? view->task : STR("")},
      {STR("report"), alone ? view->answer : STR("")},
      {STR("fence"), str_from(view->nonce)},
      {{NULL, 0}, {NULL, 0}},
  };
  struct sink sink = {out, NULL, view};
  render_template("report.md", vars, &sink);
  buf_deinit(&order);
  buf_deinit(&format);
}

/* --- invariants --- */

void prompt_value(const json_t *value, struct prompt *out) {
  struct buf text = {0};
  json_write(value, &text);
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  add_piece(out, buf_view(&text), 0, NULL, PIECE_CHANGES);
  buf_deinit(&text);
}

void prompt_invariant(const struct prompt_view *view, struct str question, const json_t *value,
                      struct prompt *out) {
  struct buf text = {0};
  json_write(value, &text);
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  const struct template_var vars[] = {
      {STR("question"), question},
      {STR("value"), buf_view(&text)},
      {STR("fence"), str_from(view->nonce)},
      {{NULL, 0}, {NULL, 0}},
  };
  struct sink sink = {out, NULL, view};
  render_template("invariant.md", vars, &sink);
  buf_deinit(&text);
}

/* --- parts for the log --- */

void prompt_log_init(struct prompt_log *log, const struct prompt *p, struct texts *texts) {
  *log = (struct prompt_log){
      .parts = xmalloc(p->count * (sizeof *log->parts + TEXTS_PLACE_BYTES) + 1), .count = p->count};
  char *place = (char *)(log->parts + p->count);
  for (size_t i = 0; i < p->count; i++, place += TEXTS_PLACE_BYTES) {
    struct str part = {p->bytes.p + part_start(p, i), p->parts[i].end - part_start(p, i)};
    bool found = p->parts[i].seq != 0;
    bool again = p->parts[i].stable || part.n >= LIMIT_OWN_PART_BYTES; /* worth to be looked up */
    if (found)
      texts_place(p->parts[i].seq, p->parts[i].key, place);
    else if (again)
      found = texts_find(texts, part, place);
    log->parts[i] = (struct record_part){found ? str_from(place) : part, found};
    if (found || utf8_valid(part.p, part.n))
      continue;
    json_t *shown = text_render(part); /* of a text that came in: the log does not hold it whole */
    log->rendered = xrealloc(log->rendered, (log->rendered_count + 1) * sizeof *log->rendered);
    log->rendered[log->rendered_count++] = shown;
    log->parts[i].text = (struct str){json_string_value(shown), json_string_length(shown)};
  }
}

void prompt_log_deinit(struct prompt_log *log) {
  for (size_t i = 0; i < log->rendered_count; i++)
    json_decref(log->rendered[i]);
  free(log->rendered);
  free(log->parts);
}
