/* The window's pages from logs that are kept as data, byte by byte, under a clock that stands
 * still: tests/data/web/NAME.html. With SEGUE_UPDATE=1 in the environment they are written anew. */
#include "web/pages.h"

#include "base/file.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOW_MS  INT64_C(1790020800000) /* 2026-09-21T20:00:00Z, after the last record of the logs */
#define SESSION "019cada0-0001-7000-8000-000000000001"
#define OTHER   "019cada0-0002-7000-8000-000000000002"
#define RUNNING "019cada0-0007-7000-8000-000000000007"

struct page_case {
  enum page_kind kind;
  unsigned status;
  const char *id, *turn, *q, *sort, *from;
  const char *how; /* words: daemon, act (a person may), whole, failed (those alone) */
};

static const char kinds[] =
    "sessions inbox session judgment integrity changes records text find workflow workflows "
    "audit audit_csv audit_json behind behind_csv behind_json providers compare label label_case "
    "enter";

#define EACH_PAGE(row)                                                                             \
  DATA_ROWS("web/pages/pages_are_as_before.yaml", row, name, kind, status, id, turn, q, sort,      \
            from, how)
#define PAGE_OF(row)                                                                               \
  {                                                                                                \
    data_among((row).kind, kinds), (unsigned)data_number((row).status), (row).id, (row).turn,      \
        (row).q, (row).sort, (row).from, (row).how                                                 \
  }

static void put(char *out, size_t n, const char *text) {
  print_into(out, n, "%s", text != NULL ? text : "");
}

static struct page_ask page_asked(const struct page_case *c) {
  struct page_ask ask = {.kind = c->kind,
                         .root = "/w/0123456789abcdef0123456789abcdef/",
                         .now_ms = NOW_MS,
                         .b = OTHER,
                         .daemon = strstr(c->how, "daemon") != NULL,
                         .acts = strstr(c->how, "act") != NULL,
                         .all = strstr(c->how, "whole") != NULL,
                         .only_failed = strstr(c->how, "failed") != NULL,
                         .diff = STR_INIT("diff --git a/one b/one\n--- a/one\n+++ b/one\n"
                                          "@@ -1 +1,2 @@\n old\n-gone <b>\n+new \x1B[31mred\n")};
  store_at(&ask.store, "logs");
  put(ask.id, sizeof ask.id, c->id);
  put(ask.a, sizeof ask.a, c->id != NULL ? c->id : SESSION);
  put(ask.turn, sizeof ask.turn, c->turn);
  if (c->kind == PAGE_COMPARE && c->turn != NULL)
    put(ask.b, sizeof ask.b, c->turn);
  put(ask.q, sizeof ask.q, c->q);
  if (c->kind == PAGE_BEHIND) {
    bool causes = strcmp(c->turn, "causes") == 0;
    put(ask.of, sizeof ask.of, c->turn);
    put(ask.what, sizeof ask.what, c->sort);
    put(ask.keys[0], sizeof ask.keys[0], causes ? "rule_no_match" : "phase1_tag");
    put(ask.keys[1], sizeof ask.keys[1], causes ? NULL : "ai_judge");
    put(ask.keys[2], sizeof ask.keys[2], causes ? NULL : "no_tag");
  }
  put(ask.sort, sizeof ask.sort, c->sort);
  put(ask.from, sizeof ask.from, c->from);
  put(ask.as, sizeof ask.as, c->sort);
  return ask;
}

/* A daemon says beside the logs that one session runs, and what its call has said. */
static void page_case_write(const struct page_case *c, struct buf *out) {
  struct page_live live = {.id = RUNNING, .status = "running"};
  struct page_said said = {.turn = 1,
                           .call = 1,
                           .text = "I <b>look\n",
                           .thinking = "hm",
                           .text_end = 10,
                           .thinking_end = 2};
  struct page_ask ask = page_asked(c);
  if (ask.daemon) {
    ask.live = &live;
    ask.live_count = 1;
    ask.said = &said;
    ask.said_count = 1;
  }
  if (c->kind == PAGE_PROVIDERS)
    ask.about = data_load("providers.json");
  assert_int_equal(page_write(&ask, out), c->status);
  json_decref(ask.about);
}

TEST(pages_are_as_before) {
  const char *update = getenv("SEGUE_UPDATE");
  assert_int_equal(data_among("enter", kinds), PAGE_ENTER);
  assert_int_equal(chdir(SEGUE_SOURCE_DIR "/tests/data/web"), 0);
  EACH_PAGE(row) {
    const struct page_case c = PAGE_OF(row);
    buf_auto_t page = {0}, kept = {0};
    struct err err;
    char path[80];
    page_case_write(&c, &page);
    print_into(path, sizeof path, "%s.html", row.name);
    if (update != NULL && strcmp(update, "1") == 0) {
      FILE *f = fopen(path, "w");
      assert_non_null(f);
      assert_int_equal(fwrite(page.p, 1, page.n, f), page.n);
      assert_int_equal(fclose(f), 0);
    }
    if (!file_read(path, DATA_FILE_BYTES, &kept, &err))
      fail_msg("%s", err.text);
    size_t same = 0;
    while (same < page.n && same < kept.n && page.p[same] == kept.p[same])
      same++;
    if (same < page.n || same < kept.n)
      fail_msg("%s is another from byte %zu on:\n%.300s\nand was\n%.300s", path, same,
               buf_c(&page) + same, buf_c(&kept) + same);
  }
}

/* A page is the same when it is written again, and what is kept for it changes nothing. */
TEST(tracks_change_nothing) {
  EACH_PAGE(row) {
    const struct page_case c = PAGE_OF(row);
    if (c.kind != PAGE_SESSION && c.kind != PAGE_JUDGMENT)
      continue;
    buf_auto_t plain = {0}, kept = {0};
    struct page_ask ask = page_asked(&c);
    struct store_ref ref;
    (void)page_write(&ask, &plain);
    store_ref(&ask.store, ask.id, &ref);
    ask.track = record_index_new(&ref);
    (void)page_write(&ask, &kept);
    buf_clear(&kept);
    (void)page_write(&ask, &kept);
    record_index_free(ask.track);
    assert_string_equal(buf_c(&plain), buf_c(&kept));
  }
}

/* Logs have many turns and more records, so that what is kept of each must be small. */
TEST(repeated_texts_are_kept_once) {
  struct store store;
  struct store_ref ref;
  struct err err;
  assert_true(sizeof(struct verified_reader_place) <= 24);
  store_at(&store, "logs");
  store_ref(&store, SESSION, &ref);
  struct record_index *track = record_index_new(&ref);
  assert_true(record_index_read(track, &err));
  const struct view_session *v = &track->view;
  assert_true(v->turn_count >= 2);
  assert_true(str_eq(v->turns[0].provider, v->turns[1].provider));
  assert_ptr_equal(v->turns[0].provider.p, v->turns[1].provider.p);
  record_index_free(track);
}
