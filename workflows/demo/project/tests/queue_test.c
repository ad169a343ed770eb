#include "queue.h"

#include <stdio.h>

static int run, failed;

static void check(const char *name, bool ok) {
  run++;
  failed += !ok;
  printf("%s  %s\n", ok ? "ok  " : "FAIL", name);
}

static bool fill(struct queue *q) {
  bool ok = true;
  for (int i = 1; i <= QUEUE_MAX; i++)
    ok = queue_push(q, i) && ok;
  return ok;
}

int main(void) {
  struct queue empty = {0}, order = {0}, wrap = {0}, full = {0}, keep = {0};
  int a = 0, b = 0, value = 0;
  check("an empty queue gives nothing", !queue_pop(&empty, &value));
  queue_push(&order, 1);
  queue_push(&order, 2);
  check("first in, first out", queue_pop(&order, &a) && queue_pop(&order, &b) && a == 1 && b == 2);
  fill(&wrap);
  queue_pop(&wrap, &a);
  check("it goes round", queue_push(&wrap, 5) && queue_pop(&wrap, &b) && b == 2);
  check("a full queue refuses", fill(&full) && !queue_push(&full, 5));
  fill(&keep);
  queue_push(&keep, 5);
  check("what is in it stays", queue_pop(&keep, &a) && a == 1);
  if (failed)
    printf("%d of %d fail\n", failed, run);
  else
    printf("%d of %d pass\n", run, run);
  return failed > 0;
}
