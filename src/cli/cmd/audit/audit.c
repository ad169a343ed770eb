/* segue audit: counts the judgments of many sessions. */
#include "audit/aggregate.h"
#include "audit/aggregate_cache.h"
#include "audit/aggregate_shared.h"
#include "audit/format_errors.h"
#include "audit/hidden_gap.h"
#include "base/utf8.h"
#include "cli/audit_filters.h"
#include "cli/cli.h"
#include "cli/gate.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- for people --- */

enum { BAR_COLUMNS = 30, NAME_COLUMNS_MAX = 28, TOP_COUNT = 5, FALL_COUNT = 5, CAUSE_COUNT = 10 };
enum { APART_SHOWN = 5 };

static const double nano_usd = 1e9;

typedef unsigned long long count; /* for printf */

/* --- pieces --- */

static void show_cell(struct buf *out, const char *text, int columns) {
  (void)cli_cell(out, str_from(text), columns, columns);
}

static void show_line(struct buf *line) {
  while (line->n > 0 && line->p[line->n - 1] == ' ')
    line->p[--line->n] = '\0';
  printf("%s\n", buf_c(line));
  buf_deinit(line);
}

static void show_title(const char *text) {
  bool colours = cli_colours(STDOUT_FILENO);
  printf("\n%s%s%s\n", cli_paint(colours, COLOUR_BOLD), text, cli_paint(colours, COLOUR_NONE));
}

/* Writes a number with commas, such as 1,234,567. */
static void show_number(struct buf *out, uint64_t n) {
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%llu", (count)n);
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0)
      buf_putc(out, ',');
    buf_putc(out, digits[i]);
  }
}

static void show_time(struct buf *out, int64_t ms) {
  if (ms < 1000)
    buf_printf(out, "%lldms", (long long)ms);
  else if (ms < 120 * 1000)
    buf_printf(out, "%.1fs", (double)ms / 1000);
  else if (ms < 120 * 60 * 1000)
    buf_printf(out, "%.1fm", (double)ms / 60000);
  else
    buf_printf(out, "%.1fh", (double)ms / 3600000);
}

static void show_use(struct buf *out, const struct row_use *use) {
  show_number(out, (uint64_t)use->calls);
  buf_puts(out, use->calls == 1 ? " call, " : " calls, ");
  show_number(out, (uint64_t)(use->input + use->output));
  buf_printf(out, " tokens, $%.4f%s, ", (double)use->cost_nano / nano_usd,
             use->unpriced > 0 ? "+" : "");
  show_time(out, use->ms);
}

/* Writes a group's keys with slashes in between: "flow/implement". */
static void audit_group_name(const struct aggregate *c, enum aggregate_table table,
                             const struct group_by_row *g, struct buf *out) {
  for (size_t i = 0; i < c->tables[table].key_count; i++) {
    buf_auto_t text = {0};
    group_by_key_words(&c->tables[table], g, i, &c->names, &text);
    if (i > 0 && strcmp(buf_c(&text), "-") == 0)
      continue;
    if (i > 0)
      buf_putc(out, '/');
    buf_puts(out, buf_c(&text));
  }
}

/* --- logs that are not sound --- */

static void apart_counts(const uint64_t logs[ROWS_LOG_COUNT], struct buf *out) {
  for (int i = ROWS_TORN; i < ROWS_LOG_COUNT; i++)
    if (logs[i] > 0) {
      buf_puts(out, out->n > 0 ? ", " : "logs apart: ");
      buf_printf(out, "%llu %s%s", (count)logs[i], rows_log_name((enum rows_log)i),
                 i == ROWS_TORN ? " (counted)" : "");
    }
}

/* Prints how many logs are not sound, and the first few with the reason; nothing if all are. */
static void audit_show_apart(const struct aggregate *c, FILE *to) {
  buf_auto_t line = {0};
  apart_counts(c->logs, &line);
  if (line.n > 0)
    fprintf(to, "%s\n", buf_c(&line));
  for (size_t i = 0; i < c->apart_count && i < APART_SHOWN; i++) {
    const struct aggregate_apart *a = &c->apart[i];
    const char *name = strrchr(a->log, '/');
    buf_clear(&line);
    buf_printf(&line, "  %-10s  ", rows_log_name(a->state));
    (void)cli_fit(&line, str_from(name != NULL ? name + 1 : a->log), 60);
    if (a->why[0] != '\0')
      buf_puts(&line, "  ");
    (void)cli_fit(&line, str_from(a->why), 110);
    fprintf(to, "%s\n", buf_c(&line));
  }
  if (c->apart_count > APART_SHOWN)
    fprintf(to, "  and %zu more: --json names up to %d\n", c->apart_count - APART_SHOWN,
            LIMIT_AUDIT_APART_COUNT);
}

