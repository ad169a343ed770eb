/* scan.h - reads one RFC 8259 value from bytes, strictly, and builds a jansson tree.
 *
 * It exists because jansson's own reader refuses JSON that RFC 8259 allows: lone surrogates
 * (section 8.2), integers beyond 64 bits (section 6), \u0000, and values followed by other text.
 * Order of calls: jscan_init, any number of jscan_value, jscan_deinit. The text is borrowed and
 * need not end in NUL. All offsets and lengths are in bytes. A value handed out belongs to the
 * caller (json_decref).
 *
 * Corner cases:
 *  - lone surrogate escapes become U+FFFD; of duplicate keys the last wins; \u0000 is kept (use
 * json_string_length);
 *  - an integer that fits int64 is a JSON integer; one that does not fit is a JSON real, rounded to
 * nearest even;
 *  - a number whose magnitude is beyond a double (1e400) is JSCAN_NUMBER_RANGE; one too small
 * becomes 0;
 *  - nesting deeper than JSCAN_DEPTH_MAX is JSCAN_DEPTH; the rest of such a value is only skipped,
 * in linear time;
 *  - text inside strings must be UTF-8 (section 8.1), raw control characters are refused (section
 * 7).
 */
#ifndef SEGUE_JSON_SCAN_H
#define SEGUE_JSON_SCAN_H

#include "base/buf.h"
#include "base/log.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* nested containers; json_decref and every walker recurse once a level, so this also bounds their
 * stack */
#define JSCAN_DEPTH_MAX 256

enum jscan_code {
  JSCAN_OK,
  JSCAN_SYNTAX,      /* a byte that cannot be there */
  JSCAN_TRUNCATED,   /* the text ended inside the value */
  JSCAN_CONTROL,     /* raw control character in a string */
  JSCAN_ESCAPE,      /* unknown or incomplete escape in a string */
  JSCAN_UTF8,        /* a string is not UTF-8 */
  JSCAN_DEPTH,       /* nested deeper than JSCAN_DEPTH_MAX */
  JSCAN_NUMBER_RANGE /* number beyond a double */
};

struct jscan {
  const char *text;
  size_t n;
  struct buf decoded;     /* the last string that had escapes */
  struct buf decoded_key; /* a key that had escapes, waiting for its value */
  size_t skip_left; /* bytes that jscan_skip may still cross: 4 per byte of text keeps everything
                     * linear */
};

struct jscan_result {
  json_t *value;      /* NULL unless JSCAN_OK */
  size_t end;         /* OK: first byte after the value; DEPTH: after the skipped value */
  size_t offset;      /* byte at which it failed; n when truncated */
  size_t last_string; /* opening quote of the string directly before the failure, or SIZE_MAX */
  bool member_seen;   /* a quoted key and its colon were read: this was meant to be JSON */
  bool closed;        /* DEPTH only: the closing bracket was found, end is meaningful */
  bool duplicate_key; /* a key occurred twice in one object */
};

void jscan_init(struct jscan *js, const char *text, size_t n);
void jscan_deinit(struct jscan *js);

/* Reads the value that starts at offset `from` (no leading white space). Trailing text is left
 * alone. */
enum jscan_code jscan_value(struct jscan *js, size_t from, struct jscan_result *out);

/* Reads a text that is one value and nothing else, not even white space; JSCAN_SYNTAX if more
 * follows it. */
enum jscan_code jscan_whole(struct str text, struct jscan_result *out);

/* Decodes string content which starts after its opening quote at `from`: *p and *len point into the
 * text or into js->decoded and stay good until the next call; *end is the offset after the closing
 * quote, or of the failure. */
enum jscan_code jscan_string(struct jscan *js, size_t from, const char **p, size_t *len,
                             size_t *end);

/* Reads a number; *end is the offset after it, or of the failure. */
enum jscan_code jscan_number(const char *text, size_t n, size_t from, json_t **value, size_t *end);

/* Offset of the bracket's end: skips from `from`, which lies inside `depth` open brackets, to after
 * the closer of the outermost, minding double-quoted strings. SIZE_MAX when the text or
 * js->skip_left ends first. */
size_t jscan_skip(struct jscan *js, size_t from, size_t depth);

const char *
jscan_code_name(enum jscan_code code); /* "syntax", "depth_limit", "number_range", ... */

/* Returns whether c is one of the bytes of set. NUL never is, unlike with strchr. */
bool jscan_one_of(const char *set, char c);

/* Returns what jansson made, or aborts: it fails only when out of memory. */
static inline json_t *jscan_made(json_t *v) {
  if (v == NULL)
    BUG("out of memory");
  return v;
}

/* Returns true for what a name without quotes is made of, characters beyond ASCII included. */
static inline bool jscan_word_byte(char c) {
  return str_is_letter(c) || str_is_digit(c) || c == '_' || c == '$' || c == '-' || (c & 0x80);
}

#endif
