/* Builds prompts: the parts they are made of, the templates, the work, the questions of a judge. */
#include "core/prompt.h"
#include "core/head.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/resource.h"
#include "base/utf8.h"
#include "core/call.h"
#include "core/capability.h"
#include "core/checks.h"
#include "core/report_file.h"
#include "core/value_ref.h"
#include "core/worktree.h"
#include "extract/schema_check.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "format/template.h"
#include "render/describe.h"
#include "render/example.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Says how pieces become parts. Pieces that are the same each time this movement is asked join into
 * one part, so that the next prompt needs one reference for them; so do short pieces in between. */
enum piece_kind {
  PIECE_CHANGES, /* from turn to turn */
  PIECE_STABLE,
  PIECE_OWN /* logged on its own, such as a persona in session_start */
};

/* A nested variable is rendered only where it is used. */
struct prompt_nested {
  struct str name;
  void (*render)(const struct prompt_nested *nested, struct prompt *out);
  const struct prompt_view *view;
  const struct chain_spec *spec; /* for a judge's question */
  enum judge_stage stage;
};

struct prompt_sink {
  struct prompt *out;
  const struct prompt_nested *nested; /* or NULL */
  const struct prompt_view *view;
};

/* A template that shows a schema has these variables: `request` is the whole text; `schema` and
 * `root` are for users' own templates. */
enum { SCHEMA_VARS = 3 };

struct schema_told {
  struct buf request, json;
};

/* --- parts --- */

void prompt_deinit(struct prompt *p) {
  buf_deinit(&p->bytes);
  free(p->parts);
  *p = (struct prompt){0};
}

static size_t part_start(const struct prompt *p, size_t i) {
  return i == 0 ? 0 : p->parts[i - 1].end;
}

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

