/* Splits a stream of bytes into server-sent events. */
#include "format/sse.h"

#include <assert.h>
#include <string.h>

void sse_init(struct sse *sse, size_t max_event_bytes, sse_event_fn on_event, void *ctx) {
  assert(sse != NULL && on_event != NULL);
  assert(max_event_bytes > 0);
  *sse = (struct sse){.max_bytes = max_event_bytes, .on_event = on_event, .ctx = ctx};
}

void sse_deinit(struct sse *sse) {
  buf_deinit(&sse->line);
  buf_deinit(&sse->data);
  buf_deinit(&sse->type);
  *sse = (struct sse){0};
}

static bool dispatch(struct sse *sse) {
  bool go_on = true;
  if (sse->has_data) {
    struct str type = buf_view(&sse->type);
    go_on = sse->on_event(sse->ctx, type.p ? type : STR(""),
                          (struct str){buf_c(&sse->data), sse->data.n});
  }
  buf_clear(&sse->data);
  buf_clear(&sse->type);
  sse->has_data = false;
  sse->stopped = !go_on;
  return go_on;
}

static bool sse_line(struct sse *sse, struct str line) {
  if (!sse->past_start) {
    sse->past_start = true;
    (void)str_drop(&line, "\xEF\xBB\xBF");
  }
  if (line.n == 0)
    return dispatch(sse);
  struct str value = line, field = str_cut(&value, ':');
  (void)str_drop(&value, " ");
  if (str_eq_c(field, "data")) {
    if (value.n + 1 > sse->max_bytes - sse->data.n) {
      sse->over_max = true;
      return false;
    }
    if (sse->has_data)
      buf_putc(&sse->data, '\n');
    buf_str(&sse->data, value);
    sse->has_data = true;
  } else if (str_eq_c(field, "event")) {
    buf_clear(&sse->type);
    buf_str(&sse->type, value);
  }
  return true;
}

/* Returns the offset of the first LF or CR, or n. */
static size_t line_length(struct str s) {
  const char *lf = memchr(s.p, '\n', s.n);
  size_t n = lf ? (size_t)(lf - s.p) : s.n;
  const char *cr = n > 0 ? memchr(s.p, '\r', n) : NULL;
  return cr ? (size_t)(cr - s.p) : n;
}

bool sse_feed(struct sse *sse, struct str bytes) {
  while (bytes.n > 0 && !sse->stopped && !sse->over_max) {
    if (sse->after_cr && bytes.p[0] == '\n') { /* the second half of a CR LF */
      sse->after_cr = false;
      bytes = (struct str){bytes.p + 1, bytes.n - 1};
      continue;
    }
    sse->after_cr = false;
    size_t n = line_length(bytes);
    if (n + sse->line.n > sse->max_bytes + 64) { /* 64: the field's name */
      sse->over_max = true;
      break;
    }
    if (n == bytes.n) {
      buf_str(&sse->line, bytes);
      break;
    }
    bool ok;
    if (sse->line.n > 0) {
      buf_append(&sse->line, bytes.p, n);
      ok = sse_line(sse, buf_view(&sse->line));
      buf_clear(&sse->line);
    } else {
      ok = sse_line(sse, (struct str){bytes.p, n});
    }
    sse->after_cr = bytes.p[n] == '\r';
    bytes = (struct str){bytes.p + n + 1, bytes.n - n - 1};
    if (!ok)
      break;
  }
  return !sse->stopped && !sse->over_max;
}

bool sse_end(struct sse *sse) {
  if (sse->stopped || sse->over_max || (sse->line.n > 0 && !sse_line(sse, buf_view(&sse->line))))
    return false;
  buf_clear(&sse->line);
  return dispatch(sse);
}

/* --- newline-delimited JSON --- */

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
