/* Reads the logs of a folder, hashes each line in its chain, scans it: an audit does no less. */
#include "bench.h"
#include "store/line.h"
#include "store/reader.h"

static unsigned long long scanned;

static void floor_log(const struct store_ref *ref) {
  struct log_reader r;
  struct str line;
  struct err err;
  char hash[SHA256_HEX], next[SHA256_HEX];
  memcpy(hash, line_first_hash, sizeof hash);
  bench_try(reader_open(&r, ref, &err), &err);
  while (reader_next(&r, &line)) {
    bench_try(line_check(line, hash, next, &err), &err);
    memcpy(hash, next, sizeof hash);
    for (size_t i = 0; i < line.n; i++) /* one look at every byte */
      scanned += line.p[i] == '"';
  }
  reader_close(&r);
}

int main(int argc, char **argv) {
  struct store store;
  struct store_id *ids = NULL;
  size_t count = 0;
  struct err err;
  if (argc != 2)
    die("usage: audit_floor FOLDER");
  store_at(&store, argv[1]);
  bench_try(store_list(&store, &ids, &count, &err), &err);
  for (size_t i = 0; i < count; i++) {
    struct store_ref ref;
    store_ref(&store, ids[i].id, &ref);
    floor_log(&ref);
  }
  free(ids);
  printf("%llu\n", scanned);
  return 0;
}
