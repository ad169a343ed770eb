/* running.h - tells of a session's running calls: who is asked, what the call used, when it was
 * last heard from.
 *
 *   view_running_read(&now, &track, &err); view_running_deinit(&now)
 * It reads the last LIMIT_NOW_RECORD_COUNT records of each open turn. Texts are raw and live in the
 * arena. What a call says while it runs is in no record (daemon/control.h). */
#ifndef SEGUE_VIEW_RUNNING_H
#define SEGUE_VIEW_RUNNING_H

#include "view/record_index.h"

enum { VIEW_RUNNING_CALLS = 64, VIEW_RUNNING_TOOLS = 20 };

struct view_tool {
  /* state: started, ended ..., in the words of the provider's driver */
  struct str name, argument, state, id;
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
  struct view_tool tools[VIEW_RUNNING_TOOLS];  /* the last ones used */
  size_t tool_count, tools_before;
};

struct view_running {
  struct arena arena;
  struct view_call *calls;
  size_t count;
};

bool view_running_read(struct view_running *now, const struct record_index *track,
                       struct err *err) MUST_CHECK;
void view_running_deinit(struct view_running *now);

#endif
