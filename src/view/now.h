/* now.h - tells of a session's running calls: who is asked, what the call used, when it was last
 * heard from.
 *
 *   view_now_read(&now, &track, &err); view_now_deinit(&now)
 * It reads the last LIMIT_NOW_RECORD_COUNT records of each open turn. Texts are raw and live in the
 * arena. What a call says while it runs is in no record (daemon/tails.h). */
#ifndef SEGUE_VIEW_NOW_H
#define SEGUE_VIEW_NOW_H

#include "view/track.h"

enum { VIEW_NOW_CALLS = 64, VIEW_NOW_TOOLS = 20 };

struct view_tool {
  /* state: started, ended ..., in the words of the provider's driver */
  struct str name, argument, state;
  struct str id;
  size_t argument_more_bytes; /* bytes of the argument that are left out here */
  uint64_t argument_seq;      /* the record that has all of it, at /data/argument */
  long exit;
  bool has_exit, failed;
};

struct view_call {
  long turn, call, attempt;
  struct str movement, provider, model, stage; /* stage: the judge call's; or empty */
  int64_t started_ms, heard_ms;                /* real time */
  int64_t tokens;                              /* so far, if it reports them */
  struct view_tool tools[VIEW_NOW_TOOLS];      /* the last ones used */
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
