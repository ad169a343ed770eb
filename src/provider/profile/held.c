/* Reads what a profile says about how its client enforces readonly, edit and full. */
#include "provider/profile/profile.h"

#include "format/json_object.h"

/* Returns true for a value that says true: below `native` and `acp` each value of a profile is kept
 * as its text. */
static bool is_held_true(const json_t *said, const char *key) {
  const json_t *value = json_object_get(said, key);
  return json_is_true(value) || str_eq_c(json_view(value), "true");
}

static struct held held_said(const json_t *said) {
  static const char *const runs[] = {
      [HELD_RUN_NAMED] = "named", [HELD_RUN_ANY] = "any", [HELD_RUN_NONE] = "none"};
  static const char unknown[] = "its profile does not say what it does with this word (holds)";
  struct held held = {.edits = true, .looks = true, .run = HELD_RUN_ANY};
  const json_t *but = json_object_get(said, "but");
  if (said != NULL)
    held.looks = is_held_true(said, "looks");
  held.served = is_held_true(said, "served");
  for (int i = 0; said != NULL && i <= HELD_RUN_NONE; i++)
    if (str_eq_c(json_view(json_object_get(said, "run")), runs[i]))
      held.run = (enum held_run)i;
  for (int i = 0; i < PERMISSION_COUNT; i++) {
    held.but[i] = json_string_value(json_object_get(but, permission_name((enum permission)i)));
    if (said == NULL && i != PERMISSION_FULL)
      held.but[i] = unknown;
  }
  return held;
}

static const json_t *holder_of(const struct profile *p, enum transport transport) {
  if (transport == TRANSPORT_EXEC)
    return p->keys;
  return transport == TRANSPORT_NATIVE ? p->native : p->acp;
}

void profile_read_held(struct profile *p) {
  for (int i = 0; i < TRANSPORT_COUNT; i++)
    p->holds[i] = held_said(json_object_get(holder_of(p, (enum transport)i), "holds"));
  p->capability.held = &p->holds[p->preferred];
  p->capability.forks = profile_forks(p, p->preferred);
}

void profile_read_told(struct profile *p, const json_t *about) {
  p->about = held_said(json_object_get(about, "holds"));
  p->capability.held = &p->about;
}

void profile_tell_held(const struct profile *p, json_t *about) {
  json_t *said = json_object_get(holder_of(p, p->preferred), "holds");
  if (said != NULL)
    json_object_set(about, "holds", said);
}
