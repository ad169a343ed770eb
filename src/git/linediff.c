/* Counts the lines that a change added and removed, and lists them. */
#include "git/linediff.h"

#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EDITS = 1000 };

static struct str *split(struct str text, long *count) {
  struct str *lines = NULL, rest = text;
  long n = 0;
  while (rest.p != NULL && rest.n > 0) {
    if (n % 256 == 0)
      lines = xrealloc(lines, (size_t)(n + 256) * sizeof *lines);
    lines[n++] = str_next_line(&rest);
  }
  *count = n;
  return lines;
}

/* Returns the number of edits of the shortest script, -1 if it is over MAX_EDITS. */
static long edits(const struct str *a, long n, const struct str *b, long m) {
  long max = n + m < MAX_EDITS ? n + m : MAX_EDITS, found = -1;
  long *furthest = xcalloc((size_t)(2 * max + 2), sizeof *furthest), *v = furthest + max;
  for (long d = 0; d <= max && found < 0; d++)
    for (long k = -d; k <= d; k += 2) {
      long x = k == -d || (k != d && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1;
      if (d == 0)
        x = 0;
      long y = x - k;
      while (x < n && y < m && str_eq(a[x], b[y])) {
        x++;
        y++;
      }
      v[k] = x;
      if (x >= n && y >= m) {
        found = d;
        break;
      }
    }
  free(furthest);
  return found;
}

/* Strips the lines that both have before and after those that differ. */
static void common_ends(const struct str *a, const struct str *b, long *head, long *rest_a,
                        long *rest_b) {
  long n = *rest_a, m = *rest_b, at = 0;
  while (at < n && at < m && str_eq(a[at], b[at]))
    at++;
  n -= at;
  m -= at;
  while (n > 0 && m > 0 && str_eq(a[at + n - 1], b[at + m - 1])) {
    n--;
    m--;
  }
  *head = at;
  *rest_a = n;
  *rest_b = m;
}

void linediff_count(struct str before, struct str after, long *added, long *removed) {
  assert(added != NULL && removed != NULL);
  long rest_a, rest_b, head;
  struct str *a = split(before, &rest_a), *b = split(after, &rest_b);
  common_ends(a, b, &head, &rest_a, &rest_b);
  long d = rest_a == 0 || rest_b == 0 ? rest_a + rest_b : edits(a + head, rest_a, b + head, rest_b);
  if (d < 0) {
    *added = rest_b;
    *removed = rest_a;
  } else { /* added - removed = rest_b - rest_a, added + removed = d */
    *added = (d + rest_b - rest_a) / 2;
    *removed = d - *added;
  }
  free(a);
  free(b);
}

/* --- the lines --- */

struct script { /* a change's lines, of both sides, in order */
  struct linediff_line *lines;
  size_t count, room;
};

static void script_put(struct script *s, char sign, struct str text) {
  s->lines = xgrow(s->lines, &s->room, s->count + 1, sizeof *s->lines);
  s->lines[s->count++] = (struct linediff_line){.sign = sign, .text = text, .count = 1};
}

static void script_put_all(struct script *s, char sign, const struct str *lines, long n) {
  for (long i = 0; i < n; i++)
    script_put(s, sign, lines[i]);
}

/* Returns the furthest point on diagonal k in the round before. */
static long step_from(const int *v, long d, long k, bool *down) {
  *down = k == -d || (k != d && v[k - 1] < v[k + 1]);
  if (d == 0)
    return 0;
  return *down ? v[k + 1] : v[k - 1] + 1;
}

/* Walks back from the end, so the lines come in reverse. trace: the furthest points before each
 * round, those of round d from trace[d * d] on. */
static void script_back(struct script *s, const int *trace, long d, const struct str *a, long x,
                        const struct str *b, long y) {
  for (; d >= 0; d--) {
    const int *v = trace + d * d + d;
    long k = x - y;
    bool down;
    long from = step_from(v, d, k, &down);
    for (; x > from && y > from - k; y--)
      script_put(s, ' ', a[--x]);
    if (d == 0)
      break;
    if (down)
      script_put(s, '+', b[--y]);
    else
      script_put(s, '-', a[--x]);
  }
}

/* Finds the script; false if it is over MAX_EDITS. The lines come in reverse. */
static bool script_find(struct script *s, const struct str *a, long n, const struct str *b,
                        long m) {
  long max = n + m < MAX_EDITS ? n + m : MAX_EDITS, found = -1;
  int *trace = xcalloc((size_t)((max + 1) * (max + 1)), sizeof *trace);
  int *furthest = xcalloc((size_t)(2 * max + 3), sizeof *furthest), *v = furthest + max + 1;
  for (long d = 0; d <= max && found < 0; d++) {
    bool down;
    memcpy(trace + d * d, v - d, (size_t)(2 * d + 1) * sizeof *v);
    for (long k = -d; k <= d && found < 0; k += 2) {
      long x = step_from(v, d, k, &down);
      for (; x < n && x - k < m && str_eq(a[x], b[x - k]); x++)
        continue;
      v[k] = (int)x;
      if (x >= n && x - k >= m)
        found = d;
    }
  }
  if (found >= 0)
    script_back(s, trace, found, a, n, b, m);
  free(furthest);
  free(trace);
  return found >= 0;
}

/* Folds lines of both that are far from any change into one '@'. */
static void script_fold(struct script *s, long context) {
  size_t out = 0;
  for (size_t i = 0; i < s->count;) {
    size_t n = i;
    while (n < s->count && s->lines[n].sign == ' ')
      n++;
    size_t before = i > 0 ? (size_t)context : 0, behind = n < s->count ? (size_t)context : 0;
    bool folds = n - i > before + behind + 1;
    struct linediff_line left = {'@', {"", 0}, folds ? (long)(n - i - before - behind) : 0};
    for (size_t k = i; k < n; k++)
      if (!folds || k - i < before || n - k <= behind)
        s->lines[out++] = s->lines[k];
      else if (k - i == before)
        s->lines[out++] = left;
    for (i = n; i < s->count && s->lines[i].sign != ' '; i++)
      s->lines[out++] = s->lines[i];
  }
  s->count = out;
}

struct linediff_line *linediff_lines(struct str before, struct str after, long context,
                                     size_t *count) {
  assert(count != NULL);
  struct script s = {0};
  long n, m, head;
  struct str *a = split(before, &n), *b = split(after, &m);
  long rest_a = n, rest_b = m;
  common_ends(a, b, &head, &rest_a, &rest_b);
  script_put_all(&s, ' ', a, head);
  if (rest_a > 0 && rest_b > 0 && script_find(&s, a + head, rest_a, b + head, rest_b)) {
    for (size_t i = (size_t)head, k = s.count; i + 1 < k; i++) {
      struct linediff_line kept = s.lines[i];
      s.lines[i] = s.lines[--k];
      s.lines[k] = kept;
    }
  } else {
    script_put_all(&s, '-', a + head, rest_a);
    script_put_all(&s, '+', b + head, rest_b);
  }
  script_put_all(&s, ' ', a + head + rest_a, n - head - rest_a);
  script_fold(&s, context);
  free(a);
  free(b);
  *count = s.count;
  return s.lines;
}
