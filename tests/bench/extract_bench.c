/* Speed of the extractor on one core: the scan alone on prose, and with the tree built against
 * json_loads on the same valid text. Prints the best of several runs; the targets are in the issue
 * (900 MB/s, 1.5 times). */
#include "structured/extract.h"
#include "structured/jscan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static char *grow(const char *piece, size_t n, size_t *total) {
  size_t len = strlen(piece);
  char *text = malloc(n + len);
  if (!text)
    exit(1);
  for (*total = 0; *total < n; *total += len)
    memcpy(text + *total, piece, len);
  return text;
}

static double best_extract(const char *text, size_t n, int runs) {
  double best = 1e9;
  for (int i = 0; i < runs; i++) {
    struct extract_result r;
    double t = now();
    (void)extract(text, n, NULL, &r);
    t = now() - t;
    extract_result_deinit(&r);
    best = t < best ? t : best;
  }
  return best;
}

static double best_loads(const char *text, size_t n, int runs) {
  double best = 1e9;
  for (int i = 0; i < runs; i++) {
    double t = now();
    json_t *v = json_loadb(text, n, 0, NULL);
    t = now() - t;
    if (!v)
      exit(1);
    json_decref(v);
    best = t < best ? t : best;
  }
  return best;
}

static void compare(const char *what, const char *text, size_t n, int runs) {
  double ours = best_extract(text, n, runs), theirs = best_loads(text, n, runs);
  printf("tree  %-28s %7.0f MB/s  json_loads %6.0f MB/s  ratio %.2f (target 1.50)\n", what,
         (double)n / ours / 1e6, (double)n / theirs / 1e6, theirs / ours);
}

int main(void) {
  static const struct {
    const char *what, *piece;
  } prose[] = {
      {"plain prose",
       "The quick review found nothing to change; every test passes, and the build is "
       "clean on both compilers. It\xE2\x80\x99s ready.\n"},
      {"prose with markdown",
       "See `main.c` and [the notes](docs/notes.md) for **details**, x < y, "
       "and the {option} switch; the rest of this long line is ordinary text.\n"},
      {"prose, not ASCII",
       "\xE5\xAE\x8C\xE4\xBA\x86\xE3\x81\x97\xE3\x81\xBE\xE3\x81\x97\xE3\x81\x9F"
       "\xE3\x80\x82\xE6\xAC\xA1\xE3\x81\xAB\xE9\x80\xB2\xE3\x81\xBF\xE3\x81\xBE"
       "\xE3\x81\x99\xE3\x80\x82\n"},
  };
  for (size_t i = 0; i < sizeof prose / sizeof *prose; i++) {
    size_t n;
    char *text = grow(prose[i].piece, 16u << 20, &n);
    double t = best_extract(text, n, 9);
    printf("scan  %-28s %7.0f MB/s (target 900)\n", prose[i].what, (double)n / t / 1e6);
    free(text);
  }

  size_t size = 4u << 20, n = 0;
  char *text = malloc(size);
  if (!text)
    return 1;
  n += (size_t)snprintf(text, size, "{\"items\":[");
  for (int i = 0; i < 6000; i++)
    n += (size_t)snprintf(
        text + n, size - n,
        "%s{\"id\":%d,\"name\":\"item \\\"%d\\\" {x}\",\"tags\":[\"a\",\"b\"],\"score\":%d.%d,"
        "\"note\":\"a longer text that is there to be copied, with a brace } and more\"}",
        i ? "," : "", i, i, i % 10, i % 97);
  n += (size_t)snprintf(text + n, size - n, "]}");
  compare("1 MB of objects", text, n, 15);

  n = (size_t)snprintf(text, size, "[0");
  for (int i = 1; n < 1000000; i++)
    n += (size_t)snprintf(text + n, size - n, ",\n  %d.%d, %d", i, i % 1000, -i);
  n += (size_t)snprintf(text + n, size - n, "]");
  compare("1 MB of numbers", text, n, 15);

  n = (size_t)snprintf(text, size, "[\"\"");
  while (n < 1000000)
    n += (size_t)snprintf(
        text + n, size - n, ",\"%s\"",
        "A paragraph of text such as a model writes into a string. It has no escapes "
        "but runs on for a while, so that copying is what it costs to read it.");
  n += (size_t)snprintf(text + n, size - n, "]");
  compare("1 MB of strings", text, n, 15);

  const char *judgment =
      "{\"step\": 2, \"reason\": \"the tests pass and the build is clean, so done\"}";
  double ours = 1e9, theirs = 1e9;
  for (int k = 0; k < 9; k++) {
    double t = now();
    for (int i = 0; i < 100000; i++) {
      struct extract_result r;
      (void)extract(judgment, strlen(judgment), NULL, &r);
      extract_result_deinit(&r);
    }
    t = now() - t;
    ours = t < ours ? t : ours;
    t = now();
    for (int i = 0; i < 100000; i++)
      json_decref(json_loadb(judgment, strlen(judgment), 0, NULL));
    t = now() - t;
    theirs = t < theirs ? t : theirs;
  }
  printf("tree  %-28s %7.0f ns    json_loads %6.0f ns    ratio %.2f\n", "a judgment", ours * 1e4,
         theirs * 1e4, theirs / ours);
  free(text);
  return 0;
}
