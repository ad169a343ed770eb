/* Talks to the server of a shared store, one request at a time or many in a pipeline. */
#include "store/postgres/conn.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"
#include "os/clock.h"
#include "store/shared.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* --- libpq ---
 *
 * libpq is loaded when a shared store is first used instead of at every start: linked, it
 * would cost each start 4 to 6 ms. The types are those of <libpq-fe.h>; the functions are called
 * through the table. */

static struct pq_api pq;

const struct pq_api *pq_load(struct err *err) {
  static bool loaded;
  if (loaded)
    return &pq;
  void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL), *symbol;
  if (library == NULL) {
    err_set(err, ERR_NOT_FOUND,
            "a shared store needs libpq (libpq.so.5), which cannot be loaded: install it "
            "(Debian: libpq5)");
    return NULL;
  }
/* POSIX lets dlsym return functions as data pointers; memcpy keeps ISO C content. */
#define PQ_LOAD(name)                                                                              \
  symbol = dlsym(library, "PQ" #name);                                                             \
  if (symbol == NULL) {                                                                            \
    err_set(err, ERR_NOT_FOUND, "libpq has no PQ" #name ": it is too old");                        \
    return NULL;                                                                                   \
  }                                                                                                \
  memcpy(&pq.name, &symbol, sizeof symbol);
  PQ_FUNCTIONS(PQ_LOAD)
#undef PQ_LOAD
  loaded = true;
  return &pq;
}

const char *store_library(void) {
  static char version[16];
  struct err ignored;
  if (pq_load(&ignored) == NULL)
    return NULL;
  print_into(version, sizeof version, "%d.%d", pq.libVersion() / 10000,
             pq.libVersion() % 10000); /* since version 10: 150010 is 15.10 */
  return version;
}

/* --- conn --- */

enum {
  OID_BYTES = 17,
  OID_NUMBER = 20,
  OID_NUMBER_LIST = 1016,
  OID_BYTES_LIST = 1001,
  ARGS_MAX = 12
};

struct conn {
  PGconn *pg; /* NULL: it is lost */
  bool pipelined;
  char shown[URL_SHOWN_BYTES];
  int backend;
};

static void ignore_notice(void *ctx, const PGresult *notification) {
  (void)ctx;
  (void)notification;
}

static bool is_state(const char *state, const char *wanted) {
  return state != NULL && strncmp(state, wanted, strlen(wanted)) == 0;
}

/* --- failures --- */

static size_t one_line(const char *text) {
  return strcspn(text, "\r\n");
}

static void conn_hang_up(struct conn *conn) {
  if (conn->pg != NULL)
    pq.finish(conn->pg);
  conn->pg = NULL;
}

static bool conn_lose(struct conn *conn, const char *why, enum conn_failure *failure,
                      struct err *err) {
  *failure = CONN_LOST;
  err_set(err, ERR_IO, "the store %s does not answer: %.*s", conn->shown, (int)one_line(why), why);
  conn_hang_up(conn);
  return false;
}

/* Classifies a refusal by its SQLSTATE: its words depend on the server's language. A server that is
 * going down or starting has not carried the request out, and will answer soon, or another one will
 * in its place; so that counts as no answer, and the request is repeated. */
static bool conn_refuse(struct conn *conn, const PGresult *answer, enum conn_failure *failure,
                        struct err *err) {
  const char *state = pq.resultErrorField(answer, PG_DIAG_SQLSTATE);
  const char *text = pq.resultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);
  text = text ? text : "it does not say why";
  *failure = CONN_REFUSED;
  if (is_state(state, "57P") || is_state(state, "08") || is_state(state, "53300"))
    return conn_lose(conn, text, failure, err); /* down, starting, or too many clients */
  if (is_state(state, "25006")) {
    (void)conn_lose(conn, text, failure, err); /* the next one may be to another server */
    return err_set(err, ERR_IO, "the store %s is read-only, perhaps a standby: %.*s", conn->shown,
                   (int)one_line(text), text);
  }
  if (is_state(state, "53100")) {
    *failure = CONN_FULL;
    return err_set(err, ERR_FULL, "the disk of the store %s is full: %.*s", conn->shown,
                   (int)one_line(text), text);
  }
  if (is_state(state, "3F000") || is_state(state, "42P01") || is_state(state, "42883"))
    return err_set(err, ERR_NOT_FOUND,
                   "there are no tables of segue in the store %s: make them with segue store init",
                   conn->shown);
  if (is_state(state, "42501"))
    return err_set(
        err, ERR_INVALID,
        "the store %s does not allow that: %.*s; its owner can GRANT segue_worker (or "
        "segue_reader, to read only) TO this login; init and prune need the owner's login",
        conn->shown, (int)one_line(text), text);
  return err_set(err, ERR_IO, "the store %s: %.*s (%s)", conn->shown, (int)one_line(text), text,
                 state ? state : "?");
}

