/* segue hook: judges a coding agent's last answer when its own hooks ask whether it may stop. */
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/program.h"
#include "cli/stop_hook.h"
#include "format/json_write.h"
#include "os/fs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOOK_MOST = 5, HOOK_RULES_MAX = 50 };

static const struct cli_option options[] = {
    {"gate", 'g', "COMMAND",
     "a command that must succeed first: a line for sh, such as './dev test'", false},
    {"gate-timeout", 0, "TIME", "how long the gate may run (default 10m)", false},
    {"rule", 'r', "COND", "a condition; if the first one holds, the agent may stop", true},
    {"judge-provider", 0, "P", "who judges", false},
    {"model", 'm', "MODEL", "the judge's model", false},
    {"most", 0, "N", "after this many refusals in a row the agent may stop anyway (default 5)",
     false},
    {"logs", 'l', "DIR", "where the session log goes", false},
    {"project", 0, NULL, "install: write to .claude/settings.json here, not to the user's", false},
    {"yes", 'y', NULL, "install: write without asking", false},
    {0},
};

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
                             .judge = cli_value(args, "judge-provider"),
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

/* Prints the verdict. The client shows `systemMessage` to the person and gives `reason` to the
 * agent. */
static void hook_print_verdict(enum stop_verdict verdict, const struct buf *why) {
  json_t *answer = json_object();
  if (verdict == STOP_MUST_GO_ON)
    json_object_set_new(answer, "decision", json_string("block"));
  if (verdict != STOP_MAY)
    json_object_set_new(answer, verdict == STOP_MUST_GO_ON ? "reason" : "systemMessage",
                        json_stringn(buf_c(why), why->n));
  json_io_print(answer, JSON_IO_COMPACT);
  json_decref(answer);
}

static int claude_stop(const struct cli_args *args) {
  const char *rules[HOOK_RULES_MAX + 1];
  struct stop_hook hook;
  struct buf input = {0}, why = {0};
  struct err err = {0};
  enum stop_verdict verdict = STOP_UNKNOWN;
  bool ok = read_hook(&hook, args, rules, &err) &&
            file_read_fd(STDIN_FILENO, "standard input", LIMIT_OUTPUT_BYTES, &input, &err);
  json_t *event = ok ? json_io_parse("standard input", buf_view(&input), &err) : NULL;
  ok = event != NULL && stop_hook_judge(&hook, event, &verdict, &why, &err);
  if (ok)
    hook_print_verdict(verdict, &why);
  json_decref(event);
  buf_deinit(&input);
  buf_deinit(&why);
  return ok ? STATUS_COMPLETE : cli_fail("hook", &err);
}

/* ---- install ---- */

static void hook_put_quoted(struct buf *out, const char *word) {
  buf_puts(out, " '");
  for (; *word; word++)
    if (*word == '\'')
      buf_puts(out, "'\\''");
    else
      buf_putc(out, *word);
  buf_putc(out, '\'');
}

