/* Counts what a session took of its workflow, and draws it as text, as Mermaid and as JSON. */
#include "audit/graph.h"

#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "judge/stage.h"

#include <stdlib.h>
#include <string.h>

enum { RAILS_MAX = 24 }; /* more would leave no room for words: then rules say where they lead */

struct graph_edge {
  size_t movement, rule; /* from the number of rules on: an entry of on_error */
  long taken;
  json_t *methods; /* match method -> count */
};

struct graph_node {
  long runs;
  bool open; /* its last turn has no judgment yet */
  struct graph_edge *edges;
};

struct graph {
  struct workflow *workflow;
  struct graph_node *nodes;
  bool has_session;
  size_t entered; /* the last movement that is no child */
  long strangers;
};

static void put_edge_words(const struct movement *m, size_t k, struct buf *out) {
  if (k < m->rule_count) {
    buf_printf(out, "%zu " STR_FMT, k + 1, STR_ARG(m->rules[k].condition));
    return;
  }
  enum error_class class = m->on_error[k - m->rule_count].class;
  buf_printf(out, "! %s", class == CLASS_NONE ? "any error" : error_class_name(class));
}

struct graph *graph_new(struct workflow *workflow) {
  struct graph *g = xcalloc(1, sizeof *g);
  g->workflow = workflow_ref(workflow);
  g->nodes = xcalloc(workflow->movement_count, sizeof *g->nodes);
  for (size_t i = 0; i < workflow->movement_count; i++) {
    size_t n = movement_ways(&workflow->movements[i]);
    g->nodes[i].edges = xcalloc(n + 1, sizeof *g->nodes[i].edges);
    for (size_t k = 0; k < n; k++)
      g->nodes[i].edges[k] =
          (struct graph_edge){.movement = i, .rule = k, .methods = json_object()};
  }
  return g;
}

void graph_free(struct graph *g) {
  if (g == NULL)
    return;
  for (size_t i = 0; i < g->workflow->movement_count; i++) {
    for (size_t k = 0; k < movement_ways(&g->workflow->movements[i]); k++)
      json_decref(g->nodes[i].edges[k].methods);
    free(g->nodes[i].edges);
  }
  free(g->nodes);
  workflow_unref(g->workflow);
  free(g);
}

/* --- the path of a session --- */

static void graph_count(struct graph_edge *edge, const char *method) {
  json_int_t n = json_integer_value(json_object_get(edge->methods, method));
  edge->taken++;
  if (json_object_set_new(edge->methods, method, json_integer(n + 1)) != 0)
    BUG("a method cannot be counted");
}

/* Takes the end of a turn without a rule, which only names its class. */
static void graph_feed_end(struct graph *g, const json_t *record) {
  const struct movement *m = &g->workflow->movements[g->entered];
  enum error_class class;
  g->nodes[g->entered].open = false;
  if (!error_class_from_name(json_view_at(record, "class"), &class))
    return;
  const struct error_way *way = movement_on_error(m, class);
  if (way != NULL)
    graph_count(&g->nodes[g->entered].edges[m->rule_count + (size_t)(way - m->on_error)], "error");
}

void graph_feed(struct graph *g, const json_t *record) {
  const char *type = json_string_value(json_object_get(record, "type"));
  bool is_child = json_object_get(record, "parent_turn") != NULL;
  if (type != NULL && strcmp(type, "turn_end") == 0 && !is_child &&
      json_object_get(record, "outcome") != NULL && g->has_session)
    graph_feed_end(g, record);
  bool starts = type != NULL && strcmp(type, "turn_start") == 0;
  bool judges = type != NULL && strcmp(type, "judgment") == 0;
  if (!starts && !judges)
    return;
  long at = workflow_find(g->workflow, json_view_at(record, "movement"));
  if (at < 0) {
    g->strangers += starts;
    return;
  }
  struct graph_node *node = &g->nodes[at];
  g->has_session = true;
  g->entered = is_child ? g->entered : (size_t)at;
  node->runs += starts;
  node->open = starts;
  json_int_t rule = json_int_at(record, "rule");
  if (starts || rule == 0)
    return;
  if (rule < 0 || (size_t)rule > g->workflow->movements[at].rule_count) {
    g->strangers++;
    return;
  }
  const char *method = json_string_value(json_object_get(record, "match_method"));
  graph_count(&node->edges[rule - 1], method != NULL ? method : "unknown");
}

long graph_strangers(const struct graph *g) {
  return g->strangers;
}

