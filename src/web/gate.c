/* Keeps codes and cookies. */
#include "web/gate.h"

#include "base/sha256.h"
#include "os/random.h"

#include <stdio.h>
#include <string.h>

static const char cookie_name[] = "segue=";

static void put_random(char *out, size_t bytes) {
  unsigned char raw[GATE_COOKIE_BYTES / 2];
  random_fill(raw, bytes);
  for (size_t i = 0; i < bytes; i++)
    (void)snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

static void gate_hash(const char *text, size_t n, unsigned char out[GATE_HASH_BYTES]) {
  sha256_raw(text, n, "", 0, out);
}

/* Compares in the same time, wherever the two differ. */
static bool gate_same(const unsigned char *a, const unsigned char *b) {
  unsigned char differs = 0;
  for (size_t i = 0; i < GATE_HASH_BYTES; i++)
    differs = (unsigned char)(differs | (a[i] ^ b[i]));
  return differs == 0;
}

void gate_pass_init(struct gate_pass *p) {
  char path[GATE_CODE_BYTES];
  *p = (struct gate_pass){0};
  put_random(path, 16);
  (void)snprintf(p->path, sizeof p->path, "/w/%s/", path);
}

void gate_pass_code(struct gate_pass *p, bool read_only, int64_t now_ms,
                    char code[GATE_CODE_BYTES]) {
  struct gate_code *oldest = &p->codes[0];
  for (size_t i = 1; i < LIMIT_WINDOW_CODE_COUNT; i++)
    if (p->codes[i].until_ms < oldest->until_ms)
      oldest = &p->codes[i];
  put_random(code, 16);
  gate_hash(code, strlen(code), oldest->hash);
  oldest->until_ms = now_ms + LIMIT_WINDOW_CODE_MS;
  oldest->read_only = read_only;
}

static struct gate_browser *new_browser(struct gate_pass *p) {
  struct gate_browser *oldest = &p->browsers[0];
  for (size_t i = 0; i < LIMIT_WINDOW_BROWSER_COUNT; i++) {
    if (p->browsers[i].number == 0)
      return &p->browsers[i];
    if (p->browsers[i].seen_ms < oldest->seen_ms)
      oldest = &p->browsers[i];
  }
  return oldest;
}

unsigned gate_pass_enter(struct gate_pass *p, const char *code, int64_t now_ms,
                         char cookie[GATE_COOKIE_BYTES]) {
  struct gate_code *found = NULL;
  unsigned char hash[GATE_HASH_BYTES];
  gate_hash(code, strlen(code), hash);
  for (size_t i = 0; i < LIMIT_WINDOW_CODE_COUNT; i++)
    if (gate_same(p->codes[i].hash, hash) && p->codes[i].until_ms > now_ms)
      found = &p->codes[i];
  if (found == NULL)
    return 0;
  struct gate_browser *b = new_browser(p);
  *b = (struct gate_browser){.seen_ms = now_ms, .number = ++p->numbers};
  b->read_only = found->read_only;
  *found = (struct gate_code){0};
  put_random(cookie, 32);
  gate_hash(cookie, strlen(cookie), b->hash);
  return b->number;
}

static struct gate_browser *browser_of(struct gate_pass *p, const char *value, size_t n,
                                       int64_t now_ms) {
  unsigned char hash[GATE_HASH_BYTES];
  gate_hash(value, n, hash);
  for (size_t i = 0; i < LIMIT_WINDOW_BROWSER_COUNT; i++) {
    struct gate_browser *b = &p->browsers[i];
    if (b->number == 0 || !gate_same(b->hash, hash))
      continue;
    if (now_ms - b->seen_ms >= LIMIT_WINDOW_IDLE_MS)
      return NULL;
    b->seen_ms = now_ms;
    return b;
  }
  return NULL;
}

struct gate_browser *gate_pass_know(struct gate_pass *p, const char *cookies, int64_t now_ms) {
  const char *at = cookies;
  while (at != NULL && *at != '\0') {
    at += strspn(at, " ;");
    size_t n = strcspn(at, ";");
    size_t name = sizeof cookie_name - 1;
    if (n == name + GATE_COOKIE_BYTES - 1 && strncmp(at, cookie_name, name) == 0) {
      struct gate_browser *b = browser_of(p, at + name, n - name, now_ms);
      if (b != NULL)
        return b;
    }
    at += n;
  }
  return NULL;
}

void gate_pass_revoke(struct gate_pass *p) {
  memset(p->codes, 0, sizeof p->codes);
  memset(p->browsers, 0, sizeof p->browsers);
}
