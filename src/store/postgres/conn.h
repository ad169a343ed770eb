/* conn.h - one connection to the server of a shared store.
 *
 *   conn = conn_open(&options, shown, who, &err)
 *   answer = conn_ask(conn, "SELECT f($1, $2)", limit_ms, args, n, binary, &failure, &err)
 *   conn_text(answer, row, column) ...; conn_free(answer)
 *   conn_close(conn)
 *
 * Everything blocks, within a limit, so it belongs in the loop's pool, or in a command that has
 * nothing else to do. One thread at a time. After CONN_LOST the connection is closed, as
 * conn_is_open says, and the request may or may not have been carried out.
 *
 * Statements have no names, so that a transaction pooler may stand in between. */
#ifndef SEGUE_STORE_POSTGRES_CONN_H
#define SEGUE_STORE_POSTGRES_CONN_H

#include "base/buf.h"
#include "base/err.h"
#include "store/postgres/url.h"

#include <libpq-fe.h>
#include <stdint.h>

#define PQ_FUNCTIONS(X)                                                                            \
  X(libVersion)                                                                                    \
  X(conninfoParse)                                                                                 \
  X(conninfoFree)                                                                                  \
  X(connectdbParams)                                                                               \
  X(connectStartParams)                                                                            \
  X(connectPoll)                                                                                   \
  X(setErrorVerbosity)                                                                             \
  X(freemem)                                                                                       \
  X(finish)                                                                                        \
  X(status)                                                                                        \
  X(errorMessage)                                                                                  \
  X(connectionNeedsPassword)                                                                       \
  X(socket)                                                                                        \
  X(serverVersion)                                                                                 \
  X(backendPID)                                                                                    \
  X(parameterStatus)                                                                               \
  X(setNoticeReceiver)                                                                             \
  X(sendQuery)                                                                                     \
  X(sendQueryParams)                                                                               \
  X(setnonblocking)                                                                                \
  X(flush)                                                                                         \
  X(consumeInput)                                                                                  \
  X(isBusy)                                                                                        \
  X(getResult)                                                                                     \
  X(clear)                                                                                         \
  X(resultStatus)                                                                                  \
  X(resultErrorField)                                                                              \
  X(ntuples)                                                                                       \
  X(getvalue)                                                                                      \
  X(getlength)                                                                                     \
  X(getisnull)                                                                                     \
  X(notifies)                                                                                      \
  X(enterPipelineMode)                                                                             \
  X(exitPipelineMode)                                                                              \
  X(pipelineSync)

struct pq_api {
#define PQ_MEMBER(name) __typeof__(&PQ##name) name;
  PQ_FUNCTIONS(PQ_MEMBER)
#undef PQ_MEMBER
};

/* Loads libpq once; the table stays for the life of the program. NULL: err says what is missing.
 * Call it only under the lock of base_of, or before there are threads. */
const struct pq_api *pq_load(struct err *err) MUST_CHECK;

enum conn_failure {
  CONN_FINE,
  CONN_LOST,   /* no answer or no connection: try again */
  CONN_FULL,   /* the server has no space (53100) */
  CONN_REFUSED /* the server refused: err says why */
};

enum conn_kind { ARG_TEXT, ARG_BYTES, ARG_BYTES_LIST, ARG_NUMBER_LIST };

struct conn_arg {
  enum conn_kind kind;
  const char *text; /* ARG_TEXT; NULL: null */
  struct str bytes; /* ARG_BYTES, or what conn_list made for the lists */
};

struct conn;
struct pg_result;

/* who: the application's name, which tells workers apart in the server's list of connections. */
struct conn *conn_open(const struct url_options *options, const char *shown, const char *who,
                       enum conn_failure *failure, struct err *err);
void conn_close(struct conn *conn); /* NULL is fine */
bool conn_is_open(const struct conn *conn);
/* Returns whether the server's encoding lacks characters of Unicode, so that it refuses texts with
 * them. */
bool conn_is_narrow(const struct conn *conn);
/* the server's process for it, even once the connection is lost */
int conn_backend(const struct conn *conn);

/* Sends one request. binary: returns the raw bytes of bytea columns, beside which
 * only texts can be read. NULL: failure (NULL is fine) and err say why. */
PGresult *conn_ask(struct conn *conn, const char *sql, uint64_t limit_ms,
                   const struct conn_arg *args, int n, bool binary, enum conn_failure *failure,
                   struct err *err);
/* Runs many statements without parameters, as one transaction unless they say otherwise. */
bool conn_script(struct conn *conn, const char *sql, struct err *err) MUST_CHECK;

/* These run a pipeline: conn_send for each statement, then conn_sync. Nothing counts unless
 * conn_sync returns true, since one failure undoes everything. `each` sees the answers in order
 * before that. Afterwards, or after a failed conn_send, the connection is as good as new, or
 * closed. */
bool conn_send(struct conn *conn, const char *sql, const struct conn_arg *args, int n);
bool conn_sync(struct conn *conn, uint64_t limit_ms,
               void (*each)(void *ctx, int index, PGresult *answer), void *ctx,
               struct err *err) MUST_CHECK;

int conn_rows(const PGresult *answer);
const char *conn_text(const PGresult *answer, int row, int column);
struct str conn_bytes(const PGresult *answer, int row, int column); /* from a binary answer */
uint64_t conn_number(const PGresult *answer, int row, int column);
void conn_free(PGresult *answer);

/* Waits for a notification and returns true with its payload. False: none came, something was
 * written to wake_fd, or the connection is lost. */
bool conn_wait(struct conn *conn, uint64_t wait_ms, int wake_fd, char payload[64]);

/* These write arrays in their wire format, for ARG_BYTES_LIST and ARG_NUMBER_LIST. */
void conn_list_begin(struct buf *out, enum conn_kind kind);
void conn_list_bytes(struct buf *out, struct str item);
void conn_list_number(struct buf *out, uint64_t item);

#endif
