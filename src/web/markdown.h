/* markdown.h - writes the report's parts as Markdown (CommonMark with tables): the same views, for
 * places that show no HTML. Everything from outside is cleaned (clean.h), and every character that
 * could be markup is escaped; longer texts go into fences longer than any they contain. */
#ifndef SEGUE_WEB_MARKDOWN_H
#define SEGUE_WEB_MARKDOWN_H

#include "audit/verify.h"
#include "view/folder.h"
#include "view/session.h"
#include "view/told.h"

/* Writes one line of text, all markup escaped. */
void markdown_text(struct buf *out, struct str text);

void markdown_title(struct buf *out, struct str title);
void markdown_folder(struct buf *out, const struct view_folder *f, struct str where);
void markdown_session(struct buf *out, const struct view_session *v,
                      const struct verify_result *proof);
void markdown_told(struct buf *out, const struct view_turn *turn, const struct view_told *told,
                   struct str command);

#endif
