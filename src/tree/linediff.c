/* Counts the lines that a change added and removed. */
#include "tree/linediff.h"

#include "base/log.h"

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

/* Number of edits of the shortest script, -1 when it is over MAX_EDITS. */
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

void linediff_count(struct str before, struct str after, long *added, long *removed) {
  long n, m, head = 0;
  struct str *a = split(before, &n), *b = split(after, &m);
  while (head < n && head < m && str_eq(a[head], b[head]))
    head++;
  long rest_a = n - head, rest_b = m - head;
  while (rest_a > 0 && rest_b > 0 && str_eq(a[head + rest_a - 1], b[head + rest_b - 1])) {
    rest_a--;
    rest_b--;
  }
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
