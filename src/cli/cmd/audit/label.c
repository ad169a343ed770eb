/* segue label: what a person says should have been chosen. */
#include "store/label.h"
#include "audit/rows.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "format/json_object.h"
#include "store/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    {"turn", 't', "N", "this turn; else the last one of the movement that was judged", false},
    {"by", 0, "NAME", "who says so (default: $USER)", false},
    {"logs", 'l', "DIR", "log folder in which the ID is looked up", false},
    {0},
};

struct labelling {
  struct name_list names;
  uint32_t movement;
  long turn; /* that was asked for; 0: the last */
  bool found;
  struct row row; /* of the turn; its stages are not kept */
};

static void on_labelled(void *ctx, const struct row *row) {
  struct labelling *l = ctx;
  if (row->kind != ROW_JUDGMENT || row->movement != l->movement ||
      (l->turn != 0 && row->turn != l->turn))
    return;
  l->found = true;
  l->row = *row;
}

/* How many rules the movement has. -1: there is no such movement. */
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
                   "rule %.40s: write a number from 1 to %ld, or 0 when none of them holds", text,
                   count);
  return true;
}

/* The judgment that is meant. */
static bool label_find_turn(struct labelling *l, const struct store_ref *ref, const char *movement,
                            struct err *err) {
  struct rows rows = {.names = &l->names, .sink = {on_labelled, NULL}, .ctx = l};
  l->movement = names_add(&l->names, str_from(movement));
  enum rows_log state = rows_read(&rows, ref);
  rows_deinit(&rows);
  if (state != ROWS_SOUND && state != ROWS_TORN)
    return err_set(err, ERR_CORRUPT, "the log is %s: segue verify says more", rows_log_name(state));
  if (!l->found && l->turn != 0)
    return err_set(err, ERR_NOT_FOUND, "turn %ld is no judged turn of %.80s", l->turn, movement);
  return l->found || err_set(err, ERR_NOT_FOUND, "%.80s was not judged yet", movement);
}

static bool label_by(const char *by, struct label *out, struct err *err) {
  by = by != NULL ? by : getenv("USER");
  if (by == NULL || by[0] == '\0')
    return err_set(err, ERR_USAGE, "who says so? write --by NAME");
  if (strlen(by) >= sizeof out->by)
    return err_set(err, ERR_USAGE, "--by: at most %zu bytes", sizeof out->by - 1);
  (void)snprintf(out->by, sizeof out->by, "%s", by);
  return cli_is_utf8("--by", by, err);
}

static bool label_one(const struct cli_args *args, struct labelling *l, struct err *err) {
  struct label label = {.weight = 1};
  struct store_ref ref;
  struct store store;
  const char *turn = cli_value(args, "turn"), *movement = args->words[1];
  if (turn != NULL && (!str_to_long(str_from(turn), &l->turn) || l->turn < 1))
    return err_set(err, ERR_USAGE, "--turn %.40s: write a number from 1", turn);
  if (!find_session(args->words[0], cli_value(args, "logs"), NULL, &ref, err) ||
      !label_rule(&ref, movement, args->words[2], &label.rule, err) ||
      !label_by(cli_value(args, "by"), &label, err) || !label_find_turn(l, &ref, movement, err))
    return false;
  store_ref_id(&ref, label.session);
  if (label.session[0] == '\0')
    return err_set(err, ERR_USAGE, "labels stand beside a log that bears its session's name");
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

static int label_run(int argc, char **argv) {
  struct cli_args args;
  struct labelling l = {0};
  struct err err = {0};
  int status;
  if (!cli_parse(&cmd_label, argc, argv, 3, 3, &args, &status))
    return status;
  bool ok = label_one(&args, &l, &err);
  names_deinit(&l.names);
  return ok ? STATUS_COMPLETE : cli_fail("label", &err);
}

const struct cli_command cmd_label = {
    .name = "label",
    .arguments = "ID|last|FILE MOVEMENT RULE [options]",
    .summary = "say which rule should have been chosen: for segue agree",
    .help = "RULE is a number, or 0 when none holds. Labels stand beside the logs "
            "(labels/labels.log, chained),\n"
            "never in them; nothing goes on differently for them. A later one of the same person "
            "counts.",
    .options = options,
    .run = label_run,
    .minor = true,
};
