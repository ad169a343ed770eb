/* readiness.h - could this provider answer a call? Asked before a session starts.
 *
 * Nothing is started and nothing is asked: it looks up a program, reads and wipes a key, and looks
 * for signs of a login and for a project's files. What only a call can show is not known here. For
 * a version see probe.h. */
#ifndef SEGUE_PROVIDER_READINESS_H
#define SEGUE_PROVIDER_READINESS_H

#include "provider/provider.h"

enum ready {
  READY_YES,
  READY_PERHAPS, /* there is a doubt, but a call may succeed: err says what */
  READY_NO,      /* a call would fail: err says why, and what to do */
};

/* The call that is to come. */
struct ready_call {
  struct str model;           /* may be empty */
  const char *cwd;            /* where it would work: absolute */
  enum permission permission; /* of the movement */
  bool judges;                /* it judges or corrects: it changes nothing */
};

enum ready provider_ready(const struct provider *provider, const struct ready_call *call,
                          struct err *err);

#endif
