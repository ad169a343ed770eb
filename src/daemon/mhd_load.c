/* Loads libmicrohttpd when the daemon starts. */
#include "daemon/mhd_load.h"

#include "daemon/serve.h"

#include <dlfcn.h>
#include <string.h>

struct mhd_api microhttpd;

static bool load_all(void *library, struct err *err) {
  void *symbol;
/* POSIX allows a data pointer from dlsym to hold a function's address; memcpy satisfies ISO C. */
#define MHD_LOAD(name)                                                                             \
  symbol = dlsym(library, "MHD_" #name);                                                           \
  if (symbol == NULL)                                                                              \
    return err_set(err, ERR_IO, "libmicrohttpd has no MHD_" #name ": it is too old");              \
  memcpy(&microhttpd.name, &symbol, sizeof symbol);
  MHD_FUNCTIONS(MHD_LOAD)
#undef MHD_LOAD
  return true;
}

bool mhd_load(struct err *err) {
  static bool loaded;
  if (loaded)
    return true;
  void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return err_set(err, ERR_IO,
                   "libmicrohttpd, the daemon's HTTP server, cannot be loaded (%.200s): install it",
                   dlerror());
  loaded = load_all(library, err);
  return loaded;
}

const char *serve_library(void) {
  struct err ignored;
  return mhd_load(&ignored) ? microhttpd.get_version() : NULL;
}