/* --- words --- */

static struct str name_of(const struct graph *g, int next) {
  if (next == NEXT_COMPLETE)
    return STR("COMPLETE");
  return next == NEXT_ABORT ? STR("ABORT") : g->workflow->movements[next].name;
}

static void put_who(const struct graph *g, size_t at, struct buf *out) {
  const struct movement *m = &g->workflow->movements[at];
  struct str provider = m->provider.n > 0 ? m->provider : g->workflow->provider;
  if (m->for_each != NULL) {
    if (json_is_string(m->for_each))
      buf_printf(out, "for each of %s", json_string_value(m->for_each));
    else
      buf_printf(out, "for each of %zu items", json_array_size(m->for_each));
    buf_printf(out, ", %ld at once", m->concurrency);
  } else if (m->child_count > 0)
    buf_printf(out, "%zu at once", m->child_count);
  else if (m->ask != NULL)
    buf_puts(out, "asks a person");
  else if (m->argv != NULL)
    buf_printf(out, "command %s", m->argv[0]);
  else if (provider.n > 0)
    buf_printf(out, STR_FMT ", %s", STR_ARG(provider), permission_name(m->permission));
  else
    buf_puts(out, permission_name(m->permission));
  if (m->approve != NULL)
    buf_puts(out, ", approved first");
}

/* Writes "3 times: tag in the reply 2, asked again". */
static void put_taken(const struct graph_edge *edge, struct buf *out) {
  bool first = true;
  if (edge->taken == 1)
    buf_puts(out, "once: ");
  else
    buf_printf(out, "%ld times: ", edge->taken);
  JSON_MEMBERS(edge->methods, method, count) {
    buf_printf(out, "%s" STR_FMT, first ? "" : ", ", STR_ARG(judge_stage_words(str_from(method))));
    if (json_integer_value(count) > 1)
      buf_printf(out, " %ld", (long)json_integer_value(count));
    first = false;
  }
}

/* --- text --- */

/* A rail holds all edges to one row, spanning the rows they come from. */
struct rail {
  size_t first, last, target;
};

struct graph_row {
  int next; /* for a rule's row only */
  bool is_rule;
  size_t movement, rule; /* an end's row has the number of movements, and one more for ABORT */
};

struct drawing {
  const struct graph *graph;
  struct graph_row *rows;
  size_t row_count;
  struct rail rails[RAILS_MAX];
  size_t rail_count;
};

static size_t node_number(const struct graph *g, int next) {
  if (next == NEXT_COMPLETE)
    return g->workflow->movement_count;
  return next == NEXT_ABORT ? g->workflow->movement_count + 1 : (size_t)next;
}

static void add_movement_rows(struct drawing *d, size_t at) {
  const struct movement *m = &d->graph->workflow->movements[at];
  d->rows[d->row_count++] = (struct graph_row){.movement = at};
  for (size_t i = 0; i < m->child_count; i++)
    add_movement_rows(d, m->first_child + i);
  for (size_t k = 0; k < movement_ways(m); k++)
    d->rows[d->row_count++] = (struct graph_row){
        .is_rule = true, .movement = at, .rule = k, .next = movement_leads_to(m, k)};
}

/* Lists children below their group, before its rules. */
static void add_rows(struct drawing *d) {
  const struct workflow *wf = d->graph->workflow;
  size_t most = 2;
  for (size_t i = 0; i < wf->movement_count; i++)
    most += 1 + movement_ways(&wf->movements[i]);
  d->rows = xcalloc(most, sizeof *d->rows);
  for (size_t i = 0; i < wf->top_count; i++)
    add_movement_rows(d, i);
  for (size_t i = wf->top_count; i < wf->movement_count; i++)
    if (wf->movements[i].monitor != NULL)
      add_movement_rows(d, i);
  d->rows[d->row_count++] = (struct graph_row){.movement = wf->movement_count};
  d->rows[d->row_count++] = (struct graph_row){.movement = wf->movement_count + 1};
}

static bool is_child(const struct drawing *d, size_t row) {
  const struct workflow *wf = d->graph->workflow;
  size_t at = d->rows[row].movement;
  return at < wf->movement_count && wf->movements[at].group != NO_GROUP;
}

static bool leads_to(const struct drawing *d, size_t row, size_t node) {
  return d->rows[row].is_rule && !is_child(d, row) &&
         node_number(d->graph, d->rows[row].next) == node;
}

