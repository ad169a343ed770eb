/* curl_load.h - libcurl, loaded at the first HTTP request instead of at every start.
 *
 * Linked, it would cost every start of the program about 4 ms: it draws in about thirty libraries,
 * and most commands never speak HTTP. The types are those of <curl/curl.h>; the functions are
 * called through the table. */
#ifndef SEGUE_HTTP_CURL_LOAD_H
#define SEGUE_HTTP_CURL_LOAD_H

#include "base/err.h"

#include <curl/curl.h>

#define CURL_FUNCTIONS(X)                                                                          \
  X(version)                                                                                       \
  X(global_init)                                                                                   \
  X(global_cleanup)                                                                                \
  X(easy_init)                                                                                     \
  X(easy_setopt)                                                                                   \
  X(easy_getinfo)                                                                                  \
  X(easy_strerror)                                                                                 \
  X(easy_perform)                                                                                  \
  X(easy_cleanup)                                                                                  \
  X(multi_init)                                                                                    \
  X(multi_setopt)                                                                                  \
  X(multi_add_handle)                                                                              \
  X(multi_remove_handle)                                                                           \
  X(multi_socket_action)                                                                           \
  X(multi_info_read)                                                                               \
  X(multi_assign)                                                                                  \
  X(multi_cleanup)                                                                                 \
  X(slist_append)                                                                                  \
  X(slist_free_all)

struct curl_api {
#define CURL_MEMBER(name) __typeof__(&curl_##name) name;
  CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
};

/* Loads it, once; the table stays for the life of the program. NULL: err says what is missing. */
const struct curl_api *curl_load(struct err *err) MUST_CHECK;

#endif
