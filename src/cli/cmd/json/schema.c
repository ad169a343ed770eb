/* segue schema: shows one schema in many renderings, as a model would see it. */
#include "adapt/adapt.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/schema_in.h"
#include "format/json_object.h"
#include "gbnf/gbnf.h"
#include "render/describe.h"
#include "render/example.h"
#include "schema/schema_lint.h"

#include <string.h>
#include <unistd.h>

struct rendering_job {
  const char *file;
  json_t *doc;           /* owned */
  struct schema *schema; /* owned: `doc`, compiled */
  struct schema_opts opts;
  struct registry_in registry;
  enum describe_language language;
  bool annotations, think;
};

/* ---- the renderings ---- */

/* Notes in `list` what a rendering does not enforce: {"pointer","keyword","effect","why"}. `effect`
 * may be NULL. */
static void note(json_t *list, const char *pointer, const char *keyword, const char *effect,
                 const char *why) {
  json_array_append_new(list, json_pack("{so so ss* so}", "pointer", json_io_string(pointer),
                                        "keyword", json_io_string(keyword), "effect", effect, "why",
                                        json_io_string(why)));
}

static bool as_described(const struct rendering_job *job, const char *name, struct buf *out,
                         json_t *notes, struct err *err) {
  char *text;
  enum schema_status status;
  (void)notes; /* it says every keyword */
  if (strcmp(name, "prompt") == 0)
    status = describe_prompt(job->schema, job->language, &text);
  else if (strcmp(name, "types") == 0)
    status = describe_types(job->schema, &text);
  else
    status = describe_json(job->schema, job->annotations, &text);
  if (text != NULL)
    buf_puts(out, text);
  describe_free(text);
  return status == SCHEMA_OK || err_set(err, ERR_INVALID, "the schema is too large to show");
}

/* Lists where words stand in an example: it fails the check there. */
static void note_words(const struct schema *schema, const json_t *example,
                       const struct example_trouble *trouble, json_t *notes) {
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  if (schema_check(schema, example, &errors) == SCHEMA_OK)
    note(notes, trouble->pointer, "pattern", NULL, trouble->message);
  for (size_t i = 0; i < errors.count; i++) {
    char *place = errors.items[i].schema_path, *last = strrchr(place, '/');
    if (last != NULL)
      *last = '\0';
    note(notes, place, errors.items[i].keyword, NULL, trouble->message);
  }
}

static bool as_example(const struct rendering_job *job, const char *name, struct buf *out,
                       json_t *notes, struct err *err) {
  (void)name;
  struct example_trouble trouble;
  json_t *value;
  enum example_status status = example_make(job->schema, &value, &trouble);
  if (status == EXAMPLE_WORDS)
    note_words(job->schema, value, &trouble, notes);
  if (status == EXAMPLE_NONE || status == EXAMPLE_TOO_COMPLEX) {
    note(notes, trouble.pointer, "", NULL, trouble.message);
    return err_set(err, ERR_INVALID, "no example (%s): %s%s%s", example_status_name(status),
                   trouble.pointer, *trouble.pointer ? ": " : "", trouble.message);
  }
  json_io_write(value, JSON_IO_TERMINAL, out);
  buf_putc(out, '\n');
  json_decref(value);
  return true;
}

static bool as_gbnf(const struct rendering_job *job, const char *name, struct buf *out,
                    json_t *notes, struct err *err) {
  struct gbnf_opts opts = {.think = job->think,
                           .registry = job->opts.registry,
                           .default_draft = job->opts.default_draft};
  AUTO(gbnf_result_deinit) struct gbnf_result result = {0};
  enum gbnf_status status = gbnf_convert(job->doc, &opts, &result);
  (void)name;
  for (size_t i = 0; i < result.note_count; i++) {
    buf_auto_t place = buf_of("%s%s%s", result.notes[i].pointer,
                              *result.notes[i].keyword ? "/" : "", result.notes[i].keyword);
    note(notes, buf_c(&place), result.notes[i].keyword, NULL, result.notes[i].why);
  }
  if (status == GBNF_OK)
    buf_append(out, result.text, result.length);
  else
    err_set(err, ERR_INVALID, "no grammar (%s): %s%s%s", gbnf_status_name(status),
            result.refusal_pointer ? result.refusal_pointer : "",
            result.refusal_pointer && *result.refusal_pointer ? ": " : "",
            result.refusal ? result.refusal : "");
  return status == GBNF_OK;
}

