/* Decides which hosts a proxy lets through. */
#include "http/proxy.h"

#include "http/address.h"

#include <string.h>
#include <strings.h>

enum { HTTPS_PORT = 443, PORT_MAX = 65535 };

static bool is_port(struct str text, unsigned *port) {
  long number;
  if (!str_to_long(text, &number) || number < 1 || number > PORT_MAX)
    return false;
  *port = (unsigned)number;
  return true;
}

bool proxy_split(struct str text, struct str *host, unsigned *port) {
  const char *end = text.p + text.n, *after;
  if (text.n == 0)
    return false;
  if (text.p[0] == '[') {
    after = memchr(text.p, ']', text.n);
    if (after == NULL)
      return false;
    *host = (struct str){text.p + 1, (size_t)(after - text.p) - 1};
    after++;
  } else {
    after = memchr(text.p, ':', text.n);
    if (after == NULL)
      after = end;
    *host = (struct str){text.p, (size_t)(after - text.p)};
  }
  if (host->n == 0 || str_has_control(*host) || memchr(host->p, ' ', host->n) != NULL)
    return false;
  if (after == end)
    return true;
  return *after == ':' && is_port((struct str){after + 1, (size_t)(end - after) - 1}, port);
}

static bool is_same_name(struct str a, struct str b) {
  return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

/* Drops the root's dot: a name that ends in it means the same as the name without it. */
static struct str without_dot(struct str host) {
  if (host.n > 1 && host.p[host.n - 1] == '.')
    host.n--;
  return host;
}

bool proxy_lets(const char *const *hosts, struct str host, unsigned port) {
  host = without_dot(host);
  for (size_t i = 0; hosts != NULL && hosts[i] != NULL; i++) {
    struct str name;
    unsigned allowed = HTTPS_PORT;
    if (!proxy_split(str_from(hosts[i]), &name, &allowed) || allowed != port)
      continue;
    if (is_same_name(name, host))
      return true;
    if (!str_starts(name, "*.") || host.n <= name.n - 1)
      continue;
    const struct str tail = {host.p + host.n - (name.n - 1), name.n - 1};
    if (is_same_name(tail, (struct str){name.p + 1, name.n - 1}))
      return true;
  }
  return false;
}

bool proxy_is_loopback(struct str host) {
  char literal[64];
  host = without_dot(host);
  if (str_eq_fold(host, "localhost") ||
      (host.n > 10 && str_eq_fold((struct str){host.p + host.n - 10, 10}, ".localhost")))
    return true;
  if (host.n >= sizeof literal)
    return false;
  memcpy(literal, host.p, host.n);
  literal[host.n] = '\0';
  return http_address_of_text(literal) == HTTP_ADDRESS_LOOPBACK;
}
