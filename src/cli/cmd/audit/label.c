/* segue label: records what a person says should have been chosen. */
#include "store/label.h"
#include "audit/draw.h"
#include "audit/explain.h"
#include "base/log.h"
#include "cli/audit_filters.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/label_sample.h"
#include "format/json_object.h"
#include "host/paths.h"
#include "store/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    {"turn", 't', "N", "which turn (default: the movement's last judged one)", false},
    {"as", 0, "NAME", "whose label it is (default: $USER); without --sample also --by NAME", false},
    {"sample", 0, "N", "ask for the rules of N judgments drawn at random, one screen each", false},
    {"by", 'b', "KEY,...",
     "with --sample: draw equally from each group (method,movement ...); see segue audit --by",
     false},
    {"blind", 0, NULL, "with --sample: show the verdict only after your answer", false},
    {"seed", 0, "TEXT", "with --sample: another text draws other judgments", false},
    AUDIT_FILTER_OPTIONS,
    {"logs", 'l', "DIR", "log folder to look up the ID in", false},
    {"store", 0, "URL", "use this shared store instead: postgres://HOST/DATABASE", false},
    {0},
};

struct labelling {
  struct name_list names;
  uint32_t movement;
  long turn; /* the one asked for; 0: the last */
  bool found;
  struct row row; /* the turn's row; its stages are not kept */
};

static void on_labelled(void *ctx, const struct row *row) {
  struct labelling *l = ctx;
  if (row->kind != ROW_JUDGMENT || row->movement != l->movement ||
      (l->turn != 0 && row->turn != l->turn))
    return;
  l->found = true;
  l->row = *row;
}

/* Returns how many rules the movement has, -1 if there is no such movement. */
static long rule_count(const struct store_ref *ref, const char *movement) {
  struct log_reader r;
  struct str line;
  struct err err;
  long n = -1;
  size_t i;
  json_t *item;
  if (!reader_open(&r, ref, &err))
    return -1;
  json_t *start = reader_next(&r, &line) ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
  json_array_foreach(json_at(json_at(start, "workflow"), "movements"), i, item) {
    if (str_eq_c(json_view(json_at(item, "name")), movement))
      n = (long)json_array_size(json_at(item, "rules"));
  }
  json_decref(start);
  reader_close(&r);
  return n;
}

static bool label_rule(const struct store_ref *ref, const char *movement, const char *text,
                       long *rule, struct err *err) {
  long count = rule_count(ref, movement);
  if (count < 0)
    return err_set(err, ERR_USAGE, "the session's workflow has no movement \"%.80s\"", movement);
  if (!str_to_long(str_from(text), rule) || *rule < 0 || *rule > count)
    return err_set(err, ERR_USAGE,
                   "rule %.40s: write a number from 1 to %ld, or 0 if none of them holds", text,
                   count);
  return true;
}

/* Finds the judgment that is meant. */
static bool label_find_turn(struct labelling *l, const struct store_ref *ref, const char *movement,
                            struct err *err) {
  struct rows rows = {.names = &l->names, .sink = {on_labelled, NULL}, .ctx = l};
  l->movement = names_add(&l->names, str_from(movement));
  enum rows_log state = rows_read(&rows, ref);
  rows_deinit(&rows);
  if (state != ROWS_SOUND && state != ROWS_TORN)
    return err_set(err, ERR_CORRUPT, "the log is %s: segue verify says more", rows_log_name(state));
  if (!l->found && l->turn != 0)
    return err_set(err, ERR_NOT_FOUND, "turn %ld is not a judged turn of %.80s", l->turn, movement);
  return l->found || err_set(err, ERR_NOT_FOUND, "%.80s has not been judged yet", movement);
}

/* Finds the turn of a run that is named as segue show names it, MOVEMENT#N, and cuts the name. */
static bool label_find_run(struct labelling *l, const struct store_ref *ref, char *word,
                           struct err *err) {
  struct book book;
  struct explain_found found;
  json_t *record;
  char *hash = strrchr(word, '#');
  if (hash == NULL || l->turn != 0 || rule_count(ref, word) >= 0) /* a name may contain a # */
    return true;
  if (!book_open(&book, ref, true, err))
    return false;
  while ((record = book_next(&book)) != NULL)
    json_decref(record);
  bool ok = explain_find(&book, word, &found, err);
  book_close(&book);
  l->turn = ok ? found.turn : 0;
  *hash = '\0';
  return ok;
}

