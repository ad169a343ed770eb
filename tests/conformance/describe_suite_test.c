/* Over every schema of the official JSON-Schema-Test-Suite and of data/schema-bench: an example
 * validates, has words in it and says so, or is refused with a status; prompt and types say the
 * same each time, and what they say is one line a field. Prints the share of schemas with an
 * example. Both are looked for in $SEGUE_SHARED and in ../shared beside the sources, the suite also
 * where Debian's package has it. Options: -v names each schema without an example that has a valid
 * value. */
#include "format/json_object.h"
#include "render/describe.h"
#include "render/example.h"
#include "support/draft.h"
#include "support/suite.h"
#include "support/wrong.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
  unsigned schemas, examples, words, refused, empty, failed;
};

static bool verbose;

static void failed(struct tally *tally, const char *name, const char *what) {
  tally->failed++;
  printf("%s: %s\n", name, what);
}

/* Twice the same, ended by a line's end, without what could steer a reader. */
static void check_text(struct tally *tally, const char *name, enum schema_status first,
                       enum schema_status second, const char *a, const char *b) {
  if (test_made_wrong() || first != second || (a == NULL) != (first != SCHEMA_OK))
    failed(tally, name, "the status differs, or there is a text without one");
  if (!a || !b)
    return;
  if (strcmp(a, b) != 0)
    failed(tally, name, "two renderings differ");
  size_t n = strlen(a);
  if (!n || a[n - 1] != '\n')
    failed(tally, name, "the last line does not end");
  if (strstr(a, "```") || strpbrk(a, "\r\t\f\v\x1b"))
    failed(tally, name, "a fence or a control character in a rendering");
}

