/* Finds what a provider can do by its name. */
#include "core/capability.h"

#include <stddef.h>

const char *const option_names[] = {"temperature", "seed", "max_tokens", "effort", NULL};

const struct capability *capability_find(const struct capability *table, struct str name) {
  for (; table->name; table++)
    if (str_eq_c(name, table->name))
      return table;
  return NULL;
}

const char *capability_judge_effort(const struct capability *c) {
  return c != NULL && (c->options & OPTION_EFFORT) != 0 ? c->judge_effort : NULL;
}

static void add_gap(struct buf *out, const char *gap) {
  if (gap != NULL)
    buf_printf(out, "%s%s", out->n > 0 ? "; " : "", gap);
}

bool capability_gap(const struct capability *c, enum permission permission, bool names_programs,
                    struct buf *out) {
  const struct held *held = c ? c->held : NULL;
  if (held == NULL)
    return false;
  if (!held->edits && permission != PERMISSION_READONLY) {
    add_gap(out, "it only answers: it changes no file and runs no program");
    return true;
  }
  size_t before = out->n;
  add_gap(out, held->but[permission]);
  if (permission == PERMISSION_EDIT && held->run == HELD_RUN_ANY)
    add_gap(out, "it runs any program, not only those of run");
  if (permission == PERMISSION_EDIT && held->run == HELD_RUN_NONE && names_programs)
    add_gap(out, "it runs no program: those of run neither");
  return out->n > before;
}
