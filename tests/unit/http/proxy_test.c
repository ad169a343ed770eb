/* Which hosts a proxy lets through, and what its text is read as. */

#include "http/proxy.h"
#include "support/test.h"

#include <stdlib.h>

TEST(hosts_are_compared) {
  static const char *const hosts[] = {
      "api.example.com", "*.models.example", "local.example:8080", "*.any.example:8443",
      "[2001:db8::1]",   "192.0.2.7:80",     "bad/host",           NULL};
  static const struct {
    const char *host;
    unsigned port;
    bool lets;
  } cases[] = {
      {"api.example.com", 443, true},
      {"API.Example.COM", 443, true},
      {"api.example.com.", 443, true},
      {"api.example.com", 80, false},
      {"api.example.com", 8443, false},
      {"xapi.example.com", 443, false},
      {"api.example.com.evil", 443, false},
      {"example.com", 443, false},
      {"a.models.example", 443, true},
      {"b.a.models.example", 443, true},
      {"models.example", 443, false},
      {"xmodels.example", 443, false},
      {".models.example", 443, false},
      {"local.example", 8080, true},
      {"local.example", 443, false},
      {"a.any.example", 8443, true},
      {"2001:db8::1", 443, true},
      {"2001:db8::2", 443, false},
      {"192.0.2.7", 80, true},
      {"192.0.2.7", 443, false},
      {"127.0.0.1", 443, false},
      {"", 443, false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    if (proxy_lets(hosts, str_from(cases[i].host), cases[i].port) != cases[i].lets)
      fail_msg("%s:%u", cases[i].host, cases[i].port);
  assert_false(proxy_lets(NULL, STR("api.example.com"), 443));
}

TEST(hosts_are_read) {
  static const struct {
    const char *text, *host; /* NULL: it is none */
    unsigned port;
  } cases[] = {
      {"a.example", "a.example", 1},
      {"a.example:80", "a.example", 80},
      {"[::1]:8080", "::1", 8080},
      {"[::1]", "::1", 1},
      {"", NULL, 0},
      {":80", NULL, 0},
      {"a:0", NULL, 0},
      {"a:65536", NULL, 0},
      {"a:b", NULL, 0},
      {"a:", NULL, 0},
      {"[::1", NULL, 0},
      {"[::1]x", NULL, 0},
      {"a b:80", NULL, 0},
      {"a\r\nX: y:80", NULL, 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct str host = {0};
    unsigned port = 1;
    bool ok = proxy_split(str_from(cases[i].text), &host, &port);
    if (ok != (cases[i].host != NULL) ||
        (ok && (!str_eq_c(host, cases[i].host) || port != cases[i].port)))
      fail_msg("%s", cases[i].text);
  }
}

TEST(loopback_is_known_by_name) {
  static const char *const is[] = {"localhost", "LOCALHOST.", "a.localhost",
                                   "127.0.0.1", "127.9.9.9",  "::1"};
  static const char *const is_not[] = {"localhost.example", "xlocalhost", "10.0.0.1", ""};
  for (size_t i = 0; i < ARRAY_LEN(is); i++)
    assert_true(proxy_is_loopback(str_from(is[i])));
  for (size_t i = 0; i < ARRAY_LEN(is_not); i++)
    assert_false(proxy_is_loopback(str_from(is_not[i])));
}

TEST(a_proxy_behind_is_read) {
  static const struct {
    const char *url, *where, *credentials; /* NULL: none */
  } cases[] = {
      {"http://proxy.example:3128", "proxy.example:3128", NULL},
      {"http://proxy.example:3128/", "proxy.example:3128", NULL},
      {"proxy.example:8080", "proxy.example:8080", NULL},
      {"http://me:a%40b@[::1]:3128", "[::1]:3128", "bWU6YUBi"},
      {"http://u:@p:1", "p:1", "dTo="},
      {"http://u@p:1", "p:1", "dQ=="},
      {"socks5://p:1", NULL, NULL},
      {"", NULL, NULL},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    char *where, *credentials;
    proxy_read_upstream(str_from(cases[i].url), &where, &credentials);
    assert_string_equal(where ? where : "-", cases[i].where ? cases[i].where : "-");
    assert_string_equal(credentials ? credentials : "-",
                        cases[i].credentials ? cases[i].credentials : "-");
    free(where);
    free(credentials);
  }
}
