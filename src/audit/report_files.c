/* Compares reports with their files. */
#include "audit/report_files.h"

#include "core/keys.h"
#include "core/report_file.h"
#include "format/json_object.h"

#include <string.h>

static const char same[] = "same", changed[] = "changed", missing[] = "missing";

static void report_files_put(struct report_files *files, const char *file, const char *sha256) {
  struct err err;
  if (!key_check_file(str_from(file), &err))
    return;
  if (files->newest == NULL)
    files->newest = json_object();
  json_object_set_new(files->newest, file, json_string(sha256));
}

void report_files_take(struct report_files *files, const struct record *record) {
  if (record->type == RECORD_REPORT && record_get(record, MEMBER_FILE) != NULL &&
      record_get(record, MEMBER_SHA256) != NULL)
    report_files_put(files, record_text_c(record, MEMBER_FILE),
                     record_text_c(record, MEMBER_SHA256));
  if (record->type != RECORD_CARRIED)
    return;
  JSON_MEMBERS(json_at(record_tree(record, MEMBER_STATE), "reports"), file, text) {
    char sha256[SHA256_HEX];
    contract_sha256(json_view(text), sha256);
    report_files_put(files, file, sha256);
  }
}

void report_files_note(struct report_files *files, const json_t *record) {
  struct record_draft d;
  record_read(&d, record);
  report_files_take(files, &d.record);
  record_drop(&d);
}

void report_files_look(struct report_files *files, const struct store *store, const char *session) {
  json_t *found = json_object();
  JSON_MEMBERS(files->newest, file, sha256) {
    char now[SHA256_HEX];
    const char *state = missing;
    if (store_report_sha256(store, session, file, now))
      state = strcmp(now, json_string_value(sha256)) == 0 ? same : changed;
    files->count++;
    files->changed += state == changed;
    files->missing += state == missing;
    json_object_set_new(found, file, json_string(state));
  }
  json_decref(files->newest);
  files->newest = found;
}

void report_files_told(const struct report_files *files, bool all, struct buf *out) {
  json_t *told = files->newest;
  size_t n = 0;
  JSON_MEMBERS(told, file, state) {
    bool as_it_was = str_eq_c(json_view(state), same);
    if (as_it_was && !all)
      continue;
    buf_puts(out, n++ > 0 ? ", " : "");
    buf_safe(out, str_from(file), false);
    if (!as_it_was)
      buf_printf(out, " (%s)", json_string_value(state));
  }
}

void report_files_deinit(struct report_files *files) {
  json_decref(files->newest);
  *files = (struct report_files){0};
}
