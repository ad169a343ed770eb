/* Runs the official JSON-Schema-Test-Suite: every required test of the three drafts must pass; the
 * optional ones are counted. The suite is looked for in $SEGUE_SHARED, in ../shared beside the
 * sources, then where Debian's package has it. Options: -v names each failed test. */
#include "base/err.h"
#include "format/json_object.h"
#include "schema/schema.h"
#include "support/suite.h"
#include "support/wrong.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
  unsigned passed, failed;
};

struct suite {
  char root[1024];
  struct schema_registry *registry;
  const char *draft;
  bool formats, verbose;
};

static json_t *load(const char *path) {
  json_t *json = suite_load(path);
  if (!json)
    fprintf(stderr, "%s: not there, or not JSON\n", path);
  return json;
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "?";
}

static void run_group(const struct suite *suite, const char *file, const json_t *group,
                      struct tally *tally) {
  const char *draft = NULL;
  if (!strcmp(suite->draft, "draft7"))
    draft = "http://json-schema.org/draft-07/schema#";
  else if (!strcmp(suite->draft, "draft2019-09"))
    draft = "https://json-schema.org/draft/2019-09/schema";
  struct schema_opts opts = {suite->formats, suite->registry, draft};
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  enum schema_status status;
  struct schema *schema = schema_compile(json_object_get(group, "schema"), &opts, &errors, &status);
  if (!schema && suite->verbose)
    printf("  %s: %s: %s %s: %s\n", file, text_of(group, "description"), schema_status_name(status),
           errors.count ? errors.items[0].path : "", errors.count ? errors.items[0].message : "");
  JSON_EACH(json_object_get(group, "tests"), i, test) {
    const json_t *data = json_object_get(test, "data");
    bool want = json_is_true(json_object_get(test, "valid"));
    AUTO(schema_errors_deinit) struct schema_errors found = {0};
    bool ok = false;
    if (schema) {
      enum schema_status slow = schema_check(schema, data, &found);
      ok = schema_valid(schema, data) == want && (slow == SCHEMA_OK) == want &&
           (slow == SCHEMA_OK || slow == SCHEMA_INVALID) && (found.count > 0) == !want &&
           !test_made_wrong();
    }
    tally->passed += ok;
    tally->failed += !ok;
    if (!ok && schema && suite->verbose)
      printf("  %s: %s: %s: should be %s%s%s\n", file, text_of(group, "description"),
             text_of(test, "description"), want ? "valid: " : "invalid",
             found.count ? found.items[0].path : "", found.count ? found.items[0].message : "");
  }
  schema_free(schema);
}

/* Files of one folder, not of those below it. */
static struct tally run_folder(const struct suite *suite, const char *under) {
  char folder[2048], path[4096];
  struct tally tally = {0};
  struct dirent **names;
  snprintf(folder, sizeof folder, "%s/tests/%s%s", suite->root, suite->draft, under);
  int n = scandir(folder, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    if (suite_is_json(names[i]->d_name)) {
      snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
      json_auto_t *groups = load(path);
      struct tally file = {0};
      JSON_EACH(groups, k, group)
        run_group(suite, names[i]->d_name, group, &file);
      if (suite->verbose && file.failed)
        printf("%s%s/%s: %u of %u\n", suite->draft, under, names[i]->d_name, file.passed,
               file.passed + file.failed);
      tally.passed += file.passed;
      tally.failed += file.failed + !groups;
    }
    free(names[i]);
  }
  if (n >= 0)
    free(names);
  return tally;
}

static bool found_at(struct suite *suite, const char *root) {
  char path[2048];
  snprintf(suite->root, sizeof suite->root, "%s", root);
  snprintf(path, sizeof path, "%s/tests/draft7", root);
  DIR *dir = opendir(path);
  if (dir)
    closedir(dir);
  return dir != NULL;
}

static bool find_suite(struct suite *suite) {
  const char *shared = getenv("SEGUE_SHARED");
  char path[900];
  if (shared) {
    snprintf(path, sizeof path, "%s/data/json-schema-test-suite", shared);
    if (found_at(suite, path))
      return true;
  }
  return found_at(suite, SEGUE_SOURCE_DIR "/../shared/data/json-schema-test-suite") ||
         found_at(suite, "/usr/share/json-schema-test-suite");
}

int main(int argc, char **argv) {
  static const char *const drafts[] = {"draft2020-12", "draft2019-09", "draft7"};
  struct suite suite = {.verbose = argc > 1 && !strcmp(argv[1], "-v")};
  unsigned failed = 0;
  if (!find_suite(&suite)) {
    printf("skipped: no JSON-Schema-Test-Suite here\n");
    return 0;
  }
  suite.registry = schema_registry_new();
  if (!suite.registry)
    return 2;
  char remotes[4096];
  snprintf(remotes, sizeof remotes, "%s/remotes", suite.root);
  suite_add_remotes(suite.registry, remotes, "");
  printf("%s\n%-14s %14s %14s %14s\n", suite.root, "draft", "required", "optional", "formats");
  for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++) {
    suite.draft = drafts[i];
    suite.formats = false;
    struct tally required = run_folder(&suite, "");
    struct tally optional = run_folder(&suite, "/optional");
    suite.formats = true;
    struct tally formats = run_folder(&suite, "/optional/format");
    if (!required.passed && !required.failed)
      continue; /* Debian's package ends with draft 07 */
    printf("%-14s %8u /%4u %8u /%4u %8u /%4u\n", suite.draft, required.passed,
           required.passed + required.failed, optional.passed, optional.passed + optional.failed,
           formats.passed, formats.passed + formats.failed);
    failed += required.failed;
  }
  schema_registry_free(suite.registry);
  if (failed)
    printf("FAILED: %u required tests\n", failed);
  return failed != 0;
}
