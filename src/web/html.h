/* html.h - the only way to write markup. Tags are literals, and the macros take nothing else; texts
 * and attributes may come from anywhere and are always cleaned (sanitize.h) and escaped.
 *
 *   struct html h = {.out = &buf};
 *   HTML_FMT(&h, "<td title=\"%s\">%d</td>", text, number);
 *   HTML(&h, "<a"); HTML_LINK(&h, "s/", id, "/"); HTML(&h, ">"); html_text(&h, text);
 *
 * A text between `<` and `>`, or an attribute outside, is a bug in the caller and aborts. No
 * attribute can do anything: href only leads to a place named by the caller, with one part of a
 * path from outside, percent-encoded; style, src and on... cannot be written. */
#ifndef SEGUE_WEB_HTML_H
#define SEGUE_WEB_HTML_H

#include "base/buf.h"

#include <stdint.h>

struct html {
  struct buf *out;
  const char *root;    /* start of the window's addresses: "/w/RANDOM/"; NULL in a file */
  const char *session; /* id of the session that the page is about; or NULL */
  bool daemon;         /* a daemon runs, so its pages are linked */
  int64_t now_ms;      /* real time, for ages; 0 in a file, where times are in full */
  bool in_tag;
};

/* clang-format off */
#define HTML(h, literal) html_literal((h), "" literal "", sizeof(literal) - 1)
/* Markup with values: "<td id=\"r-%s\">%u</td>". Each is cleaned and escaped; in a tag it must
 * stand in an attribute that is written with quotes. Knows %s, %.*s, c, d and u with l, ll or z, f
 * and g; only d and u for an href. An empty <bdi>%s</bdi> is left out of a file. */
#define HTML_FMT(h, literal, ...) html_format((h), "" literal "", __VA_ARGS__)
/* name="text" */
#define HTML_ATTR(h, name, text) html_attr((h), "" name "", (text))
/* href="BEFORE" PART "BEHIND": BEFORE begins with #, begins with / (which becomes the root), or
 * names a place beside this page. */
#define HTML_LINK(h, before, part, behind) html_link((h), "" before "", (part), "" behind "")
/* src="ROOT NAME" */
#define HTML_SRC(h, name) html_src((h), "" name "")
/* clang-format on */

void html_format(struct html *h, const char *fmt, ...) PRINTF_LIKE(2, 3);
void html_literal(struct html *h, const char *markup, size_t n);
void html_attr(struct html *h, const char *name, struct str text);
void html_src(struct html *h, const char *name);
void html_link(struct html *h, const char *before, struct str part, const char *behind);

/* Writes the href of this page with other arguments: "?NAME=SIGN VALUE&q=QUERY"; without an empty
 * q. */
void html_link_query(struct html *h, const char *name, const char *sign, const char *value,
                     struct str q);

/* Continues the address that HTML_LINK began: "&NAME=VALUE"; nothing if the value is empty. */
#define HTML_LINK_MORE(h, name, value) html_link_more((h), "" name "", (value))
void html_link_more(struct html *h, const char *name, struct str value);

/* Writes the href of a session's turn, in the window. */
void html_link2(struct html *h, struct str id, struct str turn);

/* Writes the href of the page that shows a session's text, such as 33#/text, from a byte on;
 * session empty: the session of this page. */
void html_link_text(struct html *h, struct str session, struct str ref, size_t from);

void html_text(struct html *h, struct str text);
void html_puts(struct html *h, const char *text);
/* Writes somebody's text with its own direction: <bdi>text</bdi>. */
void html_said(struct html *h, struct str text);
/* Writes the raw bytes of a compiled-in file (base/resource.h): style and scripts. */
void html_resource(struct html *h, const char *name);

#endif
