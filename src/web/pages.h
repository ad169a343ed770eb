/* pages.h - the pages of the window, from logs: whole documents, each its own address.
 *
 *   status = page_write(&ask, &out)     appends the page; 200, or 404 with a page that says why
 * Reads logs, so never on a loop. Between two pages only `track` and `listed` are kept. Actions are
 * offered only if `acts` is set; a script (page.mjs) requests them. */
#ifndef SEGUE_WEB_PAGES_H
#define SEGUE_WEB_PAGES_H

#include "base/buf.h"
#include "base/limits.h"
#include "store/store.h"
#include "view/track.h"

enum page_kind {
  PAGE_SESSIONS,
  PAGE_INBOX,
  PAGE_SESSION,
  PAGE_JUDGMENT,
  PAGE_INTEGRITY,
  PAGE_CHANGES,
  PAGE_RECORDS,
  PAGE_TEXT, /* one text, or a record's line */
  PAGE_FIND,
  PAGE_WORKFLOW,
  PAGE_AUDIT,
  PAGE_AUDIT_CSV, /* the same as data */
  PAGE_AUDIT_JSON,
  PAGE_BEHIND, /* the judgments behind a number of the audit */
  PAGE_BEHIND_CSV,
  PAGE_BEHIND_JSON,
  PAGE_PROVIDERS, /* with a daemon only */
  PAGE_COMPARE,
  PAGE_ENTER /* who has no cookie: posts the code */
};

struct page_live { /* how a session stands, which its log does not say: queued, paused */
  char id[STORE_ID_BYTES];
  char status[24];
};

struct page_said { /* the end of what a running call has said; texts are malloc'd */
  long turn, call;
  char *text, *thinking;
  uint64_t text_end, thinking_end; /* bytes since it began */
};

struct page_ask {
  enum page_kind kind;
  struct store store;
  struct track *track;     /* of the session, for this page alone; NULL: its log is read anew */
  struct listed *listed;   /* the same, of a list of sessions (view/folder.h) */
  char root[48];           /* of all addresses: "/w/RANDOM/" */
  char id[STORE_ID_BYTES]; /* of the session */
  char turn[24];           /* its number, as it was given */
  char a[STORE_ID_BYTES], b[STORE_ID_BYTES]; /* the two compared */
  char
      q[1024]; /* what is filtered or looked for, as a person wrote it; longer than either may be */
  char before[40], from[24]; /* where a page of a list, or a piece of a text, begins */
  char ref[256];             /* of PAGE_TEXT: where the text stands, such as 33#/text */
  char sort[24];             /* of sessions: started, took, tokens, cost, turns; "-": ascending */
  char of[16], what[16];     /* of PAGE_BEHIND: the number (audit/behind.h), and its keys */
  char keys[3][LIMIT_AUDIT_NAME_BYTES + 1];
  bool only_failed;       /* of a session: its turns that failed, and no others */
  bool all;               /* texts are not cut */
  bool acts;              /* the browser may change something, and there is a daemon to do it */
  int64_t now_ms;         /* real time */
  struct page_live *live; /* of the daemon's sessions; or NULL */
  size_t live_count;
  json_t *about;          /* of PAGE_PROVIDERS: what GET /v1/providers answers */
  json_t *day;            /* of PAGE_SESSION: how much of the day's limits is used; or NULL */
  bool daemon;            /* there is one: its pages are linked */
  struct page_said *said; /* by the running calls of this session; or NULL */
  size_t said_count;
  struct str diff;      /* of PAGE_CHANGES: what git tells */
  size_t diff_bytes;    /* of all of it */
  size_t diff_from;     /* so many of them are before it */
  bool diff_more_files; /* git was not asked about every file */
  const char *diff_why; /* git could not be asked; or NULL */
  uint64_t sound;       /* records of its log */
  const char *damage;   /* what is wrong with the next record; or NULL */
};

unsigned page_write(const struct page_ask *ask, struct buf *out);

#endif
