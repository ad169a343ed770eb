/* Checks whether a provider could answer, without asking it. */
#include "provider/readiness.h"

#include "provider/agent/agent.h"
#include "provider/agent/driver.h"
#include "provider/agent/project_files.h"
#include "provider/api/api.h"
#include "provider/probe.h"

#include <assert.h>

/* Builds the words that would start the agent: a permission or a model that it cannot have is found
 * here. */
static bool ready_command(const struct provider *self, const struct profile *profile,
                          enum transport transport, const struct ready_call *call,
                          struct err *err) {
  struct arena arena = {0};
  struct agent_command command;
  enum error_class class;
  struct call_request request = {.purpose = call->judges ? PURPOSE_JUDGE : PURPOSE_EXECUTE,
                                 .model = call->model,
                                 .permission = call->permission,
                                 .prompt = STR("-")};
  if (request.model.n == 0)
    request.model = str_from(json_string_value(json_object_get(self->settings, "model")));
  const struct agent_call agent = {.request = &request,
                                   .cwd = call->cwd,
                                   .tmpdir = call->cwd,
                                   .session = "",
                                   .new_session = "",
                                   .prompt = request.prompt,
                                   .permission = call->permission,
                                   .tools = json_object_get(self->settings, "tools"),
                                   .settings = self->settings};
  bool ok = profile_command(profile, transport, &agent, &arena, &command, &class, err);
  arena_deinit(&arena);
  return ok;
}

static void ready_say(const struct provider *self, const struct backend_probe *probe,
                      struct err *err) {
  err_set(err, ERR_NOT_FOUND, "provider %s: %.300s: %.300s", self->capability.name, probe->problem,
          probe->remedy);
}

enum ready provider_ready(const struct provider *self, const struct ready_call *call,
                          struct err *err) {
  assert(call->cwd != NULL);
  const struct profile *profile = provider_profile(self);
  if (profile == NULL)
    return api_ready(self, call->model, err) ? READY_YES : READY_NO;
  struct backend_probe probe;
  enum transport transport;
  probe_look(self, &probe);
  if (probe.state == PROBE_NO && (probe.broken || !probe.installed)) {
    ready_say(self, &probe, err);
    return READY_NO;
  }
  if (!driver_transport(profile, self->settings, &transport, err) ||
      !project_files_check(profile, transport, self->settings, call->cwd, err) ||
      !ready_command(self, profile, transport, call, err)) {
    err_wrap(err, "provider %s", self->capability.name);
    return READY_NO;
  }
  if (probe.state != PROBE_NO)
    return READY_YES;
  ready_say(self, &probe, err);
  return READY_PERHAPS;
}
