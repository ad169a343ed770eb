/* Any bytes as what an agent says to a driver that speaks back: ACP, claude's control protocol,
 * codex app-server, opencode serve. The first byte chooses the driver, and whether it is a replay;
 * the second the size of the pieces and the permission. In a replay every third line is one that
 * was sent. */
#include "provider/agent/replay_recording.h"
#include "provider/profile/profile.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
  bool closed;
};

static void on_news(void *ctx, const struct provider_news *news) {
  (void)ctx;
  json_decref(replay_news_json(news));
}

static bool on_write(void *ctx, struct str bytes) {
  struct seen *seen = ctx;
  assert(bytes.n > 0 && bytes.p[bytes.n - 1] == '\n');
  json_auto_t *value = json_loadb(bytes.p, bytes.n, JSON_ALLOW_NUL, NULL);
  assert(json_is_object(value)); /* whatever it was told, it says one JSON value a line */
  assert(memchr(bytes.p, '\n', bytes.n) == bytes.p + bytes.n - 1);
  return !seen->closed;
}

static void on_close(void *ctx) {
  ((struct seen *)ctx)->closed = true;
}

/* --- of a server --- */

static void on_request(void *ctx, const struct driver_request *request) {
  (void)ctx;
  assert(request->path[0] == '/' && strpbrk(request->path, " ?#\r\n") == NULL);
  assert(strstr(request->path, "..") == NULL);
  if (request->body.p != NULL) {
    json_auto_t *value = json_loadb(request->body.p, request->body.n, JSON_ALLOW_NUL, NULL);
    assert(json_is_object(value));
  }
}

static void on_serves_at(void *ctx, unsigned port) {
  (void)ctx;
  assert(port > 0 && port < 65536);
}

static void on_wake(void *ctx, uint64_t ms) {
  (void)ctx;
  (void)ms;
}

static void on_word(void *ctx) {
  (void)ctx;
}

/* The first letter of a line says what it is: a reply to one of the requests, an event, ... */
static void serve(const struct driver_ops *ops, struct driver *d, struct str text) {
  static const char letters[] = "xspar"; /* events, session, prompt, abort, reply */
  static const struct driver_reply flows = {.status = 200, .begun = true};
  ops->output(d, 1, STR("opencode server listening on http://127.0.0.1:4096\n"));
  ops->reply(d, &flows);
  while (text.p != NULL && text.n > 0) {
    struct str line = str_next_line(&text);
    if (line.n == 0)
      continue;
    const char *letter = strchr(letters, line.p[0] | 0x20);
    bool upper = (line.p[0] & 0x20) == 0;
    struct str rest = {line.p + 1, line.n - 1};
    struct driver_reply reply = {.status = upper ? 500 : 200, .body = rest};
    reply.id = letter != NULL && *letter != '\0' ? (int)(letter - letters) : 0;
    if (line.p[0] == 'w')
      ops->woke(d);
    else if (line.p[0] == 'i')
      (void)ops->interrupt(d);
    else if (line.p[0] == 'o')
      ops->output(d, 1, rest);
    else if (line.p[0] == '{' || line.p[0] == 'e')
      ops->event(d, line.p[0] == 'e' ? rest : line);
    else if (line.p[0] == 'b')
      ops->reply(d, &(struct driver_reply){.id = 2, .class = CLASS_NETWORK, .message = "cut"});
    else
      ops->reply(d, &reply);
  }
}

static void feed(const struct driver_ops *ops, struct driver *d, bool replays, size_t piece,
                 struct str text) {
  for (size_t i = 0; replays && text.p != NULL && text.n > 0; i++) {
    struct str line = str_next_line(&text);
    if (i % 3 == 2) {
      ops->sent(d, line);
    } else {
      ops->output(d, 1, line);
      ops->output(d, 1, STR("\n"));
    }
  }
  for (size_t at = 0; !replays && at < text.n; at += piece)
    ops->output(d, 1, (struct str){text.p + at, text.n - at < piece ? text.n - at : piece});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const struct {
    const char *profile;
    const struct driver_ops *ops;
  } all[] = {{"gemini", &driver_acp},  {"codex", &driver_acp},        {"claude", &driver_acp},
             {"acp", &driver_acp},     {"claude", &driver_claude},    {"codex", &driver_codex},
             {"copilot", &driver_acp}, {"opencode", &driver_opencode}};
  static struct profiles *profiles;
  struct err_list errors = {0};
  struct seen seen = {0};
  AUTO(call_result_deinit) struct call_result result = {0};
  if (profiles == NULL)
    profiles = profiles_load(NULL, &errors);
  if (size < 2)
    return 0;
  bool replays = (data[0] & 8) != 0;
  const struct driver_ops *ops = all[data[0] % 8].ops;
  const struct profile *profile = profiles_find(profiles, str_from(all[data[0] % 8].profile));
  struct str text = {(const char *)data + 2, size - 2};
  json_auto_t *schema = json_object();
  const struct call_request request = {
      .purpose = PURPOSE_EXECUTE, .stage = STAGE_COUNT, .model = STR("m/n")};
  const struct agent_call call = {.request = &request,
                                  .cwd = "/w",
                                  .tmpdir = "/t",
                                  .session = data[0] & 16 ? "s" : "",
                                  .new_session = "",
                                  .schema = schema,
                                  .permission = (enum permission)(data[1] % PERMISSION_COUNT)};
  struct driver_host host = {
      .news = on_news, .write = replays ? NULL : on_write, .close_stdin = on_close, .ctx = &seen};
  bool serves = !replays && ops->password_env != NULL;
  struct secrets *secrets = secrets_new();
  if (serves) {
    host.serves_at = on_serves_at;
    host.request = on_request;
    host.wake = on_wake;
    host.progress = host.give_up = on_word;
    secrets_add(secrets, "PASSWORD", STR("a password of some length"));
    host.secrets = secrets;
  }
  const struct process_result process = {.why = PROCESS_END_EXITED, .exit_code = data[1] & 1};
  struct driver *d = ops->open(profile, &call, &host);
  if (serves)
    serve(ops, d, text);
  else
    feed(ops, d, replays, data[1] / 4 + 1u, text);
  if ((data[0] & 32) != 0 && ops->interrupt != NULL)
    (void)ops->interrupt(d);
  ops->end(d, &process, &result);
  ops->close(d);
  secrets_free(secrets);
  assert((result.class == CLASS_NONE) == (result.message[0] == '\0'));
  json_decref(replay_end_json(&result));
  return 0;
}
