/* internal.h - shared by the files of this folder: the pieces of a prompt, and rendering to
 * them. */
#ifndef SEGUE_CORE_PROMPT_INTERNAL_H
#define SEGUE_CORE_PROMPT_INTERNAL_H

#include "core/prompt.h"
#include "format/template.h"

/* parts.c */

/* Says how pieces become parts. Pieces that are the same each time this movement is asked join into
 * one part, so that the next prompt needs one reference for them; so do short pieces in between. */
enum piece_kind {
  PIECE_CHANGES, /* from turn to turn */
  PIECE_STABLE,
  PIECE_OWN /* logged on its own, such as a persona in session_start */
};
/* Appends a piece. seq, key: the record and member that hold it; 0: not known. */
void prompt_put(struct prompt *out, struct str piece, uint64_t seq, const char *key,
                enum piece_kind kind);

/* render.c */

/* A nested variable is rendered only where it is used. */
struct prompt_nested {
  struct str name;
  void (*render)(const struct prompt_nested *nested, struct prompt *out);
  const struct prompt_view *view;
  const struct chain_spec *spec; /* for a judge's question */
  enum judge_stage stage;
};

struct prompt_sink {
  struct prompt *out;
  const struct prompt_nested *nested; /* or NULL */
  const struct prompt_view *view;
};

/* Makes an empty prompt with room for templates, names and a text of n bytes. */
void prompt_init(struct prompt *out, size_t n);
/* Renders the template of that name: the project's or the user's, else the shipped one. */
void prompt_render(const char *name, const struct template_var *vars, struct prompt_sink *sink);
void prompt_on_piece(void *sink, struct str piece, const struct template_var *var);
/* Returns the text of that template. */
struct str prompt_template_text(const struct prompt_view *view, const char *name);
/* Returns the report or answer that a variable names: {report:FILE}, {response:MOVEMENT}; or
 * NULL. */
const struct kept_text *prompt_kept(const struct prompt_view *v, struct str name);
struct str prompt_digits(char buffer[STR_NUMBER_BYTES], long value);

/* prompt.c */

struct str prompt_yes_if(bool is); /* "yes" or nothing: a condition of a template */
void prompt_render_execute(const struct prompt_nested *nested, struct prompt *out);

/* A template that shows a schema has these variables: `request` is the whole text; `schema` and
 * `root` are for users' own templates. */
enum { SCHEMA_VARS = 3 };
struct schema_told {
  struct buf request, json;
};
void prompt_tell_schema(const struct prompt_view *v, const struct schema *schema,
                        const json_t *document, struct schema_told *told,
                        struct template_var vars[SCHEMA_VARS]);
void schema_told_deinit(struct schema_told *told);

/* question.c */

/* Appends "1. approved" on each line, or "[REVIEW:1] approved". */
void prompt_criteria(struct buf *b, const struct chain_spec *spec, struct str tag_name, bool tags);

#endif
