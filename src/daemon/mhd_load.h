/* mhd_load.h - libmicrohttpd, loaded by the daemon instead of at every start.
 *
 * Linked, it would cost every start of the program a millisecond, as much as everything else: it
 * draws in gnutls and eight more libraries. The types are those of <microhttpd.h>; its functions
 * are called through the table. */
#ifndef SEGUE_DAEMON_MHD_LOAD_H
#define SEGUE_DAEMON_MHD_LOAD_H

#include "base/err.h"

#include <microhttpd.h>

#define MHD_FUNCTIONS(X)                                                                           \
  X(get_version)                                                                                   \
  X(start_daemon)                                                                                  \
  X(stop_daemon)                                                                                   \
  X(run)                                                                                           \
  X(get_timeout)                                                                                   \
  X(get_daemon_info)                                                                               \
  X(add_connection)                                                                                \
  X(get_connection_info)                                                                           \
  X(get_connection_values)                                                                         \
  X(lookup_connection_value)                                                                       \
  X(suspend_connection)                                                                            \
  X(resume_connection)                                                                             \
  X(queue_response)                                                                                \
  X(create_response_from_buffer)                                                                   \
  X(create_response_from_callback)                                                                 \
  X(add_response_header)                                                                           \
  X(destroy_response)

struct mhd_api {
#define MHD_MEMBER(name) __typeof__(&MHD_##name) name;
  MHD_FUNCTIONS(MHD_MEMBER)
#undef MHD_MEMBER
};
extern struct mhd_api microhttpd; /* empty before mhd_load */

/* Loads it, once; it stays for the life of the program. False: err says what is missing. */
bool mhd_load(struct err *err) MUST_CHECK;

#endif
