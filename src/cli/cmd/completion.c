/* segue completion: prints what a shell needs to complete words, and answers its questions. */
#include "base/resource.h"
#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "format/json_object.h"
#include "host/backends.h"
#include "host/config.h"
#include "host/paths.h"
#include "store/reader.h"
#include "store/summary.h"
#include "workflow/load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- completions --- */

/* Finds the possible completions when a shell's user presses Tab.
 *
 * `segue completion SHELL` prints a script for a shell, and each such script asks `segue
 * completion --for WORD...`, so that three shells cannot offer three things. An answer is a line a
 * word, "WORD<tab>what it is", or the one line ":files" where a path belongs. */

enum { COMPLETE_SESSIONS_MAX = 30 };

struct completing {
  const struct cli_command *command;
  char *const *words;
  size_t count;
  const char *start; /* the word being written, as far as it has come */
  const char *logs;  /* --logs of this line; or NULL */
  FILE *out;
};

/* Offers a word, unless a shell would have to quote it. */
static void offer(const struct completing *c, const char *word, const char *what) {
  if (strncmp(word, c->start, strlen(c->start)) != 0 ||
      strpbrk(word, " \t\n'\"\\$`;&|<>()") != NULL)
    return;
  buf_auto_t line = {0};
  buf_safe(&line, str_from(what ? what : ""), false);
  fprintf(c->out, "%s\t%s\n", word, buf_c(&line));
}

/* ---- what there is at the moment ---- */

static void offer_session(const struct completing *c, const struct store *store, const char *id) {
  struct store_ref ref;
  AUTO(summary_deinit) struct summary summary = {0};
  struct err err;
  char what[200];
  store_ref(store, id, &ref);
  if (!summary_read(&summary, &ref, &err))
    return;
  print_into(what, sizeof what, "%s %.60s", summary_status(&summary),
             summary.workflow ? summary.workflow : "");
  offer(c, id, what);
}

/* Offers the newest sessions whose names begin like the word. */
static void offer_sessions(const struct completing *c) {
  struct store store;
  struct store_id *ids = NULL;
  struct err err;
  size_t count = 0, shown = 0;
  offer(c, "last", "the most recent session");
  if (!resolve_id_store(c->logs, &store, &err) || !store_exists(&store) ||
      !store_list(&store, &ids, &count, &err))
    return;
  for (size_t i = 0; i < count && shown < COMPLETE_SESSIONS_MAX; i++)
    if (strncmp(ids[i].id, c->start, strlen(c->start)) == 0) {
      offer_session(c, &store, ids[i].id);
      shown++;
    }
  free(ids);
}

static void offer_workflow(void *ctx, const char *name, const char *folder) {
  offer(ctx, name, folder);
}

static void offer_movements_of(const struct completing *c, const json_t *workflow) {
  JSON_EACH(json_object_get(workflow, "movements"), i, movement) {
    const char *name = cli_text(movement, "name"), *what = cli_text(movement, "description");
    if (name != NULL)
      offer(c, name, what);
  }
}

/* Offers the movements of `word`, a session or a workflow. */
static void offer_movements(const struct completing *c, const char *word) {
  char path[PATHS_BYTES], cwd[PATHS_BYTES];
  struct store_ref ref;
  AUTO(reader_close) struct log_reader reader = {0};
  struct err err;
  struct str line;
  json_t *workflow = NULL;
  if (resolve_id_session(word, c->logs, NULL, &ref, &err)) {
    if (!reader_open(&reader, &ref, &err))
      return;
    json_auto_t *first = reader_next(&reader, &line) ? json_loadb(line.p, line.n, 0, NULL) : NULL;
    offer_movements_of(c, json_object_get(first, "workflow"));
    return;
  }
  word = paths_workflow(word, getcwd(cwd, sizeof cwd) ? cwd : ".", path, &err);
  if (word == NULL)
    return;
  AUTO(err_list_deinit) struct err_list errors = {0};
  const struct workflow_source source = {.path = word, .named_by_user = true};
  struct workflow_marks *marks = NULL;
  workflow = workflow_load_marked(&source, &errors, &marks);
  offer_movements_of(c, workflow);
  json_decref(workflow);
  workflow_marks_free(marks);
}

/* ---- what a place takes ---- */

/* Offers what one word of a description such as "ID|last|FILE" means. `before` is the argument in
 * front of it. */
static bool offer_kind(const struct completing *c, struct str word, const char *before) {
  if (str_eq_c(word, "ID")) {
    offer_sessions(c);
  } else if (str_eq_c(word, "WORKFLOW")) {
    struct completing copy = *c;
    paths_workflows(NULL, offer_workflow, &copy);
  } else if (str_among(word, "P PROVIDER NAME=P")) {
    AUTO(config_deinit) struct config config = {0};
    struct err err;
    struct provider_registry *registry = NULL;
    if (config_load(&config, &err) && (registry = backends_new(&config, &err)) != NULL) {
      const struct provider *p;
      for (size_t i = 0; (p = registry_at(registry, i)) != NULL; i++)
        offer(c, p->capability.name, p->capability.summary);
    }
    if (registry != NULL)
      registry_free(registry);
  } else if (str_eq_c(word, "COMMAND")) {
    for (size_t i = 0; cli_commands[i]; i++)
      offer(c, cli_commands[i]->name, cli_commands[i]->summary);
  } else if (word.n >= 8 && memcmp(word.p, LIT("MOVEMENT")) == 0 && before != NULL) {
    offer_movements(c, before);
  } else if (word.n > 0 && word.p[0] >= 'a' && word.p[0] <= 'z') {
    char text[64];
    print_into(text, sizeof text, "%.*s", (int)word.n, word.p);
    offer(c, text, NULL);
  }
  return str_among(word, "FILE DIR PATH FOLDER SCHEMA CASES INSTANCE LABELS OUT WORKFLOW");
}

