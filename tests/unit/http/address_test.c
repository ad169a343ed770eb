/* Which addresses a request may go to. */
#include "http/address.h"

#include "support/test.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

TEST(addresses_are_told_apart) {
  static const struct {
    const char *literal;
    enum http_address kind;
  } cases[] = {
      {"127.0.0.1", HTTP_ADDRESS_LOOPBACK},
      {"127.255.1.2", HTTP_ADDRESS_LOOPBACK},
      {"::1", HTTP_ADDRESS_LOOPBACK},
      {"::ffff:127.0.0.1", HTTP_ADDRESS_LOOPBACK},
      {"10.0.0.1", HTTP_ADDRESS_PRIVATE},
      {"192.168.1.9", HTTP_ADDRESS_PRIVATE},
      {"8.8.8.8", HTTP_ADDRESS_PUBLIC},
      {"128.0.0.1", HTTP_ADDRESS_PUBLIC},
      {"0.0.0.0", HTTP_ADDRESS_LOOPBACK},
      {"0.1.2.3", HTTP_ADDRESS_LOOPBACK},
      {"::", HTTP_ADDRESS_LOOPBACK},
      {"::ffff:0.0.0.0", HTTP_ADDRESS_LOOPBACK},
      {"64:ff9b::7f00:1", HTTP_ADDRESS_LOOPBACK},
      {"172.15.255.255", HTTP_ADDRESS_PUBLIC},
      {"172.16.0.1", HTTP_ADDRESS_PRIVATE},
      {"172.31.255.255", HTTP_ADDRESS_PRIVATE},
      {"172.32.0.1", HTTP_ADDRESS_PUBLIC},
      {"100.63.255.255", HTTP_ADDRESS_PUBLIC},
      {"100.127.0.1", HTTP_ADDRESS_PRIVATE},
      {"100.128.0.1", HTTP_ADDRESS_PUBLIC},
      {"::ffff:10.0.0.1", HTTP_ADDRESS_PRIVATE},
      {"2002:c0a8:101::1", HTTP_ADDRESS_PRIVATE},
      {"fc00::1", HTTP_ADDRESS_PRIVATE},
      {"2001:db8::1", HTTP_ADDRESS_PUBLIC},
      {"fd00::1", HTTP_ADDRESS_PRIVATE},
      {"169.254.169.254", HTTP_ADDRESS_FORBIDDEN},
      {"169.254.170.2", HTTP_ADDRESS_FORBIDDEN},
      {"169.254.170.23", HTTP_ADDRESS_FORBIDDEN},
      {"169.254.0.1", HTTP_ADDRESS_FORBIDDEN},
      {"100.100.100.200", HTTP_ADDRESS_FORBIDDEN},
      {"100.100.100.201", HTTP_ADDRESS_PRIVATE},
      {"168.63.129.16", HTTP_ADDRESS_FORBIDDEN},
      {"192.0.0.192", HTTP_ADDRESS_FORBIDDEN},
      {"::ffff:169.254.169.254", HTTP_ADDRESS_FORBIDDEN},
      {"::ffff:a9fe:a9fe", HTTP_ADDRESS_FORBIDDEN},
      {"::169.254.169.254", HTTP_ADDRESS_FORBIDDEN},
      {"64:ff9b::a9fe:a9fe", HTTP_ADDRESS_FORBIDDEN},
      {"2002:a9fe:a9fe::1", HTTP_ADDRESS_FORBIDDEN},
      {"fe80::1", HTTP_ADDRESS_FORBIDDEN},
      {"febf::1", HTTP_ADDRESS_FORBIDDEN},
      {"fec0::1", HTTP_ADDRESS_PRIVATE},
      {"fd00:ec2::254", HTTP_ADDRESS_FORBIDDEN},
      {"fd20:ce::254", HTTP_ADDRESS_FORBIDDEN},
      {"", HTTP_ADDRESS_FORBIDDEN},
      {"localhost", HTTP_ADDRESS_FORBIDDEN},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    if (http_address_of_text(cases[i].literal) != cases[i].kind)
      fail_msg("%s", cases[i].literal);
}

TEST(other_families_are_forbidden) {
  struct sockaddr unix_socket = {.sa_family = AF_UNIX};
  assert_int_equal(http_address_kind(&unix_socket), HTTP_ADDRESS_FORBIDDEN);
}

TEST(what_stays_on_this_machine_is_its_own) {
  struct ifaddrs *all = NULL;
  struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9)};
  far.sin_addr.s_addr = htonl(0xC0000201); /* 192.0.2.1: for documentation */
  assert_false(http_address_is_own((struct sockaddr *)&far));
  assert_int_equal(getifaddrs(&all), 0);
  for (struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
    const bool internet = one->ifa_addr != NULL && (one->ifa_addr->sa_family == AF_INET ||
                                                    one->ifa_addr->sa_family == AF_INET6);
    if (internet && (one->ifa_flags & IFF_UP) != 0)
      assert_true(http_address_is_own(one->ifa_addr));
  }
  freeifaddrs(all);
}
