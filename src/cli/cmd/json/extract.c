/* segue extract: reads what a model said and prints the value in it. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/ndjson_in.h"
#include "cli/schema_in.h"
#include "extract/schema_check.h"
#include "format/json_object.h"

#include <string.h>
#include <unistd.h>

enum { SNIPPET_COLUMNS = 40, LEFT_OUT_COUNT = 5 };

struct extraction {
  enum extract_want want;
  bool repair, explain, label;
};

static void run_extract(const struct extraction *how, struct extract_schema *asked, struct str text,
                        struct extract_result *r) {
  const struct extract_check check = extract_schema_check(asked);
  bool object = how->want == EXTRACT_WANT_ANY && asked->schema &&
                json_object_get(extract_schema_root(asked->doc), "type") == NULL &&
                extract_schema_want(asked->doc) == EXTRACT_WANT_OBJECT;
  const struct extract_opts opts = {.want = object ? EXTRACT_WANT_OBJECT : how->want,
                                    .check = asked->schema ? &check : NULL,
                                    .repair = how->repair,
                                    .explain = how->explain};
  const json_t *label;
  (void)extract(text.p, text.n, &opts, r);
  if (how->label && asked->doc && !(r->value && r->valid) &&
      extract_label(asked->doc, text, &label) && schema_valid(asked->schema, label)) {
    extract_result_deinit(r);
    *r = (struct extract_result){.value = json_incref((json_t *)label),
                                 .stage = EXTRACT_BRACE,
                                 .valid = true,
                                 .length = text.n};
  }
}

/* ---- results as JSON ---- */

static void extract_put_count(json_t *object, const char *key, size_t n) {
  if (n > 0)
    json_object_set_new(object, key, json_integer((json_int_t)n));
}

static void add_schema_errors(json_t *list, const char *code, const struct schema_errors *errs) {
  json_auto_t *items = schema_errors_json(errs);
  JSON_EACH(items, i, item) {
    json_t *coded = json_pack("{s:s}", "code", code);
    json_object_update(coded, item);
    json_array_append_new(list, coded);
  }
}

static json_t *candidates_json(const struct extract_result *r) {
  json_t *list = json_array();
  for (size_t i = 0; i < r->note_count; i++) {
    const struct extract_note *note = &r->notes[i];
    json_t *length = note->length ? json_integer((json_int_t)note->length) : json_null();
    json_t *item = json_pack("{sI so ss sb ss}", "offset", (json_int_t)note->offset, "length",
                             length, "stage", extract_stage_name(note->stage), "repaired",
                             note->repaired, "outcome", note->outcome);
    extract_put_count(item, "error_offset", note->error_offset);
    json_array_append_new(list, item);
  }
  return list;
}

static bool found(const struct extract_result *r) {
  return r->value != NULL && r->valid;
}

/* Puts the members that every line of a batch has; value NULL: none was found. */
static void put_value(json_t *object, json_t *value, enum extract_stage stage,
                      json_t *owned_repairs, bool truncated) {
  json_auto_t *members = json_pack("{sO? ss so sb}", "value", value, "stage",
                                   extract_stage_name(value ? stage : EXTRACT_NONE), "repairs",
                                   owned_repairs, "truncated", truncated);
  json_object_update(object, members);
}

/* Fills a line of a batch, but for its id. */
static void add_result(json_t *object, const struct extraction *how,
                       const struct extract_schema *asked, const struct extract_result *r) {
  json_t *repairs = json_array(), *errors = json_array();
  for (size_t i = 0; i < r->repairs_listed; i++)
    json_array_append_new(repairs, json_pack("{s:s s:I}", "name", r->repairs[i].name, "offset",
                                             (json_int_t)r->repairs[i].offset));
  put_value(object, found(r) ? r->value : NULL, r->stage, repairs, r->truncated);
  if (found(r) && r->duplicate_key)
    json_object_set_new(object, "duplicate_key", json_true());
  if (found(r) && r->ambiguous)
    json_object_set_new(object, "ambiguous", json_true());
  if (!found(r))
    json_array_append_new(errors, json_pack("{ss sI so}", "code", extract_code_name(r->error.code),
                                            "offset", (json_int_t)r->error.offset, "message",
                                            json_io_string(r->error.message)));
  if (r->value != NULL && !r->valid) {
    AUTO(schema_errors_deinit) struct schema_errors errs = {0};
    (void)schema_check(asked->schema, r->value, &errs);
    add_schema_errors(errors, "schema", &errs);
  }
  json_object_set_new(object, "errors", errors);
  if (!how->explain)
    return;
  if (r->value != NULL) {
    json_object_set_new(object, "offset", json_integer((json_int_t)r->offset));
    json_object_set_new(object, "length", json_integer((json_int_t)r->length));
    json_object_set_new(object, "unwrapped", json_boolean(r->unwrapped));
  }
  if (r->value != NULL && !r->valid)
    json_object_set(object, "nearest", r->value);
  json_object_set_new(object, "candidates", candidates_json(r));
  extract_put_count(object, "candidates_dropped", r->notes_dropped);
}

