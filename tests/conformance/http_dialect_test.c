/* The dialects against tests/data/http: a question to the bytes of a request, the bytes of a reply
 * to what it says. Each reply is read whole, in pieces of 7 bytes and byte by byte. README.md there
 * explains the cases. */
#include "base/memory.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "provider/api/reply.h"
#include "support/data.h"
#include "support/dialects.h"
#include "support/test.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

static size_t failures;

/* All that is wrong is printed before the test fails. */
static void wrong(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void wrong(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  failures++;
}

static unsigned quirks_of(const json_t *names) {
  static const struct {
    const char *name;
    unsigned bit;
  } table[] = {
      {"max_completion_tokens", QUIRK_MAX_COMPLETION_TOKENS},
      {"require_parameters", QUIRK_REQUIRE_PARAMETERS},
      {"reasoning_object", QUIRK_REASONING_OBJECT},
      {"structured_outputs", QUIRK_STRUCTURED_OUTPUTS},
      {"template_kwargs", QUIRK_TEMPLATE_KWARGS},
      {"no_usage_option", QUIRK_NO_USAGE_OPTION},
      {"random_seed", QUIRK_RANDOM_SEED},
      {"generate", QUIRK_GENERATE},
  };
  unsigned bits = 0;
  size_t i;
  json_t *name;
  json_array_foreach((json_t *)names, i, name) {
    unsigned bit = 0;
    for (size_t k = 0; k < ARRAY_LEN(table); k++)
      if (str_eq_c(data_str(name), table[k].name))
        bit = table[k].bit;
    if (bit == 0)
      wrong("no quirk %s", json_string_value(name));
    bits |= bit;
  }
  return bits;
}

static void check_build(const char *where, const struct dialect *dialect, const json_t *c) {
  const json_t *q = json_object_get(c, "ask"), *want;
  struct ask ask = {.version = "2023-06-01",
                    .model = data_get(q, "model"),
                    .prompt = data_get(q, "prompt"),
                    .options = json_object_get(q, "options"),
                    .extra = json_object_get(q, "extra"),
                    .schema = json_object_get(q, "schema"),
                    .grammar = data_get(q, "grammar"),
                    .think = json_object_get(q, "think"),
                    .keep_alive = json_object_get(q, "keep_alive"),
                    .key = data_get(q, "key"),
                    .quirks = quirks_of(json_object_get(q, "quirks")),
                    .stream = !json_is_false(json_object_get(q, "stream"))};
  AUTO(wire_deinit) struct wire wire = {0};
  struct err err = {0};
  if (json_object_get(q, "rung") && !rung_from_name(data_get(q, "rung"), &ask.rung))
    wrong("%s: no such rung", where);
  bool ok = dialect->build(&ask, &wire, &err);
  if (json_object_get(c, "error")) {
    if (ok || strstr(err.text, json_string_value(json_object_get(c, "error"))) == NULL)
      wrong("%s: %s", where, ok ? "it was built" : err.text);
    return;
  }
  if (!ok) {
    wrong("%s: %s", where, err.text);
    return;
  }
  if (strcmp(buf_c(&wire.path), json_string_value(json_object_get(c, "path"))) != 0)
    wrong("%s: path %s", where, buf_c(&wire.path));
  want = json_object_get(c, "headers");
  size_t n = 0;
  while (wire.headers[n])
    n++;
  if (n != json_array_size(want))
    wrong("%s: %zu headers", where, n);
  for (size_t i = 0; i < n; i++)
    if (!str_eq_c(data_str(json_array_get(want, i)), wire.headers[i]))
      wrong("%s: header %s", where, wire.headers[i]);
  buf_auto_t bytes = {0};
  json_write(json_object_get(c, "body"), &bytes);
  if (strcmp(buf_c(&bytes), buf_c(&wire.body)) != 0)
    wrong("%s: body\n%s\nexpected\n%s", where, buf_c(&wire.body), buf_c(&bytes));
}

struct told {
  struct buf text, thinking;
};

static void on_piece(void *ctx, bool thinking, struct str piece) {
  struct told *told = ctx;
  buf_str(thinking ? &told->thinking : &told->text, piece);
}

static void same_text(const char *where, const char *what, const json_t *want, struct str got) {
  if (want == NULL)
    return;
  if (!str_eq(data_str(want), (struct str){got.n ? got.p : "", got.n}))
    wrong("%s: %s is \"%.*s\", expected \"%s\"", where, what, (int)got.n, got.p,
          json_string_value(want));
}

static void check_read(const char *where, const struct dialect *dialect, const json_t *c,
                       size_t piece) {
  const json_t *want = json_object_get(c, "expect");
  struct str body = data_get(c, "body");
  struct reply r;
  struct told told = {0};
  struct secrets *secrets = secrets_new();
  char label[300];
  bool more = true;
  json_t *status = json_object_get(c, "status");
  print_into(label, sizeof label, "%s, pieces of %zu", where, piece);
  if (json_object_get(c, "secret"))
    secrets_add(secrets, "KEY", data_get(c, "secret"));
  reply_init(&r, dialect, 1700000000000, on_piece, &told);
  reply_redact(&r, secrets);
  JSON_MEMBERS(json_object_get(c, "headers"), name, value)
    reply_header(&r, str_from(name), data_str(value));
  reply_head(&r, status ? (int)json_integer_value(status) : 200);
  for (size_t i = 0; i < body.n && more; i += piece)
    more = reply_body(&r, (struct str){body.p + i, body.n - i < piece ? body.n - i : piece});
  reply_end(&r, !json_is_true(json_object_get(c, "cut")));
  const char *class = json_string_value(json_object_get(want, "class"));
  if (strcmp(class ? class : "ok", error_class_name(r.class)) != 0)
    wrong("%s: class %s: %s", label, error_class_name(r.class), r.message);
  same_text(label, "text", json_object_get(want, "text"), buf_view(&r.text));
  same_text(label, "tool", json_object_get(want, "tool"), buf_view(&r.tool));
  same_text(label, "stop", json_object_get(want, "stop"), str_from(r.stop));
  same_text(label, "thinking", json_object_get(want, "thinking"), buf_view(&told.thinking));
  if (json_object_get(want, "text") && !json_is_true(json_object_get(c, "bare_think")))
    same_text(label, "told text", json_object_get(want, "text"), buf_view(&told.text));
  const char *message = json_string_value(json_object_get(want, "message"));
  if (message && strstr(r.message, message) == NULL)
    wrong("%s: message \"%s\"", label, r.message);
  if (json_integer_value(json_object_get(want, "retry_after_ms")) != r.retry_after_ms)
    wrong("%s: retry after %lld ms", label, (long long)r.retry_after_ms);
  if (json_is_true(json_object_get(want, "mended")) != r.mended)
    wrong("%s: mended is %d", label, (int)r.mended);
  json_auto_t *usage = reply_usage_json(&r);
  const json_t *wanted = json_object_get(want, "usage"); /* null: nothing is known */
  if (wanted && (json_is_null(wanted) ? usage != NULL : !json_equal(usage, wanted))) {
    char_auto_t *text = json_dumps(usage, JSON_ENCODE_ANY);
    wrong("%s: usage %s", label, text ? text : "none");
  }
  reply_deinit(&r);
  secrets_free(secrets);
  buf_deinit(&told.text);
  buf_deinit(&told.thinking);
}

static void run_file(const char *path, size_t *count) {
  char dir[64], where[400];
  json_t *doc = data_load(path);
  const char *slash = strrchr(path, '/'), *from = slash;
  while (from[-1] != '/')
    from--;
  print_into(dir, sizeof dir, "%.*s", (int)(slash - from), from);
  JSON_EACH(doc, i, c) {
    const char *own = json_string_value(json_object_get(c, "dialect"));
    const struct dialect *dialect = dialect_named(own ? own : dir);
    print_into(where, sizeof where, "%s: %s", path, json_string_value(json_object_get(c, "name")));
    assert_non_null(dialect);
    if (json_object_get(c, "ask")) {
      check_build(where, dialect, c);
    } else {
      check_read(where, dialect, c, SIZE_MAX / 2);
      check_read(where, dialect, c, 7);
      check_read(where, dialect, c, 1);
    }
    ++*count;
  }
  json_decref(doc);
}

TEST(cases_hold) {
  glob_t files;
  size_t count = 0;
  assert_int_equal(glob(SEGUE_SOURCE_DIR "/tests/data/http/*/*.yaml", 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++)
    run_file(files.gl_pathv[i], &count);
  globfree(&files);
  assert_int_equal(failures, 0);
  assert_true(count >= 100); /* the folder was found */
}
