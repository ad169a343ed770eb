/* gate.h - decides who may see the window: one-time codes, and the cookies that they turn into.
 *
 *   gate_pass_init(&p)                         a new random path, no code and no browser
 *   gate_pass_code(&p, read_only, now_ms, code)     a code for 60 s, to be handed to a person
 *   number = gate_pass_enter(&p, code, now_ms, cookie)    0: no such code (any more)
 *   b = gate_pass_know(&p, cookie header, now_ms)   the browser, or NULL
 *   gate_pass_revoke(&p)                       ends all codes and browsers
 *
 * Codes have 128 random bits, cookies 256; both are kept as hashes and compared in constant time. A
 * browser not seen for LIMIT_WINDOW_IDLE_MS is signed out; if there are too many, the one idle
 * longest goes. Times are ms of a clock that only goes forward. */
#ifndef SEGUE_WEB_GATE_H
#define SEGUE_WEB_GATE_H

#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum { GATE_CODE_BYTES = 33, GATE_COOKIE_BYTES = 65, GATE_PATH_BYTES = 40, GATE_HASH_BYTES = 32 };

struct gate_code {
  unsigned char hash[GATE_HASH_BYTES];
  int64_t until_ms; /* 0: there is none */
  bool read_only;
};

struct gate_browser {
  unsigned char hash[GATE_HASH_BYTES];
  int64_t seen_ms;
  unsigned number; /* from 1; 0: there is none */
  bool read_only;
};

struct gate_pass {
  char path[GATE_PATH_BYTES]; /* "/w/RANDOM/" */
  struct gate_code codes[LIMIT_WINDOW_CODE_COUNT];
  struct gate_browser browsers[LIMIT_WINDOW_BROWSER_COUNT];
  unsigned numbers;
};

void gate_pass_init(struct gate_pass *p);
void gate_pass_code(struct gate_pass *p, bool read_only, int64_t now_ms,
                    char code[GATE_CODE_BYTES]);
unsigned gate_pass_enter(struct gate_pass *p, const char *code, int64_t now_ms,
                         char cookie[GATE_COOKIE_BYTES]);
/* Finds a browser. cookies: the Cookie header, which may hold other programs' cookies too; or
 * NULL. */
struct gate_browser *gate_pass_know(struct gate_pass *p, const char *cookies, int64_t now_ms);
void gate_pass_revoke(struct gate_pass *p);

#endif