/* Appends a piece. seq, key: the record and member that hold it; 0: not known. */
static void prompt_put(struct prompt *out, struct str piece, uint64_t seq, const char *key,
                       enum piece_kind kind) {
  if (piece.n == 0)
    return;
  bool is_short = piece.n < LIMIT_REF_TEXT_BYTES;
  if (seq != 0 && is_short && utf8_valid(piece.p, piece.n))
    seq = 0; /* it is shorter than a reference; only a reference keeps other bytes exact */
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

void prompt_log_init(struct prompt_log *log, const struct prompt *p, struct texts *texts) {
  *log = (struct prompt_log){
      .parts = xmalloc(p->count * (sizeof *log->parts + TEXTS_PLACE_BYTES) + 1), .count = p->count};
  char *place = (char *)(log->parts + p->count);
  for (size_t i = 0; i < p->count; i++, place += TEXTS_PLACE_BYTES) {
    struct str part = {p->bytes.p + part_start(p, i), p->parts[i].end - part_start(p, i)};
    bool found = p->parts[i].seq != 0;
    bool again = p->parts[i].stable || part.n >= LIMIT_OWN_PART_BYTES; /* worth looking up */
    if (found)
      texts_place(p->parts[i].seq, p->parts[i].key, place);
    else if (again)
      found = texts_find(texts, part, place);
    log->parts[i] = (struct record_part){found ? str_from(place) : part, found};
    if (found || utf8_valid(part.p, part.n))
      continue;
    json_t *shown = text_render(part); /* a text from outside: the log does not hold it whole */
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

/* --- templates --- */

static const struct str template_folder = STR_INIT("prompts/");

const char *const prompt_template_names[] = {
    "execute.md",   "judge_structured.md", "judge_tag.md", "judge_ai.md",   "reask.md", "schema.md",
    "invariant.md", "report.md",           "loop.md",      "judge_task.md", NULL};

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

/* Makes an empty prompt with room for templates, names and a text of n bytes. */
static void prompt_init(struct prompt *out, size_t n) {
  enum { TEMPLATE_BYTES = 2048 };
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  buf_reserve(&out->bytes, TEMPLATE_BYTES + (n < LIMIT_INLINE_TEXT_BYTES ? n : 0));
}

static bool is_whole(struct str piece, struct str text) {
  return piece.p == text.p && piece.n == text.n;
}

/* Returns the report or answer that a variable names: {report:FILE}, {response:MOVEMENT}; or
 * NULL. */
static const struct kept_text *prompt_kept(const struct prompt_view *v, struct str name) {
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

static void prompt_on_piece(void *ctx, struct str piece, const struct template_var *var) {
  const struct prompt_sink *sink = ctx;
  const char *key = NULL;
  const struct joined *joined = var != NULL ? joined_of(sink->view, piece, var->name) : NULL;
  if (joined != NULL) {
    size_t at = 0;
    for (size_t i = 0; i < joined->count; at = joined->joints[i++].end)
      prompt_put(sink->out, (struct str){piece.p + at, joined->joints[i].end - at},
                 joined->joints[i].seq, "text", PIECE_CHANGES);
    return;
  }
  if (var != NULL && sink->nested != NULL && str_eq(var->name, sink->nested->name)) {
    sink->nested->render(sink->nested, sink->out);
    return;
  }
  uint64_t seq = var != NULL ? prompt_place_of(sink->view, piece, var->name, &key) : 0;
  prompt_put(sink->out, piece, seq, key, prompt_kind_of(sink->view, piece, var));
}

/* Returns the shipped template. Looks first among those that were rendered before. */
static const struct resource *shipped_template(const struct prompt_view *view, const char *name) {
  const struct prompt_templates *t = view->templates;
  struct str language = view->workflow->language;
  for (size_t i = 0; t != NULL && i < t->count; i++) {
    const char *rest = t->items[i].resource->name + template_folder.n; /* LANGUAGE/NAME */
    if (strncmp(rest, language.p, language.n) == 0 && rest[language.n] == '/' &&
        strcmp(rest + language.n + 1, name) == 0)
      return t->items[i].resource;
  }
  buf_auto_t key = {0};
  buf_printf(&key, "%s" STR_FMT "/%s", template_folder.p, STR_ARG(language), name);
  const struct resource *r = resource_find(key.p);
  if (r == NULL)
    BUG("no template %s", key.p);
  return r;
}

/* Returns a template's text: the project's or the user's, else the shipped one. */
static struct str find_template(const struct prompt_view *view, const struct resource *shipped,
                                bool *own) {
  const json_t *override = json_object_get(view->overrides, shipped->name + template_folder.n);
  *own = json_is_string(override);
  return *own ? json_view(override) : (struct str){shipped->p, shipped->n};
}

/* Renders the template of that name: the project's or the user's, else the shipped one. */
static void prompt_render(const char *name, const struct template_var *vars,
                          struct prompt_sink *sink) {
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

static struct str prompt_digits(char buffer[STR_NUMBER_BYTES], long value) {
  return (struct str){buffer, str_from_number(buffer, value)};
}

/* --- variables --- */

const char *const prompt_variable_names[] = {"task",
                                             "iteration",
                                             "max_movements",
                                             "max_steps",
                                             "movement_iteration",
                                             "step_iteration",
                                             "previous_response",
                                             "user_inputs",
                                             "error",
                                             "item",
                                             "index",
                                             "report_dir",
                                             "cycle",
                                             "cycle_count",
                                             "mark",
                                             "sign",
                                             NULL};

/* Holds the variables of an instruction: first the fixed ones, then one for each
 * {structured:...}. */
struct variables {
  struct template_var *items; /* ends with a NULL name */
  size_t count;
  struct arena arena;
  const struct prompt_view *view;
};

/* Adds a variable, unless there is one of that name. */
static void add_variable(struct variables *v, struct str name, struct str value) {
  for (size_t i = 0; i < v->count; i++)
    if (str_eq(name, v->items[i].name))
      return;
  if (v->count % 16 == 0)
    v->items = xrealloc(v->items, (v->count + 17) * sizeof *v->items);
  v->items[v->count++] = (struct template_var){name, value};
  v->items[v->count] = (struct template_var){{NULL, 0}, {NULL, 0}};
}

/* Returns a text as it is, null or a missing value as nothing, and any other value as compact
 * JSON. */
static struct str value_text(struct arena *arena, const json_t *value) {
  buf_auto_t text = {0};
  if (value == NULL || json_is_null(value))
    return STR("");
  if (json_is_string(value))
    return (struct str){json_string_value(value), json_string_length(value)};
  json_write(value, &text);
  struct str copy = {arena_strndup(arena, text.p, text.n), text.n};
  return copy;
}

static void on_name(void *ctx, struct str name) {
  struct variables *v = ctx;
  struct str path = {name.p + strlen(PROMPT_STRUCTURED), name.n - strlen(PROMPT_STRUCTURED)};
  struct prompt_ref ref;
  const json_t *value = NULL;
  if (prompt_ref_parse(path, v->view->workflow, &ref))
    value =
        prompt_ref_value(&ref, json_object_getn(v->view->values, ref.movement.p, ref.movement.n));
  add_variable(v, name, value_text(&v->arena, value));
}

/* Adds a part of the item, such as {item.FIELD} or {item[0].FIELD}. */
static void on_item_name(void *ctx, struct str name) {
  struct variables *v = ctx;
  const struct prompt_ref ref = {STR("item"), {name.p + 4, name.n - 4}};
  add_variable(v, name, value_text(&v->arena, prompt_ref_value(&ref, v->view->item)));
}

/* Adds a report or an answer. One that does not exist yet is named as missing, because an empty
 * line would mislead. */
static void on_kept_name(void *ctx, struct str name) {
  struct variables *v = ctx;
  const struct kept_text *kept = prompt_kept(v->view, name);
  bool ja = workflow_language(v->view->workflow) == DESCRIBE_JAPANESE;
  struct str none = ja ? STR("（まだありません）") : STR("(there is none yet)");
  add_variable(v, name, kept ? buf_view(&kept->text) : none);
}

static bool is_of_group(const struct worktree *w, const struct workflow *wf, long group) {
  return w->committed == w->turn && wf->movements[w->movement].group == group;
}

/* Adds the branches of the last run of a group's children whose work is committed, a line each, in
 * the order in which they began. The list has the newest first, but not sorted by turn, so each
 * pass finds the next one. */
static void on_branches_name(void *ctx, struct str name) {
  static const size_t skip = sizeof PROMPT_BRANCHES - 1;
  struct variables *v = ctx;
  const struct workflow *wf = v->view->workflow;
  const struct worktree *list = v->view->worktrees, *next;
  long group = workflow_find(wf, (struct str){name.p + skip, name.n - skip}), run = 0, after = 0;
  buf_auto_t text = {0};
  for (const struct worktree *w = list; w; w = w->next)
    if (is_of_group(w, wf, group) && w->group > run)
      run = w->group;
  do {
    next = NULL;
    for (const struct worktree *w = list; w; w = w->next)
      if (is_of_group(w, wf, group) && w->group == run && w->turn > after &&
          (next == NULL || w->turn < next->turn))
        next = w;
    if (next != NULL) {
      buf_printf(&text, "%s\n", next->branch);
      after = next->turn;
    }
  } while (next != NULL);
  add_variable(v, name, arena_str(&v->arena, buf_view(&text)));
}

/* Adds the inputs. They come from outside and are data: they are never read as templates. */
static void add_inputs(struct variables *v) {
  JSON_MEMBERS(v->view->workflow->inputs, name, value) {
    struct str own = str_from(name);
    char *var = arena_alloc(&v->arena, strlen(PROMPT_INPUT) + own.n);
    memcpy(var, PROMPT_INPUT, strlen(PROMPT_INPUT));
    memcpy(var + strlen(PROMPT_INPUT), own.p, own.n);
    add_variable(v, (struct str){var, strlen(PROMPT_INPUT) + own.n}, json_view(value));
  }
}

/* Shows a loop's judge the loop: "review -> fix", 3 times. */
static void add_cycle(struct variables *v) {
  const struct workflow *wf = v->view->workflow;
  const struct monitor *m = v->view->movement->monitor;
  char count[STR_NUMBER_BYTES];
  buf_auto_t text = {0};
  for (size_t i = 0; i < m->cycle_count; i++) {
    struct str name = wf->movements[m->cycle[i]].name;
    buf_printf(&text, "%s" STR_FMT, i > 0 ? " -> " : "", STR_ARG(name));
  }
  add_variable(v, STR("cycle"), arena_str(&v->arena, buf_view(&text)));
  add_variable(v, STR("cycle_count"),
               arena_str(&v->arena, prompt_digits(count, v->view->cycle_count)));
}

static struct chain_spec own_spec(const struct movement *m, bool interactive) {
  return (struct chain_spec){.rules = m->rules,
                             .interactive = interactive,
                             .rule_count = m->rule_count,
                             .movement = m->own_name,
                             .stages = m->judge.stages,
                             .stage_count = m->judge.stage_count};
}

bool prompt_asks_for_tag(const struct movement *m, bool interactive) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  struct chain_spec spec = own_spec(m, interactive);
  bool listed = false;
  for (size_t i = 0; i < m->judge.stage_count; i++)
    listed |= m->judge.stages[i] == STAGE_PHASE1_TAG;
  return listed && m->structured == NULL && chain_offered(&spec, offered) > 1;
}

/* Returns the line that the agent is to end with, without its number: "[REVIEW:N] k7wd". */
static struct str sign_of(const struct prompt_view *v, struct arena *arena) {
  buf_auto_t sign = {0};
  rule_tag(v->movement->own_name, 0, &sign);
  sign.n -= 2;
  buf_printf(&sign, "N] " STR_FMT, STR_ARG(v->mark));
  return v->mark.n > 0 ? arena_str(arena, buf_view(&sign)) : STR("");
}

void prompt_fill(const struct prompt_view *v, struct str text, struct prompt *out) {
  char iteration[STR_NUMBER_BYTES], maximum[STR_NUMBER_BYTES], own[STR_NUMBER_BYTES],
      index[STR_NUMBER_BYTES];
  struct str max_text = STR("infinite");
  if (v->max_movements != MOVEMENTS_INFINITE)
    max_text = prompt_digits(maximum, v->max_movements);
  struct str own_text = prompt_digits(own, v->movement_iteration);
  struct variables vars = {.view = v};
  add_variable(&vars, STR("task"), v->task);
  add_variable(&vars, STR("iteration"), prompt_digits(iteration, v->iteration));
  add_variable(&vars, STR("max_movements"), max_text);
  add_variable(&vars, STR("max_steps"), max_text);
  add_variable(&vars, STR("movement_iteration"), own_text);
  add_variable(&vars, STR("step_iteration"), own_text);
  add_variable(&vars, STR("previous_response"), v->has_previous ? v->previous : STR(""));
  add_inputs(&vars);
  add_variable(&vars, STR("report_dir"), v->report_dir);
  add_variable(&vars, STR("user_inputs"), v->user_inputs);
  add_variable(&vars, STR("error"), v->error);
  bool asks = prompt_asks_for_tag(v->movement, v->interactive);
  add_variable(&vars, STR("mark"), asks ? v->mark : STR(""));
  add_variable(&vars, STR("sign"), asks ? sign_of(v, &vars.arena) : STR(""));
  if (v->movement->monitor != NULL)
    add_cycle(&vars);
  template_names(text, PROMPT_STRUCTURED, on_name, &vars);
  if (v->item != NULL) {
    add_variable(&vars, STR("item"), value_text(&vars.arena, v->item));
    add_variable(&vars, STR("index"), prompt_digits(index, v->index));
    template_names(text, "item.", on_item_name, &vars);
    template_names(text, "item[", on_item_name, &vars);
  }
  template_names(text, PROMPT_REPORT, on_kept_name, &vars);
  template_names(text, PROMPT_RESPONSE, on_kept_name, &vars);
  template_names(text, PROMPT_BRANCHES, on_branches_name, &vars);
  struct prompt_sink sink = {out, NULL, v};
  template_render(text, vars.items, prompt_on_piece, &sink);
  free(vars.items);
  arena_deinit(&vars.arena);
}

/* --- work --- */

static struct str effective_instruction(const struct prompt_view *view) {
  const struct movement *m = view->movement;
  bool own;
  if (m->monitor != NULL && m->instruction.n == 0)
    return str_trim(find_template(view, shipped_template(view, "loop.md"), &own));
  return m->instruction.n > 0 || m->argv != NULL ? m->instruction : STR("{task}");
}

static void render_instruction(const struct prompt_nested *nested, struct prompt *out) {
  prompt_fill(nested->view, effective_instruction(nested->view), out);
}

bool prompt_shows(const struct prompt *prompt, struct str mark) {
  return mark.n > 0 && memmem(prompt->bytes.p, prompt->bytes.n, mark.p, mark.n) != NULL;
}

static void prompt_tell_schema(const struct prompt_view *v, const struct schema *schema,
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

/* Renders an example of the schema's shape, if the movement wants one and one can be made. */
static void render_example(const struct prompt_view *v, struct prompt *out) {
  const struct structured_config *so = v->movement->structured;
  enum describe_language language = DESCRIBE_ENGLISH;
  char *text = NULL;
  if (so == NULL || !so->example)
    return;
  (void)describe_language_find(v->workflow->language.p, &language);
  enum example_status status = example_anchor(so->schema, language, &text);
  if (status == EXAMPLE_OK || status == EXAMPLE_WORDS) {
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

/* "yes" or nothing: a condition of a template */
static struct str prompt_yes_if(bool is) {
  return is ? STR("yes") : STR("");
}

/* Appends "1. approved" on each line, or "[REVIEW:1] approved". */
static void prompt_criteria(struct buf *b, const struct chain_spec *spec, struct str tag_name,
                            bool tags) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_shown(spec, offered);
  for (size_t i = 0; i < n; i++) {
    if (tags) {
      rule_tag(tag_name, offered[i]->number, b);
      buf_putc(b, ' ');
    } else {
      char number[STR_NUMBER_BYTES];
      buf_str(b, prompt_digits(number, offered[i]->number));
      buf_puts(b, ". ");
    }
    buf_str(b, offered[i]->label);
    if (offered[i]->appendix.n > 0) {
      buf_puts(b, "\n   ");
      struct str rest = str_trim(offered[i]->appendix);
      while (rest.p != NULL) {
        buf_str(b, str_next_line(&rest));
        if (rest.p != NULL)
          buf_puts(b, "\n   ");
      }
    }
    buf_putc(b, '\n');
  }
}

static void prompt_render_execute(const struct prompt_nested *nested, struct prompt *out) {
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
  buf_auto_t tags = {0};
  struct told_permission told = permission_told(v);
  struct arena arena = {0};
  if (prompt_asks_for_tag(m, v->interactive)) {
    struct chain_spec spec = own_spec(m, v->interactive);
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
      {STR("error"), template_uses(instruction, "error") ? STR("") : v->error},
      {STR("user_inputs"), template_uses(instruction, "user_inputs") ? STR("") : v->user_inputs},
      {STR("instruction"), instruction},
      {STR("tags"), buf_view(&tags)},
      {STR("mark"), tags.n > 0 ? v->mark : STR("")},
      {STR("sign"), sign_of(v, &arena)},
      {{NULL, 0}, {NULL, 0}},
  };
  prompt_render("execute.md", vars, &(struct prompt_sink){out, &inner, v});
  arena_deinit(&arena);
  buf_deinit(&told.run);
}

void prompt_execute(const struct prompt_view *v, struct prompt *out) {
  const struct prompt_nested nested = {.view = v};
  prompt_init(out, v->previous.n);
  prompt_render_execute(&nested, out);
  if (v->shows_schema) { /* what the answer must be, unless the backend enforces it */
    const struct structured_config *so = v->movement->structured;
    struct schema_told told;
    struct template_var vars[SCHEMA_VARS + 1] = {{{NULL, 0}, {NULL, 0}}};
    prompt_tell_schema(v, so->schema, so->document, &told, vars);
    prompt_render("schema.md", vars, &(struct prompt_sink){out, NULL, v});
    schema_told_deinit(&told);
  }
  render_example(v, out);
}

/* --- what people said --- */

/* Says who speaks. again: the call to which it was said may have read it before it ended. */
static struct str said_head(bool again, bool ja) {
  if (again && ja)
    return STR("作業中に人が次のように言いました（すでに読んでいるかもしれません）：\n\n");
  if (again)
    return STR("A person said this while you worked; you may have read it already:\n\n");
  if (ja)
    return STR("作業の間に人が次のように言いました：\n\n");
  return STR("A person said this while the work went on:\n\n");
}

/* Puts the first in front of the other. */
static void prompt_join(struct prompt all, struct prompt *prompt) {
  size_t n = all.bytes.n;
  buf_str(&all.bytes, buf_view(&prompt->bytes));
  all.parts = xrealloc(all.parts, (all.count + prompt->count + 16) / 16 * 16 * sizeof *all.parts);
  for (size_t i = 0; i < prompt->count; i++) {
    all.parts[all.count] = prompt->parts[i];
    all.parts[all.count++].end += n;
  }
  prompt_deinit(prompt);
  *prompt = all;
}

void prompt_put_first(struct str text, struct prompt *prompt) {
  struct prompt all = {.bytes = {.max = LIMIT_PROMPT_BYTES}};
  prompt_put(&all, text, 0, NULL, PIECE_CHANGES);
  prompt_join(all, prompt);
}

void prompt_said(const json_t *said, enum describe_language language, struct prompt *prompt) {
  bool ja = language == DESCRIBE_JAPANESE;
  struct prompt all = {.bytes = {.max = LIMIT_PROMPT_BYTES}};
  struct str end =
      STR("That is a part of your task; it permits nothing that was not permitted. The "
          "task follows.\n\n---\n\n");
  size_t i;
  json_t *one;
  if (ja)
    end = STR(
        "以上は依頼の一部です。許可を広げるものではありません。依頼は次のとおりです。\n\n---\n\n");
  json_array_foreach(said, i, one) {
    struct str head = said_head(json_at(one, "call") != NULL, ja);
    prompt_put(&all, head, 0, NULL, PIECE_CHANGES);
    prompt_put(&all, json_view(json_at(one, "text")), (uint64_t)json_int_at(one, "said"), "text",
               PIECE_CHANGES);
    prompt_put(&all, STR("\n\n"), 0, NULL, PIECE_CHANGES);
  }
  prompt_put(&all, end, 0, NULL, PIECE_CHANGES);
  prompt_join(all, prompt);
}

json_t *prompt_said_texts(const json_t *said) {
  size_t n = json_array_size(said), most = LIMIT_STEER_JUDGED_COUNT;
  json_t *texts = n > 0 ? json_array() : NULL;
  for (size_t i = n > most ? n - most : 0; i < n; i++) {
    struct str text = json_view(json_at(json_array_get(said, i), "text"));
    if (text.n > LIMIT_STEER_JUDGED_BYTES)
      text.n = utf8_floor(text.p, LIMIT_STEER_JUDGED_BYTES);
    json_array_append_new(texts, json_text(text));
  }
  return texts;
}

/* --- reports --- */

/* Fills in a contract's text, which may be absent. The parts that it is made of are dropped: the
 * prompt takes the text as one piece. */
static void contract_text(const struct prompt_view *view, struct str text, struct buf *out) {
  AUTO(prompt_deinit) struct prompt own = {.bytes = {.max = LIMIT_PROMPT_BYTES}};
  prompt_fill(view, text, &own);
  buf_str(out, str_trim(buf_view(&own.bytes)));
}

void prompt_report(const struct prompt_view *view, const struct contract *contract, bool alone,
                   struct prompt *out) {
  buf_auto_t order = {0}, format = {0};
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
  prompt_render("report.md", vars, &(struct prompt_sink){out, NULL, view});
}

/* --- invariants --- */

void prompt_value(const json_t *value, struct prompt *out) {
  buf_auto_t text = {0};
  json_write(value, &text);
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  prompt_put(out, buf_view(&text), 0, NULL, PIECE_CHANGES);
}

void prompt_invariant(const struct prompt_view *view, struct str question, const json_t *value,
                      struct prompt *out) {
  buf_auto_t text = {0};
  json_write(value, &text);
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  const struct template_var vars[] = {
      {STR("question"), question},
      {STR("value"), buf_view(&text)},
      {STR("fence"), str_from(view->nonce)},
      {{NULL, 0}, {NULL, 0}},
  };
  prompt_render("invariant.md", vars, &(struct prompt_sink){out, NULL, view});
}

/* --- questions of a judge, and corrections --- */

/* Returns at most the last `max` bytes of a text, from the start of a character. */
static struct str end_of_text(struct str text, size_t max, bool *cut) {
  *cut = text.n > max;
  if (!*cut)
    return text;
  size_t from = utf8_ceil(text.p, text.n, text.n - max);
  return (struct str){text.p + from, text.n - from};
}

static const char *judge_template(const struct prompt_view *v, enum judge_stage stage) {
  if (v->changed.n > 0)
    return "judge_task.md";
  if (stage == STAGE_STRUCTURED_OUTPUT)
    return "judge_structured.md";
  return stage == STAGE_PHASE3_TAG ? "judge_tag.md" : "judge_ai.md";
}

/* Appends files such as "src/a.c +1 -1, logo.png", at most LIMIT_PROMPT_FILE_COUNT of them. */
static void question_put_file(struct buf *b, const json_t *file, size_t i) {
  if (i < LIMIT_PROMPT_FILE_COUNT) {
    buf_puts(b, i ? ", " : "");
    protect_put_file(file, b);
  }
}

static void append_files(struct buf *b, const json_t *files, int64_t more) {
  size_t n = json_array_size(files);
  for (size_t i = 0; i < n; i++)
    question_put_file(b, json_array_get(files, i), i);
  if (n > LIMIT_PROMPT_FILE_COUNT || more > 0)
    buf_printf(b, ", ... (%" PRId64 ")", (int64_t)n + more);
}

/* A judge is told of the whole session: which files it changed, how its check ended first. */
enum {
  TOLD_FILES,
  TOLD_MORE,
  TOLD_NAMED,
  TOLD_NONE,
  TOLD_UNSEEN,
  TOLD_FIRST,
  TOLD_TURN,
  TOLD_TESTS,
  TOLD_LATE,
  TOLD_ONLY,
  SESSION_VARS,
  QUESTION_VARS = 28
};

static void tell_session(const struct prompt_view *v, struct buf told[SESSION_VARS]) {
  const json_t *first = v->check_first, *files = json_at(v->touched, "files");
  json_int_t turn = json_int_at(first, "turn");
  json_int_t beyond = json_int_at(v->touched, "more"); /* perhaps some twice */
  json_int_t unseen = json_int_at(v->touched, "unknown");
  bool late = json_is_true(json_at(first, "late"));
  size_t n = 0, named = 0, most = LIMIT_PROMPT_FILE_COUNT;
  JSON_MEMBERS(files, path, file) {
    question_put_file(&told[TOLD_FILES], file, n++);
    if (v->checks_by != NULL && checks_names(v->checks_by, json_view(json_at(file, "path"))))
      question_put_file(&told[TOLD_NAMED], file, named++);
  }
  if (n > most || beyond > 0)
    buf_printf(&told[TOLD_MORE], "%" JSON_INTEGER_FORMAT "%s",
               beyond + (json_int_t)(n > most ? n - most : 0), beyond > 0 ? "+" : "");
  if (v->touched == NULL && v->files != NULL && json_array_size(v->files) == 0)
    buf_puts(&told[TOLD_NONE], "yes");
  if (unseen > 0)
    buf_printf(&told[TOLD_UNSEEN], "%" JSON_INTEGER_FORMAT, unseen);
  if (late)
    buf_puts(&told[turn == v->check_turn ? TOLD_ONLY : TOLD_LATE], "yes");
  if (first == NULL || turn == v->check_turn)
    return;
  buf_printf(&told[TOLD_FIRST], "%" JSON_INTEGER_FORMAT, json_int_at(first, "exit"));
  buf_printf(&told[TOLD_TURN], "%" JSON_INTEGER_FORMAT, turn);
  checks_tests(first, &told[TOLD_TESTS]);
}

static const char *const told_names[SESSION_VARS] = {
    "session", "session_more", "named",       "untouched", "unseen",
    "first",   "first_turn",   "first_tests", "late",      "only"};

/* Returns the end of the report, where its outcome stands, as text that can be read. */
static struct str end_of_report(struct str report, struct buf *readable, bool *cut) {
  struct str end = end_of_text(report, LIMIT_JUDGE_TEXT_BYTES, cut);
  if (utf8_valid(end.p, end.n))
    return end;
  buf_safe(readable, end, true);
  return buf_view(readable);
}

/* Appends an agent's or a person's own words: as JSON they stay on their line. Takes them. */
static void question_put_words(struct buf *b, json_t *words) {
  if (words != NULL)
    json_write(words, b);
  json_decref(words);
}

static bool is_measured(const struct prompt_view *v) {
  return v->has_exit || v->check.n > 0 || v->checks.n > 0 || v->files != NULL ||
         v->unseen != NULL || v->head != NULL || v->touched != NULL || v->unfinished != NULL ||
         v->said != NULL || v->error.n > 0 || v->evidence.n > 0;
}

static void render_question(const struct prompt_nested *nested, struct prompt *out) {
  const struct prompt_view *v = nested->view;
  buf_auto_t criteria = {0}, tags = {0}, none = {0};
  char exit_status[STR_NUMBER_BYTES], check_turn[STR_NUMBER_BYTES], check_exit[STR_NUMBER_BYTES];
  buf_auto_t files = {0}, lost = {0}, unfinished = {0}, said = {0}, head = {0};
  bool works = v->movement->edit && !v->has_exit; /* others are asked what they think of it */
  bool unchanged = works && v->files != NULL && json_array_size(v->files) == 0 && !v->unseen;
  struct buf told[SESSION_VARS] = {0};
  append_files(&files, v->files, v->files_more);
  buf_safe(&lost, str_from(v->unseen), false);
  question_put_words(&unfinished, json_incref((json_t *)v->unfinished));
  question_put_words(&said, prompt_said_texts(v->said));
  head_tell(v->head, &head);
  bool ai = nested->stage == STAGE_AI_JUDGE;
  prompt_criteria(&criteria, nested->spec, v->movement->own_name, false);
  rule_tag(ai ? STR("judge") : v->movement->own_name, 0, &none);
  if (nested->stage == STAGE_PHASE3_TAG || !v->by_tool)
    prompt_criteria(&tags, nested->spec, ai ? STR("judge") : v->movement->own_name, true);
  buf_auto_t readable = {0};
  bool cut;
  struct str report = end_of_report(v->answer, &readable, &cut);
  struct template_var vars[QUESTION_VARS + SESSION_VARS + 1] = {
      {STR("workflow"), v->workflow->name},
      {STR("movement"), v->movement->name},
      {STR("description"), v->movement->description},
      {STR("criteria"), buf_view(&criteria)},
      {STR("tags"), buf_view(&tags)},
      {STR("none"), buf_view(&none)},
      {STR("tool"), prompt_yes_if(v->by_tool)},
      {STR("report"), report},
      {STR("cut"), prompt_yes_if(cut)},
      {STR("measured"), prompt_yes_if(is_measured(v))},
      {STR("exit"), v->has_exit ? prompt_digits(exit_status, v->exit) : STR("")},
      {STR("check"), v->check},
      {STR("check_turn"), prompt_digits(check_turn, v->check_turn)},
      {STR("check_exit"), prompt_digits(check_exit, v->check_exit)},
      {STR("checks"), v->checks},
      {STR("tests"), v->tests},
      {STR("no_pass"), prompt_yes_if(v->no_pass)},
      {STR("files"), buf_view(&files)},
      {STR("unchanged"), prompt_yes_if(unchanged)},
      {STR("lost"), buf_view(&lost)},
      {STR("unfinished"), buf_view(&unfinished)},
      {STR("head"), buf_view(&head)},
      {STR("said"), buf_view(&said)},
      {STR("error"), v->error},
      {STR("again"), v->again},
      {STR("evidence"), v->evidence},
      {STR("changed"), v->changed},
      [QUESTION_VARS - 1] = {STR("fence"), str_from(v->nonce)},
  };
  tell_session(v, told);
  for (size_t i = 0; i < SESSION_VARS; i++)
    vars[QUESTION_VARS + i] = (struct template_var){str_from(told_names[i]), buf_view(&told[i])};
  prompt_render(judge_template(v, nested->stage), vars, &(struct prompt_sink){out, NULL, v});
  for (size_t i = 0; i < SESSION_VARS; i++)
    buf_deinit(&told[i]);
}

void prompt_judge(const struct prompt_view *v, const struct chain_spec *spec,
                  enum judge_stage stage, struct prompt *out) {
  prompt_init(out, v->answer.n);
  render_question(&(struct prompt_nested){.view = v, .spec = spec, .stage = stage}, out);
}

void prompt_reask(const struct prompt_view *view, const struct prompt_correction *c,
                  struct prompt *out) {
  struct prompt_view shown = *view;
  struct prompt_nested nested = {.name = STR("question"),
                                 .render = c->spec ? render_question : prompt_render_execute,
                                 .view = &shown,
                                 .spec = c->spec,
                                 .stage = c->stage};
  const struct structured_config *so = view->movement->structured;
  struct schema *judged = c->spec ? schema_compile(c->schema, NULL, NULL, NULL) : NULL;
  AUTO(schema_told_deinit) struct schema_told told;
  buf_auto_t list = {0}, readable = {0};
  char more[STR_NUMBER_BYTES];
  bool cut;
  JSON_EACH(c->errors, i, error) {
    buf_printf(&list, "- %s\n", json_string_value(error));
  }
  struct str output = end_of_text(c->output, LIMIT_REASK_OUTPUT_BYTES, &cut);
  if (cut) /* the log holds the whole text */
    shown.bad_seq = 0;
  if (shown.bad_seq == 0 && !utf8_valid(output.p, output.n)) {
    buf_safe(&readable, output, true);
    output = buf_view(&readable);
  }
  *out = (struct prompt){.bytes = {.max = LIMIT_PROMPT_BYTES}};
  struct template_var vars[SCHEMA_VARS + 9] = {
      {STR("question"), STR("nested")},
      {STR("bad_output"), output},
      {STR("cut"), prompt_yes_if(cut)},
      {STR("errors"), buf_view(&list)},
      {STR("more"), c->more > 0 ? prompt_digits(more, (long)c->more) : STR("")},
      {STR("fence"), str_from(view->nonce)},
      {STR("keep"), prompt_yes_if(c->keep_valid)},
  };
  prompt_tell_schema(view, c->spec ? judged : so->schema, c->schema, &told, vars + 7);
  prompt_render("reask.md", vars, &(struct prompt_sink){out, &nested, &shown});
  schema_free(judged);
}
