/* address.h - which network addresses a request may go to, checked on resolved addresses: a name
 * says nothing about where it leads. Pure but for http_address_is_own, which asks the kernel. */
#ifndef SEGUE_HTTP_ADDRESS_H
#define SEGUE_HTTP_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

enum http_address {
  HTTP_ADDRESS_PUBLIC,   /* anything else */
  HTTP_ADDRESS_PRIVATE,  /* 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7 */
  HTTP_ADDRESS_LOOPBACK, /* 127.0.0.0/8, 0.0.0.0/8, ::1, :: - plain http is fine */
  HTTP_ADDRESS_FORBIDDEN /* link-local and the clouds' metadata services: never */
};

/* An IPv4 address inside an IPv6 one (mapped, compatible, NAT64, 6to4) counts as itself. Other
 * families are forbidden. */
enum http_address http_address_kind(const struct sockaddr *address);
/* Does the same for a literal ("::ffff:127.0.0.1"); anything else is forbidden. */
enum http_address http_address_of_text(const char *literal);

/* True where packets to this address stay on this machine: also for its outer addresses. */
bool http_address_is_own(const struct sockaddr *address);

#endif
