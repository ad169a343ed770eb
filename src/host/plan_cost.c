/* Adds up the worst that a workflow can come to. */
#include "host/plan_cost.h"

#include "base/limits.h"
#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Adds one turn: the best of what can follow each movement. Returns true if something grew. */
static bool plan_step(const struct workflow *wf, const double *weights, const double *before,
                      double *after) {
  bool grew = false;
  for (size_t i = 0; i < wf->movement_count; i++) {
    double most = 0;
    for (size_t k = 0; k < wf->movements[i].rule_count; k++) {
      int next = wf->movements[i].rule_next[k];
      if (next >= 0 && before[next] > most)
        most = before[next];
    }
    after[i] = weights[i] + most;
    grew |= after[i] > before[i];
  }
  return grew;
}

double plan_worst(const struct workflow *wf, const double *weights) {
  size_t n = wf->movement_count;
  double *now = xcalloc(n + 1, sizeof *now), *then = xcalloc(n + 1, sizeof *then), most = 0, sum;
  bool endless = wf->max_movements == MOVEMENTS_INFINITE, grows = true;
  long turns = endless ? (long)n + 1 : wf->max_movements, turn = 0;
  for (; turn < turns && turn < LIMIT_PLAN_TURNS && grows; turn++) {
    grows = plan_step(wf, weights, now, then);
    memcpy(now, then, n * sizeof *now);
  }
  for (size_t i = 0; i < n; i++)
    most = weights[i] > most ? weights[i] : most;
  sum = now[wf->initial];
  if (grows && turn < turns) /* the turns not walked: each costs at most the worst one */
    sum += (double)(turns - turn) * most;
  if (endless && grows && turn == turns)
    sum = -1;
  free(now);
  free(then);
  return sum;
}

double plan_rank(const double *sorted, size_t count, unsigned percent) {
  assert(count > 0);
  assert(percent <= 100);
  size_t rank = (count * percent + 99) / 100;
  return sorted[rank > 0 ? rank - 1 : 0];
}
