#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "core/record.h"
#include "daemon/client.h"
#include "host/paths.h"
#include "store/brief.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  ROWS_DEFAULT = 50,
  ID_COLUMNS = 18,
  STATUS_COLUMNS = 13,
  NAME_COLUMNS = 20,
  PATH_BYTES = 512
};

static const struct cli_option options[] = {
    {"status", 's', "STATUS,...",
     "only these: queued, running, waiting, paused, stopped, open, complete, ...", false},
    {"number", 'n', "N", "at most so many (default 50)", false},
    {"json", 0, NULL, "print one JSON object a line", false},
    {"logs", 'l', "DIR", "read this log folder instead of asking the daemon", false},
    {"socket", 'S', "PATH", "the daemon's control socket", false},
    {0},
};

struct ls {
  bool json, colours, any;
  int columns;
  size_t rows_left;
  int64_t now_ms;
};

static const char *word(const json_t *session, const char *key) {
  const char *value = json_string_value(json_object_get(session, key));
  return value ? value : "";
}

static void put_age(const struct ls *ls, const char *started, struct buf *out) {
  int64_t then;
  if (!record_time_parse(started, &then) || then > ls->now_ms) {
    buf_puts(out, "-");
    return;
  }
  long s = (long)((ls->now_ms - then) / 1000);
  if (s < 120)
    buf_printf(out, "%lds", s);
  else if (s < 120L * 60)
    buf_printf(out, "%ldm", s / 60);
  else if (s < 48L * 3600)
    buf_printf(out, "%ldh", s / 3600);
  else
    buf_printf(out, "%ldd", s / 86400);
}

static enum colour colour_of(const char *status) {
  if (strcmp(status, "complete") == 0)
    return COLOUR_GREEN;
  if (strcmp(status, "running") == 0 || strcmp(status, "waiting") == 0 ||
      strcmp(status, "queued") == 0)
    return COLOUR_CYAN;
  if (strcmp(status, "stopped") == 0 || strcmp(status, "open") == 0 ||
      strcmp(status, "paused") == 0 || strcmp(status, "cancelled") == 0)
    return COLOUR_YELLOW;
  return COLOUR_RED;
}

static void cell(struct buf *out, const char *text, int columns) {
  int used = cli_fit(out, str_from(text), columns);
  for (; used < columns + 2; used++)
    buf_putc(out, ' ');
}

static void print_row(struct ls *ls, const json_t *s) {
  struct buf line = {0}, age = {0};
  const char *status = word(s, "status"), *message = word(s, "message");
  char id[ID_COLUMNS + 1], turns[16], shown[32];
  json_int_t position = json_integer_value(json_object_get(s, "position"));
  if (!ls->any)
    printf("%s%-*s  %-*s  %-*s  %-*s  TURNS   AGE  BY%s\n", cli_paint(ls->colours, COLOUR_DIM),
           ID_COLUMNS, "ID", STATUS_COLUMNS, "STATUS", NAME_COLUMNS, "WORKFLOW", NAME_COLUMNS,
           "MOVEMENT", cli_paint(ls->colours, COLOUR_NONE));
  ls->any = true;
  (void)snprintf(id, sizeof id, "%s", word(s, "id"));
  (void)snprintf(turns, sizeof turns, "%5d", (int)json_integer_value(json_object_get(s, "turns")));
  (void)snprintf(shown, sizeof shown, position > 0 ? "%s %d" : "%s", status, (int)position);
  cell(&line, id, ID_COLUMNS);
  buf_puts(&line, cli_paint(ls->colours, colour_of(status)));
  cell(&line, shown, STATUS_COLUMNS);
  buf_puts(&line, cli_paint(ls->colours, COLOUR_NONE));
  cell(&line, word(s, "workflow"), NAME_COLUMNS);
  cell(&line, word(s, "movement"), NAME_COLUMNS);
  put_age(ls, word(s, "started"), &age);
  buf_printf(&line, "%s  %4s  %s", turns, buf_c(&age), word(s, "origin"));
  int rest = ls->columns - (ID_COLUMNS + STATUS_COLUMNS + 2 * NAME_COLUMNS + 8 + 5 + 2 + 4 + 2 + 8);
  if (message[0] && rest >= 20) {
    buf_puts(&line, "  ");
    (void)cli_fit(&line, str_from(message), rest);
  }
  printf("%s\n", line.p);
  buf_deinit(&line);
  buf_deinit(&age);
}

static void print_session(struct ls *ls, const json_t *s) {
  if (ls->json)
    json_io_print(s, JSON_IO_COMPACT);
  else
    print_row(ls, s);
  ls->rows_left--;
}

/* --- from the daemon --- */