/* --- the screen --- */

static void show_totals(const struct aggregate *c, const struct group_by_row *all) {
  struct buf line = {0};
  show_number(&line, all->judgments);
  buf_puts(&line, all->judgments == 1 ? " judgment in " : " judgments in ");
  show_number(&line, c->sessions);
  buf_puts(&line, c->sessions == 1 ? " session" : " sessions");
  for (size_t i = 0; i < c->outcome_count; i++) {
    buf_puts(&line, i == 0 ? " (" : ", ");
    show_number(&line, c->outcomes[i].count);
    buf_putc(&line, ' ');
    buf_safe(&line, dictionary_text(&c->names, c->outcomes[i].word), false);
  }
  buf_puts(&line, c->outcome_count > 0 ? ")" : "");
  show_line(&line);
  audit_show_apart(c, stdout);
}

static void show_methods(const struct aggregate *c) {
  const struct group_by_table *t = &c->tables[AGGREGATE_METHODS];
  show_title("Decided by");
  for (size_t i = 0; i < t->count; i++) {
    const struct group_by_row *g = &t->groups[i];
    buf_auto_t line = {0}, name = {0};
    if (g->judgments == 0) /* calls that no judgment came of */
      continue;
    group_by_key_words(&c->tables[AGGREGATE_METHODS], g, 0, &c->names, &name);
    show_cell(&line, strcmp(buf_c(&name), "-") == 0 ? "(no rule)" : buf_c(&name), 20);
    double share = aggregate_share(c, g->judgments);
    int cells = (int)(share * BAR_COLUMNS + 0.5);
    for (int k = 0; k < cells; k++)
      buf_puts(&line, "\xe2\x96\x88");
    buf_printf(&line, "%*s %5.1f %%  ", BAR_COLUMNS - cells, "", share * 100);
    show_number(&line, g->judgments);
    show_line(&line);
  }
}

static void show_stages(const struct aggregate *c) {
  const struct group_by_table *t = &c->tables[AGGREGATE_STAGES];
  show_title(
      "Stages               tried  decided      p50      p90      p99       tokens       cost");
  for (size_t i = 0; i < t->count; i++) {
    const struct group_by_row *g = &t->groups[i];
    static const int percents[] = {50, 90, 99};
    buf_auto_t line = {0}, cell = {0};
    group_by_key_words(&c->tables[AGGREGATE_STAGES], g, 0, &c->names, &cell);
    show_cell(&line, buf_c(&cell), 17);
    buf_printf(&line, "%9llu  %5.1f %%", (count)g->units,
               g->units > 0 ? 100.0 * (double)g->decided / (double)g->units : 0);
    for (size_t k = 0; k < ARRAY_LEN(percents); k++) {
      buf_clear(&cell);
      show_time(&cell, (int64_t)percentiles_at(&g->ms, percents[k]));
      buf_printf(&line, " %8s", buf_c(&cell));
    }
    buf_printf(&line, "%13lld %10.4f", (long long)(g->use.input + g->use.output),
               (double)g->use.cost_nano / nano_usd);
    show_line(&line);
  }
}

