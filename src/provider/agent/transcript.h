/* transcript.h - reads a recorded run of a client from a file.
 *
 * Line 1 is `# {JSON}`: argv, exit (negative: killed by that signal), timed_out. Then either
 *   --- stdout ---  and  --- stderr ---  with the bytes of each, or
 *   lines `MS MARK TEXT` of a run that was driven: > sent, < received, ! stderr, sse a server
 *   event, log and # remarks of the recorder. Line 1 of such a file may be any comment.
 * Everything is borrowed from the file's bytes, which the transcript owns. */
#ifndef SEGUE_PROVIDER_AGENT_TRANSCRIPT_H
#define SEGUE_PROVIDER_AGENT_TRANSCRIPT_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

enum transcript_mark {
  TRANSCRIPT_SENT,
  TRANSCRIPT_RECEIVED,
  TRANSCRIPT_STDERR,
  TRANSCRIPT_SSE,
  TRANSCRIPT_NOTE,
};

struct transcript_line {
  int64_t ms; /* since the start */
  enum transcript_mark mark;
  struct str text; /* may hold newlines: an unmarked line belongs to the one before */
};

struct transcript {
  struct buf bytes;
  json_t *header; /* object in line 1; NULL: there is none */
  bool driven;    /* there are lines; else out and err */
  bool timed_out; /* the recorder's own limit ended it */
  bool has_end;   /* exit_code or signal is known */
  int exit_code;  /* -1: killed by `signal` */
  int signal;     /* 0: none */
  struct str out, err;
  struct transcript_line *lines;
  size_t line_count;
};

/* Loads at most LIMIT_TRANSCRIPT_BYTES; every error has file and line. */
bool transcript_load(struct transcript *t, const char *path, struct err *err) MUST_CHECK;
void transcript_deinit(struct transcript *t); /* a zeroed one is fine */

/* Returns the word after `flag` in the recorded argv, or NULL. */
const char *transcript_flag(const struct transcript *t, const char *flag);

#endif
