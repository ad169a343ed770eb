/* Texts that a log stores once, put together again: parts, places in records, blobs. */

#include "store/resolve_text.h"
#include "store/store.h"
#include "support/data.h"
#include "support/folder.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *dir;
static struct store store;
static char blob[SHA256_HEX];

static int setup(void **state) {
  struct err err;
  (void)state;
  dir = folder_make();
  return !store_open(&store, dir, &err) ||
         !store_blob_put(&store, STR("all \0 bytes\xFF"), blob, &err);
}

static int teardown(void **state) {
  (void)state;
  folder_remove(dir);
  return 0;
}

/* The log: three records. */
static json_t *record(void *ctx, uint64_t seq, struct err *err) {
  (void)ctx;
  if (seq == 1)
    return json_pack("{ss s{s[{ss}]}}", "task", "the task", "workflow", "movements", "instruction",
                     "do it");
  if (seq == 2)
    return json_pack("{s[s{ss}s]}", "prompt", "zero", "ref", "1#/task", "two");
  if (seq == 3)
    return json_pack("{ss ss}", "text", "a rendering", "text_blob", blob);
  err_set(err, ERR_CORRUPT, "there is no record %d", (int)seq);
  return NULL;
}

TEST_WITH(setup, teardown, parts_become_text) {
  const struct resolve recall = {NULL, record, &store};
  DATA_ROWS("store/resolve_text/parts_become_text.yaml", c, parts, text) {
    json_auto_t *parts = json_loads(c.parts, 0, NULL);
    buf_auto_t out = {0};
    struct err err = {0};
    bool ok = resolve_parts(&recall, parts, &out, &err);
    if (ok != (c.text != NULL) || (ok && strcmp(buf_c(&out), c.text) != 0))
      fail_msg("%s: %s \"%s\"", c.parts, ok ? "gave" : err.text, buf_c(&out));
    if (!ok)
      assert_int_equal(err.code, ERR_CORRUPT);
  }
}

TEST_WITH(setup, teardown, blobs_are_meant_where_they_are_named) {
  static const struct str wanted = {"all \0 bytes\xFF", 12};
  buf_auto_t out = {0};
  struct err err;
  const struct resolve recall = {NULL, record, &store};
  json_auto_t *parts = json_loads("[\"[\", {\"ref\": \"3#/text\"}, \"]\"]", 0, NULL);
  assert_true(resolve_parts(&recall, parts, &out, &err));
  assert_int_equal(out.n, wanted.n + 2);
  assert_memory_equal(out.p + 1, wanted.p, wanted.n);

  json_auto_t *three = record(NULL, 3, &err);
  buf_clear(&out);
  assert_true(resolve_text(&recall, three, "text", &out, &err));
  assert_int_equal(out.n, wanted.n);
  json_object_set_new(
      three, "text_blob",
      json_string("00000000000000000000000000000000000000000000000000000000000000aa"));
  assert_false(resolve_text(&recall, three, "text", &out, &err));
  json_object_set_new(three, "text_blob", json_string("../../etc/passwd"));
  assert_false(resolve_text(&recall, three, "text", &out, &err));
  assert_int_equal(err.code, ERR_CORRUPT);
  assert_false(resolve_text(&recall, three, "stderr", &out, &err));
}
