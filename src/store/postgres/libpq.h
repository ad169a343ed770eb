/* libpq.h - libpq, loaded when a shared store is first used instead of at every start: linked, it
 * would cost each start 4 to 6 ms. The types are those of <libpq-fe.h>; the functions are called
 * through the table. */
#ifndef SEGUE_STORE_POSTGRES_LIBPQ_H
#define SEGUE_STORE_POSTGRES_LIBPQ_H

#include "base/err.h"

#include <libpq-fe.h>

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
 * Call it only under the lock of base.h, or before there are threads. */
const struct pq_api *pq_load(struct err *err) MUST_CHECK;

#endif
