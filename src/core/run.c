/* Reads entries of `run:` and compares command lines with them. */
#include "core/run.h"

#include "base/limits.h"

#include <string.h>

static bool run_is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c != '\0' && strchr("_./+@%=-", c) != NULL);
}

const char *run_fault(struct str entry) {
  if (entry.n == 0 || entry.n > LIMIT_NAME_BYTES * 2)
    return "must be a program and perhaps its first arguments, of 1 to 256 bytes";
  if (!run_is_plain(entry.p[0]) || strchr("-=", entry.p[0]) != NULL || entry.p[entry.n - 1] == ' ')
    return "must begin and end with a word: make, ./dev, npm test";
  for (size_t i = 0; i < entry.n; i++)
    if (!run_is_plain(entry.p[i]) && (entry.p[i] != ' ' || entry.p[i - 1] == ' '))
      return "holds more than plain words: name a program, or a script of yours that does it";
  const char *space = memchr(entry.p, ' ', entry.n);
  size_t first = space ? (size_t)(space - entry.p) : entry.n;
  if (memchr(entry.p, '=', first) != NULL)
    return "begins with a variable: name the program alone";
  return NULL;
}

/* Returns false if a shell would make more than one plain command of it, or write a file. Quotes
 * change nothing: special characters inside them are refused too. */
static bool is_one_command(struct str line) {
  for (size_t i = 0; i < line.n; i++)
    if (line.p[i] == '\0' || strchr("\n\r;&|<>`$()\\", line.p[i]) != NULL)
      return false;
  return true;
}

bool run_covers(struct str entry, struct str command) {
  static const char both[] = " 2>&1"; /* agents like to add it, and it writes no file */
  struct str line = str_trim(command);
  size_t n = sizeof both - 1;
  if (line.n > n && memcmp(line.p + line.n - n, both, n) == 0)
    line = str_trim((struct str){line.p, line.n - n});
  if (entry.n == 0 || line.n < entry.n || memcmp(line.p, entry.p, entry.n) != 0 ||
      !is_one_command(line))
    return false;
  return line.n == entry.n || line.p[entry.n] == ' ' || line.p[entry.n] == '\t';
}