static void show_falls(const struct aggregate *c) {
  const struct group_by_table *t = &c->tables[AGGREGATE_FALLS];
  size_t shown = 0;
  for (size_t i = 0; i < t->count && shown < FALL_COUNT; i++) {
    const struct group_by_row *g = &t->groups[i];
    buf_auto_t line = {0}, cell = {0};
    if (g->units == g->decided)
      continue;
    if (shown++ == 0)
      show_title("Fell through");
    buf_printf(&line, "%9llu  ", (count)(g->units - g->decided));
    group_by_key_words(&c->tables[AGGREGATE_FALLS], g, 0, &c->names, &cell);
    buf_puts(&cell, " \xe2\x86\x92 ");
    buf_auto_t to = {0};
    group_by_key_words(&c->tables[AGGREGATE_FALLS], g, 1, &c->names, &to);
    buf_puts(&cell, strcmp(buf_c(&to), "-") == 0 ? "(end)" : buf_c(&to));
    show_cell(&line, buf_c(&cell), 40);
    buf_clear(&cell);
    group_by_key_words(&c->tables[AGGREGATE_FALLS], g, 2, &c->names, &cell);
    buf_putc(&line, ' ');
    buf_safe(&line, buf_view(&cell), false);
    show_line(&line);
  }
}

/* Shows the first rows of a table with their shares above 0. */
static void show_top(const struct aggregate *c, enum aggregate_table table, const char *title,
                     double (*share)(const struct group_by_row *), bool units) {
  const struct group_by_table *t = &c->tables[table];
  for (size_t i = 0; i < t->count && i < TOP_COUNT; i++) {
    const struct group_by_row *g = &t->groups[i];
    buf_auto_t line = {0}, name = {0};
    if (share(g) <= 0)
      break;
    if (i == 0)
      show_title(title);
    audit_group_name(c, table, g, &name);
    buf_printf(&line, "  %5.1f %%  ", share(g) * 100);
    show_cell(&line, buf_c(&name), 40);
    buf_printf(&line, " of %llu", (count)(units ? g->units : g->judgments));
    show_line(&line);
  }
}

/* Shows what became of the marks that agents were asked for. */
static void show_marks(const struct aggregate *c) {
  const struct group_by_table *t = &c->tables[AGGREGATE_MARKS];
  struct aggregate_client client;
  size_t shown = 0;
  for (size_t i = 0; i < t->count && shown < LIMIT_AUDIT_LIST_COUNT; i++) {
    const struct group_by_row *g = &t->groups[i];
    uint64_t turns = aggregate_marked(g);
    buf_auto_t line = {0}, name = {0};
    if (turns == 0)
      continue;
    if (shown++ == 0)
      show_title("Marks of agents' tags\n    turns  present  elsewhere  wrong  missing");
    audit_group_name(c, AGGREGATE_MARKS, g, &name);
    buf_printf(&line, "%9llu %8llu %10llu %6llu %8llu  ", (count)turns,
               (count)g->marks[TAG_PRESENT], (count)g->marks[TAG_ELSEWHERE],
               (count)g->marks[TAG_WRONG], (count)g->marks[TAG_MISSING]);
    show_cell(&line, buf_c(&name), 40);
    show_line(&line);
  }
  for (size_t at = 0; aggregate_next_client(c, &at, &client);) {
    struct buf line = buf_of("  ");
    aggregate_client_text(&client, &line);
    show_line(&line);
  }
}

static void show_forms(const struct group_by_row *all) {
  buf_auto_t line = {0};
  if (all->readings > 0)
    buf_printf(&line,
               "Judges' answers: %llu, %.1f %% well-formed at once, %llu after a correction, %llu "
               "after more\n",
               (count)all->readings,
               100.0 * (double)all->reading_first_pass / (double)all->readings,
               (count)all->reading_mended[1],
               (count)(all->reading_mended[2] + all->reading_mended[3] + all->reading_mended[4] +
                       all->reading_mended[5]));
  if (all->again > 0) {
    buf_printf(&line, "Asked again: %llu question%s, ", (count)all->again, PLURAL(all->again));
    show_use(&line, &all->again_use);
    buf_putc(&line, '\n');
  }
  if (all->values > 0)
    buf_printf(&line,
               "Values asked for: %llu, %.1f %% at once, %llu after a correction, %llu after"
               " more, %llu repaired, %llu none\n",
               (count)all->values, 100.0 * (double)all->value_first_pass / (double)all->values,
               (count)all->value_mended[1],
               (count)(all->value_mended[2] + all->value_mended[3] + all->value_mended[4] +
                       all->value_mended[5]),
               (count)all->value_repaired, (count)all->value_none);
  if (line.n > 0)
    printf("\n%s", line.p);
}

