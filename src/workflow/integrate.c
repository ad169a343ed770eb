/* Makes movements that integrate into command movements. */
#include "workflow/integrate.h"

#include "base/buf.h"
#include "core/ref.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <assert.h>

void integrate_expand(json_t *doc) {
  assert(doc == NULL || json_is_object(doc));
  json_t *movement;
  size_t i;
  json_array_foreach(json_object_get(doc, "movements"), i, movement) {
    json_t *group = json_object_get(movement, "integrate");
    struct buf branches = {0};
    if (!json_is_string(group))
      continue;
    buf_printf(&branches, "{" PROMPT_BRANCHES STR_FMT "}", STR_ARG(json_view(group)));
    json_object_set_new(movement, "command", json_pack("[ss]", "segue", "integrate"));
    json_object_set_new(movement, "instruction", json_text(buf_view(&branches)));
    json_object_set_new(movement, "edit", json_true());
    json_object_del(movement, "integrate");
    buf_deinit(&branches);
  }
}
