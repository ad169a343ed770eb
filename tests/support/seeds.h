/* seeds.h - which seeds a simulation plays. All of them with SEGUE_TEST_ALL; else a fourth, another
 * one at each commit (SEGUE_TEST_SEED). SEGUE_SIM_SEEDS=N plays the first N, SEGUE_SIM_SEED=S only
 * that one. */
#ifndef SEGUE_TESTS_SEEDS_H
#define SEGUE_TESTS_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct seeds {
  uint64_t first, count;
  bool whole; /* enough of them to reach all that they are for */
};

static struct seeds seeds_asked(uint64_t all) {
  const char *one = getenv("SEGUE_SIM_SEED"), *many = getenv("SEGUE_SIM_SEEDS");
  const char *drawn = getenv("SEGUE_TEST_SEED");
  struct seeds s = {1, all, false};
  if (one != NULL) {
    s.first = strtoull(one, NULL, 10);
    s.count = 1;
  } else if (many != NULL) {
    s.count = strtoull(many, NULL, 10);
  } else if (getenv("SEGUE_TEST_ALL") == NULL) {
    s.count = all / 4;
    s.first = drawn != NULL ? all * strtoull(drawn, NULL, 10) : 1;
  }
  s.whole = one == NULL && s.count >= all;
  return s;
}

#endif
