/* segue version: prints versions. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "daemon/serve.h"
#include "format/json_object.h"
#include "format/test_counts.h"
#include "http/http.h"
#include "os/loop.h"
#include "store/shared.h"

#include <openssl/opensslv.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <yaml.h>

/* Lists the libraries that are loaded when first needed: otherwise each start would pay for
 * them. */
static const struct {
  const char *name, *feature;
  const char *(*version)(void);
} late[] = {
    {"libcurl", "model APIs", http_library},
    {"libmicrohttpd", "serve and web", serve_library},
    {"libpq", "stores on PostgreSQL", store_library},
    {"libexpat", "JUnit reports", junit_library},
};

static json_t *version_late(void) {
  json_t *object = json_object();
  for (size_t i = 0; i < ARRAY_LEN(late); i++)
    json_object_set_new(object, late[i].name,
                        json_pack("{ss?ss}", "version", late[i].version(), "for", late[i].feature));
  return object;
}

static void version_print_late(bool all) {
  if (!all)
    printf("loaded when needed (--all):");
  for (size_t i = 0; i < ARRAY_LEN(late); i++) {
    const char *version = all ? late[i].version() : NULL;
    if (all)
      printf("%s %s, for %s\n", late[i].name, version ? version : "is missing", late[i].feature);
    else
      printf(" %s%s", late[i].name, i + 1 < ARRAY_LEN(late) ? "," : "\n");
  }
}

static int version_run(const struct cli_args *args) {
  int major, minor, patch;
  char yaml[32], pcre[64] = "";
  yaml_get_version(&major, &minor, &patch);
  print_into(yaml, sizeof yaml, "%d.%d.%d", major, minor, patch);
  (void)pcre2_config(PCRE2_CONFIG_VERSION, pcre);
  json_t *libraries =
      json_pack("{ssssssssss}", "libuv", loop_library(), "openssl", OPENSSL_VERSION_STR, "jansson",
                JANSSON_VERSION, "libyaml", yaml, "pcre2", pcre);
  if (cli_flag(args, "json")) {
    json_t *object =
        json_pack("{ssso*sO}", "segue", SEGUE_VERSION, "commit",
                  SEGUE_COMMIT[0] ? json_string(SEGUE_COMMIT) : NULL, "libraries", libraries);
    if (cli_flag(args, "all"))
      json_object_set_new(object, "loaded_when_needed", version_late());
    json_io_put(object);
  } else {
    printf("segue %s%s%s\n", SEGUE_VERSION, SEGUE_COMMIT[0] ? ", commit " : "", SEGUE_COMMIT);
    JSON_MEMBERS(libraries, name, version)
      printf("%s %s\n", name, json_string_value(version));
    version_print_late(cli_flag(args, "all"));
  }
  json_decref(libraries);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_version = {COMMAND_VERSION, .run = version_run};
