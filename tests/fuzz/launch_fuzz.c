/* libFuzzer: the input is the body of POST /v1/sessions. What is taken must have all that a start
 * needs, and must be found again from the configuration that its log would hold. */
#include "base/limits.h"
#include "base/sha256.h"
#include "daemon/launch.h"
#include "format/json_write.h"
#include "host/host.h"
#include "os/tmpdir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *folder;
static struct store store;
static struct launch_env env;

static void clean_up(void) {
  struct err err;
  workflow_cache_free(env.workflows);
  generation_unref(env.generation);
  if (!tmpdir_remove(folder, &err))
    fprintf(stderr, "%s\n", err.text);
  free(folder);
}

/* An empty configuration and an empty store. */
static void set_up(void) {
  struct err err = {0};
  folder = tmpdir_make(&err);
  if (folder == NULL || setenv("XDG_CONFIG_HOME", folder, 1) != 0 ||
      !store_open(&store, folder, &err) || (env.generation = generation_new(&err)) == NULL) {
    fprintf(stderr, "%s\n", err.text);
    abort();
  }
  env.store = &store;
  env.workflows = workflow_cache_new();
  (void)atexit(clean_up);
}

/* The bytes of a scenario that were kept, or they would fill the disk. */
static void forget_scenario(const json_t *body) {
  const json_t *text = json_object_get(json_object_get(body, "scenario"), "text");
  char sha256[SHA256_HEX], path[STORE_PATH_BYTES + 80];
  if (!json_is_string(text))
    return;
  sha256_hex(json_string_value(text), json_string_length(text), NULL, 0, sha256);
  print_into(path, sizeof path, "%s/blobs/%s", store.where, sha256);
  (void)unlink(path);
}

static void check_launch(struct launch *l) {
  AUTO(launch_deinit) struct launch again;
  struct err err;
  if (l->workflow == NULL || l->setup.cwd == NULL || l->setup.cwd[0] != '/')
    abort();
  if (!launch_again(&again, &env, l->config, &err) || again.scenario != l->scenario ||
      strcmp(again.setup.cwd, l->setup.cwd) != 0)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct launch l;
  struct err err = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  if (folder == NULL)
    set_up();
  json_auto_t *body =
      json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
  if (body != NULL && json_depth(body, LIMIT_API_DEPTH) <= LIMIT_API_DEPTH) {
    launch_init(&l, &env);
    if (launch_parse(&l, LAUNCH_SESSION, body, &err, &errors)) {
      launch_share(&l);
      check_launch(&l);
    } else if (err.text[0] == '\0') {
      abort();
    }
    launch_deinit(&l);
    forget_scenario(body);
  }
  if (env.scenarios != NULL)
    abort();
  return 0;
}
