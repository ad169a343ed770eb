/* now.h - the running calls of a session: who is asked, what it used, when it was last heard from.
 *
 *   view_now_read(&now, &track, &err); view_now_deinit(&now)
 * Read from the last LIMIT_NOW_RECORD_COUNT records of each open turn. Texts are raw and live in
 * the arena. What a call says while it runs is in no record (daemon/tails.h). */
#ifndef SEGUE_VIEW_NOW_H
#define SEGUE_VIEW_NOW_H

#include "view/track.h"

enum { VIEW_NOW_CALLS = 64, VIEW_NOW_TOOLS = 20 };

struct view_tool {
  struct str name, argument, state; /* state: started, ended ... as the provider's driver says */
  struct str id;
  size_t argument_more_bytes; /* of the argument, which are not here */
  uint64_t argument_seq;      /* the record that has all of it, at /data/argument */
  long exit;
  bool has_exit, failed;
};

struct view_call {
  long turn, call, attempt;
  struct str movement, provider, model, stage; /* stage: that it judges in; or empty */
  int64_t started_ms, heard_ms;                /* real time */
  int64_t tokens;                              /* so far, where it tells */
  struct view_tool tools[VIEW_NOW_TOOLS];      /* the last ones */
  size_t tool_count, tools_before;
};

struct view_now {
  struct arena arena;
  struct view_call *calls;
  size_t count;
};

bool view_now_read(struct view_now *now, const struct track *track, struct err *err) MUST_CHECK;
void view_now_deinit(struct view_now *now);

#endif
