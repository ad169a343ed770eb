/* Finds the scenario of a session again, or takes another one. */
#include "cli/replies.h"

#include "cli/session_post.h"

#include <string.h>

bool replies_take(struct replies *r, const char *path, json_t *changed, struct err *err) {
  json_auto_t *member = json_object();
  bool ok = body_path(member, "path", "--scenario", path, err) &&
            scenario_load(&r->scenario, cli_text(member, "path"), err);
  r->has = ok;
  if (ok) {
    json_object_set_new(member, "sha256", json_string(r->scenario.sha256));
    json_object_set(changed, "scenario", member);
  }
  return ok;
}

bool replies_find(struct replies *r, const json_t *config, struct err *err) {
  const json_t *written = json_object_get(config, "scenario");
  const char *path = cli_text(written, "path"), *sha256 = cli_text(written, "sha256");
  if (r->has || path == NULL)
    return true;
  if (!scenario_load(&r->scenario, path, err))
    return false;
  r->has = true;
  if (sha256 == NULL || strcmp(sha256, r->scenario.sha256) == 0)
    return true;
  return err_set(err, ERR_USAGE,
                 "the scenario %.300s has changed since the session started, so its replies would "
                 "differ; give --scenario to use it anyway",
                 path);
}

const struct scenario *replies_scenario(const struct replies *r) {
  return r->has ? &r->scenario : NULL;
}

void replies_deinit(struct replies *r) {
  if (r->has)
    scenario_deinit(&r->scenario);
  *r = (struct replies){0};
}