/* --- opening --- */

/* A record is said to be durable when its commit is answered. A server that answers before it has
 * written would turn that into a lie at its next crash, so it is refused. */
static bool check_server(struct conn *conn, enum conn_failure *failure, struct err *err) {
  static const char sql[] = "SELECT current_setting('fsync'), current_setting('full_page_writes'), "
                            "current_setting('synchronous_commit')";
  static const char *const names[] = {"fsync", "full_page_writes", "synchronous_commit"};
  int version = pq.serverVersion(conn->pg);
  *failure = CONN_REFUSED;
  if (version < 140000)
    return err_set(err, ERR_INVALID, "the store %s is PostgreSQL %d: segue needs 14 or newer",
                   conn->shown, version / 10000);
  PGresult *answer = conn_ask(conn, sql, LIMIT_STORE_ASK_MS, NULL, 0, false, failure, err);
  if (answer == NULL)
    return false;
  *failure = CONN_REFUSED;
  bool ok = true;
  for (int i = 0; ok && i < 3; i++)
    if (strcmp(conn_text(answer, 0, i), "off") == 0)
      ok = err_set(err, ERR_INVALID,
                   "the store %s has %s = off: it can lose records that it said were safe. Set it "
                   "on",
                   conn->shown, names[i]);
  conn_free(answer);
  if (ok)
    *failure = CONN_FINE;
  return ok;
}

/* A failure with these words does not pass by itself: a wrong password, name or right stays wrong.
 * They are libpq's and the server's own, in English; open_failed also asks for the SQLSTATE. */
static const char lasting_words[] =
    "password|authentication|does not exist|pg_hba.conf|certificate|SSL|could not translate|"
    "invalid|root.crt|permission denied for database";

/* libpq's own words for a server that is not reached: then there is no SQLSTATE to ask for. */
static const char unreached_words[] =
    "Is the server running|timeout expired|server closed the connection|could not receive|"
    "could not send";

/* The server, and pgbouncer, say so where there are too many clients. */
static const char full_words[] = "too many c|remaining connection slots|no more connections";

/* Says what to do, where libpq's message does not. */
static const char *open_hint(const char *why) {
  static const char *const hints[][2] = {
      {"certificate verify failed", "; sslrootcert=FILE in its address names who signed it"},
      {"does not match host name", "; its address must have the name in the certificate"},
      {"does not support SSL",
       "; turn on ssl there, or, where nobody else is on the network, write "
       "sslmode=disable in its address"},
      {"no password supplied", "; write it into ~/.pgpass (mode 0600), or set PGPASSWORD"}};
  for (size_t i = 0; i < ARRAY_LEN(hints); i++)
    if (strstr(why, hints[i][0]) != NULL)
      return hints[i][1];
  return "";
}

/* Holds a connection's settings as libpq takes them; NULL ends both lists. */
struct conn_params {
  const char *keywords[URL_OPTIONS_MAX + 8], *values[URL_OPTIONS_MAX + 8];
  int n;
};

static void param_add(struct conn_params *params, const char *keyword, const char *value) {
  params->keywords[params->n] = keyword;
  params->values[params->n++] = value;
}

/* A server that is cut off must be noticed well within a lease: the system's own limits are minutes
 * and hours. An address may name others, but not the encoding and the name: the first decides which
 * texts arrive as they were sent, and by the second segue.sweep ends a dead worker's connections.
 */
