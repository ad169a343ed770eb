/* Asks the daemon over its socket. */
#include "daemon/client.h"

#include "base/buf.h"
#include "base/limits.h"
#include "daemon/socket.h"
#include "format/json_write.h"
#include "http/curl_load.h"
#include "os/clock.h"
#include "os/peer.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static size_t on_bytes(char *bytes, size_t one, size_t n, void *ctx) {
  struct buf *out = ctx;
  buf_append(out, bytes, one * n);
  return out->cut ? 0 : one * n;
}

struct daemon_link { /* to the daemon */
  int fd;            /* libcurl's, once it has asked for one */
  bool foreign;      /* somebody else listens there */
};

static bool client_failed(const struct curl_api *api, CURLcode code, const char *path,
                          const struct daemon_link *link, struct err *err) {
  if (link->foreign)
    return err_set(err, ERR_INVALID, "another user's program listens on %s: nothing was sent",
                   path);
  if (code == CURLE_COULDNT_CONNECT)
    return err_set(err, ERR_NOT_FOUND, "no daemon answers on %s: start one with segue serve", path);
  if (code == CURLE_OPERATION_TIMEDOUT)
    return err_set(err, ERR_IO, "the daemon on %s did not answer within %d s", path,
                   LIMIT_CLIENT_WAIT_S);
  return err_set(err, ERR_IO, "the daemon on %s: %s", path, api->easy_strerror(code));
}

static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address) {
  struct daemon_link *link = ctx;
  (void)purpose;
  link->fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  return link->fd;
}

/* Waits until the listener's queue has a place. Returns false if nobody listens. */
static bool wait_for_place(const char *path) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  struct timeval wait = {.tv_sec = LIMIT_CLIENT_WAIT_S};
  snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return false;
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  bool listened = connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
  close(fd);
  return listened;
}

/* A full queue refuses a non-blocking local socket with EAGAIN (connect(2)), and libcurl reports
 * that just as it reports a missing daemon. */
static CURLcode client_perform(const struct curl_api *api, CURL *curl, const char *path) {
  uint64_t until = clock_mono_ms() + LIMIT_CLIENT_WAIT_S * 1000;
  CURLcode code = api->easy_perform(curl);
  while (code == CURLE_COULDNT_CONNECT && clock_mono_ms() < until && wait_for_place(path))
    code = api->easy_perform(curl);
  return code;
}

/* libcurl calls this once connected, before any byte is sent. */
static int on_connected(void *ctx, char *their_ip, char *our_ip, int their_port, int our_port) {
  struct daemon_link *link = ctx;
  (void)their_ip;
  (void)our_ip;
  (void)their_port;
  (void)our_port;
  link->foreign = !peer_is_own_user(link->fd);
  return link->foreign ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static void client_set_body(const struct curl_api *api, CURL *curl, struct curl_slist *headers,
                            struct str text) {
  (void)api->easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  (void)api->easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)text.n);
  (void)api->easy_setopt(curl, CURLOPT_POSTFIELDS, text.n ? text.p : "");
}

bool client_ask(const char *socket, const char *method, const char *path, const json_t *body,
                struct client_reply *reply, struct err *err) {
  char name[SOCKET_PATH_BYTES];
  struct daemon_link link = {.fd = -1};
  buf_auto_t url = {0}, answer = {.max = LIMIT_LOG_LINE_BYTES};
  *reply = (struct client_reply){0};
  const struct curl_api *api = curl_load(err);
  if (api == NULL || !socket_find(socket, name, err) || !socket_may_ask(name, err))
    return false;
  (void)api->global_init(CURL_GLOBAL_NOTHING); /* no TLS here, and its start is slow */
  CURL *curl = api->easy_init();
  if (curl == NULL)
    return err_set(err, ERR_IO, "libcurl cannot start");
  buf_auto_t text = {0};
  if (body != NULL)
    json_write(body, &text);
  struct curl_slist *headers = api->slist_append(NULL, "Content-Type: application/json");
  headers = api->slist_append(headers, "Expect:");
  buf_printf(&url, "http://segue%s", path);
  (void)api->easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, name);
  (void)api->easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open);
  (void)api->easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &link);
  (void)api->easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_connected);
  (void)api->easy_setopt(curl, CURLOPT_PREREQDATA, &link);
  (void)api->easy_setopt(curl, CURLOPT_URL, url.p);
  (void)api->easy_setopt(curl, CURLOPT_PROXY, "");
  (void)api->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
  (void)api->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  (void)api->easy_setopt(curl, CURLOPT_TIMEOUT, (long)LIMIT_CLIENT_WAIT_S);
  (void)api->easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  (void)api->easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
  if (strcmp(method, "POST") == 0)
    client_set_body(api, curl, headers, buf_view(&text));
  CURLcode code = client_perform(api, curl, name);
  bool ok = code == CURLE_OK || client_failed(api, code, name, &link, err);
  (void)api->easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply->status);
  if (ok && answer.n > 0)
    reply->value = json_loadb(answer.p, answer.n, JSON_ALLOW_NUL, NULL);
  api->slist_free_all(headers);
  api->easy_cleanup(curl);
  return ok;
}

void client_reply_deinit(struct client_reply *reply) {
  json_decref(reply->value);
  *reply = (struct client_reply){0};
}

bool client_problem(const struct client_reply *reply, struct err *err) {
  const char *detail = json_string_value(json_object_get(reply->value, "detail"));
  if (reply->status < 400)
    return false;
  enum err_code code = reply->status == 400 || reply->status == 422 ? ERR_USAGE : ERR_IO;
  if (reply->status == 404)
    code = ERR_NOT_FOUND;
  err_set(err, code, "%s", detail ? detail : "the daemon refused it");
  return true;
}
