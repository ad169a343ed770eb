/* proof.h - checks a session's log against its own chain and its store's ledger.
 *
 *   p = proof_new(&err); proof_read(p, &ref, &result, &err) any number of times; proof_free(p)
 * The ledger of a store is read once. See verify.h for what is found and what is not. */
#ifndef SEGUE_VIEW_PROOF_H
#define SEGUE_VIEW_PROOF_H

#include "audit/verify.h"
#include "store/store.h"

struct proof;
struct proof *proof_new(struct err *err);
bool proof_read(struct proof *p, const struct store_ref *ref, struct verify_result *result,
                struct err *err) MUST_CHECK;
void proof_free(struct proof *p); /* NULL is fine */

#endif