static void show_failures(const struct aggregate *c) {
  uint64_t more = 0;
  for (size_t i = 0; i < c->cause_count; i++) {
    buf_auto_t line = {0}, cause = {0};
    if (i >= CAUSE_COUNT) {
      more += c->causes[i].count;
      continue;
    }
    if (i == 0)
      show_title("Not complete");
    buf_safe(&cause, dictionary_text(&c->names, c->causes[i].word), false);
    buf_printf(&line, "%9llu  ", (count)c->causes[i].count);
    show_cell(&line, buf_c(&cause), 32);
    buf_puts(&line, " e.g. ");
    buf_safe(&line, str_from(c->causes[i].example), false);
    show_line(&line);
  }
  if (more > 0)
    printf("%9llu  by other causes: --json names them\n", (count)more);
}

static void audit_show_screen(const struct aggregate *c) {
  static const struct group_by_row nothing;
  const struct group_by_table *t = &c->tables[AGGREGATE_ALL];
  const struct group_by_row *all = t->count > 0 ? &t->groups[0] : &nothing;
  show_totals(c, all);
  if (all->judgments > 0)
    show_methods(c);
  if (all->judgments > 0 || all->use.calls > 0) {
    show_stages(c);
    struct buf line = {0};
    buf_puts(&line, "Unsure stages (which did not decide) cost ");
    show_use(&line, &all->unsure_use);
    buf_puts(&line, "; all judging ");
    show_use(&line, &all->use);
    printf("\n");
    show_line(&line);
    show_falls(c);
    show_top(c, AGGREGATE_MOVEMENTS, "Movements that most often fall through", aggregate_unsure,
             false);
    show_top(c, AGGREGATE_JUDGES, "Judges that most often cannot be read", aggregate_unreadable,
             true);
  }
  show_marks(c);
  show_forms(all);
  show_failures(c);
}

/* --- groups --- */

static int key_width(const struct aggregate *c, const struct group_by_table *t, size_t key) {
  size_t width = strlen(group_by_key_name(t->keys[key]));
  for (size_t i = 0; i < t->count; i++) {
    buf_auto_t text = {0}, safe = {0};
    group_by_key_words(t, &t->groups[i], key, &c->names, &text);
    buf_safe(&safe, buf_view(&text), false);
    size_t n = utf8_count(buf_c(&safe), safe.n);
    width = n > width ? n : width;
  }
  return width < NAME_COLUMNS_MAX ? (int)width : NAME_COLUMNS_MAX;
}

static void audit_show_groups(const struct aggregate *c) {
  const struct group_by_table *t = &c->tables[AGGREGATE_BY];
  int widths[GROUP_BY_KEYS_MAX];
  struct buf line = {0};
  bool stages = group_by_stage(t);
  for (size_t k = 0; k < t->key_count; k++) {
    widths[k] = key_width(c, t, k);
    show_cell(&line, group_by_key_name(t->keys[k]), widths[k] + 2);
  }
  buf_printf(&line, "judgments   share  %s   unsure      p50      p99        tokens       cost",
             stages ? "  stages  decided" : "decided");
  show_line(&line);
  if (t->count == 0)
    puts("no judgment matches");
  for (size_t i = 0; i < t->count; i++) {
    const struct group_by_row *g = &t->groups[i];
    buf_auto_t cell = {0};
    for (size_t k = 0; k < t->key_count; k++) {
      buf_clear(&cell);
      group_by_key_words(&c->tables[AGGREGATE_BY], g, k, &c->names, &cell);
      show_cell(&line, buf_c(&cell), widths[k] + 2);
    }
    buf_printf(&line, "%9llu %5.1f %%", (count)g->judgments,
               100 * aggregate_share(c, g->judgments));
    if (stages)
      buf_printf(&line, "  %8llu", (count)g->units);
    buf_printf(&line, " %8llu %6.1f %%", (count)g->decided, 100 * aggregate_unsure(g));
    buf_clear(&cell);
    show_time(&cell, (int64_t)percentiles_at(&g->ms, 50));
    buf_printf(&line, " %8s", buf_c(&cell));
    buf_clear(&cell);
    show_time(&cell, (int64_t)percentiles_at(&g->ms, 99));
    buf_printf(&line, " %8s%14lld %10.4f", buf_c(&cell), (long long)(g->use.input + g->use.output),
               (double)g->use.cost_nano / nano_usd);
    show_line(&line);
  }
  if (t->left_out > 0)
    printf("%llu more did not fit into the groups that are kept: filter, or use fewer keys\n",
           (count)t->left_out);
}

