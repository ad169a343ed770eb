/* segue label: records what a person says should have been chosen. */
#include "store/label.h"
#include "audit/explain.h"
#include "audit/label_queue.h"
#include "cli/audit_filters.h"
#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "core/workflow.h"
#include "host/resume_options.h"

#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* --- a queue --- */

/* `segue label --queue` and `--sample`: ask a person for the right rule of one judgment after the
 * other, one screen each.
 *
 * Keys: a rule's number, 0 for no rule, s to skip one for now, u to go back to the one before, q to
 * end. Each answer is durable before the next question, and none is taken away: if a person answers
 * once more, the later answer counts. Judgments that this person has labelled in the sample are not
 * asked again. */

enum { SHOWN_LINES = 30, CONTROL_C = 3 };
enum { KEY_QUIT = -1, KEY_SKIP = -2, KEY_UNDO = -3, KEY_AGAIN = -4 };

struct label_asked {
  const struct label_queue *queue;
  const struct store *store;
  bool blind, tells; /* show the verdict not with the question; show it after the answer */
  const struct sample_turn *turn;
  size_t number; /* which, from 1 */
  struct rejudge_case *made;
  struct buf said; /* of the answer before: the next screen shows it once more */
};

/* --- the screen --- */

static size_t label_line_count(struct str text) {
  size_t n = 0;
  for (; text.n > 0; n++)
    (void)str_next_line(&text);
  return n;
}

/* Shows the end of a text, which holds its outcome. */
static void show_text(struct str text) {
  size_t lines = label_line_count(text), from = lines > SHOWN_LINES ? lines - SHOWN_LINES : 0;
  if (from > 0)
    printf("  (%zu lines before)\n", from);
  for (size_t i = 0; text.n > 0; i++) {
    struct str line = str_next_line(&text);
    buf_auto_t safe = {0};
    if (i < from)
      continue;
    (void)cli_fit(&safe, line, cli_columns(STDOUT_FILENO) - 2);
    printf("  %s\n", buf_c(&safe));
  }
}

static void show_rules(const struct workflow *wf) {
  const struct movement *m = &wf->movements[0];
  for (size_t i = 0; i < m->rule_count; i++) {
    buf_auto_t line = buf_of("%3d  ", m->rules[i].number);
    if (m->rules[i].kind == RULE_WHEN)
      buf_printf(&line, "(an expression: " STR_FMT ")", STR_ARG(m->rules[i].when_text));
    else
      (void)cli_fit(&line, m->rules[i].label, cli_columns(STDOUT_FILENO) - 6);
    puts(buf_c(&line));
  }
  puts("  0  none of them");
}

static void label_put_verdict(const struct label_asked *a, struct buf *out) {
  struct str method = dictionary_text(&a->queue->draw.aggregate->names, a->turn->method);
  buf_puts(out, "the verdict was ");
  cli_put_rule(out, a->turn->rule);
  if (method.p != NULL) {
    buf_puts(out, ", ");
    buf_safe(out, method, false);
  }
}

static void show_screen(struct label_asked *a) {
  const struct call_result *work = &a->made->answer;
  bool colours = cli_colours(STDOUT_FILENO);
  if (isatty(STDOUT_FILENO))
    printf("\033[H\033[2J%s%s", a->said.n > 0 ? "before: " : "", buf_c(&a->said));
  buf_clear(&a->said);
  printf("%s%zu of %zu%s  %s turn %ld  ", cli_paint(colours, COLOUR_BOLD), a->number,
         a->queue->draw.count, cli_paint(colours, COLOUR_NONE), a->turn->session, a->turn->turn);
  cli_say(stdout, "%s\n", a->made->core.workflow->movements[0].name.p);
  if (a->made->task.n > 0) {
    buf_auto_t task = buf_of("task: ");
    (void)cli_fit(&task, buf_view(&a->made->task), cli_columns(STDOUT_FILENO) - 6);
    puts(buf_c(&task));
  }
  putchar('\n');
  show_text(buf_view(&work->text.bytes));
  if (work->has_exit)
    printf("  exit %d\n", work->exit);
  if (json_array_size(work->files) > 0)
    printf("  %zu files changed\n", json_array_size(work->files) + work->files_more);
  printf("\n");
  show_rules(a->made->core.workflow);
  if (!a->blind) {
    buf_auto_t verdict = {0};
    label_put_verdict(a, &verdict);
    puts(buf_c(&verdict));
  }
}

