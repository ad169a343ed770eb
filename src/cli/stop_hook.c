/* Judges whether a coding agent may end its turn. */
#include "cli/stop_hook.h"

#include "base/limits.h"
#include "base/sha256.h"
#include "cli/json_io.h"
#include "cli/program.h"
#include "format/json_write.h"
#include "host/paths.h"
#include "os/fs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REASON_BYTES = 4000, STOP_WORDS_MAX = 24 };

/* ---- what the agent said last ---- */

static void put_texts(struct buf *out, const json_t *content) {
  size_t i;
  const json_t *part;
  if (json_is_string(content))
    buf_append(out, json_string_value(content), json_string_length(content));
  json_array_foreach(content, i, part) {
    const json_t *text = json_object_get(part, "text");
    if (json_is_string(text))
      buf_append(out, json_string_value(text), json_string_length(text));
  }
}

/* Finds the assistant's last words in the transcript, which has a JSON object on each line. */
static bool last_of_transcript(const char *path, struct buf *out, struct err *err) {
  FILE *file = fopen(path, "re");
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  if (file == NULL)
    return err_set_errno(err, errno, "cannot open the transcript %s", path);
  while ((n = getline(&line, &room, file)) > 0) {
    struct buf text = {0};
    json_t *entry = json_loadb(line, (size_t)n, 0, NULL);
    const char *type = json_string_value(json_object_get(entry, "type"));
    if (type != NULL && strcmp(type, "assistant") == 0)
      put_texts(&text, json_object_get(json_object_get(entry, "message"), "content"));
    if (text.n > 0) {
      buf_clear(out);
      buf_append(out, text.p, text.n);
    }
    buf_deinit(&text);
    json_decref(entry);
  }
  free(line);
  (void)fclose(file);
  return out->n > 0 || err_set(err, ERR_INVALID, "%s contains no answer from the agent", path);
}

static bool stop_last_answer(const json_t *event, struct buf *out, struct err *err) {
  const json_t *said = json_object_get(event, "last_assistant_message");
  const char *path = json_string_value(json_object_get(event, "transcript_path"));
  if (json_is_string(said) && json_string_length(said) > 0) {
    buf_append(out, json_string_value(said), json_string_length(said));
    return true;
  }
  if (path == NULL)
    return err_set(err, ERR_INVALID,
                   "the event has neither last_assistant_message nor transcript_path");
  return last_of_transcript(path, out, err);
}

/* ---- how often it was told to go on ---- */

/* Names the file that counts for a conversation: its size is the count. */
static bool count_path(const json_t *event, char out[PATHS_BYTES]) {
  const char *id = json_string_value(json_object_get(event, "session_id"));
  char state[PATHS_BYTES], hash[SHA256_HEX];
  struct err err;
  if (id == NULL || !paths_state("hooks", state, &err))
    return false;
  sha256_hex(id, strlen(id), NULL, 0, hash);
  return snprintf(out, PATHS_BYTES, "%s/%.16s", state, hash) < PATHS_BYTES;
}

static unsigned stop_count(const json_t *event) {
  char path[PATHS_BYTES];
  struct stat st;
  return count_path(event, path) && stat(path, &st) == 0 ? (unsigned)st.st_size : 0;
}

static void stop_count_set(const json_t *event, unsigned count) {
  char path[PATHS_BYTES];
  FILE *file = count_path(event, path) ? fopen(path, "we") : NULL;
  for (unsigned i = 0; file != NULL && i < count; i++)
    (void)fputc('.', file);
  if (file != NULL)
    (void)fclose(file);
}

/* ---- the session ---- */

static json_t *gate_movement(const struct stop_hook *hook) {
  return json_pack("{sss[sss]ssss*s[{ssss}{ssss}]}", "name", "gate", "command", "sh", "-c",
                   hook->gate, "description", "proves that it is done", "timeout",
                   hook->gate_timeout, "rules", "condition", "when(exit == 0)", "next", "answer",
                   "condition", "when(exit != 0)", "next", "ABORT");
}

static json_t *answer_movement(const struct stop_hook *hook) {
  json_t *rules = json_array(), *judge = json_object();
  for (size_t i = 0; hook->rules[i]; i++)
    json_array_append_new(rules, json_pack("{soss}", "condition", json_io_string(hook->rules[i]),
                                           "next", i == 0 ? "COMPLETE" : "ABORT"));
  if (hook->judge != NULL)
    json_object_set_new(judge, "provider", json_io_string(hook->judge));
  if (hook->model != NULL)
    json_object_set_new(judge, "model", json_io_string(hook->model));
  return json_pack("{ssssssso*so}", "name", "answer", "provider", "script", "instruction",
                   "Say what was done, and whether it is done.", "judge", judge, "rules", rules);
}

