/* pages.h - writes the pages of the window from logs: whole documents, each with its own address.
 *
 *   status = page_write(&ask, &out)     appends the page; 200, or 404 with a page that says why
 * It reads logs, so never call it on a loop. Between two pages only `track` is kept.
 * Actions are offered only if `acts` is set; a script (page.mjs) requests them. */
#ifndef SEGUE_WEB_PAGES_H
#define SEGUE_WEB_PAGES_H

#include "base/buf.h"
#include "base/limits.h"
#include "store/store.h"
#include "view/record_index.h"

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
  PAGE_WORKFLOWS, /* those that ran, with their last runs, and forms to start them */
  PAGE_AUDIT,
  PAGE_AUDIT_CSV, /* the same as data */
  PAGE_AUDIT_JSON,
  PAGE_BEHIND, /* the judgments behind a number of the audit */
  PAGE_BEHIND_CSV,
  PAGE_BEHIND_JSON,
  PAGE_PROVIDERS, /* only with a daemon */
  PAGE_COMPARE,
  PAGE_ENTER /* for a browser without a cookie: posts the code */
};

struct page_live { /* a state that the log does not say: queued, paused */
  char id[STORE_ID_BYTES], status[24];
};

struct page_said { /* the end of a running call's output; texts are malloc'd */
  long turn, call;
  char *text, *thinking;
  uint64_t text_end, thinking_end; /* bytes since the call began */
};

struct page_ask {
  enum page_kind kind;
  struct store store;
  struct record_index *track; /* the session's, lent for this page; NULL: its log is read anew */
  char root[48];              /* start of all addresses: "/w/RANDOM/" */
  char id[STORE_ID_BYTES];    /* the session's id */
  char turn[24];              /* its number, as it was given */
  char a[STORE_ID_BYTES], b[STORE_ID_BYTES]; /* the two sessions compared */
  char q[1024]; /* the filter or search text as a person wrote it; longer than either may be */
  char before[40], from[24]; /* where a page of a list, or a piece of a text, begins */
  char ref[256];             /* for PAGE_TEXT: where the text is, such as 33#/text */
  char sort[24];             /* sessions by started, took, tokens, cost, turns; "-": ascending */
  char of[16], what[16];     /* for PAGE_BEHIND: the number (page_audit.c), and its keys */
  char keys[3][LIMIT_AUDIT_NAME_BYTES + 1];
  bool only_failed;       /* only the session's failed turns */
  bool all;               /* texts are not cut */
  bool acts;              /* the browser may change something, and a daemon can do it */
  int64_t now_ms;         /* real time */
  struct page_live *live; /* states that the daemon knows; or NULL */
  size_t live_count;
  json_t *about;          /* for PAGE_PROVIDERS: the answer of GET /v1/providers */
  json_t *day;            /* for PAGE_SESSION: use of the day's limits; or NULL */
  bool daemon;            /* a daemon runs: its pages are linked */
  struct page_said *said; /* output of this session's running calls; or NULL */
  size_t said_count;
  struct str diff;      /* for PAGE_CHANGES: git's output */
  size_t diff_bytes;    /* length of all of it */
  size_t diff_from;     /* bytes of it before `diff` */
  bool diff_more_files; /* git was not asked about every file */
  const char *diff_why; /* why git could not be asked; or NULL */
  uint64_t sound;       /* sound records of its log */
  const char *damage;   /* fault of the next record; or NULL */
};

unsigned page_write(const struct page_ask *ask, struct buf *out);

#endif
