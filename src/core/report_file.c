/* Decides and folds the reports of a turn; reads their contracts; keeps reports and answers by
 * name. */
#include "core/report_file.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "core/record.h"
#include "core/retained.h"
#include "format/json_object.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_CALLS = 2 }; /* for one report: in the conversation, then in a new one */

static size_t report_count(const struct turn *turn) {
  size_t n = 0;
  for (const struct kept_text *kept = turn->reports; kept; kept = kept->next)
    n++;
  return n;
}

void report_next(const struct movement *m, const struct turn *turn, struct report_step *step) {
  size_t done = report_count(turn);
  const struct call *last = NULL;
  size_t calls = 0;
  assert(done < m->contract_count);
  *step = (struct report_step){.action = REPORT_KEEP, .contract = &m->contracts[done]};
  if (step->contract->is_answer)
    return;
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call->report == (int)done + 1) {
      last = call;
      calls++;
    }
  step->call = last;
  if (last == NULL) {
    step->action = REPORT_ASK;
  } else if (last->state == CALL_RUNNING || last->state == CALL_WAITING) {
    step->action = REPORT_WAIT;
  } else if (last->state == CALL_FAILED) {
    step->fresh = last->resumed && calls < REPORT_CALLS;
    step->action = step->fresh ? REPORT_ASK : REPORT_FAILED;
  }
}

/* --- the decision --- */

static void report_ask(struct step *s, struct turn *turn, const struct report_step *step) {
  const struct core *core = s->core;
  const struct movement *m = core_movement(core, turn);
  /* The turn's last call that brought its answer, or a report in the same conversation, did the
   * work. There is none if the program that wrote the log did not record it. */
  const struct call *worker = NULL;
  for (const struct call *call = turn->calls; call; call = call->next)
    if (call->state == CALL_DONE && (call_generates(call) || call->resumed))
      worker = call;
  struct prompt_view view;
  char nonce[17];
  struct step_call n = {.purpose = PURPOSE_REPORT,
                        .stage = STAGE_COUNT,
                        .report = (int)(step->contract - m->contracts) + 1,
                        .timeout_ms = (uint64_t)m->timeout_ms,
                        .options = step_work_options(core, m)};
  core_backend(core->workflow, core->config, turn->movement, &n.provider, &n.model);
  const struct capability *c =
      worker ? capability_find(s->env->providers, str_from(worker->provider)) : NULL;
  if (!step->fresh && c != NULL && c->sessions && worker->provider_session != NULL) {
    n.provider = str_from(worker->provider);
    n.model = str_from(worker->model);
    n.provider_session = worker->provider_session;
  }
  step_view(s, turn, nonce, &view);
  step_turn_nonce(core, turn, view.answer, nonce);
  prompt_report(&view, step->contract, n.provider_session == NULL, &n.prompt);
  (void)step_start_work(s, turn, &n);
}

static void report_keep(struct step *s, struct turn *turn, const struct report_step *step) {
  struct record_draft d;
  char sha256[SHA256_HEX];
  const struct buf *answer = step->call ? &step->call->text : &turn->text;
  contract_sha256(buf_view(answer), sha256);
  step_turn_record(s, &d, RECORD_REPORT, turn);
  record_put_text(&d, MEMBER_MOVEMENT, core_movement(s->core, turn)->name);
  record_put_text(&d, MEMBER_FILE, step->contract->name);
  record_put_text(&d, MEMBER_SHA256, str_from(sha256));
  if (step->call != NULL)
    record_put_number(&d, MEMBER_CALL, step->call->id);
  step_emit(s, &d);
  step_effect(s, EFFECT_REPORTS, 0, 0);
}

bool step_report(struct step *s, struct turn *turn) {
  struct report_step step;
  report_next(core_movement(s->core, turn), turn, &step);
  switch (step.action) {
  case REPORT_ASK:
    if (s->env->draining)
      return false;
    report_ask(s, turn, &step);
    return true;
  case REPORT_WAIT:
    return false;
  case REPORT_KEEP:
    report_keep(s, turn, &step);
    return true;
  case REPORT_FAILED:
    return step_halt(s, "provider_error", turn, step.call->class, buf_view(&step.call->text), NULL);
  }
  return false;
}

/* --- the fold --- */

