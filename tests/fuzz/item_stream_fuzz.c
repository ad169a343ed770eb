/* libFuzzer target: any bytes, cut into pieces by the first byte. Invariants: the same items come
 * whatever the pieces are; an array of valid JSON is told item by item. */
#include "extract/items.h"
#include "format/json_value.h"
#include "json/scan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
  if (!ok)
    abort();
}

static bool keep(void *ctx, const json_t *item) {
  return json_array_append(ctx, (json_t *)item) == 0;
}

static json_t *items_of(const char *text, size_t n, size_t piece, enum item_stream_state *state) {
  AUTO(item_stream_deinit) struct item_stream s;
  json_t *items = json_array();
  item_stream_init(&s, 1 << 20);
  for (size_t i = 0; i < n; i += piece)
    item_stream_feed(&s, text + i, n - i < piece ? n - i : piece, keep, items);
  item_stream_end(&s, keep, items);
  require(s.count == json_array_size(items));
  *state = s.state;
  return items;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  enum item_stream_state first, second;
  if (size < 2)
    return 0;
  const char *text = (const char *)data + 1;
  size_t n = size - 1;
  json_auto_t *a = items_of(text, n, 1 + data[0] % 32, &first);
  json_auto_t *b = items_of(text, n, n, &second);
  require(json_same(a, b) && first == second);
  AUTO(jscan_deinit) struct jscan js;
  struct jscan_result r = {0};
  jscan_init(&js, text, n);
  if (text[0] == '[' && jscan_value(&js, 0, &r) == JSCAN_OK && r.end == n &&
      json_array_size(r.value) > 0)
    require(json_same(a, r.value) && first == ITEM_STREAM_DONE);
  json_decref(r.value);
  return 0;
}
