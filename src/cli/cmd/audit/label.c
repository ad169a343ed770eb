/* segue label: records what a person says should have been chosen. */
#include "store/label.h"
#include "audit/explain.h"
#include "audit/rejudge.h"
#include "audit/sample.h"
#include "cli/audit_filters.h"
#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "core/workflow.h"
#include "host/resume_options.h"

#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* --- a sample --- */

/* `segue label --sample`: asks a person for the right rule of each judgment in a sample, one
 * screen each.
 *
 * Keys: a rule's number, 0 for no rule, s to skip one for now, q to end. Each answer is durable
 * before the next question; judgments that this person has labelled in the sample are not asked
 * again. */

struct label_sample {
  const struct sample *draw;
  const struct store *store;
  const char *by; /* who answers */
  bool blind;     /* show the verdict only afterwards */
};

enum { SHOWN_LINES = 30, KEY_QUIT = -1, KEY_SKIP = -2, KEY_AGAIN = -3, CONTROL_C = 3 };

struct label_asked {
  const struct label_sample *sample;
  const struct sample_turn *turn;
  size_t number, count; /* which, of how many */
  struct rejudge_case *made;
  struct buf said; /* of the answer before: the next screen shows it once more */
  struct map done; /* session, turn and stratum */
  struct arena arena;
};

/* --- what is labelled already --- */

static void label_key(struct buf *key, const char *session, long turn, const char *stratum) {
  buf_printf(key, "%s %ld %s", session, turn, stratum);
}

static void on_known(void *ctx, const struct label *label) {
  struct label_asked *a = ctx;
  buf_auto_t key = {0};
  if (strcmp(label->by, a->sample->by) != 0 || label->population == 0)
    return;
  label_key(&key, label->session, label->turn, label->stratum);
  map_put(&a->done, &a->arena, buf_view(&key), 1);
}

static uint64_t label_stratum(const struct label_asked *a, const struct sample_turn *turn,
                              char out[LABEL_STRATUM_BYTES]) {
  buf_auto_t stratum = {.max = LABEL_STRATUM_BYTES - 1};
  uint64_t population = sample_stratum(a->sample->draw, turn, &stratum);
  print_into(out, LABEL_STRATUM_BYTES, "%s", buf_c(&stratum));
  return population;
}

/* Returns true if the turn has a label of this stratum: those of another sample have other
 * weights. */
static bool is_labelled(const struct label_asked *a, const struct sample_turn *turn) {
  char stratum[LABEL_STRATUM_BYTES];
  buf_auto_t key = {0};
  uint32_t value;
  (void)label_stratum(a, turn, stratum);
  label_key(&key, turn->session, turn->turn, stratum);
  return map_get(&a->done, buf_view(&key), &value);
}

/* --- the screen --- */

static bool label_read(struct label_asked *a, struct err *err) {
  const struct rejudge_as as = {.max_reasks = -1};
  struct store_ref ref;
  store_ref(a->sample->store, a->turn->session, &ref);
  struct rejudge_reading *reading = rejudge_open(&ref, &a->turn->turn, 1, &as, err);
  bool ok = reading != NULL && rejudge_next(reading, &a->made, err);
  rejudge_close(reading);
  return ok;
}

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
  struct str method = dictionary_text(&a->sample->draw->aggregate->names, a->turn->method);
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
  printf("%s%zu of %zu%s  %s turn %ld  ", cli_paint(colours, COLOUR_BOLD), a->number, a->count,
         cli_paint(colours, COLOUR_NONE), a->turn->session, a->turn->turn);
  cli_say(stdout, "%s\n", a->made->core.workflow->movements[0].name.p);
  putchar('\n');
  show_text(buf_view(&work->text.bytes));
  if (work->has_exit)
    printf("  exit %d\n", work->exit);
  if (json_array_size(work->files) > 0)
    printf("  %zu files changed\n", json_array_size(work->files) + work->files_more);
  printf("\n");
  show_rules(a->made->core.workflow);
  if (!a->sample->blind) {
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
  return str_to_long(str_from(word), &rule) && rule >= 0 && rule <= (long)rules ? rule : KEY_AGAIN;
}

