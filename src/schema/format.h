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

/* Addresses, as a pattern that ECMA-262 and PCRE2 read alike. */
#define FORMAT_BYTE   "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define FORMAT_IPV4   FORMAT_BYTE "\\." FORMAT_BYTE "\\." FORMAT_BYTE "\\." FORMAT_BYTE
#define FORMAT_H16    "[0-9A-Fa-f]{1,4}"
#define FORMAT_LAST32 "(" FORMAT_H16 ":" FORMAT_H16 "|" FORMAT_IPV4 ")"
#define FORMAT_IPV6                                                                                \
  "((" FORMAT_H16 ":){6}" FORMAT_LAST32 "|::(" FORMAT_H16 ":){5}" FORMAT_LAST32 "|(" FORMAT_H16    \
  ")?::(" FORMAT_H16 ":){4}" FORMAT_LAST32 "|((" FORMAT_H16 ":){0,1}" FORMAT_H16                   \
  ")?::(" FORMAT_H16 ":){3}" FORMAT_LAST32 "|((" FORMAT_H16 ":){0,2}" FORMAT_H16                   \
  ")?::(" FORMAT_H16 ":){2}" FORMAT_LAST32 "|((" FORMAT_H16 ":){0,3}" FORMAT_H16 ")?::" FORMAT_H16 \
  ":" FORMAT_LAST32 "|((" FORMAT_H16 ":){0,4}" FORMAT_H16 ")?::" FORMAT_LAST32 "|((" FORMAT_H16    \
  ":){0,5}" FORMAT_H16 ")?::" FORMAT_H16 "|((" FORMAT_H16 ":){0,6}" FORMAT_H16 ")?::)"

#endif
