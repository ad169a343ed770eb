/* Keeps a launch's scenario in the store's blobs, shares it by its hash, and finds it again. */
#include "daemon/launch/internal.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "store/worker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct shared_scenario *scenario_known(struct launch_env *env, const char *sha256) {
  for (struct shared_scenario *s = env->scenarios; s; s = s->next)
    if (strcmp(s->scenario.sha256, sha256) == 0) {
      s->references++;
      return s;
    }
  return NULL;
}

/* The result has one reference, and is not in the list yet. */
static struct shared_scenario *scenario_read(const char *path, struct str text, struct err *err) {
  struct shared_scenario *s = xcalloc(1, sizeof *s);
  if (!scenario_parse(&s->scenario, path, text, err)) {
    free(s);
    return NULL;
  }
  s->references = 1;
  return s;
}

struct shared_scenario *launch_newest_scenario(const struct launch_env *env) {
  if (env->scenarios != NULL)
    env->scenarios->references++;
  return env->scenarios;
}

static void scenario_add(struct launch_env *env, struct shared_scenario *s) {
  s->next = env->scenarios;
  env->scenarios = s;
}

void launch_drop_scenario(struct launch_env *env, struct shared_scenario *s) {
  struct shared_scenario **at = &env->scenarios;
  if (s == NULL || --s->references > 0)
    return;
  while (*at != NULL && *at != s)
    at = &(*at)->next;
  if (*at == s)
    *at = s->next;
  scenario_deinit(&s->scenario);
  free(s);
}

static bool keep_scenario(const struct launch_body *p, const char *path, struct str text) {
  char sha256[SHA256_HEX], name[STORE_NAME_BYTES];
  struct launch *l = p->l;
  struct stat st;
  sha256_hex(text.p, text.n, NULL, 0, sha256);
  store_blob_name(l->env->store, sha256, name);
  bool known = l->known != NULL && strcmp(l->known->scenario.sha256, sha256) == 0;
  if (known) {
    l->scenario = l->known;
    l->known = NULL;
  } else {
    l->scenario = scenario_read(path ? path : "scenario", text, p->err);
  }
  if (l->scenario == NULL)
    return false;
  /* the blob of a known one was durable when a log first named it: to sync its folders for each
   * submit would take longer than the rest of it */
  known = known && stat(name, &st) == 0 && (uint64_t)st.st_size == text.n;
  if (!known && !launch_keep_blob(p, text, sha256))
    return false;
  json_object_set_new(l->config, "scenario",
                      json_pack("{ss ss}", "path", path ? path : name, "sha256", sha256));
  return true;
}

bool launch_take_scenario(const struct launch_body *p) {
  static const char *const members[] = {"text", NULL};
  const char *path;
  const json_t *text, *value = json_object_get(p->body, "scenario");
  struct buf bytes = {0};
  if (value == NULL)
    return true;
  if (!launch_path_or_text(p, "scenario", &path, &text) ||
      !launch_members_known(p, value, "scenario.", members))
    return false;
  bool ok = path == NULL || file_read(path, LIMIT_SCENARIO_BYTES, &bytes, p->err);
  if (!ok && p->err->code == ERR_IO) /* what the client named, not our folder */
    p->err->code = ERR_INVALID;
  if (path == NULL)
    buf_append(&bytes, json_string_value(text), json_string_length(text));
  ok = ok && keep_scenario(p, path, buf_view(&bytes));
  buf_deinit(&bytes);
  return ok;
}

bool launch_scenario_again(struct launch *l, struct err *err) {
  const json_t *written = json_object_get(l->config, "scenario");
  const char *path = json_string_value(json_object_get(written, "path"));
  const char *sha256 = json_string_value(json_object_get(written, "sha256"));
  struct buf bytes = {0};
  if (path == NULL || sha256 == NULL)
    return true;
  l->scenario = scenario_known(l->env, sha256);
  if (l->scenario != NULL)
    return true;
  struct err ignored;
  /* Once for each scenario; they are for trying workflows out, so the loop may wait for this. */
  bool nobody = worker_asks_nobody(false);
  bool ok = store_blob_get(l->env->store, sha256, &bytes, err);
  (void)worker_asks_nobody(nobody);
  if (!ok) {
    char now[SHA256_HEX] = "";
    buf_clear(&bytes);
    if (file_read(path, LIMIT_SCENARIO_BYTES, &bytes, &ignored))
      sha256_hex(bytes.p, bytes.n, NULL, 0, now);
    ok = strcmp(now, sha256) == 0;
    if (!ok)
      err_set(err, ERR_NOT_FOUND, "the scenario %.300s is gone or changed", path);
  }
  if (ok)
    l->scenario = scenario_read(path, buf_view(&bytes), err);
  if (l->scenario != NULL)
    scenario_add(l->env, l->scenario);
  buf_deinit(&bytes);
  return l->scenario != NULL;
}

bool launch_find_scenario(struct launch *l, struct err *err) {
  if (l->scenario == NULL && !launch_scenario_again(l, err))
    return false;
  l->setup.scenario = l->scenario ? &l->scenario->scenario : NULL;
  return true;
}

void launch_share_scenario(struct launch *l) {
  struct shared_scenario *own = l->scenario;
  launch_drop_scenario(l->env, l->known);
  l->known = NULL;
  if (own == NULL)
    return;
  l->scenario = scenario_known(l->env, own->scenario.sha256);
  if (l->scenario != NULL) {
    launch_drop_scenario(l->env, own);
  } else {
    l->scenario = own;
    scenario_add(l->env, own);
  }
  l->setup.scenario = &l->scenario->scenario;
}
