/* verification.h - checks a session's log against its own chain and its store's ledger.
 *
 *   p = verification_new(&err); verification_read(p, &ref, &result, &err) any number of times;
 *       verification_free(p)
 * The ledger of a store is read once. See verify.h for what is found and what is not. */
#ifndef SEGUE_VIEW_VERIFICATION_H
#define SEGUE_VIEW_VERIFICATION_H

#include "audit/verify.h"
#include "store/store.h"

struct verification;
struct verification *verification_new(struct err *err);
bool verification_read(struct verification *p, const struct store_ref *ref,
                       struct verify_result *result, struct err *err) MUST_CHECK;
void verification_free(struct verification *p); /* NULL is fine */

#endif
