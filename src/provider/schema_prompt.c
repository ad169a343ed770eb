#include "provider/schema_prompt.h"

#include "base/log.h"
#include "base/resource.h"
#include "format/json_write.h"
#include "format/template.h"
#include "structured/extract_schema.h"

#include <string.h>

static struct str root_word(const json_t *schema) {
  enum extract_want want = extract_schema_want(schema);
  return want == EXTRACT_WANT_OBJECT  ? STR("object")
         : want == EXTRACT_WANT_ARRAY ? STR("array")
                                      : STR("value");
}

static void on_piece(void *ctx, struct str piece, const struct template_var *var) {
  (void)var;
  buf_str(ctx, piece);
}

void schema_prompt_append(struct buf *prompt, const json_t *schema) {
  const struct resource *words = resource_find("prompts/en/schema.md");
  struct buf text = {0};
  if (words == NULL)
    BUG("the prompt for schemas is not there");
  json_write(schema, &text);
  bool shown = prompt->n > 0 && memmem(prompt->p, prompt->n, text.p, text.n) != NULL;
  if (!shown) {
    struct str template = {words->p, words->n};
    const struct template_var vars[] = {
        {STR("schema"), buf_view(&text)}, {STR("root"), root_word(schema)}, {{NULL, 0}, {NULL, 0}}};
    if (prompt->n > 0 && prompt->p[prompt->n - 1] == '\n' && template.p[0] == '\n')
      template = (struct str){template.p + 1, template.n - 1}; /* one blank line is between */
    template_render(template, vars, on_piece, prompt);
  }
  buf_deinit(&text);
}
