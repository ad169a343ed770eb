/* template.h - text with {names} and {?name}...{/name} sections, rendered to pieces.
 *
 * Only the names in `vars` are variables; every other brace stays as it is. A section is kept when
 * its variable is not empty ({!name} when it is empty). A variable's value is output as it is and
 * never read as a template. Sections nest; a closer ends what was opened inside it too; a section
 * that is not closed, or closed without being open, is text. */
#ifndef SEGUE_FORMAT_TEMPLATE_H
#define SEGUE_FORMAT_TEMPLATE_H

#include "base/str.h"

#include <stdbool.h>

struct template_var {
  struct str name, value;
};

/* Takes each piece in order: a slice of the template (var NULL) or a variable's value. */
typedef void (*template_piece_fn)(void *ctx, struct str piece, const struct template_var *var);

/* vars ends with an empty name. */
void template_render(struct str text, const struct template_var *vars, template_piece_fn fn,
                     void *ctx);

/* The same in two steps, for a text that is rendered repeatedly: template_parse uses only the names
 * in `vars` and borrows the text; template_put takes values under the same names in the same order.
 * template_free accepts NULL. */
struct template;
struct template *template_parse(struct str text, const struct template_var *vars);
void template_put(const struct template *t, const struct template_var *vars, template_piece_fn fn,
                  void *ctx);
void template_free(struct template *t);

/* Visits the names in the text that begin with `prefix`, for variables that are made on demand:
 * those of {name}, {?name}, {!name} and {/name}, each as often as it occurs. */
void template_names(struct str text, const char *prefix, void (*fn)(void *ctx, struct str name),
                    void *ctx);

/* Returns true if {name} occurs in the text as a variable. */
bool template_uses(struct str text, const char *name);

#endif
