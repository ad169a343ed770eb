/* ready.h - could this provider answer a call? Asked before a session starts.
 *
 * Nothing is started and nobody is asked: a program is looked up, a key is read and wiped, a sign
 * of a login and a project's files are looked for. What only a call can tell is not known here.
 * For a version see probe.h. */
#ifndef SEGUE_PROVIDER_READY_H
#define SEGUE_PROVIDER_READY_H

#include "provider/provider.h"

enum ready {
  READY_YES,
  READY_PERHAPS, /* something speaks against it, but a call may go well: err says what */
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
