/* segue ls: lists sessions, from a daemon or from the log folder. */
#include "audit/verified_reader.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/watch.h"
#include "core/record.h"
#include "core/spend.h"
#include "daemon/client.h"
#include "format/json_object.h"
#include "host/paths.h"
#include "os/clock.h"
#include "store/copy.h"
#include "store/filter.h"
#include "store/heads.h"
#include "store/index.h"
#include "store/shared.h"
#include "store/summary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  ROWS_DEFAULT = 50,
  ID_COLUMNS = 18,
  STATUS_COLUMNS = 13,
  NAME_COLUMNS = 20,
  PATH_BYTES = 512
};

struct ls {
  char where[PATHS_BYTES + 8]; /* " in FOLDER"; "": the daemon answered */
  bool json, colours, any;
  bool tells_cost, tells_movement; /* there is room for them */
  int columns, name_columns;
  size_t rows_left;
  uint64_t proof_left; /* bytes of logs that may still be checked */
  size_t unproven;     /* sessions left unchecked because of that */
  const char *proven;  /* the statuses that need a checked log, or NULL */
  int64_t now_ms;
  struct filter wanted;
  json_t *keys; /* with --by: the names of its keys; */
  json_t *sums; /* and their values, as text -> {by, sessions, spent} */
  json_t *rows; /* with --watch what is listed goes here */
  const char *logs, *socket, *since;
};

/* --- sums --- */

static const char *const ls_keys[] = {"folder", "user", "provider", "workflow", "status", NULL};

static bool ls_read_by(struct ls *ls, const char *text, struct err *err) {
  struct str rest = str_from(text);
  while (rest.n > 0) {
    struct str key = str_cut(&rest, ',');
    if (!str_is_one(key, ls_keys))
      return err_set(err, ERR_USAGE,
                     "--by " STR_FMT ": write folder, user, provider, workflow or status",
                     STR_ARG(key));
    json_array_append_new(ls->keys, json_stringn(key.p, key.n));
  }
  return json_array_size(ls->keys) > 0 || err_set(err, ERR_USAGE, "--by needs a key");
}

/* Adds a use to the group of a session; provider: whose use that is. */
static void ls_add(struct ls *ls, const json_t *s, const char *provider, const json_t *spent) {
  json_auto_t *by = json_object();
  buf_auto_t name = {0};
  JSON_EACH(ls->keys, i, word) {
    const char *key = json_string_value(word);
    const char *value = strcmp(key, "provider") == 0 ? provider : cli_word(s, key);
    json_object_set_new(by, key, json_io_string(value));
    buf_printf(&name, "%s%s", i > 0 ? "  " : "", value[0] != '\0' ? value : "-");
  }
  json_t *sum = json_object_get(ls->sums, buf_c(&name));
  if (sum == NULL)
    json_object_set_new(ls->sums, buf_c(&name),
                        sum = json_pack("{sO si s{}}", "by", by, "sessions", 0, "spent"));
  json_object_set_new(sum, "sessions",
                      json_integer(json_integer_value(json_object_get(sum, "sessions")) + 1));
  spend_sum(json_object_get(sum, "spent"), spent);
}

/* Counts a session once in each of its groups: with `provider` among the keys those of all that it
 * asked, each with its own use. */
static void ls_count(struct ls *ls, const json_t *s) {
  const json_t *spent = json_object_get(s, "spent");
  const json_t *providers = json_object_get(spent, "providers");
  bool split = false;
  JSON_EACH(ls->keys, i, key)
    split = split || strcmp(json_string_value(key), "provider") == 0;
  if (!split || json_object_size(providers) == 0)
    ls_add(ls, s, "", spent);
  else
    JSON_MEMBERS(providers, name, own)
      ls_add(ls, s, name, own);
}

