/* Pairs the verdicts on each turn and counts how they agree. */
#include "audit/agree.h"

#include "base/limits.h"
#include "base/log.h"
#include "format/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 10, RATERS_MAX = 128 };  /* fewer turns of a kind support no conclusion */
static const double share_wanted = 0.8; /* share at which one may stand for another */

/* --- labels --- */

static int label_compare(const void *a, const void *b) {
  const struct label *x = a, *y = b;
  int c = strcmp(x->session, y->session);
  if (c == 0)
    c = (x->turn > y->turn) - (x->turn < y->turn);
  return c != 0 ? c : strcmp(x->by, y->by);
}

static int label_order(const void *a, const void *b) {
  const struct label *x = a, *y = b;
  int c = label_compare(a, b);
  return c != 0 ? c : (x->number > y->number) - (x->number < y->number);
}

static void label_add(void *ctx, const struct label *label) {
  struct agree *a = ctx;
  if (label->dismissed > 0)
    return;
  if (a->label_count == LIMIT_AUDIT_LABEL_COUNT) {
    a->left_out++;
    return;
  }
  a->labels = xgrow(a->labels, &a->label_room, a->label_count + 1, sizeof *a->labels);
  a->labels[a->label_count++] = *label;
}

/* Finds a label's stratum, from 1; 0: nobody drew it. stratum NULL: looks for any of its
 * person's. */
static uint32_t stratum_of(const struct agree *a, const struct label *l, const char *stratum) {
  char key[LABEL_BY_BYTES + LABEL_STRATUM_BYTES + 2];
  uint32_t at = 0;
  int n = snprintf(key, sizeof key, "%s%s%s", l->by, stratum ? "\n" : "", stratum ? stratum : "");
  return map_get(&a->stratum_map, (struct str){key, (size_t)n}, &at) ? at : 0;
}

static void count_stratum(struct agree *a, const struct label *l) {
  uint32_t at = stratum_of(a, l, l->stratum);
  char key[LABEL_BY_BYTES + LABEL_STRATUM_BYTES + 2];
  if (l->population == 0)
    return;
  if (at == 0) {
    a->strata = xrealloc(a->strata, (a->stratum_count + 1) * sizeof *a->strata);
    a->strata[a->stratum_count++] = (struct agree_stratum){0};
    at = (uint32_t)a->stratum_count;
    int n = snprintf(key, sizeof key, "%s\n%s", l->by, l->stratum);
    map_put(&a->stratum_map, &a->arena, (struct str){key, (size_t)n}, at);
    map_put(&a->stratum_map, &a->arena, str_from(l->by), at);
  }
  struct agree_stratum *s = &a->strata[at - 1];
  s->labels++;
  s->population = s->population > l->population ? s->population : l->population;
}

/* Weighs a label. False: its person has a sample that the label is not part of. */
static bool rate_label(const struct agree *a, const struct label *l, struct agree_rating *out) {
  uint32_t at = l->population > 0 ? stratum_of(a, l, l->stratum) : 0;
  if (at == 0 && stratum_of(a, l, NULL) > 0)
    return false;
  *out = (struct agree_rating){.rule = l->rule, .weight = 1, .stratum = at};
  if (at > 0)
    out->weight = (double)a->strata[at - 1].population / (double)a->strata[at - 1].labels;
  if (out->weight < 1) /* the store shrank, or a person labelled more than it had */
    out->weight = 1;
  print_into(out->rater, sizeof out->rater, "label %s", l->by);
  return true;
}

/* Keeps only the last label that a person gave to a turn. */
bool agree_beside(void *agree, const struct store *store, struct err *err) {
  struct agree *a = agree;
  size_t kept = 0;
  if (!labels_read(store, label_add, a, err))
    return false;
  if (a->label_count > 1)
    qsort(a->labels, a->label_count, sizeof *a->labels, label_order);
  for (size_t i = 0; i < a->label_count; i++) {
    if (kept > 0 && label_compare(&a->labels[kept - 1], &a->labels[i]) == 0)
      kept--;
    a->labels[kept++] = a->labels[i];
  }
  a->label_count = kept;
  map_deinit(&a->stratum_map);
  a->stratum_count = 0;
  a->undrawn = 0;
  for (size_t i = 0; i < kept; i++)
    count_stratum(a, &a->labels[i]);
  for (size_t i = 0; i < kept; i++)
    a->undrawn += a->labels[i].population == 0 && stratum_of(a, &a->labels[i], NULL) > 0;
  struct store beside;
  if (store_is_address(store->where)) /* nothing is judged again there */
    return true;
  if (!rejudged_store(store, &beside, err) || !rejudged_read(&a->again, &beside, err))
    return false;
  a->left_out += a->again.left_out;
  return true;
}