/* ---- one text ---- */

static void print_candidates(const struct extract_result *r, struct str text) {
  buf_auto_t out = {0};
  for (size_t i = 0; i < r->note_count; i++) {
    const struct extract_note *note = &r->notes[i];
    char place[64], size[32] = "open";
    print_into(place, sizeof place, "byte %zu", note->offset);
    if (note->length > 0)
      print_into(size, sizeof size, "%zu bytes", note->length);
    buf_printf(&out, "  %-14s %-12s %-10s %-14s ", place, size, extract_stage_name(note->stage),
               note->outcome);
    struct str snippet = {text.p + note->offset, text.n - note->offset};
    if (note->length > 0 && note->length < snippet.n)
      snippet.n = note->length;
    else if (snippet.n > 4 * SNIPPET_COLUMNS)
      snippet.n = 4 * SNIPPET_COLUMNS;
    (void)cli_fit(&out, snippet, SNIPPET_COLUMNS);
    if (note->error_offset > 0)
      buf_printf(&out, "  (broke at byte %zu)", note->error_offset);
    buf_puts(&out, note->duplicate_key ? "  (a key appears twice)" : "");
    buf_puts(&out, note->repaired ? "  (repaired)\n" : "\n");
  }
  if (r->notes_dropped > 0)
    buf_printf(&out, "  and %zu more\n", r->notes_dropped);
  fprintf(stderr, "candidates: %zu\n%s", r->note_count + r->notes_dropped, buf_c(&out));
}

static void extract_explain(const struct extract_result *r, struct str text) {
  print_candidates(r, text);
  fprintf(stderr, "stage: %s%s\n", extract_stage_name(r->stage),
          r->unwrapped ? " (taken from a longer text)" : "");
  fprintf(stderr, "repairs: %zu\n", r->repair_count);
  for (size_t i = 0; i < r->repairs_listed; i++)
    fprintf(stderr, "  byte %-9zu %s\n", r->repairs[i].offset, r->repairs[i].name);
  if (r->repair_count > r->repairs_listed)
    fprintf(stderr, "  and %zu more\n", r->repair_count - r->repairs_listed);
  fprintf(stderr, "truncated: %s\n", r->truncated ? "yes" : "no");
}

static void print_schema_errors(const struct schema_errors *errs) {
  for (size_t i = 0; i < errs->count; i++)
    cli_say(stderr, "  %s: %s\n", errs->items[i].path, errs->items[i].message);
  if (errs->dropped > 0)
    fprintf(stderr, "  and %zu more errors\n", errs->dropped);
}

/* Reports what was in the text but is not in the value. */
static void tell_left_out(const struct extract_result *r) {
  static const struct {
    const char *name, *words;
  } table[] = {{"dropped_member", "a member without a complete value was left out"},
               {"dropped_item", "an item that was cut off was left out"},
               {"stray_text", "words that belong to nothing were left out"},
               {"duplicate_key", "a key appears twice: its last value counts"}};
  size_t told = 0;
  for (size_t i = 0; i < r->repairs_listed; i++)
    for (size_t k = 0; k < ARRAY_LEN(table); k++)
      if (strcmp(r->repairs[i].name, table[k].name) == 0 && ++told <= LEFT_OUT_COUNT)
        fprintf(stderr, "segue extract: at byte %zu: %s\n", r->repairs[i].offset, table[k].words);
  if (told > LEFT_OUT_COUNT)
    fprintf(stderr, "segue extract: and %zu more\n", told - LEFT_OUT_COUNT);
  if (r->duplicate_key)
    fprintf(stderr, "segue extract: at byte %zu: %s\n", r->offset, table[3].words);
  if (r->ambiguous)
    fputs("segue extract: another value that fits comes before it: this is the last one\n", stderr);
  if (r->truncated)
    fputs("segue extract: the text ends inside the value: its end may be missing\n", stderr);
}

