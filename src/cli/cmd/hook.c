/* segue hook: judges a coding agent's last answer when its own hooks ask whether it may stop. */
#include "base/file.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "cli/capture.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/paths.h"
#include "os/fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the judgment --- */

/* Decides whether a coding agent may end its turn: runs a gate and judges its last answer.
 *
 * Claude Code calls a Stop hook with an object on standard input and takes {"decision": "block",
 * "reason"} as a no (code.claude.com/docs, hooks). The judging is a session like any other, with a
 * log: a movement that runs the gate, and one whose report is the agent's last answer. */

struct stop_hook {
  const char *gate;                 /* a command line for sh; or NULL */
  const char *gate_timeout;         /* such as 10m */
  const char *const *rules;         /* NULL-terminated; the first lets it stop */
  const char *judge, *model, *logs; /* or NULL */
  unsigned most;                    /* after this many refusals in a row it may stop anyway */
};

enum stop_verdict { STOP_MAY, STOP_MUST_GO_ON, STOP_UNKNOWN };

enum { REASON_BYTES = 4000, STOP_WORDS_MAX = 24 };

/* ---- what the agent said last ---- */

static void put_texts(struct buf *out, const json_t *content) {
  if (json_is_string(content))
    buf_append(out, json_string_value(content), json_string_length(content));
  JSON_EACH(content, i, part) {
    const json_t *text = json_object_get(part, "text");
    if (json_is_string(text))
      buf_append(out, json_string_value(text), json_string_length(text));
  }
}

/* Finds the assistant's last words in the transcript, which has a JSON object on each line. */
static bool last_of_transcript(const char *path, struct buf *out, struct err *err) {
  FILE *file = NULL;
  char *line = NULL;
  struct stat st = {0};
  size_t room = 0, left = LIMIT_TRANSCRIPT_BYTES;
  ssize_t n;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* waits for no other end */
  if (fd < 0)
    return err_set_errno(err, errno, "cannot open the transcript %s", path);
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (file = fdopen(fd, "r")) == NULL) {
    close(fd);
    return err_set(err, ERR_INVALID, "the transcript %s is not a file", path);
  }
  if (st.st_size > (off_t)left) /* its end counts; the first piece of a line is no object */
    (void)fseeko(file, st.st_size - (off_t)left, SEEK_SET);
  while ((n = getline(&line, &room, file)) > 0 && (size_t)n <= left) {
    left -= (size_t)n;
    buf_auto_t text = {0};
    json_auto_t *entry = json_loadb(line, (size_t)n, 0, NULL);
    const char *type = cli_text(entry, "type");
    if (type != NULL && strcmp(type, "assistant") == 0)
      put_texts(&text, json_object_get(json_object_get(entry, "message"), "content"));
    if (text.n > 0) {
      buf_clear(out);
      buf_append(out, text.p, text.n);
    }
  }
  free(line);
  (void)fclose(file);
  return out->n > 0 || err_set(err, ERR_INVALID, "%s contains no answer from the agent", path);
}

static bool stop_last_answer(const json_t *event, struct buf *out, struct err *err) {
  const char *path = cli_text(event, "transcript_path");
  buf_str(out, json_view(json_object_get(event, "last_assistant_message")));
  if (out->n > 0)
    return true;
  if (path == NULL)
    return err_set(err, ERR_INVALID,
                   "the event has neither last_assistant_message nor transcript_path");
  return last_of_transcript(path, out, err);
}

/* ---- how often it was told to go on ---- */