/* Renders the schema in the dialect `name`; also notes what only has another shape. */
static bool as_adapted(const struct rendering_job *job, const char *name, struct buf *out,
                       json_t *notes, struct err *err) {
  struct adapt_opts opts = {.registry = job->opts.registry,
                            .default_draft = job->opts.default_draft};
  struct adapt_error error = {0};
  struct adapted *adapted = adapt(job->doc, adapt_dialect_find(name), &opts, &error);
  if (adapted == NULL) {
    note(notes, error.pointer, error.keyword, adapt_status_name(error.status), error.message);
    return err_set(err, ERR_INVALID, "no schema for %s (%s): %s%s%s", name,
                   adapt_status_name(error.status), error.pointer, *error.pointer ? ": " : "",
                   error.message);
  }
  for (size_t i = 0; i < adapted_change_count(adapted); i++) {
    const struct adapt_change *change = adapted_change_at(adapted, i);
    note(notes, change->pointer, change->keyword, adapt_effect_name(change->effect), change->why);
  }
  json_io_write(adapted_schema(adapted), JSON_IO_TERMINAL, out);
  buf_putc(out, '\n');
  adapted_free(adapted);
  return true;
}

/* `make` puts the rendering into `out` and what that does not hold into `notes`, or says in
 * `err` why there is none. */
static const struct rendering {
  const char *name;
  bool (*make)(const struct rendering_job *job, const char *name, struct buf *out, json_t *notes,
               struct err *err);
  bool overview; /* shown without --as */
} renderings[] = {
    {"prompt", as_described, true},     {"types", as_described, false},
    {"json", as_described, false},      {"example", as_example, true},
    {"gbnf", as_gbnf, false},           {"openai", as_adapted, false},
    {"openai-chat", as_adapted, false}, {"codex", as_adapted, false},
    {"openrouter", as_adapted, false},  {"anthropic", as_adapted, false},
    {"claude", as_adapted, false},      {"gemini", as_adapted, false},
    {"ollama", as_adapted, false},      {"llamacpp", as_adapted, false},
    {"lmstudio", as_adapted, false},    {"vllm", as_adapted, false},
    {"qwen", as_adapted, false},        {"opencode", as_adapted, false},
};

static const struct rendering *rendering_find(const char *name, struct err *err) {
  const char *names[ARRAY_LEN(renderings) + 1] = {0};
  buf_auto_t list = {0};
  for (size_t i = 0; i < ARRAY_LEN(renderings); i++) {
    if (strcmp(name, renderings[i].name) == 0)
      return &renderings[i];
    names[i] = renderings[i].name;
    buf_printf(&list, "%s%s", i == 0 ? "" : ", ", names[i]);
  }
  const char *near = str_nearest(str_from(name), names);
  if (near != NULL)
    err_set(err, ERR_USAGE, "--as %.40s: there is no such rendering: did you mean %s?", name, near);
  else
    err_set(err, ERR_USAGE, "--as %.40s: there is no such rendering: write one of %s", name,
            buf_c(&list));
  return NULL;
}

/* ---- output ---- */

/* Prints the exact bytes to a pipe, and nothing that controls it to a terminal. */
static void print_text(const struct buf *text) {
  buf_auto_t safe = {0};
  struct str bytes = buf_view(text);
  if (isatty(STDOUT_FILENO)) {
    buf_safe(&safe, bytes, true);
    bytes = buf_view(&safe);
  }
  fwrite(bytes.p, 1, bytes.n, stdout);
}