static int extract_one(const struct extraction *how, struct extract_schema *asked, bool json,
                       struct str text) {
  AUTO(extract_result_deinit) struct extract_result r = {0};
  enum json_io_form form = isatty(STDOUT_FILENO) ? JSON_IO_TERMINAL : JSON_IO_COMPACT;
  run_extract(how, asked, text, &r);
  if (how->explain && !json)
    extract_explain(&r, text);
  if (json) {
    json_auto_t *object = json_object();
    add_result(object, how, asked, &r);
    json_io_print(object, form);
  } else if (found(&r)) {
    json_io_print(r.value, form);
  }
  if (!found(&r)) {
    cli_say(stderr, "segue extract: %s at byte %zu: %s\n", extract_code_name(r.error.code),
            r.error.offset, r.error.message);
    if (r.value != NULL && !r.valid) {
      AUTO(schema_errors_deinit) struct schema_errors errs = {0};
      (void)schema_check(asked->schema, r.value, &errs);
      print_schema_errors(&errs);
    }
  } else if (!json && !how->explain) {
    tell_left_out(&r);
  }
  return found(&r) ? STATUS_COMPLETE : STATUS_FAILED;
}

/* ---- a batch ---- */

struct extract_batch {
  struct extraction how;
  struct extract_schema given; /* --schema, for lines that bring none */
  struct schema_opts opts;
  struct schema_cache cache;
};

/* Refuses a line that does not name a text, or how to read it. */
static void extract_refuse(json_t *out, unsigned long long line, const char *code,
                           const char *message) {
  json_t *errors = json_array();
  put_value(out, NULL, EXTRACT_NONE, json_array(), false);
  if (message != NULL)
    json_array_append_new(errors, json_pack("{s:s s:I s:o}", "code", code, "line", (json_int_t)line,
                                            "message", json_io_string(message)));
  json_object_set_new(out, "errors", errors);
}

/* Puts a line's schema into `asked`; on false `out` says what is wrong with it. */
static bool line_schema(struct extract_batch *b, json_t *in, unsigned long long line,
                        struct extract_schema *asked, json_t *out) {
  json_t *doc = json_object_get(in, "schema"); /* the line holds it while it is used */
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  enum schema_status status;
  *asked = b->given;
  if (doc == NULL || json_is_null(doc))
    return true;
  if (json_is_string(doc)) {
    struct err err;
    json_t *ready = schema_in_line(doc, &err);
    if (ready == NULL) {
      extract_refuse(out, line, "schema", err.text);
      return false;
    }
    json_object_set_new(in, "schema", ready);
    doc = ready;
  }
  if (!schema_has_known_keyword(doc)) {
    extract_refuse(out, line, "schema", "\"schema\" has no keyword that restricts a value");
    return false;
  }
  asked->doc = doc;
  asked->schema = schema_cache_get(&b->cache, doc, &b->opts, &errs, &status);
  if (asked->schema == NULL) {
    extract_refuse(out, line, "", NULL);
    add_schema_errors(json_object_get(out, "errors"), schema_status_name(status), &errs);
  }
  return asked->schema != NULL;
}

static void extract_answer(struct extract_batch *b, json_t *in, unsigned long long line,
                           json_t *out) {
  const json_t *text = json_object_get(in, "text"), *want = json_object_get(in, "want");
  struct extraction how = b->how;
  struct extract_schema asked;
  AUTO(extract_result_deinit) struct extract_result r = {0};
  json_object_set(out, "id", json_object_get(in, "id"));
  if (!json_is_string(text)) {
    extract_refuse(out, line, "bad_line", "\"text\" must be a string");
    return;
  }
  if (want != NULL && !json_is_null(want) &&
      (!json_is_string(want) || !extract_want_parse(json_string_value(want), &how.want))) {
    extract_refuse(out, line, "bad_line", "\"want\" must be \"object\", \"array\" or \"any\"");
    return;
  }
  if (!line_schema(b, in, line, &asked, out))
    return;
  run_extract(&how, &asked, json_view(text), &r);
  add_result(out, &how, &asked, &r);
}

