/* line_text.h - JSON, names and sentences as parts of one line of a rendering; internal. What comes
 * from a schema can never start a line, end a code fence or steer a terminal: such characters
 * become \u escapes in JSON and blanks in sentences. */
#ifndef SEGUE_RENDER_LINE_TEXT_H
#define SEGUE_RENDER_LINE_TEXT_H

#include "schema/support.h"

/* Appends the value on one line. `spaced`: a blank after ',' and ':'. */
void render_json(const json_t *value, bool spaced, struct buf *out);
/* Appends a JSON string in quotes. */
void render_quoted(const char *bytes, size_t length, struct buf *out);
/* Appends the fewest digits that read back as the same number; 1.0 is "1". */
void render_number(const json_t *value, struct buf *out);
/* Appends a text as it is if it is a plain word, else as a JSON string. */
void render_name(const char *bytes, size_t length, struct buf *out);
/* Appends a regular expression: as it is if it is plain text, else as a JSON string. */
void render_pattern(const char *text, struct buf *out);
/* Appends a sentence: white space, line ends and controls become single blanks. */
void render_sentence(const char *text, struct buf *out);

#endif
