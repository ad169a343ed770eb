/* Says which report comes next, makes what its file holds, and keeps reports and answers by
 * name. */
#include "core/report_file.h"

#include "base/list.h"
#include "base/log.h"
#include "core/record.h"
#include "format/json_object.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_CALLS = 2 }; /* for one report: in the conversation, then in a new one */

void report_next(const struct movement *m, const struct turn *turn, struct report_step *step) {
  const struct call *last = NULL;
  size_t calls = 0, done = 0;
  for (const struct kept_text *kept = turn->reports; kept; kept = kept->next)
    done++;
  assert(done < m->contract_count);
  *step = (struct report_step){
      .action = REPORT_KEEP, .number = done + 1, .contract = &m->contracts[done]};
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

/* --- a report's file --- */

void contract_content(struct str answer, struct buf *out) {
  buf_str(out, str_trim(answer));
  buf_putc(out, '\n');
}

void contract_sha256(struct str answer, char out[SHA256_HEX]) {
  struct str text = str_trim(answer);
  sha256_hex(text.p, text.n, "\n", 1, out);
}

/* --- texts by name --- */

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

struct str report_answer(const struct core *core, const struct turn *turn,
                         const struct call *call) {
  struct str text = buf_view(call ? &call->text : &turn->text);
  if (call == NULL)
    (void)tag_cut_marked(&text, core_movement(core, turn)->own_name, str_from(turn->mark));
  return text;
}

void forget_signed_line(const struct core *core, struct turn *turn) {
  struct str said = report_answer(core, turn, NULL);
  if (said.n == turn->text.n || turn->text.n > LIMIT_INLINE_TEXT_BYTES) /* the log refers to it */
    return;
  turn->text.p[turn->text.n = said.n] = '\0';
  turn->text_seq = 0; /* no record holds exactly this */
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
    buf_auto_t head = buf_of("%s# %s\n\n", any ? "\n\n---\n\n" : "", kept->name);
    kept_add(text, joined, buf_view(&head), 0);
    kept_add(text, joined, buf_view(&kept->text), kept->seq);
    any = true;
  }
  if (!any)
    return false;
  kept_add(text, joined, STR("\n\n---\n\n# The agent's last answer\n\n"), 0);
  kept_add(text, joined, buf_view(&turn->text), turn->text_seq);
  return true;
}
