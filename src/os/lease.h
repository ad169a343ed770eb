/* lease.h - tells shims until when this process may have programs at work.
 *
 *   lease_open(&err)          once, before the others; shims that are started later hold it
 *   lease_begin(until_ms)     a new term: programs of the one before are killed
 *   lease_extend(until_ms)    the same term; 0 ends it at once
 *   lease_fd()                what shims are given: -1 while lease_open was not called
 *   lease_term()              before work that may be done only while the lease lasts,
 *   lease_is_over(term)       asked before each step of it
 *
 * Times are clock_boot_ms. It is a page shared with the shims (shim/protocol.h), so that a renewal
 * reaches them even past a busy loop, and a stopped process renews nothing. From one thread at a
 * time; lease_fd, lease_term and lease_is_over from any. */
#ifndef SEGUE_OS_LEASE_H
#define SEGUE_OS_LEASE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

bool lease_open(struct err *err) MUST_CHECK;
void lease_begin(uint64_t until_ms);
void lease_extend(uint64_t until_ms);
int lease_fd(void);
uint64_t lease_term(void); /* 0: nothing is leased */
/* True once the time is over or another term has begun; never of term 0. */
bool lease_is_over(uint64_t term);

#endif
