/* Asks again for what a server would not take, in another way: without a parameter, or with the
 * schema in another form. */
#include "base/limits.h"
#include "format/json_value.h"
#include "provider/api/refusal.h"
#include "provider/api/run_internal.h"

#include <stdio.h>
#include <string.h>

const char *run_model_key(const struct api_run *run) {
  return run->model ? run->model : "";
}

/* Makes another request in place of the last one: the same, or from the call's beginning. */
static void ask_anew(struct api_run *run, enum run_state state) {
  run->result.class = CLASS_NONE;
  run->result.message[0] = '\0';
  run->result.elsewhere = false;
  run_end_request(run);
  if (!(state == RUN_STATE_NEW ? run_ask_first(run) : run_ask(run, state)))
    run_finish(run);
}

/* Steps down one rung, and from there to the last one, since each costs a request. Returns false if
 * there is none. */
bool run_step_down(struct api_run *run, const char *why) {
  enum rung below = run->rung == run->first_rung ? run->rung + 1 : RUNG_PROMPT;
  enum rung next = run->rung < below ? rung_at_or_below(run->rungs, below) : RUNG_COUNT;
  if (next == RUNG_COUNT)
    return false;
  run_note(run, "%s: the schema goes as %s instead of %s", why, rung_name(next),
           rung_name(run->rung));
  run->rung = next;
  ask_anew(run, RUN_STATE_NEW);
  return true;
}

/* --- what was refused --- */

/* Leaves out these names from requests, and the known ones once more: the provider may have learnt
 * from other sessions, this session from its own log. */
void run_leave_out(struct api_run *run, const json_t *names) {
  const json_t *name;
  size_t i;
  if (run->without == NULL && json_array_size(names) > 0)
    run->without = json_array();
  json_array_foreach((json_t *)names, i, name) {
    const struct ask known = {.without = run->without};
    if (json_is_string(name) && !ask_lacks(&known, json_string_value(name)))
      json_array_append(run->without, (json_t *)name);
  }
}

/* Makes the same request without a parameter that the server named. Returns false if it named
 * none. */
static bool drop_parameter(struct api_run *run, const struct refusal *refusal) {
  json_t *body = json_loadb(buf_c(&run->wire.body), run->wire.body.n, 0, NULL);
  const char *name = refusal_parameter(refusal, body, run->config->dialect->needed);
  json_t *names = name ? json_pack("[s]", name) : NULL;
  run->result.elsewhere = refusal_parameter(refusal, body, NULL) != NULL ||
                          refusal_is_about_model(refusal) || refusal_is_about_schema(refusal);
  json_decref(body);
  if (names == NULL || json_array_size(run->without) >= LIMIT_REFUSED_COUNT) {
    json_decref(names);
    return false;
  }
  run_note(run, "%.300s: %s is left out from now on", run->result.message,
           json_string_value(json_array_get(names, 0)));
  json_object_set(json_array_get(run->notes, json_array_size(run->notes) - 1), "refused",
                  json_array_get(names, 0));
  run_leave_out(run, names);
  json_decref(names);
  api_remember(run->api, "without", run->config->name, run_model_key(run),
               json_clone(run->without));
  ask_anew(run, run->state);
  return true;
}

/* Makes a refused request again, without a parameter or on the next rung. Returns false if it stays
 * refused. */
bool run_ask_otherwise(struct api_run *run) {
  const struct reply *r = &run->reply;
  const struct refusal refusal = {.param = r->param, .message = r->message};
  char why[480];
  if (r->status == 403 && run->config->stream && strcasestr(r->message, "stream") != NULL) {
    size_t n = strlen(run->result.message);
    (void)snprintf(run->result.message + n, sizeof run->result.message - n,
                   ": stream: false in providers.%s of your config.yaml asks without",
                   run->config->name);
  }
  if (run->result.class == CLASS_AUTH && run_ask_key_again(run))
    return true;
  if (run->result.class != CLASS_BAD_REQUEST || (r->status != 400 && r->status != 422))
    return false;
  if (drop_parameter(run, &refusal))
    return true;
  bool formed = run->state == RUN_STATE_ANSWER && run->schema != NULL && run->rung != RUNG_PROMPT;
  if (formed && refusal_is_about_schema(&refusal)) {
    (void)snprintf(why, sizeof why, "%.450s", run->result.message);
    run->remember = true;
    if (run_step_down(run, why))
      return true;
  }
  return false;
}

bool run_choose_rung(struct api_run *run) {
  const struct api_config *config = run->config;
  const json_t *known;
  const char *why;
  if (run->request->schema == NULL)
    return true;
  run->schema = api_schema_get(run->api->schemas, run->request->schema, config->preset,
                               config->think_mode == THINK_MODE_FIELD && run_wants_thinking(run));
  run->rungs = api_schema_rungs(run->schema, config->rungs, &why);
  known = api_recall(run->api, "rung", config->name, run_model_key(run));
  run->rung = rung_at_or_below(run->rungs, known ? (enum rung)json_integer_value(known) : 0);
  run->first_rung = run->rung;
  if (run->rung == RUNG_COUNT) {
    run_fail(run, CLASS_BAD_REQUEST, "%s: schema_mode allows one way only, and %s", config->name,
             why ? why : "it is not possible here");
    return false;
  }
  if (why != NULL)
    run_note(run, "%s: it goes as %s", why, rung_name(run->rung));
  return true;
}
