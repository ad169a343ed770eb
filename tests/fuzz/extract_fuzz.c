/* libFuzzer target: any bytes, every want, with and without repair and check; the first byte picks.
 * Invariants: the root is the wanted one, the place lies in the text, a repaired value names its
 * repairs. */
#include "base/memory.h"
#include "extract/whole_reply.h"
#include "json/scan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_step(void *ctx, const json_t *v) {
  (void)ctx;
  return json_is_integer(json_object_get(v, "step")) &&
         json_is_string(json_object_get(v, "reason"));
}

static int nearness(void *ctx, const json_t *v) {
  (void)ctx;
  return (json_object_get(v, "step") != NULL) + (json_object_get(v, "reason") != NULL);
}

static bool is_key(void *ctx, const char *key, size_t n) {
  (void)ctx;
  return (n == 4 && memcmp(key, "step", 4) == 0) || (n == 6 && memcmp(key, "reason", 6) == 0);
}

static void require(bool ok) {
  if (!ok)
    abort();
}

/* The half behind a NUL, if there is one, is the report. */
static void read_reply(const uint8_t *data, size_t size, const struct extract_check *check) {
  const uint8_t *cut = memchr(data, 0, size);
  struct str reply = {(const char *)data, cut ? (size_t)(cut - data) : size};
  struct str report = {cut ? (const char *)cut : NULL, size - reply.n};
  AUTO(whole_reply_deinit) struct whole_reply s;
  whole_reply_read(&s, reply, check, report);
  require((s.value != NULL) ==
          (s.outcome == WHOLE_REPLY_VALID || s.outcome == WHOLE_REPLY_REFUSED));
  require(s.outcome != WHOLE_REPLY_VALID || has_step(NULL, s.value));
  require(s.outcome != WHOLE_REPLY_AMBIGUOUS || s.place_count > 0);
  for (size_t i = 0; i < s.place_count; i++)
    require(s.places[i].value != NULL && s.places[i].offset + s.places[i].length <= reply.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size)
    return 0;
  const struct extract_check check = {NULL, has_step, nearness, NULL, data[0] & 32 ? is_key : NULL};
  struct extract_opts opts = {.want = (enum extract_want)(data[0] % 3),
                              .repair = data[0] & 4,
                              .explain = data[0] & 8,
                              .check = data[0] & 16 ? &check : NULL};
  struct extract_result r;
  enum extract_status st = extract((const char *)data + 1, size - 1, &opts, &r);
  if (st == EXTRACT_OK) {
    require(r.value != NULL && r.stage != EXTRACT_NONE);
    require(opts.want != EXTRACT_WANT_OBJECT || json_is_object(r.value));
    require(opts.want != EXTRACT_WANT_ARRAY || json_is_array(r.value));
    require(r.offset + r.length <= size - 1);
    require(!r.repaired || (opts.repair && r.repairs_listed));
    require(!opts.check || r.valid == has_step(NULL, r.value));
    char_auto_t *text =
        json_dumps(r.value, JSON_ENCODE_ANY | JSON_COMPACT); /* NULL when a string is not UTF-8 */
    require(text != NULL);
  } else {
    require(st == EXTRACT_NOT_FOUND && r.value == NULL && r.error.code != EXTRACT_ERR_NONE);
  }
  extract_result_deinit(&r);
  if (data[0] & 32)
    read_reply(data + 1, size - 1, &check);
  return 0;
}
