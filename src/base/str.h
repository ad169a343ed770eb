/* str.h - a borrowed view of bytes, and what is done with text everywhere.
 *
 * A view never owns and need not end in NUL. UTF-8 is checked as RFC 3629 says (no surrogates, no
 * overlong forms, nothing above U+10FFFF). */
#ifndef SEGUE_BASE_STR_H
#define SEGUE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
  const char *p;
  size_t n;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_FMT      "%.*s"
#define STR_ARG(s)   (int)(s).n, (s).p

struct str str_from(const char *s); /* NULL gives the empty view */
bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
bool str_starts(struct str s, const char *prefix);
struct str str_trim(struct str s);          /* ASCII white space at both ends */
struct str str_next_line(struct str *rest); /* without its newline; rest->p = NULL at the end */
bool str_to_long(struct str s, long *out);  /* the whole view, decimal, no white space */

/* A number in decimal, NUL-terminated; its length. Where a log writes many, snprintf is seen. */
enum { STR_NUMBER_BYTES = 24 };
size_t str_from_number(char out[STR_NUMBER_BYTES], int64_t value);

/* Length in bytes of the well-formed UTF-8 sequence at p (n bytes there), 0 = ill-formed.
 * `cp` may be NULL. */
size_t utf8_decode(const char *p, size_t n, uint32_t *cp);
bool utf8_valid(const char *p, size_t n);
/* Columns a terminal uses for it: 0 for combining marks, 2 for East Asian wide, else 1. */
int utf8_width(uint32_t cp);
/* Largest n' <= n that does not cut a sequence. */
size_t utf8_floor(const char *p, size_t n);

/* For "did you mean": of a NULL-ended list the name with the fewest edits, within a bound, else the
 * first that begins like it; or NULL. */
const char *str_nearest(struct str word, const char *const *names);

#endif
