/* Asks the person at the terminal. */
#include "cli/terminal_ask.h"

#include "base/limits.h"
#include "cli/cli.h"
#include "core/answer.h"
#include "format/json_object.h"
#include "host/steer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool terminal_ask_can(void) {
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

bool terminal_ask_shows(const struct terminal_ask *a) {
  return a->question > 0;
}

static const struct turn *asking_turn(const struct terminal_ask *a) {
  const struct turn *turn = session_core(a->solo->session)->turns;
  while (turn != NULL && (turn->question == NULL || turn->question_seq != a->question))
    turn = turn->next;
  return turn;
}

static bool wants_approval(const struct turn *turn) {
  return str_eq_c(json_view(json_at(turn->question, "kind")), "approve");
}

static void ask_put_lines(struct str text) {
  while (text.n > 0) {
    struct buf safe = {0};
    buf_safe(&safe, str_next_line(&text), false);
    printf("  %s\n", buf_c(&safe));
    buf_deinit(&safe);
  }
}

static void ask_put_prompt(const struct turn *turn) {
  size_t n = json_array_size(json_at(turn->question, "choices"));
  if (wants_approval(turn))
    printf("  approve? [y/n, and why] ");
  else if (n > 0)
    printf("  answer [1-%zu] ", n);
  else
    printf("  answer: ");
  fflush(stdout);
}

static void ask_show(const struct terminal_ask *a, const struct turn *turn) {
  const struct core *core = session_core(a->solo->session);
  const json_t *runs = json_at(turn->question, "runs"), *v;
  const json_t *choices = json_at(turn->question, "choices");
  size_t i;
  live_clear(a->live);
  cli_put_safe(stdout, core->workflow->movements[turn->movement].name.p);
  printf(" asks:\n");
  ask_put_lines(json_view(json_at(turn->question, "text")));
  if (runs != NULL) {
    printf("  it would run:");
    json_array_foreach((json_t *)json_at(runs, "command"), i, v) {
      putchar(' ');
      cli_put_safe(stdout, json_string_value(v));
    }
    if (json_at(runs, "provider") != NULL) {
      putchar(' ');
      cli_put_safe(stdout, json_string_value(json_at(runs, "provider")));
    }
    putchar('\n');
    ask_put_lines(json_view(json_at(runs, "instruction")));
  }
  json_array_foreach((json_t *)choices, i, v) {
    printf("  %zu  ", i + 1);
    cli_put_safe(stdout, json_string_value(v));
    putchar('\n');
  }
  ask_put_prompt(turn);
}

/* Reads a verdict such as "y", "yes go on" or "n too early". */
static bool ask_read_verdict(struct str line, struct core_answer *answer) {
  size_t n = 0;
  while (n < line.n && line.p[n] != ' ')
    n++;
  struct str word = {line.p, n};
  bool yes = str_eq_c(word, "y") || str_eq_c(word, "yes");
  answer->says = yes ? SAYS_APPROVE : SAYS_REJECT;
  answer->text = str_trim((struct str){line.p + n, line.n - n});
  return yes || str_eq_c(word, "n") || str_eq_c(word, "no");
}

static void ask_take_line(struct terminal_ask *a, struct str line) {
  const struct turn *turn = asking_turn(a);
  struct core_answer answer = {.says = SAYS_TEXT, .question = a->question, .text = line};
  struct err err = {0};
  uint64_t question;
  long number;
  if (turn == NULL) /* it was answered elsewhere or by its deadline */
    return;
  json_t *by = steer_person();
  answer.by = by;
  bool readable = true;
  if (wants_approval(turn)) {
    readable = ask_read_verdict(line, &answer);
  } else if (json_at(turn->question, "choices") != NULL && str_to_long(line, &number)) {
    answer.says = SAYS_CHOICE;
    answer.choice = number;
  }
  a->question = 0; /* its record, and the next question, come within host_reply */
  if (!readable || !host_reply(a->solo->session, &answer, &question, &err)) {
    a->question = answer.question;
    if (err.text[0] != '\0')
      fprintf(stderr, "  %s\n", err.text);
    ask_put_prompt(turn);
  }
  json_decref(by);
}

/* Stops asking: the person has nothing more to say, and the session waits as it does without a
 * terminal. */
static void ask_leave(struct terminal_ask *a) {
  a->question = 0;
  a->solo->host.attended = false;
  input_pause(&a->input);
  putchar('\n');
  host_stop(a->solo->session, "question", "it waits for an answer: segue inbox");
}

static void ask_on_input(void *ctx, const char *bytes, size_t n) {
  struct terminal_ask *a = ctx;
  if (n == 0) {
    ask_leave(a);
    return;
  }
  buf_append(&a->typed, bytes, n);
  const char *end;
  uint64_t asked =
      a->question; /* what was typed before the next one was shown does not answer it */
  while (a->question > 0 && a->question == asked &&
         (end = memchr(a->typed.p, '\n', a->typed.n)) != NULL) {
    struct str line = {a->typed.p, (size_t)(end - a->typed.p)};
    struct buf rest = {0};
    buf_append(&rest, end + 1, a->typed.n - line.n - 1);
    ask_take_line(a, str_trim(line));
    buf_deinit(&a->typed);
    a->typed = rest;
  }
  if (a->question != asked)
    buf_clear(&a->typed);
  if (a->question == 0)
    terminal_ask_look(a, a->seen_seq);
}

void terminal_ask_init(struct terminal_ask *a, struct solo *solo, struct live *live) {
  *a = (struct terminal_ask){.solo = solo, .live = live, .typed = {.max = 2 * LIMIT_ANSWER_BYTES}};
  if (terminal_ask_can() && input_init(&a->input, solo, ask_on_input, a))
    solo->host.attended = true;
}

void terminal_ask_look(struct terminal_ask *a, uint64_t seq) {
  a->seen_seq = seq;
  if (!a->input.is_open || !a->solo->host.attended || a->solo->session == NULL)
    return;
  if (seq < session_recovered(a->solo->session))
    seq = session_recovered(a->solo->session);
  const struct turn *turn = session_core(a->solo->session)->turns;
  if (a->question > 0 && asking_turn(a) == NULL) {
    printf("\n  answered meanwhile\n");
    a->question = 0;
  }
  while (turn != NULL && (turn->question == NULL || turn->question_seq > seq))
    turn = turn->next;
  if (turn == NULL && a->question == 0)
    input_pause(&a->input);
  if (turn == NULL || a->question > 0)
    return;
  a->question = turn->question_seq;
  buf_clear(&a->typed);
  input_forget(); /* what was typed before it was shown is no answer */
  ask_show(a, turn);
  input_listen(&a->input);
}

void terminal_ask_close(struct terminal_ask *a) {
  input_close(&a->input);
  buf_deinit(&a->typed);
}
