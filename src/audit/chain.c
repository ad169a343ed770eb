/* Checks the lines of a log while its records are read. */
#include "audit/chain.h"

#include "store/line.h"

#include <string.h>

static void *chain_main(void *arg) {
  struct chain *c = arg;
  char before[SHA256_HEX], hash[SHA256_HEX];
  struct str line;
  struct err err;
  memcpy(before, line_first_hash, SHA256_HEX);
  while (reader_next(&c->reader, &line) && c->reader.whole &&
         line_check(line, before, hash, &err) && c->check(c->ctx, line)) {
    memcpy(before, hash, SHA256_HEX);
    c->records++;
  }
  return NULL;
}

bool chain_start(struct chain *c, const struct store_ref *ref) {
  struct err err;
  if (!reader_open(&c->reader, ref, &err))
    return false;
  if (pthread_create(&c->thread, NULL, chain_main, c) == 0)
    return true;
  reader_close(&c->reader);
  return false;
}

void chain_join(struct chain *c) {
  (void)pthread_join(c->thread, NULL);
  reader_close(&c->reader);
}
