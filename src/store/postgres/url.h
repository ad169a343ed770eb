/* url.h - the address of a shared store, and what it may contain.
 *
 *   url_is_shared(where)                     is it the URL of a store, not a folder?
 *   url_read(where, &options, &shown, &err)  checks it; url_deinit(&options)
 *
 * Any URL that libpq takes will do, but without a password: passwords come by libpq's own means.
 * Over a network the server must prove who it is (sslmode=verify-full), unless the URL itself says
 * otherwise; prefer and allow, which an attacker turns into no TLS, are refused. */
#ifndef SEGUE_STORE_POSTGRES_URL_H
#define SEGUE_STORE_POSTGRES_URL_H

#include "base/err.h"

#include <stdbool.h>

enum { URL_OPTIONS_MAX = 48, URL_SHOWN_BYTES = 320, URL_BYTES_MAX = 900 };

struct url_options {
  char *keywords[URL_OPTIONS_MAX + 1]; /* NULL-terminated */
  char *values[URL_OPTIONS_MAX + 1];
  int count;
};

bool url_is_shared(const char *where);
/* Reads the address. shown: host, port and database, all that messages show of it. */
bool url_read(const char *where, struct url_options *options, char shown[URL_SHOWN_BYTES],
              struct err *err) MUST_CHECK;
void url_deinit(struct url_options *options);

#endif
