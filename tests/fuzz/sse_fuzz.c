/* Any bytes as an event stream and as lines: in pieces they give what they give whole. */
#include "format/sse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool on_event(void *ctx, struct str type, struct str data) {
  buf_str(ctx, type);
  buf_putc(ctx, '\1');
  buf_str(ctx, data);
  buf_putc(ctx, '\2');
  return true;
}

static bool on_line(void *ctx, struct str line) {
  return on_event(ctx, STR("line"), line);
}

static void read_all(struct str bytes, size_t piece, struct buf *out) {
  AUTO(sse_deinit) struct sse sse;
  AUTO(ndjson_deinit) struct ndjson nd;
  bool more = true, more_lines = true;
  sse_init(&sse, 64, on_event, out);
  for (size_t i = 0; i < bytes.n && more; i += piece)
    more = sse_feed(&sse, (struct str){bytes.p + i, bytes.n - i < piece ? bytes.n - i : piece});
  more = more && sse_end(&sse);
  ndjson_init(&nd, 64, on_line, out);
  for (size_t i = 0; i < bytes.n && more_lines; i += piece)
    more_lines =
        ndjson_feed(&nd, (struct str){bytes.p + i, bytes.n - i < piece ? bytes.n - i : piece});
  more_lines = more_lines && ndjson_end(&nd);
  buf_printf(out, "%d%d", (int)more, (int)more_lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  buf_auto_t whole = {0}, pieces = {0};
  if (size < 1)
    return 0;
  struct str bytes = {(const char *)data + 1, size - 1};
  read_all(bytes, SIZE_MAX / 2, &whole);
  read_all(bytes, 1 + data[0] % 32, &pieces);
  if (whole.n != pieces.n || memcmp(whole.p, pieces.p, whole.n) != 0)
    abort();
  return 0;
}
