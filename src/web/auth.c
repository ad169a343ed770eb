/* Keeps codes and cookies. */
#include "web/auth.h"

#include "base/sha256.h"
#include "base/str.h"
#include "os/random.h"

#include <string.h>

static const char cookie_name[] = "segue=";

static void put_random(char *out, size_t bytes) {
  unsigned char raw[AUTH_COOKIE_BYTES / 2];
  random_fill(raw, bytes);
  for (size_t i = 0; i < bytes; i++)
    print_into(out + 2 * i, 3, "%02x", raw[i]);
}

static void auth_hash(const char *text, size_t n, unsigned char out[AUTH_HASH_BYTES]) {
  sha256_raw(text, n, "", 0, out);
}

/* Compares in the same time, wherever the two differ. */
static bool auth_same(const unsigned char *a, const unsigned char *b) {
  unsigned char differs = 0;
  for (size_t i = 0; i < AUTH_HASH_BYTES; i++)
    differs = (unsigned char)(differs | (a[i] ^ b[i]));
  return differs == 0;
}

void auth_pass_init(struct auth_pass *p) {
  char path[AUTH_CODE_BYTES];
  *p = (struct auth_pass){0};
  put_random(path, 16);
  print_into(p->path, sizeof p->path, "/w/%s/", path);
}

void auth_pass_code(struct auth_pass *p, bool read_only, int64_t now_ms,
                    char code[AUTH_CODE_BYTES]) {
  struct auth_code *oldest = &p->codes[0];
  for (size_t i = 1; i < LIMIT_WINDOW_CODE_COUNT; i++)
    if (p->codes[i].until_ms < oldest->until_ms)
      oldest = &p->codes[i];
  put_random(code, 16);
  auth_hash(code, strlen(code), oldest->hash);
  oldest->until_ms = now_ms + LIMIT_WINDOW_CODE_MS;
  oldest->read_only = read_only;
}

static struct auth_browser *new_browser(struct auth_pass *p) {
  struct auth_browser *oldest = &p->browsers[0];
  for (size_t i = 0; i < LIMIT_WINDOW_BROWSER_COUNT; i++) {
    if (p->browsers[i].number == 0)
      return &p->browsers[i];
    if (p->browsers[i].seen_ms < oldest->seen_ms)
      oldest = &p->browsers[i];
  }
  return oldest;
}

unsigned auth_pass_enter(struct auth_pass *p, const char *code, int64_t now_ms,
                         char cookie[AUTH_COOKIE_BYTES]) {
  struct auth_code *found = NULL;
  unsigned char hash[AUTH_HASH_BYTES];
  auth_hash(code, strlen(code), hash);
  for (size_t i = 0; i < LIMIT_WINDOW_CODE_COUNT; i++)
    if (auth_same(p->codes[i].hash, hash) && p->codes[i].until_ms > now_ms)
      found = &p->codes[i];
  if (found == NULL)
    return 0;
  struct auth_browser *b = new_browser(p);
  *b = (struct auth_browser){.seen_ms = now_ms, .number = ++p->numbers};
  b->read_only = found->read_only;
  *found = (struct auth_code){0};
  put_random(cookie, 32);
  auth_hash(cookie, strlen(cookie), b->hash);
  return b->number;
}

static struct auth_browser *browser_of(struct auth_pass *p, const char *value, size_t n,
                                       int64_t now_ms) {
  unsigned char hash[AUTH_HASH_BYTES];
  auth_hash(value, n, hash);
  for (size_t i = 0; i < LIMIT_WINDOW_BROWSER_COUNT; i++) {
    struct auth_browser *b = &p->browsers[i];
    if (b->number == 0 || !auth_same(b->hash, hash))
      continue;
    if (now_ms - b->seen_ms >= LIMIT_WINDOW_IDLE_MS)
      return NULL;
    b->seen_ms = now_ms;
    return b;
  }
  return NULL;
}

struct auth_browser *auth_pass_know(struct auth_pass *p, const char *cookies, int64_t now_ms) {
  const char *at = cookies;
  while (at != NULL && *at != '\0') {
    at += strspn(at, " ;");
    size_t n = strcspn(at, ";");
    size_t name = sizeof cookie_name - 1;
    if (n == name + AUTH_COOKIE_BYTES - 1 && strncmp(at, cookie_name, name) == 0) {
      struct auth_browser *b = browser_of(p, at + name, n - name, now_ms);
      if (b != NULL)
        return b;
    }
    at += n;
  }
  return NULL;
}

void auth_pass_revoke(struct auth_pass *p) {
  memset(p->codes, 0, sizeof p->codes);
  memset(p->browsers, 0, sizeof p->browsers);
}
