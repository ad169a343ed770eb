/* segue graph: draws a workflow, and what a session took of it. */
#include "audit/graph.h"
#include "audit/verified_reader.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/setup.h"

#include <string.h>

/* Builds the workflow in a session's log. */
static struct workflow *graph_workflow_of(const json_t *record, struct err *err) {
  json_t *doc = json_object_get(record, "workflow");
  if (!json_is_object(doc)) {
    err_set(err, ERR_INVALID, "the log has no workflow");
    return NULL;
  }
  return workflow_build(doc, err);
}

/* Feeds a session to the graph; without a workflow named, its own is drawn. */
static bool graph_session(const struct cli_args *args, struct workflow *workflow,
                          struct graph **graph, struct err *err) {
  struct store_ref ref;
  AUTO(verified_close) struct verified_reader book = {0};
  json_t *record;
  bool ok = true;
  if (!resolve_id_session(cli_value(args, "session"), cli_value(args, "logs"),
                          cli_value(args, "socket"), &ref, err) ||
      !verified_open(&book, &ref, false, err))
    return false;
  if (workflow != NULL)
    *graph = graph_new(workflow);
  while (ok && (record = verified_next(&book)) != NULL) {
    if (*graph == NULL) {
      struct workflow *own = graph_workflow_of(record, err);
      ok = own != NULL;
      *graph = ok ? graph_new(own) : NULL;
      workflow_unref(own);
    }
    if (ok)
      graph_feed(*graph, record);
    json_decref(record);
  }
  if (ok && book.state == VERIFIED_DAMAGED)
    ok = err_set(err, ERR_INVALID, "the log is damaged at record %llu: %s",
                 (unsigned long long)book.records + 1, book.damage.text);
  if (ok && *graph == NULL)
    ok = err_set(err, ERR_NOT_FOUND, "the log has no records");
  return ok;
}

static void graph_print(const struct cli_args *args, const struct graph *graph, bool mermaid) {
  buf_auto_t out = {0};
  if (cli_flag(args, "json")) {
    json_io_put(graph_json(graph));
    return;
  }
  if (mermaid)
    graph_mermaid(graph, &out);
  else
    graph_ascii(graph, &out);
  fwrite(buf_c(&out), 1, out.n, stdout);
  long strangers = graph_strangers(graph);
  if (strangers > 0)
    fprintf(stderr,
            "segue graph: %ld turn%s of the session match%s no movement in this file: leave FILE "
            "out to draw the session's own workflow\n",
            strangers, PLURAL(strangers), strangers == 1 ? "s" : "");
}

static int graph_run(const struct cli_args *args) {
  AUTO(setup_deinit) struct setup setup = {0};
  struct graph *graph = NULL;
  struct err err = {0};
  int status;
  const char *format = cli_value(args, "format"), *session = cli_value(args, "session");
  bool mermaid = format != NULL && strcmp(format, "mermaid") == 0;
  cli_errors_as_json(cli_flag(args, "json"));
  if (format != NULL && !mermaid && strcmp(format, "ascii") != 0)
    err_set(&err, ERR_USAGE, "--format %.40s: write ascii or mermaid", format);
  else if (args->word_count == 0 && session == NULL)
    err_set(&err, ERR_USAGE, "name a workflow file, or a session with --session ID");
  if (err.text[0] != '\0')
    return cli_fail("graph", &err);
  if (!setup_flags(&setup, args, &status) ||
      (args->word_count > 0 && !setup_workflow(&setup, args, args->words[0], false, &status))) {
    return status;
  }
  bool ok = true;
  if (session != NULL)
    ok = graph_session(args, setup.workflow, &graph, &err);
  else
    graph = graph_new(setup.workflow);
  if (ok)
    graph_print(args, graph, mermaid);
  graph_free(graph);
  return cli_done("graph", ok, &err);
}

const struct cli_command cmd_graph = {COMMAND_GRAPH, .run = graph_run};
