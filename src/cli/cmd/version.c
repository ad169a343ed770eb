/* segue version: prints versions. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "os/loop.h"

#include <openssl/crypto.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <yaml.h>

static const struct cli_option options[] = {
    {"json", 0, NULL, "as a JSON object", false},
    {0},
};

/* Those that are linked; libcurl and libmicrohttpd are loaded when they are first needed. */
static json_t *version_libraries(void) {
  int major, minor, patch;
  char yaml[32], pcre[64] = "";
  yaml_get_version(&major, &minor, &patch);
  (void)snprintf(yaml, sizeof yaml, "%d.%d.%d", major, minor, patch);
  (void)pcre2_config(PCRE2_CONFIG_VERSION, pcre);
  return json_pack("{ssssssssss}", "libuv", loop_library(), "openssl",
                   OpenSSL_version(OPENSSL_VERSION_STRING), "jansson", JANSSON_VERSION, "libyaml",
                   yaml, "pcre2", pcre);
}

static int version_run(int argc, char **argv) {
  struct cli_args args;
  int status;
  if (!cli_parse(&cmd_version, argc, argv, 0, 0, &args, &status))
    return status;
  json_t *libraries = version_libraries();
  const char *name;
  const json_t *version;
  if (cli_flag(&args, "json")) {
    json_t *object =
        json_pack("{ssso*sO}", "segue", SEGUE_VERSION, "commit",
                  SEGUE_COMMIT[0] ? json_string(SEGUE_COMMIT) : NULL, "libraries", libraries);
    json_io_print(object, JSON_IO_COMPACT);
    json_decref(object);
  } else {
    printf("segue %s%s%s\n", SEGUE_VERSION, SEGUE_COMMIT[0] ? ", commit " : "", SEGUE_COMMIT);
    json_object_foreach(libraries, name, version)
        printf("%s %s\n", name, json_string_value(version));
  }
  json_decref(libraries);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_version = {
    .name = "version",
    .arguments = "[--json]",
    .summary = "print the version, its commit and the libraries",
    .options = options,
    .run = version_run,
};