static int list_daemon(struct ls *ls, const char *socket, const char *filter, struct err *err) {
  char path[PATH_BYTES], before[64] = "";
  while (ls->rows_left > 0) {
    struct client_reply reply = {0};
    size_t i, page = ls->rows_left < LIMIT_API_PAGE_COUNT ? ls->rows_left : LIMIT_API_PAGE_COUNT;
    json_t *session;
    (void)snprintf(path, sizeof path, "/v1/sessions?limit=%zu%s%s%s%s", page,
                   before[0] ? "&before=" : "", before, filter ? "&status=" : "",
                   filter ? filter : "");
    if (!client_ask(socket, "GET", path, NULL, &reply, err))
      return -1;
    if (client_problem(&reply, err)) {
      client_reply_deinit(&reply);
      return cli_fail("ls", err);
    }
    json_array_foreach(json_object_get(reply.value, "sessions"), i, session) {
      print_session(ls, session);
    }
    (void)snprintf(before, sizeof before, "%s", word(reply.value, "next"));
    client_reply_deinit(&reply);
    if (before[0] == '\0')
      break;
  }
  return STATUS_COMPLETE;
}

/* --- from the folder --- */

static json_t *read_session(const char *dir, const char *id) {
  char path[PATHS_BYTES + 64];
  struct brief b;
  struct err err;
  (void)snprintf(path, sizeof path, "%s/%s.ndjson", dir, id);
  if (!brief_read(&b, path, &err))
    return NULL;
  bool unfinished = strcmp(b.status, "running") == 0;
  const char *status = unfinished && !brief_owned(path) ? "open" : brief_status(&b);
  json_t *s = brief_json(&b, id, path, status, b.message, 0);
  brief_deinit(&b);
  return s;
}

static int list_folder(struct ls *ls, const char *logs, const char *filter) {
  char dir[PATHS_BYTES];
  struct brief_id *ids = NULL;
  size_t count;
  struct err err = {0};
  if (!paths_logs(logs, dir, &err))
    return cli_fail("ls", &err);
  if (access(dir, F_OK) != 0 && logs == NULL)
    return STATUS_COMPLETE; /* nothing ran yet */
  if (!brief_list(dir, &ids, &count, &err))
    return cli_fail("ls", &err);
  for (size_t i = 0; i < count && ls->rows_left > 0; i++) {
    json_t *s = read_session(dir, ids[i].id);
    if (s != NULL && brief_wanted(filter, word(s, "status")))
      print_session(ls, s);
    json_decref(s);
  }
  free(ids);
  return STATUS_COMPLETE;
}

static int run(int argc, char **argv) {
  struct cli_args args;
  struct err err = {0};
  struct timespec now;
  int status;
  long rows = ROWS_DEFAULT;
  if (!cli_parse(&cmd_ls, argc, argv, 0, 0, &args, &status))
    return status;
  const char *logs = cli_value(&args, "logs"), *number = cli_value(&args, "number");
  const char *filter = cli_value(&args, "status"), *socket = cli_value(&args, "socket");
  if (number != NULL && (!str_to_long(str_from(number), &rows) || rows < 1)) {
    (void)err_set(&err, ERR_USAGE, "-n must be a number above 0");
    return cli_fail("ls", &err);
  }
  if (!brief_filter_check(filter, &err))
    return cli_fail("ls", &err);
  clock_gettime(CLOCK_REALTIME, &now);
  struct ls ls = {.json = cli_flag(&args, "json"),
                  .colours = cli_colours(STDOUT_FILENO),
                  .columns = cli_columns(STDOUT_FILENO),
                  .rows_left = (size_t)rows,
                  .now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000};
  status = -1;
  if (logs == NULL)
    status = list_daemon(&ls, socket, filter, &err);
  if (status < 0 && logs == NULL && (socket != NULL || err.code != ERR_NOT_FOUND))
    return cli_fail("ls", &err);
  if (status < 0) /* without a daemon the logs say the same */
    status = list_folder(&ls, logs, filter);
  if (status == STATUS_COMPLETE && !ls.any && !ls.json)
    fprintf(stderr, "no sessions\n");
  return status;
}

const struct cli_command cmd_ls = {
    .name = "ls",
    .arguments = "[options]",
    .summary = "list sessions, newest first",
    .help =
        "Of the daemon and of `segue run` (BY says which), as the daemon tells it; without one,\n"
        "from the log folder. queued N: the N-th to start. waiting: for a place at its provider, "
        "or\n"
        "for the time of its next attempt. paused: its log cannot be written, for want of space\n"
        "most of the time; it goes on by itself. stopped: it can go on. open: unfinished, and "
        "nobody\n"
        "runs it.",
    .options = options,
    .run = run,
};
