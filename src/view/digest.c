/* Reads from a log what a row of a list says. */
#include "view/digest.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/record.h"
#include "format/json_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies as much of a text as a row shows. */
static struct str digest_line(struct str text) {
  size_t n = text.n < LIMIT_VIEW_LINE_BYTES ? text.n : LIMIT_VIEW_LINE_BYTES;
  return (struct str){xstrndup(n > 0 ? text.p : "", n), n};
}

static struct str digest_word(const char *text) {
  return digest_line(str_from(text));
}

static int64_t digest_time(const char *text) {
  int64_t ms;
  return record_time_parse(text, &ms) ? ms : 0;
}

/* Keeps how the judgments of a long log were decided, known once it has stopped or ended. */
static void keep_methods(struct view_row *row, const json_t *methods) {
  const char *name;
  json_t *count;
  json_object_foreach((json_t *)methods, name, count) {
    for (int i = 0; i < STAGE_COUNT; i++)
      if (strcmp(name, skim_method_name(i)) == 0 ||
          strcmp(name, judge_stage_name((enum judge_stage)i)) == 0) {
        row->methods[i] = (long)json_integer_value(count);
        break;
      }
  }
}

static void keep_spent(struct view_row *row, const json_t *spent) {
  const json_t *cost = json_at(spent, "cost_usd");
  row->tokens =
      json_integer_value(json_at(spent, "input")) + json_integer_value(json_at(spent, "output"));
  row->priced = json_is_number(cost);
  row->cost_usd = row->priced ? json_number_value(cost) : 0;
  row->unpriced = json_at(spent, "unpriced") != NULL;
}

/* Keeps the names of providers. Commands are programs of the workflow, not providers. */
static void keep_providers(struct view_row *row, const json_t *spent) {
  struct buf text = {0};
  const char *name;
  const json_t *used;
  json_object_foreach((json_t *)json_at(spent, "providers"), name, used) {
    if (strcmp(name, "command") != 0)
      buf_printf(&text, "%s%s", text.n > 0 ? ", " : "", name);
  }
  row->providers = digest_line(buf_view(&text));
  buf_deinit(&text);
}

static void keep_wait(struct view_row *row, const struct brief *b) {
  struct buf text = {0};
  if (b->wait == NULL || strcmp(b->status, "running") != 0)
    return;
  buf_printf(&text, "%s of %s", b->wait->what, b->wait->provider);
  if (b->wait->until[0] != '\0')
    buf_printf(&text, ", until %s", b->wait->until);
  row->wait = digest_line(buf_view(&text));
  row->retries = strcmp(b->wait->what, "concurrency") != 0 && strcmp(b->wait->what, "seats") != 0 &&
                 strcmp(b->wait->what, "folder") != 0;
  row->wait_ms = digest_time(b->wait->since);
  buf_deinit(&text);
}

struct digest *digest_of(struct brief *owned_b, const struct store_ref *ref) {
  struct brief b = *owned_b;
  struct digest *d = xcalloc(1, sizeof *d);
  struct view_row *row = &d->row;
  store_ref_id(ref, row->id);
  if (row->id[0] == '\0') /* its log has a name that says no id */
    (void)snprintf(row->id, sizeof row->id, "%s", b.session);
  row->workflow = digest_word(b.workflow);
  row->movement = digest_word(b.movement);
  row->message = digest_word(b.message);
  row->started_ms = digest_time(b.started);
  row->updated_ms = digest_time(b.updated);
  row->turns = b.turns;
  row->submitted = b.submitted;
  row->asks = json_array_size(b.questions);
  keep_spent(row, b.spent);
  keep_methods(row, b.methods);
  keep_providers(row, b.spent);
  keep_wait(row, &b);
  d->unfinished = strcmp(b.status, "running") == 0;
  (void)snprintf(d->status, sizeof d->status, "%s", brief_status(&b));
  memcpy(d->brief.started, b.started, sizeof b.started);
  d->brief.workflow = b.workflow;
  b.workflow = NULL;
  brief_deinit(&b);
  *owned_b = (struct brief){0};
  return d;
}

struct digest *digest_new(const struct store_ref *ref) {
  struct brief b;
  struct err ignored;
  return brief_read(&b, ref, &ignored) ? digest_of(&b, ref) : NULL;
}

void digest_skim(struct digest *d, const struct store_ref *ref) {
  struct view_row *row = &d->row;
  struct skim g;
  if (d->skimmed)
    return;
  d->skimmed = true;
  skim_read(&g, ref);
  row->task = digest_line(buf_view(&g.task));
  row->ambiguous = g.ambiguous;
  row->fell_back = g.fell_back;
  long known = 0;
  for (size_t i = 0; i < SKIM_METHODS; i++)
    known += row->methods[i];
  row->last_methods = !g.whole && known == 0;
  if (g.whole || row->last_methods)
    memcpy(row->methods, g.methods, sizeof row->methods);
  skim_deinit(&g);
}

void digest_clear(struct digest *d) {
  const struct str texts[] = {d->row.workflow,  d->row.task,    d->row.movement,
                              d->row.providers, d->row.message, d->row.wait};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free((char *)texts[i].p);
  brief_deinit(&d->brief);
  *d = (struct digest){0};
}

void digest_free(struct digest *d) {
  if (d == NULL)
    return;
  digest_clear(d);
  free(d);
}
