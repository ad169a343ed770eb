/* Loads libpq and looks up its functions. */
#include "store/postgres/libpq.h"

#include "store/shared.h"

#include <dlfcn.h>
#include <string.h>

static bool pq_load_all(void *library, struct pq_api *api, struct err *err) {
  void *symbol;
/* POSIX lets dlsym return functions as data pointers; memcpy keeps ISO C content. */
#define PQ_LOAD(name)                                                                              \
  symbol = dlsym(library, "PQ" #name);                                                             \
  if (symbol == NULL)                                                                              \
    return err_set(err, ERR_NOT_FOUND, "libpq has no PQ" #name ": it is too old");                 \
  memcpy(&api->name, &symbol, sizeof symbol);
  PQ_FUNCTIONS(PQ_LOAD)
#undef PQ_LOAD
  return true;
}

const struct pq_api *pq_load(struct err *err) {
  static struct pq_api api;
  static bool loaded;
  if (loaded)
    return &api;
  void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    err_set(err, ERR_NOT_FOUND,
            "a shared store needs libpq (libpq.so.5), which cannot be loaded: install it "
            "(Debian: libpq5)");
    return NULL;
  }
  loaded = pq_load_all(library, &api, err);
  return loaded ? &api : NULL;
}

const char *store_library(void) {
  static char version[16];
  struct err ignored;
  const struct pq_api *api = pq_load(&ignored);
  if (api == NULL)
    return NULL;
  print_into(version, sizeof version, "%d.%d", api->libVersion() / 10000,
             api->libVersion() % 10000); /* since version 10: 150010 is 15.10 */
  return version;
}
