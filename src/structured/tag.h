/* tag.h - the tag [NAME:N] in a text: which rule a reply or an agent named.
 *
 * Grammar: `[` name `:` digits `]`, no spaces, ASCII digits. The name is matched literally, byte by
 * byte, except that ASCII letters fold their case; so any UTF-8 name works and nothing in it is a
 * pattern. N is 1-based; 0 is no rule. Numbers too large for a long saturate (out of any range).
 *
 * A judge's reply may put its tag anywhere (fence, bold, inline code) but in its reasoning: the
 * sections that extract() skips are skipped here too. An opener without a closer hides what follows
 * it, a closer without an opener what stands before it.
 *
 * In an agent's own text, what is quoted is not evidence. Skipped are
 * - fenced code, also when the fence opens behind list markers, up to its closer or the text's end;
 *   indented code, inline code, block quotes;
 * - what stands between quotation marks in one paragraph, over line ends too; a mark that nothing
 *   closes behind the tag, an apostrophe and an inch mark quote nothing;
 * - closed elements that hold tool output, documents or messages (<log>, <details>, <user>, ...; a
 *   namespace before the name does not matter) and closed comments;
 * - reasoning elements, closed or cut off. */
#ifndef SEGUE_STRUCTURED_TAG_H
#define SEGUE_STRUCTURED_TAG_H

#include <stdbool.h>
#include <stddef.h>

enum tag_pick { TAG_LAST, TAG_FIRST }; /* [JUDGE:N]: the first wins; movement tags: the last */
enum tag_scope { TAG_REPLY, TAG_AGENT };

struct tag_result {
  bool found;
  long number;           /* of the picked tag; 0 when it names none */
  bool ambiguous;        /* two tags with different numbers were there */
  size_t offset, length; /* of the picked tag, bytes */
};

/* One pass over text; name without brackets. */
void tag_find(const char *text, size_t n, const char *name, size_t name_n, enum tag_pick pick,
              enum tag_scope scope, struct tag_result *out);

#endif