/* Counts the rules that are not enforced; one in another shape is. */
static size_t not_held(const json_t *notes) {
  const char *rewritten = adapt_effect_name(ADAPT_REWRITTEN);
  size_t n = 0;
  JSON_EACH(notes, i, item)
    n += strcmp(cli_word(item, "effect"), rewritten) != 0;
  return n;
}

static int show_one(const struct rendering_job *job, const struct rendering *rendering) {
  buf_auto_t text = {0};
  struct err err = {0};
  json_auto_t *notes = json_array();
  int status = STATUS_COMPLETE;
  if (rendering->make(job, rendering->name, &text, notes, &err)) {
    size_t n = not_held(notes);
    print_text(&text);
    if (n > 0)
      fprintf(stderr, "segue schema: %zu keyword%s not expressed by %s: --report lists %s\n", n,
              n == 1 ? " is" : "s are", rendering->name, n == 1 ? "it" : "them");
  } else {
    status = cli_fail_with(STATUS_FAILED, "schema", &err);
  }
  return status;
}

/* Prints a line for each keyword that a rendering, or any of them, does not enforce. */
static int cmd_schema_report(const struct rendering_job *job, const struct rendering *only) {
  for (size_t i = 0; i < ARRAY_LEN(renderings); i++) {
    if (only != NULL && only != &renderings[i])
      continue;
    buf_auto_t text = {0};
    struct err err = {0};
    json_t *notes = json_array();
    if (!renderings[i].make(job, renderings[i].name, &text, notes, &err) &&
        json_array_size(notes) == 0)
      note(notes, "", "", NULL, err.text);
    JSON_EACH(notes, k, item) {
      json_t *line = json_pack("{s:s}", "as", renderings[i].name);
      json_object_update(line, item);
      json_io_put(line);
    }
    json_decref(notes);
  }
  return STATUS_COMPLETE;
}

static void heading(const char *text, bool first) {
  bool colours = cli_colours(STDOUT_FILENO);
  printf("%s%s%s%s\n\n", first ? "" : "\n", cli_paint(colours, COLOUR_BOLD), text,
         cli_paint(colours, COLOUR_NONE));
}

/* Appends what is odd about the schema, a line each. */
static void schema_warnings(const struct rendering_job *job, struct buf *out) {
  if (!schema_has_known_keyword(job->doc) && !json_is_boolean(job->doc))
    buf_puts(out, "nothing in the schema restricts a value: any JSON is valid\n");
  AUTO(schema_errors_deinit) struct schema_errors odd = {0};
  schema_lint(job->doc, false, &odd);
  for (size_t i = 0; i < odd.count; i++)
    buf_printf(out, "%s: %s\n", odd.items[i].path, odd.items[i].message);
}

/* Prints for a program: the chosen rendering or those of the overview, and the warnings. */
static int as_object(const struct rendering_job *job, const struct rendering *only) {
  json_t *list = json_array(), *warnings = json_array();
  int status = STATUS_COMPLETE;
  for (size_t i = 0; i < ARRAY_LEN(renderings); i++) {
    const struct rendering *r = &renderings[i];
    if (only != NULL ? only != r : !r->overview)
      continue;
    buf_auto_t text = {0};
    struct err err = {0};
    json_t *notes = json_array();
    bool made = r->make(job, r->name, &text, notes, &err);
    json_t *item = json_pack("{ss so so}", "as", r->name, "text",
                             made ? json_io_string(buf_c(&text)) : json_null(), "not_held", notes);
    if (!made) {
      json_object_set_new(item, "error", json_io_string(err.text));
      status = only != NULL ? STATUS_FAILED : status;
    }
    json_array_append_new(list, item);
  }
  buf_auto_t said = {0};
  schema_warnings(job, &said);
  for (struct str rest = buf_view(&said), line; rest.n > 0;) {
    line = str_next_line(&rest);
    json_array_append_new(warnings, json_stringn(line.p, line.n));
  }
  json_io_put(json_pack("{so so so}", "schema", json_io_string(job->file), "renderings", list,
                        "warnings", warnings));
  return status;
}