/* Offers what each word of "[ID|last|FILE...]" means. Returns true if a path may stand there
 * too. */
static bool offer_kinds(const struct completing *c, struct str kinds, const char *before) {
  bool files = false;
  while (kinds.n > 0 && kinds.p[0] == '[') {
    kinds.p++;
    kinds.n--;
  }
  while (kinds.n > 0 && strchr("].", kinds.p[kinds.n - 1]) != NULL)
    kinds.n--;
  while (kinds.n > 0) {
    const char *bar = memchr(kinds.p, '|', kinds.n);
    size_t n = bar ? (size_t)(bar - kinds.p) : kinds.n;
    files = offer_kind(c, (struct str){kinds.p, n}, before) || files;
    n += bar != NULL;
    kinds.p += n;
    kinds.n -= n;
  }
  return files;
}

/* Returns the k-th argument that `arguments` describes; the last one repeats if it says so. */
static struct str described(const char *arguments, size_t k) {
  struct str last = {0};
  while (arguments != NULL && *arguments != '\0') {
    size_t n = strcspn(arguments, " ");
    struct str word = {arguments, n};
    bool is_word = !str_eq_c(word, "[options]") && n > 0 && arguments[0] != '<' &&
                   strncmp(arguments, LIT("[--")) != 0 && strncmp(arguments, LIT("--")) != 0;
    if (!is_word)
      break;
    last = word;
    if (k-- == 0)
      return word;
    arguments += n + (arguments[n] == ' ');
  }
  bool repeats = last.n > 3 && (memcmp(last.p + last.n - 3, LIT("...")) == 0 ||
                                (last.n > 4 && memcmp(last.p + last.n - 4, LIT("...]")) == 0));
  return repeats ? last : (struct str){0};
}

static const struct cli_option *complete_option(const struct cli_command *command,
                                                const char *word) {
  for (const struct cli_option *o = command->options; o && o->name; o++)
    if ((word[0] == '-' && word[1] == '-' && strcmp(word + 2, o->name) == 0) ||
        (word[0] == '-' && word[1] == o->letter && o->letter && word[2] == '\0'))
      return o;
  return NULL;
}

static void complete_argument(struct completing *c) {
  const char *before = NULL;
  size_t position = 0;
  for (size_t i = 1; i + 1 < c->count; i++) {
    const struct cli_option *o = complete_option(c->command, c->words[i]);
    if (o != NULL && o->argument != NULL && i + 2 < c->count) {
      c->logs = strcmp(o->name, "logs") == 0 ? c->words[i + 1] : c->logs;
      i++;
    } else if (c->words[i][0] != '-') {
      before = c->words[i];
      position++;
    }
  }
  const struct cli_option *last =
      c->count > 2 ? complete_option(c->command, c->words[c->count - 2]) : NULL;
  bool files;
  if (last != NULL && last->argument != NULL) {
    files = offer_kinds(
        c, str_from(strcmp(last->name, "workflow") == 0 ? "WORKFLOW" : last->argument), before);
  } else if (c->start[0] == '-') {
    offer(c, "--help", "explain this command");
    for (const struct cli_option *option = c->command->options; option && option->name; option++) {
      char word[80];
      print_into(word, sizeof word, "--%s", option->name);
      offer(c, word, option->help);
    }
    return;
  } else {
    files = offer_kinds(c, described(c->command->arguments, position), before);
  }
  if (files)
    fputs(":files\n", c->out);
}

/* Prints the completions of the last word. words: everything after "segue" up to the cursor; the
 * last word, perhaps empty, is being typed. */
static void complete_words(char *const *words, size_t count, FILE *out) {
  assert(count == 0 || words != NULL);
  struct completing c = {.words = words, .count = count, .out = out};
  c.start = count > 0 ? words[count - 1] : "";
  const struct cli_noun *noun = count > 1 ? cli_find_noun(words[0]) : NULL;
  if (noun != NULL && count == 2) {
    for (size_t i = 0; noun->verbs[i].verb != NULL; i++)
      offer(&c, noun->verbs[i].verb, cli_find(noun->verbs[i].command)->summary);
    return;
  }
  if (count <= 1) {
    for (size_t i = 0; cli_commands[i]; i++) /* those of a noun are offered behind it */
      if (!cli_commands[i]->hidden && strchr(cli_commands[i]->spoken, ' ') == NULL)
        offer(&c, cli_commands[i]->name, cli_commands[i]->summary);
    for (noun = cli_nouns; noun->name != NULL; noun++)
      offer(&c, noun->name, noun->summary);
    return;
  }
  if (noun != NULL) {
    c.words++;
    c.count--;
  }
  c.command = noun != NULL ? cli_find_verb(noun, words[1]) : cli_find(words[0]);
  if (c.command != NULL)
    complete_argument(&c);
}

/* Prints the script of a shell, which asks `segue completion --for -- WORD...` and shows the
 * answer. */
static int completion_run(const struct cli_args *args) {
  const struct resource *script = NULL;
  char path[64];
  if (cli_flag(args, "for")) {
    complete_words(args->words, args->word_count, stdout);
    return STATUS_COMPLETE;
  }
  if (args->word_count == 1) {
    print_into(path, sizeof path, "cli/completion/segue.%s", args->words[0]);
    script = resource_find(path);
  }
  if (script == NULL)
    return cli_refuse("completion", "write bash, zsh or fish");
  fputs(script->p, stdout);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_completion = {COMMAND_COMPLETION, .run = completion_run};
