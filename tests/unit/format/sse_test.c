/* Server-sent events in pieces of every length, and their bounds. */
#include "format/sse.h"

#include "support/data.h"
#include "support/test.h"

#include <string.h>

struct heard {
  struct buf log; /* "type|data;" for each event */
  size_t events, stop_after;
};

static bool on_event(void *ctx, struct str type, struct str data) {
  struct heard *h = ctx;
  buf_str(&h->log, type);
  buf_putc(&h->log, '|');
  buf_str(&h->log, data);
  buf_putc(&h->log, ';');
  h->events++;
  return h->stop_after == 0 || h->events < h->stop_after;
}

static void feed_in_pieces(const char *stream, size_t piece, struct heard *h) {
  AUTO(sse_deinit) struct sse sse;
  size_t n = strlen(stream);
  sse_init(&sse, 1000, on_event, h);
  for (size_t i = 0; i < n; i += piece)
    assert_true(sse_feed(&sse, (struct str){stream + i, n - i < piece ? n - i : piece}));
  assert_true(sse_end(&sse));
}

TEST(events_are_found_however_they_are_cut) {
  DATA_ROWS("format/sse/events_are_found_however_they_are_cut.yaml", c, stream, log)
    for (size_t piece = 1; piece <= 64; piece++) {
      struct heard h = {0};
      feed_in_pieces(c.stream, piece, &h);
      if (strcmp(buf_c(&h.log), c.log) != 0)
        fail_msg("case %zu in pieces of %zu: %s", c.at, piece, buf_c(&h.log));
      buf_deinit(&h.log);
    }
}

TEST(an_event_has_a_bound) {
  struct heard h = {0};
  struct sse sse;
  /* as one line */
  sse_init(&sse, 10, on_event, &h);
  assert_true(sse_feed(&sse, STR("data: 123456789\n\n")));
  assert_false(sse_feed(&sse, STR("data: 12345678901\n\n")));
  assert_true(sse.over_max);
  assert_false(sse_feed(&sse, STR("data: 1\n\n")));
  assert_int_equal(h.events, 1);
  sse_deinit(&sse);
  /* as many lines */
  sse_init(&sse, 10, on_event, &h);
  assert_false(sse_feed(&sse, STR("data: 1234\ndata: 1234\ndata: 1\n\n")));
  assert_true(sse.over_max);
  sse_deinit(&sse);
  /* as a line that never ends */
  sse_init(&sse, 10, on_event, &h);
  bool more = true;
  for (int i = 0; i < 1000 && more; i++)
    more = sse_feed(&sse, STR("x"));
  assert_true(sse.over_max && sse.line.n < 100);
  sse_deinit(&sse);
  buf_deinit(&h.log);
}

TEST(the_reader_may_stop) {
  struct heard h = {.stop_after = 1};
  struct sse sse;
  sse_init(&sse, 100, on_event, &h);
  assert_false(sse_feed(&sse, STR("data: 1\n\ndata: 2\n\n")));
  assert_true(sse.stopped && !sse.over_max);
  assert_false(sse_end(&sse));
  assert_int_equal(h.events, 1);
  sse_deinit(&sse);
  buf_deinit(&h.log);
}