/* --- keys --- */

static long key_of_word(const char *word, size_t rules) {
  long rule;
  if (strcmp(word, "q") == 0)
    return KEY_QUIT;
  if (strcmp(word, "s") == 0)
    return KEY_SKIP;
  if (strcmp(word, "u") == 0)
    return KEY_UNDO;
  return str_to_long(str_from(word), &rule) && rule >= 0 && rule <= (long)rules ? rule : KEY_AGAIN;
}

static void ask_for_key(size_t rules) {
  printf("rule (0 to %zu; s skips it for now, u goes back, q quits)? ", rules);
  fflush(stdout);
}

/* Reads one key, without waiting for the end of a line. The terminal is made ready before anybody
 * is asked: a Ctrl-C in between would end segue instead of the questions. */
static long label_read_key(const struct termios *before, size_t rules) {
  struct termios raw = *before;
  char word[2] = "";
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0)
    return KEY_QUIT;
  ask_for_key(rules);
  ssize_t n = read(STDIN_FILENO, word, 1);
  (void)tcsetattr(STDIN_FILENO, TCSADRAIN, before);
  if (n != 1 || word[0] == CONTROL_C)
    return KEY_QUIT;
  printf("%c\n", word[0] >= ' ' && word[0] < 127 ? word[0] : ' ');
  return key_of_word(word, rules);
}

static long label_read_word(size_t rules) {
  char word[64];
  ask_for_key(rules);
  if (fgets(word, sizeof word, stdin) == NULL)
    return KEY_QUIT;
  word[strcspn(word, "\r\n")] = '\0';
  return key_of_word(word, rules);
}

static long ask_key(size_t rules) {
  struct termios before;
  bool keys = rules <= 9 && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
  for (;;) {
    long key = keys ? label_read_key(&before, rules) : label_read_word(rules);
    if (key != KEY_AGAIN)
      return key;
    puts("that is not the number of a rule");
  }
}

/* --- one after the other --- */

static bool label_answer(struct label_asked *a, long rule, struct err *err) {
  struct label label;
  label_queue_label(a->queue, a->number - 1, rule, &label);
  label.blind = a->blind;
  if (!labels_append(a->store, &label, 1, err))
    return false;
  if (a->tells) {
    buf_puts(&a->said, rule == a->turn->rule ? "the same; " : "another one; ");
    label_put_verdict(a, &a->said);
    buf_puts(&a->said, "\n\n");
  } else {
    buf_printf(&a->said, "rule %ld\n\n", rule);
  }
  fputs(buf_c(&a->said), stdout);
  return true;
}

/* Asks about one turn. *key is as ask_key gives it. */
static bool label_ask(struct label_asked *a, long *key, struct err *err) {
  if (!label_queue_case(a->store, a->turn->session, a->turn->turn, &a->made, err)) {
    cli_say(stderr, "segue label: turn %ld of %s is left out: %s\n", a->turn->turn,
            a->turn->session, err->text);
    *key = KEY_SKIP;
    return true;
  }
  show_screen(a);
  *key = ask_key(a->made->core.workflow->movements[0].rule_count);
  bool ok = *key < 0 || label_answer(a, *key, err);
  rejudge_case_free(a->made);
  a->made = NULL;
  return ok;
}

/* Asks about one judgment after the other. `asked` lists those that were, for the way back. */
static bool label_each(struct label_asked *a, size_t *asked, bool *done, struct err *err) {
  size_t count = a->queue->draw.count, n = 0, next = 0;
  for (long key = 0; key != KEY_QUIT;) {
    while (next < count && done[next])
      next++;
    if (next == count)
      return true;
    a->turn = &a->queue->draw.turns[next];
    a->number = next + 1;
    if (!label_ask(a, &key, err))
      return false;
    if (key != KEY_UNDO) {
      done[next] = key >= 0;
      asked[n++] = next++;
    } else if (n > 0) {
      next = asked[--n];
      done[next] = false;
    }
  }
  return true;
}

static bool label_run_queue(struct label_asked *a, struct err *err) {
  size_t count = a->queue->draw.count, labelled = 0;
  bool *done = xcalloc(count + 1, sizeof *done);
  size_t *asked = xcalloc(count + 1, sizeof *asked);
  for (size_t i = 0; i < count; i++)
    done[i] = label_queue_has(a->queue, i);
  bool ok = label_each(a, asked, done, err);
  for (size_t i = 0; i < count; i++)
    labelled += done[i];
  if (ok)
    printf("%zu of %zu labelled%s\n", labelled, count,
           labelled < count ? ": run it again to go on" : ": segue agree compares them");
  buf_deinit(&a->said);
  free(done);
  free(asked);
  return ok;
}

