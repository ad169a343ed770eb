/* Finds the running calls, and what they do. */
#include "view/running.h"

#include "base/limits.h"
#include "format/json_object.h"
#include "view/number_format.h"

#include <assert.h>
#include <string.h>

static struct str view_running_word(struct view_running *now, const json_t *object,
                                    const char *key) {
  return view_cut(&now->arena, json_view_at(object, key), LIMIT_VIEW_LINE_BYTES);
}

static struct view_call *view_running_call(struct view_running *now, const json_t *record) {
  long number = (long)json_int_at(record, "call");
  for (size_t i = 0; i < now->count; i++)
    if (now->calls[i].call == number)
      return &now->calls[i];
  return NULL;
}

static void view_running_on_start(struct view_running *now, const struct view_turn *turn,
                                  const json_t *record) {
  struct view_call *c = view_running_call(now, record);
  if (c == NULL && now->count == VIEW_RUNNING_CALLS)
    return;
  if (c == NULL)
    c = &now->calls[now->count++];
  *c = (struct view_call){.turn = turn->turn,
                          .call = (long)json_int_at(record, "call"),
                          .attempt = (long)json_int_at(record, "attempt"),
                          .movement = turn->movement,
                          .provider = view_running_word(now, record, "provider"),
                          .model = view_running_word(now, record, "model"),
                          .stage = view_running_word(now, record, "stage"),
                          .started_ms = view_time(record)};
}

/* Finds the place of a tool: its end replaces its start, by its id. */
static struct view_tool *tool_place(struct view_call *c, struct str id) {
  for (size_t i = c->tool_count; i-- > 0;)
    if (id.n > 0 && str_eq(c->tools[i].id, id))
      return &c->tools[i];
  if (c->tool_count == VIEW_RUNNING_TOOLS) {
    memmove(c->tools, c->tools + 1, (VIEW_RUNNING_TOOLS - 1) * sizeof *c->tools);
    c->tool_count--;
    c->tools_before++;
  }
  c->tools[c->tool_count] = (struct view_tool){0};
  return &c->tools[c->tool_count++];
}

static void view_running_on_tool(struct view_running *now, struct view_call *c,
                                 const json_t *record) {
  const json_t *data = json_at(record, "data");
  struct str id = view_running_word(now, data, "id"), name = view_running_word(now, data, "name");
  struct str argument = json_view_at(data, "argument");
  struct view_tool *tool = tool_place(c, id);
  tool->id = id;
  tool->name = name.n > 0 ? name : tool->name;
  if (argument.n > 0) {
    size_t kept = view_fitting(argument, LIMIT_VIEW_LINE_BYTES);
    tool->argument = arena_str(&now->arena, (struct str){argument.p, kept});
    tool->argument_more_bytes = argument.n - kept;
    tool->argument_seq = (uint64_t)json_int_at(record, "seq");
  }
  tool->state = view_running_word(now, data, "state");
  tool->failed = json_is_true(json_at(data, "failed"));
  tool->has_exit = json_is_integer(json_at(data, "exit"));
  tool->exit = (long)json_int_at(data, "exit");
}

static void view_running_feed(struct view_running *now, const struct view_turn *turn,
                              const json_t *record) {
  struct str type = json_view_at(record, "type");
  struct view_call *c = view_running_call(now, record);
  if (str_eq_c(type, "call_start")) {
    view_running_on_start(now, turn, record);
  } else if (str_eq_c(type, "call_event") && c != NULL) {
    const json_t *data = json_at(record, "data");
    struct str event = json_view_at(record, "event");
    c->heard_ms = view_time(record);
    if (str_eq_c(event, "tool"))
      view_running_on_tool(now, c, record);
    else if (str_eq_c(event, "usage"))
      c->tokens = json_int_at(data, "input") + json_int_at(data, "output");
  } else if (str_eq_c(type, "call_end") && c != NULL) {
    *c = now->calls[--now->count];
  }
}

static bool view_running_of_turn(struct view_running *now, const struct record_index *track,
                                 const struct view_turn *turn, struct err *err) {
  const struct verified_reader *book = &track->book;
  size_t first = book->place_count, left = LIMIT_NOW_RECORD_COUNT;
  while (first > 0 && left > 0) {
    const struct verified_reader_place *place = &book->places[--first];
    left -= place->turn == turn->turn;
    if (place->turn == turn->turn && place->kind == VERIFIED_TURN_START)
      break;
  }
  for (size_t i = first; i < book->place_count; i++) {
    if (book->places[i].turn != turn->turn)
      continue;
    json_auto_t *record = verified_get(book, book->places[i].seq, err);
    if (record == NULL)
      return false;
    view_running_feed(now, turn, record);
  }
  return true;
}

bool view_running_read(struct view_running *now, const struct record_index *track,
                       struct err *err) {
  assert(now != NULL && track != NULL);
  const struct view_session *v = &track->view;
  bool ok = true;
  *now = (struct view_running){0};
  now->calls = arena_array(&now->arena, VIEW_RUNNING_CALLS, sizeof *now->calls);
  for (size_t i = v->turn_count; ok && i-- > 0;)
    if (!v->turns[i].over)
      ok = view_running_of_turn(now, track, &v->turns[i], err);
  if (!ok)
    view_running_deinit(now);
  return ok;
}

void view_running_deinit(struct view_running *now) {
  arena_deinit(&now->arena);
  *now = (struct view_running){0};
}
