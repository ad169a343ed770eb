/* Loads libcurl and looks up its functions. */
#include "http/curl_load.h"

#include "http/http.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static bool curl_load_all(void *library, struct curl_api *api, struct err *err) {
  void *symbol;
/* POSIX lets a data pointer of dlsym be a function's; memcpy keeps ISO C content. */
#define CURL_LOAD(name)                                                                            \
  symbol = dlsym(library, "curl_" #name);                                                          \
  if (symbol == NULL)                                                                              \
    return err_set(err, ERR_NOT_FOUND, "libcurl has no curl_" #name ": it is too old");            \
  memcpy(&api->name, &symbol, sizeof symbol);
  CURL_FUNCTIONS(CURL_LOAD)
#undef CURL_LOAD
  return true;
}

const struct curl_api *curl_load(struct err *err) {
  static struct curl_api api;
  static bool loaded;
  if (loaded)
    return &api;
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    err_set(err, ERR_NOT_FOUND, "libcurl (libcurl.so.4) cannot be loaded: install it");
    return NULL;
  }
  loaded = curl_load_all(library, &api, err);
  return loaded ? &api : NULL;
}

const char *http_library(void) {
  static char version[32];
  struct err ignored;
  const struct curl_api *api = curl_load(&ignored);
  if (api == NULL || sscanf(api->version(), "libcurl/%31[^ ]", version) != 1)
    return NULL;
  return version;
}
