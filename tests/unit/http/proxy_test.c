/* Which hosts a proxy lets through, and what its text is read as. */

#include "http/proxy.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>

TEST(hosts_are_compared) {
  static const char *const hosts[] = {
      "api.example.com", "*.models.example", "local.example:8080", "*.any.example:8443",
      "[2001:db8::1]",   "192.0.2.7:80",     "bad/host",           NULL};
  DATA_ROWS("http/proxy/hosts_are_compared.yaml", c, host, port, lets)
    if (proxy_lets(hosts, str_from(c.host), (unsigned)data_number(c.port)) != data_true(c.lets))
      fail_msg("%s:%u", c.host, (unsigned)data_number(c.port));
  assert_false(proxy_lets(NULL, STR("api.example.com"), 443));
}

TEST(hosts_are_read) {
  DATA_ROWS("http/proxy/hosts_are_read.yaml", c, text, host, port) {
    struct str host = {0};
    unsigned port = 1;
    bool ok = proxy_split(str_from(c.text), &host, &port);
    if (ok != (c.host != NULL) ||
        (ok && (!str_eq_c(host, c.host) || port != (unsigned)data_number(c.port))))
      fail_msg("%s", c.text);
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
  DATA_ROWS("http/proxy/a_proxy_behind_is_read.yaml", c, url, where, credentials) {
    char *where, *credentials;
    proxy_read_upstream(str_from(c.url), &where, &credentials);
    assert_string_equal(where ? where : "-", c.where ? c.where : "-");
    assert_string_equal(credentials ? credentials : "-", c.credentials ? c.credentials : "-");
    free(where);
    free(credentials);
  }
}
