/* price_list.h - what models cost, by dated lists: the user's own copy of a public one and, behind
 * it, the shipped one, prices.txt, which says how their lines look.
 *
 *   price_lists_keep(registry, text)          once; it is freed with the registry
 *   price_lists_find(registry, ...)           for each call whose cost the backend did not tell
 *   price_list_import(bytes, name, day, out)  a public list, in the form of prices.txt
 *
 * A model is looked up among the prices of who serves it: of the provider, of the prefix of its
 * name (anthropic/claude-opus-5.5), or, where neither is known, of the first that has it. Dots and
 * dashes, a date at its end and what stands behind @, : or [ do not count. */
#ifndef SEGUE_PROVIDER_PRICE_LIST_H
#define SEGUE_PROVIDER_PRICE_LIST_H

#include "base/err.h"
#include "core/spend.h"
#include "provider/registry.h"

struct price_found {
  struct price price;
  char list[64]; /* name and date of the list */
};

/* Takes a text to look in before the shipped list; empty: there is none. */
void price_lists_keep(struct provider_registry *registry, struct str text);
/* Returns the lists, the first that counts first; the second may be empty. */
void price_lists_of(const struct provider_registry *registry, struct str lists[2]);
/* Finds what a call costs that read so many tokens. Returns false if no list knows. */
bool price_lists_find(const struct provider_registry *registry, struct str provider,
                      struct str model, int64_t input, struct price_found *found);
/* Reads the next line that has a price. `row` is the line from its maker on. Returns false at the
 * end. */
bool price_list_next(struct str *rest, struct str *maker, struct str *model, struct str *row);
/* Returns name and date of a list. */
struct str price_list_name(struct str list);
/* Turns OpenRouter's or models.dev's list, or one in the form of prices.txt, into that form.
 * Returns how many models have a price. day: "2026-11-20". */
bool price_list_import(struct str bytes, const char *day, struct buf *out, size_t *count,
                       struct err *err) MUST_CHECK;

#endif
