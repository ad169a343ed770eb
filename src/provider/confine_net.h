/* confine_net.h - the way out of a call's sandbox with network: api: a proxy of ours (http/proxy.h)
 * that leads to the hosts of its profile and the user's own, and nowhere else.
 *
 *   p = confine_proxy(spec, &err)          NULL: err; else the caller's: proxy_free at its end
 *   confine_bypass(spec)                   what it reaches without the proxy: NO_PROXY; static
 *   confine_denied(sink, where)            reports to the log what was refused
 *
 * `hosts` of a profile may name a variable of the program's environment, for the host of the URL in
 * it. */
#ifndef SEGUE_PROVIDER_CONFINE_NET_H
#define SEGUE_PROVIDER_CONFINE_NET_H

#include "http/proxy.h"
#include "provider/confine.h"

struct proxy *confine_proxy(const struct confine_spec *spec, struct err *err) MUST_CHECK;
const char *confine_bypass(const struct confine_spec *spec);
void confine_denied(const struct provider_sink *sink, const char *where);

#endif