/* --- the command --- */

struct labelling {
  struct name_list names;
  long asked, turn;   /* --turn, or 0; a turn of the movement */
  struct row of, row; /* of `turn` and of the one to label; the stages are not kept */
};

static void on_labelled(void *ctx, const struct row *row) {
  struct labelling *l = ctx;
  if (row->kind != ROW_JUDGMENT)
    return;
  if (row->turn == l->turn)
    l->of = *row;
  if (row->turn == (l->asked ? l->asked : l->turn))
    l->row = *row;
}

static bool label_rule(const struct labelling *l, const struct verified_reader *book,
                       const char *text, long *rule, struct err *err) {
  struct str movement = dictionary_text(&l->names, l->row.movement);
  json_t *start = verified_get(book, 1, err), *doc = json_object_get(start, "workflow");
  struct workflow *wf = doc != NULL ? workflow_build(doc, err) : NULL;
  long at = wf != NULL ? workflow_find(wf, movement) : -1,
       count = at >= 0 ? (long)wf->movements[at].rule_count : -1;
  workflow_unref(wf);
  json_decref(start);
  if (count < 0)
    return err_set(err, ERR_USAGE, "the session's workflow has no movement \"" STR_FMT "\"",
                   STR_ARG(movement));
  if (!str_to_long(str_from(text), rule) || *rule < 0 || *rule > count)
    return err_set(err, ERR_USAGE,
                   "rule %.40s: write a number from 1 to %ld, or 0 if none of them holds", text,
                   count);
  return true;
}

/* Finds the judgment that is meant. */
static bool label_find_turn(struct labelling *l, const struct store_ref *ref, struct err *err) {
  struct rows rows = {.names = &l->names, .sink = {on_labelled, NULL}, .ctx = l};
  enum rows_log state = rows_read(&rows, ref);
  rows_deinit(&rows);
  if (state != ROWS_SOUND && state != ROWS_TORN)
    return err_set(err, ERR_CORRUPT, "the log is %s: segue verify says more", rows_log_name(state));
  if (l->row.turn != 0 && l->row.movement == l->of.movement)
    return true;
  return err_set(err, ERR_NOT_FOUND, "turn %ld is not a judged turn of that movement",
                 l->asked ? l->asked : l->turn);
}

/* Finds what is named as segue show names it, and reads its rule. */
static bool label_locate(struct labelling *l, const struct store_ref *ref, char **words, long *rule,
                         struct err *err) {
  AUTO(verified_close) struct verified_reader book = {0};
  struct explain_found found;
  if (!verified_open(&book, ref, true, err))
    return false;
  verified_rest(&book);
  bool ok = book.state != VERIFIED_DAMAGED ||
            err_set(err, ERR_CORRUPT, "the log is damaged: segue verify says more");
  ok = ok && explain_find(&book, words[1], true, &found, err);
  l->turn = ok ? found.turn : 0;
  return ok && label_find_turn(l, ref, err) && label_rule(l, &book, words[2], rule, err);
}

static bool label_by(const char *by, struct label *out, struct err *err) {
  by = by != NULL ? by : getenv("USER");
  if (by == NULL || by[0] == '\0')
    return err_set(err, ERR_USAGE, "whose label is it? write --as NAME");
  if (strlen(by) >= sizeof out->by)
    return err_set(err, ERR_USAGE, "--as: at most %zu bytes", sizeof out->by - 1);
  print_into(out->by, sizeof out->by, "%s", by);
  return cli_is_utf8("--as", by, err);
}

static bool asks_many(const struct cli_args *args) {
  return cli_value(args, "sample") != NULL || cli_flag(args, "queue");
}

static const char *label_who(const struct cli_args *args) {
  const char *as = cli_value(args, "as");
  return as != NULL || asks_many(args) ? as : cli_value(args, "by");
}

