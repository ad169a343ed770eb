/* Which addresses a request may go to. */
#include "http/address.h"

#include "support/data.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

TEST(addresses_are_told_apart) {
  DATA_ROWS("http/address/addresses_are_told_apart.yaml", c, literal, kind)
    if (http_address_of_text(c.literal) != data_among(c.kind, "public private loopback forbidden"))
      fail_msg("%s", c.literal);
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