static void params_fill(struct conn_params *params, const struct url_options *options,
                        const char *who, const char *encoding) {
  *params = (struct conn_params){.n = 0};
  param_add(params, "connect_timeout", "5");
  param_add(params, "keepalives_idle", "5");
  param_add(params, "keepalives_interval", "2");
  param_add(params, "keepalives_count", "3");
  param_add(params, "tcp_user_timeout", "10000");
  for (int i = 0; i < options->count; i++) /* the later value counts */
    param_add(params, options->keywords[i], options->values[i]);
  param_add(params, "client_encoding", encoding);
  param_add(params, "application_name", who);
}

/* Finishes a connection that was begun, within a limit. False: it failed, or time is up. */
static bool conn_finish_opening(PGconn *pg, uint64_t limit_ms) {
  uint64_t until_ms = clock_mono_ms() + limit_ms;
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING) {
    uint64_t now = clock_mono_ms();
    struct pollfd p = {.fd = pq.socket(pg),
                       .events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT};
    if (now >= until_ms || p.fd < 0 || (poll(&p, 1, (int)(until_ms - now)) < 0 && errno != EINTR))
      return false;
    if (p.revents != 0)
      next = pq.connectPoll(pg);
  }
  return next == PGRES_POLLING_OK;
}

/* Tries once more to open a connection, to learn the SQLSTATE of the server's refusal: its words
 * may be in any language, and libpq tells the state only of a connection that was begun in two
 * steps. Leaves "" where the server does not refuse. */
