/* segue compare: shows two sessions side by side. */
#include "audit/compare.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "judge/stage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOVEMENT_COLUMNS = 16, VERDICT_COLUMNS = 34 };

static const char *compare_word(const json_t *text, const char *otherwise) {
  return text ? json_string_value(text) : otherwise;
}

/* Puts a verdict such as "rule 2 > fix, asked again". */
static void verdict_text(const struct compare_turn *t, struct buf *out) {
  if (t == NULL)
    buf_puts(out, "-");
  else if (!t->judged)
    buf_puts(out, "not judged");
  else if (t->rule == 0)
    buf_puts(out, "no rule");
  else
    buf_printf(out, "rule %ld > %s, " STR_FMT, t->rule, compare_word(t->next, "?"),
               STR_ARG(judge_stage_words(str_from(compare_word(t->method, "?")))));
}

static void show_side(const char *name, const struct compare_side *side) {
  buf_auto_t line = buf_of("%s  ", name);
  buf_safe(&line, str_from(side->session), false);
  buf_puts(&line, "  ");
  (void)cli_fit(&line, str_from(compare_word(side->workflow, "?")), 30);
  buf_printf(&line, ", %s, %zu turn%s, %.1f s, %lld tokens, $%.4f",
             compare_word(side->outcome, "open"), side->count, PLURAL(side->count),
             (double)side->ms / 1000, (long long)side->tokens, (double)side->cost_nano / 1e9);
  puts(buf_c(&line));
}

/* Returns the number of a turn; a shared turn has the same number in both. */
static long compare_number(const struct compare_turn *t, const struct compare_turn *any,
                           bool shared) {
  if (t == NULL)
    t = shared ? any : NULL;
  return t != NULL ? t->turn : 0;
}

static void show_row(const struct compare_row *row, bool colours) {
  static const char *const names[] = {"", "", "method", "text", "files"};
  const struct compare_turn *any = row->a ? row->a : row->b;
  bool parts = (row->differs & (COMPARE_ONLY_ONE | COMPARE_VERDICT)) != 0;
  bool shared = (row->differs & COMPARE_SHARED) != 0;
  char mark = parts ? '*' : ' ';
  buf_auto_t line =
      buf_of("%s%c %4ld %4ld  ", cli_paint(colours, parts ? COLOUR_YELLOW : COLOUR_NONE),
             shared ? '=' : mark, compare_number(row->a, any, shared),
             compare_number(row->b, any, shared));
  buf_auto_t cell = {0};
  (void)cli_cell(&line, str_from(compare_word(any->movement, "?")), MOVEMENT_COLUMNS,
                 MOVEMENT_COLUMNS);
  buf_puts(&line, "  ");
  verdict_text(row->a, &cell);
  (void)cli_cell(&line, buf_view(&cell), VERDICT_COLUMNS, VERDICT_COLUMNS);
  buf_clear(&cell);
  verdict_text(row->b, &cell);
  buf_puts(&line, "  ");
  (void)cli_cell(&line, buf_view(&cell), VERDICT_COLUMNS, VERDICT_COLUMNS);
  for (size_t i = 2; i < ARRAY_LEN(names); i++)
    if (row->differs & (1u << i))
      buf_printf(&line, " %s", names[i]);
  buf_puts(&line, cli_paint(colours, COLOUR_NONE));
  puts(buf_c(&line));
}

/* Says what the two share: "B was forked from A behind its record 14: both have its first 3
 * turns". */
static void show_shared(const struct compare_side *a, const struct compare_side *b) {
  size_t turns;
  bool proven;
  const struct compare_side *parent = compare_shared(a, b, &turns, &proven);
  const struct compare_side *child = parent == a ? b : a;
  const char *names = parent == a ? "BA" : "AB";
  if (parent == NULL && a->fork.session[0] != '\0' && strcmp(a->fork.session, b->fork.session) == 0)
    printf("both were forked from %s: A after its record %llu, B after %llu\n", a->fork.session,
           (unsigned long long)a->fork.seq, (unsigned long long)b->fork.seq);
  if (parent == NULL)
    return;
  printf("%c was forked from %c after its record %llu", names[0], names[1],
         (unsigned long long)child->fork.seq);
  if (proven)
    printf(": both contain its first %zu turn%s (=)\n", turns, PLURAL(turns));
  else
    printf(", but that record has changed since: segue verify says more\n");
}

static void compare_show(const struct compare_side *a, const struct compare_side *b,
                         const struct compare_row *rows, size_t count) {
  const struct compare_row *parting = compare_parting(rows, count);
  bool colours = cli_colours(STDOUT_FILENO);
  show_side("A", a);
  show_side("B", b);
  if (strcmp(a->workflow_sha256, b->workflow_sha256) != 0)
    puts("the workflows differ");
  show_shared(a, b);
  if (parting == NULL) {
    if (compare_judged(rows, count, true) == 0)
      puts("no turn has a verdict, so there is none to compare");
    else if (compare_judged(rows, count, false) > 0)
      puts("they took the same way: every turn that was judged has the same verdict");
    else
      puts("they took the same way: every turn has the same verdict");
  } else {
    puts("they diverge here:");
    show_row(parting, colours);
  }
  printf("\n     A    B  %-*s  %-*s  %-*s  differs\n", MOVEMENT_COLUMNS, "movement",
         VERDICT_COLUMNS, "A", VERDICT_COLUMNS, "B");
  for (size_t i = 0; i < count; i++)
    show_row(&rows[i], colours);
}

static bool compare_open(struct compare_side *side, const char *word, const char *logs,
                         struct err *err) {
  struct store_ref ref;
  return resolve_id_session(word, logs, NULL, &ref, err) && compare_log(side, &ref, err) &&
         compare_sound(side, err);
}

static int compare_run(const struct cli_args *args) {
  AUTO(compare_side_deinit) struct compare_side a = {0}, b = {0};
  struct err err = {0};
  size_t count;
  const char *logs = cli_value(args, "logs");
  cli_errors_as_json(cli_flag(args, "json"));
  bool ok =
      compare_open(&a, args->words[0], logs, &err) && compare_open(&b, args->words[1], logs, &err);
  if (ok) {
    struct compare_row *rows = compare_align(&a, &b, &count);
    if (cli_flag(args, "json"))
      json_io_put(compare_json(&a, &b, rows, count));
    else
      compare_show(&a, &b, rows, count);
    free(rows);
  }
  return cli_done("compare", ok, &err);
}

const struct cli_command cmd_compare = {COMMAND_COMPARE, .run = compare_run};