int report_number(const struct fold *f, const struct turn *turn) {
  const struct movement *m = core_movement(f->core, turn);
  for (size_t i = 0; i < m->contract_count; i++)
    if (str_eq(m->contracts[i].name, fold_text(f, MEMBER_FILE)))
      return (int)i + 1;
  return 0;
}

bool report_may_call(const struct fold *f, const struct turn *turn) {
  struct report_step step;
  if (report_number(f, turn) != (int)report_count(turn) + 1)
    return fold_bad(f, "its report is not the next one");
  report_next(core_movement(f->core, turn), turn, &step);
  return step.action == REPORT_ASK || fold_bad(f, "its report was asked for often enough");
}

bool apply_report(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  struct report_step step;
  char sha256[SHA256_HEX];
  if (turn == NULL)
    return false;
  if (turn->phase != TURN_REPORTING)
    return fold_bad(f, "its turn is not at that point");
  report_next(core_movement(f->core, turn), turn, &step);
  bool same_call = fold_number(f, MEMBER_CALL) == (step.call ? step.call->id : 0);
  if (step.action != REPORT_KEEP || !same_call ||
      !str_eq(fold_text(f, MEMBER_FILE), step.contract->name))
    return fold_bad(f, "it is not the report that comes next");
  struct str answer = buf_view(step.call ? &step.call->text : &turn->text);
  contract_sha256(answer, sha256);
  if (!str_eq_c(fold_text(f, MEMBER_SHA256), sha256))
    return fold_bad(f, "its sha256 is not that of the answer which it keeps");
  uint64_t seq = step.call ? step.call->text_seq : turn->text_seq;
  struct str text = str_trim(answer); /* prompts show it without the surrounding blanks */
  struct kept_text *kept = kept_put(&turn->reports, step.contract->name);
  buf_str(&kept->text, text);
  kept->seq = text.n == answer.n ? seq : 0;
  kept->judged = step.contract->judged;
  kept->since = (uint64_t)f->record->seq;
  contract_sha256(text, kept->sha256);
  if (report_count(turn) == core_movement(f->core, turn)->contract_count)
    turn->phase = TURN_JUDGING;
  return true;
}

/* --- contracts: contract.h --- */

bool contract_check_name(struct str name, struct err *err) {
  static const char refused[] = "/\\:*?\"<>|";
  bool ok = name.n > 0 && name.n <= LIMIT_NAME_BYTES && name.p[0] != '.' && name.p[0] != ' ' &&
            name.p[name.n - 1] != '.' && name.p[name.n - 1] != ' ' && !str_has_control(name);
  for (size_t i = 0; ok && i < name.n; i++)
    ok = strchr(refused, name.p[i]) == NULL;
  return ok || err_set(err, ERR_INVALID,
                       "must be a file's name such as plan.md: no folder, no dot in front, none of "
                       "\\ : * ? \" < > |");
}

static bool is_same_file(struct str a, struct str b) {
  if (a.n != b.n)
    return false;
  for (size_t i = 0; i < a.n; i++) /* some file systems ignore case */
    if ((a.p[i] | 0x20) != (b.p[i] | 0x20))
      return false;
  return true;
}

