/* segue agree: measures how far judges, stages and people agree. */
#include "audit/error_rate.h"
#include "cli/audit_filters.h"
#include "cli/cli.h"
#include "cli/gate.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"

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

static void show_exact(const char *before, const struct exact *x) {
  printf("%s%.1f %% (%.1f to %.1f)", before, 100 * x->share, 100 * x->low, 100 * x->high);
}

static void show_rate(const struct error_rate *e, const struct error_rate_result *r) {
  const struct group_by_table *by = &e->aggregate->tables[AGGREGATE_BY];
  buf_auto_t name = {0}, line = {0}, next = {0};
  bool by_rule = false;
  for (size_t i = 0; i < by->key_count; i++)
    by_rule = by_rule || by->keys[i] == GROUP_BY_RULE;
  error_rate_group(e, r, &name);
  (void)cli_fit(&line, buf_view(&name), 200);
  printf("%s: %.0f judged", buf_c(&line), r->judgments);
  if (r->person != NULL) {
    cli_say(stdout, ", %lu labelled by %s", r->labels, r->person);
    show_exact("\n    wrong ", &r->wrong);
    show_exact("; from the labels alone ", &r->alone);
  }
  for (size_t i = 0; i < r->rule_count && !by_rule; i++) {
    printf("\n    rule %u: named in %.1f %%, right in", r->rules[i].rule, 100 * r->rules[i].named);
    show_exact(" ", &r->rules[i].right);
  }
  error_rate_next(e, r, &next);
  cli_say(stdout, "\n    %s\n", buf_c(&next));
}

/* Gives what --fail-if may name of a group: as --json, but the shares are numbers. */
static void wrong_gate(const struct error_rate *e, const struct error_rate_result *r,
                       struct gate *gate) {
  buf_auto_t name = {0};
  if (gate->expr == NULL)
    return;
  json_t *figures = error_rate_json(e, r);
  bool known = r->person != NULL;
  json_object_set_new(figures, "wrong", known ? json_real(r->wrong.share) : json_null());
  json_object_set_new(figures, "wrong_low", known ? json_real(r->wrong.low) : json_null());
  json_object_set_new(figures, "wrong_high", known ? json_real(r->wrong.high) : json_null());
  error_rate_group(e, r, &name);
  if (known)
    buf_printf(&name, ", %s", r->person);
  gate_check(gate, buf_c(&name), figures);
}

static int agree_wrong(const struct cli_args *args) {
  struct gate gate = {0};
  struct err err = {0};
  struct aggregate *c = aggregate_new();
  struct error_rate *e = error_rate_new(c, cli_value(args, "second"));
  const struct resolve_id_each each = {agree_read, e->agree, agree_beside};
  bool ok =
      gate_begin(&gate, "agree", args, &err) && audit_filters(c, args, false, &err) &&
      aggregate_by(c, cli_value_or(args, "by", "movement,rule"), &err) &&
      (!group_by_stage(&c->tables[AGGREGATE_BY]) ||
       err_set(&err, ERR_USAGE, "--by: stage, reason and to belong to stages, not to verdicts")) &&
      resolve_id_take_all(args->words, args->word_count, cli_value(args, "logs"), &each, &err) &&
      error_rate_end(e, &err);
  for (size_t i = 0; ok && i < e->count; i++) {
    if (cli_flag(args, "json"))
      json_io_put(error_rate_json(e, &e->results[i]));
    else
      show_rate(e, &e->results[i]);
    wrong_gate(e, &e->results[i], &gate);
  }
  if (ok && e->count == 0 && !cli_flag(args, "json"))
    puts("no judge's verdict matches");
  if (ok)
    agree_show_left_out(e->agree);
  error_rate_free(e);
  aggregate_free(c);
  return gate_end(&gate, cli_done("agree", ok, &err));
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
