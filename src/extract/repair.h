/* repair.h - reads a value that was meant to be JSON but is not, and says what it changed.
 *
 * It is the extractor's last resort (see extract.h, rule 6), not a parser for a dialect: each rule
 * is for a mistake that models make, and of two possible readings the one with the nearer evidence
 * wins (what follows a quote decides whether it ends the string). Call repair_value once per place,
 * then repair_result_deinit. The text is borrowed. Work is bounded by REPAIR_WORK_FACTOR steps a
 * byte; beyond, it fails. Offsets in bytes.
 *
 * Names of repairs: quote_style, unescaped_quote, missing_quote, unquoted_key, unquoted_value,
 * control_character, bad_escape, bad_utf8, literal, number, missing_comma, extra_comma,
 * missing_colon, comment, ellipsis, concatenation, function_call, tuple, set, missing_bracket,
 * extra_bracket, wrong_bracket, truncated, implicit_object, merged_object, extra_quote, sequence,
 * escaped_text, quoted_lines, html_entities, punctuation, tool_call. These say that something was
 * left out: dropped_member, dropped_item, stray_text, duplicate_key.
 *
 * A number, or a piece of a literal, that ends with the text inside of something still open is left
 * out: 19 may have been 1999. A string that is cut there keeps what there is of it.
 *
 * Tokens are conserved: every word of the text is in the value, is a comment, or is reported as
 * left out; and the value holds nothing that was not in the text. A repair that cannot keep to
 * this, or would have to guess where a string ends, fails. */
#ifndef SEGUE_EXTRACT_REPAIR_H
#define SEGUE_EXTRACT_REPAIR_H

#include "base/buf.h"
#include "extract/extract.h"

#define REPAIR_WORK_FACTOR 24    /* steps (bytes looked at) allowed per byte of the whole text */
#define REPAIR_WORK_MIN    65536 /* steps allowed for a text of any size */
#define REPAIR_KEY_MAX     256   /* bytes of a key that looking ahead will cross */

struct repair_job {
  const char *text;
  size_t from;  /* at an opener, or wherever a bare value or member starts */
  size_t limit; /* nothing from here on belongs to it */
  /* a schema decides what may be missing: a member without a value is left out, where else the
   * repair fails; a key given twice with two values makes it fail */
  bool said_only;
  bool zeros;    /* read 007 as 7; without, it is text, because codes and ids look like that */
  bool members;  /* `from` is at the first member of an object whose brace is missing */
  bool last;     /* the whole text ends at the limit */
  bool copy;     /* it was written anew, and may be strict JSON now */
  bool sequence; /* several values up to the limit, separated by commas or lines, make one array */
};

struct repair_result {
  json_t *value; /* owned */
  size_t end;    /* offset after what was read */
  bool truncated;
  bool code_like; /* an unquoted value holds a semicolon or a call: likely source code, not data */
  size_t key_count;
  size_t work_used;               /* set in every case */
  struct extract_repair *repairs; /* owned */
  size_t repairs_listed, repairs_room, repair_count;
};

/* A copy of a stretch of text that leaves out what covers all of it, with the offset in the text
 * for each byte of the copy and for its end. */
struct repair_copy {
  struct buf text;
  uint32_t *at; /* owned */
  size_t room;
};

/* The ways to write a text anew before it is read, in the order in which they are tried. */
extern const struct repair_way {
  /* false: there is nothing of the kind in it */
  bool (*copy)(struct repair_copy *c, const char *text, size_t from, size_t limit);
  const char *name;
  bool plain; /* only if nothing about quotes is in doubt then */
} repair_ways[];
enum { REPAIR_WAY_PUNCTUATION = 4, REPAIR_WAY_CALL = 6, REPAIR_WAY_COUNT = 8 };

/* Looks for a bracket that nothing closes or opens there. Returns 0, or the first that is wrong. */
enum { REPAIR_STRAY_CLOSER = 1, REPAIR_UNCLOSED = 2 };
unsigned repair_brackets(struct str text);

/* Returns false if no value can be read there; only out->work_used says something then. */
bool repair_value(const struct repair_job *job, size_t work_max, struct repair_result *out)
    __attribute__((warn_unused_result));
void repair_result_deinit(struct repair_result *r);

#endif