static int by_span(const void *a, const void *b) {
  const struct rail *x = a, *y = b;
  size_t n = x->last - x->first, m = y->last - y->first;
  if (n != m)
    return n > m ? -1 : 1;
  return x->target < y->target ? -1 : 1;
}

/* Puts long rails on the outside. */
static void add_rails(struct drawing *d) {
  for (size_t i = 0; i < d->row_count; i++) {
    struct rail rail = {i, i, i};
    bool used = false;
    for (size_t k = 0; !d->rows[i].is_rule && k < d->row_count; k++) {
      if (!leads_to(d, k, d->rows[i].movement))
        continue;
      used = true;
      rail.first = k < rail.first ? k : rail.first;
      rail.last = k > rail.last ? k : rail.last;
    }
    if (used && d->rail_count == RAILS_MAX) {
      d->rail_count = 0;
      return;
    }
    if (used)
      d->rails[d->rail_count++] = rail;
  }
  qsort(d->rails, d->rail_count, sizeof d->rails[0], by_span);
}

static const char *const rail_ends[] = {"  ", "- ", "> "};

static void draw_rails(const struct drawing *d, size_t row, struct buf *out) {
  bool joined = false; /* a rail further out is joined to this row */
  for (size_t i = 0; i < d->rail_count; i++) {
    const struct rail *rail = &d->rails[i];
    bool here = row >= rail->first && row <= rail->last;
    bool joins = row == rail->target || leads_to(d, row, d->rows[rail->target].movement);
    if (joins)
      buf_putc(out, '+');
    else if (here)
      buf_putc(out, '|');
    else
      buf_putc(out, joined ? '-' : ' ');
    joined = joined || joins;
    buf_putc(out, joined ? '-' : ' ');
  }
  if (d->rail_count > 0)
    buf_puts(out, rail_ends[joined + (joined && !d->rows[row].is_rule)]);
}

static void put_movement(const struct graph *g, size_t at, struct buf *out) {
  const struct graph_node *node = &g->nodes[at];
  const struct movement *m = &g->workflow->movements[at];
  buf_printf(out, "%s" STR_FMT "  (", m->group != NO_GROUP ? "  " : "", STR_ARG(m->name));
  put_who(g, at, out);
  buf_puts(out, at == g->workflow->initial ? "; starts here)" : ")");
  if (node->open)
    buf_printf(out, "  run %ld is open", node->runs);
  else if (node->runs > 0)
    buf_printf(out, "  %ld run%s", node->runs, node->runs == 1 ? "" : "s");
}

void graph_ascii(const struct graph *g, struct buf *out) {
  struct drawing d = {.graph = g};
  add_rows(&d);
  add_rails(&d);
  for (size_t i = 0; i < d.row_count; i++) {
    const struct graph_row *row = &d.rows[i];
    buf_auto_t words = {0};
    draw_rails(&d, i, out);
    if (row->is_rule) {
      const struct movement *m = &g->workflow->movements[row->movement];
      const struct graph_edge *edge = &g->nodes[row->movement].edges[row->rule];
      buf_puts(&words, m->group != NO_GROUP ? "    " : "  ");
      put_edge_words(m, row->rule, &words);
      if (m->group == NO_GROUP)
        buf_printf(&words, " -> " STR_FMT, STR_ARG(name_of(g, row->next)));
      if (row->rule < m->rule_count && m->rules[row->rule].interactive_only)
        buf_puts(&words, "  (interactive only)");
      if (edge->taken > 0) {
        buf_puts(&words, "  ");
        put_taken(edge, &words);
      }
    } else if (row->movement < g->workflow->movement_count)
      put_movement(g, row->movement, &words);
    else
      buf_puts(&words, row->movement == g->workflow->movement_count ? "COMPLETE" : "ABORT");
    buf_safe(out, buf_view(&words), false);
    buf_putc(out, '\n');
  }
  free(d.rows);
}

/* --- Mermaid --- */

/* Escapes for Mermaid, which has entities of its own: #quot; and #35; for the # that begins
 * them. */
static void put_quoted(struct str text, struct buf *out) {
  buf_auto_t safe = {0};
  buf_safe(&safe, text, false);
  for (size_t i = 0; i < safe.n; i++) {
    if (safe.p[i] == '"')
      buf_puts(out, "#quot;");
    else if (safe.p[i] == '#')
      buf_puts(out, "#35;");
    else if (safe.p[i] == '<')
      buf_puts(out, "#lt;");
    else
      buf_putc(out, safe.p[i]);
  }
}

