/* Writes a report's parts as Markdown. */
#include "web/markdown.h"

#include "judge/stage.h"

#include "view/number_format.h"
#include "web/sanitize.h"

#include <string.h>

/* Returns true if the character at `i` has a meaning there in Markdown. A bare URL would become a
 * link. */
static bool is_markup(struct str text, size_t i) {
  char c = text.p[i];
  bool begins = i == 0 || (i < 12 && strspn(text.p, "0123456789") == i);
  if (c == ':')
    return i + 1 < text.n && text.p[i + 1] == '/';
  if (c == '.' || c == ')')
    return begins || (i >= 3 && strncmp(text.p + i - 3, LIT("www")) == 0);
  return (i == 0 && strchr("-+=", c) != NULL) || strchr("\\`*_[]<>#|~&@$", c) != NULL;
}

void markdown_text(struct buf *out, struct str text) {
  buf_auto_t cleaned = {0};
  sanitize_text(&cleaned, text);
  for (size_t i = 0; i < cleaned.n; i++) {
    if (cleaned.p[i] == '\n' || cleaned.p[i] == '\t') {
      buf_putc(out, ' ');
      continue;
    }
    if (is_markup(buf_view(&cleaned), i))
      buf_putc(out, '\\');
    buf_putc(out, cleaned.p[i]);
  }
}

/* Writes a code block that nothing in the text can end. */
static void put_fenced(struct buf *out, struct str text) {
  buf_auto_t cleaned = {0};
  size_t run = 0, longest = 2;
  sanitize_text(&cleaned, text);
  for (size_t i = 0; i < cleaned.n; i++) {
    run = cleaned.p[i] == '`' ? run + 1 : 0;
    longest = run > longest ? run : longest;
  }
  for (size_t i = 0; i <= longest; i++)
    buf_putc(out, '`');
  buf_putc(out, '\n');
  buf_str(out, buf_view(&cleaned));
  buf_putc(out, '\n');
  for (size_t i = 0; i <= longest; i++)
    buf_putc(out, '`');
  buf_puts(out, "\n\n");
}

static void put_cell(struct buf *out, struct str text) {
  buf_puts(out, "| ");
  markdown_text(out, text);
  buf_putc(out, ' ');
}

/* --- a folder --- */

static void put_md_methods(struct buf *out, const struct aggregate *c) {
  const struct group_by_table *t = &c->tables[AGGREGATE_METHODS];
  if (t->count == 0)
    return;
  buf_puts(out,
           "## Judgments by method\n\n| method | judgments | share |\n| --- | ---: | ---: |\n");
  for (size_t i = 0; i < t->count; i++) {
    buf_auto_t key = {0};
    if (t->groups[i].judgments == 0)
      continue;
    group_by_key_words(t, &t->groups[i], 0, &c->names, &key);
    put_cell(out, buf_view(&key));
    buf_printf(out, "| %llu | %.1f %% |\n", (unsigned long long)t->groups[i].judgments,
               100 * aggregate_share(c, t->groups[i].judgments));
  }
  buf_putc(out, '\n');
}

void markdown_folder(struct buf *out, const struct session_list *f, struct str where) {
  markdown_text(out, where);
  buf_printf(out, "\n\n%zu sessions: ", f->count);
  for (int i = 0; i < VIEW_CLASS_COUNT; i++)
    buf_printf(out, "%s%zu %s", i > 0 ? ", " : "", f->classes[i],
               view_class_name((enum view_class)i));
  if (f->left_out > 0)
    buf_printf(out, "; %zu older sessions were not read", f->left_out);
  buf_puts(out,
           "\n\n| status | session | workflow | task | movement | why | turns | tokens | cost |\n"
           "| --- | --- | --- | --- | --- | --- | ---: | ---: | ---: |\n");
  for (int class = 0; class < VIEW_CLASS_COUNT; class ++)
    for (size_t i = 0; i < f->count; i++)
      if ((int)f->rows[i].class == class) {
        buf_auto_t cost = {0};
        put_cell(out, f->rows[i].status);
        put_cell(out, str_from(f->rows[i].id));
        put_cell(out, f->rows[i].workflow);
        put_cell(out, f->rows[i].task);
        put_cell(out, f->rows[i].movement);
        put_cell(out, f->rows[i].message);
        view_put_dollars(&cost, f->rows[i].cost_usd, f->rows[i].priced, f->rows[i].unpriced);
        buf_printf(out, "| %ld | %lld ", f->rows[i].turns, (long long)f->rows[i].tokens);
        put_cell(out, buf_view(&cost));
        buf_puts(out, "|\n");
      }
  buf_putc(out, '\n');
  put_md_methods(out, f->aggregate);
  if (f->aggregate->cause_count > 0)
    buf_puts(out, "## Sessions that did not complete, by cause\n\n| cause | sessions | example |\n"
                  "| --- | ---: | --- |\n");
  for (size_t i = 0; i < f->aggregate->cause_count; i++) {
    put_cell(out, dictionary_text(&f->aggregate->names, f->aggregate->causes[i].word));
    buf_printf(out, "| %llu ", (unsigned long long)f->aggregate->causes[i].count);
    put_cell(out, str_from(f->aggregate->causes[i].example));
    buf_puts(out, "|\n");
  }
}