static bool label_by(const char *by, struct label *out, struct err *err) {
  by = by != NULL ? by : getenv("USER");
  if (by == NULL || by[0] == '\0')
    return err_set(err, ERR_USAGE, "whose label is it? write --as NAME");
  if (strlen(by) >= sizeof out->by)
    return err_set(err, ERR_USAGE, "--as: at most %zu bytes", sizeof out->by - 1);
  (void)snprintf(out->by, sizeof out->by, "%s", by);
  return cli_is_utf8("--as", by, err);
}

static const char *label_who(const struct cli_args *args) {
  const char *as = cli_value(args, "as");
  return as != NULL || cli_value(args, "sample") != NULL ? as : cli_value(args, "by");
}

static bool label_one(const struct cli_args *args, char *movement, struct labelling *l,
                      struct err *err) {
  struct label label = {0};
  struct store_ref ref;
  struct store store;
  const char *turn = cli_value(args, "turn");
  if (turn != NULL && (!str_to_long(str_from(turn), &l->turn) || l->turn < 1))
    return err_set(err, ERR_USAGE, "--turn %.40s: write a number from 1", turn);
  if (!find_session(args->words[0], cli_value(args, "logs"), NULL, &ref, err) ||
      !label_find_run(l, &ref, movement, err) ||
      !label_rule(&ref, movement, args->words[2], &label.rule, err) ||
      !label_by(label_who(args), &label, err) || !label_find_turn(l, &ref, movement, err))
    return false;
  store_ref_id(&ref, label.session);
  if (label.session[0] == '\0')
    return err_set(err, ERR_USAGE,
                   "labels are stored beside a log, which must have its session's name");
  label.turn = l->row.turn;
  store_of(&ref, &store);
  if (!labels_append(&store, &label, 1, err))
    return false;
  printf("turn %ld, ", label.turn);
  cli_put_safe(stdout, movement);
  printf(": rule %ld says ", label.rule);
  cli_put_safe(stdout, label.by);
  printf("; the verdict was %s%u\n", l->row.rule > 0 ? "rule " : "no rule, ", l->row.rule);
  return true;
}

static bool sample_draw(struct draw *d, const struct store *store, const struct cli_args *args,
                        struct err *err) {
  const char *by = cli_value(args, "by"), *seed = cli_value(args, "seed");
  struct label who;
  long n = 0;
  if (!str_to_long(str_from(cli_value(args, "sample")), &n) || n < 1 || n > DRAW_MOST)
    return err_set(err, ERR_USAGE, "--sample: write how many, 1 to %d", DRAW_MOST);
  if (!label_by(label_who(args), &who, err) ||
      !draw_init(d, (struct census *)d->census, by ? by : "", (size_t)n, seed ? seed : "", err) ||
      !draw_read_store(d, store, err) || !draw_end(d, err))
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
  char where[PATHS_BYTES];
  struct store store;
  if (args->word_count > 1 || cli_value(args, "turn") != NULL)
    return err_set(err, ERR_USAGE, "--sample takes at most one folder of logs, and no --turn");
  if (!paths_logs(folder, where, err))
    return false;
  store_at(&store, where);
  struct census *c = census_new();
  struct draw d = {.census = c};
  bool ok = audit_filters(c, args, err) && sample_draw(&d, &store, args, err);
  draw_deinit(&d);
  census_free(c);
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

static int label_run(int argc, char **argv) {
  struct cli_args args;
  struct labelling l = {0};
  struct err err = {0};
  int status;
  if (!cli_parse(&cmd_label, argc, argv, 0, 3, &args, &status))
    return status;
  bool ok;
  char *movement = args.word_count > 1 ? xstrdup(args.words[1]) : NULL;
  if (cli_value(&args, "sample") != NULL)
    ok = label_sample(&args, &err);
  else
    ok = label_usage(&args, &err) && label_one(&args, movement, &l, &err);
  free(movement);
  names_deinit(&l.names);
  return ok ? STATUS_COMPLETE : cli_fail("label", &err);
}

const struct cli_command cmd_label = {
    .name = "label",
    .arguments = "ID|last|FILE MOVEMENT[#N] RULE | [FOLDER] --sample N [options]",
    .summary = "record which rule should have been chosen, for segue agree",
    .help = "RULE is a number, or 0 if no rule holds. MOVEMENT#N is the movement's Nth run, as in "
            "segue show. Labels are stored beside the logs "
            "(labels/labels.log, chained), never in them, and change nothing in a session. If a "
            "person labels the same turn again, the later label counts.\n"
            "--sample shows N judgments, drawn at random, one screen each: press a rule's number, "
            "0 for none, s to skip one for now, q to quit; run the same command again to "
            "continue. Filters limit what is drawn from, and --by draws equally from each group; "
            "segue agree weights the labels accordingly.",
    .options = options,
    .run = label_run,
};
