/* prices.h - the user's own list of prices: prices.txt beside config.yaml, a copy of a public one.
 *
 * Lists are looked in as they were when the backends were made (provider/price_list.h). */
#ifndef SEGUE_HOST_PRICES_H
#define SEGUE_HOST_PRICES_H

#include "host/paths.h"
#include "provider/price_list.h"

enum { PRICES_PATH_BYTES = PATHS_BYTES + 16 };

/* Gives the file's path; false: there is no home. */
bool prices_path(char out[PRICES_PATH_BYTES]);
/* Reads it into the registry. A missing or unreadable one counts for nothing, the latter said. */
void prices_keep(struct provider_registry *registry);
/* Replaces it by the list at a URL or in a file (- is standard input); list: its name and date. */
bool prices_update(const char *source, size_t *count, char list[64], struct err *err) MUST_CHECK;

/* Returns what a call has used with its cost by a list, if the backend told none and the user's own
 * prices (of the session's configuration) lack the model. A new reference; NULL for NULL. */
json_t *prices_of_usage(const struct provider_registry *registry, const json_t *config,
                        struct str provider, struct str model, const json_t *usage);

/* Returns the price of a million tokens that are written, by the user's own prices or a list; below
 * 0: not known. */
double prices_of_output(const struct provider_registry *registry, const json_t *config,
                        struct str provider, struct str model);

#endif