/* --- a session --- */

static void md_fact(struct buf *out, const char *name, struct str value) {
  if (value.n == 0)
    return;
  buf_printf(out, "- %s: ", name);
  markdown_text(out, value);
  buf_putc(out, '\n');
}

static void put_md_turn(struct buf *out, const struct view_turn *t) {
  buf_auto_t text = {0};
  buf_printf(out, "| %ld ", t->turn);
  put_cell(out, t->movement);
  put_cell(out, t->what);
  view_put_time(&text, t->duration_ms);
  put_cell(out, buf_view(&text));
  buf_printf(out, "| %lld ", (long long)(t->spend.input + t->spend.output));
  buf_clear(&text);
  view_put_cost(&text, &t->spend);
  put_cell(out, buf_view(&text));
  put_cell(out, t->leads_to);
  put_cell(out, t->over ? judge_stage_words(t->method) : STR("open"));
  put_cell(out, t->reason.n > 0 && !t->tried ? t->reason : t->why);
  buf_puts(out, "|\n");
}

void markdown_session(struct buf *out, const struct view_session *v,
                      const struct verify_result *verification) {
  buf_auto_t text = {0};
  buf_puts(out, "## Session ");
  markdown_text(out, str_from(v->id));
  buf_puts(out, "\n\n");
  if (v->chain == VIEW_BAD)
    buf_printf(out,
               "**This log is not what was written (record %llu). What is shown from there on "
               "is not proven.**\n\n",
               (unsigned long long)v->records + 1);
  md_fact(out, "workflow", v->workflow);
  md_fact(out, "status", v->status);
  md_fact(out, "because", v->message);
  view_put_when(&text, v->started_ms);
  md_fact(out, "started", buf_view(&text));
  buf_clear(&text);
  spend_print(v->spent, &text);
  md_fact(out, "used", buf_view(&text));
  buf_clear(&text);
  view_put_proof(&text, verification);
  md_fact(out, "integrity", buf_view(&text));
  md_fact(out, "log", v->log);
  if (v->task.n > 0) {
    buf_puts(out, "\nTask:\n\n");
    put_fenced(out, v->task);
  }
  buf_puts(out, "\n| turn | movement | did | took | tokens | cost | led to | by | why |\n"
                "| ---: | --- | --- | ---: | ---: | ---: | --- | --- | --- |\n");
  for (size_t i = 0; i < v->turn_count; i++)
    put_md_turn(out, &v->turns[i]);
  buf_putc(out, '\n');
}

void markdown_told(struct buf *out, const struct view_turn *turn, const struct view_judgment *told,
                   struct str command) {
  bool cut = false;
  buf_printf(out, "\n### Turn %ld: ", turn->turn);
  markdown_text(out, turn->movement);
  buf_puts(out, "\n\n");
  for (size_t i = 0; i < told->count; i++) {
    const struct view_piece *p = &told->pieces[i];
    switch (p->kind) {
    case VIEW_TITLE:
      if (i == 0) /* the turn's own title, which the heading already has */
        break;
      buf_puts(out, "\n#### ");
      markdown_text(out, p->text);
      buf_puts(out, "\n\n");
      break;
    case VIEW_LINE:
      buf_puts(out, "- ");
      markdown_text(out, p->text);
      buf_putc(out, '\n');
      break;
    case VIEW_TEXT:
      buf_putc(out, '\n');
      put_fenced(out, p->text.n > 0 ? p->text : p->origin);
      if (p->more_bytes > 0)
        buf_printf(out, "%zu more bytes\n\n", p->more_bytes);
      cut = cut || p->more_bytes > 0;
      break;
    }
  }
  if (cut) {
    buf_puts(out, "\nIn full: ");
    markdown_text(out, command);
    buf_puts(out, "\n");
  }
}
