/* segue agree: measures how far judges, stages and people agree. */
#include "audit/error_rate.h"
#include "cli/audit_filters.h"
#include "cli/cli.h"
#include "cli/gate.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "format/json_object.h"
#include "format/json_value.h"

#include <string.h>

struct agreeing {
  struct agree *agree;
  bool json;
};

static void on_differ(void *ctx, const struct agree_turn *t) {
  const struct agreeing *a = ctx;
  const struct agree_pair *p = t->pair;
  if (a->json) {
    json_io_put(json_pack("{so sI so so so sI sI}", "session", json_io_string(t->session), "turn",
                          (json_int_t)t->turn, "movement", json_io_string(p->movement), "first",
                          json_io_string(p->first), "second", json_io_string(p->second),
                          "first_rule", (json_int_t)t->first, "second_rule",
                          (json_int_t)t->second));
    return;
  }
  cli_say(stdout, "%s  turn %ld, %s: %s says %ld, %s %ld\n", t->session, t->turn, p->movement,
          p->first, t->first, p->second, t->second);
}

static void show_share(const struct kappa_share *s) {
  if (s->n > 0)
    printf("%.6g of %.6g (%.1f %%, %.1f to %.1f)", s->hit, s->of, 100 * s->share, 100 * s->low,
           100 * s->high);
  else
    printf("not known");
}

/* Shows how a judge and a person meet at each rule. */
static void show_rule_shares(const struct agree_pair *p) {
  struct kappa_rule r;
  const char *judge;
  for (int i = 0; i < KAPPA_CATEGORIES && agree_person(p, &judge) != NULL; i++) {
    if (!agree_rule(p, i, &r))
      continue;
    printf("      rule %d: found ", i);
    show_share(&r.found);
    printf(", right when named ");
    show_share(&r.right);
    printf("\n");
  }
}

static void show_pair(const struct agree_pair *p) {
  struct kappa k = agree_kappa(p);
  buf_auto_t line = {0}, raters = buf_of("%s/%s", p->workflow, p->movement), advice = {0};
  (void)cli_fit(&line, buf_view(&raters), 40);
  buf_puts(&line, ": ");
  (void)cli_fit(&line, str_from(p->first), 60);
  buf_puts(&line, " and ");
  (void)cli_fit(&line, str_from(p->second), 60);
  buf_printf(&line, "\n    %lu turn%s, the same in %.1f %% (%.1f to %.1f)", k.n, PLURAL(k.n),
             100 * k.agreement, 100 * k.agreement_low, 100 * k.agreement_high);
  if (k.known)
    buf_printf(&line, ", kappa %.2f (%.2f to %.2f)", kappa_shown(k.kappa), kappa_shown(k.low),
               kappa_shown(k.high));
  else
    buf_puts(&line, ", kappa undefined: " KAPPA_UNKNOWN);
  buf_printf(&line, ", AC1 %.2f", kappa_shown(kappa_ac1(&p->table)));
  if (p->stratum_count > 0)
    buf_printf(&line, ", from a sample of %zu strat%s", p->stratum_count,
               p->stratum_count == 1 ? "um" : "a");
  agree_advice(p, &advice);
  buf_puts(&line, advice.n > 0 ? "\n    " : "");
  (void)cli_fit(&line, buf_view(&advice), 400);
  puts(buf_c(&line));
  show_rule_shares(p);
  for (int i = 0; i < KAPPA_CATEGORIES; i++)
    for (int j = 0; j < KAPPA_CATEGORIES; j++)
      if (i != j && p->table.cell[i][j] > 0)
        printf("      %d against %d: %.6g\n", i, j, p->table.cell[i][j]);
}

