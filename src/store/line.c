/* Turns a record into the line of a log, and back. */
#include "store/line.h"

#include "json/scan.h"

#include <assert.h>
#include <string.h>

#define MEMBER ",\"hash\":\""
enum { SUFFIX_BYTES = sizeof MEMBER - 1 + 64 + 2 }; /* ,"hash":"<64>"} */

const char line_first_hash[SHA256_HEX] =
    "0000000000000000000000000000000000000000000000000000000000000000";

void line_compose(const struct record *record, struct buf *out, char hash[SHA256_HEX]) {
  size_t start = out->n;
  record_write(record, out);
  line_close(out, start, hash);
}

void line_close(struct buf *out, size_t start, char hash[SHA256_HEX]) {
  char next[SHA256_HEX];
  assert(out->n > start && out->p[out->n - 1] == '}');
  out->n--; /* its closing brace */
  sha256_hex(hash, 64, out->p + start, out->n - start, next);
  memcpy(hash, next, SHA256_HEX);
  buf_puts(out, MEMBER);
  buf_append(out, hash, 64);
  buf_puts(out, "\"}\n");
}

bool line_ends_well(struct str line) {
  if (line.n < SUFFIX_BYTES)
    return false;
  struct str suffix = {line.p + line.n - SUFFIX_BYTES, SUFFIX_BYTES};
  return str_starts(suffix, MEMBER) && str_ends(suffix, "\"}");
}

static bool has_form(struct str line, struct err *err) {
  if (!line_ends_well(line) && !str_starts(line, "{\"v\":"))
    return err_set(err, ERR_CORRUPT, "it is not a session record");
  return line_ends_well(line) || err_set(err, ERR_CORRUPT, "it does not end with its hash");
}

bool line_check(struct str line, const char before[SHA256_HEX], char hash[SHA256_HEX],
                struct err *err) {
  if (!has_form(line, err))
    return false;
  sha256_hex(before, 64, line.p, line.n - SUFFIX_BYTES, hash);
  if (memcmp(hash, line.p + line.n - 66, 64) != 0)
    return err_set(err, ERR_CORRUPT,
                   "its hash does not match: it, or a record before it, is not "
                   "what was written");
  return true;
}

/* Uses jscan, which reads long texts some ten times as fast as jansson: they are most of a log. */
json_t *line_read(struct str line, bool *duplicate) {
  struct jscan js;
  struct jscan_result found;
  jscan_init(&js, line.p, line.n);
  enum jscan_code code = jscan_value(&js, 0, &found);
  jscan_deinit(&js);
  if (duplicate != NULL)
    *duplicate = code == JSCAN_OK && found.duplicate_key;
  if (code == JSCAN_OK && found.end == line.n && json_is_object(found.value))
    return found.value;
  if (code == JSCAN_OK)
    json_decref(found.value);
  return NULL;
}

json_t *line_record(struct str line, struct err *err) {
  bool duplicate;
  json_t *record = line_read(line, &duplicate);
  if (record != NULL && !duplicate)
    return record;
  json_decref(record);
  (void)err_set(err, ERR_CORRUPT, duplicate ? "it has a member twice" : "it is not a JSON object");
  return NULL;
}

bool line_check_hash(struct str line, char hash[SHA256_HEX], struct err *err) {
  char next[SHA256_HEX];
  if (!line_check(line, hash, next, err))
    return false;
  memcpy(hash, next, SHA256_HEX);
  return true;
}

void line_hash(struct str line, char hash[SHA256_HEX]) {
  assert(line.n >= SUFFIX_BYTES);
  memcpy(hash, line.p + line.n - 66, 64);
  hash[64] = '\0';
}

json_t *line_parse(struct str line, char hash[SHA256_HEX], struct err *err) {
  char next[SHA256_HEX];
  json_t *record = line_check(line, hash, next, err) ? line_record(line, err) : NULL;
  if (record != NULL)
    memcpy(hash, next, SHA256_HEX);
  return record;
}
