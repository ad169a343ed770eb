/* Counts how often cycles are completed. */
#include "core/monitor.h"

#include "format/json_object.h"

#include <assert.h>

/* Returns the monitor that must judge before the waiting movement is entered, NULL if there is
 * none. */
static const struct monitor *monitor_due(const struct core *core) {
  const struct workflow *wf = core->workflow;
  if (!core->has_next || core->next < 0)
    return NULL;
  for (size_t i = 0; i < wf->monitor_count; i++) {
    const struct monitor *m = &wf->monitors[i];
    const struct loop_count *loop = &core->loops[i];
    if (m->cycle[0] == (size_t)core->next && loop->at == 0 && loop->times >= m->threshold)
      return m;
  }
  return NULL;
}

size_t monitor_next(const struct core *core) {
  const struct monitor *due = monitor_due(core);
  assert(core->has_next && core->next >= 0);
  return due != NULL ? due->movement : (size_t)core->next;
}

static bool ignores(const struct monitor *m, size_t movement) {
  for (size_t i = 0; i < m->ignore_count; i++)
    if (m->ignore[i] == movement)
      return true;
  return false;
}

/* Counts one step of a loop. No movement stands twice in a cycle, so one place is enough. */
void monitor_step(const struct monitor *m, struct loop_count *loop, size_t movement) {
  if (ignores(m, movement))
    return;
  if (m->cycle[loop->at] != movement) {
    loop->times = 0;
    loop->at = m->cycle[0] == movement ? 1 : 0;
    return;
  }
  if (++loop->at < m->cycle_count)
    return;
  loop->at = 0;
  loop->times++;
}

void monitor_note(struct core *core, size_t movement) {
  const struct workflow *wf = core->workflow;
  bool spoke = wf->movements[movement].monitor != NULL;
  for (size_t i = 0; i < wf->monitor_count; i++) {
    if (spoke)
      core->loops[i] = (struct loop_count){0};
    else
      monitor_step(&wf->monitors[i], &core->loops[i], movement);
  }
}

long monitor_count(const struct core *core, const struct movement *m) {
  return m->monitor ? core->loops[m->monitor - core->workflow->monitors].times : 0;
}

json_t *monitor_json(const struct core *core) {
  size_t n = core->workflow->monitor_count;
  json_t *counts = n > 0 ? json_array() : NULL;
  for (size_t i = 0; i < n; i++)
    json_array_append_new(counts, json_pack("[I, I]", (json_int_t)core->loops[i].times,
                                            (json_int_t)core->loops[i].at));
  return counts;
}

bool monitor_take(struct core *core, const json_t *counts) {
  const struct workflow *wf = core->workflow;
  if (json_array_size(counts) > wf->monitor_count)
    return false;
  JSON_EACH(counts, i, pair) {
    json_int_t times = json_integer_value(json_array_get(pair, 0)),
               at = json_integer_value(json_array_get(pair, 1));
    if (times < 0 || times > LIMIT_MOVEMENTS || at < 0 || (size_t)at >= wf->monitors[i].cycle_count)
      return false;
    core->loops[i] = (struct loop_count){(long)times, (size_t)at};
  }
  return true;
}