/* Gives what --fail-if may name of a pair: as --json, but agreement and kappa are numbers. */
static void agree_gate(const struct agree_pair *p, struct gate *gate) {
  struct kappa k = agree_kappa(p);
  buf_auto_t name = {0};
  if (gate->expr == NULL)
    return;
  json_t *figures = agree_pair_json(p);
  json_object_set_new(figures, "agreement", json_real(k.agreement));
  json_object_set_new(figures, "agreement_low", json_real(k.agreement_low));
  json_object_set_new(figures, "kappa", k.known ? json_real(k.kappa) : json_null());
  json_object_set_new(figures, "kappa_low", k.known ? json_real(k.low) : json_null());
  buf_printf(&name, "%s/%s: %s and %s", p->workflow, p->movement, p->first, p->second);
  gate_check(gate, buf_c(&name), figures);
}

static void agree_show_left_out(const struct agree *a) {
  if (a->unsound > 0)
    fprintf(stderr, "segue agree: %llu log%s not intact and left out\n",
            (unsigned long long)a->unsound, a->unsound == 1 ? " is" : "s are");
  if (a->undecided > 0)
    fprintf(stderr, "segue agree: %llu turn%s no verdict, since no judge could be read\n",
            (unsigned long long)a->undecided, a->undecided == 1 ? " has" : "s have");
  if (a->undrawn > 0)
    fprintf(stderr, "segue agree: %llu labels outside the samples were left out\n",
            (unsigned long long)a->undrawn);
  if (a->left_out > 0)
    fprintf(stderr, "segue agree: %llu were left out: filter\n", (unsigned long long)a->left_out);
}

static void agree_print(const struct agreeing *a, struct gate *gate) {
  agree_sort(a->agree);
  for (size_t i = 0; i < a->agree->pair_count; i++) {
    if (a->json)
      json_io_put(agree_pair_json(a->agree->pairs[i]));
    else
      show_pair(a->agree->pairs[i]);
    agree_gate(a->agree->pairs[i], gate);
  }
  if (a->agree->pair_count == 0 && !a->json) {
    if (a->agree->raters != NULL)
      puts("there is no pair of these raters: leave out --rater to see all");
    else
      puts("there is nothing to compare the verdicts with: segue label ID MOVEMENT RULE");
  }
  agree_show_left_out(a->agree);
}

/* --- how often verdicts are wrong --- */

static void put_rate(struct buf *out, const char *before, const json_t *share) {
  buf_printf(out, "%s%.1f %% (%.1f to %.1f)", before,
             100 * json_number_value(json_array_get(share, 0)),
             100 * json_number_value(json_array_get(share, 1)),
             100 * json_number_value(json_array_get(share, 2)));
}

static void put_group(struct buf *out, const json_t *rate) {
  JSON_MEMBERS(json_object_get(rate, "group"), key, word)
    buf_printf(out, "%s%s=%s", out->n > 0 ? ", " : "", key,
               json_string_length(word) > 0 ? json_string_value(word) : "-");
}

static void show_rate(const json_t *rate) {
  buf_auto_t line = {0}, safe = {0};
  put_group(&line, rate);
  buf_printf(&line, ": %lld judged", (long long)json_int_at(rate, "judgments"));
  if (json_int_at(rate, "labels") > 0) {
    buf_printf(&line, ", %lld labelled by %s", (long long)json_int_at(rate, "labels"),
               json_word_at(rate, "person"));
    put_rate(&line, "\n    wrong ", json_at(rate, "wrong"));
  }
  JSON_EACH(json_object_get(json_at(rate, "group"), "rule") ? NULL : json_at(rate, "rules"), i, r) {
    buf_printf(&line, "\n    rule %lld: named in %.1f %%, right in",
               (long long)json_int_at(r, "rule"), 100 * json_number_value(json_at(r, "named")));
    put_rate(&line, " ", json_at(r, "right"));
  }
  buf_printf(&line, "\n    %s", json_word_at(rate, "next"));
  buf_safe(&safe, buf_view(&line), true);
  puts(buf_c(&safe));
}

