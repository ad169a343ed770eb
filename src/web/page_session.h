/* page_session.h - declares, inside the pages (pages.h), the single ones and what they share. */
#ifndef SEGUE_WEB_PAGE_SESSION_H
#define SEGUE_WEB_PAGE_SESSION_H

#include "web/html.h"
#include "web/pages.h"

struct html page_html(const struct page_ask *ask, struct buf *out);
/* Begins a page. watch: the address, below the root, of its changes; or NULL. */
void page_begin(struct html *h, const char *title, const char *watch);
/* Says on a page what went wrong. */
void page_trouble(struct html *h, const struct err *err);
/* Ends a form that asks for a filter. example: words that a person may write. */
void page_filter(struct html *h, const struct page_ask *ask, const char *example);
/* Writes a page that says why the requested one cannot be shown: 404. */
unsigned page_problem(const struct page_ask *ask, struct buf *out, const struct err *err);
/* Returns the session's status according to the daemon; NULL: the log says everything. */
const struct page_live *page_live_of(const struct page_ask *ask, const char *id);

/* Returns the session's track after a read: the given one, or else *own, which the caller frees. */
struct record_index *page_track(const struct page_ask *ask, struct record_index **own,
                                struct err *err);

unsigned page_session(const struct page_ask *ask, struct buf *out);
unsigned page_judgment(const struct page_ask *ask, struct buf *out);
unsigned page_integrity(const struct page_ask *ask, struct buf *out);
unsigned page_changes(const struct page_ask *ask, struct buf *out);
unsigned page_audit(const struct page_ask *ask, struct buf *out);
unsigned page_audit_data(const struct page_ask *ask, struct buf *out); /* CSV, JSON */
/* Writes the judgments behind a number, also as data. */
unsigned page_behind(const struct page_ask *ask, struct buf *out);
unsigned page_behind_data(const struct page_ask *ask, struct buf *out);
unsigned page_label(const struct page_ask *ask, struct buf *out);
unsigned page_label_case(const struct page_ask *ask, struct buf *out);
unsigned page_compare(const struct page_ask *ask, struct buf *out);
unsigned page_records(const struct page_ask *ask, struct buf *out);
unsigned page_text(const struct page_ask *ask, struct buf *out);
unsigned page_find(const struct page_ask *ask, struct buf *out);
unsigned page_workflow(const struct page_ask *ask, struct buf *out);

#endif