static void ls_print_sums(const struct ls *ls) {
  if (json_object_size(ls->sums) > 0 && !ls->json)
    printf("%s%8s  %7s  %12s  %10s  BY%s\n", cli_paint(ls->colours, COLOUR_DIM), "SESSIONS",
           "CALLS", "TOKENS", "COST", cli_paint(ls->colours, COLOUR_NONE));
  JSON_MEMBERS(ls->sums, name, sum) {
    const json_t *spent = json_object_get(sum, "spent"), *usd = json_object_get(spent, "cost_usd");
    buf_auto_t cost = {0};
    view_put_dollars(&cost, json_number_value(usd), usd != NULL,
                     json_object_get(spent, "unpriced") != NULL);
    if (ls->json)
      json_io_print(sum, JSON_IO_COMPACT);
    else
      cli_say(stdout, "%8lld  %7lld  %12lld  %10s  %s\n",
              (long long)json_integer_value(json_object_get(sum, "sessions")),
              (long long)json_integer_value(json_object_get(spent, "calls")),
              (long long)(json_integer_value(json_object_get(spent, "input")) +
                          json_integer_value(json_object_get(spent, "output"))),
              buf_c(&cost), name);
  }
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

static enum colour colour_of(struct str status) {
  if (str_eq_c(status, "complete"))
    return COLOUR_GREEN;
  if (str_among(status, "running waiting queued"))
    return COLOUR_CYAN;
  if (str_eq_c(status, "needs_input"))
    return COLOUR_MAGENTA;
  if (str_among(status, "stopped open paused cancelled"))
    return COLOUR_YELLOW;
  return COLOUR_RED;
}

/* Lays out the rows. On a narrow terminal a row has less, so that it stays one line: no cost and
 * origin, then no movement, and names are cut. */
static void ls_lay_out(struct ls *ls) {
  enum { COST_FROM = 96, MOVEMENT_FROM = 66, OTHERS = 50, OTHERS_ALONE = 48, COST = 18 };
  enum { NAME_MIN = 8 };
  int room = (ls->columns - OTHERS) / 2;
  ls->tells_cost = ls->columns >= COST_FROM;
  ls->tells_movement = ls->columns >= MOVEMENT_FROM;
  if (ls->tells_cost)
    room = (ls->columns - OTHERS - COST) / 2;
  else if (!ls->tells_movement)
    room = ls->columns - OTHERS_ALONE;
  if (room > NAME_COLUMNS)
    room = NAME_COLUMNS;
  ls->name_columns = room < NAME_MIN ? NAME_MIN : room;
}

static void ls_put_head(struct ls *ls, struct buf *out) {
  ls_lay_out(ls);
  buf_printf(out, "%s%-*s  %-*s  %-*s  ", cli_paint(ls->colours, COLOUR_DIM), ID_COLUMNS, "ID",
             STATUS_COLUMNS, "STATUS", ls->name_columns, "WORKFLOW");
  if (ls->tells_movement)
    buf_printf(out, "%-*s  ", ls->name_columns, "MOVEMENT");
  buf_printf(out, "TURNS   AGE%s%s", ls->tells_cost ? "      COST  BY" : "",
             cli_paint(ls->colours, COLOUR_NONE));
}

static void ls_put_row(const struct ls *ls, const json_t *s, struct buf *line) {
  buf_auto_t age = {0}, cost = {0};
  const char *status = cli_word(s, "status"), *message = cli_word(s, "message");
  char id[ID_COLUMNS + 1], turns[16], shown[32];
  message = message[0] != '\0' ? message : cli_word(s, "basis");
  json_int_t position = json_integer_value(json_object_get(s, "position"));
  print_into(id, sizeof id, "%s", cli_word(s, "id"));
  print_into(turns, sizeof turns, "%5d", (int)json_integer_value(json_object_get(s, "turns")));
  print_into(shown, sizeof shown, position > 0 ? "%s %d" : "%s", status, (int)position);
  (void)cli_cell(line, str_from(id), ID_COLUMNS + 2, ID_COLUMNS);
  buf_puts(line, cli_paint(ls->colours, colour_of(str_from(status))));
  (void)cli_cell(line, str_from(shown), STATUS_COLUMNS + 2, STATUS_COLUMNS);
  buf_puts(line, cli_paint(ls->colours, COLOUR_NONE));
  (void)cli_cell(line, str_from(cli_word(s, "workflow")), ls->name_columns + 2, ls->name_columns);
  if (ls->tells_movement)
    (void)cli_cell(line, str_from(cli_word(s, "movement")), ls->name_columns + 2, ls->name_columns);
  put_age(ls, cli_word(s, "started"), &age);
  const json_t *spent = json_object_get(s, "spent"), *usd = json_object_get(spent, "cost_usd");
  view_put_dollars(&cost, json_number_value(usd), usd != NULL,
                   json_object_get(spent, "unpriced") != NULL);
  buf_printf(line, "%s  %4s", turns, buf_c(&age));
  if (ls->tells_cost)
    buf_printf(line, "  %8s  %s", buf_c(&cost), cli_word(s, "origin"));
  int rest =
      ls->columns - (ID_COLUMNS + STATUS_COLUMNS + 2 * NAME_COLUMNS + 8 + 5 + 2 + 4 + 2 + 10 + 8);
  if (message[0] && rest >= 20) {
    buf_puts(line, "  ");
    (void)cli_fit(line, str_from(message), rest);
  }
}

/* A record that is not what was written shows here too, while logs are short, not only in segue
 * verify. */
static bool is_tampered(struct ls *ls, const char *log) {
  struct store_ref ref;
  return store_ref_named(log, &ref) && verified_is_damaged(&ref, &ls->proof_left, &ls->unproven);
}

static void print_session(struct ls *ls, json_t *s) {
  bool unreadable = strcmp(cli_word(s, "status"), "bad") == 0;
  if (!unreadable && is_tampered(ls, cli_word(s, "log"))) {
    json_object_set_new(s, "status", json_string("bad"));
    json_object_set_new(s, "message", json_string("its log has been changed: segue verify"));
  }
  if (ls->proven != NULL && !summary_wanted(ls->proven, cli_word(s, "status")))
    return;
  buf_auto_t line = {0};
  if (ls->sums != NULL) {
    ls->any = true;
    ls_count(ls, s);
  } else if (ls->rows != NULL) {
    json_array_append(ls->rows, s);
  } else if (ls->json) {
    json_io_print(s, JSON_IO_COMPACT);
  } else {
    if (!ls->any)
      ls_put_head(ls, &line);
    buf_puts(&line, ls->any ? "" : "\n");
    ls->any = true;
    ls_put_row(ls, s, &line);
    printf("%s\n", buf_c(&line));
  }
  ls->rows_left--;
}

/* --- from the daemon --- */

static void put_parameter(struct buf *path, const char *name, const char *value) {
  if (value == NULL || value[0] == '\0')
    return;
  buf_printf(path, "&%s=", name);
  cli_put_encoded(path, value, ",:");
}

static int list_daemon(struct ls *ls, struct err *err) {
  char before[64] = "";
  while (ls->rows_left > 0) {
    AUTO(client_reply_deinit) struct client_reply reply = {0};
    buf_auto_t path = {0};
    size_t page = ls->rows_left < LIMIT_API_PAGE_COUNT ? ls->rows_left : LIMIT_API_PAGE_COUNT;
    buf_printf(&path, "/v1/sessions?limit=%zu", page);
    put_parameter(&path, "before", before);
    put_parameter(&path, "status", ls->wanted.statuses);
    put_parameter(&path, "since", ls->since);
    put_parameter(&path, "workflow", ls->wanted.workflow);
    put_parameter(&path, "method", ls->wanted.method);
    put_parameter(&path, "provider", ls->wanted.provider);
    bool asked = client_ask(ls->socket, "GET", buf_c(&path), NULL, &reply, err);
    if (!asked)
      return -1;
    if (client_problem(&reply, err))
      return cli_fail("ls", err);
    JSON_EACH(json_object_get(reply.value, "sessions"), i, session)
      print_session(ls, session);
    print_into(before, sizeof before, "%s", cli_word(reply.value, "next"));
    if (before[0] == '\0')
      break;
  }
  return STATUS_COMPLETE;
}

/* --- from the folder --- */

/* Adds to a session of a shared store which worker has it, or why none has. */
static void ls_put_place(json_t *s, const json_t *place) {
  const char *worker = cli_text(place, "worker"), *waits = cli_text(place, "waits");
  const char *moved_to = cli_text(place, "moved_to");
  buf_auto_t say = {0};
  json_object_update(s, (json_t *)place);
  if (moved_to != NULL) /* whatever it stopped for, it cannot continue here */
    json_object_set_new(s, "message", json_null());
  if (moved_to != NULL)
    buf_printf(&say, "moved to %s", moved_to);
  else if (worker != NULL)
    buf_printf(&say, "on %s, whose lease was renewed %.1f s ago", worker,
               json_number_value(json_object_get(place, "lease_age_s")));
  else if (waits != NULL)
    buf_printf(&say, "waits: %s", waits);
  if (say.n > 0 && json_is_null(json_object_get(s, "message")))
    json_object_set_new(s, "message", json_io_string(buf_c(&say)));
}

static bool is_unplaced(const json_t *s, const json_t *place, const struct store *store) {
  return store_is_address(store->where) && strcmp(cli_word(s, "status"), "running") == 0 &&
         json_object_get(place, "worker") == NULL;
}

/* Reads one session; NULL if it is not wanted or about to begin. */
static json_t *read_session(const struct ls *ls, const struct store *store, const char *id,
                            const struct index_row *row, struct heads **heads) {
  struct store_ref ref;
  AUTO(summary_deinit) struct summary b = {0};
  struct err err;
  json_t *s = NULL;
  store_ref(store, id, &ref);
  if (!summary_read(&b, &ref, &err) && !summary_unread(&b, &ref, heads_once(heads, store)))
    return NULL;
  const char *status = summary_status(&b);
  if (!store_is_owned(&ref))
    status = summary_idle_status(&b, store_is_address(store->where));
  if (summary_wanted(ls->wanted.statuses, status) && filter_wants_summary(&ls->wanted, &b) &&
      (row != NULL || filter_wants_log(&ls->wanted, &ref)))
    s = summary_json(&b, id, ref.name, status, b.message, 0);
  return s;
}

/* Reports sessions whose copy here was cut off; they are not listed. */
static void say_in_transit(const struct store *store) {
  struct store_id *ids;
  struct err err;
  size_t count;
  if (!copy_list_moved(store, true, &ids, &count, &err))
    return;
  for (size_t i = 0; i < count; i++)
    fprintf(
        stderr,
        "session %s was being copied here: repeat that segue store export with the same options\n",
        ids[i].id);
  free(ids);
}

static int list_folder(struct ls *ls, const char *logs) {
  struct store store;
  struct store_id *ids = NULL;
  size_t count;
  struct err err = {0};
  if (!resolve_id_store(logs, &store, &err))
    return cli_fail("ls", &err);
  char shown[STORE_SHOWN_BYTES];
  print_into(ls->where, sizeof ls->where, " in %s", store_shown(store.where, shown));
  if (!store_exists(&store) && logs == NULL)
    return STATUS_COMPLETE; /* nothing ran yet */
  if (!store_list(&store, &ids, &count, &err))
    return cli_fail("ls", &err);
  json_t *places = store_is_address(store.where) ? shared_places(store.where, &err) : json_object();
  if (places == NULL) {
    free(ids);
    return cli_fail("ls", &err);
  }
  struct index *x = NULL;
  if (filter_is_set(&ls->wanted))
    x = index_open(&store, &ls->wanted, INDEX_NOTHING);
  struct heads *heads = NULL;
  bool only_open = !summary_wants_ended(ls->wanted.statuses);
  for (size_t i = 0; i < count && ls->rows_left > 0; i++) {
    const char *id = ids[i].id;
    const struct index_row *row = x != NULL ? index_row(x, id) : NULL;
    if (row != NULL && row->passed_over)
      continue;
    if (row == NULL && only_open && heads_ended(heads_once(&heads, &store), id))
      continue; /* the ledger is asked only if the index does not say */
    json_auto_t *s = read_session(ls, &store, id, row, &heads);
    if (s != NULL && is_unplaced(s, json_object_get(places, id), &store)) {
      json_decref(places); /* somebody has taken it since they were asked */
      places = shared_places(store.where, &err);
    }
    if (s != NULL)
      ls_put_place(s, json_object_get(places, id));
    if (s != NULL)
      print_session(ls, s);
  }
  json_decref(places);
  heads_once_free(&heads);
  index_close(x);
  free(ids);
  say_in_transit(&store);
  return STATUS_COMPLETE;
}

/* Reports that `last`, which means the session started last wherever its log is, is not in this
 * list. */
static void say_other_folder(const char *where) {
  char name[PATHS_BYTES];
  struct store_ref ref;
  struct store store;
  if (!paths_read_last(NULL, name) || !store_ref_named(name, &ref) || !store_is_there(&ref))
    return;
  store_of(&ref, &store);
  char shown[STORE_SHOWN_BYTES];
  if (strcmp(store_shown(store.where, shown), where) == 0)
    return;
  cli_say(stderr, "the most recent session is in another folder: segue ls --logs %s\n",
          store.where);
}

static bool read_filter(struct filter *wanted, const struct cli_args *args, struct err *err) {
  struct err why;
  *wanted = (struct filter){.statuses = cli_value(args, "status"),
                            .workflow = cli_value(args, "workflow"),
                            .method = cli_value(args, "method"),
                            .provider = cli_value(args, "provider")};
  if (!resolve_id_since(cli_value(args, "since"), &wanted->since_ms, err))
    return false;
  return filter_check(wanted, &why) || err_set(err, why.code, "--%s", why.text);
}

/* --- watching --- */

/* Lists from the daemon, or where none is running from the folder, which says the same. */
static int ls_list(struct ls *ls, struct err *err) {
  int status = ls->logs == NULL ? list_daemon(ls, err) : -1;
  if (status < 0 && ls->logs == NULL && (ls->socket != NULL || err->code != ERR_NOT_FOUND))
    return cli_fail("ls", err);
  return status < 0 ? list_folder(ls, ls->logs) : status;
}

static json_t *ls_watch_list(void *ctx, struct err *err) {
  struct ls *ls = ctx;
  json_t *rows = ls->rows = json_array();
  ls->rows_left = LIMIT_LS_WATCH_COUNT;
  ls->proof_left = LIMIT_WINDOW_PROOF_BYTES;
  ls->now_ms = clock_real_ms();
  if (ls_list(ls, err) == STATUS_COMPLETE)
    return rows;
  *err = (struct err){0};
  json_decref(rows);
  return NULL;
}

static void ls_watch_row(void *ctx, const json_t *session, int columns, struct buf *out) {
  struct ls *ls = ctx;
  ls->columns = columns;
  if (session == NULL)
    ls_put_head(ls, out);
  else
    ls_put_row(ls, session, out);
}

static int ls_watch(struct ls *ls) {
  const char *const socket[] = {"--socket", ls->socket, NULL}, *logs[] = {"--logs", ls->logs, NULL};
  struct watch_ops ops = {.list = ls_watch_list, .row = ls_watch_row, .ctx = ls};
  struct err err = {0};
  if (ls->logs != NULL)
    ops.where = (const char *const *)logs;
  else if (ls->socket != NULL)
    ops.where = socket;
  if (watch_run(&ops, &err))
    return STATUS_COMPLETE;
  return err.text[0] != '\0' ? cli_fail("ls", &err) : STATUS_FAILED; /* ls_list has said it */
}

static int ls_run(const struct cli_args *args) {
  struct err err = {0};
  int status;
  long rows = ROWS_DEFAULT;
  const char *number = cli_value(args, "number");
  if (number != NULL && (!str_to_long(str_from(number), &rows) || rows < 1))
    return cli_refuse("ls", "-n must be a number above 0");
  if (cli_flag(args, "watch") && cli_value(args, "by") != NULL)
    return cli_refuse("ls", "--watch lists sessions, --by sums them up");
  struct ls ls = {.json = cli_flag(args, "json"),
                  .colours = cli_colours(STDOUT_FILENO),
                  .columns = cli_columns(STDOUT_FILENO),
                  .rows_left = (size_t)rows,
                  .proof_left = LIMIT_LS_PROOF_BYTES,
                  .logs = cli_value(args, "logs"),
                  .socket = cli_value(args, "socket"),
                  .since = cli_value(args, "since"),
                  .now_ms = clock_real_ms()};
  const char *by = cli_value(args, "by");
  json_auto_t *keys = json_array(), *sums = json_object();
  if (by != NULL && number == NULL)
    ls.rows_left = SIZE_MAX;
  ls.keys = keys;
  ls.sums = by != NULL ? sums : NULL;
  if (!read_filter(&ls.wanted, args, &err) || (by != NULL && !ls_read_by(&ls, by, &err)))
    return cli_fail("ls", &err);
  if (ls.wanted.statuses != NULL && summary_wanted(ls.wanted.statuses, "bad")) {
    ls.proven = ls.wanted.statuses; /* neither list nor index knows of a change in a log's middle */
    ls.wanted.statuses = NULL;
    ls.proof_left = LIMIT_LS_BAD_BYTES;
  }
  if (cli_flag(args, "watch"))
    return ls_watch(&ls);
  status = ls_list(&ls, &err);
  if (status == STATUS_COMPLETE && by != NULL)
    ls_print_sums(&ls);
  if (status == STATUS_COMPLETE && ls.proven != NULL && ls.unproven > 0)
    fprintf(stderr, "segue ls: %zu older logs were not checked; segue verify FOLDER checks all\n",
            ls.unproven);
  if (status == STATUS_COMPLETE && !ls.any && !ls.json) {
    bool filtered = filter_is_set(&ls.wanted) || ls.proven != NULL;
    cli_say(stderr, "%s%s\n", filtered ? "no session matches" : "no sessions", ls.where);
  }
  if (status == STATUS_COMPLETE && !ls.json && ls.logs == NULL && ls.where[0] != '\0')
    say_other_folder(ls.where + strlen(" in "));
  return status;
}

const struct cli_command cmd_ls = {COMMAND_LS, .run = ls_run};
