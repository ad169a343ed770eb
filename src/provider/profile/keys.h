/* keys.h - the one table of the keys of a profile: the checks of profile/check.c and
 * schemas/provider-profile.json (by profile/schema.c) come from it. */
#ifndef SEGUE_PROVIDER_PROFILE_KEYS_H
#define SEGUE_PROVIDER_PROFILE_KEYS_H

#include "base/err.h"
#include "format/yaml.h"

enum profile_key_type {
  PROFILE_LINE, /* a text of one line, not empty */
  PROFILE_BOOL,
  PROFILE_INTEGER,    /* min to max */
  PROFILE_CHOICE,     /* one of words */
  PROFILE_ARGV,       /* list of texts, and of lists of texts: groups */
  PROFILE_NAMES,      /* list of texts of one line */
  PROFILE_VARIABLES,  /* list of names of environment variables */
  PROFILE_TEXTS,      /* map of names to texts */
  PROFILE_OBJECT,     /* a map of anything */
  PROFILE_POINTER,    /* a JSON Pointer */
  PROFILE_POINTERS,   /* a list of them */
  PROFILE_PATH,       /* a path below a folder: no / in front, no .. */
  PROFILE_VALUE,      /* a JSON Pointer, a list of them, or another text: itself */
  PROFILE_MATCHES,    /* map of JSON Pointers to the values required there */
  PROFILE_CLASSES,    /* map of words to error classes */
  PROFILE_PATTERN,    /* a regular expression (ECMA-262) */
  PROFILE_CLASS,      /* an error class */
  PROFILE_PERMISSION, /* an ARGV, or a map {argv, set} */
  PROFILE_SET,        /* a map with the keys of `set` */
  PROFILE_SET_LIST,   /* a list of such maps */
};

struct profile_key_set;

struct profile_key {
  const char *name;
  enum profile_key_type type;
  bool required; /* of sets within the document; of the whole: once `extends` is filled in */
  long min, max;
  const char *const *words; /* NULL-ended */
  const struct profile_key_set *set;
  const char *description;
};

struct profile_key_set {
  const char *what;               /* "a profile": for messages */
  const char *id;                 /* name below $defs in the schema */
  const struct profile_key *keys; /* ends with a NULL name */
};

extern const struct profile_key_set profile_keys, profile_permission_keys;
/* Every other set, for the schema; NULL-ended. */
extern const struct profile_key_set *const profile_key_sets[];

/* Checks a document against the table, except which keys its top level must have. False: errors
 * were added. */
bool profile_check(const char *file, const struct yaml_node *root, struct err_list *errors);

#endif