/* --- errors --- */

static void audit_show_flaws(const struct format_errors *f) {
  printf("%llu failing answer%s, %llu error%s\n", (count)f->answers, PLURAL(f->answers),
         (count)f->errors, PLURAL(f->errors));
  for (size_t i = 0; i < f->count; i++) {
    const struct format_error_group *g = &f->groups[i];
    struct buf line = {0};
    if (i == 0)
      printf("\n    count  of                 keyword          path                      form\n");
    buf_printf(&line, "%9llu  ", (count)g->count);
    show_cell(&line, g->stage ? g->stage : "value", 18);
    buf_putc(&line, ' ');
    show_cell(&line, g->keyword, 16);
    buf_putc(&line, ' ');
    show_cell(&line, g->path, 25);
    buf_printf(&line, " %-13s", g->shape);
    show_line(&line);
    buf_puts(&line, "           ");
    (void)cli_fit(&line, str_from(g->message), 60);
    buf_printf(&line, "  e.g. ");
    buf_safe(&line, str_from(g->example), false);
    show_line(&line);
  }
  if (f->left_out > 0)
    printf("%llu more are neither grouped nor exported (up to %u of a log are, in as many groups): "
           "filter, for example by --movement\n",
           (count)f->left_out, LIMIT_AUDIT_FLAW_COUNT);
  buf_auto_t apart = {0};
  apart_counts(f->logs, &apart);
  if (apart.n > 0)
    fprintf(stderr, "segue audit: %s\n", buf_c(&apart));
}

/* --- the counts --- */

/* Prints a piece of a line of JSON: a large folder has more groups than one tree should hold. */
static void print_piece(const char *before, json_t *value) {
  buf_auto_t text = {0};
  json_io_write(value, JSON_IO_COMPACT, &text);
  printf("%s%s", before, buf_c(&text));
  json_decref(value);
}

static void audit_print(struct aggregate *c, const struct cli_args *args) {
  aggregate_sort(c);
  if (cli_flag(args, "json")) {
    json_t *group;
    fputs("{\"groups\":[", stdout);
    for (size_t i = 0; (group = aggregate_group_json(c, i)) != NULL; i++)
      print_piece(i > 0 ? "," : "", group);
    print_piece("],\"totals\":", aggregate_totals_json(c));
    puts("}");
  } else if (cli_flag(args, "csv")) {
    buf_auto_t out = {0};
    aggregate_csv(c, &out);
    fwrite(buf_c(&out), 1, out.n, stdout);
    audit_show_apart(c, stderr);
  } else if (c->tables[AGGREGATE_BY].key_count > 0) {
    audit_show_groups(c);
    audit_show_apart(c, stderr);
  } else {
    audit_show_screen(c);
  }
}

/* Gives what --fail-if may name: shares of the judgments, and the counts as --json has them. */
static json_t *gate_figures(const struct group_by_row *g, json_t *counts) {
  double all = g->judgments > 0 ? (double)g->judgments : 1;
  return json_pack("{sI sf sf sf sf sf so}", "judgments", (json_int_t)g->judgments, "decided",
                   (double)g->decided / all, "no_rule", (double)g->no_rule / all, "ambiguous",
                   (double)g->ambiguous / all, "unsure", aggregate_unsure(g), "unreadable",
                   aggregate_unreadable(g), "counts", counts);
}

static void audit_gate(const struct aggregate *c, struct gate *gate) {
  static const struct group_by_row nothing;
  const struct group_by_table *all = &c->tables[AGGREGATE_ALL], *by = &c->tables[AGGREGATE_BY];
  if (gate->expr == NULL)
    return;
  for (size_t i = 0; by->key_count > 0 && i < by->count; i++) {
    buf_auto_t name = {0};
    audit_group_name(c, AGGREGATE_BY, &by->groups[i], &name);
    gate_check(gate, buf_c(&name), gate_figures(&by->groups[i], aggregate_group_json(c, i)));
  }
  if (by->key_count == 0)
    gate_check(gate, "all judgments",
               gate_figures(all->count > 0 ? &all->groups[0] : &nothing, aggregate_totals_json(c)));
}

