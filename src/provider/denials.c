/* Finds refusals in what programs print. */
#include "provider/denials.h"

#include "base/err.h"

#include <string.h>

static const char refusals[] =
    "permission denied|Permission denied|EACCES|EPERM|Operation not permitted|"
    "Read-only file system|EROFS";
static const char writes[] =
    "touch|creat|writ|mkdir|remov|unlink|rename|rm:|mv:|cp:|tee:|Read-only|EROFS|ln:|rmdir|chmod|"
    "truncat|copyfile|Directory nonexistent";
static const char unreached[] =
    "Network is unreachable|ENETUNREACH|emporary failure in name resolution|EAI_AGAIN|"
    "Could not resolve host|Could not resolve proxy";
static const char gone[] = "No such file or directory|ENOENT";
static const char nets[] = "connect|socket|bind|listen|sendto|getaddrinfo";

static bool begins_path(struct str text) {
  return str_starts(text, "/") || str_starts(text, "~/") || str_starts(text, "../");
}

/* Finds the last path in quotes: those before it are often programs. */
static bool quoted_path(struct str line, struct str *path) {
  bool found = false;
  for (size_t i = 0; i + 1 < line.n; i++) {
    const char *end;
    if (strchr("'\"`", line.p[i]) == NULL ||
        (end = memchr(line.p + i + 1, line.p[i] == '`' ? '\'' : line.p[i], line.n - i - 1)) == NULL)
      continue;
    struct str inner = {line.p + i + 1, (size_t)(end - line.p) - i - 1};
    if (begins_path(inner)) {
      *path = inner;
      found = true;
      i = (size_t)(end - line.p);
    }
  }
  return found;
}

/* Finds the last bare path: it ends at a space, or at a colon before a space or the line's end. */
static bool bare_path(struct str line, struct str *path) {
  bool found = false;
  for (size_t i = 0; i < line.n; i++) {
    struct str rest = (struct str){line.p + i, line.n - i};
    if ((i > 0 && strchr(" \t=([", line.p[i - 1]) == NULL) || !begins_path(rest))
      continue;
    size_t n = 0;
    while (n < rest.n && strchr(" \t),]", rest.p[n]) == NULL &&
           !(rest.p[n] == ':' && (n + 1 == rest.n || rest.p[n + 1] == ' ')))
      n++;
    *path = (struct str){rest.p, n};
    found = true;
    i += n;
  }
  return found;
}

bool denial_next(struct str *rest, struct str *path, enum denial_kind *kind) {
  while (rest->n > 0) {
    struct str line = str_next_line(rest);
    if (line.n > 4096 || memchr(line.p, '\0', line.n) != NULL)
      continue;
    *path = STR("");
    *kind = DENIAL_NETWORK;
    if (str_has_any(line, unreached))
      return true;
    *kind = DENIAL_HIDDEN;
    /* A sandbox hides only what is of a home: elsewhere programs often look for files that do not
     * exist. */
    if (str_has_any(line, gone) && (quoted_path(line, path) || bare_path(line, path)) &&
        (str_starts(*path, "~/") || str_starts(*path, "/home/") || str_starts(*path, "/root/") ||
         str_has(*path, "/.")))
      return true;
    *path = STR("");
    if (!str_has_any(line, refusals))
      continue;
    if (quoted_path(line, path) || bare_path(line, path)) {
      *kind = str_has_any(line, writes) ? DENIAL_WRITE : DENIAL_ACCESS;
      return true;
    }
    *kind = DENIAL_NETWORK;
    if (str_has_any(line, nets))
      return true;
  }
  return false;
}
