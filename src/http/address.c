/* Sorts network addresses into public, private, loopback and forbidden ones. */
#include "http/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static enum http_address of_v4(const unsigned char a[4]) {
  uint32_t ip = (uint32_t)a[0] << 24 | (uint32_t)a[1] << 16 | (uint32_t)a[2] << 8 | a[3];
  if (a[0] == 127 || a[0] == 0) /* connecting to 0.0.0.0 leads here, too */
    return HTTP_ADDRESS_LOOPBACK;
  if ((a[0] == 169 && a[1] == 254) || /* link-local: 169.254.169.254, 169.254.170.2, .23 */
      ip == 0x646464C8 ||             /* 100.100.100.200 */
      ip == 0xA83F8110 ||             /* 168.63.129.16 */
      ip == 0xC0000000 + 192)         /* 192.0.0.192 */
    return HTTP_ADDRESS_FORBIDDEN;
  if (a[0] == 10 || (a[0] == 172 && (a[1] & 0xF0) == 16) || (a[0] == 192 && a[1] == 168) ||
      (a[0] == 100 && (a[1] & 0xC0) == 64))
    return HTTP_ADDRESS_PRIVATE;
  return HTTP_ADDRESS_PUBLIC;
}

static enum http_address of_v6(const unsigned char a[16]) {
  static const unsigned char zero[15], mapped[12] = {[10] = 0xFF, [11] = 0xFF},
                                       nat64[12] = {0x00, 0x64, 0xFF, 0x9B},
                                       ec2[16] = {0xFD, 0x00, 0x0E, 0xC2, [14] = 0x02, [15] = 0x54},
                                       gcp[16] = {0xFD, 0x20, 0x00, 0xCE, [14] = 0x02, [15] = 0x54};
  if (memcmp(a, zero, 15) == 0 && a[15] <= 1)
    return HTTP_ADDRESS_LOOPBACK;
  if (memcmp(a, mapped, 12) == 0 || memcmp(a, nat64, 12) == 0 ||
      (memcmp(a, zero, 12) == 0 && a[12] != 0))
    return of_v4(a + 12);
  if (a[0] == 0x20 && a[1] == 0x02)
    return of_v4(a + 2);
  if ((a[0] == 0xFE && (a[1] & 0xC0) == 0x80) || memcmp(a, ec2, 16) == 0 || memcmp(a, gcp, 16) == 0)
    return HTTP_ADDRESS_FORBIDDEN;
  if ((a[0] & 0xFE) == 0xFC || (a[0] == 0xFE && (a[1] & 0xC0) == 0xC0)) /* fec0::/10: of old */
    return HTTP_ADDRESS_PRIVATE;
  return HTTP_ADDRESS_PUBLIC;
}

enum http_address http_address_kind(const struct sockaddr *address) {
  if (address->sa_family == AF_INET) {
    struct sockaddr_in in;
    memcpy(&in, address, sizeof in);
    return of_v4((const unsigned char *)&in.sin_addr);
  }
  if (address->sa_family == AF_INET6) {
    struct sockaddr_in6 in;
    memcpy(&in, address, sizeof in);
    return of_v6(in.sin6_addr.s6_addr);
  }
  return HTTP_ADDRESS_FORBIDDEN;
}

enum http_address http_address_of_text(const char *literal) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, literal, bytes) == 1)
    return of_v4(bytes);
  if (inet_pton(AF_INET6, literal, bytes) == 1)
    return of_v6(bytes);
  return HTTP_ADDRESS_FORBIDDEN;
}

bool http_address_is_own(const struct sockaddr *address) {
  const bool v6 = address->sa_family == AF_INET6;
  struct sockaddr_storage from = {0};
  const size_t n = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  const size_t at =
      v6 ? offsetof(struct sockaddr_in6, sin6_addr) : offsetof(struct sockaddr_in, sin_addr);
  const int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bool own = fd >= 0 && connect(fd, address, (socklen_t)n) == 0 && /* sends nothing */
             getsockname(fd, (struct sockaddr *)&from, &(socklen_t){sizeof from}) == 0 &&
             memcmp((const char *)address + at, (const char *)&from + at, v6 ? 16 : 4) == 0;
  if (fd >= 0)
    (void)close(fd);
  return own;
}
