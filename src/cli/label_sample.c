/* Asks for labels of a sample. */
#include "cli/label_sample.h"

#include "audit/rejudge.h"
#include "base/log.h"
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { SHOWN_LINES = 30, KEY_QUIT = -1, KEY_SKIP = -2, KEY_AGAIN = -3, CONTROL_C = 3 };

struct label_asked {
  const struct label_sample *sample;
  const struct draw_turn *turn;
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
  struct buf key = {0};
  if (strcmp(label->by, a->sample->by) != 0 || label->population == 0)
    return;
  label_key(&key, label->session, label->turn, label->stratum);
  map_put(&a->done, &a->arena, buf_view(&key), 1);
  buf_deinit(&key);
}

static uint64_t label_stratum(const struct label_asked *a, const struct draw_turn *turn,
                              char out[LABEL_STRATUM_BYTES]) {
  struct buf stratum = {.max = LABEL_STRATUM_BYTES - 1};
  uint64_t population = draw_stratum(a->sample->draw, turn, &stratum);
  (void)snprintf(out, LABEL_STRATUM_BYTES, "%s", buf_c(&stratum));
  buf_deinit(&stratum);
  return population;
}

/* Returns true if the turn has a label of this stratum: those of another sample have other
 * weights. */
static bool is_labelled(const struct label_asked *a, const struct draw_turn *turn) {
  char stratum[LABEL_STRATUM_BYTES];
  struct buf key = {0};
  uint32_t value;
  (void)label_stratum(a, turn, stratum);
  label_key(&key, turn->session, turn->turn, stratum);
  bool known = map_get(&a->done, buf_view(&key), &value);
  buf_deinit(&key);
  return known;
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
    struct buf safe = {0};
    if (i < from)
      continue;
    (void)cli_fit(&safe, line, cli_columns(STDOUT_FILENO) - 2);
    printf("  %s\n", buf_c(&safe));
    buf_deinit(&safe);
  }
}

static void show_rules(const struct workflow *wf) {
  const struct movement *m = &wf->movements[0];
  for (size_t i = 0; i < m->rule_count; i++) {
    struct buf line = {0};
    buf_printf(&line, "%3d  ", m->rules[i].number);
    if (m->rules[i].kind == RULE_WHEN)
      buf_printf(&line, "(an expression: " STR_FMT ")", STR_ARG(m->rules[i].when_text));
    else
      (void)cli_fit(&line, m->rules[i].label, cli_columns(STDOUT_FILENO) - 6);
    puts(buf_c(&line));
    buf_deinit(&line);
  }
  puts("  0  none of them");
}

static void label_put_verdict(const struct label_asked *a, struct buf *out) {
  struct str method = names_text(&a->sample->draw->census->names, a->turn->method);
  buf_puts(out, "the verdict was ");
  if (a->turn->rule > 0)
    buf_printf(out, "rule %ld", a->turn->rule);
  else
    buf_puts(out, "no rule");
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
  cli_put_safe(stdout, a->made->core.workflow->movements[0].name.p);
  printf("\n\n");
  show_text(buf_view(&work->text.bytes));
  if (work->has_exit)
    printf("  exit %d\n", work->exit);
  if (json_array_size(work->files) > 0)
    printf("  %zu files changed\n", json_array_size(work->files) + work->files_more);
  printf("\n");
  show_rules(a->made->core.workflow);
  if (!a->sample->blind) {
    struct buf verdict = {0};
    label_put_verdict(a, &verdict);
    puts(buf_c(&verdict));
    buf_deinit(&verdict);
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
  (void)snprintf(label.by, sizeof label.by, "%s", a->sample->by);
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
    fprintf(stderr, "segue label: turn %ld of %s is left out: ", a->turn->turn, a->turn->session);
    cli_put_safe(stderr, err->text);
    fputc('\n', stderr);
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

bool label_sample_run(const struct label_sample *s, struct err *err) {
  const struct draw *d = s->draw;
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
