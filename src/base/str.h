/* str.h - a borrowed view of bytes, and the text helpers used everywhere.
 *
 * A view never owns and need not end in NUL. */
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
/* Does the same in a static table. */
#define STR_INIT(literal)                                                                          \
  { (literal), sizeof(literal) - 1 }
/* A literal and its length, as the last two arguments of memcmp, buf_append and their like. */
#define LIT(literal) (literal), sizeof(literal) - 1
#define STR_FMT      "%.*s"
#define STR_ARG(s)   (int)(s).n, (s).p

/* ASCII, whatever the locale. */
static inline bool str_is_digit(char c) {
  return c >= '0' && c <= '9';
}
static inline bool str_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool str_is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
static inline char str_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

struct str str_from(const char *s); /* NULL gives the empty view */
bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *b);
bool str_starts(struct str s, const char *prefix);
bool str_ends(struct str s, const char *suffix);
bool str_has(struct str s, const char *part);
bool str_eq_fold(struct str a, const char *b); /* case of ASCII letters does not count */
bool str_starts_fold(struct str s, const char *prefix);
bool str_has_any(struct str s, const char *parts);  /* which stand one | apart */
bool str_among(struct str word, const char *words); /* which stand one space apart */
struct str str_trim(struct str s);                  /* ASCII white space at both ends */
bool str_has_control(struct str s);                 /* ASCII control characters, DEL */
bool str_is_variable(struct str s);                 /* can be the name of an environment variable */
/* Takes what stands before the next `at` off the front, and `at`. rest->p = NULL at the end. */
struct str str_cut(struct str *rest, char at);
struct str str_next_line(struct str *rest);       /* the same of lines */
bool str_drop(struct str *s, const char *prefix); /* takes it off the front, if it is there */
bool str_to_long(struct str s, long *out);        /* the whole view, decimal, no white space */

/* Writes a number in decimal, NUL-terminated, and returns its length. Logs write so many that
 * snprintf shows up in profiles. */
enum { STR_NUMBER_BYTES = 24 };
size_t str_from_number(char out[STR_NUMBER_BYTES], int64_t value);
/* Writes the shortest decimal that is read as the same double again. */
enum { STR_REAL_BYTES = 32 };
void str_from_real(char out[STR_REAL_BYTES], double value);

/* Prints into an array of `size` bytes, like snprintf: what has no room is cut, at whatever byte.
 * For names and messages whose room is known to do; a buf grows. */
void print_into(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The value of a hexadecimal digit; -1: it is none. */
int str_hex_digit(char c);

/* For "did you mean": whether a few edits turn one into the other, and how many. Both must be
 * short. */
bool str_near(struct str word, struct str name, size_t *distance);
/* For "did you mean": the name in a NULL-ended list that is fewest edits away, within a bound, or
 * else the first that begins like the word; or NULL. */
const char *str_nearest(struct str word, const char *const *names);
/* The end of a message about an unknown word: ": did you mean "NAME"?", or nothing. */
struct str_hint {
  char text[80];
};
struct str_hint str_hint(struct str word, const char *const *names);
/* How many bytes in front are ASCII letters, digits or one of `also`. */
size_t str_span(struct str s, const char *also);
size_t str_count(const char *const *list);                  /* of a NULL-ended list, or NULL */
bool str_is_one(struct str word, const char *const *names); /* of a NULL-ended list */
/* Where it stands in a list, -1: nowhere. */
int str_index(struct str word, const char *const *names, size_t count);

#endif
