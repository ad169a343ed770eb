/* Reads the address of a shared store. */
#include "store/postgres/url.h"

#include "base/log.h"
#include "base/str.h"
#include "store/postgres/conn.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool url_is_shared(const char *where) {
  return strncmp(where, LIT("postgres://")) == 0 || strncmp(where, LIT("postgresql://")) == 0;
}

/* Looks for a password before libpq sees the address: its messages may repeat it. People paste a
 * password unencoded, so it may hold any character, even those that end the part of the address
 * where libpq looks for it. */
static bool has_password(const char *where) {
  const char *from = strstr(where, "://") + 3;
  const char *colon = from[0] == '[' ? NULL : strchr(from, ':');
  const char *slash = from + strcspn(from, "/");
  const char *at = memchr(from, '@', (size_t)(slash - from) + strcspn(slash, "?"));
  if (colon != NULL && at != NULL && colon < at && colon < slash)
    return true;
  const char *query = strchr(from, '?');
  return query != NULL &&
         (strstr(query, "?password=") != NULL || strstr(query, "&password=") != NULL ||
          strstr(query, "?sslpassword=") != NULL || strstr(query, "&sslpassword=") != NULL);
}

static bool refuse_password(struct err *err) {
  return err_set(
      err, ERR_USAGE,
      "everybody can see a password in the address of a store (ps, logs): leave it out, and "
      "write it into ~/.pgpass (mode 0600) as HOST:PORT:DATABASE:USER:PASSWORD, or use "
      "PGPASSWORD, PGSERVICE or a client certificate");
}

/* The later value counts, as with libpq. */
static void url_put(struct url_options *o, const char *keyword, const char *value) {
  for (int i = 0; i < o->count; i++)
    if (strcmp(o->keywords[i], keyword) == 0) {
      free(o->values[i]);
      o->values[i] = xstrdup(value);
      return;
    }
  if (o->count == URL_OPTIONS_MAX)
    return;
  o->keywords[o->count] = xstrdup(keyword);
  o->values[o->count++] = xstrdup(value);
}

static const char *url_get(const struct url_options *o, const char *keyword) {
  for (int i = 0; i < o->count; i++)
    if (strcmp(o->keywords[i], keyword) == 0)
      return o->values[i];
  return NULL;
}

/* Returns true if every host in the list is this machine: then nobody else is on the way. One host
 * elsewhere is enough to need TLS, since libpq tries them in turn. */
static bool all_here(const char *hosts) {
  for (const char *p = hosts ? hosts : "";;) {
    size_t n = strcspn(p, ",");
    bool here = n == 0 || p[0] == '/' || p[0] == '@' || (n == 9 && !memcmp(p, LIT("localhost"))) ||
                (n > 4 && memcmp(p, LIT("127.")) == 0) || (n == 3 && memcmp(p, LIT("::1")) == 0);
    if (!here)
      return false;
    if (p[n] == '\0')
      return true;
    p += n + 1;
  }
}

/* Returns true when the user names authorities in libpq's own way: by its variable, or by its file
 * below the home folder (PostgreSQL 15 documentation, 34.19.1). */
static bool has_own_authorities(void) {
  char path[PATH_MAX];
  const char *named = getenv("PGSSLROOTCERT"), *home = getenv("HOME");
  if (named != NULL && named[0] != '\0')
    return true;
  return home != NULL &&
         snprintf(path, sizeof path, "%s/.postgresql/root.crt", home) < (int)sizeof path &&
         access(path, F_OK) == 0;
}

/* libpq's own default is `prefer`: TLS if the server offers it, which an attacker in between can
 * withhold, and with any certificate, which an attacker has, too. A service file may name a host
 * that is not seen here, so it counts as elsewhere. */
static bool url_secure(struct url_options *o, struct err *err) {
  const char *mode = url_get(o, "sslmode"), *host = url_get(o, "host");
  const char *address = url_get(o, "hostaddr");
  bool elsewhere = !all_here(host) || !all_here(address) || url_get(o, "service") != NULL;
  if (!elsewhere)
    return true;
  if (mode == NULL) {
    url_put(o, "sslmode", "verify-full");
    if (url_get(o, "sslrootcert") == NULL && !has_own_authorities() &&
        access("/etc/ssl/certs/ca-certificates.crt", R_OK) == 0)
      url_put(o, "sslrootcert", "/etc/ssl/certs/ca-certificates.crt");
    return true;
  }
  if (strcmp(mode, "prefer") == 0 || strcmp(mode, "allow") == 0)
    return err_set(err, ERR_USAGE,
                   "sslmode=%s lets anybody on the network path read and change what is sent: "
                   "write sslmode=verify-full (with sslrootcert=FILE for your own certificate)",
                   mode);
  return true;
}

bool url_read(const char *where, struct url_options *options, char shown[URL_SHOWN_BYTES],
              struct err *err) {
  char *why = NULL;
  *options = (struct url_options){0};
  shown[0] = '\0';
  if (!url_is_shared(where))
    return err_set(err, ERR_USAGE,
                   "\"%.80s\" is not a store's address: write postgres://HOST/DATABASE", where);
  if (strlen(where) > URL_BYTES_MAX)
    return err_set(err, ERR_LIMIT, "the address of the store is longer than %d bytes",
                   URL_BYTES_MAX);
  if (has_password(where))
    return refuse_password(err);
  if (strchr(where, '#') != NULL)
    return err_set(err, ERR_USAGE, "write %%23 for # in the address of a store");
  const struct pq_api *pq = pq_load(err);
  if (pq == NULL)
    return false;
  PQconninfoOption *parsed = pq->conninfoParse(where, &why);
  if (parsed == NULL) {
    const char *said = why ? why : "it cannot be read";
    err_set(err, ERR_USAGE, "this is not a store's address: %.*s; write postgres://HOST/DATABASE",
            (int)strcspn(said, "\n"), said);
    pq->freemem(why);
    return false;
  }
  for (const PQconninfoOption *p = parsed; p->keyword; p++)
    if (p->val != NULL)
      url_put(options, p->keyword, p->val);
  pq->conninfoFree(parsed);
  if (url_get(options, "password") != NULL || url_get(options, "sslpassword") != NULL)
    return refuse_password(err); /* its keyword was encoded */
  const char *host = url_get(options, "host"), *port = url_get(options, "port"),
             *db = url_get(options, "dbname");
  print_into(shown, URL_SHOWN_BYTES, "%.150s%s%.20s/%.100s", host && host[0] ? host : "(local)",
             port ? ":" : "", port ? port : "", db ? db : "");
  if (url_get(options, "dbname") == NULL)
    return err_set(err, ERR_USAGE,
                   "the address of the store names no database: write "
                   "postgres://HOST/DATABASE");
  return url_secure(options, err);
}

void url_deinit(struct url_options *options) {
  for (int i = 0; i < options->count; i++) {
    free(options->keywords[i]);
    free(options->values[i]);
  }
  *options = (struct url_options){0};
}
