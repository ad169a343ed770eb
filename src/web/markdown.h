/* markdown.h - writes the report's parts as Markdown (CommonMark with tables): the same views, for
 * places that show no HTML. Everything from outside is cleaned (sanitize.h), and every character
 * that could be markup is escaped; longer texts go into fences longer than any they contain. */
#ifndef SEGUE_WEB_MARKDOWN_H
#define SEGUE_WEB_MARKDOWN_H

#include "audit/verify.h"
#include "view/judgment.h"
#include "view/session_list.h"
#include "view/session_view.h"

/* Writes one line of text, all markup escaped. */
void markdown_text(struct buf *out, struct str text);
void markdown_folder(struct buf *out, const struct session_list *f, struct str where);
void markdown_session(struct buf *out, const struct view_session *v,
                      const struct verify_result *verification);
/* Writes one judgment. command: prints all of it, for texts that were cut. */
void markdown_told(struct buf *out, const struct view_turn *turn, const struct view_judgment *told,
                   struct str command);

#endif
