/* Splits a stream of bytes into lines. */
#include "format/ndjson.h"

#include <assert.h>
#include <string.h>

void ndjson_init(struct ndjson *nd, size_t max_line_bytes, ndjson_line_fn on_line, void *ctx) {
  assert(nd != NULL && on_line != NULL);
  assert(max_line_bytes > 0);
  *nd = (struct ndjson){.max_bytes = max_line_bytes, .on_line = on_line, .ctx = ctx};
}

void ndjson_deinit(struct ndjson *nd) {
  buf_deinit(&nd->line);
  *nd = (struct ndjson){0};
}

static void ndjson_tell(struct ndjson *nd, struct str line) {
  if (line.n > nd->max_bytes)
    nd->over_max = true;
  else if (str_trim(line).n > 0 && !nd->on_line(nd->ctx, str_trim(line)))
    nd->stopped = true;
}

bool ndjson_feed(struct ndjson *nd, struct str bytes) {
  assert(nd != NULL);
  while (bytes.n > 0 && !nd->stopped && !nd->over_max) {
    const char *lf = memchr(bytes.p, '\n', bytes.n);
    size_t n = lf ? (size_t)(lf - bytes.p) : bytes.n;
    if (lf != NULL && nd->line.n == 0) {
      ndjson_tell(nd, (struct str){bytes.p, n});
    } else if (n > nd->max_bytes - nd->line.n) {
      nd->over_max = true;
      break;
    } else {
      buf_append(&nd->line, bytes.p, n);
      if (lf == NULL)
        break;
      ndjson_tell(nd, buf_view(&nd->line));
      buf_clear(&nd->line);
    }
    bytes = (struct str){lf + 1, bytes.n - n - 1};
  }
  return !nd->stopped && !nd->over_max;
}

bool ndjson_end(struct ndjson *nd) {
  if (!nd->stopped && !nd->over_max && nd->line.n > 0) {
    ndjson_tell(nd, buf_view(&nd->line));
    buf_clear(&nd->line);
  }
  return !nd->stopped && !nd->over_max;
}
