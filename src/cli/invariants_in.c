/* Reads invariants from the command line and runs them on a value. */
#include "cli/invariants_in.h"

#include "base/log.h"
#include "cli/json_io.h"
#include "host/oneshot.h"

#include <assert.h>
#include <string.h>

/* Turns the first error into one of the command line: "FILE: $[1].expr: ...". */
static bool invariants_in_report(const char *from, struct schema_errors *errs, struct err *err) {
  (void)err_set(err, ERR_USAGE, "%s%s%.120s: %.500s", from ? from : "", from ? ": " : "",
                errs->count ? errs->items[0].path : "$",
                errs->count ? errs->items[0].message : "not a list of invariants");
  schema_errors_deinit(errs);
  return false;
}

static bool append_file(json_t *all, const char *path, struct err *err) {
  struct schema_errors errs = {0};
  json_t *list = json_io_file(path, JSON_IO_SCHEMA, err);
  if (list == NULL)
    return false;
  struct invariants *sound = invariants_compile(list, &errs, NULL);
  bool asks = invariants_need(sound, INVARIANT_AI);
  invariants_free(sound);
  if (sound == NULL) {
    json_decref(list);
    return invariants_in_report(path, &errs, err);
  }
  if (asks) {
    json_decref(list);
    return err_set(err, ERR_USAGE,
                   "%s: an ai invariant asks a model, but segue check asks none: leave it to a "
                   "command that has a provider",
                   path);
  }
  json_array_extend(all, list);
  json_decref(list);
  return true;
}

bool invariants_in_load(struct invariants_in *in, const struct cli_args *args, struct err *err) {
  assert(in->compiled == NULL);
  struct schema_errors errs = {0};
  json_t *all = json_array();
  const char *given;
  bool ok = true;
  for (size_t i = 0; ok && (given = cli_values(args, "invariants", i)) != NULL; i++)
    ok = append_file(all, given, err);
  for (size_t i = 0; ok && (given = cli_values(args, "invariant", i)) != NULL; i++) {
    ok = cli_is_utf8("--invariant", given, err);
    json_t *one = ok ? json_pack("[s]", given) : NULL;
    struct invariants *sound = ok ? invariants_compile(one, &errs, NULL) : NULL;
    if (ok && sound == NULL) {
      ok = false;
      (void)err_set(err, ERR_USAGE, "--invariant: %.600s",
                    errs.count ? errs.items[0].message : "no expression");
      schema_errors_deinit(&errs);
    }
    invariants_free(sound);
    json_array_extend(all, one);
    json_decref(one);
  }
  if (ok && json_array_size(all) > 0) {
    in->compiled = invariants_compile(all, &errs, NULL);
    ok = in->compiled != NULL || invariants_in_report(NULL, &errs, err);
  }
  json_decref(all);
  return ok;
}

void invariants_in_deinit(struct invariants_in *in) {
  invariants_free(in->compiled);
  in->compiled = NULL;
}

struct invariants *invariants_in_of_line(const json_t *list, struct schema_errors *errs) {
  return invariants_compile(list, errs, NULL);
}

static enum schema_status run_command(const struct invariant *is, const json_t *value,
                                      struct str input, struct schema_errors *errs,
                                      struct err *err) {
  const struct oneshot_spec spec = {.argv = is->argv, .input = input};
  struct oneshot_result result;
  enum schema_status status = SCHEMA_TOO_COMPLEX;
  if (oneshot_run(&spec, &result, err)) {
    const struct invariant_output output = {result.exit_status, result.out.p, result.err.p,
                                            result.out.n, result.err.n};
    if (invariant_command_told(result.exit_status))
      status = invariant_command_result(is, value, &output, errs);
    else
      (void)err_set(err, ERR_IO,
                    "the command of an invariant, %s, was killed or did not run (exit status %d): "
                    "nothing is known about the value",
                    is->argv[0], result.exit_status);
  }
  oneshot_result_deinit(&result);
  return status;
}

bool invariants_in_check(const struct invariants *invariants, const json_t *value,
                         bool schema_holds, enum schema_status *status, struct schema_errors *errs,
                         struct err *err) {
  assert(value != NULL);
  assert(status != NULL);
  *status = invariants_check(invariants, value, errs);
  bool run = *status == SCHEMA_OK && schema_holds && invariants_need(invariants, INVARIANT_COMMAND);
  struct buf input = {0};
  bool ok = true;
  if (run) {
    json_io_write(value, JSON_IO_COMPACT, &input);
    buf_putc(&input, '\n');
  }
  for (size_t i = 0; run && ok && i < invariants_count(invariants); i++) {
    const struct invariant *is = invariants_get(invariants, i);
    if (is->kind != INVARIANT_COMMAND)
      continue;
    enum schema_status one = run_command(is, value, buf_view(&input), errs, err);
    ok = one != SCHEMA_TOO_COMPLEX;
    *status = one == SCHEMA_OK ? *status : one;
  }
  buf_deinit(&input);
  return ok;
}
