/* Finds protected paths among those that a turn changed. */
#include "core/protect.h"

#include "base/utf8.h"
#include "core/checks.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <ctype.h>
#include <string.h>

enum { TOLD_FILES = 20, TOLD_PATH_BYTES = 200, MATCH_STEPS = 100000 };

static struct str from_at(struct str s, size_t n) {
  return (struct str){s.p + n, s.n - n};
}

static bool match_at(struct str pattern, struct str path, long *steps);

/* Matches a star and what follows it, at each place that the star may reach. */
static bool match_star(struct str pattern, struct str path, long *steps) {
  bool deep = str_starts(pattern, "**");
  struct str rest = from_at(pattern, deep ? 2 : 1);
  if (deep && rest.n > 0 && rest.p[0] == '/' && match_at(from_at(rest, 1), path, steps))
    return true; /* the ** stands for no folder at all */
  for (size_t i = 0; i <= path.n; i++) {
    if (match_at(rest, from_at(path, i), steps))
      return true;
    if (i < path.n && path.p[i] == '/' && !deep)
      return false;
  }
  return false;
}

/* Matches from the start of both. `steps` bounds what a pattern with many stars can cost. */
static bool match_at(struct str pattern, struct str path, long *steps) {
  while (pattern.n > 0) {
    if (--*steps < 0)
      return true; /* whoever writes such a pattern wants protection */
    if (pattern.p[0] == '*')
      return match_star(pattern, path, steps);
    bool any = pattern.p[0] == '?' && path.n > 0 && path.p[0] != '/';
    if (path.n == 0 || (!any && pattern.p[0] != path.p[0]))
      return false;
    pattern = from_at(pattern, 1);
    path = from_at(path, 1);
  }
  return path.n == 0;
}

bool protect_matches(struct str pattern, struct str path) {
  long steps = MATCH_STEPS;
  bool below = pattern.n > 0 && pattern.p[pattern.n - 1] == '/';
  if (str_starts(pattern, "./"))
    pattern = from_at(pattern, 2);
  if (pattern.n > 0 && pattern.p[0] == '/')
    pattern = from_at(pattern, 1);
  if (below)
    return path.n > pattern.n && memcmp(pattern.p, path.p, pattern.n) == 0;
  if (match_at(pattern, path, &steps))
    return true;
  if (memchr(pattern.p, '/', pattern.n) != NULL)
    return false;
  for (size_t at = 0; at < path.n; at++) { /* the pattern names a file in any folder */
    struct str part = from_at(path, at);
    const char *slash = memchr(part.p, '/', part.n);
    part.n = slash ? (size_t)(slash - part.p) : part.n;
    if (match_at(pattern, part, &steps))
      return true;
    at += part.n;
  }
  return false;
}

static bool is_protected(const json_t *patterns, struct str path) {
  for (size_t i = 0; i < json_array_size(patterns); i++)
    if (protect_matches(json_view(json_array_get(patterns, i)), path))
      return true;
  return false;
}

bool protect_needs(const struct workflow *wf, struct str path) {
  bool needs = is_protected(wf->protect, path);
  for (size_t i = 0; i < wf->movement_count && !needs; i++)
    needs = checks_names(&wf->movements[i], path);
  return needs;
}

void protect_put_file(const json_t *file, struct buf *out) {
  struct str path = json_view(json_at(file, "path"));
  const json_t *added = json_at(file, "added"), *removed = json_at(file, "removed");
  bool plain = path.n > 0 && path.n <= TOLD_PATH_BYTES, cut = path.n > TOLD_PATH_BYTES;
  for (size_t i = 0; i < path.n && plain; i++)
    plain = isalnum((unsigned char)path.p[i]) || strchr("._/+-@=~%#", path.p[i]) != NULL;
  path.n = cut ? utf8_floor(path.p, TOLD_PATH_BYTES) : path.n;
  if (plain)
    buf_str(out, path);
  else
    json_write_string(path, out);
  buf_puts(out, cut ? "..." : "");
  if (added != NULL && removed != NULL)
    buf_printf(out, " +%" JSON_INTEGER_FORMAT " -%" JSON_INTEGER_FORMAT, json_integer_value(added),
               json_integer_value(removed));
}

bool protect_refuses(const struct core *core, const struct turn *turn, struct buf *why) {
  const json_t *patterns = core->workflow->protect, *file;
  struct str name = core->workflow->movements[turn->movement].name;
  const char *beside = turn->shared ? ", or what ran beside it," : "";
  size_t i, found = 0;
  if (patterns == NULL || turn->let_be)
    return false;
  json_array_foreach(turn->files, i, file) {
    if (!is_protected(patterns, json_view(json_at(file, "path"))))
      continue;
    if (found == 0)
      buf_printf(why, "\"" STR_FMT "\"%s changed what is protected: ", STR_ARG(name), beside);
    if (found++ >= TOLD_FILES)
      continue;
    buf_puts(why, found > 1 ? ", " : "");
    protect_put_file(file, why);
  }
  if (found > TOLD_FILES)
    buf_printf(why, " and %zu more", found - TOLD_FILES);
  if (found > 0) {
    buf_puts(why, "; put it back, or resume to let it be");
  } else if (turn->unseen != NULL) {
    buf_printf(
        why, "it is not known whether \"" STR_FMT "\" changed what is protected: ", STR_ARG(name));
    buf_safe(why, str_from(turn->unseen), false);
    buf_puts(why, "; look yourself, and resume to let it be");
  }
  return found > 0 || turn->unseen != NULL;
}