/* Writes the line that the client is to run: this program with the options given here. */
static void hook_line(const struct cli_args *args, struct buf *out) {
  char program[4096];
  bool found = fs_own_program(program, sizeof program);
  bool plain = strspn(program, "/._-0123456789abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(found ? program : "");
  if (found && !plain)
    hook_put_quoted(out, program);
  else
    buf_puts(out, found ? program : "segue");
  buf_puts(out, " hook claude-stop");
  for (size_t i = 0; i < args->given_count; i++) {
    const struct cli_option *o = args->given[i].option;
    if (strcmp(o->name, "yes") == 0 || strcmp(o->name, "project") == 0)
      continue;
    buf_printf(out, " --%s", o->name);
    hook_put_quoted(out, args->given[i].value);
  }
}

static bool settings_path(const struct cli_args *args, char out[4096], struct err *err) {
  const char *home = getenv("HOME");
  if (cli_flag(args, "project")) {
    (void)snprintf(out, 4096, ".claude/settings.json");
    return true;
  }
  return (home != NULL && home[0] == '/' &&
          snprintf(out, 4096, "%s/.claude/settings.json", home) < 4096) ||
         err_set(err, ERR_USAGE, "there is no home folder: HOME is not set");
}

/* Finds our hook from an earlier install; returns the entry's object with the command, or NULL. */
static json_t *find_installed_hook(const json_t *stop) {
  size_t i, k;
  const json_t *group;
  json_t *hook;
  json_array_foreach((json_t *)(size_t)stop, i, group)
      json_array_foreach(json_object_get(group, "hooks"), k, hook) {
    const char *command = json_string_value(json_object_get(hook, "command"));
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
  json_t *hooks = json_is_object(settings) ? json_object_get(settings, "hooks") : NULL;
  if (hooks == NULL && json_is_object(settings)) {
    hooks = json_object();
    json_object_set_new(settings, "hooks", hooks);
  }
  json_t *stop = json_object_get(hooks, "Stop");
  if (stop == NULL && json_is_object(hooks)) {
    stop = json_array();
    json_object_set_new(hooks, "Stop", stop);
  }
  if (!json_is_array(stop)) {
    json_decref(settings);
    return (void)err_set(err, ERR_INVALID,
                         "%s: its hooks are not in the form that Claude Code uses", path),
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

static bool write_whole(const char *path, const char *text, struct err *err) {
  FILE *file = fopen(path, "we");
  bool ok = file != NULL && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
  ok = file != NULL && fclose(file) == 0 && ok;
  return ok || err_set_errno(err, errno, "cannot write %s", path);
}

static void show_diff(const char *old, const char *new) {
  char *argv[] = {"diff", "-u", (char *)(size_t)old, (char *)(size_t) new, NULL};
  struct program p = {.argv = argv};
  struct err ignored;
  struct buf safe = {0};
  if (program_run(&p, &ignored)) {
    buf_safe(&safe, buf_view(&p.out), true);
    fwrite(buf_c(&safe), 1, safe.n, stdout);
  }
  buf_deinit(&safe);
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
  (void)snprintf(folder, sizeof folder, "%s", path);
  *strrchr(folder, '/') = '\0';
  if (mkdir(folder, 0700) != 0 && errno != EEXIST)
    return err_set_errno(err, errno, "cannot make %s", folder);
  (void)snprintf(fresh, sizeof fresh, "%s.segue-new", path);
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
  struct buf line = {0};
  char path[4096];
  json_t *settings = NULL;
  bool ok = read_hook(&hook, args, rules, &err) && settings_path(args, path, &err);
  bool is_there = ok && access(path, F_OK) == 0;
  if (ok) {
    hook_line(args, &line);
    settings = settings_with(path, is_there, buf_c(&line), &err);
  }
  char *text = settings ? json_dump_text(settings, JSON_INDENT(2)) : NULL;
  ok = text != NULL && install_into(args, path, text, is_there, &err);
  free(text);
  json_decref(settings);
  buf_deinit(&line);
  return ok ? STATUS_COMPLETE : cli_fail("hook", &err);
}

/* Maps the status of bad usage. For Claude Code, status 2 of a hook forbids stopping and its errors
 * are the reason: with a misspelt option the agent would never end. Status 1 is shown to the
 * person. */
static int status_of_hook(int argc, char **argv, int status) {
  bool is_hook = false;
  for (int i = 1; i < argc; i++)
    is_hook = is_hook || strcmp(argv[i], "claude-stop") == 0;
  return is_hook && status == STATUS_USAGE ? STATUS_FAILED : status;
}

static int hook_run(int argc, char **argv) {
  struct cli_args args;
  int status;
  if (!cli_parse(&cmd_hook, argc, argv, 1, 1, &args, &status))
    return status_of_hook(argc, argv, status);
  if (strcmp(args.words[0], "claude-stop") == 0)
    return status_of_hook(argc, argv, claude_stop(&args));
  if (strcmp(args.words[0], "install") == 0)
    return hook_install(&args);
  fprintf(stderr, "segue hook: write claude-stop or install\n");
  return STATUS_USAGE;
}

const struct cli_command cmd_hook = {
    .name = "hook",
    .arguments = "claude-stop|install --rule COND --rule COND ... [options]",
    .summary = "let an agent stop only when a gate and a judge agree that it is done",
    .help = "claude-stop is a Stop hook for Claude Code: it reads the hook's JSON from standard "
            "input, runs the gate, judges the agent's last answer, and if the agent must go on, "
            "says why. Each judgment is a session with a log (segue ls --workflow claude-stop; "
            "segue show last answer). If the judge's reply cannot be read, the agent may stop, "
            "and the user is told.\n"
            "\n"
            "  segue hook install --gate './dev test' --rule done --rule 'not done'\n"
            "install shows what it would change in ~/.claude/settings.json, and asks before "
            "writing it.\n"
            "Exit: 0 an answer was printed; 1 (claude-stop) there is none (2 would keep the agent "
            "from stopping); 2 bad usage or file.",
    .options = options,
    .run = hook_run,
};
