/* Notices what goes in circles. */
#include "core/guard.h"

#include "base/log.h"
#include "core/checks.h"
#include "format/json_object.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void guard_sign(struct str head, struct str text, char out[GUARD_SIGN]) {
  char hex[SHA256_HEX];
  sha256_hex(head.p, head.n, text.p, text.n, hex);
  memcpy(out, hex, GUARD_SIGN - 1);
  out[GUARD_SIGN - 1] = '\0';
}

/* --- counting --- */

long guard_count_tool(char sign[GUARD_SIGN], long count, const json_t *data) {
  const json_t *argument = json_at(data, "argument");
  buf_auto_t head = {0};
  char now[GUARD_SIGN];
  if (!json_is_string(argument))
    return count;
  buf_str(&head, json_view(json_at(data, "name")));
  buf_putc(&head, '\n');
  guard_sign(buf_view(&head), json_view(argument), now);
  bool same = strcmp(now, sign) == 0;
  memcpy(sign, now, sizeof now);
  return same ? count + 1 : 1;
}

void guards_see_tool(struct call *call, const json_t *data) {
  const json_t *argument = json_at(data, "argument");
  if (!json_is_string(argument))
    return;
  call->tool_count = guard_count_tool(call->tool_sign, call->tool_count, data);
  buf_clear(&call->tool);
  buf_printf(&call->tool, STR_FMT " %.200s", STR_ARG(json_view(json_at(data, "name"))),
             json_string_value(argument));
}

void guards_see_turn(struct core *core, size_t movement) {
  bool again = core->streak.count > 0 && core->streak.movement == movement;
  core->streak.count = again ? core->streak.count + 1 : 1;
  core->streak.movement = movement;
}

void guard_sign_failure(int exit, struct str text, char sign[GUARD_SIGN]) {
  char status[16];
  buf_auto_t same = {0};
  print_into(status, sizeof status, "%d\n", exit);
  /* Digits change from run to run: each sequence of them becomes one character. */
  for (size_t i = 0; i < text.n; i++) {
    bool digit = isdigit((unsigned char)text.p[i]) != 0;
    if (!digit)
      buf_putc(&same, text.p[i]);
    else if (i == 0 || !isdigit((unsigned char)text.p[i - 1]))
      buf_putc(&same, '#');
  }
  guard_sign(str_from(status), buf_view(&same), sign);
}

void guards_see_end(struct core *core, const struct turn *turn) {
  const struct movement *m = core_movement(core, turn);
  char sign[GUARD_SIGN];
  if (m->guards.times[GUARD_FAILURE] == 0)
    return;
  if (core->failures == NULL)
    core->failures = xcalloc(core->workflow->movement_count, sizeof *core->failures);
  struct guard_failure *f = &core->failures[turn->movement];
  const json_t *before = json_object_getn(core->gates, m->name.p, m->name.n);
  core->failed = turn->movement;
  if (checks_exit(turn) == 0) {
    f->count = 0;
    return;
  }
  guard_sign_failure(checks_exit(turn), buf_view(&turn->text), sign);
  bool same = f->count > 0 && strcmp(sign, f->sign) == 0 && json_is_false(json_at(before, "stale"));
  f->count = same ? f->count + 1 : 1;
  memcpy(f->sign, sign, sizeof sign);
}

/* --- questions --- */

void guards_forget(struct core *core) {
  core->streak.count = 0;
  for (size_t i = 0; core->failures != NULL && i < core->workflow->movement_count; i++)
    core->failures[i].count = 0;
}

enum guard_action guard_of_call(const struct core *core, const struct turn *turn,
                                const struct call *call, struct buf *why) {
  const struct guards *g = &core->workflow->movements[turn->movement].guards;
  long times = g->times[GUARD_TOOL];
  if (times == 0 || call->tool_count < times || g->on[GUARD_TOOL] == GUARD_IGNORE)
    return GUARD_IGNORE;
  if (g->on[GUARD_TOOL] == GUARD_WARN && call->tool_count > times)
    return GUARD_IGNORE; /* it has been reported */
  buf_printf(why, "the same tool call %ld times in a row: ", call->tool_count);
  buf_safe(why, buf_view(&call->tool), false);
  return g->on[GUARD_TOOL];
}

enum guard_action guard_of_next(const struct core *core, struct buf *why) {
  const struct movement *next = &core->workflow->movements[core->next];
  const struct movement *last = &core->workflow->movements[core->failed];
  long failures = core->failures != NULL ? core->failures[core->failed].count : 0;
  bool again = core->streak.movement == (size_t)core->next;
  long most = last->guards.times[GUARD_FAILURE], row = next->guards.times[GUARD_MOVEMENT];
  enum guard_action on = last->guards.on[GUARD_FAILURE];
  bool told = on == GUARD_WARN && failures > most;
  if (most > 0 && failures >= most && core->streak.movement == core->failed && on != GUARD_IGNORE &&
      !told) {
    buf_printf(why,
               "\"" STR_FMT "\" ended %ld times with exit %d and the same output, and no file was "
               "changed meanwhile",
               STR_ARG(last->name), failures, core->check.exit);
    return on;
  }
  on = next->guards.on[GUARD_MOVEMENT];
  told = on == GUARD_WARN && core->streak.count > row;
  if (row == 0 || !again || core->streak.count < row || on == GUARD_IGNORE || told)
    return GUARD_IGNORE;
  buf_printf(why, "\"" STR_FMT "\" was entered %ld times in a row", STR_ARG(next->name),
             core->streak.count);
  return on;
}
