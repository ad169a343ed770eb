/* pattern.h - ECMA-262 regular expressions (unicode mode) on PCRE2, as for JSON Schema's `pattern`.
 *
 * A pattern is translated, so that PCRE2's extras are refused and differences (\s, ., $, \p names)
 * follow ECMA-262. Matching is unanchored and bounded: patterns and texts may come from anyone.
 *
 * Calling order: pattern_compile, pattern_match any number of times, pattern_free. A compiled
 * pattern is immutable and may be shared between threads; a scratch may not.
 *
 * Lone surrogates and look-behinds of variable length are refused. Rules from: ECMA-262
 * section 22.2.1, pcre2pattern(3).
 */
#ifndef SEGUE_SCHEMA_PATTERN_H
#define SEGUE_SCHEMA_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PATTERN_LENGTH_MAX = 65536,       /* bytes of a pattern */
  PATTERN_NESTING_MAX = 100,        /* levels of groups */
  PATTERN_STEPS_MAX = 100000,       /* backtracking steps from one start position */
  PATTERN_TOTAL_STEPS_MAX = 2000000 /* the same over all start positions of one text */
};

enum pattern_status { PATTERN_OK, PATTERN_INVALID };
enum pattern_result { PATTERN_MATCH, PATTERN_NO_MATCH, PATTERN_TOO_COMPLEX };

struct pattern;

struct pattern_error {
  size_t offset; /* bytes into the pattern */
  char text[160];
};

/* Holds working memory for successive matches; zero it before the first, deinit it after the
 * last. */
struct pattern_scratch {
  void *match_data, *match_context;
  uint64_t
      cost; /* grows with each match, in units of some 20 ns; the caller may set limits on it */
  size_t used;
  _Alignas(16) unsigned char memory[512];
};

/* Compiles a pattern that pattern_free frees. `error` may be NULL. */
enum pattern_status pattern_compile(const char *text, size_t length, struct pattern **pattern,
                                    struct pattern_error *error)
    __attribute__((warn_unused_result));
void pattern_free(struct pattern *pattern);

/* Makes later matches faster where the machine permits it. It costs about 50 us, and often more
 * memory than the pattern itself, up to a few MiB. Call it before the pattern is shared. */
void pattern_speed_up(struct pattern *pattern);
/* Returns the compiled size in bytes, including what pattern_speed_up added. */
size_t pattern_bytes(const struct pattern *pattern);

/* Does what pattern_compile does for a text in PCRE2's own syntax: for this room's constants, never
 * for data. */
enum pattern_status pattern_compile_engine(const char *text, size_t length,
                                           struct pattern **pattern)
    __attribute__((warn_unused_result));

/* Tells whether `pattern` matches anywhere in `text` (UTF-8; invalid UTF-8 never matches). */
enum pattern_result pattern_match(const struct pattern *pattern, struct pattern_scratch *scratch,
                                  const char *text, size_t length);
void pattern_scratch_deinit(struct pattern_scratch *scratch);

#endif