static void ask_for_key(size_t rules) {
  printf("rule (0 to %zu; s skips it for now, q quits)? ", rules);
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
  struct label label = {.turn = a->turn->turn, .rule = rule, .blind = a->sample->blind};
  memcpy(label.session, a->turn->session, sizeof label.session);
  print_into(label.by, sizeof label.by, "%s", a->sample->by);
  label.population = label_stratum(a, a->turn, label.stratum);
  if (!labels_append(a->sample->store, &label, 1, err))
    return false;
  buf_puts(&a->said, rule == a->turn->rule ? "the same; " : "another one; ");
  label_put_verdict(a, &a->said);
  buf_puts(&a->said, "\n\n");
  fputs(buf_c(&a->said), stdout);
  return true;
}

/* Asks about one turn. *key is as ask_key gives it. */
static bool label_ask(struct label_asked *a, long *key, struct err *err) {
  if (!label_read(a, err)) {
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

static bool label_sample_run(const struct label_sample *s, struct err *err) {
  const struct sample *d = s->draw;
  struct label_asked a = {.sample = s, .count = d->count};
  size_t labelled = 0;
  long key = 0;
  bool ok = labels_read(s->store, on_known, &a, err);
  for (size_t i = 0; ok && key != KEY_QUIT && i < d->count; i++) {
    a.turn = &d->turns[i];
    a.number = i + 1;
    if (!is_labelled(&a, a.turn))
      ok = label_ask(&a, &key, err);
    else
      key = 0;
    labelled += ok && key >= 0;
  }
  if (ok)
    printf("%zu of %zu labelled%s\n", labelled, d->count,
           labelled < d->count ? ": run it again to go on" : ": segue agree compares them");
  buf_deinit(&a.said);
  map_deinit(&a.done);
  arena_deinit(&a.arena);
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

static const char *label_who(const struct cli_args *args) {
  const char *as = cli_value(args, "as");
  return as != NULL || cli_value(args, "sample") != NULL ? as : cli_value(args, "by");
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

static bool sample_draw(struct sample *d, const struct store *store, const struct cli_args *args,
                        struct err *err) {
  struct label who;
  long n = 0;
  if (!str_to_long(str_from(cli_value(args, "sample")), &n) || n < 1 || n > SAMPLE_MOST)
    return err_set(err, ERR_USAGE, "--sample: write how many, 1 to %d", SAMPLE_MOST);
  if (!label_by(label_who(args), &who, err) ||
      !sample_init(d, (struct aggregate *)d->aggregate, cli_value_or(args, "by", ""), (size_t)n,
                   cli_value_or(args, "seed", ""), err) ||
      !store_each(store, d, sample_read, err) || !sample_end(d, err))
    return false;
  if (d->unsound > 0)
    fprintf(stderr, "segue label: %llu logs are not intact and were left out\n",
            (unsigned long long)d->unsound);
  const struct label_sample sample = {
      .draw = d, .store = store, .by = who.by, .blind = cli_flag(args, "blind")};
  return label_sample_run(&sample, err);
}

static bool label_sample(const struct cli_args *args, struct err *err) {
  const char *folder = args->word_count > 0 ? args->words[0] : cli_value(args, "logs");
  struct store store;
  if (args->word_count > 1 || cli_value(args, "turn") != NULL)
    return err_set(err, ERR_USAGE, "--sample takes at most one folder of logs, and no --turn");
  if (!resolve_id_store(folder, &store, err))
    return false;
  struct aggregate *c = aggregate_new();
  AUTO(sample_deinit) struct sample d = {.aggregate = c};
  bool ok = audit_filters(c, args, false, err) && sample_draw(&d, &store, args, err);
  aggregate_free(c);
  return ok;
}

/* Checks for options that need --sample. */
static bool label_usage(const struct cli_args *args, struct err *err) {
  static const char *const of_samples[] = {"blind", "seed"};
  for (size_t i = 0; i < ARRAY_LEN(of_samples); i++)
    if (cli_value(args, of_samples[i]) != NULL || cli_flag(args, of_samples[i]))
      return err_set(err, ERR_USAGE, "--%s needs --sample", of_samples[i]);
  return args->word_count == 3 ||
         err_set(err, ERR_USAGE, "write a session, a movement and a rule's number, or --sample N");
}

static int label_run(const struct cli_args *args) {
  struct labelling l = {0};
  struct err err = {0};
  bool ok;
  if (!resume_options_by_person("label", args->word_count > 0 ? args->words[0] : "--sample", &err))
    ok = false;
  else if (cli_value(args, "sample") != NULL)
    ok = label_sample(args, &err);
  else
    ok = label_usage(args, &err) && label_one(args, &l, &err);
  dictionary_deinit(&l.names);
  return cli_done("label", ok, &err);
}

const struct cli_command cmd_label = {COMMAND_LABEL, .run = label_run};