/* --- errors --- */

struct exporting {
  FILE *file;
  size_t count;
};

static void export_case(void *ctx, json_t *item) {
  struct exporting *e = ctx;
  buf_auto_t line = {0};
  json_io_write(item, JSON_IO_COMPACT, &line);
  fprintf(e->file, "%s\n", buf_c(&line));
  e->count++;
}

/* Opens the file of cases. They hold what logs hold: others on this machine need not read them. */
static bool export_open(struct exporting *e, const char *path, struct err *err) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  e->file = fd >= 0 ? fdopen(fd, "w") : NULL;
  return e->file != NULL || err_set_errno(err, errno, "cannot write %s", path);
}

static bool export_close(struct exporting *e, const char *path, struct err *err) {
  bool ok = !ferror(e->file);
  ok = fclose(e->file) == 0 && ok;
  if (!ok)
    return err_set_errno(err, errno, "cannot write %s", path);
  fprintf(stderr, "%zu case%s in %s\n", e->count, PLURAL(e->count), path);
  return true;
}

static int audit_errors(const struct aggregate *c, const struct cli_args *args, const char *logs,
                        struct gate *gate) {
  const char *path = cli_value(args, "export");
  struct exporting e = {0};
  struct err err = {0};
  struct format_errors *f = format_errors_new(c);
  bool ok = path == NULL || export_open(&e, path, &err);
  if (path != NULL && ok) {
    f->on_case = export_case;
    f->ctx = &e;
  }
  const struct resolve_id_each each = {.log = format_errors_read, .ctx = f};
  ok = ok && resolve_id_take_all(args->words, args->word_count, logs, &each, &err);
  if (e.file != NULL)
    ok = export_close(&e, path, &err) && ok;
  format_errors_sort(f);
  if (ok && cli_flag(args, "json")) {
    json_io_put(format_errors_json(f));
  } else if (ok) {
    audit_show_flaws(f);
  }
  if (ok)
    gate_check(
        gate, "answers",
        json_pack("{sI sI}", "answers", (json_int_t)f->answers, "errors", (json_int_t)f->errors));
  format_errors_free(f);
  return cli_done("audit", ok, &err);
}

/* Counts one folder, and reads only what is new. */
static bool audit_kept(struct aggregate *c, const struct cli_args *args, struct err *err) {
  const char *logs = cli_value(args, "logs");
  struct aggregate_cache_told told = {0};
  struct store store;
  if (!resolve_id_store(args->word_count > 0 ? args->words[0] : logs, &store, err))
    return false;
  if (!store_exists(&store) && args->word_count == 0 && logs == NULL)
    return true;
  bool shared = store_is_address(store.where);
  if (!(shared ? aggregate_shared_read : aggregate_cache_read)(c, &store, &told, err))
    return false;
  fprintf(stderr,
          "%llu logs counted from earlier results, %llu read; without --kept all are checked\n",
          (unsigned long long)told.known, (unsigned long long)told.read);
  return true;
}

/* Returns true if kept rows can answer; otherwise says why all logs are read. */
static bool kept_can(const struct cli_args *args) {
  const char *why = NULL;
  if (cli_flag(args, "errors"))
    why = "--errors";
  else if (args->word_count > 1 || (args->word_count == 1 && !resolve_id_is_store(args->words[0])))
    why = "anything but one folder";
  if (why != NULL)
    fprintf(stderr, "segue audit: --kept has no counts for %s, so all logs are read\n", why);
  return why == NULL;
}

/* --- hidden tests --- */

static void gap_take_log(void *ctx, const struct store_ref *ref) {
  hidden_gap_read(ctx, ref);
}

/* Appends "94 of 120 tests (78.3 %)", or "-". */
static void gap_put(const json_t *tests, struct buf *out) {
  json_int_t passed = json_int_at(tests, "passed"), all = json_int_at(tests, "tests");
  if (all == 0)
    buf_puts(out, "-");
  else
    buf_printf(out, "%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " tests (%.1f %%)", passed,
               all, 100 * (double)passed / (double)all);
}

