/* Keeps people's labels as a file: labels/labels.log below the logs. */
#include "store/files_internal.h"

#include "base/log.h"
#include "core/record.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "store/line.h"
#include "store/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char labels_name[] = "labels/labels.log";

void label_compose(const struct label *l, uint64_t number, struct buf *out, char hash[SHA256_HEX]) {
  char now[RECORD_TIME_BYTES];
  size_t start = out->n;
  record_time(clock_real_ms(), now);
  json_t *line = json_pack("{si sI ss ss ss sI sI ss sb}", "v", 1, "n", (json_int_t)number, "ts",
                           now, "type", "label", "session", l->session, "turn", (json_int_t)l->turn,
                           "rule", (json_int_t)l->rule, "by", l->by, "blind", l->blind);
  if (l->population > 0) {
    json_object_set_new(line, "stratum", json_text(str_from(l->stratum)));
    json_object_set_new(line, "population", json_integer((json_int_t)l->population));
  }
  char *text = json_dump_text(line, JSON_COMPACT);
  buf_puts(out, text ? text : "{}");
  free(text);
  json_decref(line);
  line_close(out, start, hash);
}

bool files_labels_append(const struct store *store, const struct label *labels, size_t n,
                         struct err *err) {
  struct buf lines = {0};
  uint64_t at = 0, number = 0;
  char hash[SHA256_HEX];
  int fd = files_chain_open(store, labels_name, err);
  if (fd < 0)
    return false;
  bool ok = files_chain_end(fd, &at, &number, hash);
  for (size_t i = 0; ok && i < n; i++)
    label_compose(&labels[i], ++number, &lines, hash);
  ok = ok && ftruncate(fd, (off_t)at) == 0 && files_write_all(fd, lines.p, lines.n, at) &&
       fdatasync(fd) == 0;
  if (!ok)
    (void)err_set_errno(err, errno, "cannot write the labels of %s", store->where);
  close(fd);
  buf_deinit(&lines);
  return ok;
}

bool label_take(const json_t *line, struct label *l) {
  const char *session = json_string_value(json_object_get(line, "session"));
  const char *by = json_string_value(json_object_get(line, "by"));
  const char *stratum = json_string_value(json_object_get(line, "stratum"));
  json_int_t population = json_integer_value(json_object_get(line, "population"));
  if (session == NULL || by == NULL || strlen(session) >= sizeof l->session ||
      strlen(by) >= sizeof l->by)
    return false;
  *l = (struct label){.turn = (long)json_integer_value(json_object_get(line, "turn")),
                      .rule = (long)json_integer_value(json_object_get(line, "rule")),
                      .blind = json_is_true(json_object_get(line, "blind"))};
  memcpy(l->session, session, strlen(session) + 1);
  memcpy(l->by, by, strlen(by) + 1);
  if (stratum != NULL && strlen(stratum) < sizeof l->stratum && population > 0 &&
      population < (json_int_t)1 << 40) {
    memcpy(l->stratum, stratum, strlen(stratum) + 1);
    l->population = (uint64_t)population;
  }
  return true;
}

bool files_labels_read(const struct store *store, label_fn each, void *ctx, struct err *err) {
  char path[STORE_PATH_BYTES + 32], hash[SHA256_HEX];
  struct log_reader r;
  struct store_ref ref;
  struct str text;
  bool ok = true;
  memcpy(hash, line_first_hash, SHA256_HEX);
  (void)snprintf(path, sizeof path, "%s/%s", store->where, labels_name);
  if (access(path, F_OK) != 0 && errno == ENOENT)
    return true;
  if (!store_ref_named(path, &ref) || !reader_open(&r, &ref, err))
    return false;
  for (unsigned long n = 1; ok && reader_next(&r, &text) && r.whole; n++) {
    struct label label;
    json_t *line = line_parse(text, hash, err);
    ok = line != NULL;
    if (!ok)
      (void)err_wrap(err, "%s: label %lu", path, n);
    else if (label_take(line, &label)) {
      label.number = n;
      each(ctx, &label);
    }
    json_decref(line);
  }
  reader_close(&r);
  return ok;
}
