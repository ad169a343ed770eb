/* Reads the bodies of requests, in the pool. */
#include "daemon/intake.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"
#include "os/loop.h"
#include "os/memory.h"

#include <assert.h>
#include <stdlib.h>

struct intake_job {
  struct intake *in;
  struct list_node in_intake;
  struct buf body;
  size_t bytes;
  struct store_ref *about; /* or NULL */
  enum launch_kind kind;
  intake_done done;
  bool is_read;
  struct intake_result result; /* its request is NULL once the client has left */
};

static void intake_start(struct intake *in);

static void intake_job_free(struct intake_job *job) {
  launch_deinit(&job->result.launch);
  err_list_deinit(&job->result.errors);
  buf_deinit(&job->body);
  free(job->about);
  free(job);
}

static void job_remove(struct intake_job *job) {
  list_remove(&job->in->jobs, &job->in_intake);
  job->in->bytes -= job->bytes;
}

/* --- in the pool --- */

static unsigned intake_status_of(const struct err *err) {
  if (err->code == ERR_FULL)
    return 507;
  return err->code == ERR_IO || err->code == ERR_CORRUPT ? 500 : 422;
}

static bool size_fits(struct intake_result *result, struct str body) {
  struct json_size size = json_size(body, LIMIT_API_DEPTH, LIMIT_API_VALUE_COUNT);
  if (size.depth > LIMIT_API_DEPTH) {
    result->status = 400;
    return err_set(&result->err, ERR_LIMIT, "the body is nested more than %u levels deep",
                   LIMIT_API_DEPTH);
  }
  if (size.values > LIMIT_API_VALUE_COUNT) {
    result->status = 413;
    return err_set(
        &result->err, ERR_LIMIT,
        "the body has more than %u values: put workflow, task and scenario into it as texts",
        LIMIT_API_VALUE_COUNT);
  }
  return true;
}

static void read_body(struct intake_result *result, enum launch_kind kind, struct str body) {
  json_error_t why;
  if (!size_fits(result, body))
    return;
  json_t *parsed =
      json_loadb(body.n ? body.p : "", body.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
  if (parsed == NULL) {
    result->status = 400;
    err_set(&result->err, ERR_INVALID, "the body is not JSON: line %d, column %d: %s", why.line,
            why.column, why.text);
    return;
  }
  result->ok = launch_parse(&result->launch, kind, parsed, &result->err, &result->errors);
  if (!result->ok)
    result->status = intake_status_of(&result->err);
  json_decref(parsed);
}

static void on_work(void *ctx) {
  struct intake *in = ctx;
  for (size_t i = 0; i < in->reading_count; i++) {
    struct intake_job *job = in->reading[i];
    read_body(&job->result, job->kind, buf_view(&job->body));
    buf_deinit(&job->body);
    if (job->bytes > LIMIT_API_BIG_BODY_BYTES)
      memory_give_back(0);
  }
}

/* --- on the loop --- */

static void after_work(void *ctx) {
  struct intake *in = ctx;
  for (size_t i = 0; i < in->reading_count; i++) {
    struct intake_job *job = in->reading[i];
    job_remove(job);
    if (job->result.request != NULL) {
      if (job->result.ok)
        launch_share(&job->result.launch);
      job->done(in->ctx, &job->result);
    }
    intake_job_free(job);
  }
  in->reading_count = 0;
  intake_start(in);
}

/* Takes the first one, and those behind it as long as all of them are small. */
static void intake_start(struct intake *in) {
  size_t bytes = 0;
  assert(in->reading_count == 0);
  LIST_EACH(struct intake_job, job, in_intake, &in->jobs) {
    bytes += job->bytes;
    if (in->reading_count == INTAKE_TOGETHER ||
        (in->reading_count > 0 && bytes > LIMIT_API_SMALL_BODY_BYTES))
      break;
    launch_init(&job->result.launch, in->env);
    if (job->about != NULL) {
      job->result.launch.about = xcalloc(1, sizeof *job->result.launch.about);
      job->result.launch.about->log = *job->about;
    }
    job->is_read = true;
    in->reading[in->reading_count++] = job;
  }
  if (in->reading_count > 0)
    loop_do(in->loop, on_work, after_work, in);
}

/* The client has left, or the daemon is ending. */
static void intake_on_gone(void *ctx) {
  struct intake_job *job = ctx;
  job->result.request = NULL;
  if (job->is_read)
    return;
  job_remove(job);
  intake_job_free(job);
}

void intake_take(struct intake *in, struct server_request *r, enum launch_kind kind,
                 const struct store_ref *about, intake_done done) {
  if (in->bytes + server_body(r).n > LIMIT_API_BODIES_BYTES) {
    server_set_header(r, "Retry-After", "1");
    server_problem(r, 503, NULL, "too many requests are being read: try again");
    return;
  }
  struct intake_job *job = xcalloc(1, sizeof *job);
  job->in = in;
  if (about != NULL) {
    job->about = xmalloc(sizeof *job->about);
    *job->about = *about;
  }
  job->kind = kind;
  job->done = done;
  job->body = server_take_body(r);
  job->bytes = job->body.n;
  job->result.request = r;
  list_push_back(&in->jobs, &job->in_intake);
  in->bytes += job->bytes;
  server_keep(r, intake_on_gone, job);
  if (in->reading_count == 0)
    intake_start(in);
}
