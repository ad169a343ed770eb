/* format.h - shared by the files that check `format`, and by no others. */
#ifndef SEGUE_SCHEMA_FORMAT_H
#define SEGUE_SCHEMA_FORMAT_H

#include "schema/support.h"

struct format_cursor {
  const char *p, *end;
};
bool schema_cursor_digits(struct format_cursor *c, int count, int *value); /* exactly `count` */
bool schema_cursor_char(struct format_cursor *c, char wanted);
/* Reads Z or an offset from UTC (RFC 3339), as the minutes from local time to UTC. */
bool schema_cursor_zone(struct format_cursor *c, int *minutes);

static inline bool is_alnum(char c) {
  return str_is_letter(c) || str_is_digit(c);
}
static inline bool is_hex(char c) {
  return str_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

#endif
