/* segue mcp: lets a client of the Model Context Protocol submit, watch and read sessions. */
#include "cli/mcp.h"
#include "cli/cli.h"
#include "cli/json_io.h"

#include "base/log.h"
#include "format/json_write.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MCP_LINE_BYTES = 16 * 1024 * 1024, MCP_CALLS_MAX = 16 };

/* A watch may wait for minutes while the client asks other things, so calls run in threads. */
static pthread_mutex_t mcp_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t mcp_ended = PTHREAD_COND_INITIALIZER;
static unsigned mcp_open_calls;

static void send_answer(json_t *answer) {
  char *text = answer ? json_dump_text(answer, JSON_COMPACT) : NULL;
  (void)pthread_mutex_lock(&mcp_lock);
  if (text != NULL) {
    puts(text);
    (void)fflush(stdout);
  }
  (void)pthread_mutex_unlock(&mcp_lock);
  free(text);
  json_decref(answer);
}

static void *call_thread(void *given) {
  json_t *message = given;
  send_answer(mcp_answer(message));
  json_decref(message);
  (void)pthread_mutex_lock(&mcp_lock);
  mcp_open_calls--;
  (void)pthread_cond_signal(&mcp_ended);
  (void)pthread_mutex_unlock(&mcp_lock);
  return NULL;
}

static void wait_for_calls(unsigned most) {
  (void)pthread_mutex_lock(&mcp_lock);
  while (mcp_open_calls > most)
    (void)pthread_cond_wait(&mcp_ended, &mcp_lock);
  (void)pthread_mutex_unlock(&mcp_lock);
}

/* Answers a message in a thread of its own. Takes the reference. */
static void answer_beside(json_t *message) {
  pthread_t thread;
  wait_for_calls(MCP_CALLS_MAX - 1);
  (void)pthread_mutex_lock(&mcp_lock);
  mcp_open_calls++;
  (void)pthread_mutex_unlock(&mcp_lock);
  if (pthread_create(&thread, NULL, call_thread, message) == 0)
    (void)pthread_detach(thread);
  else
    (void)call_thread(message);
}

/* Answers with a parse error (JSON-RPC 2.0, section 5.1), which belongs to no known request. */
static void send_unreadable(const char *why) {
  send_answer(
      json_pack("{sssns{siss}}", "jsonrpc", "2.0", "id", "error", "code", -32700, "message", why));
}

/* Takes a line. It may hold half a character, as texts cut by UTF-16 units do: JSON.stringify
 * writes it. */
static void mcp_take_line(const char *line, size_t n) {
  struct err err;
  json_t *message = json_io_parse("line", str_trim((struct str){line, n}), &err);
  if (message == NULL) {
    send_unreadable("this line is not JSON");
    return;
  }
  const char *method = json_string_value(json_object_get(message, "method"));
  bool runs =
      method && (strcmp(method, "tools/call") == 0 || strstr(method, "resources/") == method);
  if (runs) {
    answer_beside(message);
    return;
  }
  send_answer(mcp_answer(message));
  json_decref(message);
}

static int mcp_run(int argc, char **argv) {
  struct cli_args args;
  int status;
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  if (!cli_parse(&cmd_mcp, argc, argv, 0, 0, &args, &status))
    return status;
  while ((n = getline(&line, &room, stdin)) >= 0) {
    if (n > MCP_LINE_BYTES)
      send_unreadable("this line is longer than 16 MiB");
    else if (str_trim((struct str){line, (size_t)n}).n > 0)
      mcp_take_line(line, (size_t)n);
  }
  free(line);
  wait_for_calls(0);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_mcp = {
    .name = "mcp",
    .arguments = "",
    .summary = "serve the Model Context Protocol on standard input and output",
    .help = "Lets agents drive workflows: its tools are submit, list, show, watch, answer, "
            "cancel, judge, extract and verify; session logs are resources.\n"
            "\n"
            "  claude mcp add segue -- segue mcp\n"
            "  codex mcp add segue -- segue mcp\n"
            "Sessions are submitted to this user's daemon (segue serve), and continue when the "
            "client exits.",
    .run = mcp_run,
};
