/* Reads values: containers, literals and what may stand between them. */
#include "json/scan.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

bool jscan_one_of(const char *set, char c) {
  return c && strchr(set, c);
}

void jscan_init(struct jscan *js, const char *text, size_t n) {
  assert(text != NULL || n == 0);
  *js = (struct jscan){.text = text, .n = n};
  js->skip_left = n > SIZE_MAX / 8 ? n : 4 * n + 65536;
}

void jscan_deinit(struct jscan *js) {
  buf_deinit(&js->decoded);
  buf_deinit(&js->decoded_key);
  *js = (struct jscan){0};
}

const char *jscan_code_name(enum jscan_code code) {
  switch (code) {
  case JSCAN_OK:
    return "ok";
  case JSCAN_SYNTAX:
    return "syntax";
  case JSCAN_TRUNCATED:
    return "truncated";
  case JSCAN_CONTROL:
    return "control_character";
  case JSCAN_ESCAPE:
    return "bad_escape";
  case JSCAN_UTF8:
    return "bad_utf8";
  case JSCAN_DEPTH:
    return "depth_limit";
  case JSCAN_NUMBER_RANGE:
    return "number_range";
  }
  return "?";
}

size_t jscan_skip(struct jscan *js, size_t from, size_t depth) {
  const char *text = js->text;
  assert(from <= js->n);
  size_t n = js->n - from > js->skip_left ? from + js->skip_left : js->n;
  size_t i = from, end = SIZE_MAX;
  for (; i < n; i++) {
    char c = text[i];
    if (c == '{' || c == '[') {
      depth++;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) {
        end = i + 1;
        break;
      }
    } else if (c == '"') {
      for (i++; i < n && text[i] != '"'; i++)
        if (text[i] == '\\')
          i++;
    }
  }
  js->skip_left -= (i < n ? i : n) - from;
  return end;
}

