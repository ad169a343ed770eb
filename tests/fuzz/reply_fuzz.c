/* Any bytes as the reply of a model API, in every dialect: read whole and in pieces cut where the
 * input says, with the same outcome. The first byte chooses dialect, status and the pieces. */
#include "provider/api/reply.h"
#include "support/dialects.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct reply *r, const struct dialect *dialect, int status, struct str bytes,
                     size_t piece) {
  bool more = true;
  reply_init(r, dialect, 1700000000000, NULL, NULL);
  reply_header(r, STR("retry-after"), (struct str){bytes.p, bytes.n < 20 ? bytes.n : 20});
  reply_head(r, status);
  for (size_t i = 0; i < bytes.n && more; i += piece)
    more = reply_body(r, (struct str){bytes.p + i, bytes.n - i < piece ? bytes.n - i : piece});
  reply_end(r, true);
}

static void same(struct str a, struct str b) {
  if (a.n != b.n || (a.n > 0 && memcmp(a.p, b.p, a.n) != 0))
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1)
    return 0;
  const struct dialect *dialect = dialects[(data[0] & 7) % 6];
  int status = data[0] & 8 ? 429 : 200;
  struct str bytes = {(const char *)data + 1, size - 1};
  struct reply whole, pieces;
  read_all(&whole, dialect, status, bytes, SIZE_MAX / 2);
  read_all(&pieces, dialect, status, bytes, 1 + (data[0] >> 4));
  if (whole.class != pieces.class || whole.over != pieces.over)
    abort();
  same(buf_view(&whole.text), buf_view(&pieces.text));
  same(buf_view(&whole.tool), buf_view(&pieces.tool));
  json_decref(reply_usage_json(&whole));
  reply_deinit(&whole);
  reply_deinit(&pieces);
  return 0;
}
