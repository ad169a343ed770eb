/* segue serve: runs the daemon. */
#include "daemon/serve.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "daemon/control.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

static void on_ready(const char *socket, const char *logs, size_t waiting) {
  char shown[STORE_SHOWN_BYTES];
  cli_say(stderr, "segue serve: ready on %s, logs in %s", socket, store_shown(logs, shown));
  if (waiting > 0)
    fprintf(stderr, ", %zu unfinished session%s", waiting, waiting == 1 ? " goes on" : "s go on");
  fputc('\n', stderr);
}

/* Checks the options for a proxy, which needs a known port. */
static bool check_proxy(const struct cli_args *args, struct err *err) {
  const char *peer = cli_value(args, "http-peer"), *origin = cli_value(args, "http-origin");
  if ((peer != NULL || origin != NULL) && cli_value(args, "http") == NULL)
    return err_set(err, ERR_USAGE, "--http-peer and --http-origin need --http ADDRESS:PORT");
  if (peer != NULL && strcmp(peer, "any") != 0)
    return err_set(err, ERR_USAGE, "--http-peer takes only the word any");
  if (peer != NULL && origin == NULL)
    return err_set(err, ERR_USAGE,
                   "--http-peer any needs --http-origin https://HOST: without TLS and its own host "
                   "name, the page would be open to other users of this machine");
  return true;
}

/* Reads a lease such as 500ms, 30s, 5m or 1h. */
static bool read_lease(const struct cli_args *args, uint64_t *ms, struct err *err) {
  static const struct {
    const char *unit;
    uint64_t ms;
  } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
  const char *given = cli_value(args, "lease");
  char *end = NULL;
  *ms = LIMIT_STORE_LEASE_MS;
  if (given == NULL)
    return true;
  unsigned long n = given[0] >= '0' && given[0] <= '9' ? strtoul(given, &end, 10) : 0;
  for (size_t i = 0; end != NULL && n < 1000000000 && i < ARRAY_LEN(units); i++)
    if (strcmp(end, units[i].unit) == 0) {
      *ms = n * units[i].ms;
      return true;
    }
  return err_set(err, ERR_USAGE, "--lease must be a time such as 30s");
}

static int serve_run(const struct cli_args *args) {
  struct err err = {0};
  long max_sessions = LIMIT_SESSIONS_DEFAULT, drain_s = LIMIT_DRAIN_MS / 1000;
  if (!cli_number(args, "max-sessions", 1, LIMIT_SESSIONS_MAX, &max_sessions, &err) ||
      !cli_number(args, "drain", 0, 24L * 60 * 60, &drain_s, &err) || !check_proxy(args, &err))
    return cli_fail("serve", &err);
  static const char *labels[LIMIT_STORE_LABEL_COUNT + 2];
  uint64_t lease_ms;
  for (size_t i = 0; i <= LIMIT_STORE_LABEL_COUNT; i++)
    labels[i] = cli_values(args, "label", i);
  if (!read_lease(args, &lease_ms, &err))
    return cli_fail("serve", &err);
  const struct serve_options serve_options = {.logs = cli_values(args, "logs", 0),
                                              .store = cli_store(args),
                                              .lease_ms = lease_ms,
                                              .labels = labels,
                                              .socket = cli_value(args, "socket"),
                                              .max_sessions = (size_t)max_sessions,
                                              .http = cli_value(args, "http"),
                                              .http_origin = cli_value(args, "http-origin"),
                                              .http_any_peer = cli_value(args, "http-peer") != NULL,
                                              .drain_ms = (uint64_t)drain_s * 1000,
                                              .ready = on_ready};
  return serve(&serve_options, &err) ? STATUS_COMPLETE : cli_fail("serve", &err);
}

static void print_routes(void) {
  enum { METHOD_AND_PATH = 35 };
  buf_auto_t line = {0};
  printf("\nOn the socket, HTTP and JSON:\n");
  for (const struct server_route *r = control_routes; r->method; r++) {
    buf_clear(&line);
    buf_printf(&line, "  %-4s %-*s ", r->method, METHOD_AND_PATH - 8, r->path);
    cli_wrap(&line, str_from(r->summary), line.n, METHOD_AND_PATH, cli_help_columns());
    puts(buf_c(&line));
  }
}

const struct cli_command cmd_serve = {COMMAND_SERVE, .run = serve_run, .print_more = print_routes};