/* Finds the first label of a turn or of anything after it. */
static size_t label_find(const struct agree *a, const char *session, long turn) {
  size_t low = 0, high = a->label_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const struct label *l = &a->labels[middle];
    int c = strcmp(l->session, session);
    if (c < 0 || (c == 0 && l->turn < turn))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* --- ratings of one turn --- */

static struct str agree_name(const struct agree *a, uint32_t number) {
  struct str s = dictionary_text(&a->aggregate->names, number);
  return s.p != NULL ? s : STR("-");
}

static void rate_stage(const struct agree *a, const struct row *row, const struct row_stage *stage,
                       struct agree_rating *out, size_t *n) {
  struct agree_rating *r = &out[*n];
  bool decides = !stage->vote && stage->stage == row->method;
  if (stage->machine || !stage->readable || decides || *n == RATERS_MAX)
    return;
  struct str name = agree_name(a, stage->stage), provider = agree_name(a, stage->provider);
  struct str model = dictionary_text(&a->aggregate->names, stage->model);
  *r = (struct agree_rating){.rule = (long)stage->rule};
  if (stage->vote)
    print_into(r->rater, sizeof r->rater, "vote %d " STR_FMT "%s" STR_FMT, stage->vote,
               STR_ARG(provider), model.n > 0 ? "/" : "", STR_ARG(model));
  else
    print_into(r->rater, sizeof r->rater, "stage " STR_FMT, STR_ARG(name));
  (*n)++;
}

static void rate_again(const struct agree *a, const struct row *row, struct agree_rating *out,
                       size_t *n) {
  const char *session = a->rows.session.id;
  for (size_t i = rejudged_find(&a->again, session, row->turn);
       rejudged_is_of(&a->again, i, session, row->turn) && *n < RATERS_MAX; i++) {
    const struct rejudged_verdict *v = &a->again.list[i];
    if (v->rule == REJUDGED_UNDECIDED)
      continue;
    struct agree_rating *r = &out[(*n)++];
    int used;
    *r = (struct agree_rating){.rule = v->rule};
    used = snprintf(r->rater, sizeof r->rater, "rejudge " STR_FMT, STR_ARG(agree_name(a, v->name)));
    if (v->repeat > 1 && used > 0 && (size_t)used < sizeof r->rater)
      print_into(r->rater + used, sizeof r->rater - (size_t)used, " #%ld", v->repeat);
  }
}

static void rate_verdict(struct agree *a, const struct row *row, struct agree_rating *out,
                         size_t *n) {
  bool human = str_eq_c(agree_name(a, row->method), "human");
  if (row->undecided) {
    a->undecided++;
    return;
  }
  out[*n] = (struct agree_rating){.rule = (long)row->rule};
  print_into(out[*n].rater, sizeof out->rater, "%s", human ? "human" : "verdict");
  (*n)++;
}

static size_t rate_turn(struct agree *a, const struct row *row, struct agree_rating *out) {
  const char *session = a->rows.session.id;
  size_t n = 0;
  rate_verdict(a, row, out, &n);
  for (size_t i = 0; i < row->stage_count; i++)
    rate_stage(a, row, &row->stages[i], out, &n);
  rate_again(a, row, out, &n);
  for (size_t i = label_find(a, session, row->turn); i < a->label_count && n < RATERS_MAX; i++) {
    const struct label *l = &a->labels[i];
    if (l->turn != row->turn || strcmp(l->session, session) != 0)
      break;
    n += rate_label(a, l, &out[n]);
  }
  return n;
}

/* --- pairs --- */

static struct agree_pair *agree_pair_of(struct agree *a, const struct row *row, const char *first,
                                        const char *second) {
  struct str workflow = agree_name(a, row->workflow), movement = agree_name(a, row->movement);
  buf_auto_t key = {0};
  uint32_t at = (uint32_t)a->pair_count;
  buf_printf(&key, STR_FMT "\n" STR_FMT "\n%s\n%s", STR_ARG(workflow), STR_ARG(movement), first,
             second);
  bool known = map_get(&a->map, buf_view(&key), &at);
  if (!known && a->pair_count < LIMIT_AUDIT_PAIR_COUNT) {
    map_put(&a->map, &a->arena, buf_view(&key), at);
    a->pairs = xrealloc(a->pairs, (a->pair_count + 1) * sizeof(struct agree_pair *));
    struct agree_pair *pair = xcalloc(1, sizeof *pair);
    pair->workflow = xstrndup(workflow.p, workflow.n);
    pair->movement = xstrndup(movement.p, movement.n);
    pair->first = xstrndup(first, strlen(first));
    pair->second = xstrndup(second, strlen(second));
    a->pairs[a->pair_count++] = pair;
    known = true;
  }
  return known ? a->pairs[at] : NULL;
}

/* Adds to a pair's strata. If there are too many, the interval comes from the table alone. */
static void pair_stratum(struct agree_pair *pair, const struct agree_rating *drawn, long first,
                         long second) {
  size_t i = 0;
  while (i < pair->stratum_count && pair->stratum_of[i] != drawn->stratum)
    i++;
  if (i == AGREE_STRATA_MAX) {
    pair->stratum_of[0] = 0;
    return;
  }
  if (i == pair->stratum_count) {
    pair->strata = xrealloc(pair->strata, ++pair->stratum_count * sizeof *pair->strata);
    pair->strata[i] = (struct kappa_stratum){.weight = drawn->weight};
    pair->stratum_of[i] = drawn->stratum;
  }
  kappa_stratum_add(&pair->strata[i], first, second);
}

struct kappa agree_kappa(const struct agree_pair *pair) {
  if (pair->stratum_count == 0 || pair->stratum_of[0] == 0)
    return kappa_of(&pair->table);
  return kappa_of_strata(&pair->table, pair->strata, pair->stratum_count);
}

static void pair_ratings(struct agree *a, const struct row *row, const struct agree_rating *x,
                         const struct agree_rating *y) {
  if (strcmp(x->rater, y->rater) > 0) {
    const struct agree_rating *swap = x;
    x = y;
    y = swap;
  }
  struct agree_pair *pair = agree_pair_of(a, row, x->rater, y->rater);
  const struct agree_rating *drawn = x->weight > y->weight ? x : y;
  if (pair == NULL) {
    a->left_out++;
    return;
  }
  kappa_add(&pair->table, x->rule, y->rule, drawn->weight > 0 ? drawn->weight : 1);
  if (drawn->stratum > 0)
    pair_stratum(pair, drawn, x->rule, y->rule);
  if (x->rule != y->rule && a->on_differ != NULL) {
    const struct agree_turn told = {a->rows.session.id, row->turn, pair, x->rule, y->rule};
    a->on_differ(a->ctx, &told);
  }
}

/* Returns true if a rater, or the rater whose repeat it is, is among those asked for. */
static bool is_asked_for(const struct agree *a, const char *rater) {
  struct str rest = str_from(a->raters), name = str_from(rater);
  const char *repeat = strstr(rater, " #");
  const struct str once = {rater, repeat ? (size_t)(repeat - rater) : name.n};
  for (;;) {
    const char *comma = memchr(rest.p, ',', rest.n);
    struct str word = str_trim((struct str){rest.p, comma ? (size_t)(comma - rest.p) : rest.n});
    if (str_eq(word, name) || str_eq(word, once))
      return true;
    if (comma == NULL)
      return false;
    rest = (struct str){comma + 1, rest.n - (size_t)(comma + 1 - rest.p)};
  }
}

/* A stage rates only where it did not decide, so with the verdict it could but disagree. */
static bool is_pair(const struct agree *a, const struct agree_rating *x,
                    const struct agree_rating *y) {
  bool own = strcmp(x->rater, "verdict") == 0 && strncmp(y->rater, "stage ", 6) == 0;
  if (own || strcmp(x->rater, y->rater) == 0)
    return false;
  return a->raters == NULL || is_asked_for(a, x->rater) || is_asked_for(a, y->rater);
}

static void agree_judged(void *ctx, const struct row *row) {
  struct agree *a = ctx;
  struct agree_rating ratings[RATERS_MAX + 1];
  if (row->kind != ROW_JUDGMENT || !aggregate_wants_row(a->aggregate, row))
    return;
  size_t n = rate_turn(a, row, ratings);
  if (a->on_rated != NULL) {
    a->on_rated(a->ctx, row, ratings, n);
    return;
  }
  for (size_t i = 0; i < n; i++)
    for (size_t k = i + 1; k < n; k++)
      if (is_pair(a, &ratings[i], &ratings[k]))
        pair_ratings(a, row, &ratings[i], &ratings[k]);
}

struct agree *agree_new(struct aggregate *aggregate) {
  struct agree *a = xcalloc(1, sizeof *a);
  a->aggregate = aggregate;
  a->again.names = &aggregate->names;
  a->rows = (struct rows){.names = &aggregate->names, .sink = {agree_judged, NULL}, .ctx = a};
  return a;
}

void agree_read(void *agree, const struct store_ref *ref) {
  struct agree *a = agree;
  enum rows_log state = rows_read(&a->rows, ref);
  a->unsound += state != ROWS_SOUND && state != ROWS_TORN && state != ROWS_EMPTY;
}

static int pair_order(const void *a, const void *b) {
  const struct agree_pair *x = *(struct agree_pair *const *)a, *y = *(struct agree_pair *const *)b;
  int c = strcmp(x->workflow, y->workflow);
  c = c != 0 ? c : strcmp(x->movement, y->movement);
  c = c != 0 ? c : strcmp(x->first, y->first);
  return c != 0 ? c : strcmp(x->second, y->second);
}

void agree_sort(struct agree *a) {
  if (a->pair_count > 1)
    qsort(a->pairs, a->pair_count, sizeof(struct agree_pair *), pair_order);
}

void agree_free(struct agree *a) {
  if (a == NULL)
    return;
  for (size_t i = 0; i < a->pair_count; i++) {
    free(a->pairs[i]->workflow);
    free(a->pairs[i]->movement);
    free(a->pairs[i]->first);
    free(a->pairs[i]->second);
    free(a->pairs[i]->strata);
    free(a->pairs[i]);
  }
  free(a->pairs);
  free(a->labels);
  free(a->strata);
  map_deinit(&a->stratum_map);
  rejudged_deinit(&a->again);
  map_deinit(&a->map);
  arena_deinit(&a->arena);
  rows_deinit(&a->rows);
  free(a);
}

/* --- output --- */

static bool is_person(const char *rater) {
  return strncmp(rater, "label ", 6) == 0 || strcmp(rater, "human") == 0;
}

const char *agree_person(const struct agree_pair *pair, const char **judge) {
  bool first = is_person(pair->first);
  *judge = first ? pair->second : pair->first;
  if (first == is_person(pair->second))
    return NULL;
  return first ? pair->first : pair->second;
}

bool agree_rule(const struct agree_pair *pair, int rule, struct kappa_rule *out) {
  *out = kappa_rule_of(&pair->table, rule, is_person(pair->first));
  return out->found.n > 0 || out->right.n > 0;
}

/* One share on which a judgment of a judge rests. */
struct stand {
  const char *who; /* calls the turns so */
  int rule;
  struct kappa_share share;
};

/* Appends how many more labels would tell on which side of the bound a share is. */
static void put_needed(const struct stand *s, struct buf *out) {
  int n = kappa_needed(s->share.n > 0 ? s->share.share : 1, share_wanted);
  int more = (n > LEAST ? n : LEAST) - (int)s->share.n;
  if (n == 0)
    buf_printf(out, "more than %d", KAPPA_NEEDED_MOST);
  else
    buf_printf(out, "%d", more > 1 ? more : 1);
  buf_printf(out, " more labels of turns that %s calls %d", s->who, s->rule);
}

/* Appends the advice on a judge, from the shares of each rule. */
static void advise_on(const struct agree_pair *pair, const char *judge, const char *person,
                      struct buf *out) {
  double right = 1, found = 1;
  size_t open = 0;
  buf_auto_t needed = {0};
  for (int i = 0; i < KAPPA_CATEGORIES; i++) {
    struct kappa_rule rule;
    bool named = agree_rule(pair, i, &rule);
    const struct stand both[] = {{judge, i, rule.right}, {person, i, rule.found}};
    for (size_t k = 0; k < ARRAY_LEN(both) && named; k++) {
      const struct kappa_share *s = &both[k].share;
      if (s->n >= LEAST && s->high < share_wanted) {
        buf_printf(out, "%s cannot stand for %s in %s: ", judge, person, pair->movement);
        if (k == 0)
          buf_printf(out, "at most %.1f %% of what it calls %d is that", 100 * s->high, i);
        else
          buf_printf(out, "it finds at most %.1f %% of the turns of %d", 100 * s->high, i);
        return;
      }
      if (s->n < LEAST || s->low < share_wanted) {
        buf_puts(&needed, open++ > 0 ? ", " : "");
        put_needed(&both[k], &needed);
      }
    }
    right = named ? fmin(right, rule.right.low) : right;
    found = named ? fmin(found, rule.found.low) : found;
  }
  if (open > 0)
    buf_printf(out, "undecided whether %s may stand for %s: %s", judge, person, buf_c(&needed));
  else
    buf_printf(out,
               "%s may stand for %s in %s: at 95 %% confidence at least %.1f %% of what it calls a "
               "rule is that rule, and it finds at least %.1f %% of each",
               judge, person, pair->movement, 100 * right, 100 * found);
}

void agree_advice(const struct agree_pair *pair, struct buf *out) {
  struct kappa k = agree_kappa(pair);
  const char *judge, *person = agree_person(pair, &judge);
  if (k.n < LEAST)
    buf_printf(out, "too few to say: %lu turn%s of %d", k.n, k.n == 1 ? "" : "s", LEAST);
  else if (person != NULL)
    advise_on(pair, judge, person, out);
  else if (!is_person(pair->first))
    buf_puts(out, "which of the two is right only people's labels can say");
}

static json_t *share_json(const struct kappa_share *s) {
  return s->n > 0 ? json_pack("[fff]", s->share, s->low, s->high) : json_null();
}

static json_t *agree_rules_json(const struct agree_pair *pair) {
  json_t *list = json_array();
  for (int i = 0; i < KAPPA_CATEGORIES; i++) {
    struct kappa_rule r;
    if (agree_rule(pair, i, &r))
      json_array_append_new(list, json_pack("{si sf sf so sf sf so}", "rule", i, "called",
                                            r.found.of, "found", r.found.hit, "sensitivity",
                                            share_json(&r.found), "judged", r.right.of, "right",
                                            r.right.hit, "precision", share_json(&r.right)));
  }
  return list;
}

static json_t *matrix_json(const struct kappa_table *t) {
  json_t *cells = json_array();
  for (int i = 0; i < KAPPA_CATEGORIES; i++)
    for (int k = 0; k < KAPPA_CATEGORIES; k++)
      if (t->cell[i][k] > 0)
        json_array_append_new(
            cells, json_pack("{si si sf}", "first", i, "second", k, "weight", t->cell[i][k]));
  return cells;
}

json_t *agree_pair_json(const struct agree_pair *pair) {
  struct kappa k = agree_kappa(pair);
  buf_auto_t advice = {0};
  agree_advice(pair, &advice);
  json_t *out = json_pack(
      "{so so so so sI s[fff]}", "workflow", json_text(str_from(pair->workflow)), "movement",
      json_text(str_from(pair->movement)), "first", json_text(str_from(pair->first)), "second",
      json_text(str_from(pair->second)), "turns", (json_int_t)k.n, "agreement", k.agreement,
      k.agreement_low, k.agreement_high);
  json_object_set_new(out, "kappa",
                      k.known ? json_pack("[fff]", k.kappa, k.low, k.high) : json_null());
  if (!k.known)
    json_object_set_new(out, "undefined", json_string(KAPPA_UNKNOWN));
  json_object_set_new(out, "ac1", json_real(kappa_ac1(&pair->table)));
  const char *judge, *person = agree_person(pair, &judge);
  if (person != NULL) {
    json_object_set_new(out, "reference", json_text(str_from(person)));
    json_object_set_new(out, "rules", agree_rules_json(pair));
  }
  json_object_set_new(out, "matrix", matrix_json(&pair->table));
  json_put_count(out, "strata", (json_int_t)pair->stratum_count);
  json_object_set_new(out, "advice", advice.n > 0 ? json_text(buf_view(&advice)) : json_null());
  return out;
}
