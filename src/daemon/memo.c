/* Remembers the workflows and blobs of recent requests. */
#include "daemon/memo.h"

#include "base/limits.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

struct memo {
  struct {
    char key[SHA256_HEX];
    struct workflow *workflow; /* NULL: a free place */
    char setting[SHA256_HEX];  /* the one it was last found fit with, or "" */
    int64_t fit_ms;            /* and when */
  } known[LIMIT_MEMO_COUNT];
  char blobs[LIMIT_MEMO_COUNT][SHA256_HEX]; /* "": a free place */
  size_t next, next_blob;                   /* the oldest, which goes first */
};

struct memo *memo_new(void) {
  return xcalloc(1, sizeof(struct memo));
}

void memo_free(struct memo *memo) {
  if (memo == NULL)
    return;
  for (size_t i = 0; i < LIMIT_MEMO_COUNT; i++)
    workflow_unref(memo->known[i].workflow);
  free(memo);
}

struct workflow *memo_find(const struct memo *memo, const char key[SHA256_HEX]) {
  for (size_t i = 0; i < LIMIT_MEMO_COUNT; i++)
    if (memo->known[i].workflow != NULL && strcmp(memo->known[i].key, key) == 0)
      return workflow_ref(memo->known[i].workflow);
  return NULL;
}

void memo_put(struct memo *memo, const char key[SHA256_HEX], struct workflow *workflow) {
  char ignored[SHA256_HEX];
  size_t i = memo->next;
  workflow_hash(workflow, ignored);
  workflow_unref(memo->known[i].workflow);
  memo->known[i].workflow = workflow_ref(workflow);
  memcpy(memo->known[i].key, key, SHA256_HEX);
  memo->known[i].setting[0] = '\0';
  memo->next = (i + 1) % LIMIT_MEMO_COUNT;
}

bool memo_is_fit(const struct memo *memo, const char key[SHA256_HEX],
                 const char setting[SHA256_HEX], int64_t now_ms) {
  for (size_t i = 0; i < LIMIT_MEMO_COUNT; i++)
    if (memo->known[i].workflow != NULL && strcmp(memo->known[i].key, key) == 0)
      return strcmp(memo->known[i].setting, setting) == 0 &&
             now_ms - memo->known[i].fit_ms < LIMIT_PREFLIGHT_FRESH_MS;
  return false;
}

void memo_set_fit(struct memo *memo, const char key[SHA256_HEX], const char setting[SHA256_HEX],
                  int64_t now_ms) {
  for (size_t i = 0; i < LIMIT_MEMO_COUNT; i++)
    if (memo->known[i].workflow != NULL && strcmp(memo->known[i].key, key) == 0) {
      memcpy(memo->known[i].setting, setting, SHA256_HEX);
      memo->known[i].fit_ms = now_ms;
    }
}

bool memo_has_blob(const struct memo *memo, const char sha256[SHA256_HEX]) {
  for (size_t i = 0; i < LIMIT_MEMO_COUNT; i++)
    if (strcmp(memo->blobs[i], sha256) == 0)
      return true;
  return false;
}

void memo_put_blob(struct memo *memo, const char sha256[SHA256_HEX]) {
  memcpy(memo->blobs[memo->next_blob], sha256, SHA256_HEX);
  memo->next_blob = (memo->next_blob + 1) % LIMIT_MEMO_COUNT;
}
