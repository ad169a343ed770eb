/* auth.h - decides who may see the window: one-time codes, and the cookies that they turn into.
 *
 *   auth_pass_init(&p)                         a new random path, no code and no browser
 *   auth_pass_code(&p, read_only, now_ms, code)     a code for 60 s, to be handed to a person
 *   number = auth_pass_enter(&p, code, now_ms, cookie)    0: no such code (any more)
 *   b = auth_pass_know(&p, cookie header, now_ms)   the browser, or NULL
 *   auth_pass_revoke(&p)                       ends all codes and browsers
 *
 * Codes have 128 random bits, cookies 256; both are kept as hashes and compared in constant time. A
 * browser not seen for LIMIT_WINDOW_IDLE_MS is signed out; if there are too many, the one idle
 * longest goes. Times are ms of a clock that only goes forward. */
#ifndef SEGUE_WEB_AUTH_H
#define SEGUE_WEB_AUTH_H

#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum { AUTH_CODE_BYTES = 33, AUTH_COOKIE_BYTES = 65, AUTH_PATH_BYTES = 40, AUTH_HASH_BYTES = 32 };

struct auth_code {
  unsigned char hash[AUTH_HASH_BYTES];
  int64_t until_ms; /* 0: there is none */
  bool read_only;
};

struct auth_browser {
  unsigned char hash[AUTH_HASH_BYTES];
  int64_t seen_ms;
  unsigned number; /* from 1; 0: there is none */
  bool read_only;
};

struct auth_pass {
  char path[AUTH_PATH_BYTES]; /* "/w/RANDOM/" */
  struct auth_code codes[LIMIT_WINDOW_CODE_COUNT];
  struct auth_browser browsers[LIMIT_WINDOW_BROWSER_COUNT];
  unsigned numbers;
};

void auth_pass_init(struct auth_pass *p);
void auth_pass_code(struct auth_pass *p, bool read_only, int64_t now_ms,
                    char code[AUTH_CODE_BYTES]);
unsigned auth_pass_enter(struct auth_pass *p, const char *code, int64_t now_ms,
                         char cookie[AUTH_COOKIE_BYTES]);
/* Finds a browser. cookies: the Cookie header, which may hold other programs' cookies too; or
 * NULL. */
struct auth_browser *auth_pass_know(struct auth_pass *p, const char *cookies, int64_t now_ms);
void auth_pass_revoke(struct auth_pass *p);

#endif