bool contracts_read(struct arena *arena, const json_t *movement, struct contract **out,
                    size_t *count, struct err *err) {
  const json_t *list = json_at(json_at(movement, "output_contracts"), "report"), *item;
  struct str own = json_view_at(movement, "report");
  struct contract *all = arena_array(arena, json_array_size(list) + 1, sizeof *all);
  size_t n = 0, i;
  if (own.n > 0)
    all[n++] = (struct contract){.name = own, .is_answer = true};
  json_array_foreach((json_t *)list, i, item) {
    all[n++] = (struct contract){.name = json_view_at(item, "name"),
                                 .label = json_view_at(item, "label"),
                                 .format = json_view_at(item, "format"),
                                 .order = json_view_at(item, "order"),
                                 .judged = !json_is_false(json_at(item, "use_judge"))};
  }
  *out = all;
  *count = n;
  for (i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (is_same_file(all[i].name, all[k].name))
        return err_set(err, ERR_INVALID, "two reports are called " STR_FMT, STR_ARG(all[i].name));
  return true;
}

void contract_content(struct str answer, struct buf *out) {
  buf_str(out, str_trim(answer));
  buf_putc(out, '\n');
}

void contract_sha256(struct str answer, char out[SHA256_HEX]) {
  struct str text = str_trim(answer);
  sha256_hex(text.p, text.n, "\n", 1, out);
}

/* --- texts by name: retained.h --- */

const struct kept_text *kept_find(const struct kept_text *list, struct str name) {
  while (list != NULL && !str_eq_c(name, list->name))
    list = list->next;
  return list;
}

struct kept_text *kept_put(struct kept_text **list, struct str name) {
  struct kept_text *kept = *list;
  while (kept != NULL && !str_eq_c(name, kept->name))
    kept = kept->next;
  if (kept != NULL) {
    memcpy(kept->before, kept->sha256, sizeof kept->before);
    kept->sha256[0] = '\0';
    buf_clear(&kept->text);
    free(kept->joined.joints);
    kept->joined = (struct joined){0};
    kept->seq = 0;
    kept->since = 0;
    return kept;
  }
  kept = xcalloc(1, sizeof *kept);
  kept->name = xstrndup(name.p, name.n);
  CHAIN_APPEND(*list, kept);
  return kept;
}

void kept_move(struct kept_text **list, struct kept_text **from) {
  while (*from != NULL) {
    struct kept_text *kept = *from;
    struct kept_text *to = kept_put(list, str_from(kept->name));
    buf_deinit(&to->text);
    to->text = kept->text;
    to->joined = kept->joined;
    to->seq = kept->seq;
    to->judged = kept->judged;
    to->since = kept->since;
    memcpy(to->sha256, kept->sha256, sizeof to->sha256);
    *from = kept->next;
    free(kept->name);
    free(kept);
  }
}

void kept_free(struct kept_text **list) {
  while (*list != NULL) {
    struct kept_text *next = (*list)->next;
    buf_deinit(&(*list)->text);
    free((*list)->joined.joints);
    free((*list)->name);
    free(*list);
    *list = next;
  }
}

void kept_answer(struct core *core, const struct movement *m, struct str text, uint64_t seq,
                 const struct joined *joined) {
  if (!m->answers_later)
    return;
  struct kept_text *kept = kept_put(&core->responses, m->name);
  buf_str(&kept->text, text);
  kept->seq = seq;
  if (joined != NULL && joined->count > 0) {
    kept->joined.count = joined->count;
    kept->joined.joints = xmalloc(joined->count * sizeof *joined->joints);
    memcpy(kept->joined.joints, joined->joints, joined->count * sizeof *joined->joints);
  }
}

static void kept_each(const struct kept_text *list,
                      void (*fn)(void *ctx, const struct kept_text *kept), void *ctx) {
  for (; list != NULL; list = list->next)
    fn(ctx, list);
}

void kept_each_report(const struct core *core, void (*fn)(void *ctx, const struct kept_text *kept),
                      void *ctx) {
  kept_each(core->reports, fn, ctx);
  for (const struct turn *turn = core->turns; turn; turn = turn->next) {
    for (size_t i = 0; turn->parts && i < turn->part_count; i++)
      kept_each(turn->parts[i].reports, fn, ctx);
    kept_each(turn->reports, fn, ctx);
  }
}

static void kept_add(struct buf *text, struct joined *joined, struct str piece, uint64_t seq) {
  buf_str(text, piece);
  joined->joints = xrealloc(joined->joints, (joined->count + 1) * sizeof *joined->joints);
  joined->joints[joined->count++] = (struct joint){text->n, seq};
}

bool kept_judged(const struct turn *turn, struct buf *text, struct joined *joined) {
  bool any = false;
  *joined = (struct joined){0};
  for (const struct kept_text *kept = turn->reports; kept; kept = kept->next) {
    if (!kept->judged)
      continue;
    struct buf head = {0};
    buf_printf(&head, "%s# %s\n\n", any ? "\n\n---\n\n" : "", kept->name);
    kept_add(text, joined, buf_view(&head), 0);
    kept_add(text, joined, buf_view(&kept->text), kept->seq);
    buf_deinit(&head);
    any = true;
  }
  if (!any)
    return false;
  kept_add(text, joined, STR("\n\n---\n\n# The agent's last answer\n\n"), 0);
  kept_add(text, joined, buf_view(&turn->text), turn->text_seq);
  return true;
}