static bool write_json(const char *folder, const char *name, json_t *value, struct err *err) {
  char path[PATHS_BYTES];
  char *text = json_dump_text(value, JSON_COMPACT);
  json_decref(value);
  bool fits = snprintf(path, sizeof path, "%s/%s", folder, name) < PATHS_BYTES && text != NULL;
  FILE *file = fits ? fopen(path, "we") : NULL;
  bool ok = file != NULL && fputs(text, file) >= 0;
  ok = file != NULL && fclose(file) == 0 && ok;
  free(text);
  return ok || err_set_errno(err, errno, "cannot write %s", path);
}

static bool write_session(const struct stop_hook *hook, const char *folder, struct str answer,
                          struct err *err) {
  json_t *movements = json_array();
  struct buf safe = {0};
  if (hook->gate != NULL)
    json_array_append_new(movements, gate_movement(hook));
  json_array_append_new(movements, answer_movement(hook));
  buf_safe(&safe, answer, true);
  json_t *reply = json_pack("{ssssso}", "movement", "answer", "purpose", "execute", "text",
                            json_stringn(buf_c(&safe), safe.n));
  buf_deinit(&safe);
  return write_json(folder, "claude-stop.yaml",
                    json_pack("{ssso}", "name", "claude-stop", "movements", movements), err) &&
         write_json(folder, "scenario.json", json_pack("{s[o]}", "replies", reply), err);
}

/* ---- what came of it ---- */

struct stop_seen {
  json_t *judgment; /* the answer's; owned; or NULL */
  json_t *gate;     /* the gate's call_end; owned; or NULL */
  json_t *stop;     /* session_stop or session_end; owned; or NULL */
};

static void see_record(struct stop_seen *seen, json_t *record) {
  const char *type = json_string_value(json_object_get(record, "type"));
  const char *movement = json_string_value(json_object_get(record, "movement"));
  json_t **into = NULL;
  if (type == NULL)
    return;
  if (strcmp(type, "judgment") == 0 && movement && strcmp(movement, "answer") == 0)
    into = &seen->judgment;
  else if (strcmp(type, "call_end") == 0 && seen->gate == NULL)
    into = &seen->gate;
  else if (strcmp(type, "session_stop") == 0 || strcmp(type, "session_end") == 0)
    into = &seen->stop;
  if (into != NULL) {
    json_decref(*into);
    *into = json_incref(record);
  }
}

static void see_records(struct stop_seen *seen, struct str records) {
  while (records.n > 0) {
    const char *end = memchr(records.p, '\n', records.n);
    size_t n = end ? (size_t)(end - records.p) : records.n;
    json_t *record = json_loadb(records.p, n, 0, NULL);
    see_record(seen, record);
    json_decref(record);
    n += end != NULL;
    records.p += n;
    records.n -= n;
  }
}

/* Returns the last bytes of a text, from the start of a line. */
static struct str stop_tail(const char *text) {
  size_t n = strlen(text);
  if (n <= REASON_BYTES)
    return (struct str){text, n};
  const char *from = strchr(text + n - REASON_BYTES, '\n');
  from = from ? from + 1 : text + n - REASON_BYTES;
  return str_from(from);
}

static void say_gate(const struct stop_hook *hook, const struct stop_seen *seen, struct buf *why) {
  const char *text = json_string_value(json_object_get(seen->gate, "text"));
  const char *error =
      json_string_value(json_object_get(json_object_get(seen->gate, "error"), "message"));
  buf_printf(why, "`%s` failed (exit %" JSON_INTEGER_FORMAT "). Mend it, then say what you did.\n",
             hook->gate, json_integer_value(json_object_get(seen->gate, "exit")));
  if (error != NULL)
    buf_printf(why, "%s\n", error);
  if (text != NULL)
    buf_safe(why, stop_tail(text), true);
}

/* Returns the reason of the stage that decided, which is the last one. */
static const char *stop_reason(const json_t *judgment) {
  const json_t *stages = json_object_get(judgment, "stages");
  size_t n = json_array_size(stages);
  return n > 0 ? json_string_value(json_object_get(json_array_get(stages, n - 1), "reason")) : NULL;
}