static void put_edge(const struct graph *g, const struct graph_edge *edge, struct buf *out) {
  const struct movement *m = &g->workflow->movements[edge->movement];
  buf_auto_t words = {0};
  int next = movement_leads_to(m, edge->rule);
  const char *arrow = edge->rule < m->rule_count ? "-->" : "-.->";
  buf_printf(out, "  m%zu %s|\"", edge->movement, edge->taken > 0 ? "==>" : arrow);
  put_edge_words(m, edge->rule, &words);
  put_quoted(buf_view(&words), out);
  if (edge->taken > 0) {
    buf_puts(out, "<br/>");
    put_taken(edge, out);
  }
  buf_puts(out, "\"| ");
  if (next == NEXT_COMPLETE)
    buf_puts(out, "complete");
  else if (next == NEXT_ABORT)
    buf_puts(out, "abort");
  else
    buf_printf(out, "m%d", next);
  buf_putc(out, '\n');
}

void graph_mermaid(const struct graph *g, struct buf *out) {
  const struct workflow *wf = g->workflow;
  buf_printf(out, "flowchart TD\n  start((\" \")) --> m%zu\n", wf->initial);
  for (size_t i = 0; i < wf->movement_count; i++) {
    buf_auto_t who = {0};
    put_who(g, i, &who);
    buf_printf(out, "  m%zu[\"", i);
    put_quoted(g->workflow->movements[i].name, out);
    buf_puts(out, "<br/>");
    put_quoted(buf_view(&who), out);
    if (g->nodes[i].runs > 0)
      buf_printf(out, "<br/>%ld run%s", g->nodes[i].runs, g->nodes[i].runs == 1 ? "" : "s");
    buf_puts(out, "\"]\n");
  }
  buf_puts(out, "  complete([COMPLETE])\n  abort([ABORT])\n");
  for (size_t i = 0; i < wf->movement_count; i++) {
    const struct movement *m = &wf->movements[i];
    if (m->group != NO_GROUP)
      buf_printf(out, "  m%ld -.- m%zu\n", m->group, i);
    for (size_t k = 0; m->group == NO_GROUP && k < movement_ways(m); k++)
      put_edge(g, &g->nodes[i].edges[k], out);
  }
}

/* --- JSON --- */

static json_t *json_must(json_t *value) {
  if (value == NULL)
    BUG("a graph cannot be printed as JSON");
  return value;
}

static json_t *graph_rules_json(const struct graph *g, size_t at) {
  const struct movement *m = &g->workflow->movements[at];
  json_t *list = json_array();
  for (size_t k = 0; k < m->rule_count; k++) {
    const struct graph_edge *edge = &g->nodes[at].edges[k];
    (void)json_array_append_new(
        list, json_must(json_pack(
                  "{so so sI sO}", "condition", json_text(m->rules[k].condition), "next",
                  m->group == NO_GROUP ? json_text(name_of(g, m->rule_next[k])) : json_null(),
                  "taken", (json_int_t)edge->taken, "methods", edge->methods)));
  }
  return list;
}

/* NULL: errors lead nowhere. */
static json_t *graph_errors_json(const struct graph *g, size_t at) {
  const struct movement *m = &g->workflow->movements[at];
  json_t *list = m->on_error_count > 0 ? json_array() : NULL;
  for (size_t k = 0; k < m->on_error_count; k++) {
    const struct error_way *way = &m->on_error[k];
    const char *class = way->class != CLASS_NONE ? error_class_name(way->class) : NULL;
    (void)json_array_append_new(
        list,
        json_must(json_pack("{ss* so sI}", "class", class, "next", json_text(way->to), "taken",
                            (json_int_t)g->nodes[at].edges[m->rule_count + k].taken)));
  }
  return list;
}

json_t *graph_json(const struct graph *g) {
  const struct workflow *wf = g->workflow;
  json_t *list = json_array();
  for (size_t i = 0; i < wf->movement_count; i++)
    (void)json_array_append_new(
        list,
        json_must(json_pack("{so sI sb so so*}", "name", json_text(wf->movements[i].name), "runs",
                            (json_int_t)g->nodes[i].runs, "open", g->nodes[i].open, "rules",
                            graph_rules_json(g, i), "on_error", graph_errors_json(g, i))));
  return json_must(json_pack("{so so so sI}", "workflow", json_text(wf->name), "initial",
                             json_text(wf->movements[wf->initial].name), "movements", list,
                             "strangers", (json_int_t)g->strangers));
}
