/* Builds movements with children: their names, which of them share a conversation, what runs for
 * items. */
#include "core/build.h"

#include "base/limits.h"
#include "core/ref.h"
#include "format/json_object.h"

#include <stdio.h>

/* Names a child GROUP.NAME, so that logs and messages need no other word for it. */
static bool name_child(struct build *b, const char *path, size_t group, struct str own,
                       struct movement *m) {
  const struct movement *parent = &b->wf->movements[group];
  struct buf full = {0};
  buf_printf(&full, STR_FMT "." STR_FMT, STR_ARG(parent->name), STR_ARG(own));
  m->own_name = own;
  m->name = arena_str(&b->wf->arena, buf_view(&full));
  m->group = (long)group;
  buf_deinit(&full);
  if (m->name.n > LIMIT_NAME_BYTES)
    return build_fail(b, path, "name", "is over 128 bytes together with its group's");
  return workflow_find(b->wf, m->name) < 0 ||
         build_fail(b, path, "name", "two movements have this name");
}

static bool same_conversation(const struct movement *a, const struct movement *b) {
  if (a->argv != NULL || b->argv != NULL)
    return false;
  if (a->session_key.n > 0 || b->session_key.n > 0)
    return str_eq(a->session_key, b->session_key);
  return a->persona.n > 0 && str_eq(a->persona, b->persona);
}

/* Marks siblings that would continue the same conversation: they never do so at once. */
static void mark_shared(struct workflow *wf, const struct movement *group) {
  struct movement *children = &wf->movements[group->first_child];
  for (size_t i = 0; i < group->child_count; i++)
    for (size_t k = 0; k < i; k++)
      if (same_conversation(&children[i], &children[k]))
        children[i].shares_conversation = children[k].shares_conversation = true;
}

/* Checks for_each. The movement that makes the items may come after the group: only its name is
 * looked up. */
static bool check_each(struct build *b, const char *path, const struct movement *group,
                       size_t children) {
  struct prompt_ref ref;
  if (group->for_each == NULL)
    return true;
  if (children != 1)
    return build_fail(b, path, "for_each", "is for a movement with one child in parallel");
  return json_is_array(group->for_each) ||
         prompt_ref_parse(json_view(group->for_each), b->wf, &ref) ||
         build_fail(b, path, "for_each", "names no movement");
}

bool build_group(struct build *b, const json_t *object, const json_t *options,
                 const struct judge_config *judge, size_t index) {
  struct movement *group = &b->wf->movements[index];
  const json_t *list = json_at(object, "parallel"), *v;
  size_t i;
  char path[BUILD_PATH_BYTES];
  if (list == NULL)
    return true;
  (void)snprintf(path, sizeof path, "movements[%zu]", index);
  if (json_at(object, "command") != NULL || json_at(object, "structured_output") != NULL ||
      json_at(object, "ask") != NULL || json_at(object, "report") != NULL ||
      json_at(object, "output_contracts") != NULL)
    return build_fail(b, path, "parallel", "a movement with children does no work of its own");
  group->first_child = b->wf->movement_count;
  group->for_each = json_at(object, "for_each");
  group->stops_on_error = json_at(object, "stop_on") != NULL;
  json_int_t at_once = group->for_each ? LIMIT_ITEMS_AT_ONCE : (json_int_t)json_array_size(list);
  group->concurrency = (long)build_count(object, "concurrency", at_once);
  if (!check_each(b, path, group, json_array_size(list)))
    return false;
  json_array_foreach((json_t *)list, i, v) {
    struct movement *m = &b->wf->movements[group->first_child + i];
    (void)snprintf(path, sizeof path, "movements[%zu].parallel[%zu]", index, i);
    if (!name_child(b, path, index, build_text(v, "name"), m))
      return false;
    b->wf->movement_count++; /* from here on workflow_unref frees what it holds */
    if (json_at(v, "parallel") != NULL)
      return build_fail(b, path, "parallel", "a child has no children");
    if (!build_movement(b, v, options, judge, path, m))
      return false;
  }
  group->child_count = json_array_size(list);
  mark_shared(b->wf, group);
  return build_siblings(b, path, group);
}