static enum stop_verdict stop_told(const struct stop_hook *hook, const struct stop_seen *seen,
                                   int status, struct buf *why) {
  const char *reason = stop_reason(seen->judgment);
  const char *method = json_string_value(json_object_get(seen->judgment, "method"));
  json_int_t rule = json_integer_value(json_object_get(seen->judgment, "rule"));
  if (status == 0)
    return STOP_MAY;
  if (seen->judgment != NULL && rule >= 1) {
    buf_printf(why, "Your last answer was judged \"%s\" (%s)%s%s\nGo on until it is \"%s\".",
               hook->rules[rule - 1], method ? method : "?", reason ? ": " : ".",
               reason ? reason : "", hook->rules[0]);
    return STOP_MUST_GO_ON;
  }
  if (status == 3 && hook->gate != NULL) {
    say_gate(hook, seen, why);
    return STOP_MUST_GO_ON;
  }
  const char *message = json_string_value(json_object_get(seen->stop, "message"));
  buf_printf(why, "segue could not judge whether it is done: %s",
             message ? message : "see segue show last");
  return STOP_UNKNOWN;
}

static bool run_session(const struct stop_hook *hook, const json_t *event, const char *folder,
                        struct program *p, struct err *err) {
  char program[PATHS_BYTES], flow[PATHS_BYTES + 32], scenario[PATHS_BYTES + 32];
  const char *words[STOP_WORDS_MAX] = {program,      "run",    flow,          "--json",
                                       "--scenario", scenario, "--task-file", "-"};
  const char *cwd = json_string_value(json_object_get(event, "cwd"));
  const char *id = json_string_value(json_object_get(event, "session_id"));
  size_t n = 8;
  struct buf task = {0};
  if (!fs_own_program(program, sizeof program))
    return err_set(err, ERR_IO, "segue cannot find its own program");
  (void)snprintf(flow, sizeof flow, "%s/claude-stop.yaml", folder);
  (void)snprintf(scenario, sizeof scenario, "%s/scenario.json", folder);
  const char *const given[][2] = {{"--cwd", cwd}, {"--logs", hook->logs}};
  for (size_t i = 0; i < 2; i++)
    if (given[i][1] != NULL) {
      words[n++] = given[i][0];
      words[n++] = given[i][1];
    }
  buf_printf(&task, "May the agent of conversation %s stop?", id ? id : "?");
  p->argv = (char *const *)(size_t)words;
  p->input = buf_view(&task);
  bool ok = program_run(p, err);
  buf_deinit(&task);
  return ok;
}

static void stop_forget(const char *folder) {
  static const char *const names[] = {"claude-stop.yaml", "scenario.json"};
  char path[PATHS_BYTES + 32];
  for (size_t i = 0; i < 2; i++) {
    (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    (void)unlink(path);
  }
  (void)rmdir(folder);
}

static bool stop_judge_answer(const struct stop_hook *hook, const json_t *event, struct str answer,
                              enum stop_verdict *verdict, struct buf *why, struct err *err) {
  const char *temp = getenv("TMPDIR");
  char folder[PATHS_BYTES];
  struct program p = {0};
  struct stop_seen seen = {0};
  (void)snprintf(folder, sizeof folder, "%.900s/segue-hook-XXXXXX", temp ? temp : "/tmp");
  if (mkdtemp(folder) == NULL)
    return err_set_errno(err, errno, "cannot make a folder in %s", temp ? temp : "/tmp");
  bool ok = write_session(hook, folder, answer, err) && run_session(hook, event, folder, &p, err);
  if (ok && p.status == 2)
    ok = err_set(err, ERR_USAGE, "%.900s", buf_c(&p.errors));
  if (ok) {
    see_records(&seen, buf_view(&p.out));
    *verdict = stop_told(hook, &seen, p.status, why);
  }
  json_decref(seen.judgment);
  json_decref(seen.gate);
  json_decref(seen.stop);
  buf_deinit(&p.out);
  buf_deinit(&p.errors);
  stop_forget(folder);
  return ok;
}

bool stop_hook_judge(const struct stop_hook *hook, const json_t *event, enum stop_verdict *verdict,
                     struct buf *why, struct err *err) {
  assert(hook->rules != NULL && hook->rules[0] != NULL);
  struct buf answer = {0};
  if (!json_is_object(event))
    return err_set(err, ERR_INVALID, "standard input is not the object of a Stop hook");
  unsigned count = stop_count(event);
  bool ok = stop_last_answer(event, &answer, err) &&
            stop_judge_answer(hook, event, buf_view(&answer), verdict, why, err);
  buf_deinit(&answer);
  if (!ok)
    return false;
  if (*verdict == STOP_MUST_GO_ON && count >= hook->most) {
    struct buf said = {0};
    buf_printf(&said, "segue lets it stop after %u refusals: ", count);
    buf_append(&said, why->p, why->n);
    buf_deinit(why);
    *why = said;
    *verdict = STOP_UNKNOWN;
  }
  stop_count_set(event, *verdict == STOP_MUST_GO_ON ? count + 1 : 0);
  return true;
}
