/* Builds what a movement's provider is sent: the work, its reports, its invariants. */
#include "core/prompt/internal.h"

#include "base/limits.h"
#include "core/call.h"
#include "core/capability.h"
#include "extract/schema_check.h"
#include "format/json_write.h"
#include "render/describe.h"
#include "render/example.h"

static struct str effective_instruction(const struct prompt_view *view) {
  const struct movement *m = view->movement;
  if (m->monitor != NULL && m->instruction.n == 0)
    return prompt_template_text(view, "loop.md");
  return m->instruction.n > 0 || m->argv != NULL ? m->instruction : STR("{task}");
}

static void render_instruction(const struct prompt_nested *nested, struct prompt *out) {
  prompt_fill(nested->view, effective_instruction(nested->view), out);
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

void prompt_tell_schema(const struct prompt_view *v, const struct schema *schema,
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

void schema_told_deinit(struct schema_told *told) {
  buf_deinit(&told->request);
  buf_deinit(&told->json);
}

/* Says what the answer must be, unless the backend enforces it. */
static void render_schema(const struct prompt_view *v, struct prompt *out) {
  const struct structured_config *so = v->movement->structured;
  struct schema_told told;
  struct template_var vars[SCHEMA_VARS + 1] = {{{NULL, 0}, {NULL, 0}}};
  prompt_tell_schema(v, so->schema, so->document, &told, vars);
  struct prompt_sink sink = {out, NULL, v};
  prompt_render("schema.md", vars, &sink);
  schema_told_deinit(&told);
}

/* Renders an example of the schema's shape, if the movement wants one and one can be made. */
static void render_example(const struct prompt_view *v, struct prompt *out) {
  const struct structured_config *so = v->movement->structured;
  enum describe_language language = DESCRIBE_ENGLISH;
  char *text = NULL;
  if (so == NULL || !so->example)
    return;
  (void)describe_language_find(v->workflow->language.p, &language);
  if (example_anchor(so->schema, language, &text) == EXAMPLE_OK) {
    struct str lines = STR("\n\n"); /* one blank line in between, none before the first */
    size_t n = out->bytes.n, there = 0;
    while (there < lines.n && there < n && out->bytes.p[n - 1 - there] == '\n')
      there++;
    if (n > 0)
      prompt_put(out, (struct str){lines.p + there, lines.n - there}, 0, NULL, PIECE_STABLE);
    prompt_put(out, str_from(text), 0, NULL, PIECE_STABLE);
  }
  describe_free(text);
}

/* Holds the permission that the agent is told: no more than its backend can enforce. */
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

struct str prompt_yes_if(bool is) {
  return is ? STR("yes") : STR("");
}

void prompt_render_execute(const struct prompt_nested *nested, struct prompt *out) {
  const struct prompt_view *v = nested->view;
  const struct movement *m = v->movement;
  struct prompt_nested inner = {
      .name = STR("instruction"), .render = render_instruction, .view = v};
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
    prompt_criteria(&tags, &spec, m->own_name, true);
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
      {STR("iteration"), prompt_digits(iteration, v->iteration)},
      {STR("max_movements"), bounded ? prompt_digits(maximum, v->max_movements) : STR("")},
      {STR("movement_iteration"), prompt_digits(own, v->movement_iteration)},
      {STR("full"), prompt_yes_if(told.full)},
      {STR("edit"), prompt_yes_if(told.edit)},
      {STR("edits"), prompt_yes_if(told.edits)},
      {STR("looks"), prompt_yes_if(told.looks)},
      {STR("run"), buf_view(&told.run)},
      {STR("task"), show_task ? v->task : STR("")},
      {STR("previous_response"), show_previous ? v->previous : STR("")},
      {STR("user_inputs"), template_uses(instruction, "user_inputs") ? STR("") : v->user_inputs},
      {STR("instruction"), instruction},
      {STR("tags"), buf_view(&tags)},
      {{NULL, 0}, {NULL, 0}},
  };
  struct prompt_sink sink = {out, &inner, v};
  prompt_render("execute.md", vars, &sink);
  buf_deinit(&tags);
  buf_deinit(&told.run);
}

void prompt_execute(const struct prompt_view *v, struct prompt *out) {
  const struct prompt_nested nested = {.view = v};
  prompt_init(out, v->previous.n);
  prompt_render_execute(&nested, out);
  if (v->shows_schema)
    render_schema(v, out);
  render_example(v, out);
}

/* --- reports --- */

/* Fills in a contract's text, which may be absent. The parts that it is made of are dropped: the
 * prompt takes the text as one piece. */
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
  struct prompt_sink sink = {out, NULL, view};
  prompt_render("report.md", vars, &sink);
  buf_deinit(&order);
  buf_deinit(&format);
}

/* --- invariants --- */

void prompt_value(const json_t *value, struct prompt *out) {
  struct buf text = {0};
  json_write(value, &text);
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  prompt_put(out, buf_view(&text), 0, NULL, PIECE_CHANGES);
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
  struct prompt_sink sink = {out, NULL, view};
  prompt_render("invariant.md", vars, &sink);
  buf_deinit(&text);
}
