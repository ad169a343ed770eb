/* part.h - shared by the parts of parse.h: parse.c reads single values, list.c lists of texts,
 * schema.c schemas and invariants, map.c maps of keys and lists of such maps. */
#ifndef SEGUE_WORKFLOW_PARSE_PART_H
#define SEGUE_WORKFLOW_PARSE_PART_H

#include "base/buf.h"
#include "base/log.h"
#include "core/keys.h"
#include "workflow/parse.h"

/* Reports an error at a node's place. */
void parse_report(struct parse *p, const struct yaml_node *node, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
#define REPORT(p, node, ...) parse_report((p), (node), __VA_ARGS__)
/* Returns the file that a node is in. */
const char *parse_file_of(const struct parse *p, const struct yaml_node *node);

/* Notes, once a key, a place of the file that loads and does not mean what it says. */
void parse_note_once(struct parse *p, const struct key *k, const struct yaml_node *node,
                     const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Returns a piece of the file's text for a message, in the arena. */
const char *parse_shown(struct parse *p, struct str s);
/* Returns the words that a key takes, likewise. */
const char *parse_words_shown(struct parse *p, const struct key *k);

/* Returns a text of the file as JSON. */
json_t *parse_text_json(struct str s);
/* Returns true if the node is a text, else reports how to make it one. */
bool parse_want_text(struct parse *p, const char *what, const struct yaml_node *node);
/* Returns the facets of the node's own file. */
struct facets parse_facets_of(const struct parse *p, const struct yaml_node *node);

/* Returns the value of a key as a new reference; NULL if it is wrong, which was reported. */
json_t *parse_value(struct parse *p, const struct key *k, const struct yaml_node *node);
/* These do the same for keys of one type. */
json_t *parse_text(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_argv(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_choices(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_texts(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_variables(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_names(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_panel(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_run(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_stages(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_schema(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_invariants(struct parse *p, const struct key *k, const struct yaml_node *node);

/* Puts the first name of a list where a single name would be, and the rest into `fallback`. Takes
 * the value. */
void parse_put_providers(json_t *object, const char *key, json_t *value);
/* Reads a section of facets and keeps it for the look-ups in `facets`. */
void parse_section(struct parse *p, struct facets *facets, const struct key *k,
                   const struct yaml_node *node);
/* Reads the workflow's own keys in a called file: its movements are read where it is called. */
void parse_called(struct parse *p, const struct yaml_node *root);
json_t *parse_set(struct parse *p, const struct key_set *set, const struct yaml_node *node);
json_t *parse_reports(struct parse *p, const struct key *k, const struct yaml_node *node);
json_t *parse_set_list(struct parse *p, const struct key *k, const struct yaml_node *node);

/* Ignores a value of NULL: the mistake was already reported. */
static inline void parse_put(json_t *object, const char *name, json_t *value) {
  if (value != NULL && json_object_set_new(object, name, value) != 0)
    BUG("out of memory");
}

static inline void parse_append(json_t *list, json_t *value) {
  if (value != NULL && json_array_append_new(list, value) != 0)
    BUG("out of memory");
}

#endif
