/* Checks logs against their chain and their store's ledger. */
#include "view/verification.h"

#include "base/log.h"
#include "store/heads.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct verification {
  struct verifier *verifier;
  struct store store; /* the store of `heads`; where "": none yet */
  struct heads heads;
};

struct verification *verification_new(struct err *err) {
  struct verifier *verifier = verifier_new(err);
  struct verification *p = verifier ? xcalloc(1, sizeof *p) : NULL;
  if (p != NULL)
    p->verifier = verifier;
  return p;
}

bool verification_read(struct verification *p, const struct store_ref *ref,
                       struct verify_result *result, struct err *err) {
  assert(p != NULL && result != NULL);
  const struct heads *heads = &p->heads;
  struct store store;
  store_of(ref, &store);
  if (strcmp(p->store.where, store.where) != 0) {
    heads_deinit(&p->heads);
    p->store = store;
    if (!heads_load(&p->heads, &store, NULL, err)) {
      p->store.where[0] = '\0';
      return false;
    }
  }
  return verify_log(p->verifier, ref, &heads, 1, result, err);
}

void verification_free(struct verification *p) {
  if (p == NULL)
    return;
  verifier_free(p->verifier);
  heads_deinit(&p->heads);
  free(p);
}