static void ask_why_refused(const struct url_options *options, const char *who, char state[6]) {
  struct conn_params params;
  params_fill(&params, options, who, "UTF8");
  PGconn *pg = pq.connectStartParams(params.keywords, params.values, 0);
  state[0] = '\0';
  if (pg == NULL)
    return;
  (void)pq.setErrorVerbosity(pg, PQERRORS_SQLSTATE); /* the message ends in the state */
  if (pq.status(pg) != CONNECTION_BAD && !conn_finish_opening(pg, LIMIT_STORE_REASON_MS)) {
    const char *why = pq.errorMessage(pg);
    size_t n = one_line(why);
    if (n > 5 && why[n - 6] == ' ' &&
        strspn(why + n - 5, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") >= 5)
      print_into(state, 6, "%.5s", why + n - 5);
  }
  pq.finish(pg);
}

static bool open_failed(struct conn *conn, const struct url_options *options, const char *who,
                        enum conn_failure *failure, struct err *err) {
  const char *why = pq.errorMessage(conn->pg);
  /* libpq tells of each address of a host, and tries the next one only where nobody listens. */
  for (const char *next = why; next; next = strstr(why + (why[0] != 0), "connection to server "))
    why = next;
  bool transient = !str_has_any(str_from(why), lasting_words),
       full = str_has_any(str_from(why), full_words);
  char text[512], state[6];
  print_into(text, sizeof text, "%.*s", (int)one_line(why), why);
  if (transient && !full && !str_has_any(str_from(why), unreached_words)) {
    ask_why_refused(options, who, state);
    full = is_state(state, "53300");
    /* authentication, no such database, no right to connect */
    transient = !(is_state(state, "28") || is_state(state, "3D000") || is_state(state, "42501"));
  }
  if (full) {
    const char *fatal = strstr(text, "FATAL: ");
    *failure = CONN_LOST;
    return err_set(err, ERR_IO, "the store %s has no connection left (max_connections): %s",
                   conn->shown, fatal ? fatal : text);
  }
  (void)conn_lose(conn, text, failure, err);
  if (transient)
    return false;
  *failure = CONN_REFUSED;
  return err_set(err, ERR_INVALID, "the store %s: %s%s", conn->shown, text, open_hint(text));
}

static PGconn *conn_connect(const struct url_options *options, const char *who,
                            const char *encoding) {
  struct conn_params params;
  params_fill(&params, options, who, encoding);
  return pq.connectdbParams(params.keywords, params.values, 0);
}

/* Returns whether each byte is a character for the server: then it keeps all UTF-8 texts as they
 * are. */
static bool is_single_byte(const char *encoding) {
  return strcmp(encoding, "UTF8") != 0 && strcmp(encoding, "SQL_ASCII") != 0 &&
         strncmp(encoding, LIT("EUC_")) != 0 && strcmp(encoding, "MULE_INTERNAL") != 0;
}

static const char *server_encoding(const struct conn *conn) {
  const char *encoding = pq.parameterStatus(conn->pg, "server_encoding");
  return encoding != NULL ? encoding : "UTF8";
}

bool conn_is_narrow(const struct conn *conn) {
  return conn->pg != NULL && (strncmp(server_encoding(conn), LIT("EUC_")) == 0 ||
                              strcmp(server_encoding(conn), "MULE_INTERNAL") == 0);
}

/* Asks a server that would convert texts, and refuse those that it has no characters for, not to
 * convert any. */
static bool conn_connected(struct conn *conn, const struct url_options *options, const char *who) {
  conn->pg = conn_connect(options, who, "UTF8");
  bool ok = conn->pg != NULL && pq.status(conn->pg) == CONNECTION_OK;
  if (ok && is_single_byte(server_encoding(conn))) {
    pq.finish(conn->pg);
    conn->pg = conn_connect(options, who, "SQL_ASCII");
    ok = conn->pg != NULL && pq.status(conn->pg) == CONNECTION_OK;
  }
  return ok;
}

struct conn *conn_open(const struct url_options *options, const char *shown, const char *who,
                       enum conn_failure *failure, struct err *err) {
  enum conn_failure ignored;
  failure = failure ? failure : &ignored;
  struct conn *conn = xcalloc(1, sizeof *conn);
  print_into(conn->shown, sizeof conn->shown, "%s", shown);
  bool ok = conn_connected(conn, options, who);
  conn->backend = ok ? pq.backendPID(conn->pg) : 0;
  if (ok) {
    pq.setNoticeReceiver(conn->pg, ignore_notice, NULL);
    ok = pq.setnonblocking(conn->pg, 1) == 0 && check_server(conn, failure, err);
  } else {
    ok = open_failed(conn, options, who, failure, err);
  }
  if (ok)
    return conn;
  conn_close(conn);
  return NULL;
}

void conn_close(struct conn *conn) {
  if (conn == NULL)
    return;
  conn_hang_up(conn);
  free(conn);
}

int conn_backend(const struct conn *conn) {
  return conn->backend;
}

bool conn_is_open(const struct conn *conn) {
  return conn != NULL && conn->pg != NULL;
}

/* --- waiting --- */

/* Waits until the socket is readable (or writable, if `write`). False: time is up. */
static bool conn_poll(struct conn *conn, bool write, uint64_t until_ms) {
  uint64_t now = clock_mono_ms();
  struct pollfd p = {.fd = pq.socket(conn->pg),
                     .events = (short)(write ? POLLIN | POLLOUT : POLLIN)};
  if (now >= until_ms || p.fd < 0)
    return false;
  uint64_t left = until_ms - now;
  int n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
  return n > 0 || (n < 0 && errno == EINTR) || (n == 0 && left > 60000);
}

static bool conn_flush(struct conn *conn, uint64_t until_ms) {
  int left;
  while ((left = pq.flush(conn->pg)) > 0)
    if (!conn_poll(conn, true, until_ms) || !pq.consumeInput(conn->pg))
      return false;
  return left == 0;
}

/* Waits for the next answer. Returns false if the connection is lost, or time is up. */
static bool conn_next(struct conn *conn, uint64_t until_ms, PGresult **answer) {
  while (pq.isBusy(conn->pg))
    if (!conn_poll(conn, false, until_ms) || !pq.consumeInput(conn->pg))
      return false;
  *answer = pq.getResult(conn->pg);
  return true;
}

static bool conn_lost_now(struct conn *conn, uint64_t until_ms, enum conn_failure *failure,
                          struct err *err) {
  const char *why = pq.errorMessage(conn->pg);
  bool late = clock_mono_ms() >= until_ms || why[0] == '\0';
  return conn_lose(conn, late ? "no answer in time" : why, failure, err);
}

/* --- asking --- */

static bool send_params(struct conn *conn, const char *sql, const struct conn_arg *args, int n,
                        bool binary) {
  static const unsigned oids[] = {0, OID_BYTES, OID_BYTES_LIST, OID_NUMBER_LIST};
  const char *values[ARGS_MAX];
  int lengths[ARGS_MAX], formats[ARGS_MAX];
  Oid types[ARGS_MAX];
  for (int i = 0; i < n && i < ARGS_MAX; i++) {
    bool text = args[i].kind == ARG_TEXT;
    const char *bytes = args[i].bytes.p ? args[i].bytes.p : "";
    values[i] = text ? args[i].text : bytes;
    lengths[i] = text ? 0 : (int)args[i].bytes.n;
    formats[i] = !text;
    types[i] = oids[args[i].kind];
  }
  return pq.sendQueryParams(conn->pg, sql, n, types, values, lengths, formats, binary) == 1;
}

static bool is_good(const PGresult *answer) {
  ExecStatusType status = pq.resultStatus(answer);
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY;
}

/* Takes all answers to the request and keeps the last good one. libpq accepts no other request
 * before it has given out the last of them. */
static bool conn_collect(struct conn *conn, uint64_t until_ms, PGresult **kept,
                         enum conn_failure *failure, struct err *err) {
  PGresult *answer;
  bool ok = true;
  for (;;) {
    if (!conn_next(conn, until_ms, &answer))
      return conn_lost_now(conn, until_ms, failure, err);
    if (answer == NULL)
      return ok;
    if (ok && !is_good(answer))
      ok = conn_refuse(conn, answer, failure, err);
    if (ok) {
      pq.clear(*kept);
      *kept = answer;
    } else {
      pq.clear(answer);
    }
    if (conn->pg == NULL)
      return false;
  }
}

/* Takes the answers to a request. sent: libpq has taken it. */
static PGresult *conn_answer(struct conn *conn, bool sent, uint64_t until_ms,
                             enum conn_failure *failure, struct err *err) {
  PGresult *kept = NULL;
  if (!sent || !conn_flush(conn, until_ms))
    (void)conn_lost_now(conn, until_ms, failure, err);
  else if (conn_collect(conn, until_ms, &kept, failure, err))
    return kept;
  pq.clear(kept);
  return NULL;
}

PGresult *conn_ask(struct conn *conn, const char *sql, uint64_t limit_ms,
                   const struct conn_arg *args, int n, bool binary, enum conn_failure *failure,
                   struct err *err) {
  enum conn_failure ignored;
  uint64_t until = clock_mono_ms() + limit_ms;
  failure = failure ? failure : &ignored;
  *failure = CONN_FINE;
  if (!conn_is_open(conn)) {
    *failure = CONN_LOST;
    err_set(err, ERR_IO, "the store %s does not answer", conn->shown);
    return NULL;
  }
  return conn_answer(conn, send_params(conn, sql, args, n, binary), until, failure, err);
}

bool conn_script(struct conn *conn, const char *sql, struct err *err) {
  enum conn_failure failure;
  PGresult *answer = conn_answer(conn, pq.sendQuery(conn->pg, sql) == 1,
                                 clock_mono_ms() + LIMIT_STORE_SCRIPT_MS, &failure, err);
  bool ok = answer != NULL;
  conn_free(answer);
  return ok;
}

/* --- pipelines --- */

/* A failure closes the connection: the server may have half of the pipeline and wait for the rest.
 */
bool conn_send(struct conn *conn, const char *sql, const struct conn_arg *args, int n) {
  conn->pipelined = conn->pipelined || (conn_is_open(conn) && pq.enterPipelineMode(conn->pg) == 1);
  bool ok = conn->pipelined && send_params(conn, sql, args, n, false);
  if (!ok)
    conn_hang_up(conn);
  return ok;
}

/* After a refusal the server skips the other statements up to the sync, and undoes those before, so
 * the rest is read but not believed. Until the sync has come, the connection is of no use. */
bool conn_sync(struct conn *conn, uint64_t limit_ms,
               void (*each)(void *ctx, int index, PGresult *answer), void *ctx, struct err *err) {
  enum conn_failure ignored, *failure = &ignored;
  uint64_t until = clock_mono_ms() + limit_ms;
  bool ok = true;
  int index = 0;
  PGresult *answer;
  assert(conn->pipelined);
  conn->pipelined = false;
  if (pq.pipelineSync(conn->pg) != 1 || !conn_flush(conn, until))
    return conn_lost_now(conn, until, failure, err);
  for (;;) {
    if (!conn_next(conn, until, &answer))
      return conn_lost_now(conn, until, failure, err);
    if (answer == NULL) {
      index++; /* NULL ends the answers to one statement */
      continue;
    }
    ExecStatusType status = pq.resultStatus(answer);
    if (ok && status == PGRES_FATAL_ERROR)
      ok = conn_refuse(conn, answer, failure, err);
    else if (status == PGRES_TUPLES_OK)
      each(ctx, index, answer);
    else if (status == PGRES_PIPELINE_ABORTED)
      ok = false;
    pq.clear(answer);
    if (conn->pg == NULL)
      return false;
    if (status == PGRES_PIPELINE_SYNC)
      break;
  }
  return pq.exitPipelineMode(conn->pg) == 1 ? ok : conn_lost_now(conn, until, failure, err);
}

/* --- answers --- */

int conn_rows(const PGresult *answer) {
  return pq.ntuples(answer);
}

const char *conn_text(const PGresult *answer, int row, int column) {
  return pq.getvalue(answer, row, column);
}

struct str conn_bytes(const PGresult *answer, int row, int column) {
  return (struct str){pq.getvalue(answer, row, column), (size_t)pq.getlength(answer, row, column)};
}

uint64_t conn_number(const PGresult *answer, int row, int column) {
  return strtoull(conn_text(answer, row, column), NULL, 10);
}

void conn_free(PGresult *answer) {
  if (answer != NULL)
    pq.clear(answer);
}

/* --- notifications --- */

static bool take_notification(struct conn *conn, char payload[64]) {
  PGnotify *n = pq.notifies(conn->pg);
  if (n == NULL)
    return false;
  print_into(payload, 64, "%.60s", n->extra);
  pq.freemem(n);
  return true;
}

bool conn_wait(struct conn *conn, uint64_t wait_ms, int wake_fd, char payload[64]) {
  enum conn_failure ignored;
  struct err err;
  payload[0] = '\0';
  struct pollfd p[2] = {{.fd = wake_fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
  if (conn_is_open(conn)) {
    if (take_notification(conn, payload))
      return true;
    p[1].fd = pq.socket(conn->pg);
  }
  (void)poll(p, 2, (int)wait_ms);
  if (!conn_is_open(conn) || p[1].revents == 0)
    return false;
  if (pq.consumeInput(conn->pg) != 1)
    return conn_lose(conn, pq.errorMessage(conn->pg), &ignored, &err);
  return take_notification(conn, payload);
}

/* --- lists --- */

/* Lines go as bytes, in one array: as text each would have to be escaped, twice its size, and the
 * server would have to read it again. */

static void put_int(struct buf *out, uint32_t n) {
  n = htonl(n);
  buf_append(out, &n, sizeof n);
}

enum { LIST_COUNT_AT = 12 };

void conn_list_begin(struct buf *out, enum conn_kind kind) {
  put_int(out, 1); /* dimensions, flags, type of the items, their number, index of the first */
  put_int(out, 0);
  put_int(out, kind == ARG_BYTES_LIST ? OID_BYTES : OID_NUMBER);
  put_int(out, 0);
  put_int(out, 1);
}

/* Adds an item's length, and one to the number of items. */
static void list_item_begin(struct buf *out, size_t bytes) {
  uint32_t count;
  memcpy(&count, out->p + LIST_COUNT_AT, sizeof count);
  count = htonl(ntohl(count) + 1);
  memcpy(out->p + LIST_COUNT_AT, &count, sizeof count);
  put_int(out, (uint32_t)bytes);
}

void conn_list_bytes(struct buf *out, struct str item) {
  list_item_begin(out, item.n);
  buf_str(out, item);
}

void conn_list_number(struct buf *out, uint64_t item) {
  list_item_begin(out, sizeof item);
  put_int(out, (uint32_t)(item >> 32));
  put_int(out, (uint32_t)item);
}
