/* Any bytes as the output of an agent, cut anywhere, through each shipped profile; and any bytes as
 * a profile or a recording. The first byte chooses the profile, the second the size of the
 * pieces. */
#include "provider/agent/replay_recording.h"
#include "provider/profile/profile.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_news(void *ctx, const struct provider_news *news) {
  (void)ctx;
  json_decref(replay_news_json(news));
}

static void read_as_output(const struct profile *profile, size_t piece, struct str text) {
  static const struct call_request request = {.purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT};
  const struct agent_call call = {
      .request = &request, .cwd = "/", .tmpdir = "/", .session = "", .new_session = ""};
  const struct driver_host host = {.news = on_news};
  const struct process_result process = {.why = PROCESS_END_EXITED, .exit_code = (int)(text.n & 1)};
  AUTO(call_result_deinit) struct call_result result = {0};
  struct driver *d = driver_exec.open(profile, &call, &host);
  for (size_t at = 0; at < text.n; at += piece) {
    size_t n = text.n - at < piece ? text.n - at : piece;
    driver_exec.output(d, at / piece % 7 == 6 ? 2 : 1, (struct str){text.p + at, n});
  }
  buf_str(&result.error_text.bytes, text);
  driver_exec.end(d, &process, &result);
  driver_exec.close(d);
  assert((result.class == CLASS_NONE) == (result.message[0] == '\0'));
  json_decref(replay_end_json(&result));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct profiles *profiles;
  AUTO(err_list_deinit) struct err_list errors = {0};
  if (profiles == NULL)
    profiles = profiles_load(NULL, &errors);
  if (size < 2)
    return 0;
  struct str text = {(const char *)data + 2, size - 2};
  const struct profile *profile = profile_ready(profiles_peek(profiles, data[0] % 10));
  if (profile != NULL)
    read_as_output(profile, data[1] % 64u + 1, text);
  else
    profile_free(profile_load("f", "f.yaml", text, NULL, NULL, &errors));
  return 0;
}