/* Gives what --fail-if may name of a group: as --json, but `wrong` is a number, with its bounds. */
static void wrong_gate(const json_t *rate, struct gate *gate) {
  static const char *const names[] = {"wrong", "wrong_low", "wrong_high"};
  json_t *figures = json_clone(rate);
  buf_auto_t name = {0};
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    json_t *figure = json_array_get(json_at(rate, "wrong"), i);
    json_object_set(figures, names[i], figure != NULL ? figure : json_null());
  }
  put_group(&name, rate);
  if (json_int_at(rate, "labels") > 0)
    buf_printf(&name, ", %s", json_word_at(rate, "person"));
  gate_check(gate, buf_c(&name), figures);
}

static bool wrong_read(struct aggregate *c, struct error_rate *e, const struct cli_args *args,
                       struct err *err) {
  const struct resolve_id_each each = {agree_read, error_rate_agree(e), agree_beside};
  return audit_filters(c, args, false, err) &&
         aggregate_by(c, cli_value_or(args, "by", "movement,rule"), err) &&
         (!group_by_stage(&c->tables[AGGREGATE_BY]) ||
          err_set(err, ERR_USAGE,
                  "--by: stage, reason and to belong to stages, not to verdicts")) &&
         resolve_id_take_all(args->words, args->word_count, cli_value(args, "logs"), &each, err);
}

static int agree_wrong(const struct cli_args *args) {
  struct gate gate = {0};
  struct err err = {0};
  struct aggregate *c = aggregate_new();
  struct error_rate *e = error_rate_new(c, cli_value(args, "second"));
  bool ok = gate_begin(&gate, "agree", args, &err) && wrong_read(c, e, args, &err);
  json_auto_t *rates = ok ? error_rate_json(e, &err) : NULL;
  JSON_EACH(rates, i, rate) {
    if (cli_flag(args, "json"))
      json_io_put(json_incref((json_t *)rate));
    else
      show_rate(rate);
    wrong_gate(rate, &gate);
  }
  if (rates != NULL && json_array_size(rates) == 0 && !cli_flag(args, "json"))
    puts("no judge's verdict matches");
  if (rates != NULL)
    agree_show_left_out(error_rate_agree(e));
  error_rate_free(e);
  aggregate_free(c);
  return gate_end(&gate, cli_done("agree", rates != NULL, &err));
}

/* Takes the list of raters. Returns false if a name is empty, as no rater's is. */
static bool agree_raters(struct agree *a, const char *list, struct err *err) {
  for (const char *at = list; at != NULL; at = strchr(at, ','), at = at ? at + 1 : NULL)
    if (str_trim((struct str){at, strcspn(at, ",")}).n == 0)
      return err_set(err, ERR_USAGE, "--rater: an empty word is no name: write NAME or NAME,NAME");
  a->raters = list;
  return true;
}

static int agree_run(const struct cli_args *args) {
  struct agreeing a = {.json = cli_flag(args, "json")};
  struct gate gate = {0};
  struct err err = {0};
  cli_errors_as_json(a.json);
  if (cli_flag(args, "wrong"))
    return agree_wrong(args);
  if (cli_value(args, "by") != NULL || cli_value(args, "second") != NULL) {
    err_set(&err, ERR_USAGE, "--by and --second need --wrong");
    return cli_fail("agree", &err);
  }
  struct aggregate *c = aggregate_new();
  a.agree = agree_new(c);
  if (cli_flag(args, "list")) {
    a.agree->on_differ = on_differ;
    a.agree->ctx = &a;
  }
  const struct resolve_id_each each = {agree_read, a.agree, agree_beside};
  bool ok =
      gate_begin(&gate, "agree", args, &err) &&
      agree_raters(a.agree, cli_value(args, "rater"), &err) &&
      audit_filters(c, args, false, &err) &&
      resolve_id_take_all(args->words, args->word_count, cli_value(args, "logs"), &each, &err);
  if (ok)
    agree_print(&a, &gate);
  agree_free(a.agree);
  aggregate_free(c);
  return gate_end(&gate, cli_done("agree", ok, &err));
}

const struct cli_command cmd_agree = {COMMAND_AGREE, .run = agree_run};
