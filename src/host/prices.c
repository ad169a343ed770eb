/* Keeps the user's own list of prices, and prices what calls have used. */
#include "host/prices.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "http/http.h"
#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool prices_path(char out[PRICES_PATH_BYTES]) {
  char folder[PATHS_BYTES];
  struct err err;
  if (!paths_config(folder, &err))
    return false;
  print_into(out, PRICES_PATH_BYTES, "%s/prices.txt", folder);
  return true;
}

void prices_keep(struct provider_registry *registry) {
  char path[PRICES_PATH_BYTES];
  buf_auto_t text = {0};
  struct err err = {0};
  if (!prices_path(path) || access(path, F_OK) != 0)
    return;
  if (file_read(path, LIMIT_PRICE_LIST_BYTES, &text, &err))
    price_lists_keep(registry, buf_view(&text));
  else
    log_warn("warning: %s: the shipped prices hold", err.text);
}

json_t *prices_of_usage(const struct provider_registry *registry, const json_t *config,
                        struct str provider, struct str model, const json_t *usage) {
  struct price_found found;
  const json_t *own = json_at(config, "prices");
  if (!spend_lacks_cost(usage) || json_object_getn(own, model.n ? model.p : "", model.n) != NULL ||
      !price_lists_find(registry, provider, model, json_int_at(usage, "input"), &found))
    return json_incref((json_t *)usage);
  return spend_at_price(usage, &found.price, "list", found.list);
}

double prices_of_output(const struct provider_registry *registry, const json_t *config,
                        struct str provider, struct str model) {
  struct price_found found;
  const json_t *own = json_object_getn(json_at(config, "prices"), model.n ? model.p : "", model.n);
  if (own != NULL)
    return json_number_value(json_at(own, "output"));
  if (!price_lists_find(registry, provider, model, 0, &found))
    return -1;
  return found.price.of[PRICE_OUTPUT];
}

/* --- a newer list --- */

static bool fetch_list(const char *url, struct buf *out, struct err *err) {
  int status;
  const struct http_request request = {.url = url,
                                       .connect_ms = LIMIT_HTTP_CONNECT_MS,
                                       .total_ms = LIMIT_HTTP_STALL_MS,
                                       .max_bytes = LIMIT_PRICE_LIST_BYTES};
  if (!http_now(&request, out, &status, err))
    return false;
  return status == 200 || err_set(err, ERR_IO, "%.300s answers with status %d", url, status);
}

static bool read_source(const char *source, struct buf *out, struct err *err) {
  if (str_starts(str_from(source), "http://") || str_starts(str_from(source), "https://"))
    return fetch_list(source, out, err);
  if (strcmp(source, "-") == 0)
    return file_read_fd(STDIN_FILENO, "standard input", LIMIT_PRICE_LIST_BYTES, out, err);
  return file_read(source, LIMIT_PRICE_LIST_BYTES, out, err);
}

static bool write_list(const char *path, struct str text, struct err *err) {
  char fresh[PRICES_PATH_BYTES + 8];
  print_into(fresh, sizeof fresh, "%s.new", path);
  FILE *f = fopen(fresh, "we");
  bool ok = f != NULL && fwrite(text.p, 1, text.n, f) == text.n;
  ok = f != NULL && fclose(f) == 0 && ok && rename(fresh, path) == 0;
  return ok || err_set_errno(err, errno, "cannot write %.300s", path);
}

bool prices_update(const char *source, size_t *count, char list[64], struct err *err) {
  char path[PRICES_PATH_BYTES], day[16];
  buf_auto_t bytes = {0}, text = {0};
  time_t now = (time_t)(clock_real_ms() / 1000);
  struct tm parts;
  (void)gmtime_r(&now, &parts);
  (void)strftime(day, sizeof day, "%Y-%m-%d", &parts);
  if (!prices_path(path))
    return err_set(err, ERR_NOT_FOUND, "there is no home folder to keep a list in");
  if (!read_source(source, &bytes, err) ||
      !price_list_import(buf_view(&bytes), day, &text, count, err) ||
      !write_list(path, buf_view(&text), err))
    return false;
  struct str name = price_list_name(buf_view(&text));
  print_into(list, 64, STR_FMT, STR_ARG(name));
  return true;
}
