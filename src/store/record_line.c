/* Turns a record into the line of a log, and back. */
#include "store/record_line.h"

#include "json/scan.h"

#include <assert.h>
#include <string.h>

#define MEMBER ",\"hash\":\""
enum { SUFFIX_BYTES = sizeof MEMBER - 1 + 64 + 2 }; /* ,"hash":"<64>"} */

const char record_line_first_hash[SHA256_HEX] =
    "0000000000000000000000000000000000000000000000000000000000000000";

void record_line_compose(const struct record *record, struct buf *out, char hash[SHA256_HEX]) {
  size_t start = out->n;
  record_write(record, out);
  record_line_close(out, start, hash);
}

void record_line_close(struct buf *out, size_t start, char hash[SHA256_HEX]) {
  char next[SHA256_HEX];
  assert(out->n > start && out->p[out->n - 1] == '}');
  out->n--; /* its closing brace */
  sha256_hex(hash, 64, out->p + start, out->n - start, next);
  memcpy(hash, next, SHA256_HEX);
  buf_puts(out, MEMBER);
  buf_append(out, hash, 64);
  buf_puts(out, "\"}\n");
}

bool record_line_ends_well(struct str line) {
  if (line.n < SUFFIX_BYTES)
    return false;
  struct str suffix = {line.p + line.n - SUFFIX_BYTES, SUFFIX_BYTES};
  return str_starts(suffix, MEMBER) && str_ends(suffix, "\"}");
}

bool record_line_check(struct str line, const char before[SHA256_HEX], char hash[SHA256_HEX],
                       struct err *err) {
  if (!record_line_ends_well(line) && !str_starts(line, "{\"v\":"))
    return err_set(err, ERR_CORRUPT, "it is not a session record");
  if (!record_line_ends_well(line))
    return err_set(err, ERR_CORRUPT, "it does not end with its hash");
  sha256_hex(before, 64, line.p, line.n - SUFFIX_BYTES, hash);
  if (memcmp(hash, line.p + line.n - 66, 64) != 0)
    return err_set(err, ERR_CORRUPT,
                   "its hash does not match: it, or a record before it, is not "
                   "what was written");
  return true;
}

/* Uses jscan, which reads long texts some ten times as fast as jansson: they are most of a log. */
json_t *record_line_read(struct str line, bool *duplicate) {
  struct jscan_result found;
  enum jscan_code code = jscan_whole(line, &found);
  if (duplicate != NULL)
    *duplicate = code == JSCAN_OK && found.duplicate_key;
  if (json_is_object(found.value))
    return found.value;
  json_decref(found.value);
  return NULL;
}

json_t *record_line_record(struct str line, struct err *err) {
  bool duplicate;
  json_t *record = record_line_read(line, &duplicate);
  if (record != NULL && !duplicate)
    return record;
  json_decref(record);
  err_set(err, ERR_CORRUPT, duplicate ? "it has a member twice" : "it is not a JSON object");
  return NULL;
}

bool record_line_check_hash(struct str line, char hash[SHA256_HEX], struct err *err) {
  char next[SHA256_HEX];
  if (!record_line_check(line, hash, next, err))
    return false;
  memcpy(hash, next, SHA256_HEX);
  return true;
}

json_t *record_line_parse(struct str line, char hash[SHA256_HEX], struct err *err) {
  char next[SHA256_HEX];
  json_t *record = record_line_check(line, hash, next, err) ? record_line_record(line, err) : NULL;
  if (record != NULL)
    memcpy(hash, next, SHA256_HEX);
  return record;
}
