/* Finds the hosts that a call may reach, and makes its way out. */
#include "provider/confine_net.h"

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hosts {
  struct arena *arena;
  struct arena_list list;
};

static void hosts_add(struct hosts *h, struct str host) {
  arena_list_add(h->arena, &h->list, host);
}

static const char *value_in(const char *const *envp, const char *name) {
  size_t n = strlen(name);
  for (size_t i = 0; envp[i] != NULL; i++)
    if (strncmp(envp[i], name, n) == 0 && envp[i][n] == '=')
      return envp[i] + n + 1;
  return NULL;
}

/* Adds the host of https://USER@HOST:PORT/PATH, with its scheme's port if none is given. */
static void hosts_add_url(struct hosts *h, const char *url) {
  char text[300];
  const char *scheme = strstr(url, "://"), *begin = scheme ? scheme + 3 : url;
  size_t n = strcspn(begin, "/?#");
  const char *at = memchr(begin, '@', n);
  bool plain = strncasecmp(url, LIT("http://")) == 0;
  unsigned port = plain ? 80 : 443;
  struct str host;
  if (at != NULL) {
    n -= (size_t)(at + 1 - begin);
    begin = at + 1;
  }
  if (!proxy_split((struct str){begin, n}, &host, &port))
    return;
  bool brackets = memchr(host.p, ':', host.n) != NULL;
  int length = snprintf(text, sizeof text, "%s" STR_FMT "%s:%u", brackets ? "[" : "", STR_ARG(host),
                        brackets ? "]" : "", port);
  if (length > 0 && length < (int)sizeof text)
    hosts_add(h, (struct str){text, (size_t)length});
}

static void hosts_add_all(struct hosts *h, const json_t *list, const char *const *envp) {
  const json_t *entry;
  size_t i;
  json_array_foreach((json_t *)list, i, entry) {
    const char *text = json_string_value(entry);
    const char *url = text && text[0] == '$' ? value_in(envp, text + 1) : NULL;
    if (url != NULL)
      hosts_add_url(h, url);
    else if (text != NULL && text[0] != '$')
      hosts_add(h, str_from(text));
  }
}

static const char *const *hosts_of(const struct confine_spec *spec, struct arena *a) {
  struct hosts h = {.arena = a};
  hosts_add_all(&h, spec->hosts, spec->envp);
  hosts_add_all(&h, json_object_get(spec->env->sandbox, "hosts"), spec->envp);
  return h.list.items;
}

struct proxy *confine_proxy(const struct confine_spec *spec, struct err *err) {
  struct arena arena = {0};
  const char *upstream = getenv("HTTPS_PROXY") ? getenv("HTTPS_PROXY") : getenv("https_proxy");
  const struct proxy_spec wanted = {.loop = spec->env->loop,
                                    .folder = spec->tmpdir,
                                    .hosts = hosts_of(spec, &arena),
                                    .upstream = upstream,
                                    .refused = spec->refused,
                                    .ctx = spec->ctx};
  struct proxy *proxy = proxy_new(&wanted, err);
  arena_deinit(&arena);
  return proxy;
}

/* Lists the hosts that a program reaches without the proxy: its own servers, unless the list names
 * this machine. */
const char *confine_bypass(const struct confine_spec *spec) {
  struct arena arena = {0};
  const char *const *hosts = hosts_of(spec, &arena);
  bool own = false;
  for (size_t i = 0; hosts != NULL && hosts[i] != NULL; i++) {
    struct str host;
    unsigned port;
    own = own || (proxy_split(str_from(hosts[i]), &host, &port) && proxy_is_loopback(host));
  }
  arena_deinit(&arena);
  return own ? "" : "localhost,127.0.0.1,::1";
}

void confine_denied(const struct provider_sink *sink, const char *where) {
  json_t *data = json_object();
  if (sink->news == NULL) {
    json_decref(data);
    return;
  }
  json_object_set_new(data, "text", json_sprintf("its sandbox did not let it out to %s", where));
  json_object_set_new(data, "denied", json_string(where));
  const struct provider_news news = {.kind = NEWS_NOTE, .data = data};
  sink->news(sink->ctx, &news);
  json_decref(data);
}
