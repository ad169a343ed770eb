/* Decides which workers may take a session: those that have all the labels it asks for. */
#include "store/postgres/shared.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_LABEL_BYTES = 280 };

void base_put_label(struct buf *out, const char *prefix, const char *label) {
  buf_puts(out, out->n > 1 ? ",\"" : "\"");
  buf_puts(out, prefix);
  for (const char *p = label; *p; p++) {
    if (*p == '"' || *p == '\\')
      buf_putc(out, '\\');
    buf_putc(out, *p);
  }
  buf_putc(out, '"');
}

bool worker_labels_check(const json_t *labels, struct err *err) {
  size_t i;
  json_t *label;
  if (!json_is_array(labels) || json_array_size(labels) == 0)
    return err_set(err, ERR_USAGE, "labels must be texts, at least one");
  if (json_array_size(labels) > LIMIT_STORE_LABEL_COUNT)
    return err_set(err, ERR_USAGE, "a session asks for at most %u labels", LIMIT_STORE_LABEL_COUNT);
  json_array_foreach(labels, i, label) {
    const char *text = json_string_value(label);
    if (text == NULL || strlen(text) != json_string_length(label))
      return err_set(err, ERR_USAGE, "a label is a text without NUL");
    if (!base_label_check(text, err))
      return false;
  }
  return true;
}

void worker_place(struct store_log *base, const json_t *labels) {
  struct shared_log *log = (struct shared_log *)base;
  struct buf needs = {0};
  size_t i;
  json_t *label;
  if (!url_is_shared(base->store->where) || json_array_size(labels) == 0)
    return;
  buf_putc(&needs, '{');
  json_array_foreach((json_t *)labels, i, label) {
    if (json_is_string(label))
      base_put_label(&needs, "", json_string_value(label));
  }
  buf_putc(&needs, '}');
  free(log->needs);
  log->needs = buf_take(&needs);
}

static void own_host(char host[HOST_LABEL_BYTES]) {
  static const char prefix[] = "host=";
  memcpy(host, prefix, sizeof prefix);
  if (gethostname(host + sizeof prefix - 1, HOST_LABEL_BYTES - sizeof prefix) != 0)
    (void)snprintf(host, HOST_LABEL_BYTES, "%sunknown", prefix);
  host[HOST_LABEL_BYTES - 1] = '\0';
}

json_t *worker_home(const struct store *store) {
  char host[HOST_LABEL_BYTES];
  if (!url_is_shared(store->where))
    return NULL;
  own_host(host);
  return json_pack("[s]", host);
}

bool worker_has(const json_t *labels) {
  char host[HOST_LABEL_BYTES];
  size_t i;
  json_t *label;
  own_host(host);
  json_array_foreach((json_t *)labels, i, label) {
    const char *text = json_string_value(label);
    bool has = text != NULL && strcmp(text, host) == 0;
    for (const char *const *own = base_options()->labels; text && own && *own; own++)
      has = has || strcmp(text, *own) == 0;
    if (!has)
      return false;
  }
  return true;
}

/* Writes this program's labels as an SQL array. */
static void own_labels(struct buf *out) {
  char host[HOST_LABEL_BYTES];
  own_host(host);
  buf_putc(out, '{');
  base_put_label(out, "", host);
  for (const char *const *label = base_options()->labels; label && *label; label++)
    base_put_label(out, "", *label);
  buf_putc(out, '}');
}

bool worker_fits(const struct store_ref *ref, struct err *err) {
  static const char sql[] = "SELECT string_agg(n, ', ') FROM segue.session s, unnest(s.needs) n"
                            " WHERE s.id = $1::uuid AND NOT n = ANY ($2::text[])";
  char id[STORE_ID_BYTES];
  enum conn_failure failure;
  struct buf labels = {0};
  struct store store;
  ref->ops->of(ref, &store);
  if (!url_is_shared(store.where))
    return true;
  struct pg_base *pg = shared_of(ref, id, err);
  own_labels(&labels);
  const struct conn_arg args[] = {arg_text(id), arg_text(buf_c(&labels))};
  PGresult *answer = pg ? base_ask(pg, sql, args, ARRAY_LEN(args), false, &failure, err) : NULL;
  bool ok = answer != NULL;
  if (ok && conn_text(answer, 0, 0)[0] != '\0')
    ok = err_set(err, ERR_USAGE,
                 "the session asks for a worker with %.300s, which this one is not: continue it "
                 "where its folder is, or give --label here too",
                 conn_text(answer, 0, 0));
  conn_free(answer);
  buf_deinit(&labels);
  return ok;
}
