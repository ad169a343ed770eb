/* Which models are of one family. */
#include "provider/model_family.h"

#include "base/err.h"
#include "support/data.h"
#include "support/test.h"

TEST(models_of_one_maker_are_a_family) {
  DATA_ROWS("provider/model_family/models_of_one_maker_are_a_family.yaml", c, provider, model,
            other_provider, other_model, same) {
    struct str a = str_from(c.provider), am = str_from(c.model);
    struct str b = str_from(c.other_provider), bm = str_from(c.other_model);
    if (model_family_is_same(a, am, b, bm) != data_true(c.same) ||
        model_family_is_same(b, bm, a, am) != data_true(c.same))
      fail_msg("%s %s and %s %s", c.provider, c.model, c.other_provider, c.other_model);
  }
}
