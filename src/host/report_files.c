/* Writes reports as files, and finds out which of them are there. */
#include "host/report_files.h"

#include "base/log.h"
#include "core/report_file.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "host/session.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

json_t *reports_config(const struct host *host, const struct workflow *workflow, const char *id,
                       json_t *config) {
  char folder[STORE_NAME_BYTES];
  if (host->store == NULL || !workflow->has_reports)
    return json_incref(config);
  store_report_folder(host->store, id, folder);
  json_t *own = json_clone_top(config);
  json_object_set_new(own, "report_dir", json_text(str_from(folder)));
  return own;
}

struct newest {
  const struct kept_text **items;
  size_t count;
};

/* Keeps the newest report of each name, which comes last. */
static void reports_on_kept(void *ctx, const struct kept_text *kept) {
  struct newest *newest = ctx;
  size_t i = 0;
  while (i < newest->count && strcmp(newest->items[i]->name, kept->name) != 0)
    i++;
  if (i == newest->count)
    newest->items = xrealloc(newest->items, ++newest->count * sizeof(const struct kept_text *));
  newest->items[i] = kept;
}

static bool is_written(const struct session *s, const struct kept_text *kept) {
  const char *known = json_string_value(json_object_get(s->reports_written, kept->name));
  return known != NULL && strcmp(known, kept->sha256) == 0;
}

static void note_written(struct session *s, const struct kept_text *kept) {
  if (s->reports_written == NULL)
    s->reports_written = json_object();
  json_object_set_new(s->reports_written, kept->name, json_string(kept->sha256));
}

static void write_one(struct session *s, const struct kept_text *kept) {
  buf_auto_t content = {0};
  struct err err;
  contract_content(buf_view(&kept->text), &content);
  if (!store_report_put(s->host->store, s->core.session, kept->name, buf_view(&content), &err))
    session_trouble(s, err.text);
  note_written(s, kept);
}

struct older {
  const struct kept_text *newest;
  const char *found; /* hash of the file as it is */
  bool is_older;
};

/* Notes whether the file holds an earlier report of this name: then the newest was never
 * written. */
static void on_older(void *ctx, const struct kept_text *kept) {
  struct older *o = ctx;
  if (strcmp(kept->name, o->newest->name) != 0)
    return;
  o->is_older |= strcmp(kept->before, o->found) == 0;
  o->is_older |= kept != o->newest && strcmp(kept->sha256, o->found) == 0;
}

static void reports_recover_one(struct session *s, const struct kept_text *kept) {
  char found[SHA256_HEX], text[LIMIT_NAME_BYTES + 160];
  if (!store_report_sha256(s->host->store, s->core.session, kept->name, found)) {
    write_one(s, kept);
    return;
  }
  if (strcmp(found, kept->sha256) == 0) {
    note_written(s, kept);
    return;
  }
  struct older older = {.newest = kept, .found = found};
  kept_each_report(&s->core, on_older, &older);
  if (older.is_older) {
    write_one(s, kept);
    return;
  }
  print_into(text, sizeof text,
             "the report %s was changed and is left as it is; prompts show what the log has",
             kept->name);
  session_trouble(s, text);
  note_written(s, kept);
}

static void reports_each(struct session *s,
                         void (*fn)(struct session *s, const struct kept_text *kept)) {
  struct newest newest = {0};
  if (s->host->store == NULL || !s->core.workflow->has_reports)
    return;
  kept_each_report(&s->core, reports_on_kept, &newest);
  /* The state is ahead of the log: another effect reports what is not on the disk yet. */
  for (size_t i = 0; i < newest.count; i++)
    if (!is_written(s, newest.items[i]) &&
        (s->log == NULL || newest.items[i]->since <= store_log_seq(s->log)))
      fn(s, newest.items[i]);
  free(newest.items);
}

void reports_recover(struct session *s) {
  reports_each(s, reports_recover_one);
}

void reports_write(struct session *s) {
  reports_each(s, write_one);
}
