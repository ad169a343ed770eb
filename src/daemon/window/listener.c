/* Opens the window's port, and checks who connects. */
#include "daemon/window/listener.h"

#include "base/limits.h"
#include "os/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

const char *const listener_headers[] = {
    "Content-Security-Policy",
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "X-Content-Type-Options",
    "nosniff",
    "Referrer-Policy",
    "no-referrer",
    "Cross-Origin-Opener-Policy",
    "same-origin",
    "Cross-Origin-Resource-Policy",
    "same-origin",
    "Cache-Control",
    "no-store",
    NULL};

union listener_address {
  struct sockaddr any;
  struct sockaddr_in in;
  struct sockaddr_in6 in6;
};

/* Reads numeric addresses only: a name could mean another machine tomorrow. */
static bool read_address(const char *text, union listener_address *out, struct err *err) {
  const char *colon = strrchr(text, ':');
  char host[INET6_ADDRSTRLEN + 2] = "";
  long port = -1;
  bool numbered = colon != NULL && str_to_long(str_from(colon + 1), &port);
  if (numbered && (port < 0 || port > 65535))
    return err_set(err, ERR_USAGE, "%ld is not a port: write 1 to 65535, or 0 for any that is free",
                   port);
  bool shaped = numbered && (size_t)(colon - text) < sizeof host;
  if (shaped)
    memcpy(host, text, (size_t)(colon - text));
  *out = (union listener_address){.in = {.sin_family = AF_INET}};
  size_t n = strlen(host);
  if (shaped && inet_pton(AF_INET, host, &out->in.sin_addr) == 1) {
    out->in.sin_port = htons((uint16_t)port);
    if ((ntohl(out->in.sin_addr.s_addr) >> 24) == 127)
      return true;
  } else if (shaped && n > 2 && host[0] == '[' && host[n - 1] == ']') {
    host[n - 1] = '\0';
    out->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET6, host + 1, &out->in6.sin6_addr) == 1 &&
        IN6_IS_ADDR_LOOPBACK(&out->in6.sin6_addr))
      return true;
  }
  return err_set(err, ERR_USAGE,
                 "the window opens on addresses of this machine only: write 127.0.0.1:PORT or "
                 "[::1]:PORT instead of %.80s; from another machine use ssh -L",
                 text);
}

static bool name_host(int fd, char host[LISTENER_HOST_BYTES], struct err *err) {
  union listener_address a;
  char text[INET6_ADDRSTRLEN];
  socklen_t n = sizeof a;
  if (getsockname(fd, &a.any, &n) != 0)
    return err_set_errno(err, errno, "cannot open the window's port");
  if (a.any.sa_family == AF_INET6)
    print_into(host, LISTENER_HOST_BYTES, "[::1]:%u", ntohs(a.in6.sin6_port));
  else
    print_into(host, LISTENER_HOST_BYTES, "%s:%u",
               inet_ntop(AF_INET, &a.in.sin_addr, text, sizeof text), ntohs(a.in.sin_port));
  return true;
}

/* Says that the port is taken, and names one that is free. */
static bool offer_another(union listener_address a, socklen_t n, const char *taken,
                          struct err *err) {
  char host[LISTENER_HOST_BYTES] = "0";
  int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  a.in.sin_port = 0; /* in6 has it at the same place */
  if (fd >= 0 && bind(fd, &a.any, n) == 0)
    (void)name_host(fd, host, err);
  if (fd >= 0)
    (void)close(fd);
  return err_set(err, ERR_LOCKED,
                 "another program uses the port of %.80s: take another, such as %s", taken, host);
}

bool listener_listen(const char *address, int *fd, char host[LISTENER_HOST_BYTES],
                     struct err *err) {
  union listener_address a;
  int on = 1, first_byte_s = LIMIT_WINDOW_FIRST_BYTE_S;
  if (!read_address(address, &a, err))
    return false;
  bool six = a.any.sa_family == AF_INET6;
  socklen_t n = six ? sizeof a.in6 : sizeof a.in;
  *fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (*fd < 0)
    return err_set_errno(err, errno, "cannot open the window's port");
  (void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  /* With this, a connection's first request is there to look at when it is accepted. */
  (void)setsockopt(*fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &first_byte_s, sizeof first_byte_s);
  if (bind(*fd, &a.any, n) == 0 && listen(*fd, LIMIT_API_BACKLOG_COUNT) == 0 &&
      name_host(*fd, host, err))
    return true;
  int error = errno;
  close(*fd);
  *fd = -1;
  if (error == EADDRINUSE)
    return offer_another(a, n, address, err);
  return err_set_errno(err, error, "cannot open the window on %.80s", address);
}

int listener_accept(int fd) {
  int peer = peer_accept(fd);
  if (peer >= 0 && !peer_tcp_is_own_user(peer)) {
    close(peer);
    errno = EPERM;
    return -1;
  }
  return peer;
}

int listener_accept_any(int fd) {
  return peer_accept(fd);
}

/* A browser's Host header has only letters, digits, dots, dashes, and a port. */
bool listener_origin(const char *text, char host[LISTENER_HOST_BYTES], struct err *err) {
  static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789.-:[]";
  static const char scheme[] = "https://";
  size_t n = strlen(text), head = sizeof scheme - 1;
  if (n <= head || strncmp(text, scheme, head) != 0 || n - head >= LISTENER_HOST_BYTES ||
      strspn(text + head, good) != n - head)
    return err_set(err, ERR_USAGE,
                   "--http-origin is what a browser shows before the path, in small letters: "
                   "https://HOST or https://HOST:PORT, not %.80s",
                   text);
  memcpy(host, text + head, n - head + 1);
  return true;
}

static bool is_origin(const char *origin, const char *host, bool secure) {
  const char *scheme = secure ? "https://" : "http://";
  size_t n = strlen(scheme);
  return origin != NULL && strncmp(origin, scheme, n) == 0 && strcmp(origin + n, host) == 0;
}

bool listener_allows(const struct server_request *r, const char *host, bool secure, bool changes) {
  const char *said = server_header(r, "Host"), *site = server_header(r, "Sec-Fetch-Site");
  const char *origin = server_header(r, "Origin");
  if (said == NULL || strcasecmp(said, host) != 0)
    return false;
  if (site == NULL || (strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0))
    return false;
  if (origin != NULL && !is_origin(origin, host, secure))
    return false;
  return !changes || (origin != NULL && strcmp(site, "same-origin") == 0 &&
                      server_header(r, "X-Segue") != NULL);
}