static void check_renderings(struct tally *tally, const char *name, const struct schema *schema) {
  char *a, *b;
  for (int language = DESCRIBE_ENGLISH; language <= DESCRIBE_JAPANESE; language++) {
    enum schema_status first = describe_prompt(schema, (enum describe_language)language, &a);
    enum schema_status second = describe_prompt(schema, (enum describe_language)language, &b);
    check_text(tally, name, first, second, a, b);
    describe_free(a);
    describe_free(b);
  }
  enum schema_status first = describe_types(schema, &a), second = describe_types(schema, &b);
  check_text(tally, name, first, second, a, b);
  describe_free(a);
  describe_free(b);
  if (describe_json(schema, false, &a) != SCHEMA_OK)
    failed(tally, name, "no compact schema");
  describe_free(a);
  if (describe_json(schema, true, &a) != SCHEMA_OK)
    failed(tally, name, "no compact schema");
  json_auto_t *again = json_loads(a, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
  if (!again)
    failed(tally, name, "the compact schema is not JSON");
  describe_free(a);
}

/* `some`: a value that is valid; NULL: none is known. */
static void check_schema(struct tally *tally, const char *name, const json_t *doc,
                         const struct schema_opts *opts, const json_t *values) {
  struct schema *schema = schema_compile(doc, opts, NULL, NULL);
  struct example_trouble trouble;
  bool satisfiable = false;
  if (!schema)
    return;
  JSON_EACH(values, i, value) {
    satisfiable = satisfiable || (json_is_true(json_object_get(value, "valid")) &&
                                  schema_valid(schema, json_object_get(value, "data")));
  }
  json_t *example;
  enum example_status status = example_make(schema, &example, &trouble);
  tally->schemas++;
  if (status == EXAMPLE_OK) {
    tally->examples++;
    if (!schema_valid(schema, example))
      failed(tally, name, "an example is not valid");
  } else if (!*trouble.message) {
    failed(tally, name, "a refusal without a reason");
  } else if (status == EXAMPLE_WORDS) {
    tally->words++;
    if (!example)
      failed(tally, name, "no example in words");
  } else if (satisfiable) {
    tally->refused++;
    if (verbose)
      printf("  %s: %s %s: %s\n", name, example_status_name(status), trouble.pointer,
             trouble.message);
  } else {
    tally->empty++;
  }
  json_decref(example);
  check_renderings(tally, name, schema);
  schema_free(schema);
}

static struct schema_registry *remotes;

static void check_folder(struct tally *tally, const char *root, const char *draft,
                         const char *under, bool formats) {
  char folder[2048], path[4096], name[4096];
  const char *uri = draft_uri(draft);
  struct schema_opts opts = {formats, remotes, uri};
  struct dirent **names;
  snprintf(folder, sizeof folder, "%s/tests/%s%s", root, draft, under);
  int n = scandir(folder, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
    json_auto_t *groups = suite_load(path);
    JSON_EACH(groups, k, group) {
      const char *what = json_string_value(json_object_get(group, "description"));
      snprintf(name, sizeof name, "%s%s/%s: %s", draft, under, names[i]->d_name, what ? what : "?");
      check_schema(tally, name, json_object_get(group, "schema"), &opts,
                   json_object_get(group, "tests"));
    }
    free(names[i]);
  }
  if (n >= 0)
    free(names);
}

static bool is_folder(const char *path) {
  DIR *dir = opendir(path);
  if (dir)
    closedir(dir);
  return dir != NULL;
}

/* In *root, of `size` bytes: the first that is there. */
static bool find_data(const char *below, const char *test, char *root, size_t size) {
  const char *shared = getenv("SEGUE_SHARED");
  char path[2048];
  snprintf(root, size, "%s/data/%s", shared ? shared : SEGUE_SOURCE_DIR "/../shared", below);
  snprintf(path, sizeof path, "%s/%s", root, test);
  return is_folder(path);
}

static void report(const char *name, const struct tally *t) {
  printf("%-22s %5u schemas: %5u examples, %3u in words, %3u refused, %4u with no valid value "
         "known, %u failed\n",
         name, t->schemas, t->examples, t->words, t->refused, t->empty, t->failed);
}

static unsigned check_suite(const char *root) {
  static const char *const drafts[] = {"draft2020-12", "draft2019-09", "draft7"};
  static const char *const folders[] = {"", "/optional", "/optional/format"};
  unsigned bad = 0;
  remotes = schema_registry_new();
  if (!remotes)
    return 1;
  char path[4096];
  snprintf(path, sizeof path, "%s/remotes", root);
  suite_add_remotes(remotes, path, "");
  for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++) {
    struct tally tally = {0};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
      check_folder(&tally, root, drafts[i], folders[k], k == 2);
    report(drafts[i], &tally);
    bad += tally.failed;
    /* 97 of 100: what has a valid value also has an example */
    bad += tally.schemas && tally.refused * 100 > (tally.examples + tally.refused) * 3;
  }
  schema_registry_free(remotes);
  remotes = NULL;
  return bad;
}

static unsigned check_bench(const char *root) {
  struct tally tally = {0};
  struct dirent **names;
  int n = scandir(root, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/schema.json", root, names[i]->d_name);
    json_auto_t *doc = suite_load(path);
    if (doc)
      check_schema(&tally, names[i]->d_name, doc, NULL, NULL);
    free(names[i]);
  }
  if (n >= 0)
    free(names);
  report("schema-bench", &tally);
  return tally.failed;
}

int main(int argc, char **argv) {
  char root[1024];
  unsigned bad = 0;
  verbose = argc > 1 && !strcmp(argv[1], "-v");
  if (find_data("json-schema-test-suite", "tests/draft7", root, sizeof root))
    bad += check_suite(root);
  else if (is_folder("/usr/share/json-schema-test-suite/tests/draft7"))
    bad += check_suite("/usr/share/json-schema-test-suite");
  else
    printf("skipped: no JSON-Schema-Test-Suite here\n");
  if (find_data("schema-bench", ".", root, sizeof root))
    bad += check_bench(root);
  else
    printf("skipped: no schemas of data/schema-bench here\n");
  if (bad)
    printf("FAILED\n");
  return bad != 0;
}
