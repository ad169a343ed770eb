/* Builds what movements have besides their work: reports and the judges of loops. Finds the
 * movements whose answers prompts name. */
#include "core/build.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/ref.h"
#include "format/json_object.h"
#include "format/template.h"

#include <stdio.h>
#include <string.h>

enum { MONITOR_THRESHOLD = 3, MONITOR_PATH_BYTES = BUILD_PATH_BYTES + 32 };

static bool build_find(struct build *b, const char *path, const json_t *name, size_t *out) {
  const json_t *index = json_object_getn(b->by_name, json_view(name).p, json_view(name).n);
  *out = (size_t)json_integer_value(index);
  return index != NULL || build_fail(b, path, "", "names no movement");
}

/* Reads the names of a cycle. Each movement may appear once, because its name tells the place in
 * the cycle. */
static bool read_names(struct build *b, const json_t *list, const char *path, size_t **out,
                       size_t *count) {
  size_t n = json_array_size(list);
  *out = arena_array(&b->wf->arena, n, sizeof **out);
  for (size_t i = 0; i < n; i++) {
    if (!build_find(b, path, json_array_get(list, i), &(*out)[i]))
      return false;
    for (size_t k = 0; k < i; k++)
      if ((*out)[k] == (*out)[i])
        return build_fail(b, path, "", "names a movement twice");
  }
  *count = n;
  return true;
}

static struct str build_name(const struct build *b, size_t movement) {
  return b->wf->movements[movement].name;
}

/* Names the judge _loop_judge_FIRST_LAST, with a number if that name is taken. */
static bool name_judge(struct build *b, const char *path, const struct monitor *m,
                       struct movement *judge) {
  struct buf name = {0};
  struct str first = build_name(b, m->cycle[0]), last = build_name(b, m->cycle[m->cycle_count - 1]);
  buf_printf(&name, "_loop_judge_" STR_FMT "_" STR_FMT, STR_ARG(first), STR_ARG(last));
  size_t n = name.n;
  for (int number = 2; workflow_find(b->wf, buf_view(&name)) >= 0; number++) {
    name.n = n;
    buf_printf(&name, "_%d", number);
  }
  judge->name = judge->own_name = arena_str(&b->wf->arena, buf_view(&name));
  judge->group = NO_GROUP;
  judge->monitor = m;
  buf_deinit(&name);
  return judge->name.n <= LIMIT_NAME_BYTES ||
         build_fail(b, path, "cycle", "begins and ends with names that are too long together");
}

static bool build_monitor(struct build *b, const json_t *object, const json_t *options,
                          const struct judge_config *judge, size_t number) {
  struct monitor *m = &b->wf->monitors[number];
  char path[MONITOR_PATH_BYTES], part[MONITOR_PATH_BYTES + 16];
  (void)snprintf(path, sizeof path, "loop_monitors[%zu]", number);
  (void)snprintf(part, sizeof part, "%s.cycle", path);
  const json_t *threshold = json_at(object, "threshold");
  m->threshold = threshold ? (long)json_integer_value(threshold) : MONITOR_THRESHOLD;
  if (!read_names(b, json_at(object, "cycle"), part, (size_t **)&m->cycle, &m->cycle_count))
    return false;
  (void)snprintf(part, sizeof part, "%s.ignore", path);
  if (!read_names(b, json_at(object, "ignore"), part, (size_t **)&m->ignore, &m->ignore_count))
    return false;
  m->movement = b->wf->movement_count;
  struct movement *own = &b->wf->movements[m->movement];
  if (!name_judge(b, path, m, own))
    return false;
  b->wf->movement_count++; /* from here on workflow_unref frees what it holds */
  (void)snprintf(part, sizeof part, "%s.judge", path);
  return build_movement(b, json_at(object, "judge"), options, judge, part, own);
}

bool build_monitors(struct build *b, const json_t *list, const json_t *options,
                    const struct judge_config *judge) {
  struct workflow *wf = b->wf;
  const json_t *object;
  size_t i;
  wf->monitors = arena_array(&wf->arena, json_array_size(list), sizeof *wf->monitors);
  json_array_foreach((json_t *)list, i, object) {
    wf->monitor_count++;
    if (!build_monitor(b, object, options, judge, i))
      return false;
  }
  return true;
}

/* --- reports --- */

bool build_reports(struct build *b, const json_t *object, const char *path, struct movement *m) {
  struct err why;
  if (!contracts_read(&b->wf->arena, object, &m->contracts, &m->contract_count, &why))
    return build_fail(b, path, "output_contracts", why.text);
  bool asks = json_at(object, "output_contracts") != NULL;
  if (asks && m->argv != NULL)
    return build_fail(b, path, "output_contracts",
                      "a command writes no reports: report: FILE keeps its output");
  b->wf->has_reports |= m->contract_count > 0;
  return true;
}

static bool has_report(const struct movement *m, struct str name) {
  for (size_t i = 0; i < m->contract_count; i++)
    if (str_eq(m->contracts[i].name, name))
      return true;
  return false;
}

bool build_siblings(struct build *b, const char *path, const struct movement *group) {
  const struct movement *children = &b->wf->movements[group->first_child];
  if (group->for_each != NULL && children->contract_count > 0)
    return build_fail(b, path, "parallel", "the runs of for_each would write the same report");
  for (size_t i = 0; i < group->child_count; i++)
    for (size_t k = 0; k < children[i].contract_count; k++)
      for (size_t j = 0; j < i; j++)
        if (has_report(&children[j], children[i].contracts[k].name))
          return build_fail(b, path, "parallel", "two children write the same report");
  return true;
}

static void mark_answer(void *ctx, struct str name) {
  struct workflow *wf = ctx;
  size_t skip = strlen(PROMPT_RESPONSE);
  long index = workflow_find(wf, (struct str){name.p + skip, name.n - skip});
  if (index >= 0)
    wf->movements[index].answers_later = true;
}

void build_answers(struct workflow *wf) {
  const char *name;
  const json_t *output;
  json_object_foreach((json_t *)wf->outputs, name, output) {
    template_names(json_view(output), PROMPT_RESPONSE, mark_answer, wf);
  }
  for (size_t i = 0; i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    template_names(m->instruction, PROMPT_RESPONSE, mark_answer, wf);
    for (size_t k = 0; k < m->contract_count; k++) {
      template_names(m->contracts[k].order, PROMPT_RESPONSE, mark_answer, wf);
      template_names(m->contracts[k].format, PROMPT_RESPONSE, mark_answer, wf);
    }
  }
}