static void gap_show(const json_t *agent) {
  buf_auto_t name = {0}, visible = {0}, hidden = {0};
  buf_safe(&name, json_view(json_at(agent, "provider")), false);
  buf_puts(&name, json_at(agent, "model") != NULL ? " " : "");
  buf_safe(&name, json_view(json_at(agent, "model")), false);
  gap_put(json_at(agent, "visible"), &visible);
  gap_put(json_at(agent, "hidden"), &hidden);
  printf("%s: the check passed in %" JSON_INTEGER_FORMAT
         " sessions, hidden tests in %" JSON_INTEGER_FORMAT " of them: gap %.1f %%\n"
         "  visible: %s; hidden: %s",
         buf_c(&name), json_int_at(agent, "sessions"), json_int_at(agent, "passed"),
         100 * json_number_value(json_at(agent, "gap")), buf_c(&visible), buf_c(&hidden));
  if (json_at(agent, "not_run") != NULL)
    printf("; not run: %" JSON_INTEGER_FORMAT, json_int_at(agent, "not_run"));
  puts("");
}

static int audit_gap(const struct cli_args *args) {
  struct err err = {0};
  struct hidden_gap g = {.agents = json_object()};
  const struct resolve_id_each each = {.log = gap_take_log, .ctx = &g};
  bool ok =
      resolve_id_take_all(args->words, args->word_count, cli_value(args, "logs"), &each, &err);
  json_auto_t *agents = hidden_gap_json(&g);
  size_t i;
  const json_t *agent;
  if (ok && cli_flag(args, "json"))
    json_io_put(json_pack("{sO}", "gap", agents));
  else if (ok && json_array_size(agents) == 0)
    puts("no session had hidden tests: hidden_tests in config.yaml sets them");
  json_array_foreach(agents, i, agent)
    if (ok && !cli_flag(args, "json"))
      gap_show(agent);
  json_decref(g.agents);
  return cli_done("audit", ok, &err);
}

static int audit(const struct cli_args *args) {
  struct err err = {0};
  int status;
  const char *logs = cli_value(args, "logs");
  cli_errors_as_json(cli_flag(args, "json"));
  if (cli_flag(args, "gap"))
    return audit_gap(args);
  struct gate gate = {0};
  struct aggregate *c = aggregate_new();
  const struct resolve_id_each each = {.log = aggregate_on_log, .ctx = c};
  status = STATUS_COMPLETE;
  bool errors = cli_flag(args, "errors");
  const char *by = cli_value(args, "by");
  if (cli_flag(args, "json") && cli_flag(args, "csv"))
    err_set(&err, ERR_USAGE, "--json and --csv cannot be combined");
  if (errors && (cli_flag(args, "csv") || by != NULL))
    err_set(&err, ERR_USAGE, "--errors cannot be combined with --by or --csv");
  if (!errors && cli_value(args, "export") != NULL)
    err_set(&err, ERR_USAGE, "--export needs --errors");
  c->only_by = by != NULL && !cli_flag(args, "json");
  bool kept = err.code == ERR_NONE && cli_flag(args, "kept") && kept_can(args);
  if (err.code != ERR_NONE || !gate_begin(&gate, "audit", args, &err) ||
      !audit_filters(c, args, false, &err) || (by != NULL && !aggregate_by(c, by, &err)) ||
      (kept && !audit_kept(c, args, &err)) ||
      (args->word_count == 0 && !errors && !kept &&
       !resolve_id_take_all(NULL, 0, logs, &each, &err))) {
    status = cli_fail("audit", &err);
    aggregate_free(c);
    return gate_end(&gate, status);
  }
  if (errors) {
    status = audit_errors(c, args, logs, &gate);
    aggregate_free(c);
    return gate_end(&gate, status);
  }
  bool counted = args->word_count == 0 || kept;
  for (size_t i = 0; !kept && i < args->word_count; i++)
    if (resolve_id_take(args->words[i], logs, &each, &err))
      counted = true;
    else
      status = cli_fail("audit", &err);
  if (counted) {
    audit_print(c, args);
    audit_gate(c, &gate);
  }
  aggregate_free(c);
  return gate_end(&gate, status);
}

const struct cli_command cmd_audit = {COMMAND_AUDIT, .run = audit};