static size_t jscan_after_space(const char *text, size_t n, size_t i) {
  while (i < n && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t'))
    i++;
  return i;
}

static bool jscan_literal(const char *text, size_t n, size_t i, const char *word, size_t len) {
  return n - i >= len && memcmp(text + i, word, len) == 0;
}

/* Returns how a token is bad. A literal may be cut by the end of the text: "tru". */
static enum jscan_code jscan_bad_token(const char *text, size_t n, size_t i, size_t *at) {
  static const char *const words[] = {"true", "false", "null"};
  *at = i;
  for (size_t w = 0; w < 3; w++) {
    size_t k = 0;
    while (i + k < n && words[w][k] && text[i + k] == words[w][k])
      k++;
    if (k && i + k == n) {
      *at = n;
      return JSCAN_TRUNCATED;
    }
  }
  return JSCAN_SYNTAX;
}

/* Keeps the key: its value may need decoding too, and the key is stored after it. */
static void jscan_keep_key(struct jscan *js) {
  struct buf b = js->decoded;
  js->decoded = js->decoded_key;
  js->decoded_key = b;
}

struct jscan_frame {
  json_t *container; /* borrowed: each is already inside its parent */
  bool object;
  size_t members; /* those of an object that were read so far */
};

/* Puts v, which it consumes, into the innermost container, or makes it the root. */
static void jscan_place(struct jscan_frame *top, json_t **root, const char *key, size_t key_len,
                        json_t *v) {
  int failed = 0;
  if (!top)
    *root = v;
  else if (top->object)
    failed = json_object_setn_new_nocheck(top->container, key, key_len, v);
  else
    failed = json_array_append_new(top->container, v);
  if (v == NULL || failed)
    BUG("out of memory");
}

enum jscan_code jscan_value(struct jscan *js, size_t from, struct jscan_result *out) {
  const char *const text = js->text;
  const size_t n = js->n;
  assert(from <= n);
  struct jscan_frame stack[JSCAN_DEPTH_MAX];
  size_t depth = 0, i = from;
  json_t *root = NULL;
  const char *key = NULL;
  size_t key_len = 0;
  enum jscan_code code = JSCAN_SYNTAX;
  *out = (struct jscan_result){.last_string = SIZE_MAX};

value: /* at the first byte of a value; key is set when the innermost container is an object */
  if (i >= n) {
    code = JSCAN_TRUNCATED;
    goto fail;
  }
  json_t *v = NULL;
  struct jscan_frame *top = depth ? &stack[depth - 1] : NULL;
  switch (text[i]) {
  case '{':
  case '[': {
    bool object = text[i] == '{';
    if (depth == JSCAN_DEPTH_MAX) {
      size_t end = jscan_skip(js, i, depth);
      out->closed = end != SIZE_MAX;
      out->end = out->closed ? end : 0;
      code = JSCAN_DEPTH;
      goto fail;
    }
    /* An opener in prose is refused before anything is allocated. */
    size_t next = jscan_after_space(text, n, i + 1);
    if (object && depth == 0 && next < n && text[next] != '"' && text[next] != '}') {
      i = next;
      goto fail;
    }
    v = object ? json_object() : json_array();
    jscan_place(top, &root, key, key_len, v);
    stack[depth++] = (struct jscan_frame){v, object, 0};
    out->last_string = SIZE_MAX;
    i = next;
    if (i < n && text[i] == (object ? '}' : ']'))
      goto close;
    if (object)
      goto member;
    goto value;
  }
  case '"': {
    const char *p;
    size_t len, end;
    out->last_string = i;
    code = jscan_string(js, i + 1, &p, &len, &end);
    if (code != JSCAN_OK) {
      i = end;
      goto fail;
    }
    v = json_stringn_nocheck(p, len);
    i = end;
    break;
  }
  case '-':
  case '0':
  case '1':
  case '2':
  case '3':
  case '4':
  case '5':
  case '6':
  case '7':
  case '8':
  case '9': {
    size_t end;
    out->last_string = SIZE_MAX;
    code = jscan_number(text, n, i, &v, &end);
    i = end;
    if (code != JSCAN_OK)
      goto fail;
    break;
  }
  default:
    out->last_string = SIZE_MAX;
    if (jscan_literal(text, n, i, "true", 4)) {
      v = json_true();
      i += 4;
    } else if (jscan_literal(text, n, i, "false", 5)) {
      v = json_false();
      i += 5;
    } else if (jscan_literal(text, n, i, "null", 4)) {
      v = json_null();
      i += 4;
    } else {
      code = jscan_bad_token(text, n, i, &i);
      goto fail;
    }
  }
  jscan_place(top, &root, key, key_len, v);
  if (!depth)
    goto done;

next:
  i = jscan_after_space(text, n, i);
  code = JSCAN_TRUNCATED;
  if (i >= n)
    goto fail;
  code = JSCAN_SYNTAX;
  if (text[i] == ',') {
    out->last_string = SIZE_MAX;
    i = jscan_after_space(text, n, i + 1);
    if (stack[depth - 1].object)
      goto member;
    goto value;
  }
  if (text[i] != (stack[depth - 1].object ? '}' : ']'))
    goto fail;

close: /* at the closer of the innermost container */
  i++;
  out->last_string = SIZE_MAX;
  depth--;
  out->duplicate_key |=
      stack[depth].object && json_object_size(stack[depth].container) < stack[depth].members;
  if (depth)
    goto next;

done:
  out->value = root;
  out->end = i;
  return JSCAN_OK;

member: /* at the opening quote of a key */
  code = i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
  if (i >= n || text[i] != '"')
    goto fail;
  stack[depth - 1].members++;
  {
    size_t end;
    out->last_string = i;
    code = jscan_string(js, i + 1, &key, &key_len, &end);
    i = code == JSCAN_OK ? jscan_after_space(text, n, end) : end;
    if (code == JSCAN_OK && key == js->decoded.p)
      jscan_keep_key(js);
    if (code != JSCAN_OK)
      goto fail;
    code = i < n ? JSCAN_SYNTAX : JSCAN_TRUNCATED;
    if (i >= n || text[i] != ':')
      goto fail;
    out->member_seen = true;
    out->last_string = SIZE_MAX;
    i = jscan_after_space(text, n, i + 1);
    goto value;
  }

fail:
  json_decref(root);
  out->offset = i;
  return code;
}
