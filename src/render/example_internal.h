/* example_internal.h - shared by the parts of the example maker. */
#ifndef SEGUE_RENDER_EXAMPLE_INTERNAL_H
#define SEGUE_RENDER_EXAMPLE_INTERNAL_H

#include "render/example.h"
#include "schema/outline.h"

struct maker {
  struct walk walk;
  uint8_t *active; /* identity -> how often it is being made now */
  size_t active_count, active_capacity;
  int level;
  bool strict;       /* nothing may be made inside itself: what is being made can be left out */
  unsigned attempts; /* choices of forms still allowed */
  unsigned made;     /* values so far */
  struct example_trouble *trouble;
  int trouble_level;
};

/* A new value that all of `place` accepts; NULL: none was found, or walk.status is set. `variant`:
 * how many suitable values to skip, for items that must differ. */
json_t *example_place(struct maker *m, struct place place, unsigned variant);

/* Takes `value`. Returns it if the place accepts it and no variant is left to pass over. */
json_t *example_keep(struct maker *m, struct place place, json_t *value, unsigned *variant);

/* example_scalar.c: values of one type that the whole `place` accepts. */
json_t *example_string(struct maker *m, struct place place, const struct outline *outline,
                       unsigned variant);
json_t *example_number(struct maker *m, struct place place, const struct outline *outline,
                       bool integer, unsigned variant);

/* example_members.c */
json_t *example_array(struct maker *m, struct place place, const struct outline *outline,
                      unsigned variant);
json_t *example_object(struct maker *m, struct place place, const struct outline *outline,
                       unsigned variant);

#endif
