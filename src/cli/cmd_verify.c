#include "audit/verify.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "format/json_write.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"logs", 'l', "DIR", "where session logs are", false},
    {"json", 0, NULL, "print one JSON object a log", false},
    {0},
};

static void print_json(const char *path, const struct verify_result *r) {
  json_t *object = json_pack("{s:s? s:b s:s s:I}", "session", r->session[0] ? r->session : NULL,
                             "ok", r->state == VERIFY_COMPLETE || r->state == VERIFY_OPEN, "state",
                             verify_state_name(r->state), "records", (json_int_t)r->records);
  json_t *file = json_string(path); /* NULL when the path is not UTF-8 */
  if (file != NULL)
    json_object_set_new(object, "file", file);
  if (r->state == VERIFY_TORN)
    json_object_set_new(object, "torn_bytes", json_integer((json_int_t)r->torn_bytes));
  if (r->state == VERIFY_BAD) {
    json_object_set_new(object, "bad_record", json_integer((json_int_t)r->bad_record));
    json_object_set_new(object, "error", json_string(r->why.text));
  }
  char *line = json_dump_text(object, JSON_COMPACT | JSON_ENSURE_ASCII);
  printf("%s\n", line ? line : "{}");
  free(line);
  json_decref(object);
}

static void print_line(const char *path, const struct verify_result *r, bool colours) {
  bool ok = r->state == VERIFY_COMPLETE || r->state == VERIFY_OPEN;
  printf("%s%s%s  ", cli_paint(colours, ok ? COLOUR_GREEN : COLOUR_RED),
         ok                        ? "ok"
         : r->state == VERIFY_TORN ? "torn"
                                   : "bad",
         cli_paint(colours, COLOUR_NONE));
  cli_put_safe(stdout, ok ? r->session : path);
  unsigned long long records = r->records;
  switch (r->state) {
  case VERIFY_COMPLETE:
  case VERIFY_OPEN:
    printf("  %llu record%s, %s\n", records, records == 1 ? "" : "s", verify_state_name(r->state));
    break;
  case VERIFY_TORN:
    printf("  %llu record%s, open, with a torn tail of %llu byte%s\n", records,
           records == 1 ? "" : "s", (unsigned long long)r->torn_bytes,
           r->torn_bytes == 1 ? "" : "s");
    break;
  case VERIFY_BAD:
    printf("  record %llu: ", (unsigned long long)r->bad_record);
    cli_put_safe(stdout, r->why.text);
    putchar('\n');
    break;
  }
}

static int verify(int argc, char **argv) {
  struct cli_args args;
  struct err err = {0};
  int status;
  bool bad = false, missing = false;
  if (!cli_parse(&cmd_verify, argc, argv, 1, CLI_WORDS, &args, &status))
    return status;
  struct verifier *v = verifier_new(&err);
  if (v == NULL)
    return cli_fail("verify", &err);
  for (size_t i = 0; i < args.word_count; i++) {
    char path[FIND_PATH_BYTES];
    struct verify_result result;
    if (!find_session(args.words[i], cli_value(&args, "logs"), NULL, path, &err) ||
        !verify_file(v, path, &result, &err)) {
      (void)cli_fail("verify", &err);
      missing = true;
      continue;
    }
    if (cli_flag(&args, "json"))
      print_json(path, &result);
    else
      print_line(path, &result, cli_colours(STDOUT_FILENO));
    bad |= result.state == VERIFY_BAD || result.state == VERIFY_TORN;
  }
  verifier_free(v);
  return bad ? STATUS_FAILED : missing ? STATUS_USAGE : STATUS_COMPLETE;
}

const struct cli_command cmd_verify = {
    .name = "verify",
    .arguments = "ID|last|FILE... [options]",
    .summary = "check that session logs are what was written",
    .help = "Checks the chain of hashes, the sequence, each record against "
            "schemas/session-log.json, the\n"
            "hash of the workflow, the blobs that records name, and what they say of other records "
            "and of\n"
            "the workflow: texts, calls, rules, counts. A log without session_end is open; a piece "
            "of a\n"
            "line at its end, as a crash can leave, is torn: segue resume cuts it off.\n"
            "Exit: 0 all are ok, 1 one is bad or torn, 2 one is missing.",
    .options = options,
    .run = verify,
};