static bool label_one(const struct cli_args *args, struct labelling *l, struct err *err) {
  struct label label = {0};
  struct store_ref ref;
  struct store store;
  const char *turn = cli_value(args, "turn");
  if (turn != NULL && (!str_to_long(str_from(turn), &l->asked) || l->asked < 1))
    return err_set(err, ERR_USAGE, "--turn %.40s: write a number from 1", turn);
  if (!resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, err) ||
      !label_by(label_who(args), &label, err) ||
      !label_locate(l, &ref, args->words, &label.rule, err))
    return false;
  store_ref_id(&ref, label.session);
  if (label.session[0] == '\0')
    return err_set(err, ERR_USAGE,
                   "labels are stored beside a log, which must have its session's name");
  label.turn = l->row.turn;
  store_of(&ref, &store);
  if (!labels_append(&store, &label, 1, err))
    return false;
  cli_say(stdout, "turn %ld, %s: rule %ld says %s; the verdict was %s%u\n", label.turn,
          dictionary_text(&l->names, l->row.movement).p, label.rule, label.by,
          l->row.rule > 0 ? "rule " : "no rule, ", l->row.rule);
  return true;
}

static bool label_queue_of(const struct cli_args *args, const struct store *store,
                           struct aggregate *aggregate, struct err *err) {
  const char *sample = cli_value(args, "sample");
  struct label who;
  long n = LABEL_QUEUE_USUAL;
  bool queue = cli_flag(args, "queue");
  if (sample != NULL && (!str_to_long(str_from(sample), &n) || n < 1 || n > SAMPLE_MOST))
    return err_set(err, ERR_USAGE, "--sample: write how many, 1 to %d", SAMPLE_MOST);
  if (!label_by(label_who(args), &who, err))
    return false;
  AUTO(label_queue_deinit)
  struct label_queue q = {.by = who.by,
                          .want = (size_t)n,
                          .even = !queue,
                          .keys = cli_value_or(args, "by", ""),
                          .second = cli_value(args, "second"),
                          .seed = cli_value(args, "seed")};
  if (!label_queue_draw(&q, store, aggregate, err))
    return false;
  if (q.draw.unsound > 0)
    fprintf(stderr, "segue label: %llu logs are not intact and were left out\n",
            (unsigned long long)q.draw.unsound);
  struct label_asked a = {.queue = &q,
                          .store = store,
                          .blind = queue ? !cli_flag(args, "verdict") : cli_flag(args, "blind"),
                          .tells = !queue};
  return label_run_queue(&a, err);
}

static bool label_many(const struct cli_args *args, struct err *err) {
  const char *folder = args->word_count > 0 ? args->words[0] : cli_value(args, "logs");
  struct store store;
  if (args->word_count > 1 || cli_value(args, "turn") != NULL)
    return err_set(err, ERR_USAGE,
                   "--queue and --sample take at most one folder of logs, and no --turn");
  if (cli_flag(args, "queue") && cli_value(args, "by") != NULL)
    return err_set(err, ERR_USAGE, "--queue has its own strata: leave out --by, or use --sample");
  if (!cli_flag(args, "queue") && (cli_value(args, "second") != NULL || cli_flag(args, "verdict")))
    return err_set(err, ERR_USAGE, "--second and --verdict need --queue");
  if (!resolve_id_store(folder, &store, err))
    return false;
  struct aggregate *c = aggregate_new();
  bool ok = audit_filters(c, args, false, err) && label_queue_of(args, &store, c, err);
  aggregate_free(c);
  return ok;
}

/* Checks for options that need --queue or --sample. */
static bool label_usage(const struct cli_args *args, struct err *err) {
  static const char *const of_many[] = {"blind", "seed", "second", "verdict"};
  for (size_t i = 0; i < ARRAY_LEN(of_many); i++)
    if (cli_value(args, of_many[i]) != NULL || cli_flag(args, of_many[i]))
      return err_set(err, ERR_USAGE, "--%s needs --sample or --queue", of_many[i]);
  return args->word_count == 3 ||
         err_set(err, ERR_USAGE,
                 "write a session, a movement and a rule's number, or --queue, or --sample N");
}

static int label_run(const struct cli_args *args) {
  struct labelling l = {0};
  struct err err = {0};
  bool ok;
  if (!resume_options_by_person("label", args->word_count > 0 ? args->words[0] : "--queue", &err))
    ok = false;
  else if (asks_many(args))
    ok = label_many(args, &err);
  else
    ok = label_usage(args, &err) && label_one(args, &l, &err);
  dictionary_deinit(&l.names);
  return cli_done("label", ok, &err);
}

const struct cli_command cmd_label = {COMMAND_LABEL, .run = label_run};