/* Prints for a person: what a model would see, and what is odd about the schema. */
static int overview(const struct rendering_job *job) {
  buf_auto_t warnings = {0};
  schema_warnings(job, &warnings);
  for (size_t i = 0; i < ARRAY_LEN(renderings); i++) {
    if (!renderings[i].overview)
      continue;
    buf_auto_t text = {0};
    struct err err = {0};
    json_auto_t *notes = json_array();
    heading(renderings[i].name, i == 0);
    if (renderings[i].make(job, renderings[i].name, &text, notes, &err)) {
      print_text(&text);
    } else {
      printf("none\n");
      buf_printf(&warnings, "%s: %s\n", renderings[i].name, err.text);
    }
  }
  heading("warnings", false);
  if (warnings.n == 0)
    buf_puts(&warnings, "none\n");
  buf_auto_t safe = {0};
  buf_safe(&safe, buf_view(&warnings), true);
  fputs(buf_c(&safe), stdout);
  return STATUS_COMPLETE;
}

/* ---- the command ---- */

static bool schema_prepare(struct rendering_job *job, const struct cli_args *args,
                           struct err *err) {
  const char *language = cli_value(args, "language"), *annotations = cli_value(args, "annotations");
  job->file = args->words[0];
  job->annotations = annotations == NULL || strcmp(annotations, "keep") == 0;
  job->opts.assert_formats = cli_flag(args, "formats");
  job->think = cli_flag(args, "think");
  if (annotations != NULL && !job->annotations && strcmp(annotations, "drop") != 0)
    return err_set(err, ERR_USAGE, "--annotations must be keep or drop");
  const char *as = cli_value(args, "as");
  if (job->think && (as == NULL || strcmp(as, "gbnf") != 0))
    return err_set(err, ERR_USAGE, "--think belongs to --as gbnf");
  if (language != NULL && !describe_language_find(language, &job->language))
    return err_set(err, ERR_USAGE, "--language must be en or ja");
  if (!registry_in_options(&job->registry, args, &job->opts, err))
    return false;
  registry_in_beside(&job->registry, job->file, &job->opts);
  job->doc = schema_in_read(job->file, err);
  return job->doc != NULL;
}

static bool compile(struct rendering_job *job) {
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  enum schema_status status;
  job->schema = schema_compile(job->doc, &job->opts, &errs, &status);
  if (job->schema == NULL)
    schema_trouble_print("schema", job->file, &errs, status, &job->registry);
  return job->schema != NULL;
}

static int schema_run(const struct cli_args *args) {
  struct rendering_job job = {0};
  struct err err = {0};
  int status;
  const char *as = cli_value(args, "as");
  const struct resource *own = schema_in_own(args->words[0]);
  if (own != NULL && as == NULL && !cli_flag(args, "report") && !cli_flag(args, "json")) {
    fwrite(own->p, 1, own->n, stdout);
    return STATUS_COMPLETE;
  }
  const struct rendering *rendering = as != NULL ? rendering_find(as, &err) : NULL;
  if (err.code != ERR_NONE || !schema_prepare(&job, args, &err)) {
    status = cli_fail_with(STATUS_USAGE, "schema", &err);
  } else if (!compile(&job)) {
    status = STATUS_USAGE;
  } else if (cli_flag(args, "report")) {
    status = cmd_schema_report(&job, rendering);
  } else if (cli_flag(args, "json")) {
    status = as_object(&job, rendering);
  } else {
    status = rendering != NULL ? show_one(&job, rendering) : overview(&job);
  }
  schema_free(job.schema);
  json_decref(job.doc);
  registry_in_deinit(&job.registry);
  return status;
}

const struct cli_command cmd_schema = {COMMAND_SCHEMA, .run = schema_run};