/* Names the file that counts for a conversation: its size is the count. */
static bool count_path(const json_t *event, char out[PATHS_BYTES]) {
  const char *id = cli_text(event, "session_id");
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

static bool write_whole(const char *path, const char *text, struct err *err) {
  FILE *file = text != NULL ? fopen(path, "we") : NULL;
  bool ok = file != NULL && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
  ok = file != NULL && fclose(file) == 0 && ok;
  return ok || err_set_errno(err, errno, "cannot write %s", path);
}

static bool write_json(const char *folder, const char *name, json_t *value, struct err *err) {
  char path[PATHS_BYTES + 32];
  char_auto_t *text = json_dump_text(value, JSON_COMPACT);
  print_into(path, sizeof path, "%s/%s", folder, name);
  bool ok = write_whole(path, text, err);
  json_decref(value);
  return ok;
}

static bool write_session(const struct stop_hook *hook, const char *folder, struct str answer,
                          struct err *err) {
  json_t *movements = json_array();
  buf_auto_t safe = {0};
  if (hook->gate != NULL)
    json_array_append_new(
        movements, json_pack("{sss[sss]ssss*s[{ssss}{ssss}]}", "name", "gate", "command", "sh",
                             "-c", hook->gate, "description", "proves that it is done", "timeout",
                             hook->gate_timeout, "rules", "condition", "when(exit == 0)", "next",
                             "answer", "condition", "when(exit != 0)", "next", "ABORT"));
  json_array_append_new(movements, answer_movement(hook));
  buf_safe(&safe, answer, true);
  json_t *reply = json_pack("{ssssso}", "movement", "answer", "purpose", "execute", "text",
                            json_stringn(buf_c(&safe), safe.n));
  return write_json(folder, "claude-stop.yaml",
                    json_pack("{ssssso}", "name", "claude-stop", "wait_for_outage", "off",
                              "movements", movements),
                    err) &&
         write_json(folder, "scenario.json", json_pack("{s[o]}", "replies", reply), err);
}

/* ---- what came of it ---- */

struct stop_seen {
  json_t *judgment; /* the answer's; owned; or NULL */
  json_t *gate;     /* the gate's call_end; owned; or NULL */
  json_t *stop;     /* session_stop or session_end; owned; or NULL */
};

static void see_record(struct stop_seen *seen, json_t *record) {
  const char *type = cli_text(record, "type"), *movement = cli_text(record, "movement");
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

/* Returns the last bytes of a text, from the start of a line. */
static struct str stop_tail(const char *text) {
  size_t n = strlen(text);
  if (n <= REASON_BYTES)
    return (struct str){text, n};
  const char *from = strchr(text + n - REASON_BYTES, '\n');
  from = from ? from + 1 : text + n - REASON_BYTES;
  return str_from(from);
}

/* Returns the reason of the stage that decided, which is the last one. */
static const char *stop_reason(const json_t *judgment) {
  const json_t *stages = json_object_get(judgment, "stages");
  size_t n = json_array_size(stages);
  return n > 0 ? cli_text(json_array_get(stages, n - 1), "reason") : NULL;
}

static enum stop_verdict stop_told(const struct stop_hook *hook, const struct stop_seen *seen,
                                   int status, struct buf *why) {
  const char *reason = stop_reason(seen->judgment), *method = cli_text(seen->judgment, "method");
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
    const char *text = cli_text(seen->gate, "text");
    const char *error = cli_text(json_object_get(seen->gate, "error"), "message");
    buf_printf(why,
               "`%s` failed (exit %" JSON_INTEGER_FORMAT "). Mend it, then say what you did.\n",
               hook->gate, json_integer_value(json_object_get(seen->gate, "exit")));
    if (error != NULL)
      buf_printf(why, "%s\n", error);
    if (text != NULL)
      buf_safe(why, stop_tail(text), true);
    return STOP_MUST_GO_ON;
  }
  const char *message = cli_text(seen->stop, "message");
  buf_printf(why, "segue could not judge whether it is done: %s",
             message ? message : "see segue show last");
  return STOP_UNKNOWN;
}

static bool run_session(const struct stop_hook *hook, const json_t *event, const char *folder,
                        struct program *p, struct err *err) {
  char program[PATHS_BYTES], flow[PATHS_BYTES + 32], scenario[PATHS_BYTES + 32];
  const char *words[STOP_WORDS_MAX] = {program,      "run",    flow,          "--json",
                                       "--scenario", scenario, "--task-file", "-"};
  const char *cwd = cli_text(event, "cwd"), *id = cli_text(event, "session_id");
  size_t n = 8;
  buf_auto_t task = {0};
  if (!fs_own_program(program, sizeof program))
    return err_set(err, ERR_IO, "segue cannot find its own program");
  print_into(flow, sizeof flow, "%s/claude-stop.yaml", folder);
  print_into(scenario, sizeof scenario, "%s/scenario.json", folder);
  const char *const given[][2] = {{"--cwd", cwd}, {"--logs", hook->logs}};
  for (size_t i = 0; i < 2; i++)
    if (given[i][1] != NULL) {
      words[n++] = given[i][0];
      words[n++] = given[i][1];
    }
  buf_printf(&task, "May the agent of conversation %s stop?", id ? id : "?");
  p->argv = (char *const *)(size_t)words;
  p->input = buf_view(&task);
  return program_run(p, err);
}

static bool stop_judge_answer(const struct stop_hook *hook, const json_t *event, struct str answer,
                              enum stop_verdict *verdict, struct buf *why, struct err *err) {
  const char *temp = getenv("TMPDIR");
  char folder[PATHS_BYTES];
  struct program p = {0};
  struct stop_seen seen = {0};
  print_into(folder, sizeof folder, "%.900s/segue-hook-XXXXXX", temp ? temp : "/tmp");
  if (mkdtemp(folder) == NULL)
    return err_set_errno(err, errno, "cannot make a folder in %s", temp ? temp : "/tmp");
  bool ok = write_session(hook, folder, answer, err) && run_session(hook, event, folder, &p, err);
  if (ok && p.status == 2)
    ok = err_set(err, ERR_USAGE, "%.900s", buf_c(&p.errors));
  if (ok) {
    struct str records = buf_view(&p.out);
    while (records.n > 0) {
      struct str line = str_next_line(&records);
      json_auto_t *record = json_loadb(line.p, line.n, 0, NULL);
      see_record(&seen, record);
    }
    *verdict = stop_told(hook, &seen, p.status, why);
  }
  json_decref(seen.judgment);
  json_decref(seen.gate);
  json_decref(seen.stop);
  buf_deinit(&p.out);
  buf_deinit(&p.errors);
  static const char *const names[] = {"claude-stop.yaml", "scenario.json"};
  char path[PATHS_BYTES + 32];
  for (size_t i = 0; i < 2; i++) {
    print_into(path, sizeof path, "%s/%s", folder, names[i]);
    (void)unlink(path);
  }
  (void)rmdir(folder);
  return ok;
}

/* Judges whether the agent may stop. `event`: what the client wrote. why: for the agent (continue)
 * or the person (unknown). False: this is no such event, or no session could be run. */
static bool stop_hook_judge(const struct stop_hook *hook, const json_t *event,
                            enum stop_verdict *verdict, struct buf *why, struct err *err) {
  assert(hook->rules != NULL && hook->rules[0] != NULL);
  buf_auto_t answer = {0};
  if (!json_is_object(event))
    return err_set(err, ERR_INVALID, "standard input is not the object of a Stop hook");
  unsigned count = stop_count(event);
  bool ok = stop_last_answer(event, &answer, err) &&
            stop_judge_answer(hook, event, buf_view(&answer), verdict, why, err);
  if (!ok)
    return false;
  if (*verdict == STOP_MUST_GO_ON && count >= hook->most) {
    struct buf said = buf_of("segue lets it stop after %u refusals: ", count);
    buf_append(&said, why->p, why->n);
    buf_deinit(why);
    *why = said;
    *verdict = STOP_UNKNOWN;
  }
  char path[PATHS_BYTES];
  FILE *file = count_path(event, path) ? fopen(path, "we") : NULL;
  for (unsigned i = 0; file != NULL && i < (*verdict == STOP_MUST_GO_ON ? count + 1 : 0); i++)
    (void)fputc('.', file);
  if (file != NULL)
    (void)fclose(file);
  return true;
}

/* --- the command --- */

enum { HOOK_MOST = 5, HOOK_RULES_MAX = 50 };

/* ---- claude-stop ---- */

static bool read_hook(struct stop_hook *hook, const struct cli_args *args,
                      const char *rules[HOOK_RULES_MAX + 1], struct err *err) {
  size_t n = 0;
  const char *most = cli_value(args, "most");
  char *end = NULL;
  while (n < HOOK_RULES_MAX && (rules[n] = cli_values(args, "rule", n)) != NULL)
    n++;
  rules[n] = NULL;
  *hook = (struct stop_hook){.gate = cli_value(args, "gate"),
                             .gate_timeout = cli_value(args, "gate-timeout"),
                             .rules = rules,
                             .judge = cli_value(args, "judge"),
                             .model = cli_value(args, "model"),
                             .logs = cli_value(args, "logs"),
                             .most = HOOK_MOST};
  if (hook->gate_timeout == NULL)
    hook->gate_timeout = "10m";
  if (most != NULL) {
    unsigned long number = strtoul(most, &end, 10);
    if (end == most || *end != '\0' || number > 1000)
      return err_set(err, ERR_USAGE, "--most %s is not a number from 1 to 1000", most);
    hook->most = (unsigned)number;
  }
  return n >= 2 || err_set(err, ERR_USAGE,
                           "give two rules or more; with the first one the agent may stop: --rule "
                           "done --rule 'not done'");
}

static int claude_stop(const struct cli_args *args) {
  const char *rules[HOOK_RULES_MAX + 1];
  struct stop_hook hook;
  buf_auto_t input = {0}, why = {0};
  struct err err = {0};
  enum stop_verdict verdict = STOP_UNKNOWN;
  bool ok = read_hook(&hook, args, rules, &err) &&
            file_read_fd(STDIN_FILENO, "standard input", LIMIT_OUTPUT_BYTES, &input, &err);
  json_auto_t *event = ok ? json_io_parse("standard input", buf_view(&input), &err) : NULL;
  ok = event != NULL && stop_hook_judge(&hook, event, &verdict, &why, &err);
  if (ok) {
    /* The client shows `systemMessage` to the person and gives `reason` to the agent. */
    json_t *answer = json_object();
    if (verdict == STOP_MUST_GO_ON)
      json_object_set_new(answer, "decision", json_string("block"));
    if (verdict != STOP_MAY)
      json_object_set_new(answer, verdict == STOP_MUST_GO_ON ? "reason" : "systemMessage",
                          json_stringn(buf_c(&why), why.n));
    json_io_put(answer);
  }
  return cli_done("hook", ok, &err);
}

/* ---- install ---- */

/* Writes the line that the client is to run: this program with the options given here. */
static void hook_line(const struct cli_args *args, struct buf *out) {
  char program[4096];
  bool found = fs_own_program(program, sizeof program);
  bool plain = strspn(program, "/._-0123456789abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(found ? program : "");
  if (found && !plain)
    buf_quoted(out, str_from(program));
  else
    buf_puts(out, found ? program : "segue");
  buf_puts(out, " hook claude-stop");
  for (size_t i = 0; i < args->given_count; i++) {
    const struct cli_option *o = args->given[i].option;
    if (strcmp(o->name, "yes") == 0 || strcmp(o->name, "project") == 0)
      continue;
    buf_printf(out, " --%s ", o->name);
    buf_quoted(out, str_from(args->given[i].value));
  }
}

static bool settings_path(const struct cli_args *args, char out[4096], struct err *err) {
  const char *home = getenv("HOME");
  if (cli_flag(args, "project")) {
    print_into(out, 4096, ".claude/settings.json");
    return true;
  }
  return (home != NULL && home[0] == '/' &&
          snprintf(out, 4096, "%s/.claude/settings.json", home) < 4096) ||
         err_set(err, ERR_USAGE, "there is no home folder: HOME is not set");
}

/* Finds our hook from an earlier install; returns the entry's object with the command, or NULL. */
static json_t *find_installed_hook(const json_t *stop) {
  JSON_EACH(stop, i, group)
    JSON_EACH(json_object_get(group, "hooks"), k, hook) {
      const char *command = cli_text(hook, "command");
      if (command != NULL && strstr(command, " hook claude-stop ") != NULL)
        return hook;
    }
  return NULL;
}

/* Builds the future content of the file. Returns NULL if that has no object to put hooks into. */
static json_t *settings_with(const char *path, bool is_there, const char *line, struct err *err) {
  json_t *settings = is_there ? json_io_file(path, JSON_IO_VALUE, err) : json_object();
  if (settings == NULL)
    return NULL;
  json_t *hooks = json_is_object(settings) ? cli_member(settings, "hooks") : NULL;
  json_t *stop = json_object_get(hooks, "Stop");
  if (stop == NULL && json_is_object(hooks)) {
    stop = json_array();
    json_object_set_new(hooks, "Stop", stop);
  }
  if (!json_is_array(stop)) {
    json_decref(settings);
    return err_set(err, ERR_INVALID, "%s: its hooks are not in the form that Claude Code uses",
                   path),
           NULL;
  }
  json_t *ours = find_installed_hook(stop);
  if (ours != NULL) /* a second one would run the gate twice */
    json_object_set_new(ours, "command", json_io_string(line));
  else
    json_array_append_new(stop, json_pack("{s[{sssssi}]}", "hooks", "type", "command", "command",
                                          line, "timeout", 3600));
  return settings;
}

static void show_diff(const char *old, const char *new) {
  char *argv[] = {"diff", "-u", (char *)(size_t)old, (char *)(size_t) new, NULL};
  struct program p = {.argv = argv};
  struct err ignored;
  buf_auto_t safe = {0};
  if (program_run(&p, &ignored)) {
    buf_safe(&safe, buf_view(&p.out), true);
    fwrite(buf_c(&safe), 1, safe.n, stdout);
  }
  buf_deinit(&p.out);
  buf_deinit(&p.errors);
}

static bool agreed(const struct cli_args *args, const char *path) {
  char word[16] = "";
  if (cli_flag(args, "yes"))
    return true;
  (void)fflush(stdout);
  if (!isatty(STDIN_FILENO)) {
    fprintf(stderr, "segue hook: nothing was written; --yes writes it\n");
    return false;
  }
  fprintf(stderr, "Write %s? [y/N] ", path);
  return fgets(word, sizeof word, stdin) != NULL && (word[0] == 'y' || word[0] == 'Y');
}

static bool install_into(const struct cli_args *args, const char *path, const char *text,
                         bool is_there, struct err *err) {
  char fresh[4096 + 16], folder[4096];
  print_into(folder, sizeof folder, "%s", path);
  *strrchr(folder, '/') = '\0';
  if (mkdir(folder, 0700) != 0 && errno != EEXIST)
    return err_set_errno(err, errno, "cannot make %s", folder);
  print_into(fresh, sizeof fresh, "%s.segue-new", path);
  if (!write_whole(fresh, text, err))
    return false;
  show_diff(is_there ? path : "/dev/null", fresh);
  if (!agreed(args, path)) {
    (void)unlink(fresh);
    return true;
  }
  if (rename(fresh, path) != 0)
    return err_set_errno(err, errno, "cannot write %s", path);
  printf("%s: written\n", path);
  return true;
}

static int hook_install(const struct cli_args *args) {
  const char *rules[HOOK_RULES_MAX + 1];
  struct stop_hook hook;
  struct err err = {0};
  buf_auto_t line = {0};
  char path[4096];
  json_auto_t *settings = NULL;
  bool ok = read_hook(&hook, args, rules, &err) && settings_path(args, path, &err);
  bool is_there = ok && access(path, F_OK) == 0;
  if (ok) {
    hook_line(args, &line);
    settings = settings_with(path, is_there, buf_c(&line), &err);
  }
  char_auto_t *text = settings ? json_dump_text(settings, JSON_INDENT(2)) : NULL;
  ok = text != NULL && install_into(args, path, text, is_there, &err);
  return cli_done("hook", ok, &err);
}

/* For Claude Code, status 2 of a hook forbids stopping and its errors are the reason: with a
 * misspelt option the agent would never end. Status 1 is shown to the person. */
static int hook_misused(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "claude-stop") == 0)
      return STATUS_FAILED;
  return STATUS_USAGE;
}

static int hook_run(const struct cli_args *args) {
  if (strcmp(args->words[0], "claude-stop") == 0) {
    int status = claude_stop(args);
    return status == STATUS_USAGE ? STATUS_FAILED : status;
  }
  if (strcmp(args->words[0], "install") == 0)
    return hook_install(args);
  fprintf(stderr, "segue hook: write claude-stop or install\n");
  return STATUS_USAGE;
}

const struct cli_command cmd_hook = {COMMAND_HOOK, .run = hook_run, .misused = hook_misused};