static void extract_one_line(void *ctx, const struct ndjson_in *in, struct str line, json_t *out) {
  struct extract_batch *b = ctx;
  struct err err = {0};
  const char *code;
  json_object_set_new(out, "id", json_null());
  json_auto_t *object = ndjson_in_object(in, line, "{\"id\",\"text\"}", &code, &err);
  if (object != NULL)
    extract_answer(b, object, in->number, out);
  else
    extract_refuse(out, in->number, code, err.text);
}

static int extract_batch(struct extract_batch *b, const char *path) {
  int status = ndjson_in_answer("extract", path, b, extract_one_line);
  schema_cache_deinit(&b->cache);
  return status;
}

/* ---- the command ---- */

static bool load_schema(const char *path, const struct schema_opts *opts,
                        struct extract_schema *asked, struct schema **schema) {
  struct err err = {0};
  AUTO(schema_errors_deinit) struct schema_errors errs = {0};
  enum schema_status status;
  asked->doc = schema_in_read(path, &err);
  if (asked->doc == NULL) {
    (void)cli_fail("extract", &err);
    return false;
  }
  if (!schema_has_known_keyword(asked->doc)) {
    err_set(&err, ERR_USAGE, "%.300s has no keyword that restricts a value", path);
    (void)cli_fail("extract", &err);
    return false;
  }
  asked->schema = *schema = schema_compile(asked->doc, opts, &errs, &status);
  if (*schema == NULL) {
    err_set(&err, ERR_USAGE, "%.300s is not a usable schema (%s)", path,
            schema_status_name(status));
    (void)cli_fail("extract", &err);
    print_schema_errors(&errs);
  }
  return *schema != NULL;
}

static int extract_run(const struct cli_args *args) {
  struct extract_batch b = {0};
  struct schema *schema = NULL;
  buf_auto_t text = {0};
  struct err err = {0};
  int status;
  const char *want = cli_value(args, "want"), *path = args->word_count ? args->words[0] : NULL;
  const char *schema_path = cli_value(args, "schema");
  b.how.repair = !cli_flag(args, "no-repair");
  b.how.explain = cli_flag(args, "explain");
  b.how.label = cli_flag(args, "enum");
  b.opts.assert_formats = cli_flag(args, "assert-format");
  if (cli_flag(args, "repair") && cli_flag(args, "no-repair"))
    err_set(&err, ERR_USAGE, "--repair and --no-repair cannot be combined");
  else if (b.how.label && schema_path == NULL && !cli_flag(args, "batch"))
    err_set(&err, ERR_USAGE, "--enum needs a --schema with an enum");
  else if (want != NULL && !extract_want_parse(want, &b.how.want))
    err_set(&err, ERR_USAGE, "--want must be object, array or any");
  else if (schema_path && strcmp(schema_path, "-") == 0 && (path == NULL || strcmp(path, "-") == 0))
    err_set(&err, ERR_USAGE, "only one of schema and text can come from standard input");
  if (err.code != ERR_NONE)
    return cli_fail("extract", &err);
  if (schema_path != NULL && !load_schema(schema_path, &b.opts, &b.given, &schema)) {
    status = STATUS_USAGE;
  } else if (cli_flag(args, "batch")) {
    status = extract_batch(&b, path);
  } else if (!json_io_read(path ? path : "-", JSON_IO_BYTES, &text, &err)) {
    status = cli_fail_with(STATUS_USAGE, "extract", &err);
  } else {
    struct str said = buf_view(&text);
    said.n -= str_ends(said, "\n"); /* it is the file's, and hides where a cut text ends */
    status = extract_one(&b.how, &b.given, cli_flag(args, "json"), said);
  }
  schema_free(schema);
  json_decref((json_t *)b.given.doc);
  return status;
}

const struct cli_command cmd_extract = {COMMAND_EXTRACT, .run = extract_run};
